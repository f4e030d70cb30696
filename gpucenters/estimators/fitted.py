"""The fitted state of a model, and what other packages do with models beside their public methods.

No other package uses a private member of a model: `FittedModel` shows them a fitted one, and the
functions behind it check, fill and commit one. Both are of this package alone, so that the classes
of the users, whose methods are what scikit-learn's ``hasattr`` finds, need no further method.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from ..arrays.backend import Backend, restore_or_host
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.functions import to_host
from ..arrays.typing import Array
from ..blocks import Block
from ..solvers.centers import Centers, needs_full
from ..solvers.decisions import Decision
from ..solvers.selection import Selection
from ..statistics.base import Statistics


class learned(property):  # noqa: N801 (a decorator, like its base)
    """A property that is learned from data: where it cannot be had, an AttributeError says why.

    So ``hasattr`` answers, and tools that show all attributes pass over it.
    """

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The value."""
        try:
            return super().__get__(instance, owner)
        except AttributeError:  # NotFittedError among them
            raise
        except ValueError as error:
            raise AttributeError(str(error)) from error


@dataclass
class Fitted:
    """The fitted state of a model. The solution is formed once, when it is first asked for.

    Kept apart from the estimator, so that asking a model for predictions never changes it. The
    parameters that the solution depends on are those at the fit, whatever is set later.

    ``met`` are the codes of the classes that a stream has met, of which alone there are centers;
    None where it has met all.
    """

    backend: Backend
    centers: Centers | None
    params: dict[str, Any]
    statistics: Statistics | None = None
    selection: Selection | None = None
    met: tuple[int, ...] | None = None
    cache: dict[str, Any] = field(default_factory=dict)
    shared: bool = False

    def shared_with(self, **changes: Any) -> Self:
        """The state of a copy that shares the statistics, with some changes."""
        return replace(self, **{"statistics": self.share(), "cache": {}, "shared": True} | changes)

    def share(self) -> Statistics | None:
        """The statistics, for another model too: from now on neither adds to them in place."""
        self.shared = True
        return self.settled().statistics

    def needed_statistics(self, what: str) -> Statistics:
        """The statistics; raises where the model came from a file that does not hold them."""
        if self.statistics is None:
            raise needs_full(what)
        return self.statistics

    def __getstate__(self) -> dict[str, Any]:
        """On the host, without a module, and without what is formed when it is asked for."""
        state = {f.name: getattr(self.settled(), f.name) for f in fields(self)}
        selection = self.selection and self.selection.moved(to_host)
        return state | {"cache": {}, "selection": selection, "backend": self.backend.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """On the device that the pickle names, or on the host where CUDA cannot be used."""
        backend, selection = restore_or_host(state["backend"]), state["selection"]
        selection = selection and selection.moved(backend.move)
        self.__dict__.update(state, backend=backend, selection=selection)

    def settled(self) -> Self:
        """The same state, with the last batch in the arrays of the statistics."""
        if self.statistics is not None:
            self.statistics.settle()
        return self


class FittedModel:
    """A fitted model as other packages see it. Its solution is formed when it is first asked for.

    Parameters
    ----------
    model : Classifier
        Whose fitted state must be there, else this raises a NotFittedError.

    Attributes
    ----------
    state : Fitted
    """

    def __init__(self, model: Any) -> None:
        self._model, self.state = model, model._ready()

    @property
    def backend(self) -> Backend:
        """Where the model lives."""
        return self.state.backend

    @property
    def centers(self) -> Centers:
        """The solution for every k."""
        return self._model._centers()

    @property
    def selection(self) -> Selection:
        """The features that the parameters choose."""
        return self._model._selection()

    @property
    def per_score(self) -> float:
        """The factor of the scores in class probabilities."""
        return self._model._per_score

    def decision(self) -> Decision:
        """The decision for the support."""
        return self._model._decision()

    def run(self, task: Callable[[Context], Any]) -> Any:
        """``task(context)`` where the model lives."""
        return run_with_oom_retry(task, self.backend, self._model.memory_budget)

    def finite_rows(
        self, X: Any, method: str, task: Callable[[Block, Context], Array], overflow: str
    ) -> tuple[Array, Backend]:
        """``task`` of X as a block, checked to be finite, and the backend where outputs belong.

        ``overflow`` is the message where the values of X are finite and those of a row are not.
        """
        return self._model._finite_rows(X, method, task, overflow)

    def copy(self, **changes: Any) -> Any:
        """A copy of the model with these changes of its state, which shares the statistics."""
        new = copy.copy(self._model)
        new._fitted = self.state.shared_with(**changes)
        return new


def check_parameters(model: Any) -> None:
    """Raise for parameters that are wrong whatever the data are."""
    model._check_parameters()


def commit(model: Any, attributes: dict[str, Any], classes: np.ndarray, fitted: Fitted) -> None:
    """Set all fitted attributes of a model in one assignment, which no interrupt can divide."""
    of_data = ("feature_names_in_", "_reading")
    kept = {n: value for n, value in model.__dict__.items() if n not in of_data}
    new = {"classes_": read_only(classes), "_fitted": fitted}
    model.__dict__ = kept | attributes | new


def read_only(x: Any) -> Any:
    """``x``; of NumPy's a read-only view, since copies of a model share the array."""
    if isinstance(x, np.ndarray):
        x = x.view()
        x.flags.writeable = False
    return x


# Models that are functions of statistics.


def adopt(
    model: Any,
    statistics: Statistics,
    centers: Centers | None = None,
    selection: Selection | None = None,
) -> None:
    """Let statistics be those of a model; they say what its classes and features are.

    Without a solution it is formed when it is first asked for, and priors are not checked before.
    """
    attributes: dict[str, Any] = {"n_features_in_": statistics.shape[1]}
    if statistics.feature_names is not None:
        attributes["feature_names_in_"] = statistics.feature_names
    fitted = Fitted(statistics.backend, centers, model._params(), statistics, selection)
    commit(model, attributes, labels(statistics), fitted)


def adopt_and_solve(model: Any, statistics: Statistics) -> None:
    """Fit a model to statistics that become its own: ``fit_statistics`` without their copy."""
    model._fit_to_own(statistics)


def add_batch(model: Any, X: Any, y: Any, classes: Any, **metadata: Any) -> None:
    """Add a batch to the statistics of a model whose parameters are those of binary problems."""
    model._check_parameters()
    model._check_classes((1.0, 1.0))
    model._add_batch(X, y, model._known_classes(classes), **metadata)


def labels(statistics: Statistics) -> np.ndarray:
    """The labels of the classes of statistics, or their numbers."""
    known: Any = statistics.classes
    return np.arange(statistics.shape[0]) if known is None else known
