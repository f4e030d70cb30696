"""Selection of the k best features, with a rule for every tie. Only this file interprets k."""

from __future__ import annotations

import inspect
import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ..arrays.cached import cached_property
from ..arrays.context import Context
from ..arrays.functions import array_namespace, backend_of, round_to_40_bits, to_host, top_k
from ..arrays.inputs import check_input
from ..arrays.typing import Array


@dataclass(frozen=True)
class Selection:
    """The chosen features.

    Attributes
    ----------
    support : array of int64 of shape (k,)
        Ascending.
    gain : array of shape (k,), float64
        Their gains.
    """

    #: The arrays, which move to another backend, and their axes.
    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {"support": ("chosen",), "gain": ("chosen",)}

    support: Array
    gain: Array

    @cached_property
    def ranking(self) -> Array:
        """The same features by descending key, ties to the lower index: int64, (k,)."""
        xp = array_namespace(self.gain)
        return xp.take(self.support, xp.argsort(-ranking_key(self.gain), stable=True))

    def moved(self, move: Callable[[Array], Array]) -> Self:
        """The same selection elsewhere, as ``Backend.move`` and ``to_host`` do it."""
        return replace(self, support=move(self.support), gain=move(self.gain))


def resolve_k(k: Any, n_features: int) -> int:
    """The number of features that ``k`` means.

    Parameters
    ----------
    k : int >= 1, float in (0, 1], or "all"
        A number of features (1 is one feature), a fraction of them rounded down but at least one
        (1.0 is all), or all. More than there are warns and means all.
    n_features : int

    Raises
    ------
    ValueError
        For anything else: bool, 0, negatives, NaN, other floats, other strings.

    Examples
    --------
    >>> from gpucenters.solvers import resolve_k
    >>> resolve_k(0.29, 100), resolve_k(1, 100), resolve_k(1.0, 100)
    (29, 1, 100)
    """
    check_k(k)
    if isinstance(k, str):
        return n_features
    if not isinstance(k, numbers.Integral):
        # The relative 1e-12 is room for the rounding of k and of the product, far below a feature.
        return max(1, math.floor(float(k) * n_features * (1 + 1e-12)))
    if int(k) > n_features:
        warn(f"k={k} is greater than n_features={n_features}. All the features will be used.")
    return min(int(k), n_features)


class UninformativeFeaturesWarning(UserWarning):
    """Features without a positive gain were selected, since ``k`` asks for more than have one.

    Shown once for each line of code, searches over many fits included, where no filter of warnings
    says otherwise.
    """


