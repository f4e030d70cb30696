"""The mechanism that all statistics share: adding, merging, moving, copying and pickling.

A subclass declares its arrays and their axes in ``ARRAYS``, and says how one class is added to
another (`Statistics._add_class`); the rest follows from these two.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, cast

from ..arrays.backend import Backend, resolve_backend, restore_or_host
from ..arrays.context import Context
from ..arrays.functions import to_float, to_host, writable
from ..arrays.inputs import exact_values
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..reductions.class_sums import RawSums, add_class_sums
from .recipe import KINDS, Recipe


@dataclass(eq=False)
class Statistics:
    """What is kept of the samples of K classes with m features.

    Attributes
    ----------
    backend : Backend
        Where the arrays are.
    recipe : Recipe
    class_weight : list of K floats
        W_c: the sum of the sample weights of each class.
    count : list of K ints
        Samples of positive weight in each class.
    total : array of shape (K, m), float64
        Weighted sums of x.
    classes : array of shape (K,), or None
        Labels of the classes, on the host.
    feature_names : array of shape (m,), or None
    nonzero : array of shape (K, m), float64, or None
        Weighted numbers of values other than zero, where they were asked for.
    """

    #: The arrays and their axes. One over "column" has the numbers of some features.
    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "total": ("class", "feature"),
        "nonzero": ("class", "feature"),
    }
    #: Those whose overflow is for the solution to find.
    UNCHECKED: ClassVar[tuple[str, ...]] = ()
    #: Whether squares of x must be finite too.
    needs_squares: ClassVar[bool] = False

    backend: Backend
    recipe: Recipe
    class_weight: list[float]
    count: list[int]
    total: Array
    classes: Array | None = None
    feature_names: Array | None = None
    nonzero: Array | None = None
    # (columns, statistics of these) that the arrays do not hold yet; not a field: never pickled.
    _pending = cast("tuple[Array, Any] | None", None)

    def __init_subclass__(cls, kind: str) -> None:
        KINDS[kind] = cls

    @classmethod
    def _shapes(cls, block: Block, k: int, recipe: Recipe) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays of no samples."""
        shape: tuple[int, ...] = (k, block.shape[1])
        return {"total": shape} | ({"nonzero": shape} if recipe.nonzero else {})

    @classmethod
    def _recipe_of_whole(cls, recipe: Recipe, block: Block, samples: Samples) -> Recipe:
        """The recipe for data that are seen whole, to which no others are added."""
        return recipe

    def _checked(self, block: Block, samples: Samples, ctx: Context, *, mergeable: bool) -> Self:
        """These statistics of a block, or accurate ones, once all sums are finite."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        """(K, m)."""
        return self.total.shape

    def _arrays(self) -> Iterator[tuple[str, tuple[str, ...], Array]]:
        """(name, axes, array) of each array there is."""
        for name, axes in self.ARRAYS.items():
            value = getattr(self, name)
            if value is not None:
                yield name, axes, value

    def _same_arrays(self) -> Self:
        """Another object with the same arrays."""
        self.settle()
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.class_weight, new.count = list(self.class_weight), list(self.count)
        return new

    def _map(self, function: Callable[[str, tuple[str, ...], Array], Array]) -> Self:
        """Another object with ``function(name, axes, array)`` in place of each array."""
        new = self._same_arrays()
        with self.backend.current():
            for name, axes, value in self._arrays():
                setattr(new, name, function(name, axes, value))
        return new

    # --- adding --------------------------------------------------------------------------------

    def add(self, block: Block, samples: Samples, ctx: Context) -> Self:
        """Add a block, in place; returns self. The state after an exception is undefined."""
        raise NotImplementedError

    def add_batch(
        self, block: Block, samples: Samples, ctx: Context, *, shared: bool = False
    ) -> Self:
        """These statistics with a block: other ones; these stay as they are until those settle.

        The block is added to copies: of all arrays or, unless the arrays are ``shared``, of the
        columns that it changes where these are few. So one assignment of what is returned commits
        the batch.
        """
        block.check_finite(self.needs_squares, ctx)
        narrow = None if shared else self._narrowed(block)
        columns, block = (None, block) if narrow is None else narrow
        new = (self.copy() if columns is None else self._at(columns)).add(block, samples, ctx)
        new.check_overflow()
        return new if columns is None else self._with(columns, new)

    def _narrowed(self, block: Block) -> tuple[Array, Block] | None:
        """The columns that adding a block changes, and the block of them; None if not few."""
        return block.narrowed()

    def _at(self, columns: Array) -> Self:
        """The statistics of some columns alone, in copies."""
        xp = self.backend.xp

        def part(name: str, axes: tuple[str, ...], value: Array) -> Array:
            if "feature" in axes:
                return xp.take(value, columns, axis=1)
            return xp.searchsorted(columns, value) if axes == ("column",) else _copy(value, xp)

        return self._map(part)

    def _with(self, columns: Array, few: Self) -> Self:
        """These statistics with others of some columns, which `settle` writes to the arrays."""

        def whole(name: str, axes: tuple[str, ...], value: Array) -> Array:
            if "feature" in axes:
                return getattr(self, name)
            return self.backend.xp.take(columns, value) if axes == ("column",) else value

        new = few._map(whole)
        new._pending = columns, few
        return new

    def settle(self) -> None:
        """Write what the last batch changed to the arrays.

        Until this is done, each call does it again from the beginning, with the same result: it
        may be interrupted anywhere.
        """
        if self._pending is None:
            return
        columns, few = self._pending
        with self.backend.current():
            for name, axes, value in self._arrays():
                if "feature" in axes:
                    value = writable(value)
                    setattr(self, name, value)
                    value[:, columns] = getattr(few, name)
        self._pending = None

    def _count(self, samples: Samples, sign: int = 1) -> None:
        """Add (or take away) the weights and the counts of some samples."""
        pairs = zip(self.class_weight, samples.class_weight, strict=True)
        self.class_weight = [a + sign * b for a, b in pairs]
        self.count = [a + sign * b for a, b in zip(self.count, samples.count, strict=True)]

    def check_overflow(self) -> None:
        """Raise a ValueError if some sum has left float64."""
        xp = self.backend.xp
        for name, axes, sums in self._arrays():
            checked = "class" in axes and name not in self.UNCHECKED
            if checked and not bool(xp.all(xp.isfinite(sums))):
                raise ValueError(
                    "with these samples the sums of X overflow float64: their values are too "
                    "large. Rescale X from the first batch on."
                )

    def _largest_total(self, ctx: Context) -> float:
        """Of all |total|. Of values too large to be squared, constant columns have no squares."""
        xp, total = self.backend.xp, self.total
        most = ctx.map_columns(lambda part: xp.max(abs(total[:, part])), *total.shape[::-1])
        return to_float(xp.max(xp.stack(most)))

    def _raw_sums(self) -> RawSums:
        return RawSums._make([getattr(self, name, None) for name in RawSums._fields])

    def _has_exact_sums(self) -> bool:
        """Whether all sums are integers below 2^53, if values and weights are integers."""
        return False

    def without(self, block: Block, samples: Samples, ctx: Context) -> Self | None:
        """The statistics of the samples that are not in a block, which are part of these.

        All values and weights are integers. None where the bits may not be those of the other
        samples alone.
        """
        if not self._has_exact_sums():
            return None
        new, raw = self._same_arrays(), self._raw_sums().zeros_like()
        add_class_sums(block, samples, raw, ctx)
        for name, part in raw._asdict().items():
            if part is not None:
                setattr(new, name, getattr(self, name) - part)
        new._count(samples, -1)
        return new

    # --- merging -------------------------------------------------------------------------------

    def merge(self, other: Self) -> Self:
        """Add the samples of other statistics, in place, all of them or nothing.

        Weights, counts, totals and raw squares have the same bits in any order of merges where
        their sums are exact, as those of integers are. Centred moments have the same bits for the
        same order, and are equal up to rounding for others.

        Parameters
        ----------
        other : Statistics
            Of an equal recipe and with the same classes and features; on any backend; not changed.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For statistics that were made otherwise.
        """
        self._check_mergeable(other)
        with self.backend.current():
            new = self.copy()
            new._add_all(other.moved(self.backend))
            new.check_overflow()
        for name in ("classes", "feature_names"):
            if getattr(new, name) is None:
                setattr(new, name, getattr(other, name))
        # One assignment commits the arrays, weights and counts.
        self.__dict__ = new.__dict__
        return self

    def merge_classes(self, mapping: Sequence[int], classes: Any = None) -> Self:
        """The statistics of classes that are unions of these.

        Parameters
        ----------
        mapping : sequence of K ints
            The new class of each class, from 0 to K' - 1, each of which occurs.
        classes : array of shape (K',), optional
            Distinct labels of the new classes, in whose order these are then kept.

        Returns
        -------
        Statistics
            New ones.

        Examples
        --------
        >>> from gpucenters import SparseMultinomialNB
        >>> sums = SparseMultinomialNB().statistics([[1, 0], [0, 2], [3, 4]], [0, 1, 2])
        >>> sums.merge_classes([0, 1, 1]).total
        array([[1., 0.],
               [3., 6.]])
        """
        ordered = not isinstance(mapping, dict | set | frozenset)
        try:
            codes = [operator.index(c) for c in mapping] if ordered else None
        except TypeError:
            codes = None
        if codes is None:
            raise TypeError(f"mapping must be a sequence of K class codes, got {mapping!r}.")
        k = len(set(codes))
        if len(codes) != self.shape[0] or set(codes) != set(range(k)):
            raise ValueError(
                f"mapping={codes} must name a new class 0..K'-1, each of them, for each of the "
                f"{self.shape[0]} classes."
            )
        labels = None if classes is None else to_host(exact_values(classes, "classes"))
        if labels is not None:
            if labels.shape != (k,):
                raise ValueError(f"classes has shape {labels.shape}, expected {(k,)}.")
            # Classes are kept in the order of their labels.
            order = sorted(range(k), key=labels.tolist().__getitem__)
            labels = labels[order]
            codes = [order.index(c) for c in codes]
            if any(a == b for a, b in itertools.pairwise(labels.tolist())):
                raise ValueError(f"classes={labels.tolist()} names a label twice.")
        with self.backend.current():
            parts = self._ready_for_unions()
            new = parts._empty_like(k)
            for c, into in enumerate(codes):
                new._add_class(into, parts, c)
        new.classes = labels
        return new

    def one_vs_rest(self) -> Iterator[Self]:
        """The statistics of each class beside those of all other classes.

        The sums of the others are those of the classes before it and those of the classes after it:
        O(K m) for all K classes, and without the cancellation of the sums of all less those of one.

        Yields
        ------
        Statistics
            New ones for each class in turn, of two classes without labels: the others, and itself.
        """
        k = self.shape[0]
        with self.backend.current():
            parts = self._ready_for_unions()
            before, after = parts._empty_like(1), parts.copy()
            for c in reversed(range(k - 1)):
                after._add_class(c, after, c + 1)  # from now on classes c to K - 1
        for c in range(k):
            with self.backend.current():
                pair = parts._empty_like(2)
                pair._add_class(0, before, 0)
                if c + 1 < k:
                    pair._add_class(0, after, c + 1)
                pair._add_class(1, parts, c)
                before._add_class(0, parts, c)
            pair.classes = None
            yield pair

    def of_classes(self, codes: Sequence[int]) -> Self:
        """The statistics of some of the classes alone, in copies."""
        xp, index = self.backend.xp, self.backend.asarray(list(codes), self.backend.xp.int64)
        weight, count = [self.class_weight[c] for c in codes], [self.count[c] for c in codes]
        new = self._with_classes(lambda x: xp.take(x, index, axis=0), weight, count)
        new.classes = None if self.classes is None else self.classes[list(codes)]
        return new

    def _with_classes(self, of_classes: Callable, weight: list[float], count: list[int]) -> Self:
        """Statistics of other classes, with ``of_classes`` of the arrays over the classes."""
        new = self._map(lambda name, axes, x: of_classes(x) if axes[0] == "class" else x)
        new.class_weight, new.count = weight, count
        return new

    def _ready_for_unions(self) -> Self:
        """These statistics in a form whose classes can be added to each other."""
        return self

    def _add_all(self, other: Self) -> None:
        """Add each class of other statistics."""
        for c in range(self.shape[0]):
            self._add_class(c, other, c)

    def _add_class(self, c: int, other: Self, d: int) -> None:
        """Add class d of other statistics to class c, in place."""
        for name, axes, sums in self._arrays():
            if axes[0] == "class":
                sums[c, ...] += getattr(other, name)[d, ...]
        self.class_weight[c] += other.class_weight[d]
        self.count[c] += other.count[d]

    def _empty_like(self, n_classes: int) -> Self:
        """Statistics of no samples, of the same recipe and form, with another number of classes."""
        k, zeros = n_classes, self.backend.zeros
        return self._with_classes(lambda x: zeros((k, *x.shape[1:])), [0.0] * k, [0] * k)

    def _check_mergeable(self, other: Self) -> None:
        if not isinstance(other, Statistics):
            raise TypeError(f"only statistics can be merged, got {type(other).__name__}.")
        if self.recipe != other.recipe:
            raise ValueError(
                f"these statistics are {self.recipe}, the others are {other.recipe}: they cannot "
                "be merged. Make both with one model."
            )
        if self.shape != other.shape:
            raise ValueError(
                f"these statistics are of {self.shape[0]} classes and {self.shape[1]} features, "
                f"the others of {other.shape[0]} and {other.shape[1]}. Pass all labels as classes "
                "where a shard lacks some."
            )
        for name in ("classes", "feature_names"):
            a, b = getattr(self, name), getattr(other, name)
            if a is not None and b is not None and a.tolist() != b.tolist():
                raise ValueError(
                    f"the {name} of the two statistics differ: {a[:5].tolist()} and "
                    f"{b[:5].tolist()} (the first five)."
                )

    # --- copying, moving, pickling -------------------------------------------------------------

    def copy(self) -> Self:
        """Statistics that may be added to without changing these."""
        return self._map(lambda name, axes, value: _copy(value, self.backend.xp))

    __copy__ = copy

    def __deepcopy__(self, memo: dict) -> Self:
        return self.copy()

    def to(self, device: str | Backend) -> Self:
        """A copy of these statistics on another device.

        Parameters
        ----------
        device : {"cpu", "cuda", "cuda:N", "auto"} or Backend
        """
        if not isinstance(device, Backend):
            device = resolve_backend(device, self.total)
        return self.copy() if device == self.backend else self.moved(device)

    def moved(self, backend: Backend) -> Self:
        """These statistics on another backend; on the same one, with the same arrays."""
        with backend.current():
            new = self._map(lambda name, axes, value: backend.move(value))
        new.backend = backend
        return new

    def __getstate__(self) -> dict[str, Any]:
        """Host arrays, and the name of the device: no module."""
        here = self.moved(resolve_backend("cpu", self.total))
        state = {f.name: getattr(here, f.name) for f in fields(here)}
        return state | {"backend": self.backend.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """On the device that the pickle names, or on the host where CUDA cannot be used."""
        self.__dict__.update(state, backend=resolve_backend("cpu", None))
        self.__dict__ = self.moved(restore_or_host(state["backend"])).__dict__


def _copy(x: Array, xp: Any) -> Array:
    return xp.asarray(x, copy=True)
