"""The names that ``import gpucenters`` gives, which are all loaded at the first use of one."""

from . import __version__
from .arrays.backend import DeviceUnavailableError, devices
from .estimators.blocked import BlockGains, block_gains
from .estimators.centers import L1CenterClassifier, L2CenterClassifier
from .estimators.gaussian import SparseGaussianNB
from .estimators.gmeb import GMEBClassifier, GMEBClassifierCV, gmeb_path
from .estimators.mahalanobis import MahalanobisCenterClassifier
from .estimators.naive_bayes import SparseBernoulliNB, SparseMultinomialNB
from .estimators.permutation import PermutationGains, permutation_gains
from .estimators.poisson import SparsePoissonNB
from .estimators.score_functions import (
    LogRatioScaler,
    bernoulli_gain,
    gaussian_gain,
    odds_ratio,
    poisson_gain,
    thresholded_multinomial,
)
from .estimators.shrunken import ShrunkenCentroidClassifier
from .paths import (
    SparsityPath,
    SparsityPathCV,
    SparsityPathDisplay,
    plot_centers,
    sparsity_path,
)
from .pipelines import load, save
from .solvers.selection import UninformativeFeaturesWarning

__all__ = [
    "BlockGains",
    "DeviceUnavailableError",
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
    "SparsityPath",
    "SparsityPathCV",
    "SparsityPathDisplay",
    "UninformativeFeaturesWarning",
    "__version__",
    "bernoulli_gain",
    "block_gains",
    "devices",
    "gaussian_gain",
    "gmeb_path",
    "load",
    "odds_ratio",
    "permutation_gains",
    "plot_centers",
    "poisson_gain",
    "save",
    "sparsity_path",
    "thresholded_multinomial",
]
