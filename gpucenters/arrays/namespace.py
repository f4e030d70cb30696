"""The library of an array, found without importing a library that is not loaded yet."""

from __future__ import annotations

import sys
from typing import Any

import array_api_compat
import array_api_compat.numpy as numpy_namespace
import numpy as np
import scipy.sparse

from .typing import Namespace


def is_host_sparse(x: object) -> bool:
    """Whether ``x`` is a SciPy sparse matrix or array."""
    return bool(scipy.sparse.issparse(x))


def is_cuda_sparse(x: object) -> bool:
    """Whether ``x`` is a cupyx sparse matrix, found without importing cupyx."""
    module = sys.modules.get("cupyx.scipy.sparse")
    return module is not None and bool(module.issparse(x))


def is_sparse(x: object) -> bool:
    """Whether ``x`` is a sparse matrix of either library."""
    return is_host_sparse(x) or is_cuda_sparse(x)


def is_array(x: object) -> bool:
    """Whether ``x`` is a dense array of a library of the array API standard."""
    return bool(array_api_compat.is_array_api_obj(x))


def is_numpy(xp: Namespace) -> bool:
    """Whether ``xp`` is NumPy's namespace."""
    return bool(array_api_compat.is_numpy_namespace(xp))


def is_cupy(xp: Namespace) -> bool:
    """Whether ``xp`` is CuPy's namespace."""
    return bool(array_api_compat.is_cupy_namespace(xp))


def is_numpy_or_cupy(xp: Namespace) -> bool:
    """Whether ``xp`` is one of the two namespaces that share function names and sparse formats."""
    return is_numpy(xp) or is_cupy(xp)


def cupy_namespace() -> Namespace:
    """CuPy's namespace as array-api-compat gives it."""
    import array_api_compat.cupy as namespace

    return namespace


def array_namespace(x: Any) -> Namespace:
    """The namespace of an array or sparse matrix; NumPy's for everything else."""
    if type(x) is np.ndarray:  # small problems ask often
        return numpy_namespace
    if is_cuda_sparse(x):
        return cupy_namespace()
    if is_host_sparse(x) or not is_array(x):
        return numpy_namespace
    return array_api_compat.array_namespace(x)


def sparse_module(xp: Namespace) -> Any:
    """``scipy.sparse`` for NumPy's namespace, ``cupyx.scipy.sparse`` for CuPy's."""
    if is_cupy(xp):
        import cupyx.scipy.sparse

        return cupyx.scipy.sparse
    return scipy.sparse


def assume_canonical(matrix: Any) -> Any:
    """The CSR or CSC matrix, marked as one that stores each entry once, in any order.

    Before each product cupyx would look for duplicates, one thread a row, and wait for the answer.
    """
    if is_cuda_sparse(matrix):
        matrix.has_canonical_format = True
    return matrix


def to_numpy(x: Any) -> np.ndarray:
    """A dense array of any library as a NumPy array."""
    if isinstance(x, np.ndarray):
        return x
    if not is_array(x):
        return np.asarray(x)
    xp = array_namespace(x)
    if is_cupy(xp):
        return x.get()
    if array_api_compat.is_torch_array(x):  # whose list of devices comes with warnings
        return np.asarray(x.cpu())
    if array_api_compat.device(x) != "cpu":
        # Libraries name their CPU device differently: search the list of devices for it.
        found = xp.__array_namespace_info__().devices()
        x = array_api_compat.to_device(x, next(d for d in found if "cpu" in str(d).lower()))
    return np.asarray(x)
