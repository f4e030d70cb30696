"""The scikit-learn face: parameters, validation, fitted attributes."""

from .centers import L1CenterClassifier, L2CenterClassifier
from .mahalanobis import MahalanobisCenterClassifier

__all__ = ["L1CenterClassifier", "L2CenterClassifier", "MahalanobisCenterClassifier"]
