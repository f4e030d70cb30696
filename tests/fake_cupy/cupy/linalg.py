"""What fails does so silently, unless ``cupyx.errstate(linalg="raise")`` is set, which waits."""

from __future__ import annotations

import functools as _functools
from collections.abc import Callable as _Callable
from typing import Any as _Any

import cupyx as _cupyx
import numpy as _np
from cupy._fake import memory as _memory
from cupy._fake.counting import counter as _counter
from cupy._fake.names import MEMBERS as _MEMBERS
from cupy._generic import wrap as _wrap

LinAlgError = _np.linalg.LinAlgError
# What is left where they fail is not specified: here it looks right.
_UNSPECIFIED: dict[str, _Callable[..., _Any]] = {
    "cholesky": lambda a: _np.tril(_np.abs(a)) + _np.eye(len(a)),
    "inv": lambda a: a.copy(),
    "solve": lambda a, b: b.copy(),
}
_CHECKED = ("eigh", "eigvalsh", "qr", "svd", *_UNSPECIFIED)


def _solver(name: str, function: _Callable[..., _Any]) -> _Callable[..., _Any]:
    @_functools.wraps(function)
    def call(*args: _Any, **kwargs: _Any) -> _Any:
        _memory.take_outside("cuSOLVER")
        raises = _cupyx.geterr()["linalg"] == "raise"
        if raises:
            _counter.sync(f"{name}: devInfo")
        try:
            return function(*args, **kwargs)
        except LinAlgError:
            if raises or name not in _UNSPECIFIED:
                raise
            return _UNSPECIFIED[name](*args, **kwargs)

    return call


for _name in _MEMBERS["cupy.linalg"]:
    _value = getattr(_np.linalg, _name, None)
    if callable(_value) and not isinstance(_value, type):
        _value = _solver(_name, _value) if _name in _CHECKED else _value
        globals()[_name] = _wrap(f"cupy.linalg.{_name}", _value)
