"""Sparse center classifier in Mahalanobis distance, with a full covariance."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .._docstrings import filled
from ..arrays.context import Context
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..reductions.products import product
from ..solvers.centers import needs_full
from ..solvers.covariance import (
    check_covariance,
    covariance_matrix,
    given_covariance,
    is_pooled,
)
from ..solvers.mahalanobis import MahalanobisCenters, solve_mahalanobis
from ..solvers.user_input import check_priors
from ..statistics.cross_moments import CrossMoments, check_size
from ..statistics.recipe import Recipe
from .base import LinearClassifier, read_only
from .fitted import Fitted, FittedModel, formed, learned
from .from_statistics import StatisticsClassifier


@filled
class MahalanobisCenterClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, LinearClassifier, StatisticsClassifier
):
    """Sparse center classifier in Mahalanobis distance, and a transformer to the features it uses.

    Nearest class mean in the distance that a covariance S of the features defines (Section IV-A of
    [1]_). The features are transformed to xi = S^(-1/2) x, with the symmetric root, and the means
    of xi may differ between classes in k of the transformed features only: the k for which the
    within-class distance is provably least. With all of them this is linear discriminant analysis
    (scikit-learn's divides the covariance by the sum of weights, and weighs the classes by the
    priors).
    One pass over X solves the problem for every k at once: see `with_k`.

    Each transformed feature is a mixture of all features of X, most of it (as far as S allows) of
    the one that has its number. So this model selects no features of X. For the diagonal form,
    which does, see `L2CenterClassifier` with ``scale="pooled"``.

    Parameters
    ----------
    k : int, float or "all", default="all"
        The number of transformed features (int >= 1), a fraction of them (float in (0, 1]), or all.
    covariance : {"pooled", "total"} or array of shape (n_features, n_features), default="pooled"
        S: the covariance within the classes (divisor: the sum of weights less the number of
        classes), over all samples (divisor: the sum of weights less 1), or given, symmetric and
        positive definite. Where a divisor would be less than 1/2 the weights cannot be numbers of
        repetitions, and it is the sum of weights, with a warning.
    shrinkage : {"auto", "ledoit-wolf"}, float in [0, 1] or None, default="auto"
        Replace S by ``(1 - shrinkage) * S + shrinkage * trace(S) / n_features * identity``.
        "ledoit-wolf" chooses the amount from the data, for ``covariance="pooled"``: S is then that
        of `sklearn.covariance.ledoit_wolf` on the samples less their class means (whose divisor is
        the sum of weights). "auto" leaves a regular S as it is, and shrinks a singular one, with a
        warning: as "ledoit-wolf" does where S is pooled, and else (or where that is too little) by
        the least amount that makes S regular. An S of zero becomes the identity. With None or a
        number, a singular S is an error.
    memory_budget : int or str, default=None
        Workspace in bytes or as "2GB", here with the matrices of the model. None is a quarter of
        what is free.

    Attributes
    ----------
    support_ : ndarray of shape (k,), int64
        Selected transformed features, ascending, on the host.
    scores_ : array of shape (n_features,), float64
        Gain of each transformed feature: how much the objective falls if its centers may differ.
    centers_ : array of shape (n_classes, k), float64
        Class centers on the support, in the units of ``transform(X)``: transformed features mix
        those of X and have none of its units. `means_` has the class means in the units of X.
    means_ : array of shape (n_classes, n_features), float64
        Class means of X.
    covariance_ : array of shape (n_features, n_features), float64
        S, shrunk as was asked for.
    shrinkage_ : float
        The amount by which S was shrunk; 1 where the identity took the place of an S of zero.
    transformation_ : array of shape (n_features, n_features), float64
        S^(-1/2), symmetric: ``transform(X)`` is ``X @ transformation_[:, support_]``.
    scale_ : None
    objective_ : float
        Sum over classes of the mean squared distance to the center, of transformed features.
    coef_ : array of shape (1, n_features) or (n_classes, n_features), float64
        The decision is ``X @ coef_.T + intercept_``, on the features of X itself.

    Notes
    -----
    The covariance takes matrices of n_features x n_features numbers, and a stream one more for each
    class. Where they do not fit into the memory budget, a MemoryError says so before anything is
    allocated. `fit` keeps the matrices of the classes apart as well, so that `partial_fit` can go
    on from there, unless they have more than 2**24 numbers: then begin with `partial_fit`.

    The amount of Ledoit and Wolf needs fourth moments. With "auto", `fit` reads X a second time for
    them where S is singular. `partial_fit` and `statistics` keep them from the first batch on,
    since the data do not come again; statistics without them (of a model with a number or None for
    ``shrinkage``) serve "auto" as well, which then shrinks a singular S by the least amount.

    Sparse data are never made dense but for a few rows at a time.

    References
    ----------
    .. [1] G. Calafiore and G. Fracastoro, "Sparse l1 and l2 Center Classifiers", IEEE Trans. Neural
       Networks and Learning Systems 33(3), 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from gpucenters import MahalanobisCenterClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MahalanobisCenterClassifier(k=4).fit(X, y)
    >>> model.transform(X).shape
    (178, 4)
    >>> round(model.score(X, y), 2), round(model.with_k("all").score(X, y), 2)
    (0.97, 1.0)
    """

    def __init__(
        self,
        k: int | float | str = "all",
        *,
        covariance: Any = "pooled",
        shrinkage: float | str | None = "auto",
        priors: Any = "uniform",
        device: str | None = None,
        memory_budget: int | str | None = None,
        verbose: bool = False,
    ) -> None:
        self.k = k
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.priors = priors
        self.device = device
        self.memory_budget = memory_budget
        self.verbose = verbose

    _solution_params = ("k", "covariance", "shrinkage", "priors")
    _per_score = 0.5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_priors(self.priors)
        check_covariance(self.covariance, self.shrinkage)

    # --- fitting -------------------------------------------------------------------------------

    def _recipe(self) -> Recipe:
        return Recipe("cross moments", fourth=self.shrinkage == "ledoit-wolf")

    def _recipe_of_parts(self) -> Recipe:
        # "auto" needs fourth moments as well, or the data once more, which are gone by then.
        automatic = self.shrinkage == "auto" and is_pooled(self.covariance)
        return Recipe("cross moments", fourth=self._recipe().fourth or automatic)

    def _check_data(self, block: Block, n_classes: int, ctx: Context, *, mergeable: bool) -> None:
        """Raise for data too wide, or that a given covariance does not fit, before any work."""
        recipe, m = self._recipe_of_parts() if mergeable else self._recipe(), block.shape[1]
        check_size(m, n_classes, ctx.limit, fourth=recipe.fourth, streaming=mergeable)
        if not isinstance(self.covariance, str):
            given_covariance(self.covariance, m, block.backend)

    def _check_streaming(self, params: dict[str, Any]) -> None:
        moments = self._fitted.statistics
        if self._recipe().fourth and moments is not None and not moments.recipe.fourth:
            raise ValueError(
                "shrinkage='ledoit-wolf' needs sums that earlier calls did not keep: set it before "
                "the first batch."
            )

    def _solve(self, block: Block, samples: Samples, ctx: Context) -> Fitted:
        self._check_classes(tuple(samples.class_weight))
        moments = self._make_statistics(block, samples, ctx, mergeable=False)
        read_again = partial(moments.add_higher_moments, block, samples, ctx)
        return self._solved(moments, ctx, partial(self._solve_from, read_again=read_again))

    def _solve_from(
        self,
        statistics: CrossMoments,
        params: dict[str, Any],
        ctx: Context,
        read_again: Callable[[], None] | None = None,
    ) -> MahalanobisCenters:
        kind = params["covariance"], params["shrinkage"]
        return solve_mahalanobis(statistics, *kind, read_again)

    # --- the solution --------------------------------------------------------------------------

    @formed
    def means_(self, fitted: FittedModel, ctx: Context) -> Array:
        """Class means; float64 of shape (n_classes, n_features), in the units of X."""
        found, _ = fitted.located()
        of_met = found.total / ctx.backend.asarray(list(found.class_weight))[:, None]
        return fitted.of_every_class(of_met, found.tied_center)

    @formed
    def covariance_(self, fitted: FittedModel, ctx: Context) -> Array:
        """The covariance S, shrunk; float64 of shape (n_features, n_features)."""
        moments, centers = fitted.met_statistics("covariance_"), fitted.located()[0]
        return covariance_matrix(moments, fitted.state.params["covariance"], centers.shrinkage)

    @learned
    def shrinkage_(self) -> float:
        """The amount by which the covariance was shrunk to a multiple of the identity."""
        return FittedModel(self).located()[0].shrinkage.amount

    @learned
    def transformation_(self) -> Array:
        """S^(-1/2); float64 of shape (n_features, n_features)."""
        fitted = FittedModel(self)
        centers: Any = fitted.centers
        if fitted.located()[0] is not centers:
            raise needs_full("transformation_, which is of all features,")
        return read_only(centers.root)

    # --- transforming --------------------------------------------------------------------------

    @learned
    def _n_features_out(self) -> int:
        return len(FittedModel(self).support)

    def transform(self, X: Any) -> Any:
        """The selected transformed features of X: columns ``support_`` of ``X @ S^(-1/2)``.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, k), float64
            Dense, in the library and on the device of X (or as ``set_output`` says).
        """
        fitted = FittedModel(self)
        centers, columns = fitted.located()

        def mix(block: Block, ctx: Context) -> Array:
            coef = ctx.backend.xp.take(centers.root, columns, axis=1)
            shift = ctx.backend.zeros(coef.shape[0])
            return product(block, ctx.backend.arange(self.n_features_in_), shift, coef, ctx)

        overflow = "the transformed features of row {row} of X overflow float64."
        found, backend = fitted.finite_rows(X, "transform", mix, overflow)
        return backend.move(found)
