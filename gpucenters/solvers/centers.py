"""Centers: what every model is once solved; sparse centers, where the problem is separable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..arrays.devices import Place
from ..arrays.ops import to_float
from ..arrays.typing import Array
from .selection import Selection, select


@dataclass(frozen=True)
class Centers:
    """What there is to know of the data, ready for any number of features.

    Attributes
    ----------
    place : Place
    weight : tuple of K floats
        W_c.
    """

    place: Place
    weight: tuple[float, ...]

    def select(self, k: Any, near: Selection | None = None) -> Selection:
        """The features for this k; ``near``, those for another k, is where a search may start."""
        raise NotImplementedError

    def scores(self, selection: Selection) -> Array:
        """What makes a feature worth selecting: (m,), float64."""
        raise NotImplementedError

    def at(self, columns: Array) -> tuple[Array, Array]:
        """(free, tied) of the features of a support, of shapes (K, d) and (d,)."""
        raise NotImplementedError

    def objective(self, support: Array) -> float:
        """The minimum of the objective when the features of ``support`` are free."""
        raise NotImplementedError

    def to(self, place: Place) -> Any:
        """These centers at another place."""
        raise NotImplementedError


@dataclass(frozen=True)
class SparseCenters(Centers):
    """The solution of the separable problem for every k at once (Prop. 1 and 3 of the paper).

    Minimise the sum of L_ci(theta_ci) over classes c and features i, where at most k features may
    have centers that differ between classes. The optimum takes ``free`` on the k features of
    largest ``gain``, and ``tied`` elsewhere.

    Attributes
    ----------
    place : Place
    weight : tuple of K floats
        W_c.
    gain : array of shape (m,), float64
        What freeing a feature saves, in scaled units. Not negative.
    loss : float
        The objective with all features free.
    scale : array of shape (m,), float64, or None
        What the features are divided by.
    """

    gain: Array
    loss: float
    scale: Array | None

    def select(self, k: Any, near: Selection | None = None) -> Selection:
        return select(self, k)

    def scores(self, selection: Selection) -> Array:
        return self.gain

    def at(self, columns: Array | None = None) -> tuple[Array, Array]:
        """(free, tied) of some columns, of shapes (K, d) and (d,), in the units of X."""
        raise NotImplementedError

    @property
    def free(self) -> Array:
        """The best center of each class on its own: (K, m), float64, in the units of X."""
        return self.at()[0]

    @property
    def tied(self) -> Array:
        """The best center that all classes share: (m,), float64, in the units of X."""
        return self.at()[1]

    def objective(self, support: Array) -> float:
        xp = self.place.xp
        outside = xp.sum(self.gain) - xp.sum(xp.take(self.gain, support))
        if support.shape[0] == self.gain.shape[0]:
            return self.loss
        return self.loss + max(to_float(outside), 0.0)
