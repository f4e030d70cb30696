"""The globally best scaled margin classifier with scikit-learn's face, and its bounds chosen."""

from __future__ import annotations

import itertools
import math
import numbers
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._docstrings import filled
from ..arrays.backend import resolve_backend
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.namespace import to_numpy
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples, check_weights, raise_without_weight
from ..solvers.gmeb.hyperplanes import Hyperplanes, MarginProblems
from ..solvers.selection import warn
from ..solvers.user_input import as_number
from .base import FeatureSelector, LinearClassifier, read_only
from .cross_validation import (
    Fold,
    check_rule,
    check_test_weights,
    choose,
    make_splitter,
    naming_fold,
    split,
)
from .fitted import Fitted, FittedModel, commit, formed, learned
from .validation import validated


def _number(name: str, doc: str) -> Any:
    """A number of the solution; for more than two classes an array of those of all classes."""

    def read(self: GMEBClassifier) -> Any:
        found = getattr(FittedModel(self).centers, name)
        return found[0] if len(found) == 1 else np.asarray(found)

    read.__doc__ = doc  # (that of a property's subclass is found on the function alone)
    return learned(read)


@filled
class GMEBClassifier(FeatureSelector, LinearClassifier):
    """Globally best scaled margin classifier and feature selector.

    A linear classifier of least hinge loss, under a bound on the second moments of the decision in
    each class that holds for the best scaling of the features too [1]_. It is a convex problem: the
    loss under a worst-case weighted l1 norm, which leaves few features. It is solved to a gap that
    is certified over all features: ``gap_``.

    Features need no scaling: the norm measures each weight in units of its feature's deviation
    within the classes, about the mean of all samples. Shifted or rescaled features give the same
    predictions, and sparse data are not centred.

    Parameters
    ----------
    r_plus : float, default=4.0
        The largest second moment of the decision in class ``classes_[1]``, relative to a margin of
        1. Larger values give more features and a smaller loss; zero loss needs 1 or more, and of
        text 100 or more: see Notes. With more than two classes each one against the rest in turn.
    r_minus : float, default=None
        The same in the other class, or in the rest. None is ``r_plus``.
    threshold : float, default=0.01
        Features are selected where the coefficient, or the coefficient relative to the largest one
        of the class, is at least this in absolute value. Predictions use all coefficients.
    tol : float, default=1e-6
        The gap to reach, relative to the loss of zero coefficients.
    max_iter : int, default=50
        Rounds, each of which reads X once. Most problems need three to eleven.
    class_weight : "balanced" or dict from labels to weights, default=None
        Factors of the sample weights of each class: given (1 for labels left out), or by which all
        classes weigh the same. They change what the losses of its samples count; the second moments
        in a class are relative to its weight.

    Attributes
    ----------
    support_ : ndarray of shape (k,), int64
        Selected features, ascending, on the host. None where all coefficients are zero.
    coef_ : array of shape (1, n_features) or (n_classes, n_features), float64
        The decision is ``X @ coef_.T + intercept_``, one for each class if there are more than two.
    sigma_ : array of the shape of ``coef_``, float64
        The scales of the paper, zero where the coefficient is.
    theta_ : float, or ndarray of shape (n_classes,)
        The share of class ``classes_[1]`` in the worst case; 1 where its bound alone binds.
    multiplier_ : float, or ndarray of shape (n_classes,)
        What the loss falls by if the norm may rise: 1 / C of the problem with a penalty.
    omega_ : float, or ndarray of shape (n_classes,)
        The norm of the coefficients, at most 1.
    objective_ : float, or ndarray of shape (n_classes,)
        The hinge loss, summed over the samples.
    lower_bound_ : float, or ndarray of shape (n_classes,)
        What no coefficients can fall below.
    gap_ : float, or ndarray of shape (n_classes,)
        ``objective_ - lower_bound_``, not negative.
    n_iter_ : int, or ndarray of shape (n_classes,)
        Rounds.

    Notes
    -----
    The norm is the sum of all weights in units of their features' deviations. The decision has the
    second moments that it bounds only where its features vary together. Where a sample has few of
    them, as short texts have few words, the moments stay far below: d features of which each sample
    has one need bounds of about d to decide for all samples. So values of 1 to 10 suit dense data
    with features that go together, and sparse data need some tens to thousands, or are underfitted:
    ``GMEBClassifierCV(r_plus=[10, 100, 1000])`` tells.

    Where several solutions are optimal, one of least norm is returned: exactly where the norm or
    the separation of the classes determines it, else within ``tol``. Equal columns share their
    weight equally. A `sklearn.exceptions.ConvergenceWarning` says the gap where it is larger than
    ``tol`` allows.

    References
    ----------
    .. [1] D. Peleg and R. Meir, "Feature Selection by Global Minimization of a Generalization
       Bound", 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import GMEBClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GMEBClassifier(r_plus=1.0).fit(X, y)
    >>> bool(model.gap_ < 1e-6 * len(y))
    True
    """

    def __init__(
        self,
        *,
        r_plus: float = 4.0,
        r_minus: float | None = None,
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
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.device = device
        self.memory_budget = memory_budget
        self.verbose = verbose

    _solution_params = ("threshold",)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("r_plus", self.r_plus)
        if self.r_minus is not None:
            check_positive("r_minus", self.r_minus)
        check_positive("threshold", self.threshold, zero=True)
        check_positive("tol", self.tol)
        rounds: Any = self.max_iter
        if isinstance(rounds, bool) or not isinstance(rounds, numbers.Integral) or rounds < 1:
            raise ValueError(f"max_iter={rounds!r} is not valid: use an int >= 1.")

    def _solution(
        self, problems: MarginProblems, ctx: Context, starts: list[Array] | None = None
    ) -> tuple[Hyperplanes, list[Array]]:
        """What `MarginProblems.solve` returns for these parameters."""
        bounds = float(self.r_plus), float(self.r_plus if self.r_minus is None else self.r_minus)
        return problems.solve(*bounds, float(self.tol), int(self.max_iter), ctx, starts)

    def _solve(self, block: Block, samples: Samples, ctx: Context) -> Fitted:
        return self._solved(self._solution(MarginProblems.of(block, samples, ctx), ctx)[0])

    def _solved(self, found: Hyperplanes) -> Fitted:
        """The fitted state; warns of a gap that is too large."""
        pairs = zip(found.loss, found.bound, found.scale, strict=True)
        gap = max((loss - bound) / scale for loss, bound, scale in pairs)
        if gap > self.tol:
            warn(
                f"GMEBClassifier stopped after {max(found.rounds)} rounds at a gap of {gap:.1e} "
                f"times the loss of zero coefficients, above tol={self.tol:g}: the objective is "
                "known to be optimal within this gap. Use a larger max_iter or tol.",
                ConvergenceWarning,
            )
        selection = found.selected(self.threshold)
        return Fitted(found.backend, found, self._params(), selection=selection)

    @formed
    def sigma_(self, fitted: Any, ctx: Context) -> Array:
        """The scales of the paper, of the shape of ``coef_``."""
        return self._widened(fitted.centers.sigma, fitted, ctx)

    theta_ = _number("t", "The share of class ``classes_[1]`` in the worst case.")
    multiplier_ = _number("multiplier", "The multiplier of the bound on the norm.")
    omega_ = _number("omega", "The norm of the coefficients.")
    objective_ = _number("loss", "The hinge loss.")
    lower_bound_ = _number("bound", "What no coefficients can fall below.")
    n_iter_ = _number("rounds", "Rounds.")

    @learned
    def gap_(self) -> Any:
        """``objective_ - lower_bound_``."""
        return np.maximum(self.objective_ - self.lower_bound_, 0.0)


def check_positive(name: str, value: Any, *, zero: bool = False) -> None:
    """Raise a ValueError unless a parameter is a finite number above zero, or zero if allowed."""
    number = as_number(value)
    if not (number >= 0 if zero else number > 0) or number == math.inf:
        raise ValueError(
            f"{name}={value!r} is not valid: use a finite number {'>=' if zero else '>'} 0."
        )


# GMEB for several bounds: each solution starts the next, and cross-validation chooses one.


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

    def solve(block: Block, samples: Samples, ctx: Context) -> list[Fitted]:
        solutions = _solutions(models, block, samples, ctx)
        return [model._solved(found) for model, found in zip(models, solutions, strict=True)]

    found, attributes, classes = estimator._on_samples(solve, X, y, sample_weight)
    for model, fitted in zip(models, found, strict=True):
        commit(model, attributes, classes, fitted)
    return models


def _solutions(
    models: list[GMEBClassifier], block: Block, samples: Samples, ctx: Context
) -> list[Hyperplanes]:
    """The solutions of models one after the other, each a start for the next one."""
    problems, starts, found = MarginProblems.of(block, samples, ctx), None, []
    for model in models:
        solution, starts = model._solution(problems, ctx, starts)
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
        check_rule(self.rule)
        pairs = grid(self.r_plus, self.r_minus)
        shared = {name: getattr(self, name) for name in GMEBClassifier._get_param_names()}
        models = [GMEBClassifier(**shared | {"r_plus": a, "r_minus": b}) for a, b in pairs]
        models[0]._check_parameters()
        scores = self._fold_scores(models, X, y, sample_weight)
        chosen = choose(scores, self.rule, np.asarray(pairs).sum(axis=1))
        model = models[chosen].fit(X, y, sample_weight)
        of_data = {name: value for name, value in vars(model).items() if name.endswith("_in_")}
        attributes = of_data | {
            "r_plus_": pairs[chosen][0],
            "r_minus_": pairs[chosen][1],
            "grid_": read_only(np.asarray(pairs)),
            "fold_scores_": read_only(scores),
            "best_score_": float(scores[chosen].mean()),
        }
        commit(self, attributes, model.classes_, model._fitted)
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
            raise_without_weight(samples.count, classes)
            found = _solutions(models, block, samples, ctx)
            right = [_predicted(one, block, ctx)[test] == codes[test] for one in found]
            return np.average(right, axis=1, weights=weight[test])

        backend = resolve_backend(self.device, checked)
        return run_with_oom_retry(work, backend, self.memory_budget, verbose=self.verbose)


def _predicted(found: Hyperplanes, block: Block, ctx: Context) -> np.ndarray:
    """The class codes that a solution predicts."""
    host = to_numpy(found.decision(found.columns, []).scores(block, ctx, relative=False))
    return host[:, 0] > 0 if host.shape[1] == 1 else host.argmax(axis=1)
