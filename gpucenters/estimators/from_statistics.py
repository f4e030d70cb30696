"""Models that are functions of statistics: fitted in batches, and from merged statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from ..arrays.backend import resolve_backend
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.inputs import exact_values
from ..blocks import Block
from ..blocks.samples import Samples, raise_without_weight
from ..solvers.centers import Centers
from ..statistics.base import Statistics
from ..statistics.recipe import Recipe
from .base import CenterClassifier
from .fitted import Fitted, FittedModel, adopt, commit, labels
from .validation import (
    check_backend,
    check_X,
    encode,
    encode_against,
    host_labels,
    raise_for_one_class,
    validated,
)


class StatisticsClassifier(CenterClassifier):
    """Base of the models that are functions of statistics.

    A subclass says which statistics it needs (`_recipe`), solves from them (`_solve_from`), and
    says which parameters a solution depends on (`_solution_params`) and which of these a stream
    must keep (`_kept_params`).
    """

    _kept_params: tuple[str, ...] = ()
    _fits_in_parts = True

    def _check_classes(self, weight: tuple[float, ...]) -> None:
        """Raise for priors that do not fit classes of these weights."""
        self._priors(self.__dict__, weight)

    def _check_streaming(self, params: dict[str, Any]) -> None:
        """Raise for parameters that cannot change after the call with these ``params``."""
        for name in self._kept_params:
            if getattr(self, name) != params[name]:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is not the same as on the last call to "
                    f"partial_fit: {params[name]!r}."
                )

    def _refuse_balanced(self, method: str) -> None:
        """Raise for class weights that only all samples together have."""
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight='balanced' is not supported in {method}(), which does not see all "
                "samples: pass a dict from labels to weights, as of "
                "sklearn.utils.class_weight.compute_class_weight."
            )

    def _recipe(self) -> Recipe:
        """The statistics that the model needs."""
        raise NotImplementedError

    def _recipe_of_parts(self) -> Recipe:
        """The statistics to keep where more samples may follow."""
        return self._recipe()

    def _check_data(self, block: Block, n_classes: int, ctx: Context, *, mergeable: bool) -> None:
        """Raise for data that the parameters do not fit, before any work."""

    def _make_statistics(
        self,
        block: Block,
        samples: Samples,
        ctx: Context,
        *,
        mergeable: bool,
        nonzero: bool = False,
    ) -> Any:
        """The statistics of a block that is seen whole."""
        self._check_data(block, samples.n_classes, ctx, mergeable=mergeable)
        recipe = self._recipe_of_parts() if mergeable else self._recipe()
        return replace(recipe, nonzero=nonzero).of(block, samples, ctx, mergeable=mergeable)

    def _solve_from(self, statistics: Any, params: dict[str, Any], ctx: Context) -> Centers:
        """The solution from statistics alone, by the parameters of the fit."""
        raise NotImplementedError

    def _solve(self, block: Block, samples: Samples, ctx: Context) -> Fitted:
        self._check_classes(tuple(samples.class_weight))
        return self._solved(self._make_statistics(block, samples, ctx, mergeable=False), ctx)

    def _solved(self, statistics: Statistics, ctx: Context, solve: Any = None) -> Fitted:
        """The fitted state for statistics, by `_solve_from` or a function like it."""
        params = self._params()
        centers = (solve or self._solve_from)(statistics, params, ctx)
        selection = centers.select(self.k, ctx)
        return Fitted(statistics.backend, centers, params, statistics, selection)

    # --- statistics ----------------------------------------------------------------------------

    def statistics(
        self,
        X: Any,
        y: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        nonzero: bool = False,
    ) -> Statistics:
        """The statistics of some samples, for `fit_statistics`; the model stays as it is.

        ``a.merge(b)`` adds the statistics b of another shard to a, in place. Both need the same
        ``classes`` and the parameters that decide what is kept (``scale``, ``binarize``, whether
        ``shrinkage`` is "auto" or "ledoit-wolf"); k, priors and smoothing may differ. Statistics
        pickle, and move to another device with ``to``. Factors of ``class_weight`` are in them, and
        "balanced" is refused.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels, among ``classes`` if these are given.
        classes : array of shape (n_classes,), optional
            All labels that any shard has; by default those in ``y``.
        sample_weight : array of shape (n_samples,), optional
        nonzero : bool, default=False
            Whether to count, in the same pass, the values other than zero of each class and
            feature: ``nonzero`` of the statistics, the sums of the weights of their samples.

        Returns
        -------
        Statistics

        Examples
        --------
        >>> from gpucenters import L2CenterClassifier
        >>> model = L2CenterClassifier(k=1)
        >>> shards = [([[0.0, 1.0], [2.0, 1.0]], [0, 1]), ([[0.5, 3.0], [3.0, 3.0]], [0, 1])]
        >>> parts = [model.statistics(X, y, classes=[0, 1]) for X, y in shards]
        >>> model.fit_statistics(parts[0].merge(parts[1])).support_
        array([0])
        """
        self._check_parameters()
        self._refuse_balanced("statistics")
        if nonzero and self._recipe().kind == "cross moments":
            raise ValueError(f"the statistics of {type(self).__name__} have no nonzero counts.")
        checked, attributes = validated(self, X, in_parts=True)
        given = host_labels(y, type(self).__name__, checked.shape[0])
        if classes is None:
            known, codes = encode(given)
        else:
            known = self._given(classes)
            codes = encode_against(given, known)

        def make(ctx: Context) -> Statistics:
            block, samples = self._enter(checked, codes, known, sample_weight, ctx)
            return self._make_statistics(block, samples, ctx, mergeable=True, nonzero=nonzero)

        backend = resolve_backend(self.device, checked)
        found = run_with_oom_retry(make, backend, self.memory_budget, verbose=self.verbose)
        found.classes, found.feature_names = known, attributes.get("feature_names_in_")
        return found

    def fit_statistics(self, statistics: Statistics) -> Self:
        """Fit the model from statistics alone, as `fit` does from the samples they are made of.

        Parameters
        ----------
        statistics : Statistics
            From `statistics` of this kind of model, merged or not. They stay as they are.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For statistics that do not hold what this model needs, or a class without weight.
        """
        self._check_parameters()
        self._refuse_balanced("fit_statistics")
        name = type(self).__name__
        self._check_statistics(statistics, f"{name}.fit_statistics")
        raise_for_one_class(name, labels(statistics))
        raise_without_weight(statistics.count, labels(statistics))
        adopt(self, statistics.to(resolve_backend(self.device, statistics.total)), solved=True)
        return self

    def _check_statistics(self, statistics: Any, caller: str) -> None:
        """Raise for what does not hold what this model needs."""
        if not isinstance(statistics, Statistics):
            raise TypeError(
                f"{caller}() takes what statistics() returns, got {type(statistics).__name__}."
            )
        if not statistics.recipe.serves(self._recipe()):
            raise ValueError(
                f"{type(self).__name__} with these parameters needs {self._recipe()}, got "
                f"{statistics.recipe}. Make the statistics with the parameters of this model."
            )

    # --- batches -------------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of samples: statistics are kept, never the data (Remark 5 of the paper).

        Any split of the rows gives the model that `fit` gives on all of them: to the bit for class
        sums and raw squares of integers (naive Bayes, l2 on sparse data), and up to rounding for
        centred moments (dense l2, Mahalanobis). A call that fails leaves the model as it was.
        A class of which no sample has come yet has the tied parameters, the score -inf and the
        probability 0: a warning names it when the model is first used.

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
        self._check_parameters()
        self._refuse_balanced("partial_fit")
        known = self._known_classes(classes)
        self._check_classes((1.0,) * len(known))
        return self._add_batch(X, y, known, sample_weight)

    def _add_batch(self, X: Any, y: Any, known: np.ndarray, sample_weight: Any = None) -> Self:
        """`partial_fit` with classes that are known and checked."""
        kept = None
        if hasattr(self, "_fitted"):
            kept, backend = FittedModel(self).statistics("partial_fit"), self._fitted.backend
            self._check_streaming(self._fitted.params)
            checked = check_X(self, X, reset=False, in_parts=True)
            check_backend(self, checked, "partial_fit")
        else:
            checked, attributes = validated(self, X, in_parts=True)
            backend = resolve_backend(self.device, checked)
        codes = encode_against(host_labels(y, type(self).__name__, checked.shape[0]), known)

        def add(ctx: Context) -> Statistics:
            block, samples = self._enter(checked, codes, known, sample_weight, ctx)
            if kept is None:
                self._check_data(block, len(known), ctx, mergeable=True)
                empty = self._recipe_of_parts().empty(block, len(known))
                return empty.add_batch(block, samples, ctx)
            return kept.add_batch(block, samples, ctx, shared=self._fitted.shared)

        params = self._params()
        statistics = run_with_oom_retry(add, backend, self.memory_budget, verbose=self.verbose)
        fitted = Fitted(backend, None, params, statistics)
        if kept is None:
            commit(self, attributes, known, fitted)
        else:
            self._fitted = fitted
        return self

    def _known_classes(self, classes: Any) -> np.ndarray:
        """The classes of a stream, as a call to ``partial_fit`` names them."""
        first = not hasattr(self, "_fitted")
        if classes is None:
            if first:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            return self.classes_
        given = self._given(classes)
        if not first and given.tolist() != self.classes_.tolist():
            raise ValueError(
                f"classes={given.tolist()} is not the same as on the last call to partial_fit: "
                f"{self.classes_.tolist()}."
            )
        return given

    @staticmethod
    def _given(classes: Any) -> np.ndarray:
        """The sorted distinct labels that the user names."""
        if isinstance(classes, set | frozenset):
            classes = list(classes)
        given = encode(np.asarray(exact_values(classes, "classes")).ravel(), "classes")[0]
        if len(given) < 2:
            raise ValueError(f"classes must name at least two classes, got {given.tolist()}.")
        return given
