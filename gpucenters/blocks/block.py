"""The protocol that `DenseBlock` and `SparseBlock` implement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np

from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.typing import Array
from .accumulators import CentredSums, RawSums
from .labelled_columns import LabelledColumns
from .labels import Labels
from .readers import Reader
from .samples import Samples
from .scatter import ScatterSums
from .segment_terms import Terms
from .sorted_columns import SortedColumns
from .working_columns import WorkingColumns

Result = TypeVar("Result")


class Strip(Protocol):
    """Some columns of X in a given order, on the backend: b features for labels of all kinds.

    Runs of columns start..stop are worked on for p permutations of the labels at once.
    """

    @property
    def width(self) -> int:
        """How many columns there are."""

    def cuts(self, permutations: int, size: int) -> list[tuple[int, int]]:
        """(start, stop) of runs of columns, of about ``size`` values and sums each."""

    def label_sums(self, labels: Labels, start: int, stop: int, *, relative: bool = False) -> Array:
        """Sums of x over each class of each permutation, in some columns: (K, b, p), float64.

        Exact where values are integers and sums are less than 2^53.

        Parameters
        ----------
        labels : Labels
        start, stop : int
        relative : bool
            Of x less its shift, a value of the column, so that an offset of the column does not
            cancel in differences of the sums. The shift is 0 for sparse columns without need of it.
        """

    def label_moments(self, labels: Labels, start: int, stop: int) -> tuple[Array, Array, Array]:
        """Relative sums, sums of squares about the class means, and the shift of each column.

        Two arrays of shape (K, b, p), and one of shape (b,).
        """

    def spread(self, start: int, stop: int, power: int) -> Array:
        """Sums over all samples of |x - shift|, or of its squares for a power of 2: (b,)."""

    def map_label_medians(
        self,
        task: Callable[[SortedColumns | LabelledColumns], tuple[Array, ...]],
        results: int,
        labels: Labels,
        start: int,
        stop: int,
        ctx: Context,
    ) -> list[Array]:
        """``task`` of the columns, sorted within each class of each permutation: arrays (b, p).

        A column is sorted once for all permutations. Where all class medians are known to be zero
        the task is not called, and its results are zero.

        Parameters
        ----------
        task : callable
            Gives ``results`` arrays with a number for each column of its own.
        results : int
        labels : Labels
        start, stop : int
        ctx : Context
        """


class Block(Protocol):
    """X (n x m) as solvers and statistics see it: all loops over its values are in here.

    Methods that add do so in place. Sums run over a fixed grid in a fixed order, so that on the
    host their bits depend on the shape of X alone. On CUDA the sums of sparse data are atomic, and
    only exact sums have fixed bits.
    """

    @property
    def backend(self) -> Backend:
        """Where the work is done."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""

    @property
    def has_implicit_zeros(self) -> bool:
        """Whether values that are not stored are zero, so that raw sums are the cheap ones."""

    @property
    def reader(self) -> Reader | None:
        """What the values are read as; None as they are."""

    def read_as(self, reader: Reader) -> Block:
        """The block with its values read by ``reader``."""

    def rows(self, start: int, stop: int, ctx: Context) -> Block:
        """The rows start..stop; without a copy of dense and CSR data."""

    def check_finite(self, squares: bool, ctx: Context) -> None:
        """Raise a ValueError that names the feature and row of the first bad value.

        Bad is what is not finite, what the reader refuses and, if ``squares``, what is too large
        to be squared.
        """

    def holds_integers(self, ctx: Context) -> bool:
        """Whether all values are integers."""

    def narrowed(self, also: Array | None = None) -> tuple[Array, Block] | None:
        """The columns whose sums this block changes, and the block of these alone.

        The columns are ascending, and ``also`` are among them. None where they are not few.
        """

    def add_sums(self, samples: Samples, into: RawSums, ctx: Context) -> None:
        """Add weighted sums of x, and of x^2 where these are kept, of each class.

        Squares of each feature are divided by the exposure of the row.
        """

    def add_centred(self, samples: Samples, into: CentredSums, ctx: Context) -> None:
        """Add weights, sums, and sums of squares about the mean, of each class."""

    def centred_moments(
        self, samples: Samples, columns: Array, ctx: Context
    ) -> tuple[Array, Array]:
        """Sums, and sums of squares about the mean, of each class in some columns: two (K, d)."""

    def add_scatter(self, samples: Samples, into: ScatterSums, ctx: Context) -> None:
        """Add weights, sums and scatter matrices of each class."""

    def add_higher_moments(self, samples: Samples, into: ScatterSums, ctx: Context) -> None:
        """Add third and fourth moments about the class means, which ``into`` has already."""

    def zero_center_loss(self, samples: Samples, ctx: Context) -> Array:
        """Sums of s |x| / W_c, (m,), of the columns that `map_sorted_columns` may leave out.

        The l1 loss of centers at zero. What it holds for other columns has no meaning.
        """

    def map_sorted_columns(
        self, task: Callable[[SortedColumns], Result], samples: Samples, ctx: Context
    ) -> Iterator[tuple[Any, Result]]:
        """(columns, ``task`` of these columns sorted within each class).

        Columns are a slice or an array of numbers. Columns whose medians all are zero may be left
        out. Ranges of columns are worked on side by side, in halves where memory runs out.
        """

    def strips(self, columns: Array, ctx: Context) -> Iterator[tuple[slice, Strip]]:
        """The columns in the given order, as many at a time as memory allows: (part, these).

        Parameters
        ----------
        columns : array of integers of shape (d,)
            In any order, without duplicates.
        ctx : Context
        """

    def product(
        self,
        columns: Array,
        shift: Array,
        coef: Array,
        ctx: Context,
        *,
        size: Array | None = None,
    ) -> Array:
        """``(X[:, columns] - shift) @ coef``: float64, (n, q).

        Parameters
        ----------
        columns : array of shape (d,)
            Ascending.
        shift : array of shape (d,)
        coef : array of shape (d, q)
        ctx : Context
        size : array of shape (d,), not negative, optional
            If given, the result has one more column: the sum of the absolute values of what was
            summed, with ``size`` in place of the coefficients, for a bound on the rounding.
        """

    def products(
        self,
        parts: list[tuple[Array, Array, Array]],
        ctx: Context,
        *,
        sizes: list[Array] | None = None,
    ) -> list[Array]:
        """The `product` for each (columns, shift, coef), and size if given: to the bit on the host.

        Sparse data are read once for as many as the budget allows, and once more for the sizes.
        """

    def product_and_bound(
        self, columns: Array, shift: Array, coef: Array, size: Array, ctx: Context
    ) -> tuple[Array, Array]:
        """The `product`, and what the sums of ``|x - shift| size`` do not exceed, at little cost.

        The bounds have the shape (n,), or none if one number bounds all rows.
        """

    def add_products(self, columns: Array, coef: Array, out: Array, ctx: Context) -> None:
        """Add ``X[:, columns] @ coef``, of a few columns, in place.

        Parameters
        ----------
        columns : array of shape (d,)
            Ascending.
        coef : array of shape (d, r, S)
        out : array of shape (r, S, n), float64
        ctx : Context
        """

    def working_columns(
        self, columns: Array, shift: Array, scale: Array, rows: np.ndarray | None, ctx: Context
    ) -> WorkingColumns:
        """``(X[rows, columns] - shift) / scale`` in memory; sparse data stay sparse.

        Parameters
        ----------
        columns : array of shape (d,)
            Ascending.
        shift, scale : arrays of shape (d,)
        rows : ndarray of shape (l,), or None for all
        ctx : Context
        """

    def padded_rows(
        self, rows: Array, columns: Array, ctx: Context, *, filled: bool = False
    ) -> Iterator[tuple[Array, Array | None]]:
        """A few rows in their order, some at a time: (values, positions).

        Parameters
        ----------
        rows : array of shape (r,)
        columns : array of shape (d,)
            Ascending.
        ctx : Context
        filled : bool
            Whether each row is wanted with all d values, implicit zeros among them.

        Yields
        ------
        values : array of shape (b, w), float64
        positions : array of shape (b, w), or None
            The position of each value among ``columns``; a place that no value takes holds the
            value 0 and a position of some column. None where each row has all d values in order.
        """

    def distance_scores(
        self,
        columns: Array,
        distance: Callable[..., Array],
        params: tuple[Array, ...],
        scale: Array | None,
        ctx: Context,
    ) -> Array:
        """Minus the sum over the columns of ``distance(x, *params of class c) / scale``: (n, K).

        For two classes (n, 1), the score of class 1 less that of class 0: the distances are
        subtracted feature by feature, before they are summed.

        Parameters
        ----------
        columns : array of shape (d,)
            Ascending.
        distance : callable, elementwise
        params : tuple of arrays of shape (K, d)
        scale : array of shape (d,), or None
        ctx : Context
        """

    def segment_sums(self, columns: Array, cuts: list[int], terms: Terms, ctx: Context) -> Array:
        """Sums of terms over segments of features, of each row: float64, (r, S, n).

        Parameters
        ----------
        columns : array of shape (d,)
            The features of ``terms``, in any order.
        cuts : list of S + 1 ints
            Where the segments begin among them, ascending from 0 to d.
        terms : Terms
        ctx : Context
        """
