"""Exact sparse l1 and l2 center classifiers for very wide data, on GPU and CPU from one source.

Classify, and select features, with class centers that may differ in k features only: the k for
which they are provably best, for every k at once, in about the time it takes to read the data.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._public import *  # noqa: F403

    __version__: str

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


# Names are loaded at the first use of one (PEP 562), so that `gpucenters --help` starts at once.
def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    if name == "__version__":
        value: Any = _version()
    elif name == "__all__" or not name.startswith("_"):
        value = getattr(import_module("._public", __name__), name, None)
    else:
        value = None
    if value is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__"), *_PACKAGES})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(__name__)
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "0+unknown"
