"""The base of all models: fitting, the solution, predicting."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from ..arrays.backend import Backend, resolve_backend
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.namespace import array_namespace
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.convert import as_block
from ..blocks.samples import Samples, make_samples, raise_without_weight
from ..blocks.transforms import ValueTransform
from ..files.container import write
from ..files.state import Packer
from ..solvers.decisions import Decision
from .fitted import Fitted, FittedModel, commit, learned
from .saving import pack_model
from .validation import (
    accuracy,
    check_class_weight,
    decode,
    encode,
    host_labels,
    raise_for_one_class,
    snapshot,
    validated,
    with_class_weight,
)


class Classifier(ClassifierMixin, BaseEstimator):
    """Base of all models: a subclass solves and selects (`_solve`)."""

    _fitted: Fitted
    classes_: np.ndarray
    n_features_in_: int
    objective_: Any
    device: str | None
    memory_budget: int | str | None
    verbose: bool
    class_weight: Any = None  # the parameter of the models whose decision it shifts
    _fits_in_parts = False  # whether X is read once in parts, and may be on disk
    _solution_params: tuple[str, ...]  # names of the parameters that the solution depends on
    _linear = False  # whether scores are products with the values of X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __dir__(self) -> list[str]:
        # scikit-learn's form asks for each attribute, which would form the wide ones.
        def is_there(name: str) -> bool:
            if isinstance(getattr(type(self), name, None), learned):
                return self.__sklearn_is_fitted__()
            return hasattr(self, name)

        return [name for name in object.__dir__(self) if is_there(name)]

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """What scikit-learn shows in a notebook: only what is there, and narrow."""
        names = ["classes_", "n_features_in_", "feature_names_in_"]
        if hasattr(self, "_fitted") and self._fitted.selection is not None:
            names += ["support_", "ranking_", "objective_"]
        values = {name: getattr(self, name) for name in names if hasattr(self, name)}
        shown = BaseEstimator._get_fitted_attr_html(SimpleNamespace(**values), doc_link)
        shown.estimator_class = type(self)
        return shown

    # --- fitting -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Dense arrays of any array-API library that can be changed in place (not JAX, Dask and
            other lazy ones), memory maps, CSR or CSC of SciPy or cupyx, of any real type. Never
            changed; sparse data are never made dense. Models that class statistics determine also
            read dense arrays and CSR on disk (h5py, Zarr; a backed AnnData) in parts.
        y : array of shape (n_samples,)
            Class labels: numbers or strings, at least two classes.
        sample_weight : array of shape (n_samples,), optional
            Non-negative. Weights count as repetitions; 0 leaves a sample out.

        Returns
        -------
        self
        """
        self._check_parameters()
        fitted, attributes, classes = self._on_samples(self._solve, X, y, sample_weight)
        commit(self, attributes, classes, fitted)
        if self.verbose:
            print(
                f"{type(self).__name__}: {len(y):,} x {self.n_features_in_:,} in {fitted.backend}, "
                f"{len(classes)} classes, {len(self.support_):,} features selected, "
                f"objective {np.sum(self.objective_):.6g}"
            )
        return self

    def _on_samples(
        self, solve: Callable[[Block, Samples, Context], Any], X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, dict[str, Any], np.ndarray]:
        """(``solve(block, samples, context)``, the attributes that X sets, the classes)."""
        checked, attributes = validated(self, X, in_parts=self._fits_in_parts)
        classes, codes = self._encoded(y, checked.shape[0])

        def work(ctx: Context) -> Any:
            block, samples = self._enter(checked, codes, classes, sample_weight, ctx)
            raise_without_weight(samples.count, classes)
            return solve(block, samples, ctx)

        backend, budget = resolve_backend(self.device, checked), self.memory_budget
        found = run_with_oom_retry(work, backend, budget, verbose=self.verbose)
        return found, attributes, classes

    def _encoded(self, y: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
        """The classes and the code of each sample; raises for fewer than two classes."""
        classes, codes = encode(host_labels(y, type(self).__name__, n_samples))
        raise_for_one_class(type(self).__name__, classes)
        return classes, codes

    def __copy__(self) -> Self:
        new = self.__class__.__new__(self.__class__)
        new.__dict__.update(self.__dict__)
        if hasattr(self, "_fitted"):
            self._fitted.share()  # a batch for one must not change the other
        return new

    def _enter(
        self, X: Any, codes: np.ndarray, classes: np.ndarray, sample_weight: Any, ctx: Context
    ) -> tuple[Block, Samples]:
        block = self._read(as_block(X, ctx.backend, checked=True))
        return block, self._samples(codes, classes, sample_weight, ctx)

    def _samples(
        self, codes: np.ndarray, classes: np.ndarray, sample_weight: Any, ctx: Context
    ) -> Samples:
        """The samples with their weights, those of the classes among them."""
        weight = with_class_weight(self.class_weight, classes, codes, sample_weight)
        n, k = len(codes), len(classes)
        return make_samples(codes, n, ctx.backend, n_classes=k, sample_weight=weight)

    def _value_transform(self) -> ValueTransform | None:
        """What this model takes in place of each value of X; None for the values themselves."""
        return None

    def _read(self, block: Block) -> Block:
        """The block with its values as this model takes them."""
        return replace(block, transform=self._value_transform())

    def _check_parameters(self) -> None:
        """Raise for parameters that are wrong whatever the data are."""
        check_class_weight(self.class_weight)
        verbose: Any = self.verbose
        if not isinstance(verbose, bool | np.bool_ | numbers.Integral) or verbose < 0:
            raise ValueError(f"verbose={verbose!r} is not valid: use True, False or an int >= 0.")

    def _solve(self, block: Block, samples: Samples, ctx: Context) -> Fitted:
        """The fitted state, with centers and selection."""
        raise NotImplementedError

    def _params(self) -> dict[str, Any]:
        """The parameters that the solution depends on, as they are now."""
        return {name: snapshot(getattr(self, name)) for name in self._solution_params}

    # --- predicting ----------------------------------------------------------------------------

    def _priors(self, params: dict[str, Any], weight: tuple[float, ...]) -> list[float]:
        """Log priors of classes of these weights, -inf for a weight of 0; none without priors.

        ``params`` are the parameters of the fit, or those of the model.
        """
        return []

    def _decision(self, fitted: FittedModel) -> Decision:
        """The decision for the support."""
        return fitted.centers.decision(fitted.selection.support, fitted.log_prior_of_met)

    def _rows(self, X: Any, ctx: Context) -> Block:
        """Rows to predict, checked, as this model reads them."""
        # Products with the values as they are need no sum of duplicate entries.
        summed = not self._linear or self._value_transform() is not None
        return self._read(as_block(X, ctx.backend, summed=summed, checked=True))

    @learned
    def support_(self) -> np.ndarray:
        """The selected features, ascending; int64 of shape (k,), on the host."""
        return FittedModel(self).support

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
        scores, backend = FittedModel(self).scores(X, "decision_function")
        return backend.move(scores[:, 0] if scores.shape[1] == 1 else scores)

    def _predict_codes(self, X: Any, method: str) -> tuple[Array, Backend]:
        scores, backend = FittedModel(self).scores(X, method)
        xp = array_namespace(scores)
        with self._fitted.backend.current():
            if scores.shape[1] == 1:
                return xp.astype(scores[:, 0] > 0, xp.int64), backend
            return xp.argmax(scores, axis=1), backend

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
        codes, backend = self._predict_codes(X, "predict")
        return decode(codes, self.classes_, backend)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict` on the given samples.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels that the model does not know are misses.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float

        Raises
        ------
        TypeError, ValueError
            As scikit-learn's ``accuracy_score``: for labels that are missing, continuous, or
            strings where the classes are numbers.
        """
        codes = self._predict_codes(X, "score")[0]
        return accuracy(codes, y, self.classes_, type(self).__name__, sample_weight)

    # --- moving and saving ---------------------------------------------------------------------

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
        fitted = FittedModel(self)
        if device is None:
            raise ValueError("to() needs the name of a device: 'cpu', 'cuda', 'cuda:N' or 'auto'.")
        state = fitted.state
        with state.backend.current():
            backend = resolve_backend(device, state.backend.zeros(1))
        with backend.current():
            new = fitted.copy(
                backend=backend,
                centers=state.centers and state.centers.to(backend),
                statistics=state.statistics and state.statistics.moved(backend),
                selection=state.selection and state.selection.moved(backend.move),
            )
        new.device = device
        return new

    def save(self, path: Any, full: bool = False) -> None:
        """Write the fitted model to one portable file, for `gpucenters.load`.

        The file holds no code and no pickle, and no part of the data. It is written beside its
        place and then renamed, so that an interrupt leaves no half-written file.

        Parameters
        ----------
        path : str, path-like or binary file
            Where to write; a file that is there is replaced.
        full : bool, default=False
            False writes what the selected features need: the loaded model predicts, transforms,
            names its features, and does ``with_k`` for fewer of them (`SparseMultinomialNB`, whose
            supports for different k are not nested, for its own k alone); all features where the
            model selects all. True writes the scores of all features and the statistics as well,
            so that the loaded model does all that this one does: ``partial_fit`` goes on from it.

        Raises
        ------
        TypeError, ValueError
            For labels or parameters that a file cannot hold; for a stream that cannot be solved
            yet, unless ``full``; with ``full`` for a model that was loaded from a file without.

        Notes
        -----
        The file keeps the parameters, ``device`` among them, and what ``set_output`` has chosen,
        but no metadata requests. Arrays of a device are written as host arrays. A checksum finds
        files that are truncated or altered; it is no signature.
        """
        packer = Packer()
        section, _ = pack_model(self, packer, full=full)
        with self._fitted.backend.current():
            write(path, {"model": section}, packer.arrays)
