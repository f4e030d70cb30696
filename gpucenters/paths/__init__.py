"""Accuracy against the number of features: paths, the choice of k, and pictures of them."""

from .drawing import plot_centers
from .result import SparsityPath
from .search import SparsityPathCV
from .sparsity_path import SparsityPathDisplay, sparsity_path

__all__ = [
    "SparsityPath",
    "SparsityPathCV",
    "SparsityPathDisplay",
    "plot_centers",
    "sparsity_path",
]
