"""Passes over the values of a block: one file each, with the ways for dense and for sparse data.

Class sums and moments, sorted columns for medians, products, scatter matrices, distances, and sums
over segments of features: functions of a `Block`, its samples and a context.
"""
