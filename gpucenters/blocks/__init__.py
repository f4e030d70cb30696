"""X in pieces: dense and sparse blocks behind one protocol.

A block reads X chunk by chunk and gives sums, sorted columns, products and scores. How X is cut,
which rows belong to which class and how they are summed stays inside this folder.
"""
