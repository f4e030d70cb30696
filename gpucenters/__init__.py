"""Exact sparse l1 and l2 center classifiers for very wide data, on GPU and CPU from one source.

Classify, and select features, with class centers that may differ in k features only: the k for
which they are provably best, for every k at once, in about the time it takes to read the data.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arrays.devices import DeviceUnavailableError, devices
    from .estimators import (
        BlockGains,
        GMEBClassifier,
        GMEBClassifierCV,
        L1CenterClassifier,
        L2CenterClassifier,
        LogRatioScaler,
        MahalanobisCenterClassifier,
        PermutationGains,
        ShrunkenCentroidClassifier,
        SparseBernoulliNB,
        SparseGaussianNB,
        SparseMultinomialNB,
        SparsePoissonNB,
        bernoulli_gain,
        block_gains,
        gaussian_gain,
        gmeb_path,
        odds_ratio,
        permutation_gains,
        poisson_gain,
        thresholded_multinomial,
    )
    from .files import load, save
    from .paths import (
        SparsityPath,
        SparsityPathCV,
        SparsityPathDisplay,
        plot_centers,
        sparsity_path,
    )
    from .solvers.selection import UninformativeFeaturesWarning

    __version__: str

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

# Each name is imported at its first use (PEP 562), so that `gpucenters --help` starts at once: from
# the first of these modules that has it.
_MODULES = ("arrays.devices", "solvers.selection", "estimators", "files", "paths")
_PACKAGES = (
    "arrays",
    "blocks",
    "dask",
    "estimators",
    "files",
    "multiclass",
    "paths",
    "readers",
    "solvers",
    "statistics",
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    if name == "__version__":
        value = _version()
    elif name in __all__:
        modules = (import_module(f".{module}", __name__) for module in _MODULES)
        value = next(getattr(module, name) for module in modules if hasattr(module, name))
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(__name__)
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "0+unknown"
