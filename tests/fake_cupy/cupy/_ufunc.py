"""`cupy.ufunc`: a NumPy ufunc with what CuPy's lacks left out.

There is no ``where=``; `reduce` and `accumulate` exist for sums and products alone, `reduceat` for
sums, and `at` where the device has an atomic operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cupy import _indexing
from cupy._fake.names import UFUNCS
from cupy._fake.subnormal import flushing
from cupy._lowering import refuse, run
from cupy._ndarray import ndarray

_OPTIONS = {"dtype", "casting"}
# Ufuncs in CuPy, plain functions in NumPy.
_ARITY = {"fix": 1, "i0": 1, "sinc": 1}


class ufunc:
    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = f"cupy_{name}"
        self.__name__ = self.name
        self._function = flushing(function)
        self._scatter_op = UFUNCS[name]
        self.nin = getattr(function, "nin", _ARITY.get(name, 1))
        self.nout = getattr(function, "nout", 1)
        self.nargs = self.nin + self.nout
        self.types = list(getattr(function, "types", ()))

    def __repr__(self) -> str:
        return f"<ufunc '{self.name}'>"

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if kwargs.keys() - _OPTIONS:
            raise TypeError(f"Wrong arguments {kwargs}")
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(f"Wrong number of arguments for {self.name}")
        args, outs = args[: self.nin], args[self.nin :]
        for operand in args:
            if not (isinstance(operand, ndarray) or np.isscalar(operand)) or isinstance(
                operand, str | bytes
            ):
                raise refuse(operand)
        out = out if out is not None else (outs[0] if len(outs) == 1 else outs or None)
        if isinstance(out, tuple) and len(out) == 1:
            (out,) = out
        if out is not None:
            if not all(isinstance(o, ndarray) for o in (out if type(out) is tuple else (out,))):
                raise TypeError("return arrays must be of ArrayType")
            kwargs["out"] = out
        if not any(isinstance(a, ndarray) for a in args):
            # Scalars alone are no reason for NumPy to return a scalar: CuPy returns a 0-d array.
            return run(self._function, tuple(np.asarray(a)[()] for a in args), kwargs)
        return run(self._function, args, kwargs)

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        left = a.reshape(a.shape + (1,) * b.ndim) if isinstance(b, ndarray) else a
        return self(left, b, **kwargs)

    def at(self, a: ndarray, indices: Any, b: Any = None) -> None:
        if self._scatter_op is None:
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        _indexing.scatter(a, indices, b, self._scatter_op)

    def reduce(
        self,
        array: ndarray,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
    ) -> Any:
        import cupy

        functions = {"cupy_add": cupy.sum, "cupy_multiply": cupy.prod}
        if self.name not in functions:
            raise NotImplementedError(f"`{self.name}.reduce` is not supported yet")
        return functions[self.name](array, axis, dtype, out, keepdims)

    def accumulate(self, array: ndarray, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        import cupy

        functions = {"cupy_add": cupy.cumsum, "cupy_multiply": cupy.cumprod}
        if self.name not in functions:
            raise NotImplementedError(f"`{self.name}.accumulate` is not supported yet")
        return functions[self.name](array, axis, dtype, out)

    def reduceat(
        self, array: ndarray, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        if self.name != "cupy_add":
            raise NotImplementedError(f"`{self.name}.reduceat` is not supported yet")
        return run(np.add.reduceat, (array, indices, axis, dtype, out))


ufunc.__module__ = "cupy"


def build() -> dict[str, ufunc]:
    found = {n: getattr(np, n, None) for n in UFUNCS}
    return {n: ufunc(n, f) for n, f in found.items() if f is not None}
