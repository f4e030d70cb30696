"""The scale of each feature: Section IV-A of Calafiore & Fracastoro, with the constant rule."""

from __future__ import annotations

from ..arrays.devices import Place
from ..arrays.grid import chunk_size, ranges
from ..arrays.threads import run
from ..arrays.typing import Array
from .moments import CentredMoments

_EPS = 2.0**-52

SCALES = (None, "std", "pooled")


def check_scale(scale: str | None) -> None:
    """Raise a ValueError for an unknown scale."""
    if not (scale is None or isinstance(scale, str)) or scale not in SCALES:
        raise ValueError(f"scale={scale!r} is not valid: use None, 'std' or 'pooled'.")


def feature_scale(moments: CentredMoments, scale: str) -> Array:
    """Standard deviation of each feature; 1 where a feature is constant up to rounding.

    Parameters
    ----------
    moments : CentredMoments
        With second moments per feature.
    scale : {"std", "pooled"}
        Over all samples (population), or pooled within classes with divisor sum W_c - K.

    Returns
    -------
    array of shape (m,), float64, positive

    Raises
    ------
    ValueError
        For "pooled" where sum W_c - K is not positive.
    """
    check_scale(scale)
    place, weight = moments.place, moments.weight
    whole, k = sum(weight), len(weight)
    if scale == "pooled" and whole - k <= 0:
        raise ValueError(
            f"scale='pooled' needs more weight than classes: the weights sum to {whole:g}, "
            f"and there are {k} classes."
        )
    m = moments.total.shape[1]
    sigma = place.zeros(m)

    def fill(cut: tuple[int, int]) -> None:
        part = slice(*cut)
        total, spread = moments.total[:, part], moments.spread[:, part]
        sigma[part] = _deviation(total, spread, weight, sum(moments.count), scale, place)

    for _ in run(fill, ranges(m, chunk_size(place)), place):
        pass
    return sigma


def _deviation(
    total: Array, spread: Array, weight: list[float], n: int, scale: str, place: Place
) -> Array:
    """Standard deviation of some features from their class sums and spreads."""
    xp = place.xp
    whole, k = sum(weight), len(weight)
    within = xp.sum(spread, axis=0)
    w = place.asarray(weight)[:, None]
    means = total / w
    if scale == "std":
        mean = means[0, :] + xp.sum(w * (means - means[0, :]), axis=0) / whole
        between = xp.sum(w * (means - mean) ** 2, axis=0)
        variance = (within + between) / whole
        size = xp.abs(mean)
    else:
        variance = within / (whole - k)
        size = xp.max(xp.abs(means), axis=0)
    # The bound that scikit-learn's StandardScaler has for a constant feature.
    constant = variance <= n * _EPS * variance + (n * _EPS * size) ** 2
    return xp.sqrt(xp.where(constant, xp.ones_like(variance), variance))
