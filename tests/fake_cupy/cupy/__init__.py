"""A stand-in for CuPy over NumPy, for machines without a GPU: see `cupy._fake` for its controls."""

from __future__ import annotations

import numpy as _np
from cupy import _creation, _functions, _generic, _ufunc
from cupy import _fake as _fake
from cupy._fake.names import MEMBERS as _MEMBERS
from cupy._fake.names import VERSION as _VERSION
from cupy._ndarray import ndarray as ndarray
from cupy._raw import RawModule as RawModule
from cupy._ufunc import ufunc as ufunc

__version__ = _VERSION
globals().update(_generic.build())
globals().update(_ufunc.build())
for _module in (_creation, _functions):
    for _name in _MEMBERS["cupy"] & vars(_module).keys() - {"annotations"}:
        if getattr(vars(_module)[_name], "__module__", None) == _module.__name__:
            globals()[_name] = vars(_module)[_name]
bool, dtype = _np.bool, _np.dtype
concat = globals()["concatenate"]
asanyarray = _creation.asanyarray
del _module, _name

# These build on the names above.
from cupy import cuda
from cupy import fft as fft
from cupy import linalg as linalg
from cupy import random as random


def is_available() -> _np.bool:
    return cuda.is_available()


def get_default_memory_pool() -> cuda.MemoryPool:
    return cuda.memory._memory_pool


def get_default_pinned_memory_pool() -> cuda.PinnedMemoryPool:
    return cuda.pinned_memory._pinned_memory_pool
