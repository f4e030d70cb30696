"""Sorted columns: the values of each class in each column, ascending, with their weights.

What medians need of X, in a form that dense and sparse data share. A column of one class is a list
of *items*. In a dense block an item is a sample. In a sparse block all zeros of the column, stored
or not, are one item with their joint weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import family
from .devices import Place
from .typing import Array


@dataclass(frozen=True)
class SortedColumns:
    """Items of K classes in b columns.

    Attributes
    ----------
    place : Place
    values : array of shape (N,)
        All stored values; those of one class and column are contiguous and ascending.
    start : array of int64 of shape (K, b)
        Where they begin.
    size : array of int64 of shape (K, b)
        How many items there are, the zero item included.
    depth : int
        Bound on the steps of a bisection over the items of one list.
    zero_at : array of int64 of shape (K, b) or None
        Position of the zero item; not below ``size`` where there is none. None: no list has one.
    zero_mass : array of shape (K, b) or None
        Its weight, int64 where weights are counts.
    weights, cumulative : array of shape (N,) or None
        Weights of the stored values and their running sum within each list; None counts each once.
    """

    place: Place
    values: Array
    start: Array
    size: Array
    depth: int
    zero_at: Array | None = None
    zero_mass: Array | None = None
    weights: Array | None = None
    cumulative: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(K, b)."""
        return self.size.shape

    def _stored(self, item: Array) -> Array:
        """How many stored values come before ``item``: all items but the zero item are stored."""
        if self.zero_at is None:
            return item
        xp = self.place.xp
        return item - xp.astype(item > self.zero_at, xp.int64)

    def _take(self, array: Array, position: Array) -> Array:
        xp = self.place.xp
        if array.shape[0] == 0:
            return self.place.zeros(position.shape, array.dtype)
        zero = xp.zeros_like(position)
        inside = xp.minimum(xp.maximum(position, zero), zero + (array.shape[0] - 1))
        return xp.reshape(xp.take(array, xp.reshape(inside, (-1,))), position.shape)

    def value(self, item: Array) -> Array:
        """The value of each item (float64); anything where ``item`` is outside its list."""
        xp = self.place.xp
        stored = self._take(self.values, self.start + self._stored(item))
        stored = xp.astype(stored, xp.float64)
        if self.zero_at is None:
            return stored
        return xp.where(item == self.zero_at, self.place.asarray(0.0), stored)

    def mass(self, item: Array) -> Array:
        """The weight of all items before ``item``."""
        xp = self.place.xp
        stored = self._stored(item)
        if self.cumulative is None:
            mass = stored
        else:
            before = self._take(self.cumulative, self.start + stored - 1)
            mass = xp.where(stored > 0, before, self.place.zeros((), before.dtype))
        if self.zero_at is None:
            return mass
        passed = xp.astype(item > self.zero_at, mass.dtype)
        return mass + passed * self.zero_mass

    def first(self, predicate: Callable[[Array], Array], low: Array, high: Array) -> Array:
        """The first item in low..high for which a monotone predicate holds, by bisection."""
        xp = self.place.xp
        for _ in range(self.depth):
            middle = (low + high) // 2
            holds = predicate(middle)
            open_ = low < high
            high = xp.where(open_ & holds, middle, high)
            low = xp.where(open_ & ~holds, middle + 1, low)
        return low

    def weighted_sum(self, f: Callable[..., Array], *parameters: Array) -> Array:
        """Sum over the items x of their weight times ``f(x, *p)``, p the list's own parameters.

        Parameters
        ----------
        f : callable, elementwise
        *parameters : arrays of shape (K, b)

        Returns
        -------
        array of shape (K, b), float64
        """
        raise NotImplementedError


@dataclass(frozen=True)
class DenseSortedColumns(SortedColumns):
    """Lists that lie side by side: column after column, each with its K classes."""

    counts: tuple[int, ...] = ()

    def weighted_sum(self, f: Callable[..., Array], *parameters: Array) -> Array:
        xp = self.place.xp
        table = xp.reshape(self.values, (self.shape[1], -1))
        weights = None if self.weights is None else xp.reshape(self.weights, table.shape)
        sums, start = [], 0
        for c, count in enumerate(self.counts):
            part = slice(start, start + count)
            start += count
            x = xp.astype(table[:, part], xp.float64)
            terms = f(x, *(p[c, :][:, None] for p in parameters))
            if weights is not None:
                terms = terms * weights[:, part]
            sums.append(xp.sum(terms, axis=1))
        return xp.stack(sums)


@dataclass(frozen=True)
class SparseSortedColumns(SortedColumns):
    """Lists of any length, one after the other."""

    segment: Array = None

    def weighted_sum(self, f: Callable[..., Array], *parameters: Array) -> Array:
        xp = self.place.xp
        x = xp.astype(self.values, xp.float64)
        terms = f(x, *(xp.reshape(p, (-1,))[self.segment] for p in parameters))
        if self.weights is not None:
            terms = terms * self.weights
        k, b = self.shape
        sums = self.place.zeros(k * b)
        family.scatter_add(sums, self.segment, terms, xp)
        at_zero = f(self.place.zeros((k, b)), *parameters)
        return xp.reshape(sums, (k, b)) + xp.astype(self.zero_mass, xp.float64) * at_zero