def warn_of_no_gain(gain: Array, count: int, n_features: int) -> None:
    """Warn if fewer features than the ``count`` that ``k`` asks for have a gain.

    The message depends neither on k nor on the values of X, so that a search shows it once.
    """
    positive = int(array_namespace(gain).count_nonzero(gain > 0))
    if positive >= count:
        return
    if positive:
        message = (
            f"k asks for more features than have a positive gain among the {n_features} of X: the "
            "others do not tell the classes apart. scores_ has the gains."
        )
    else:
        message = (
            f"none of the {n_features} features has a positive gain: they do not tell the classes "
            "apart, and the first ones are selected."
        )
    warn(message, UninformativeFeaturesWarning)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the line that called this package; once for each line unless a filter matches.

    That is Python's default too, but it forgets what it showed whenever filters are changed, which
    scikit-learn's validation does in each fit.
    """
    level, frame = 1, inspect.currentframe()
    package = __name__.partition(".")[0]
    while frame is not None and frame.f_globals.get("__name__", "").startswith(f"{package}."):
        level, frame = level + 1, frame.f_back
    if not any(
        issubclass(category, kind) and (text is None or text.match(message))
        for _, text, kind, _, _ in warnings.filters
    ):
        shown = (message, frame and frame.f_code.co_filename, frame and frame.f_lineno)
        if shown in _SHOWN:
            return
        _SHOWN.add(shown)
    warnings.warn(message, category, stacklevel=level)


_SHOWN: set[tuple] = set()


def check_k(k: Any) -> None:
    """Raise a ValueError unless ``k`` is an int >= 1, a float in (0, 1] or "all"."""
    if isinstance(k, str) and k == "all":
        return
    # True is an integral and equal to 1.0, but means neither one feature nor all.
    if isinstance(k, numbers.Integral):
        if not isinstance(k, bool) and int(k) >= 1:
            return
    elif isinstance(k, numbers.Real) and 0 < k <= 1:  # type: ignore[operator]
        return
    raise ValueError(
        f"k={k!r} is not valid: use an int >= 1 (a number of features), a float in (0, 1] (a "
        "fraction of them) or 'all'."
    )


def ranking_key(gain: Array) -> Array:
    """The gain rounded to 40 significant bits, by which features are ranked.

    Gains that are equal in exact arithmetic have equal keys on every device, for every number of
    threads and order of summation.
    """
    return round_to_40_bits(gain)


def select(gain: Any, k: Any = "all", ctx: Context | None = None) -> Selection:
    """The k features of largest gain; equal keys go to the lower index.

    The optimum of Prop. 1 and 3 of Calafiore & Fracastoro for this k. One ``gain`` serves every k.

    Parameters
    ----------
    gain : array of shape (m,), float64, or SparseCenters
    k : int, float or "all"
        See `resolve_k`.
    ctx : Context, optional
        How the work is done; by default as for a call of its own.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters.solvers import select
    >>> select(np.asarray([3.0, 1.0, 3.0, 3.0, 2.0, 3.0]), 2).support
    array([0, 2])
    """
    solved = getattr(gain, "gain", None)
    xp = array_namespace(gain if solved is None else solved)
    if solved is None:
        check_input(gain, "gain")
        solved = xp.asarray(gain)
        if solved.ndim != 1 or xp.isdtype(solved.dtype, "complex floating"):
            raise ValueError(f"gain must be m real numbers, got {solved.dtype} of {solved.shape}.")
        solved = xp.astype(solved, xp.float64, copy=False)
        if not bool(xp.all(xp.isfinite(solved))):
            raise ValueError("gain contains NaN or infinity: such features cannot be ranked.")
    backend, m = backend_of(solved), solved.shape[0]
    count = resolve_k(k, m)
    if not isinstance(k, str):
        warn_of_no_gain(solved, count, m)
    if count == m:
        return Selection(backend.arange(m), solved)
    support = top_k(_keys(solved, ctx or Context.of(backend)), count)
    return Selection(support, xp.take(solved, support))


def nested_supports(gain: Array, ks: list[int], ctx: Context) -> Array:
    """The features of several supports, ``ks`` ascending: the first k of them are those of each k.

    int64 of shape (ks[-1],). Those that enter at each k are in ascending order: no sort of all
    features by their gain.
    """
    xp, key = array_namespace(gain), _keys(gain, ctx)
    if ks[-1] == gain.shape[0]:
        return xp.argsort(_segments(key, ks, ctx), stable=True)
    support = top_k(key, ks[-1])
    key = xp.take(key, support)
    return xp.take(support, xp.argsort(_segments(key, ks, ctx), stable=True))


def _segments(key: Array, ks: list[int], ctx: Context) -> Array:
    """For each of the first ks[-1] features the number of the k at which it enters."""
    xp, backend, m = array_namespace(key), ctx.backend, key.shape[0]
    ascending = xp.sort(key, stable=False)
    sizes = backend.asarray(ks)
    least = xp.flip(xp.take(ascending, m - sizes))  # the last key that each k takes, ascending
    kind = xp.uint8 if len(ks) < 2**8 else xp.int16 if len(ks) < 2**15 else xp.int64
    found = backend.zeros(m, kind)

    def fill(part: slice) -> None:
        above = len(ks) - xp.searchsorted(least, key[part], side="right")
        found[part] = xp.astype(above, kind)

    ctx.map_columns(fill, m)
    # Of equal keys that more than one k shares, the lower indices enter first.
    least = xp.flip(least)
    more = m - xp.searchsorted(ascending, least, side="right")  # keys that are larger
    reached = m - xp.searchsorted(ascending, least, side="left")  # or equal
    for s, (first, last) in enumerate(zip(*map(to_host, (more, reached)), strict=True)):
        if last > ks[s] and (s == 0 or ks[s - 1] <= first):
            equal = key == least[s]
            ranks = backend.arange(int(last - first)) + int(first)
            found[equal] = xp.astype(xp.searchsorted(sizes, ranks, side="right"), kind)
    return found


def _keys(gain: Array, ctx: Context) -> Array:
    key = ctx.backend.zeros(gain.shape[0])

    def fill(part: slice) -> None:
        key[part] = ranking_key(gain[part])

    ctx.map_columns(fill, gain.shape[0])
    return key
