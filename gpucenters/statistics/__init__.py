"""What is kept of X: sums and moments of the classes, which add, merge, move and pickle.

A batch, a shard, a file or a device each gives statistics, and statistics of equal recipes merge.
"""

from .base import Recipe, Statistics
from .class_sums import ClassSums
from .cross_moments import CrossMoments
from .moments import ClassMoments

__all__ = ["ClassMoments", "ClassSums", "CrossMoments", "Recipe", "Statistics"]
