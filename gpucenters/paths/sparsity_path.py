"""The scores of a model for every number of features, computed and drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone

from ..arrays.namespace import is_sparse
from ..blocks.samples import check_weights
from ..estimators.base import check_center_classifier
from ..estimators.cross_validation import (
    Fold,
    HeldOut,
    check_groups,
    check_test_weights,
    make_splitter,
    naming_fold,
    split,
    take_of_each,
    take_rows,
)
from ..estimators.path_predictions import predict_path
from ..estimators.validation import as_classes, check_container, encode, host_labels
from ..solvers.selection import resolve_k
from .drawing import draw_path
from .result import SparsityPath
from .scoring import Routed, Scoring, route

_STEPS = 40


def resolve_ks(ks: Any, n_features: int) -> list[int]:
    """The numbers of features that ``ks`` means, ascending, each once.

    Parameters
    ----------
    ks : iterable of int, float or "all", or None
        Numbers of features, fractions of them, or all, as ``k`` of the models. None is about 40
        geometric steps from 1 to all features.
    n_features : int

    Examples
    --------
    >>> from gpucenters.paths.sparsity_path import resolve_ks
    >>> resolve_ks([0.5, 1, "all"], 10)
    [1, 5, 10]
    """
    if ks is None:
        steps = np.geomspace(1, n_features, _STEPS).round().astype(np.int64)
        return np.unique(steps).tolist()
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        raise TypeError(f"ks={ks!r} is not valid: use a list of numbers of features.")
    plain = (k.item() if isinstance(k, np.generic) else k for k in ks)
    found = {resolve_k(k, n_features) for k in plain}
    if not found:
        raise ValueError("ks is empty: give at least one number of features, or None.")
    return sorted(found)


def sparsity_path(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    ks: Any = None,
    cv: Any = None,
    X_test: Any = None,
    y_test: Any = None,
    scoring: Any = "accuracy",
    sample_weight: Any = None,
    groups: Any = None,
    n_splits: int | None = None,
    test_size: float | int = 0.2,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> SparsityPath:
    """The scores of a model for every number of features.

    The model is fitted once for each fold, and one pass over the test samples of the fold scores
    every k (Remark 6 of [1]_): the scores are those of a model fitted with each k. Multinomial
    naive Bayes is solved for each k from the class sums of the one fit, as a fit with that k is.

    Parameters
    ----------
    estimator : estimator
        One of the models of this package. Its ``k`` does not matter, and it is not changed.
    X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        As in ``fit``. Folds are cut where X lives; only labels and decision values of the test
        samples come to the host.
    y : array of shape (n_samples,)
    ks : iterable of int, float or "all", optional
        Numbers of features, or fractions of them. By default about 40 geometric steps from 1 to
        all features.
    cv : int, splitter or iterable, optional
        As in `sklearn.model_selection.cross_validate`. By default 5 stratified folds. A fold may
        leave samples out, and repeat samples.
    X_test, y_test : array-likes, optional
        Test samples; then all of X is for training, and there is one fold.
    scoring : str, callable, list, tuple or dict, default="accuracy"
        As in `sklearn.model_selection.cross_validate`. Scorers are called for predictions,
        decision values and probabilities, not for other attributes of a fitted model.
    sample_weight : array of shape (n_samples,), optional
        Passed to ``fit``, and to scorers where scikit-learn's metadata routing is enabled and
        they request it.
    groups : array of shape (n_samples,), optional
        Passed to the splitter.
    n_splits : int, optional
        With it the folds are that many random splits: stratified, or of whole groups with
        ``groups``.
    test_size : float or int, default=0.2
        Share or number of test samples (groups) in each random split.
    random_state : int, RandomState instance or None, default=None
        Of the random splits.
    n_jobs : int, optional
        Folds that are worked on at once, in threads.

    Returns
    -------
    SparsityPath

    Raises
    ------
    ValueError
        Where a fold cannot be fitted or scored, as one that lacks a class; the message names it.
        For groups that are missing, or of another shape, with their row.

    References
    ----------
    .. [1] G. Calafiore and G. Fracastoro, "Sparse l1 and l2 Center Classifiers", IEEE Trans. Neural
       Networks and Learning Systems 33(3), 2022. Remark 6.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import L2CenterClassifier, sparsity_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = sparsity_path(L2CenterClassifier(scale="std"), X, y, ks=[1, 3, 10, 30])
    >>> path.mean.round(3)
    array([0.903, 0.946, 0.937, 0.931])
    >>> path.best_k
    3
    """
    name = "sparsity_path"
    check_model(estimator, name)
    names = _names(X)
    X = _by_rows(check_container(X, name))
    labels = host_labels(y, name, X.shape[0])
    classes, _ = encode(labels)
    ks = resolve_ks(ks, X.shape[1])
    check_weights(sample_weight, X.shape[0])
    scorers = Scoring(scoring, estimator)
    every_k = clone(estimator).set_params(k="all")
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test must be given together.")
    if X_test is not None:
        if cv is not None or n_splits is not None or groups is not None:
            raise ValueError(
                "X_test excludes cv, groups and n_splits: its samples are the one test fold."
            )
        params = {} if sample_weight is None else {"sample_weight": sample_weight}
        others = _names(X_test)
        if names is not None and others is not None and names.tolist() != others.tolist():
            raise ValueError("X_test has other columns than X, or in another order.")
        X_test = _by_rows(check_container(X_test, name))
        y_test = as_classes(host_labels(y_test, name, X_test.shape[0]), classes)
        model = every_k.fit(X, labels, **params)
        results = [_scored(model, X_test, y_test, ks, scorers, {})]
    else:
        groups = None if groups is None else check_groups(groups, X.shape[0])
        splitter = make_splitter(cv, labels, groups, n_splits, test_size, random_state)
        routed = route(estimator, splitter, scorers, sample_weight, groups)
        folds = split(X, labels, splitter, routed.split)
        check_test_weights(folds, check_weights(routed.score.get("sample_weight"), X.shape[0]))
        held_out = _held_out(every_k, X, labels, folds, routed)

        def evaluate(number: int, fold: Fold) -> _Result:
            n = len(labels)
            with naming_fold(number):
                fit = take_of_each(routed.fit, fold.train, n)
                score = take_of_each(routed.score, fold.test, n)
                X_test, y_test, model = take_rows(X, fold.test), labels[fold.test], None
                if held_out is not None and fold.is_partition(n):
                    model = held_out.fit(X_test, fold.test)
                if model is None:
                    train = take_rows(X, fold.train), labels[fold.train]
                    model = clone(every_k).fit(*train, **fit)
                return _scored(model, X_test, y_test, ks, scorers, score)

        if effective_n_jobs(n_jobs) == 1:  # without joblib, so that warnings name the caller's line
            results = [evaluate(*fold) for fold in enumerate(folds)]
        else:
            parallel = Parallel(n_jobs=n_jobs, prefer="threads")
            results = parallel(delayed(evaluate)(*fold) for fold in enumerate(folds))
    scores = {
        key: np.stack([result.scores[key] for result in results], axis=1)
        for key in results[0].scores
    }
    return SparsityPath(
        np.asarray(ks),
        scores,
        n_features=X.shape[1],
        estimator=type(estimator).__name__,
        single=scorers.single and len(scores) == 1,
        supports=partial(_sum_of_changes, [r.changes for r in results], (len(ks), X.shape[1])),
        feature_names=names,
    )


def check_model(estimator: Any, caller: str) -> None:
    """Raise a TypeError unless the estimator is a model of this package."""
    if isinstance(estimator, type):
        raise TypeError(
            f"{caller} takes a model, got the class {estimator.__name__}: pass an instance, as "
            f"{estimator.__name__}()."
        )
    check_center_classifier(
        estimator,
        caller,
        " In a Pipeline use SparsityPathCV with such a model as the last step.",
    )


def _held_out(
    model: Any, X: Any, y: np.ndarray, folds: list[Fold], routed: Routed
) -> HeldOut | None:
    """The statistics of all samples, where folds are fitted from them in less time."""
    read = len(y) + sum(len(fold.test) for fold in folds)
    if read >= sum(len(fold.train) for fold in folds) or not is_sparse(X):
        return None
    return HeldOut.of(model, X, y, check_weights(routed.fit.get("sample_weight"), len(y)))


class _Result(NamedTuple):
    """The scores of one fold, S numbers for each name, and the changes of its support."""

    scores: dict[str, np.ndarray]
    changes: tuple[np.ndarray, ...]


def _scored(
    model: Any, X: Any, y: np.ndarray, ks: list[int], scoring: Scoring, params: Mapping[str, Any]
) -> _Result:
    """The scores of test samples for every k, by a model that is fitted to others."""
    found = predict_path(
        model,
        X,
        ks,
        decision=scoring.needs_decision,
        probability=scoring.needs_probability,
        in_doubt=lambda found: scoring.in_doubt(found, model.classes_, y),
    )
    return _Result(scoring(found, model.classes_, X, y, params), found.changes)


def _sum_of_changes(
    folds: list[tuple[np.ndarray, ...]], shape: tuple[int, int]
) -> scipy.sparse.csr_array:
    """In how many folds each feature enters at each k, less in how many it leaves: (S, m)."""
    total = scipy.sparse.csr_array(shape, dtype=np.int32)
    for features, numbers, signs in folds:
        total = total + scipy.sparse.csr_array((signs, (numbers, features)), shape=shape)
    total.eliminate_zeros()
    return total


def _names(X: Any) -> np.ndarray | None:
    """The column names of a data frame."""
    names = None if is_sparse(X) else getattr(X, "columns", None)
    return None if names is None else np.asarray(list(names), dtype=object)


def _by_rows(X: Any) -> Any:
    """X, a matrix in CSR: rows are cut out of it."""
    return X.tocsr() if is_sparse(X) and X.format != "csr" else X


class SparsityPathDisplay:
    """A picture of scores against the number of features.

    Use `from_estimator` or `from_path` to make it; several may be drawn into the same axes.

    Parameters
    ----------
    path : SparsityPath
    name : str, optional
        The label of the line. By default the name of the model.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Artist
        The line of mean scores.
    band_ : matplotlib Artist or None
        The band of one standard deviation; None for one fold.
    best_, best_1se_ : matplotlib Artists
        The marks of the k of best mean score, and of that within one standard error of it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import L1CenterClassifier, SparsityPathDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> SparsityPathDisplay.from_estimator(L1CenterClassifier(scale="std"), X, y)  # doctest: +SKIP
    <...>
    """

    def __init__(self, path: SparsityPath, *, name: str | None = None) -> None:
        self.path = path
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Compute the path of a model, and draw it.

        Parameters
        ----------
        estimator : estimator
            A model of this package.
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        name : str, optional
            The label of the line.
        ax : matplotlib Axes, optional
        **options : dict
            Parameters of `sparsity_path`.

        Returns
        -------
        SparsityPathDisplay
        """
        return cls.from_path(sparsity_path(estimator, X, y, **options), name=name, ax=ax)

    @classmethod
    def from_path(
        cls, path: SparsityPath, *, name: str | None = None, ax: Any = None, **options: Any
    ) -> Self:
        """Draw a path that is computed already.

        Parameters
        ----------
        path : SparsityPath
        name : str, optional
            The label of the line.
        ax : matplotlib Axes, optional
        **options : dict
            Parameters of `plot`.

        Returns
        -------
        SparsityPathDisplay
        """
        return cls(path, name=name).plot(ax=ax, **options)

    def plot(
        self, ax: Any = None, *, scoring: str | None = None, name: str | None = None, **line: Any
    ) -> Self:
        """Draw the path: mean scores, a band of one standard deviation, and the choices of k.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default new ones.
        scoring : str, optional
            By default the first one of the path.
        name : str, optional
            The label of the line.
        **line : dict
            Passed to ``ax.plot``.

        Returns
        -------
        SparsityPathDisplay
        """
        label = name or self.name
        found = draw_path(self.path, ax, scoring=scoring, name=label, **line)
        self.line_, self.band_, self.best_, self.best_1se_ = found
        self.ax_ = self.line_.axes
        self.figure_ = self.ax_.figure
        return self
