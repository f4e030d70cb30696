"""The scikit-learn face: parameters, validation, fitted attributes."""

from .centers import L1CenterClassifier, L2CenterClassifier

__all__ = ["L1CenterClassifier", "L2CenterClassifier"]
