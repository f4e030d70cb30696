"""Centers: the solution of a model for every k; sparse centers, where the problem is separable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, NoReturn, Self

from ..arrays.backend import Backend, restore_or_host
from ..arrays.context import Context
from ..arrays.functions import index_mask, to_float, to_host
from ..arrays.typing import Array
from ..blocks import Block
from .close_scores import PairForm
from .decisions import Decision, LinearDecision, LinearForm, PathTerms, linear_terms
from .selection import Selection, resolve_k, select


@dataclass(frozen=True)
class Centers:
    """A model solved for the data, from which the solution for each k is read.

    Attributes
    ----------
    backend : Backend
    class_weight : tuple of K floats
        W_c.
    """

    #: The arrays, which move to another backend, and their axes: over the classes, the features of
    #: X, or the candidates among which a support is chosen (features of X, or transformed ones).
    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {}
    #: Whether the solution for every k is read from it, or it is one solution for all.
    for_every_k: ClassVar[bool] = True
    #: Whether the features for each k are among those for every larger k.
    nested: ClassVar[bool] = True
    #: Whether candidates are mixtures of features, so that each score reads all features of X.
    mixes_features: ClassVar[bool] = False

    backend: Backend
    class_weight: tuple[float, ...]

    @property
    def reads_all_features(self) -> bool:
        """Whether scores need the values of X outside of the support too."""
        return self.mixes_features

    def select(self, k: Any, ctx: Context | None = None) -> Selection:
        """The features for this k: an int, float or "all"."""
        raise NotImplementedError

    def select_each(self, ks: list[int], ctx: Context) -> Iterator[Selection]:
        """The features for each of several k, ascending."""
        return (self.select(k, ctx) for k in ks)

    def feature_scores(self, selection: Selection, ctx: Context | None = None) -> Array:
        """The score by which features are selected: (m,), float64."""
        raise NotImplementedError

    def centers_at(self, columns: Array) -> tuple[Array, Array]:
        """(free, tied) of some features, of shapes (K, d) and (d,), in the units of X.

        Of a model that is not separable: of those of a support.
        """
        raise NotImplementedError

    def objective(self, support: Array, ctx: Context | None = None) -> float:
        """The minimum of the objective when the features of ``support`` are free."""
        raise NotImplementedError

    def decision(self, support: Array, log_prior: list[float]) -> Decision:
        """The decision with the features of ``support`` free: here that of a linear form."""
        form, pairs = self.linear_form(support, log_prior), partial(self.pair_forms, support)
        return LinearDecision(support, form.summed(), log_prior, pairs)

    def linear_form(self, columns: Array, log_prior: list[float]) -> LinearForm:
        """The decision with the features of ``columns`` free, where it is linear.

        Of a separable model, whose form has a base for each, in any order.
        """
        raise NotImplementedError

    def pair_forms(self, support: Array) -> Callable[[int, int], PairForm]:
        """The comparison of two classes in twice the precision, for squared distances."""
        raise NotImplementedError

    def restricted(self, columns: Array, ctx: Context | None = None) -> Self:
        """These centers with some features alone, numbered anew; the others are tied for good."""
        xp, changes = self.backend.xp, {}
        for name, axes in self.ARRAYS.items():
            value = getattr(self, name)
            if axes[-1] == "candidate" and value is not None:
                changes[name] = xp.take(value, columns, axis=len(axes) - 1)
        return replace(self, **changes)

    def located(self, support: Array) -> tuple[Centers, Array]:
        """The centers that hold the features of a support, and their positions there."""
        return self, support

    def to(self, backend: Backend) -> Self:
        """These centers on another backend."""
        return replace(self, backend=backend, **self._moved(backend.move))

    def _moved(self, move: Callable[[Array], Array]) -> dict[str, Any]:
        """The fields that are on the device, elsewhere."""
        values = {name: getattr(self, name) for name in self.ARRAYS}
        return {name: None if a is None else move(a) for name, a in values.items()}

    def __getstate__(self) -> dict[str, Any]:
        """Host arrays, and the name of the device: no module."""
        state = {f.name: getattr(self, f.name) for f in fields(self)}
        return state | self._moved(to_host) | {"backend": self.backend.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """On the device that the pickle names, or on the host where CUDA cannot be used."""
        backend = restore_or_host(state["backend"])
        self.__dict__.update(state, backend=backend)
        with backend.current():
            self.__dict__.update(self._moved(backend.move))


@dataclass(frozen=True)
class SparseCenters(Centers):
    """The solution of the separable problem for every k at once: Propositions 1 and 3 of [C].

    Minimise the sum of L_ci(theta_ci) over classes c and features i, where at most k features may
    have centers that differ between classes. The optimum takes ``free`` on the k features of
    largest ``gain``, and ``tied`` elsewhere.

    Attributes
    ----------
    backend : Backend
    class_weight : tuple of K floats
        W_c.
    gain : array of shape (m,), float64
        What freeing a feature saves, in scaled units. Not negative.
    loss : float
        The objective with all features free.
    scale : array of shape (m,), float64, or None
        What the features are divided by.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {"gain": ("candidate",), "scale": ("candidate",)}

    gain: Array
    loss: float
    scale: Array | None

    def select(self, k: Any, ctx: Context | None = None) -> Selection:
        return select(self, k, ctx)

    def feature_scores(self, selection: Selection, ctx: Context | None = None) -> Array:
        return self.gain

    def restricted(self, columns: Array, ctx: Context | None = None) -> Self:
        return replace(super().restricted(columns, ctx), loss=self.objective(columns, ctx))

    def scale_at(self, columns: Array) -> Array | None:
        """The scale of some columns, (d,), or None."""
        return None if self.scale is None else self.backend.xp.take(self.scale, columns)

    @property
    def free(self) -> Array:
        """The best center of each class on its own: (K, m), float64, in the units of X."""
        return self.centers_at(self.backend.arange(self.gain.shape[0]))[0]

    @property
    def tied(self) -> Array:
        """The best center that all classes share: (m,), float64, in the units of X."""
        return self.centers_at(self.backend.arange(self.gain.shape[0]))[1]

    def objective(self, support: Array, ctx: Context | None = None) -> float:
        xp, m = self.backend.xp, self.gain.shape[0]
        # The sum of what is not selected: the difference of two sums would cancel.
        outside = xp.where(index_mask(support, m), xp.zeros_like(self.gain), self.gain)
        return self.loss + to_float(xp.sum(outside))

    def path_terms(
        self, ranking: Array, log_prior: list[float], block: Block, ctx: Context
    ) -> PathTerms:
        """What each feature of a ranking adds to the scores of the rows of a block."""
        return linear_terms(self.linear_form(ranking, log_prior), ranking, log_prior)


