"""The fitted state of a model: what it holds, and what it forms when it is first asked for.

No other package uses a private member of a model: `FittedModel` shows them a fitted one, and the
functions behind it check, fill and commit one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial, update_wrapper
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..arrays.backend import Backend, restore_or_host
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.functions import to_host
from ..arrays.namespace import array_namespace, to_numpy
from ..arrays.typing import Array
from ..blocks import Block
from ..solvers.centers import Centers, needs_full
from ..solvers.decisions import Decision
from ..solvers.selection import Selection, warn
from ..statistics.base import Statistics
from .validation import check_backend, check_X, output_backend


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
    """What a fitted model holds; `FittedModel` fills in the solution.

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

    def share(self) -> Statistics | None:
        """The statistics, for another model too: from now on neither adds to them in place."""
        self.shared = True
        return self.settled().statistics

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
    """A fitted model with its state, which forms the solution when it is first asked for.

    Parameters
    ----------
    model : Classifier
        Whose fitted state must be there, else this raises a NotFittedError.

    Attributes
    ----------
    state : Fitted
    """

    def __init__(self, model: Any) -> None:
        check_is_fitted(model)
        self._model, self.state = model, model._fitted.settled()

    @property
    def backend(self) -> Backend:
        """Where the model lives."""
        return self.state.backend

    def run(self, task: Callable[[Context], Any]) -> Any:
        """``task(context)`` where the model lives."""
        return run_with_oom_retry(task, self.backend, self._model.memory_budget)

    # --- the solution --------------------------------------------------------------------------

    @property
    def centers(self) -> Centers:
        """The solution for every k."""
        if self.state.centers is None:
            self.state.centers = self._solve()
        return self.state.centers

    def _solve(self) -> Centers:
        """The solution from statistics, of the classes that have come."""
        state, model, statistics = self.state, self._model, self.statistics("the solution")
        met = [c for c, count in enumerate(statistics.count) if count]
        missing = [repr(x) for c, x in enumerate(model.classes_.tolist()) if c not in met]
        if missing:
            name, unmet = type(model).__name__, ", ".join(missing[:5])
            unmet += f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            if len(met) < 2:
                raise NotFittedError(
                    f"this {name} has seen no sample of class {unmet} yet, and needs two classes: "
                    "call partial_fit with some first."
                )
            warn(
                f"this {name} has seen no sample of class {unmet} yet: until it does, the score of "
                "such a class is -inf."
            )
            statistics, state.met = statistics.of_classes(met), tuple(met)
        return self.run(lambda ctx: model._solve_from(statistics, state.params, ctx))

    def statistics(self, what: str) -> Statistics:
        """The statistics that the solution is of.

        Raises
        ------
        ValueError
            That ``what`` needs them, where the model came from a file that does not hold them.
        """
        if self.state.statistics is None:
            raise needs_full(what)
        return self.state.statistics

    def met_statistics(self, what: str) -> Any:
        """`statistics` of the classes that have centers."""
        statistics, met = self.statistics(what), self.state.met
        return statistics if met is None else statistics.of_classes(met)

    @property
    def selection(self) -> Selection:
        """The features that the parameters choose."""
        if self.state.selection is None:
            centers, k = self.centers, self.state.params["k"]
            self.state.selection = self.run(lambda ctx: centers.select(k, ctx))
        return self.state.selection

    def cached(self, name: str, make: Callable[[Context], Any]) -> Any:
        """``make(context)``, formed once for this fit."""
        if name not in self.state.cache:
            self.selection  # noqa: B018 (formed before the work that reads it)
            self.state.cache[name] = self.run(make)
        return self.state.cache[name]

    @property
    def support(self) -> np.ndarray:
        """The selected features, ascending, on the host."""
        return self.cached("support", lambda ctx: read_only(to_numpy(self.selection.support)))

    def located(self) -> tuple[Any, Array]:
        """The centers that hold the support, perhaps it alone, and its positions there."""
        return self.centers.located(self.selection.support)

    @property
    def class_weight(self) -> tuple[float, ...]:
        """Weights of all classes; 0 for those not met."""
        of_met, met = self.centers.class_weight, self.state.met
        if met is None:
            return of_met
        weight = dict(zip(met, of_met, strict=True))
        return tuple(weight.get(c, 0.0) for c in range(len(self._model.classes_)))

    @property
    def log_prior(self) -> list[float]:
        """Log priors of all classes; -inf for those not met."""
        return self._model._priors(self.state.params, self.class_weight)

    @property
    def log_prior_of_met(self) -> list[float]:
        """Log priors of the classes met, as a decision takes them."""
        return [p for p in self.log_prior if p > -math.inf]

    @property
    def per_score(self) -> float:
        """The factor of the scores in class probabilities."""
        return self._model._per_score

    def decision(self) -> Decision:
        """The decision for the support, formed outside of the work on X."""
        return self.cached("decision", lambda ctx: self._model._decision(self))

    def of_every_class(self, of_met: Array, of_others: Array) -> Array:
        """Rows of all K classes: those of the classes met, and one row for each other class."""
        met = self.state.met
        if met is None:
            return of_met
        xp = array_namespace(of_met)
        found = xp.concat([of_met, of_others[None, ...]], axis=0)
        index = np.full(len(self._model.classes_), len(met))
        index[list(met)] = np.arange(len(met))
        return xp.take(found, self.backend.asarray(index), axis=0)

    def decided_by_class(self, found: Array, of_others: float) -> Array:
        """`of_every_class` of rows of a decision, of which two classes have one."""
        if self.state.met is None:
            return found
        xp = array_namespace(found)
        found = xp.concat([-found / 2, found / 2]) if found.shape[0] == 1 else found
        return self.of_every_class(found, xp.full_like(found[0, ...], of_others))

    # --- predicting ----------------------------------------------------------------------------

    def scores(self, X: Any, method: str, *, relative: bool = False) -> tuple[Array, Backend]:
        """Scores of the rows of X where the model lives, and the backend where outputs belong."""
        score = partial(self.decision().scores, relative=relative)
        scores, backend = self.finite_rows(X, method, score)
        with self.backend.current():
            xp = array_namespace(scores)
            by_class = self.decided_by_class(xp.permute_dims(scores, (1, 0)), -math.inf)
            return xp.permute_dims(by_class, (1, 0)), backend

    def finite_rows(
        self,
        X: Any,
        method: str,
        task: Callable[[Block, Context], Array],
        overflow: str = "the scores of row {row} of X overflow float64: its values are too far "
        "from the centers. Rescale X, at fit as well.",
    ) -> tuple[Array, Backend]:
        """``task`` of X as a block, checked to be finite, and the backend where outputs belong.

        ``overflow`` is the message where the values of X are finite and those of a row are not.
        """
        checked = check_X(self._model, X, reset=False, in_parts=True)
        check_backend(self._model, checked, method)

        def work(ctx: Context) -> Array:
            xp = ctx.backend.xp
            block = self._model._rows(checked, ctx)
            found = task(block, ctx)
            if not bool(xp.all(xp.isfinite(found))):
                block.check_finite(False, ctx)
                row = int(xp.nonzero(~xp.all(xp.isfinite(found), axis=1))[0][0])
                raise ValueError(overflow.format(row=row))
            return found

        return self.run(work), output_backend(checked)

    def copy(self, **changes: Any) -> Any:
        """A copy of the model with these changes of its state, which shares the statistics."""
        new = copy.copy(self._model)
        shared = {"statistics": self.state.share(), "cache": {}}
        new._fitted = replace(self.state, **shared | changes)
        return new


