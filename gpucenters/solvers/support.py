"""Centers of which only those of a support are kept: the same predictions from less."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.typing import Array
from .centers import Centers
from .decisions import Decision, LinearForm
from .selection import Selection, resolve_k


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

    def decision(
        self, support: Array, log_prior: list[float], columns: Array | None = None
    ) -> Decision:
        centers, at = self.located(support)
        return centers.decision(at, log_prior, support)

    def linear_form(self, support: Array, log_prior: list[float]) -> LinearForm:
        centers, at = self.located(support)
        return centers.linear_form(at, log_prior)

    def to(self, backend: Backend) -> Self:
        selection, kept = self.selection.to(backend), self.kept.to(backend)
        return replace(self, backend=backend, selection=selection, kept=kept)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"selection": self.selection.on_host()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        with self.backend.current():
            self.__dict__["selection"] = self.selection.to(self.backend)


def keep_support(centers: Centers, selection: Selection, n_features: int, ctx: Context) -> Centers:
    """The centers with what the features of a selection need.

    As they are if these are all features, or if there is one solution for all.

    Parameters
    ----------
    centers : Centers
    selection : Selection
    n_features : int
        How many features X has.
    ctx : Context
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
