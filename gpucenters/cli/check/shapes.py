"""Data of several shapes, and the containers that they come in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ...arrays import cuda


class Shape(NamedTuple):
    """Data by name: ``make`` gives X, a host array without negative values, and labels.

    No value is subnormal in float32: CUDA takes such values for zero in most operations.
    """

    name: str
    make: Callable[[], tuple[np.ndarray, np.ndarray]]


def _words() -> tuple[np.ndarray, np.ndarray]:
    """Counts of words after Zipf's law, of two classes: sums are exact, and gains tie."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1_000)
    rate = 8.0 / np.arange(1, 8_001)
    rates = np.stack([rate, rate * rng.choice([0.3, 1.0, 3.0], rate.size, p=[0.1, 0.8, 0.1])])
    return rng.poisson(rates[y]).astype(np.float32), y


def _genes() -> tuple[np.ndarray, np.ndarray]:
    """Few samples of many features, no value zero."""
    rng = np.random.default_rng(1)
    X = rng.lognormal(3, 1, (90, 10_000)).astype(np.float32)
    y = np.arange(90) % 2
    X[y == 1, :20] *= 2.5
    return X, y


def _cells() -> tuple[np.ndarray, np.ndarray]:
    """Eight classes, float64, most values zero."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 8, 1_500)
    X = rng.gamma(2.0, 1.0, (1_500, 1_000)) * (rng.random((1_500, 1_000)) < 0.15)
    X[:, :40] *= 1 + (y[:, None] == np.arange(40) % 8)
    return np.log1p(X), y


def _table() -> tuple[np.ndarray, np.ndarray]:
    """Many samples of few features, of unequal classes; whole numbers with their int type."""
    rng = np.random.default_rng(3)
    y = rng.choice(5, 20_000, p=[0.5, 0.3, 0.15, 0.04, 0.01])
    return rng.poisson(5 + (y[:, None] == np.arange(25) % 5), (20_000, 25)).astype(np.int32), y


def _tiny() -> tuple[np.ndarray, np.ndarray]:
    """The least that can be fitted, with a constant feature and one of zeros."""
    return np.asarray([[1.0, 5.0, 0.0], [2.0, 5.0, 0.0], [4.0, 5.0, 0.0]]), np.asarray([0, 1, 1])


FIRST = (Shape("words", _words), Shape("genes", _genes))
MORE = (Shape("cells", _cells), Shape("table", _table), Shape("tiny", _tiny))
CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "dense": np.asarray,
    "CSR": scipy.sparse.csr_array,
    "CSC": scipy.sparse.csc_array,
}


def cuda_device(device: str) -> Any:
    """The ``cupy.cuda.Device`` of a name, as "cuda" or "cuda:1"."""
    return cuda.get_device(int(device.partition(":")[2] or 0))


def on_device(X: Any, device: str) -> Any:
    """Host data of any container on a CUDA device.

    Parameters
    ----------
    X : ndarray, CSR or CSC
    device : str
    """
    cupy = cuda.require()
    with cuda_device(device):
        if not scipy.sparse.issparse(X):
            return cupy.asarray(X)
        import cupyx.scipy.sparse

        value = X.data if X.dtype.kind == "f" else X.data.astype(np.float64)  # it has no integers
        parts = (cupy.asarray(value), cupy.asarray(X.indices), cupy.asarray(X.indptr))
        return getattr(cupyx.scipy.sparse, f"{X.format}_matrix")(parts, shape=X.shape)
