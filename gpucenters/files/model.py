"""Fitted models as files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..arrays.backend import HOST, Backend
from ..arrays.devices import DeviceUnavailableError, resolve_backend
from ..arrays.namespace import is_cupy
from ..estimators import (
    GMEBClassifier,
    GMEBClassifierCV,
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
)
from ..estimators._base import Classifier
from ..estimators._fitted import Fitted
from ..estimators._selector import FeatureSelector
from ..estimators._statistics import StatisticsClassifier
from ..multiclass._decomposition import Decomposition
from ..solvers.support import SupportCenters, keep_support, needs_full
from .checks import check_fitted
from .container import read, write
from .decompositions import pack_decomposition, unpack_decomposition
from .state import Packer, Unpacker
from .vectorizers import pack_vectorizer, reads_words_alone, split, unpack_vectorizer

#: The models that a file may hold, which names them.
MODELS: dict[str, type[Classifier]] = {
    kind.__name__: kind
    for kind in (
        GMEBClassifier,
        GMEBClassifierCV,
        L1CenterClassifier,
        L2CenterClassifier,
        MahalanobisCenterClassifier,
        ShrunkenCentroidClassifier,
        SparseBernoulliNB,
        SparseGaussianNB,
        SparseMultinomialNB,
        SparsePoissonNB,
    )
}
_ATTRIBUTES = (
    *("classes_", "n_features_in_", "feature_names_in_", "_sklearn_output_config"),
    *("r_plus_", "r_minus_", "grid_", "fold_scores_", "best_score_"),
    "_reading",  # of the command line: how data are to be read
)
_FITTED = ("centers", "params", "statistics", "selection", "met")


def save(model: Classifier | Decomposition | Pipeline, path: Any, *, full: bool = False) -> None:
    """Write a fitted model, or a pipeline of a text vectorizer and a model, to one file.

    A model is also one of ``gpucenters.multiclass``, as its method ``save`` has it.

    Parameters
    ----------
    model : model of gpucenters, or Pipeline
        As the method ``save`` of models has it. A pipeline has two steps, of any names: a
        CountVectorizer, TfidfVectorizer or HashingVectorizer, and a model. Its ``memory`` and
        ``verbose`` are not kept.
    path : str, path-like or binary file
    full : bool, default=False
        Whether to write what all features need. Without it, a CountVectorizer or a TfidfVectorizer
        with ``norm=None`` keeps the words of the support alone, which get the columns 0 to k - 1,
        so that the loaded model is one of k features. A norm needs all words, and so do Mahalanobis
        centers.

    Raises
    ------
    TypeError
        For other steps; for options of a vectorizer that a file cannot hold, such as functions.
    ValueError
        As the method ``save``; for a vectorizer that does not fit the model.

    Examples
    --------
    >>> import io
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from gpucenters import SparseBernoulliNB, load
    >>> from gpucenters.files import save
    >>> texts = ["a fine film", "fine and moving", "a dull film", "dull and long"]
    >>> model = make_pipeline(CountVectorizer(), SparseBernoulliNB(k=2)).fit(texts, [1, 1, 0, 0])
    >>> file = io.BytesIO()
    >>> save(model, file)
    >>> _ = file.seek(0)
    >>> there = load(file)
    >>> there[:-1].get_feature_names_out().tolist(), there.predict(["moving but dull"]).tolist()
    (['dull', 'fine'], [0])
    """
    packer, document, vectorizer, columns = Packer(), {}, None, None
    if isinstance(model, Pipeline):
        steps, vectorizer, model = split(model)
    check_is_fitted(model)
    if isinstance(model, Decomposition):
        model._require_shared()
        document["decomposition"] = pack_decomposition(model, packer)
        model, full = model._joint, True
    name = type(model).__name__
    if MODELS.get(name) is not type(model):
        inner = " Its best_estimator_ is one." if hasattr(model, "best_estimator_") else ""
        raise TypeError(
            f"model files hold the models of gpucenters, and {name} is none of them.{inner}"
        )
    fitted, params = _whole(model) if full else _of_support(model), model.get_params(deep=False)
    known = {n: vars(model)[n] for n in _ATTRIBUTES if n in vars(model)}
    with fitted.backend.current():
        if vectorizer is not None:
            kept: Any = getattr(fitted.centers, "kept", None)
            cut = kept is not None and isinstance(model, FeatureSelector)
            if cut and not kept.reads_all_features and reads_words_alone(vectorizer):
                columns = model.support_
                fitted, params, known = _of_columns(columns, fitted, params, known)
            packed = pack_vectorizer(vectorizer, columns, model.n_features_in_, packer)
            document["vectorizer"] = packed | {"steps": steps}
        document["model"] = {
            "class": name,
            "params": {n: packer.pack(v, n) for n, v in params.items()},
            "attributes": {n: packer.pack(v, n) for n, v in known.items()},
            "device": _device_name(fitted.backend),
            "fitted": {n: packer.pack(getattr(fitted, n), n) for n in _FITTED},
        }
        write(path, document, packer.arrays)


def _of_columns(
    columns: np.ndarray, fitted: Fitted, params: dict[str, Any], known: dict[str, Any]
) -> tuple[Fitted, dict[str, Any], dict[str, Any]]:
    """The state, parameters and attributes of a model of the features of its support alone."""
    k, centers = len(columns), fitted.centers
    assert isinstance(centers, SupportCenters)
    selection = replace(centers.selection, support=fitted.backend.arange(k))
    fitted = replace(
        fitted,
        centers=replace(centers, selection=selection, n_features=k),
        selection=selection,
        params=fitted.params | {"k": k},
    )
    known = known | {"n_features_in_": k}
    if "feature_names_in_" in known:
        known["feature_names_in_"] = known["feature_names_in_"][columns]
    return fitted, params | {"k": k}, known


def _whole(model: Classifier) -> Fitted:
    """The state with everything; raises where the model holds its support alone."""
    fitted = model._ready()
    lacks_statistics = isinstance(model, StatisticsClassifier) and fitted.statistics is None
    if lacks_statistics or isinstance(fitted.centers, SupportCenters):
        raise needs_full("save(full=True)")
    return fitted


def _of_support(model: Classifier) -> Fitted:
    """The state with what the selected features need; solves a stream for them."""
    centers, selection, m = model._centers(), model._selection(), model.n_features_in_
    kept = model._run(lambda ctx: keep_support(centers, selection, m, ctx))
    return replace(model._fitted, centers=kept, selection=selection, statistics=None)


def load(path: Any, device: str | None = None) -> Any:
    """The fitted model, or the pipeline of a vectorizer and a model, of a file that `save` wrote.

    Truncated and altered files are found by a checksum. It is no signature: whoever can change a
    file can change its checksum. No file runs code, but one of a stranger may hold any model.

    Parameters
    ----------
    path : str, path-like or binary file
    device : {None, "cpu", "cuda", "cuda:N", "auto"}, default=None
        Where the model is to live. None is the CUDA device where it lived when it was saved, if
        this machine has it, else the CPU. Another device becomes the ``device`` parameter of the
        model, as in its method ``to``.

    Returns
    -------
    model or Pipeline
        With the bits of the saved one.

    Raises
    ------
    ValueError
        For a file that is truncated, altered, written by a newer version, or no model file.
    DeviceUnavailableError
        Where ``device`` names a device that cannot be used.

    Examples
    --------
    >>> import io
    >>> from sklearn.datasets import load_iris
    >>> import gpucenters
    >>> X, y = load_iris(return_X_y=True)
    >>> file = io.BytesIO()
    >>> gpucenters.L2CenterClassifier(k=2).fit(X, y).save(file)
    >>> _ = file.seek(0)
    >>> gpucenters.load(file).support_
    array([2, 3])
    """
    backend = None if device is None else resolve_backend(device, None)
    return read(path, partial(_unpacked, backend, device))


def _unpacked(
    backend: Backend | None,
    device: str | None,
    document: dict[str, Any],
    arrays: list[np.ndarray],
) -> Any:
    """The model of a file, on a backend or (None) where it was saved."""
    section, text = document.pop("model"), document.pop("vectorizer", None)
    wrapper = document.pop("decomposition", None)
    if document:
        raise ValueError(f"this gpucenters does not know the sections {sorted(document)}.")
    if section["class"] not in MODELS:
        raise ValueError(f"this gpucenters does not know the model {section['class']!r}.")
    backend = backend or _saved_backend(section["device"])
    unpacker = Unpacker(arrays, backend)
    with backend.current():
        params = {n: unpacker.unpack(v) for n, v in section["params"].items()}
        known = {n: v for n, v in section["attributes"].items() if n in _ATTRIBUTES}
        attributes = {n: unpacker.unpack(v) for n, v in known.items()}
        fitted = {n: unpacker.unpack(section["fitted"][n]) for n in _FITTED}
    model: Any = MODELS[section["class"]](**params)
    model._commit(attributes, attributes.pop("classes_"), Fitted(backend=backend, **fitted))
    check_fitted(model)
    if device is not None:
        model.device = device
    if wrapper is not None:
        if not isinstance(model, StatisticsClassifier) or model._fitted.statistics is None:
            raise ValueError("it has no class statistics.")
        model = unpack_decomposition(wrapper, model, unpacker)
    if text is None:
        return model
    vectorizer, steps = unpack_vectorizer(text, model.n_features_in_, unpacker), text["steps"]
    if not all(isinstance(step, str) for step in steps):
        raise ValueError("its steps have no names.")
    return Pipeline([*zip(steps, (vectorizer, model), strict=True)])


def _saved_backend(device: str) -> Backend:
    try:
        return resolve_backend(device, None)
    except DeviceUnavailableError:
        return HOST


def _device_name(backend: Backend) -> str:
    """The name of a CUDA device; models of other libraries are loaded on the CPU."""
    return f"cuda:{backend.device.id}" if is_cupy(backend.xp) else "cpu"
