"""The scikit-learn face: parameters, validation, fitted attributes."""

from .baselines import odds_ratio, thresholded_multinomial
from .centers import L1CenterClassifier, L2CenterClassifier
from .gmeb import GMEBClassifier
from .gmeb_path import GMEBClassifierCV, gmeb_path
from .mahalanobis import MahalanobisCenterClassifier
from .naive_bayes import SparseBernoulliNB, SparseMultinomialNB
from .permutation import PermutationGains, permutation_gains

__all__ = [
    "GMEBClassifier",
    "GMEBClassifierCV",
    "L1CenterClassifier",
    "L2CenterClassifier",
    "MahalanobisCenterClassifier",
    "PermutationGains",
    "SparseBernoulliNB",
    "SparseMultinomialNB",
    "gmeb_path",
    "odds_ratio",
    "permutation_gains",
    "thresholded_multinomial",
]
