"""The scikit-learn face: parameters, validation, fitted attributes."""

from .centers import L1CenterClassifier, L2CenterClassifier
from .naive_bayes import SparseBernoulliNB, SparseMultinomialNB

__all__ = ["L1CenterClassifier", "L2CenterClassifier", "SparseBernoulliNB", "SparseMultinomialNB"]
