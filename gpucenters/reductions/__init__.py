"""Passes over the values of a block, with the ways for dense and for sparse data.

Class sums and moments, sorted columns and their medians, products, scatter matrices, distances,
sums over segments of features, and columns under permuted labels: functions of a `Block`, its
samples and a context.
"""
