"""What users give, as solvers read it: data, exposures, and parameters of several models."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any, TypeVar

from ..arrays.backend import resolve_backend
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.convert import as_block
from ..blocks.samples import Samples, make_samples, raise_without_weight
from ..reductions.products import product

Result = TypeVar("Result")


# Samples, for each class and feature. Less counts as this, as in scikit-learn: alpha = 0 would
# give logarithms of zero. Beyond the most, products of smoothed sums overflow.
_LEAST_ALPHA, _MOST_ALPHA = 1e-10, 1e100
# Of the sum of priors, which are 1: what float32 may leave.
_PRIOR_SUM_ERROR = 1e-5
_ACCEPTED = {
    "priors": "'uniform', 'empirical' or K numbers",
    "class_prior": "None or K numbers",
}


# --- from arrays and class codes to a solution: the body that the public functions share -------


def solve_from_data(
    solve: Callable[[Block, Samples, Context], Result],
    X: Any,
    y: Any,
    n_classes: int | None,
    sample_weight: Any,
    device: str | None,
    memory_budget: int | str | None,
) -> Result:
    """``solve(block, samples, context)`` of labelled data, in chunks that fit into memory.

    The parameters are those of the public functions, as `l2_centers`.
    """

    def task(ctx: Context) -> Result:
        block = as_block(X, ctx.backend)
        n = block.shape[0]
        samples = make_samples(y, n, ctx.backend, n_classes=n_classes, sample_weight=sample_weight)
        raise_without_weight(samples.count)
        return solve(block, samples, ctx)

    return run_with_oom_retry(task, resolve_backend(device, X), memory_budget)


# --- exposures of rows: totals that are read off X, and given ones, checked against it ---------


def row_totals(block: Block, ctx: Context) -> Array:
    """The sum of each row over all features: (n,)."""
    backend, m = block.backend, block.shape[1]
    ones = backend.zeros((m, 1)) + 1.0
    return product(block, backend.arange(m), backend.zeros(m), ones, ctx)[:, 0]


def exposed_samples(
    block: Block, samples: Samples, kind: str, given: Any, ctx: Context, *, squares: bool
) -> Samples:
    """The samples with their exposures, where the sums of a model need them.

    ``kind`` is "total", "unit" or "given", as (n,) numbers of any library; ``squares`` says whether
    squares are divided by the exposures.

    Raises
    ------
    ValueError
        For exposures that are no such numbers, and for a row of counts without exposure.
    """
    if kind == "given":
        samples, xp = samples.with_exposure(given), block.backend.xp
        if samples.exposure is not None:
            exposure, weights = block.backend.asarray(samples.exposure), samples.backend_weights
            if weights is not None:  # what is left out needs none
                exposure = xp.where(weights > 0, exposure, xp.ones_like(exposure))
            require_exposure(block, exposure, ctx)
        return samples
    if kind == "unit" or not squares:
        return samples
    totals = row_totals(block, ctx)
    if not bool(block.backend.xp.all(block.backend.xp.isfinite(totals))):
        block.check_finite(False, ctx)
    return samples.with_exposure(totals)


def require_exposure(block: Block, exposure: Array, ctx: Context) -> None:
    """Raise a ValueError for a row that has counts, but no ``exposure`` (n,)."""
    xp = block.backend.xp
    if not bool(xp.any(exposure == 0)):
        return
    bad = xp.nonzero((exposure == 0) & (row_totals(block, ctx) > 0))[0]
    if bad.shape[0]:
        raise ValueError(
            f"the exposure of row {int(bad[0])} is 0, but X has counts there. Leave the row out, "
            "or give it an exposure above 0."
        )


# --- parameters that several models have: smoothing, scales and priors -------------------------


def as_number(value: Any) -> float:
    """A real number as a float; NaN for anything else, and for what float64 cannot hold."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def check_alpha(alpha: Any) -> float:
    """``alpha`` as a float, at least 1e-10; raises for anything but a number from 0 to 1e100."""
    value = as_number(alpha)
    if not 0 <= value <= _MOST_ALPHA:
        raise ValueError(
            f"alpha={alpha!r} is not valid: use one number from 0 to {_MOST_ALPHA:g}, the same for "
            "every feature."
        )
    return max(value, _LEAST_ALPHA)


def check_scale(scale: str | None) -> None:
    """Raise a ValueError for an unknown scale."""
    if scale is not None and (not isinstance(scale, str) or scale not in ("std", "pooled")):
        raise ValueError(f"scale={scale!r} is not valid: use None, 'std' or 'pooled'.")


def log_priors(priors: object, weight: tuple[float, ...]) -> list[float]:
    """Log priors of the classes.

    Parameters
    ----------
    priors : {"uniform", "empirical"} or sequence of K positive numbers that sum to 1
        Uniform priors change nothing and are dropped (zeros). "empirical" is W_c / sum W.
    weight : tuple of K floats
        A class without weight has the prior 0, and given ones of the others are divided by their
        sum.

    Raises
    ------
    ValueError
        For anything else.
    """
    check_priors(priors)
    if isinstance(priors, str) and priors == "empirical":
        return [_log(w / sum(weight)) for w in weight]
    values = [] if isinstance(priors, str) else _given_priors(priors, len(weight), "priors")
    if len(set(values)) < 2:
        return [_log(w > 0) for w in weight]
    return _of_those_with_weight(values, weight)


def _log(p: float) -> float:
    return math.log(p) if p > 0 else -math.inf


def _of_those_with_weight(values: list[float], weight: tuple[float, ...]) -> list[float]:
    pairs = list(zip(values, weight, strict=True))
    rest = 1.0 if all(weight) else sum(p for p, w in pairs if w > 0)
    return [_log(p / rest if w > 0 else 0.0) for p, w in pairs]


def _given_priors(priors: object, k: int, name: str) -> list[float]:
    """K priors that a user gave as a sequence; a ValueError that calls them ``name`` if wrong."""
    if isinstance(priors, dict | set | frozenset):
        raise ValueError(f"{name} must be in the order of classes_: a list or an array.")
    try:
        values = [float(p) for p in priors]  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}={priors!r} is not valid: use {_ACCEPTED[name]}.") from error
    if len(values) != k:
        raise ValueError(f"{name} has {len(values)} entries, but there are {k} classes.")
    if not all(0 < p <= 1 for p in values) or abs(sum(values) - 1) > _PRIOR_SUM_ERROR:
        raise ValueError(
            f"{name} must be positive and sum to 1, got {values}, whose sum is {sum(values):.10g}."
        )
    return values


def check_priors(priors: object) -> None:
    """Raise for a name that is none, before the classes are known."""
    if isinstance(priors, str) and priors not in ("uniform", "empirical"):
        raise ValueError(f"priors={priors!r} is not valid: use {_ACCEPTED['priors']}.")


def class_log_prior(fit_prior: bool, class_prior: object, weight: tuple[float, ...]) -> list[float]:
    """Log priors as naive Bayes has them: given, or W_c / sum W, or all equal."""
    if class_prior is not None:
        values = _given_priors(class_prior, len(weight), "class_prior")
        return _of_those_with_weight(values, weight)
    if not fit_prior:
        met = sum(w > 0 for w in weight)
        return [-math.log(met) if w > 0 else -math.inf for w in weight]
    return [_log(w / sum(weight)) for w in weight]
