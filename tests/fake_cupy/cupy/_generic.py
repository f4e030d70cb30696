"""The functions that need nothing of their own: NumPy's, under CuPy's names and parameters."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from cupy._fake.names import MEMBERS, SIGNATURES, UFUNCS
from cupy._fake.subnormal import flushing
from cupy._lowering import run
from cupy._ndarray import ndarray

# Answers about types and shapes, and constants: the same objects in CuPy.
_AS_IS = frozenset(
    [
        "base_repr",
        "binary_repr",
        "broadcast_shapes",
        "can_cast",
        "common_type",
        "finfo",
        "format_float_positional",
        "format_float_scientific",
        "get_printoptions",
        "iinfo",
        "index_exp",
        "isdtype",
        "isscalar",
        "issubdtype",
        "iterable",
        "min_scalar_type",
        "mintypecode",
        "ndindex",
        "printoptions",
        "promote_types",
        "s_",
        "set_printoptions",
        "typename",
        "e",
        "euler_gamma",
        "inf",
        "nan",
        "newaxis",
        "pi",
        "exceptions",
        "dtype",
    ]
)
# These look at the shape, or make a view of it; no kernel runs.
_VIEWS = frozenset(
    [
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "broadcast_arrays",
        "broadcast_to",
        "diagonal",
        "dsplit",
        "empty",
        "expand_dims",
        "flip",
        "fliplr",
        "flipud",
        "hsplit",
        "imag",
        "iscomplexobj",
        "isfortran",
        "isrealobj",
        "matrix_transpose",
        "may_share_memory",
        "moveaxis",
        "ndim",
        "permute_dims",
        "ravel",
        "real",
        "reshape",
        "result_type",
        "rollaxis",
        "rot90",
        "shape",
        "size",
        "split",
        "squeeze",
        "swapaxes",
        "transpose",
        "vsplit",
        "array_split",
        "shares_memory",
    ]
)
# No array comes in, or one may: everything else has to be given one.
_FREE = frozenset(
    [
        "arange",
        "bartlett",
        "blackman",
        "diag_indices",
        "empty",
        "eye",
        "frombuffer",
        "full",
        "hamming",
        "hanning",
        "identity",
        "indices",
        "kaiser",
        "linspace",
        "logspace",
        "mask_indices",
        "ones",
        "tri",
        "tril_indices",
        "triu_indices",
        "unravel_index",
        "zeros",
        "fromfunction",
        "fromiter",
        "fromstring",
        "may_share_memory",
        "result_type",
        "shape",
        "size",
        "ndim",
    ]
)
# Where the size of the result, or the answer, has to come to the host first.
_SYNCING = {
    "append": None,
    "argwhere": "argwhere",
    "average": None,
    "delete": "delete",
    "extract": "extract",
    "flatnonzero": "flatnonzero",
    "histogram": "histogram",
    "histogram2d": "histogram2d",
    "histogramdd": "histogramdd",
    "intersect1d": "intersect1d",
    "nanmax": "nanmax",
    "nanmin": "nanmin",
    "nonzero": "nonzero",
    "setdiff1d": "setdiff1d",
    "setxor1d": "setxor1d",
    "trim_zeros": "trim_zeros",
    "union1d": "union1d",
    "unique": "unique",
    "unique_all": "unique_all",
    "unique_counts": "unique_counts",
    "unique_inverse": "unique_inverse",
    "unique_values": "unique_values",
}
# NumPy answers these with a Python scalar.
_TO_ARRAY = frozenset(("allclose", "array_equal", "array_equiv", "count_nonzero"))


# NumPy warns where these meet nothing but NaN, or nothing at all; a device does not.
_WARNING = frozenset(
    [
        "average",
        "corrcoef",
        "cov",
        "mean",
        "median",
        "nanmax",
        "nanmean",
        "nanmedian",
        "nanmin",
        "nanstd",
        "nanvar",
        "percentile",
        "quantile",
        "std",
        "var",
    ]
)
# These compare or add values; what is not here copies them, or calls what is.
_COMPUTING = _WARNING | {
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "max",
    "min",
    "nansum",
    "prod",
    "ptp",
    "sum",
}
# Lengths are asked of the host: CuPy's arrays have no `__index__`.
_BY_SHAPE = frozenset(("empty", "eye", "full", "identity", "ones", "tri", "zeros"))


def _silenced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return function(*args, **kwargs)

    return quiet


def _arguments_hold_array(values: Any) -> bool:
    return any(
        isinstance(v, ndarray) or (isinstance(v, list | tuple) and _arguments_hold_array(v))
        for v in values
    )


def wrap(
    path: str, function: Callable[..., Any], *, needs_array: bool | None = None
) -> Callable[..., Any]:
    """`function` on device arrays, refusing what CuPy's function of that name has no parameter for.

    `path` is the name in CuPy, as "cupy.linalg.norm".
    """
    from cupy._fake.counting import counter

    name = path.rpartition(".")[2]
    accepted = SIGNATURES.get(path)
    sync = _SYNCING.get(name)
    needs = name not in _FREE if needs_array is None else needs_array
    engine = _silenced(function) if name in _WARNING else function
    engine = flushing(engine) if name in _COMPUTING else engine

    @functools.wraps(function, assigned=("__name__",), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if accepted is not None:
            if len(args) > len(accepted):
                raise TypeError(f"{name}() takes {len(accepted)} positional arguments")
            for key in kwargs:
                if key not in accepted:
                    raise TypeError(f"{name}() got an unexpected keyword argument {key!r}")
        if name in _BY_SHAPE and _arguments_hold_array(args[:1]):
            raise TypeError("'ndarray' object cannot be interpreted as an integer")
        if needs and not _arguments_hold_array((*args, *kwargs.values())):
            raise TypeError(f"{name}() takes cupy.ndarray, got {[type(a) for a in args]}")
        result = run(engine, args, kwargs, launches=name not in _VIEWS, name=name)
        if sync is not None:
            counter.sync(sync)
        if name in _TO_ARRAY and not isinstance(result, ndarray):
            result = ndarray._wrap(np.asarray(result))
        return result

    call.__module__ = path.rpartition(".")[0]
    return call


def build() -> dict[str, Any]:
    """All of `cupy` that NumPy has too, except the ufuncs and what other modules define."""
    found: dict[str, Any] = {}
    for name in MEMBERS["cupy"] - UFUNCS.keys():
        value = getattr(np, name, None)
        if name in _AS_IS or (isinstance(value, type) and issubclass(value, np.generic)):
            found[name] = value
        elif callable(value) and not isinstance(value, type):
            found[name] = wrap(f"cupy.{name}", value)
    return found
