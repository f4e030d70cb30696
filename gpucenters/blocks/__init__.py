"""X in pieces: dense and sparse blocks, their samples, and the checks of X.

How the values of X are reached stays inside this folder: chunks, layouts, devices and disks. What
is computed of them is in `gpucenters.reductions`.
"""
