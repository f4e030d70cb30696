"""Sparse l2 and l1 center classifiers with scikit-learn's face."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from ..arrays.convert import Block
from ..arrays.groups import Groups
from ..arrays.typing import Array
from ..arrays.work import Work
from ..solvers.centers import SparseCenters
from ..solvers.l1 import solve_l1
from ..solvers.l2 import class_moments, solve_l2
from ..solvers.raw_moments import empty_moments
from ..solvers.scaling import check_scale
from ..solvers.scores import l1_scores, l2_scores, linear_form, log_priors
from ..solvers.selection import check_k
from ._base import CenterClassifier, Fitted
from .labels import encode, encode_against, host_labels
from .probabilities import log_softmax_half, softmax_half
from .validation import check_place, check_X, keeping_on_error, work_place


class L2CenterClassifier(CenterClassifier):
    """Sparse l2 center classifier and feature selector.

    Nearest class mean, where the means may differ between classes in k features only: the k for
    which the within-class squared distance is provably least (Definition 1, Prop. 1 and Algorithm 1
    of [1]_, for any number of classes). One pass over X solves the problem for every k at once: see
    `with_k`.

    Parameters
    ----------
    k : int, float or "all", default="all"
        The number of features (int >= 1), a fraction of them (float in (0, 1]), or all.
    scale : {None, "std", "pooled"}, default=None
        Divide each feature by its standard deviation over all samples ("std") or pooled within the
        classes ("pooled": with priors this is diagonal discriminant analysis). Without centring, so
        sparse data stay sparse.
    priors : {"uniform", "empirical"} or array of shape (n_classes,), default="uniform"
        Class priors, in the order of ``classes_``; they shift the decision, not the centers.
    device : {None, "cpu", "cuda", "cuda:N", "auto"}, default=None
        Where the work is done and the model lives. None follows X.
    memory_budget : int or str, default=None
        Workspace beyond X and the model, in bytes or as "2GB". None is a quarter of what is free.
    verbose : bool, default=False
        Print what was fitted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels, on the host.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X had string column names.
    support_ : ndarray of shape (k,), int64
        Selected features, ascending, on the host.
    ranking_ : ndarray of shape (k,), int64
        The same by descending score (ties: lower index first), on the host.
    scores_ : array of shape (n_features_in_,), float64
        Gain of each feature: what the objective loses by letting its centers differ.
    centers_ : array of shape (n_classes, k), float64
        Class centers on the support, in the units of X.
    scale_ : array of shape (n_features_in_,), float64, or None
    objective_ : float
        Sum over classes of the mean squared distance to the center, in scaled units.
    coef_ : array of shape (1, n_features_in_) or (n_classes, n_features_in_), float64
        The decision is ``X @ coef_.T + intercept_``; zero outside the support.
    intercept_ : array of shape (1,) or (n_classes,), float64

    References
    ----------
    .. [1] G. Calafiore and G. Fracastoro, "Sparse l1 and l2 Center Classifiers", IEEE Trans. Neural
       Networks and Learning Systems 33(3), 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import L2CenterClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = L2CenterClassifier(k=3, scale="std").fit(X, y)
    >>> model.get_feature_names_out().tolist()
    ['mean concave points', 'worst perimeter', 'worst concave points']
    >>> round(model.score(X, y), 2)
    0.94
    """

    def __init__(
        self,
        k: int | float | str = "all",
        *,
        scale: str | None = None,
        priors: Any = "uniform",
        device: str | None = None,
        memory_budget: int | str | None = None,
        verbose: bool = False,
    ) -> None:
        self.k = k
        self.scale = scale
        self.priors = priors
        self.device = device
        self.memory_budget = memory_budget
        self.verbose = verbose

    _linear = True

    def _check_parameters(self) -> None:
        check_scale(self.scale)
        check_k(self.k)
        if isinstance(self.priors, str):
            log_priors(self.priors, (1.0, 1.0))

    def _solve(self, block: Block, groups: Groups, work: Work) -> Fitted:
        log_priors(self.priors, tuple(groups.weight))
        moments = class_moments(block, groups, work, per_feature=self.scale is not None)
        return Fitted(block.place, solve_l2(moments, self.scale), self._params(), moments)

    def _params(self) -> dict[str, Any]:
        return {"k": self.k, "scale": self.scale, "priors": self.priors}

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of samples: the moments are kept, never the data (Remark 5 of the paper).

        Any split of the rows gives the model that `fit` gives on all of them, to the bit where the
        sums are exact. A call that fails leaves the model as it was. Predicting before each class
        was met raises a NotFittedError that names those missing.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels among ``classes``.
        classes : array of shape (n_classes,)
            All labels that will ever come; needed in the first call, optional later.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "_fitted")
        self._check_parameters()
        if not first and self.scale != self._fitted.params["scale"]:
            raise ValueError(
                f"scale={self.scale!r} is not the same as on the last call to partial_fit: "
                f"{self._fitted.params['scale']!r}."
            )
        known = self._known_classes(classes, first)
        log_priors(self.priors, (1.0,) * len(known))
        kept = ("n_features_in_", "feature_names_in_") if first else ()
        with keeping_on_error(self, *kept):
            checked = check_X(self, X, reset=first)
            codes = encode_against(host_labels(y, self, checked.shape[0]), known)
            if not first:
                check_place(self, checked, "partial_fit")
            place = work_place(self, checked) if first else self._fitted.place
            work = Work.of(self.memory_budget, place, self.verbose)
            with place.current():
                block, groups = self._enter(checked, codes, known, sample_weight, place)
                if first:
                    moments = empty_moments(block, len(known), per_feature=self.scale is not None)
                else:
                    moments = self._fitted.own_moments()
                moments = moments.add_batch(block, groups, work)
        self.classes_, self._fitted = known, Fitted(place, None, self._params(), moments)
        return self

    def _known_classes(self, classes: Any, first: bool) -> np.ndarray:
        if classes is None:
            if first:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            return self.classes_
        if isinstance(classes, set | frozenset):
            classes = list(classes)
        given, _ = encode(np.asarray(classes).ravel())
        if first and len(given) < 2:
            raise ValueError(f"classes must name at least two classes, got {given.tolist()}.")
        if not first and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"classes={given.tolist()} is not the same as on the last call to partial_fit: "
                f"{self.classes_.tolist()}."
            )
        return given

    def _solve_moments(self, fitted: Fitted) -> SparseCenters:
        assert fitted.moments is not None
        missing = [
            label
            for label, count in zip(self.classes_.tolist(), fitted.moments.count, strict=True)
            if count == 0
        ]
        if missing:
            raise NotFittedError(
                f"this {type(self).__name__} has seen no sample of class "
                f"{', '.join(map(repr, missing))} yet: call partial_fit with some first."
            )
        return solve_l2(fitted.moments, fitted.params["scale"])

    def _log_priors(self) -> list[float]:
        return log_priors(self._ready().params["priors"], self._centers().weight)

    def _scores(self, block: Block) -> Array:
        return l2_scores(block, self._centers(), self._selection().support, self._log_priors())

    def _linear_form(self) -> tuple[Array, Array]:
        centers, support = self._centers(), self._selection().support
        shift, slope, offset = linear_form(centers, support, self._log_priors())
        xp = centers.place.xp
        source = np.zeros(self.n_features_in_, dtype=np.int64)
        source[self.support_] = np.arange(1, len(self.support_) + 1)
        narrow = xp.permute_dims(slope, (1, 0))
        zero = xp.zeros_like(narrow[:, :1])
        coef = xp.take(xp.concat([zero, narrow], axis=1), centers.place.asarray(source), axis=1)
        return coef, offset - shift @ slope

    @property
    def coef_(self) -> Array:
        """Coefficients of the decision, zero outside the support."""
        return self._cached("linear", self._linear_form)[0]

    @property
    def intercept_(self) -> Array:
        """Constants of the decision."""
        return self._cached("linear", self._linear_form)[1]

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, as of Gaussians of unit (or ``scale_``) variance at the centers.

        They never contradict `predict`.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes), float64
        """
        scores, place = self._score_rows(X, "predict_proba")
        with self._fitted.place.current():
            return place.move(softmax_half(scores))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of class probabilities; finite where the probability itself underflows.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes), float64
        """
        scores, place = self._score_rows(X, "predict_log_proba")
        with self._fitted.place.current():
            return place.move(log_softmax_half(scores))


class L1CenterClassifier(CenterClassifier):
    """Sparse l1 center classifier and feature selector.

    Nearest class median in l1 distance, where the medians may differ between classes in k features
    only: the k for which the within-class l1 distance is provably least (Definition 2, Prop. 2 and
    3 and Algorithm 2 of [1]_, for any number of classes). Robust to outliers, which one sample
    cannot move far. One pass solves the problem for every k at once: see `with_k`.

    Parameters
    ----------
    k : int, float or "all", default="all"
        The number of features (int >= 1), a fraction of them (float in (0, 1]), or all.
    scale : {None, "std", "pooled"}, default=None
        Divide each feature by its standard deviation over all samples ("std") or pooled within the
        classes ("pooled"). Without centring, so sparse data stay sparse.
    device : {None, "cpu", "cuda", "cuda:N", "auto"}, default=None
        Where the work is done and the model lives. None follows X.
    memory_budget : int or str, default=None
        Workspace beyond X and the model, in bytes or as "2GB". None is a quarter of what is free.
    verbose : bool, default=False
        Print what was fitted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels, on the host.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X had string column names.
    support_ : ndarray of shape (k,), int64
        Selected features, ascending, on the host.
    ranking_ : ndarray of shape (k,), int64
        The same by descending score (ties: lower index first), on the host.
    scores_ : array of shape (n_features_in_,), float64
        Gain of each feature: what the objective loses by letting its centers differ. Exactly zero
        where the intervals of class medians share a point.
    centers_ : array of shape (n_classes, k), float64
        Class centers on the support, in the units of X.
    scale_ : array of shape (n_features_in_,), float64, or None
    objective_ : float
        Sum over classes of the mean l1 distance to the center, in scaled units.

    Notes
    -----
    A feature of text is zero in most samples of each class, and then its medians are zero: few
    features of sparse data have a positive gain. On unequal sample weights the values are sorted
    with their weights along, which takes longer than the sort of values alone.

    References
    ----------
    .. [1] G. Calafiore and G. Fracastoro, "Sparse l1 and l2 Center Classifiers", IEEE Trans. Neural
       Networks and Learning Systems 33(3), 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import L1CenterClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = L1CenterClassifier(k=3, scale="std").fit(X, y)
    >>> model.support_
    array([ 7, 22, 27])
    """

    def __init__(
        self,
        k: int | float | str = "all",
        *,
        scale: str | None = None,
        device: str | None = None,
        memory_budget: int | str | None = None,
        verbose: bool = False,
    ) -> None:
        self.k = k
        self.scale = scale
        self.device = device
        self.memory_budget = memory_budget
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_scale(self.scale)
        check_k(self.k)

    def _solve(self, block: Block, groups: Groups, work: Work) -> Fitted:
        return Fitted(block.place, solve_l1(block, groups, work, self.scale), {"k": self.k})

    def _scores(self, block: Block) -> Array:
        return l1_scores(block, self._centers(), self._selection().support)
