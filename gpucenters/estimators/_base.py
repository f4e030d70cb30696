"""What all center classifiers share: fitting, the solution for each k, and predicting."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..arrays.convert import Block, as_block
from ..arrays.devices import Place, resolve_place
from ..arrays.groups import Groups, check_every_class, check_weights, group_rows
from ..arrays.namespace import array_namespace, to_numpy
from ..arrays.typing import Array
from ..arrays.work import Work, carry_out
from ..solvers.centers import Centers
from ..solvers.class_sums import ClassSums
from ..solvers.selection import Selection
from .labels import decode, encode, host_labels
from .validation import check_place, check_X, keeping_on_error, output_place, work_place


@dataclass
class Fitted:
    """What a fit leaves behind. The solution is formed once, when it is first asked for.

    Kept apart from the estimator, so that asking a model for predictions never changes it. The
    parameters that the solution depends on are those at the fit, whatever is set later.
    """

    place: Place
    centers: Centers | None
    params: dict[str, Any]
    moments: ClassSums | None = None
    selection: Selection | None = None
    cache: dict[str, Any] = field(default_factory=dict)
    shared: bool = False

    def share(self) -> ClassSums | None:
        """The moments, for another model too: from now on neither may add to them in place."""
        self.shared = True
        return self.moments

    def own_moments(self) -> ClassSums:
        """Moments that may be added to in place."""
        assert self.moments is not None
        return self.moments.copy() if self.shared else self.moments


class CenterClassifier(ClassifierMixin, BaseEstimator):
    """Base of all models. A subclass solves (`_solve`) and scores (`_scores`)."""

    _fitted: Fitted
    classes_: np.ndarray
    n_features_in_: int
    k: Any
    device: str | None
    memory_budget: int | str | None
    verbose: bool
    _linear = False  # whether scores are a product with X, which duplicates do not change

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    # --- fitting -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model: the optimal centers and features, for every k at once.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Dense arrays of any array-API library, memory maps, CSR or CSC of SciPy or cupyx, of any
            real type. Never changed; sparse data are never made dense.
        y : array of shape (n_samples,)
            Class labels: numbers or strings, at least two classes.
        sample_weight : array of shape (n_samples,), optional
            Non-negative. Weights count as repetitions; 0 leaves a sample out.

        Returns
        -------
        self
        """
        self._check_parameters()
        with keeping_on_error(self, "n_features_in_", "feature_names_in_"):
            checked = check_X(self, X, reset=True)
            classes, codes = encode(host_labels(y, type(self).__name__, checked.shape[0]))
            if len(classes) < 2:
                raise ValueError(
                    f"{type(self).__name__} needs samples of at least two classes; y holds "
                    f"{len(classes)} class: {classes.tolist()}."
                )

            def solve(place: Place, work: Work) -> Fitted:
                block, groups = self._enter(checked, codes, classes, sample_weight, place)
                check_every_class(groups, classes)
                fitted = self._solve(block, groups, work)
                assert fitted.centers is not None
                fitted.selection = fitted.centers.select(self.k)
                return fitted

            place, budget = work_place(self, checked), self.memory_budget
            fitted = carry_out(solve, place, budget, verbose=self.verbose)
        self.classes_, self._fitted = read_only(classes), fitted
        if self.verbose:
            self._report(checked.shape)
        return self

    def __copy__(self) -> Self:
        new = self.__class__.__new__(self.__class__)
        new.__dict__.update(self.__dict__)
        if hasattr(self, "_fitted"):
            self._fitted.share()  # a batch for one must not change the other
        return new

    def _enter(
        self, X: Any, codes: np.ndarray, classes: np.ndarray, sample_weight: Any, place: Place
    ) -> tuple[Block, Groups]:
        block = self._read(as_block(X, place, checked=True))
        groups = group_rows(codes, X.shape[0], place, n_classes=len(classes), weights=sample_weight)
        return block, groups

    def _read(self, block: Block) -> Block:
        """The block with its values read as this model takes them."""
        return block

    def _check_parameters(self) -> None:
        """Raise for parameters that are wrong whatever the data are."""

    def _solve(self, block: Block, groups: Groups, work: Work) -> Fitted:
        raise NotImplementedError

    def _report(self, shape: tuple[int, int]) -> None:
        kept = len(self.support_)
        print(
            f"{type(self).__name__}: {shape[0]:,} x {shape[1]:,} in {self._fitted.place}, "
            f"{len(self.classes_)} classes, {kept:,} features selected, "
            f"objective {self.objective_:.6g}"
        )

    # --- the solution --------------------------------------------------------------------------

    def _ready(self) -> Fitted:
        """The fitted state with its solution; raises where there is none yet."""
        check_is_fitted(self)
        return self._fitted

    def _centers(self) -> Centers:
        fitted = self._ready()
        if fitted.centers is None:
            fitted.centers = self._solve_moments(fitted)
        return fitted.centers

    def _solve_moments(self, fitted: Fitted) -> Centers:
        """The solution from moments alone, for models that they determine."""
        raise NotImplementedError

    def _selection(self) -> Selection:
        fitted = self._ready()
        if fitted.selection is None:
            with fitted.place.current():
                fitted.selection = self._centers().select(fitted.params["k"])
        return fitted.selection

    def _cached(self, name: str, make: Any) -> Any:
        cache = self._ready().cache
        if name not in cache:
            with self._fitted.place.current():
                cache[name] = make()
        return cache[name]

    @property
    def support_(self) -> np.ndarray:
        """The selected features, ascending; int64 of shape (k,), on the host."""
        return self._cached("support", lambda: read_only(to_numpy(self._selection().support)))

    @property
    def ranking_(self) -> np.ndarray:
        """The selected features by descending score; int64 of shape (k,), on the host."""
        return self._cached("ranking", lambda: read_only(to_numpy(self._selection().ranking)))

    @property
    def scores_(self) -> Array:
        """The gain of each feature; float64 of shape (n_features,), on the model's device."""
        return self._cached("scores", lambda: read_only(self._centers().scores(self._selection())))

    @property
    def scale_(self) -> Array | None:
        """What each feature is divided by; float64 of shape (n_features,), or None."""
        return read_only(getattr(self._centers(), "scale", None))

    @property
    def centers_(self) -> Array:
        """Class centers on the support; float64 of shape (n_classes, k), in the units of X."""
        return self._cached(
            "centers", lambda: read_only(self._centers().at(self._selection().support)[0])
        )

    @property
    def objective_(self) -> float:
        """The minimum of the objective for this k, in scaled units."""
        return self._cached(
            "objective", lambda: self._centers().objective(self._selection().support)
        )

    def with_k(self, k: int | float | str) -> Self:
        """A fitted copy of this model at another k, without the data.

        Parameters
        ----------
        k : int, float or "all"

        Returns
        -------
        model
            Equal to one fitted with this k on the same data.
        """
        fitted = self._ready()
        new = copy.copy(self)
        new.k = k
        with fitted.place.current():
            selection = self._centers().select(k, near=fitted.selection)
        params = fitted.params | {"k": k}
        new._fitted = Fitted(
            fitted.place, fitted.centers, params, fitted.share(), selection, shared=True
        )
        return new

    def to(self, device: str) -> Self:
        """A fitted copy of this model that lives on another device.

        Parameters
        ----------
        device : {"cpu", "cuda", "cuda:N", "auto"}
            "cpu" means NumPy. The copy's ``device`` parameter is set to it.

        Returns
        -------
        model
        """
        fitted = self._ready()
        if device is None:
            raise ValueError("to() needs the name of a device: 'cpu', 'cuda', 'cuda:N' or 'auto'.")
        with fitted.place.current():
            place = resolve_place(device, fitted.place.zeros(1))
        new = copy.copy(self)
        new.device = device
        with place.current():
            centers = None if fitted.centers is None else fitted.centers.to(place)
            moments = fitted.share()
            moments = None if moments is None else moments.to(place)
            selection = None if fitted.selection is None else fitted.selection.to(place)
        new._fitted = Fitted(place, centers, fitted.params, moments, selection, shared=True)
        return new

    # --- predicting ----------------------------------------------------------------------------

    def _scores(self, block: Block) -> Array:
        """(n, K) scores, larger is better; (n, 1) for two classes: class 1 less class 0."""
        raise NotImplementedError

    def _score_rows(self, X: Any, method: str) -> tuple[Array, Place]:
        """Scores of the rows of X where the model lives, and the place where outputs belong."""
        fitted = self._ready()
        checked = check_X(self, X, reset=False)
        check_place(self, checked, method)

        def score(place: Place, work: Work) -> Array:
            block = as_block(checked, place, summed=not self._linear, checked=True)
            block, xp = self._read(block), place.xp
            scores = self._scores(block)
            if not bool(xp.all(xp.isfinite(scores))):
                block.check_finite(squares=False)
                row = int(xp.nonzero(~xp.all(xp.isfinite(scores), axis=1))[0][0])
                raise ValueError(
                    f"the scores of row {row} of X overflow float64: its values are too far from "
                    "the centers. Rescale X, at fit as well."
                )
            return scores

        return carry_out(score, fitted.place, self.memory_budget), output_place(checked)

    def decision_function(self, X: Any) -> Array:
        """Scores of the samples.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Of dense X only the selected features are read: what is wrong elsewhere is not seen.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes), float64
            For two classes, positive means ``classes_[1]``; for more, the largest score wins. In
            the library and on the device of X.
        """
        scores, place = self._score_rows(X, "decision_function")
        return place.move(scores[:, 0] if scores.shape[1] == 1 else scores)

    def _predict_codes(self, X: Any, method: str) -> tuple[Array, Place]:
        scores, place = self._score_rows(X, method)
        xp = array_namespace(scores)
        with self._fitted.place.current():
            if scores.shape[1] == 1:
                return xp.astype(scores[:, 0] > 0, xp.int64), place
            return xp.argmax(scores, axis=1), place

    def predict(self, X: Any) -> Array:
        """The class of each sample; ties go to the first class.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Of dense X only the selected features are read: what is wrong elsewhere is not seen.

        Returns
        -------
        array of shape (n_samples,)
            In the library and on the device of X; string labels are always NumPy.
        """
        codes, place = self._predict_codes(X, "predict")
        return decode(codes, self.classes_, place)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict` on the given samples.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
        """
        codes, _ = self._predict_codes(X, "score")
        predicted = self.classes_[to_numpy(codes)]
        right = np.asarray(predicted == host_labels(y, type(self).__name__, len(predicted)))
        weights = check_weights(sample_weight, len(right))
        if weights is not None and not weights.any():
            raise ValueError("all sample weights are zero: there is nothing to average.")
        return float(np.average(right, weights=weights))


def read_only(x: Array) -> Array:
    """``x``; NumPy's as a view that cannot be written to, for copies of a model share it."""
    if isinstance(x, np.ndarray):
        x = x.view()
        x.flags.writeable = False
    return x
