"""Nearest shrunken centroids with scikit-learn's face."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from .._docstrings import filled
from ..arrays.context import Context
from ..blocks import Block
from ..solvers.centers import needs_full
from ..solvers.null_gains import NullGain, shrunken_null_gain
from ..solvers.shrunken import ShrunkenCenters, check_offset, check_threshold, solve_shrunken
from ..solvers.user_input import check_priors
from ..statistics.moments import ClassMoments
from ..statistics.recipe import Recipe
from .base import FeatureSelector, LinearClassifier
from .fitted import FittedModel, learned
from .from_statistics import StatisticsClassifier


@filled
class ShrunkenCentroidClassifier(LinearClassifier, FeatureSelector, StatisticsClassifier):
    """Nearest shrunken centroids, a classifier and feature selector of Tibshirani et al.

    The class means are moved towards the mean of all samples by a threshold in units of their
    standard errors. Features that arrive there in all classes are left out; the others classify by
    the standardised distance to the shrunken means. One pass over X solves the problem for every
    threshold and every k: see `with_threshold` and `with_k` (which takes the threshold away).

    These are the formulas of the paper [1]_. scikit-learn's
    ``NearestCentroid(shrink_threshold=...)`` has the same centroids, but its `predict` takes other
    distances.

    Parameters
    ----------
    k : int, float or "all", default="all"
        The number of features (int >= 1), a fraction of them (float in (0, 1]), or all: the
        threshold is that of the next feature. Features whose thresholds tie with it are left out
        as well, so that fewer may survive.
    threshold : float, default=None
        The threshold, in place of k.
    offset : float or "median", default="median"
        Added to the standard deviation of each feature, so that features of small variance do not
        rank first by chance: a number, or the median of all.
    priors : {"empirical", "uniform"} or array of shape (n_classes,), default="empirical"
        Class priors, in the order of ``classes_``.
    class_weight : "balanced" or dict from labels to weights, default=None
        Factors of the sample weights of each class: given (1 for labels left out), or by which all
        classes weigh the same. They change the mean of all samples, pooled deviations, standard
        errors, and empirical priors.

    Attributes
    ----------
    support_ : ndarray of shape (d,), int64
        The features that survive, ascending, on the host.
    ranking_ : ndarray of shape (d,), int64
        The same by descending score (ties: lower index first), on the host.
    scores_ : array of shape (n_features,), float64
        The threshold from which on a feature is left out: max_c abs(d_c).
    threshold_ : float
        The threshold that was given, or that k makes.
    offset_ : float
        What is added to the standard deviations.
    centers_ : array of shape (n_classes, d), float64
        Shrunken class means of the features that survive.
    scale_ : array of shape (n_features,), float64
        Pooled standard deviations, with the offset.
    objective_ : float
        What the shrunken means minimise: squared standardised distances to the class means, and
        the threshold times absolute distances to the mean of all samples.

    References
    ----------
    .. [1] R. Tibshirani, T. Hastie, B. Narasimhan and G. Chu, "Diagnosis of multiple cancer types
       by shrunken centroids of gene expression", PNAS 99, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import ShrunkenCentroidClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = ShrunkenCentroidClassifier(k=3).fit(X, y)
    >>> model.get_feature_names_out().tolist()
    ['mean perimeter', 'worst radius', 'worst perimeter']
    >>> len(model.with_threshold(10.0).support_)
    15
    """

    def __init__(
        self,
        k: int | float | str = "all",
        *,
        threshold: float | None = None,
        offset: float | str = "median",
        priors: Any = "empirical",
        class_weight: Any = None,
        device: str | None = None,
        memory_budget: int | str | None = None,
        verbose: bool = False,
    ) -> None:
        self.k = k
        self.threshold = threshold
        self.offset = offset
        self.priors = priors
        self.class_weight = class_weight
        self.device = device
        self.memory_budget = memory_budget
        self.verbose = verbose

    _solution_params = ("k", "threshold", "offset", "priors")
    _per_score = 0.5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_priors(self.priors)
        check_offset(self.offset)
        if self.threshold is not None:
            check_threshold(self.threshold)
            if not isinstance(self.k, str):
                raise ValueError(
                    f"k={self.k!r} and threshold={self.threshold!r} both say what survives: leave "
                    "one of them out."
                )

    def _recipe(self) -> Recipe:
        return Recipe("class moments", per_feature=True)

    def _solve_from(
        self, statistics: ClassMoments, params: dict[str, Any], ctx: Context
    ) -> ShrunkenCenters:
        centers = solve_shrunken(statistics, ctx, params["offset"])
        threshold = params["threshold"]
        return replace(centers, threshold=None if threshold is None else float(threshold))

    def _null_gain(self, block: Block, ctx: Context) -> NullGain:
        if isinstance(self.offset, str):
            raise ValueError(
                "permutation_gains needs the offset as a number, since a median changes with the "
                f"labels: use offset={self.offset_:.6g}, the median under the observed labels."
            )
        return shrunken_null_gain(float(self.offset))

    def with_k(self, k: int | float | str) -> Self:
        return self._at(k, None)

    def with_threshold(self, threshold: float) -> Self:
        """A fitted copy of this model at another threshold, without the data.

        Parameters
        ----------
        threshold : float
            Of 0 or more.

        Returns
        -------
        model
            Equal to one fitted with this threshold on the same data.
        """
        check_threshold(threshold)
        return self._at("all", float(threshold))

    def _at(self, k: Any, threshold: float | None) -> Self:
        fitted = FittedModel(self)
        centers = fitted.centers
        if isinstance(centers, ShrunkenCenters):
            centers = replace(centers, threshold=threshold)
        elif threshold is not None or fitted.state.params["threshold"] is not None:
            raise needs_full("Another threshold")
        selection = fitted.run(lambda ctx: centers.select(k, ctx))
        params = fitted.state.params | {"k": k, "threshold": threshold}
        new = fitted.copy(params=params, centers=centers, selection=selection)
        new.k, new.threshold = k, threshold
        return new

    @learned
    def threshold_(self) -> float:
        """The threshold that was given, or that k makes."""
        fitted = FittedModel(self)
        centers, columns = fitted.located()
        return fitted.run(lambda ctx: centers.threshold_of(columns))

    @learned
    def offset_(self) -> float:
        """What is added to the standard deviations."""
        return FittedModel(self).located()[0].offset
