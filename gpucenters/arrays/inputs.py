"""Kinds of input that no code here can work on, each refused with what to pass instead."""

from __future__ import annotations

import sys
from typing import Any

import array_api_compat

from .namespace import is_array, is_sparse
from .on_disk import is_on_disk, refuse_on_disk

#: Members by which a type gives its values, and how they are written.
_INSTEAD = {
    "X": ".X",  # an AnnData
    "to_memory": ".to_memory()",
    "collect": ".collect()",
    "compute": ".compute()",
    "to_scipy_sparse": ".to_scipy_sparse()",
    "unwrap_numpy": ".unwrap_numpy()",
}


def check_input(x: Any, name: str, who: str = "this function") -> None:
    """Raise a TypeError for X, y or weights of a kind that cannot be worked on.

    These are arrays that are immutable or computed when they are read (JAX, Dask, ndonnx, cubed),
    tensors that are sparse or require grad, arrays in files, and objects that no library makes an
    array of. ``who`` asks.
    """
    if array_api_compat.is_numpy_array(x) or is_sparse(x):
        return
    if is_on_disk(x):
        refuse_on_disk(x, name, who)
    if array_api_compat.is_torch_array(x):
        _check_tensor(x, name)
    elif _is_dask(x):
        message = (
            f"{name} is a Dask {type(x).__name__}, which is computed whenever it is read: pass "
            f"{name}.compute()."
        )
        if name == "X":
            message += " gpucenters.dask.fit(estimator, X, y) fits where the partitions are."
        raise TypeError(message)
    elif is_array(x):
        # A type without assignment is asked first: some compute a value to tell if they are lazy.
        if (
            not hasattr(type(x), "__setitem__")
            or not array_api_compat.is_writeable_array(x)
            or array_api_compat.is_lazy_array(x)
        ):
            raise TypeError(
                f"{name} is a {_library(x)}, which is immutable or computed when it is read: "
                f"pass {_instead(x, name) or f'numpy.asarray({name})'}."
            )
    elif not hasattr(x, "__array__") and (hasattr(x, "shape") or hasattr(x, "collect")):
        instead = _instead(x, name)
        raise TypeError(
            f"{name} is a {_library(x)}, which is no array, sparse matrix or DataFrame in memory"
            + (f": pass {instead}." if instead else ".")
        )


def _check_tensor(x: Any, name: str) -> None:
    if x.requires_grad:
        raise TypeError(f"{name} is a tensor that requires grad: pass {name}.detach().")
    if "strided" not in str(x.layout):
        raise TypeError(
            f"{name} is a tensor of layout {x.layout}: pass a SciPy CSR matrix, or "
            f"{name}.to_dense()."
        )


def _is_dask(x: Any) -> bool:
    """Whether ``x`` is an array, DataFrame, Series or other collection of Dask."""
    module = sys.modules.get("dask.base")
    return module is not None and bool(module.is_dask_collection(x))


def _library(x: Any) -> str:
    if array_api_compat.is_jax_array(x):  # its class has another name
        return "jax.Array"
    return f"{type(x).__module__.partition('.')[0]}.{type(x).__qualname__}"


def _instead(x: Any, name: str) -> str | None:
    found = (written for member, written in _INSTEAD.items() if hasattr(type(x), member))
    return next((f"{name}{written}" for written in found), None)
