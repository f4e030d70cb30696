"""Sparse Poisson naive Bayes with exposures: the separable problem for counts, for any K."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from .._docstrings import filled
from ..arrays.context import Context
from ..arrays.functions import EPS, array_namespace, index_mask, to_float
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..blocks.transforms import NotNegative
from ..blocks.validation import raise_overflow
from ..reductions.products import product
from ..statistics.class_sums import ExposedSums
from ..statistics.recipe import Recipe
from .centers import SparseCenters
from .decisions import LinearForm, PathTerms, linear_terms
from .divergence import log1p, phi
from .scaling import variance_divisor, zero_up_to
from .user_input import check_alpha, exposed_samples, row_totals, solve_from_data

SCALES = (None, "dispersion")


@dataclass(frozen=True)
class ExposedDecision:
    """A decision that is linear in the features and in the exposure of the row.

    The scores are ``x[columns] @ coef + e * rate + offset``; q is 1 for two classes (class 1 less
    class 0), else K.
    """

    columns: Array  # features of X, ascending: (d,)
    coef: Array  # (d, q)
    rate: Array  # what each feature adds for a unit of exposure: (q, d)
    offset: Array  # (q,)
    # Gives the exposures of the rows of a block: (n,).
    exposure: Callable[[Block, Context], Array] | None = None

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> Array:
        """Scores of the rows: see `Decision`."""
        assert self.exposure is not None
        exposure, zeros = self.exposure(block, ctx), block.backend.zeros(self.columns.shape[0])
        found = product(block, self.columns, zeros, self.coef, ctx)
        rate = block.backend.xp.sum(self.rate, axis=1)
        return found + exposure[:, None] * rate + self.offset


@dataclass(frozen=True)
class PoissonCenters(SparseCenters):
    """Sparse Poisson naive Bayes: centers are rates, counts for each unit of exposure.

    Attributes
    ----------
    total : array of shape (K, m), float64
        Class sums of counts.
    exposure : tuple of K floats
        E_c: the weighted sum of the exposures of each class.
    kind : {"total", "unit", "given"}
        What the exposure of a row is.
    alpha : float
        Smoothing: events that are added to each class where as many are expected.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        **SparseCenters.ARRAYS,
        "total": ("class", "candidate"),
    }

    total: Array
    exposure: tuple[float, ...]
    kind: str
    alpha: float

    @property
    def reads_all_features(self) -> bool:
        return self.kind == "total"

    def _ratios(self, columns: Array | None) -> tuple[Array, Array, Array]:
        """(tied, z, log r) of some columns: shapes (d,), (K, d), (K, d)."""
        xp = self.backend.xp
        total = self.total if columns is None else xp.take(self.total, columns, axis=1)
        exposure = self.backend.asarray(list(self.exposure))[:, None]
        tied, expected, z = _expected_counts(total, exposure, self.alpha)
        # 1 + z has lost the digits of rare events.
        rare = z < -0.5
        logs = xp.log(total + self.alpha) - xp.log(expected)
        return tied, z, xp.where(rare, logs, log1p(xp.where(rare, xp.zeros_like(z), z)))

    def centers_at(self, columns: Array) -> tuple[Array, Array]:
        tied, _, logs = self._ratios(columns)
        return tied * self.backend.xp.exp(logs), tied

    def decision(self, support: Array, log_prior: list[float]) -> ExposedDecision:
        """The decision with some features free, relative to the tied rates for K > 2.

        ``score_c = log pi_c + sum_i [x_i log r_ci - e t_i z_ci] / D_i``.
        """
        xp, scale = self.backend.xp, self.scale_at(support)
        tied, z, logs = self._ratios(support)
        rate = -tied * z
        if scale is not None:
            rate, logs = rate / scale, logs / scale
        if len(log_prior) == 2:
            rate, logs = rate[1:, :] - rate[:1, :], logs[1:, :] - logs[:1, :]
            log_prior = [log_prior[1] - log_prior[0]]
        offset = self.backend.asarray(log_prior)
        return ExposedDecision(support, xp.permute_dims(logs, (1, 0)), rate, offset)

    def likelihood_form(self, support: Array) -> ExposedDecision:
        """The log-likelihood in each class over all features that were seen, tied or free.

        ``sum_i [x_i log rate_ci - e rate_ci] / D_i``, without what the classes share.
        """
        xp, scale = self.backend.xp, self.scale
        tied, z, logs = self._ratios(None)
        free, zero = index_mask(support, tied.shape[0]), xp.zeros_like(z)
        seen = tied > 0
        rate = -tied * (1 + xp.where(free, z, zero))
        logs = xp.log(xp.where(seen, tied, xp.ones_like(tied))) + xp.where(free, logs, zero)
        logs = xp.where(seen, logs, zero)
        if scale is not None:
            rate, logs = rate / scale, logs / scale
        every, zeros = self.backend.arange(rate.shape[1]), xp.zeros_like(rate[:, 0])
        return ExposedDecision(every, xp.permute_dims(logs, (1, 0)), rate, zeros)

    def path_terms(
        self, ranking: Array, log_prior: list[float], block: Block, ctx: Context
    ) -> PathTerms:
        form, zeros = self.decision(ranking, log_prior), self.backend.zeros(ranking.shape[0])
        of_unit = LinearForm(zeros, form.coef, form.offset, form.rate)
        terms = linear_terms(of_unit, ranking, log_prior)
        if self.kind == "unit":
            return terms
        return terms._replace(base=None, rate=terms.base, exposure=row_totals)


