"""GMEB for several bounds: each solution starts the next, and cross-validation chooses one."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from .._docstrings import filled
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.namespace import to_numpy
from ..blocks import Block
from ..blocks.samples import Samples, check_every_class, check_weights
from ..solvers.gmeb.hyperplanes import Hyperplanes, MarginProblems
from .base import read_only
from .cross_validation import (
    Fold,
    check_rule,
    check_test_weights,
    choose,
    make_splitter,
    naming_fold,
    split,
)
from .fitted import Fitted
from .gmeb import GMEBClassifier, check_positive
from .validation import validated, work_backend


def gmeb_path(
    estimator: GMEBClassifier,
    X: Any,
    y: Any,
    *,
    r_plus: Any,
    r_minus: Any = None,
    sample_weight: Any = None,
) -> list[GMEBClassifier]:
    """GMEB for several bounds on the second moments, from one reading of the moments of X.

    Each model starts from the features of the one before, and is optimal within its own gap.

    Parameters
    ----------
    estimator : GMEBClassifier
        Its ``r_plus`` and ``r_minus`` do not matter, and it is not changed.
    X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    r_plus : array of floats
    r_minus : array of floats, optional
        With it, each pair of the two; without, ``r_minus`` is ``r_plus``.
    sample_weight : array of shape (n_samples,), optional

    Returns
    -------
    list of GMEBClassifier
        Fitted, for each ``r_plus`` and within it for each ``r_minus``, in the given order.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import GMEBClassifier, gmeb_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = gmeb_path(GMEBClassifier(), X, y, r_plus=[0.5, 1.0, 2.0])
    >>> [len(model.support_) for model in models]
    [1, 2, 4]
    """
    if not isinstance(estimator, GMEBClassifier):
        raise TypeError(f"gmeb_path takes a GMEBClassifier, got {type(estimator).__name__}.")
    pairs = grid(r_plus, r_minus)
    models = [clone(estimator).set_params(r_plus=a, r_minus=b) for a, b in pairs]
    models[0]._check_parameters()
    checked, attributes = validated(estimator, X)
    classes, codes = estimator._encoded(y, checked.shape[0])

    def solve(ctx: Context) -> list[Fitted]:
        block, samples = estimator._enter(checked, codes, classes, sample_weight, ctx)
        check_every_class(samples, classes)
        found = []
        for model, solution in zip(models, _solutions(models, block, samples, ctx), strict=True):
            fitted = model._solved(solution)
            fitted.selection = model._select(solution, ctx)
            found.append(fitted)
        return found

    backend = work_backend(estimator, checked)
    found = run_with_oom_retry(solve, backend, estimator.memory_budget, verbose=estimator.verbose)
    for model, fitted in zip(models, found, strict=True):
        model._commit(attributes, classes, fitted)
    return models


def _solutions(
    models: list[GMEBClassifier], block: Block, samples: Samples, ctx: Context
) -> list[Hyperplanes]:
    """The solutions of models one after the other, each a start for the next one."""
    problems, starts, found = MarginProblems.of(block, samples, ctx), None, []
    for model in models:
        solution, starts = problems.solve(model._solver_parameters(), ctx, starts)
        found.append(solution)
    return found


def grid(r_plus: Any, r_minus: Any) -> list[tuple[float, float]]:
    """The pairs of bounds that two parameters mean."""
    values: list[list[float]] = []
    for name, given in (("r_plus", r_plus), ("r_minus", r_minus)):
        numbers = [] if given is None else np.atleast_1d(to_numpy(given)).tolist()
        if given is not None and not numbers:
            raise ValueError(f"{name} is empty: give at least one number.")
        for value in numbers:
            check_positive(name, value)
        values.append([float(value) for value in numbers])
    plus, minus = values
    return list(itertools.product(plus, minus)) if minus else [(r, r) for r in plus]


@filled
class GMEBClassifierCV(GMEBClassifier):
    """GMEB whose bounds on the second moments are chosen by cross-validation.

    Each fold is a fit along the path of all bounds. Its training samples have their weight times
    how often the fold names them, all others weight zero: X is not copied. The model is then fitted
    to all samples with the bounds that are chosen.

    Parameters
    ----------
    r_plus : array of floats, default=(1.0, 2.5, 4.0, 5.5, 7.0, 8.5, 10.0)
        Bounds to try: see `GMEBClassifier`. Sparse data need larger ones.
    r_minus : array of floats, default=None
        With it, each pair of the two; without, ``r_minus`` is ``r_plus``.
    cv : int, splitter or iterable, default=5
        Folds, stratified if it is a number. A fold may leave samples out, and repeat samples.
    rule : {"one-standard-error", "best"}, default="one-standard-error"
        Take the smallest ``r_plus + r_minus`` whose mean accuracy is within one standard error of
        the best one, or is the best one. Means that differ by rounding, 1e-12 of the largest score,
        are equal.
    threshold : float, default=0.01
        See `GMEBClassifier`.
    tol : float, default=1e-6
        The gap to reach, relative to the loss of zero coefficients.
    max_iter : int, default=50
        Rounds, each of which reads X once.
    class_weight : "balanced" or dict from labels to weights, default=None
        Factors of the sample weights of each class: given (1 for labels left out), or by which all
        classes weigh the same. They change what the losses of its samples count; the second moments
        in a class are relative to its weight.

    Attributes
    ----------
    r_plus_, r_minus_ : float
        The bounds that were chosen.
    grid_ : ndarray of shape (n_pairs, 2)
        All pairs of bounds.
    fold_scores_ : ndarray of shape (n_pairs, n_folds)
        The accuracy of each pair on the test samples of each fold.
    best_score_ : float
        The mean accuracy of the chosen pair. Of the best of many it is optimistic.

    See Also
    --------
    GMEBClassifier : Has the other attributes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import GMEBClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GMEBClassifierCV(r_plus=[0.5, 2.0, 8.0], tol=1e-4).fit(X, y)
    >>> model.fold_scores_.shape
    (3, 5)
    """

    def __init__(
        self,
        *,
        r_plus: Any = (1.0, 2.5, 4.0, 5.5, 7.0, 8.5, 10.0),
        r_minus: Any = None,
        cv: Any = 5,
        rule: str = "one-standard-error",
        threshold: float = 0.01,
        tol: float = 1e-6,
        max_iter: int = 50,
        class_weight: Any = None,
        device: str | None = None,
        memory_budget: int | str | None = None,
        verbose: bool = False,
    ) -> None:
        self.r_plus = r_plus
        self.r_minus = r_minus
        self.cv = cv
        self.rule = rule
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.device = device
        self.memory_budget = memory_budget
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the bounds by cross-validation, and fit the model with them.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        check_rule(self.rule)
        pairs = grid(self.r_plus, self.r_minus)
        shared = {name: getattr(self, name) for name in GMEBClassifier._get_param_names()}
        models = [GMEBClassifier(**shared | {"r_plus": a, "r_minus": b}) for a, b in pairs]
        models[0]._check_parameters()
        scores = self._fold_scores(models, X, y, sample_weight)
        chosen = choose(scores, self.rule, np.asarray(pairs).sum(axis=1))
        model = models[chosen].fit(X, y, sample_weight)
        names = ("n_features_in_", "feature_names_in_")
        attributes = {name: vars(model)[name] for name in names if name in vars(model)}
        attributes |= {
            "r_plus_": pairs[chosen][0],
            "r_minus_": pairs[chosen][1],
            "grid_": read_only(np.asarray(pairs)),
            "fold_scores_": read_only(scores),
            "best_score_": float(scores[chosen].mean()),
        }
        self._commit(attributes, model.classes_, model._fitted)
        return self

    def _fold_scores(
        self, models: list[GMEBClassifier], X: Any, y: Any, sample_weight: Any
    ) -> np.ndarray:
        """The accuracy of each model on the test samples of each fold."""
        checked, _ = validated(self, X)
        n = checked.shape[0]
        classes, codes = self._encoded(y, n)
        given = check_weights(sample_weight, n)
        weight = np.ones(n) if given is None else given
        labels = classes[codes]
        folds = split(checked, labels, make_splitter(self.cv, labels), {})
        check_test_weights(folds, given)

        def work(ctx: Context) -> np.ndarray:
            block, _ = self._enter(checked, codes, classes, None, ctx)
            found = []
            for number, fold in enumerate(folds):
                with naming_fold(number):
                    found.append(accuracies(block, fold, ctx))
            return np.stack(found, axis=1)

        def accuracies(block: Block, fold: Fold, ctx: Context) -> np.ndarray:
            kept, test = weight * np.bincount(fold.train, minlength=n), fold.test
            samples = self._samples(codes, classes, kept, ctx)
            check_every_class(samples, classes)
            found = _solutions(models, block, samples, ctx)
            right = [_predicted(one, block, ctx)[test] == codes[test] for one in found]
            return np.average(right, axis=1, weights=weight[test])

        backend = work_backend(self, checked)
        return run_with_oom_retry(work, backend, self.memory_budget, verbose=self.verbose)


def _predicted(found: Hyperplanes, block: Block, ctx: Context) -> np.ndarray:
    """The class codes that a solution predicts."""
    host = to_numpy(found.decision(found.columns, []).scores(block, ctx, relative=False))
    return host[:, 0] > 0 if host.shape[1] == 1 else host.argmax(axis=1)