class formed(learned):  # noqa: N801
    """A `learned` attribute that a function of the model, its `FittedModel` and a context forms.

    Once for each fit; an array of NumPy is then read-only.
    """

    def __init__(self, form: Callable[[Any, FittedModel, Context], Any]) -> None:
        def read(model: Any) -> Any:
            fitted = FittedModel(model)
            return fitted.cached(form.__name__, lambda ctx: read_only(form(model, fitted, ctx)))

        super().__init__(update_wrapper(read, form))


def check_parameters(model: Any) -> None:
    """Raise for parameters that are wrong whatever the data are."""
    model._check_parameters()


def commit(model: Any, attributes: dict[str, Any], classes: np.ndarray, fitted: Fitted) -> None:
    """Set all fitted attributes of a model in one assignment, which no interrupt can divide."""
    of_data = ("feature_names_in_", "_reading")
    kept = {n: value for n, value in model.__dict__.items() if n not in of_data}
    new = {"classes_": read_only(classes), "_fitted": fitted}
    model.__dict__ = kept | attributes | new


def reading(model: Any) -> dict[str, Any]:
    """How the data of a model are to be read: options of the command line, kept in model files."""
    return vars(model).get("_reading", {})


def set_reading(model: Any, options: dict[str, Any]) -> None:
    """Keep how the data of a model are to be read, until it is fitted again."""
    model._reading = options


def read_only(x: Any) -> Any:
    """``x``; of NumPy's a read-only view, since copies of a model share the array."""
    if isinstance(x, np.ndarray):
        x = x.view()
        x.flags.writeable = False
    return x


# Models that are functions of statistics.


def adopt(model: Any, statistics: Statistics, *, solved: bool = False) -> None:
    """Let statistics be those of a model; they say what its classes and features are.

    Unless ``solved``, the solution is formed when it is first asked for, and priors are not checked
    before.
    """
    attributes: dict[str, Any] = {"n_features_in_": statistics.shape[1]}
    if statistics.feature_names is not None:
        attributes["feature_names_in_"] = statistics.feature_names
    if solved:
        model._check_classes(tuple(statistics.class_weight))
        solve = partial(model._solved, statistics)
        fitted = run_with_oom_retry(solve, statistics.backend, model.memory_budget)
    else:
        fitted = Fitted(statistics.backend, None, model._params(), statistics)
    commit(model, attributes, labels(statistics), fitted)


def add_batch(model: Any, X: Any, y: Any, classes: Any, **metadata: Any) -> None:
    """Add a batch to the statistics of a model whose parameters are those of binary problems."""
    model._check_parameters()
    model._check_classes((1.0, 1.0))
    model._add_batch(X, y, model._known_classes(classes), **metadata)


def labels(statistics: Statistics) -> np.ndarray:
    """The labels of the classes of statistics, or their numbers."""
    known: Any = statistics.classes
    return np.arange(statistics.shape[0]) if known is None else known