def _expected_counts(total: Array, exposure: Array, alpha: float) -> tuple[Array, Array, Array]:
    """(tied rate, smoothed expected count, z): z + 1 is the ratio of the rate of a class to tied.

    From class sums f_c and exposures E_c, (K, ...): ``t = F / E, expected_c = t E_c + alpha,
    z_c = (f_c E - F E_c) / E / expected_c``. z is exactly 0 where the rates of integer counts are
    equal.
    """
    xp = array_namespace(total)
    counts, whole = xp.sum(total, axis=0), xp.sum(exposure, axis=0)
    whole = xp.where(whole > 0, whole, xp.ones_like(whole))
    tied = counts / whole
    expected = tied * exposure + alpha
    if alpha == 0:  # nothing is counted where nothing is expected
        expected = xp.where(expected > 0, expected, xp.ones_like(expected))
    return tied, expected, (total * whole - counts * exposure) / whole / expected


def poisson_gain(total: Array, exposure: Array, alpha: float, n: int = 0) -> Array:
    """How much the log-likelihood grows if the rates of a feature may differ between classes.

    ``sum_c expected_c phi(z_c)``, with phi(z) = (1 + z) log(1 + z) - z; up to F (n eps)^2 it is the
    rounding of sums of n samples, and 0.
    """
    xp = array_namespace(total)
    _, expected, z = _expected_counts(total, exposure, alpha)
    gain = xp.sum(expected * phi(z), axis=0)
    return zero_up_to(xp.sum(total, axis=0) * (n * EPS) ** 2, gain)


def poisson_ratio(sums: ExposedSums, ctx: Context) -> Array:
    """The gain without smoothing or dispersion, half of a likelihood-ratio statistic: (m,)."""
    backend, n, (k, m) = sums.backend, sum(sums.count), sums.shape
    exposure = backend.asarray(sums.class_exposure(ctx))[:, None]

    def gain(part: slice) -> Array:
        return poisson_gain(sums.total[:, part], exposure, 0.0, n)

    return backend.xp.concat(ctx.map_columns(gain, m, k))


def poisson_dispersion(total: Array, exposure: Array, square: Array, divisor: float) -> Array:
    """Pearson's dispersion of features within the classes, at least 1: shape (b,).

    ``D = max(1, (1 / (W - K)) sum_c [E_c Q_c / f_c - f_c])``, where Q_c is the sum of x^2 divided
    by the exposure; a class without counts adds nothing.
    """
    found = pearson_excess(total, exposure, square) / divisor
    xp = array_namespace(found)
    return xp.maximum(found, xp.ones_like(found))


def pearson_excess(total: Array, exposure: Array, square: Array) -> Array:
    """``sum_c [E_c Q_c / f_c - f_c]`` of `poisson_dispersion`: (b,)."""
    xp = array_namespace(total)
    some = total > 0
    ratio = exposure * square / xp.where(some, total, xp.ones_like(total))
    return xp.sum(xp.where(some, ratio - total, xp.zeros_like(total)), axis=0)


def dispersion_divisor(
    weight: list[float], count: list[int], name: str = "scale='dispersion'"
) -> float:
    """W - K, or W where the weights are no numbers of repetitions; ``name`` is what needs it.

    Raises
    ------
    ValueError
        Where each class has one sample.
    """
    if max(count) < 2:
        raise ValueError(
            f"{name} needs a class of two samples at least: each of the {len(weight)} classes has "
            "one sample of positive weight."
        )
    return variance_divisor(weight, len(weight), name)


def check_poisson_scale(scale: Any) -> None:
    """Raise a ValueError for an unknown scale."""
    if not (scale is None or isinstance(scale, str)) or scale not in SCALES:
        raise ValueError(f"scale={scale!r} is not valid: use None or 'dispersion'.")


