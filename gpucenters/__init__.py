"""Exact sparse l1 and l2 center classifiers for very wide data, on GPU and CPU from one source.

Classify, and select features, with class centers that may differ in k features only: the k for
which they are provably best, for every k at once, in about the time it takes to read the data.
"""

from importlib.metadata import PackageNotFoundError, version

from .arrays.devices import DeviceUnavailableError, devices
from .estimators import (
    GMEBClassifier,
    GMEBClassifierCV,
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    PermutationGains,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    bernoulli_gain,
    gaussian_gain,
    gmeb_path,
    odds_ratio,
    permutation_gains,
    poisson_gain,
    thresholded_multinomial,
)
from .files import load
from .paths import (
    SparsityPath,
    SparsityPathCV,
    SparsityPathDisplay,
    plot_centers,
    sparsity_path,
)
from .solvers.selection import UninformativeFeaturesWarning

try:
    __version__ = version("gpucenters")
except PackageNotFoundError:  # run from a source tree that was not installed
    __version__ = "0+unknown"

__all__ = [
    "DeviceUnavailableError",
    "GMEBClassifier",
    "GMEBClassifierCV",
    "L1CenterClassifier",
    "L2CenterClassifier",
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
    "devices",
    "gaussian_gain",
    "gmeb_path",
    "load",
    "odds_ratio",
    "permutation_gains",
    "plot_centers",
    "poisson_gain",
    "sparsity_path",
    "thresholded_multinomial",
]
