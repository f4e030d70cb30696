"""Features of single-cell data that tell groups of cells apart, in the form of scanpy."""

from .ranking import rank_features

__all__ = ["rank_features"]