def solve_poisson(
    sums: ExposedSums, ctx: Context, alpha: float, *, scaled: bool = False
) -> PoissonCenters:
    """Sparse Poisson naive Bayes from exposed sums.

    The loss is the negative log-likelihood of the counts and of their prior, without the terms
    that no rate changes: ``sum_i sum_c [E_c t r_c - f_c log(t r_c) + alpha (r_c - log r_c)] / D``.
    Where it is ``scaled``, the gain is divided by the dispersion, for which the sums need squares.
    """
    backend, xp, weight = sums.backend, sums.backend.xp, sums.class_weight
    k, m = sums.shape
    n, gain, scale = sum(sums.count), backend.zeros(m), None
    of_classes = sums.class_exposure(ctx)
    whole = sum(of_classes) or 1.0
    exposure = backend.asarray(of_classes)[:, None]
    if scaled:
        scale, divisor = backend.zeros(m), dispersion_divisor(weight, sums.count)

    def fill(part: slice) -> Array:
        total = sums.total[:, part]
        found = poisson_gain(total, exposure, alpha, n)
        counts = xp.sum(total, axis=0)
        rate = xp.where(counts > 0, counts / whole, xp.ones_like(counts))
        loss = counts + k * alpha - counts * xp.log(rate) - found
        if scale is not None:
            assert sums.square is not None
            scale[part] = poisson_dispersion(total, exposure, sums.square[:, part], divisor)
            found, loss = found / scale[part], loss / scale[part]
        gain[part] = found
        return xp.sum(loss, keepdims=True)

    loss = to_float(ctx.sum_columns(fill, m, k)[0])
    if not math.isfinite(loss):
        raise_overflow(xp.isfinite(gain))
    kind = sums.recipe.exposure
    assert kind is not None
    exposures = tuple(of_classes)
    return PoissonCenters(
        backend, tuple(weight), gain, loss, scale, sums.total, exposures, kind, alpha
    )


@filled
def poisson_nb(
    X: Any,
    y: Any,
    *,
    alpha: float = 1.0,
    exposure: Any = "total",
    scale: str | None = None,
    n_classes: int | None = None,
    sample_weight: Any = None,
    device: str | None = None,
    memory_budget: int | str | None = None,
) -> PoissonCenters:
    """Sparse Poisson naive Bayes of labelled counts, for every k at once.

    Maximises, for every k, the likelihood of counts that are Poisson with the mean of exposure
    times rate, where at most k features may have rates that differ between classes. The ratio of
    the rate of a class to the rate of all has a prior of ``alpha`` events where as many are
    expected (Witten [1]_), so that a feature of equal rates has no gain at all.

    Parameters
    ----------
    X : array or CSR/CSC matrix of shape (n, m)
        Counts, of any library and any real type. Left as it is.
    exposure : {"total", None} or array of shape (n,), default="total"
        What the counts of each row are counted over: their sum, 1, or what is given.
    scale : {None, "dispersion"}, default=None
        Divide the gain of each feature by its dispersion: counts that vary more than Poisson's.

    Returns
    -------
    PoissonCenters
        ``gain`` ranks the features: see `select`.

    Raises
    ------
    ValueError
        For NaN, infinity or negative values (named by feature and row), a row of counts without
        exposure, a class without weight.

    References
    ----------
    .. [1] D. Witten, "Classification and clustering of sequencing data using a Poisson model",
       Annals of Applied Statistics 5(4), 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters.solvers import poisson_nb
    >>> X = np.asarray([[3, 2, 0], [1, 2, 0]])
    >>> poisson_nb(X, [0, 1], exposure=[2, 2]).gain.round(6)
    array([0.339798, 0.      , 0.      ])
    """
    alpha = check_alpha(alpha)
    check_poisson_scale(scale)
    given = None if exposure is None or isinstance(exposure, str) else exposure
    if isinstance(exposure, str) and exposure != "total":
        raise ValueError(f"exposure={exposure!r} is not valid: use 'total', None or an array.")
    kind = "given" if given is not None else "unit" if exposure is None else "total"

    def solve(block: Block, samples: Samples, ctx: Context) -> PoissonCenters:
        block = replace(block, transform=NotNegative("poisson_nb"))
        squares = scale is not None
        samples = exposed_samples(block, samples, kind, given, ctx, squares=squares)
        recipe = Recipe("exposed sums", per_feature=squares, exposure=kind)
        sums = recipe.of(block, samples, ctx)
        return solve_poisson(sums, ctx, alpha, scaled=squares)

    return solve_from_data(solve, X, y, n_classes, sample_weight, device, memory_budget)