# --- centers of which only those of a support are kept: the same predictions from less ---------


@dataclass(frozen=True)
class SupportCenters(Centers):
    """Centers of the features of one support, all other features being tied.

    Attributes
    ----------
    selection : Selection
        The features that are kept.
    n_features : int
        How many features X has.
    kept : Centers
        Of these features alone, which it numbers 0..d-1.
    """

    selection: Selection
    n_features: int
    kept: Centers

    @property
    def scale(self) -> Array | None:
        """None where there is no scale."""
        if getattr(self.kept, "scale", None) is None:
            return None
        raise needs_full("scale_, which is of all features,")

    def select(self, k: Any, ctx: Context | None = None) -> Selection:
        support = self.selection.support
        count, kept = resolve_k(k, self.n_features), support.shape[0]
        if count == kept:
            return self.selection
        if not self.kept.nested:
            raise needs_full(f"k={k!r}: the best {count} features need not be among those kept. It")
        if count > kept:
            raise needs_full(f"k={k!r}, that is {count} features of which {kept} are kept,")
        found = self.kept.select(count, ctx)
        return replace(found, support=self.backend.xp.take(support, found.support))

    def select_each(self, ks: list[int], ctx: Context) -> NoReturn:
        raise needs_full("The path of predictions for several k")

    def located(self, support: Array) -> tuple[Centers, Array]:
        return self.kept, self.backend.xp.searchsorted(self.selection.support, support)

    def feature_scores(self, selection: Selection, ctx: Context | None = None) -> NoReturn:
        raise needs_full("scores_, which is of all features,")

    def log_theta(self, support: Array) -> NoReturn:
        """Not kept: that of all features."""
        raise needs_full("feature_log_prob_, which is of all features,")

    def likelihood_form(self, support: Array) -> NoReturn:
        """Not kept: that of all features."""
        raise needs_full("The joint log probability, which all features add to,")

    def centers_at(self, columns: Array) -> tuple[Array, Array]:
        centers, at = self.located(columns)
        return centers.centers_at(at)

    def objective(self, support: Array, ctx: Context | None = None) -> float:
        centers, at = self.located(support)
        return centers.objective(at, ctx)

    def decision(self, support: Array, log_prior: list[float]) -> Decision:
        centers, at = self.located(support)
        found: Any = centers.decision(at, log_prior)
        return found if centers.mixes_features else replace(found, columns=support)

    def to(self, backend: Backend) -> Self:
        return replace(super().to(backend), kept=self.kept.to(backend))

    def _moved(self, move: Callable[[Array], Array]) -> dict[str, Any]:
        return {"selection": self.selection.moved(move)}


def keep_support(centers: Centers, selection: Selection, n_features: int, ctx: Context) -> Centers:
    """The centers with what the features of a selection need, of the ``n_features`` of X.

    As they are if these are all features, or if there is one solution for all.
    """
    if selection.support.shape[0] == n_features or not centers.for_every_k:
        return centers
    held, columns = centers.located(selection.support)
    kept = held.restricted(columns, ctx)
    return SupportCenters(centers.backend, centers.class_weight, selection, n_features, kept)


def needs_full(what: str) -> ValueError:
    """The error for what a model that keeps its selected features alone cannot do."""
    return ValueError(
        f"{what} needs more than this model holds, which was saved with its selected features "
        "alone. Save it with full=True."
    )
