"""Sufficient statistics of the classes: additive, mergeable, movable between devices, picklable.

A batch, a shard, a file or a device each gives statistics; those of equal recipes merge.
"""

from .base import Statistics
from .class_sums import ClassSums, ExposedSums
from .cross_moments import CrossMoments
from .moments import ClassMoments
from .recipe import Recipe

__all__ = ["ClassMoments", "ClassSums", "CrossMoments", "ExposedSums", "Recipe", "Statistics"]
