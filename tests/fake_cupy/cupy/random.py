"""The global generator's functions; the numbers are NumPy's, not the device's."""

from __future__ import annotations

from typing import Any

import numpy as _np
from cupy._lowering import run as _run

_NAMES = [
    "beta",
    "binomial",
    "choice",
    "exponential",
    "gamma",
    "geometric",
    "multinomial",
    "normal",
    "permutation",
    "poisson",
    "rand",
    "randint",
    "randn",
    "random",
    "random_sample",
    "shuffle",
    "standard_normal",
    "uniform",
]


class RandomState:
    def __init__(self, seed: Any = None) -> None:
        self._state = _np.random.RandomState(seed)


def _method(name: str) -> Any:
    def draw(self: RandomState, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        drawn = _run(getattr(self._state, name), args, kwargs)
        return drawn if dtype is None or drawn is None else drawn.astype(dtype, copy=False)

    draw.__name__ = name
    return draw


for _name in _NAMES:
    setattr(RandomState, _name, _method(_name))

_global = RandomState(0)


def seed(seed: Any = None, size: Any = None) -> None:
    global _global
    _global = RandomState(seed)


def _function(name: str) -> Any:
    return lambda *args, **kwargs: getattr(_global, name)(*args, **kwargs)


for _name in _NAMES:
    globals()[_name] = _function(_name)
