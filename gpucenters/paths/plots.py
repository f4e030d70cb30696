"""Pictures of sparsity paths and of class centers. Matplotlib is imported when they are drawn."""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..arrays.namespace import to_numpy
from ..estimators.base import check_center_classifier
from .drawing import draw_centers, draw_path
from .result import SparsityPath
from .sparsity_path import sparsity_path


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


def plot_centers(
    estimator: Any,
    n: int = 20,
    *,
    feature_names: Any = None,
    scaled: bool | None = None,
    ax: Any = None,
) -> Any:
    """Draw the class centers of the features of largest gain.

    Centers in units of X whose differences are of very different sizes have a logarithmic axis.

    Parameters
    ----------
    estimator : estimator
        A fitted model of this package, whose ``k`` limits the features, or a search for one.
    n : int, default=20
        Number of features at most.
    feature_names : array of shape (n_features,), optional
        Of the features of X, as from ``CountVectorizer.get_feature_names_out()``. By default those
        that the model has.
    scaled : bool, optional
        Whether to draw centers less the mean of those of all classes, divided by ``scale_``: the
        differences by which features are ranked. By default where ``scale_`` is of deviations.
    ax : matplotlib Axes, optional
        By default new ones, large enough for the names.

    Returns
    -------
    matplotlib Axes
        One row for each feature, the one of largest gain on top, with one point for each class.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import L2CenterClassifier, plot_centers
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> plot_centers(L2CenterClassifier(k=5, scale="std").fit(X, y))  # doctest: +SKIP
    <Axes: ...>
    """
    estimator = getattr(estimator, "best_estimator_", estimator)  # of a search
    check_center_classifier(estimator, "plot_centers")
    check_is_fitted(estimator)
    if isinstance(n, bool) or not isinstance(n, numbers.Integral) or n < 1:
        raise ValueError(f"n={n!r} is not valid: use a number of features of at least 1.")
    chosen = estimator.ranking_[:n]
    position = np.searchsorted(estimator.support_, chosen)
    centers = to_numpy(estimator.centers_)[:, position]
    names = _names(estimator, feature_names)[position if feature_names is None else chosen]
    scale = estimator.scale_
    if scaled is None:
        scaled = scale is not None and getattr(estimator, "scale", None) != "dispersion"
    if scaled:
        if scale is None:
            raise ValueError("scaled=True needs a model with scale_, as one with scale='std' has.")
        centers = (centers - centers.mean(axis=0)) / to_numpy(scale)[chosen]
    return draw_centers(centers, names, estimator.classes_.tolist(), ax, scaled=scaled)


def _names(estimator: Any, feature_names: Any) -> np.ndarray:
    """Names of the features of the support, or those that are given, of all features."""
    if feature_names is None:
        return np.asarray(estimator.get_feature_names_out())
    names = np.asarray(feature_names)
    if names.shape != (estimator.n_features_in_,):
        raise ValueError(
            f"feature_names has shape {names.shape}, but X has {estimator.n_features_in_} features."
        )
    return names
