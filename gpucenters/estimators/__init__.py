"""The scikit-learn face: parameters, validation, fitted attributes."""

from .baselines import odds_ratio, thresholded_multinomial
from .blocked import BlockGains, block_gains
from .centers import L1CenterClassifier, L2CenterClassifier
from .gaussian import SparseGaussianNB
from .gmeb import GMEBClassifier
from .gmeb_path import GMEBClassifierCV, gmeb_path
from .log_ratio import LogRatioScaler
from .mahalanobis import MahalanobisCenterClassifier
from .naive_bayes import SparseBernoulliNB, SparseMultinomialNB
from .permutation import PermutationGains, permutation_gains
from .poisson import SparsePoissonNB
from .score_functions import bernoulli_gain, gaussian_gain, poisson_gain
from .shrunken import ShrunkenCentroidClassifier

__all__ = [
    "BlockGains",
    "GMEBClassifier",
    "GMEBClassifierCV",
    "L1CenterClassifier",
    "L2CenterClassifier",
    "LogRatioScaler",
    "MahalanobisCenterClassifier",
    "PermutationGains",
    "ShrunkenCentroidClassifier",
    "SparseBernoulliNB",
    "SparseGaussianNB",
    "SparseMultinomialNB",
    "SparsePoissonNB",
    "bernoulli_gain",
    "block_gains",
    "gaussian_gain",
    "gmeb_path",
    "odds_ratio",
    "permutation_gains",
    "poisson_gain",
    "thresholded_multinomial",
]
