"""The numbers of features of a path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..solvers.selection import resolve_k

_STEPS = 40


def resolve_ks(ks: Any, n_features: int) -> list[int]:
    """The numbers of features that ``ks`` means, ascending, each once.

    Parameters
    ----------
    ks : iterable of int, float or "all", or None
        Numbers of features, fractions of them, or all, as ``k`` of the models. None is about 40
        geometric steps from 1 to all features.
    n_features : int

    Examples
    --------
    >>> from gpucenters.paths.numbers_of_features import resolve_ks
    >>> resolve_ks([0.5, 1, "all"], 10)
    [1, 5, 10]
    """
    if ks is None:
        steps = np.geomspace(1, n_features, _STEPS).round().astype(np.int64)
        return np.unique(steps).tolist()
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        raise TypeError(f"ks={ks!r} is not valid: use a list of numbers of features.")
    found = {resolve_k(_plain(k), n_features) for k in ks}
    if not found:
        raise ValueError("ks is empty: give at least one number of features, or None.")
    return sorted(found)


def _plain(k: Any) -> Any:
    return k.item() if isinstance(k, np.generic) else k
