"""Fitted models as files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .. import _models
from ..arrays.backend import HOST, Backend, DeviceUnavailableError, resolve_backend
from ..arrays.namespace import is_cupy
from ..estimators.base import Classifier, FeatureSelector
from ..estimators.fitted import Fitted, FittedModel, commit
from ..estimators.from_statistics import StatisticsClassifier
from ..multiclass import (
    NestedDichotomiesClassifier,
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
)
from ..multiclass.copies import joint_model, restore
from ..multiclass.decomposition import Decomposition
from ..solvers.centers import SupportCenters, keep_support, needs_full
from .container import read, write
from .state import Packer, Unpacker, check_fitted
from .steps import (
    STEPS,
    VECTORIZERS,
    is_vectorizer,
    pack_step,
    pack_vectorizer,
    reads_words_alone,
    unpack_step,
    unpack_vectorizer,
)

#: The decompositions that a file may hold, which names them.
DECOMPOSITIONS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        NestedDichotomiesClassifier,
        OneVsOneClassifier,
        OneVsRestClassifier,
        OutputCodeClassifier,
    )
}
#: The models that a file may hold, which names them.
MODELS: dict[str, type[Classifier]] = {
    model.class_name: _models.found(model.kind) for model in _models.MODELS
}
_ATTRIBUTES = (
    *("classes_", "n_features_in_", "feature_names_in_", "_sklearn_output_config"),
    *("r_plus_", "r_minus_", "grid_", "fold_scores_", "best_score_"),
    "_reading",  # of the command line: how data are to be read
)
_FITTED = ("centers", "params", "statistics", "selection", "met")


def save(model: Classifier | Decomposition | Pipeline, path: Any, *, full: bool = False) -> None:
    """Write a fitted model, or a pipeline with one, to one file.

    A model is also one of ``gpucenters.multiclass``, as its method ``save`` has it.

    Parameters
    ----------
    model : model of gpucenters, or Pipeline
        As the method ``save`` of models has it. A pipeline has, under any names, a CountVectorizer,
        TfidfVectorizer or HashingVectorizer for texts, the model, and as second stage any of
        LogRatioScaler, and StandardScaler, MaxAbsScaler, LogisticRegression and LinearSVC of
        scikit-learn. Its ``memory`` and ``verbose`` are not kept.
    path : str, path-like or binary file
    full : bool, default=False
        Whether to write what all features need. Without it, a CountVectorizer or a TfidfVectorizer
        with ``norm=None`` keeps the words of the support alone, which get the columns 0 to k - 1,
        so that the loaded model is one of k features. A norm needs all words, and so do Mahalanobis
        centers.

    Raises
    ------
    TypeError
        For other steps; for options of a step that a file cannot hold, such as functions; for a
        vectorizer that opens files (``input="filename"``).
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
    packer, columns = Packer(), None
    document: dict[str, Any] = {}
    names, vectorizer, model, second = _split(model)
    check_is_fitted(model)
    if isinstance(model, Decomposition):
        joint, full = joint_model(model), True
        document["decomposition"] = pack_decomposition(model, packer)
        model = joint
    name = type(model).__name__
    if MODELS.get(name) is not type(model):
        inner = " Its best_estimator_ is one." if hasattr(model, "best_estimator_") else ""
        raise TypeError(
            f"model files hold the models of gpucenters, and {name} is none of them.{inner}"
        )
    fitted, params = _whole(model) if full else _of_support(model), model.get_params(deep=False)
    known = {n: vars(model)[n] for n in _ATTRIBUTES if n in vars(model)}
    with fitted.backend.current():
        steps: list[Any] = [None, *(pack_step(step, packer) for step in second)]
        if vectorizer is not None:
            kept: Any = getattr(fitted.centers, "kept", None)
            cut = kept is not None and isinstance(model, FeatureSelector)
            if cut and not kept.reads_all_features and reads_words_alone(vectorizer):
                columns = model.support_
                fitted, params, known = _of_columns(columns, fitted, params, known)
            steps.insert(0, pack_vectorizer(vectorizer, columns, model.n_features_in_, packer))
        if names is not None:
            document["steps"] = [*zip(names, steps, strict=True)]
        document["model"] = {
            "class": name,
            "params": {n: packer.pack(v, n) for n, v in params.items()},
            "attributes": {n: packer.pack(v, n) for n, v in known.items()},
            "device": _device_name(fitted.backend),
            "fitted": {n: packer.pack(getattr(fitted, n), n) for n in _FITTED},
        }
        write(path, document, packer.arrays)


def _split(pipeline: Any) -> tuple[list[str] | None, Any, Any, list[Any]]:
    """(names of the steps, vectorizer or None, model, steps behind it); no names of a model alone.

    Any other pipeline is a TypeError.
    """
    if not isinstance(pipeline, Pipeline):
        return None, None, pipeline, []
    first, *steps = (step for _, step in pipeline.steps)
    vectorizer, steps = (first, steps) if is_vectorizer(first) else (None, [first, *steps])
    is_model = steps and isinstance(steps[0], Classifier | Decomposition)
    if not is_model or not all(type(step) in STEPS for step in steps[1:]):
        has = ", ".join(f"{name!r} ({type(step).__name__})" for name, step in pipeline.steps)
        raise TypeError(
            f"a model file holds a pipeline of a vectorizer (none, or {', '.join(VECTORIZERS)}), a "
            "model of gpucenters and steps behind it (none, or any of "
            f"{', '.join(kind.__name__ for kind in STEPS)}); this one has the steps {has}."
        )
    return [*pipeline.named_steps], vectorizer, steps[0], steps[1:]


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
    fitted = FittedModel(model).state
    lacks_statistics = isinstance(model, StatisticsClassifier) and fitted.statistics is None
    if lacks_statistics or isinstance(fitted.centers, SupportCenters):
        raise needs_full("save(full=True)")
    return fitted


def _of_support(model: Classifier) -> Fitted:
    """The state with what the selected features need; solves a stream for them."""
    fitted, m = FittedModel(model), model.n_features_in_
    centers, selection = fitted.centers, fitted.selection
    kept = fitted.run(lambda ctx: keep_support(centers, selection, m, ctx))
    return replace(fitted.state, centers=kept, selection=selection, statistics=None)


def load(path: Any, device: str | None = None) -> Any:
    """The fitted model, or the pipeline with one, of a file that `save` wrote.

    Truncated and altered files are found by a checksum. It is no signature: whoever can change a
    file can change its checksum. No file runs code or opens another one, but one of a stranger may
    hold any model.

    Warns of a token pattern that may keep some texts at work for long, and names it.

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
        For a file that is truncated, altered, written by a newer version, or no model file. It
        names the versions of the packages that wrote the file.
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
    section, steps = document.pop("model"), document.pop("steps", None)
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
        parts = {n: unpacker.unpack(section["fitted"][n]) for n in _FITTED}
    model: Any = MODELS[section["class"]](**params)
    fitted = Fitted(backend=backend, **parts)
    commit(model, attributes, attributes.pop("classes_"), fitted)
    check_fitted(model, fitted)
    if device is not None:
        model.device = device
    if wrapper is not None:
        if not isinstance(model, StatisticsClassifier) or fitted.statistics is None:
            raise ValueError("it has no class statistics.")
        model = unpack_decomposition(wrapper, model, unpacker)
    if steps is None:
        return model
    with backend.current():
        return _pipeline(steps, model, unpacker)


def _pipeline(steps: list[Any], model: Any, unpacker: Unpacker) -> Pipeline:
    """The pipeline of a model: the steps of a file are (name, section), that of the model None."""
    width, made = model.n_features_in_, []
    for name, section in steps:
        if not isinstance(name, str):
            raise ValueError("its steps have no names.")
        if section is None:
            made.append((name, model))
        elif not made and section["class"] in VECTORIZERS:
            made.append((name, unpack_vectorizer(section, width, unpacker)))
        else:
            width = len(model.get_feature_names_out())
            made.append((name, unpack_step(section, width, unpacker)))
    pipeline = Pipeline(made)
    _split(pipeline)
    return pipeline


def _saved_backend(device: str) -> Backend:
    try:
        return resolve_backend(device, None)
    except DeviceUnavailableError:
        return HOST


def _device_name(backend: Backend) -> str:
    """The name of a CUDA device; models of other libraries are loaded on the CPU."""
    return f"cuda:{backend.device.id}" if is_cupy(backend.xp) else "cpu"


def pack_decomposition(model: Decomposition, packer: Packer) -> dict[str, Any]:
    """All but its joint model as JSON.

    Parameters
    ----------
    model : Decomposition
        Fitted.
    packer : Packer
    """
    name = type(model).__name__
    if DECOMPOSITIONS.get(name) is not type(model):
        raise TypeError(f"model files hold the models of gpucenters, and {name} is none of them.")
    params = model.get_params(deep=False)  # type: ignore[attr-defined]
    del params["estimator"]
    return {
        "class": name,
        "params": {n: packer.pack(v, n) for n, v in params.items()},
        "code_book": packer.pack(getattr(model, "code_book_", None), "code_book_"),
    }


def unpack_decomposition(section: dict[str, Any], joint: Any, unpacker: Unpacker) -> Any:
    """The decomposition that was packed, around its joint model.

    Parameters
    ----------
    section : dict
    joint : StatisticsClassifier
    unpacker : Unpacker
    """
    if section["class"] not in DECOMPOSITIONS:
        raise ValueError(f"this gpucenters does not know the model {section['class']!r}.")
    params = {n: unpacker.unpack(v) for n, v in section["params"].items()}
    model = DECOMPOSITIONS[section["class"]](clone(joint), **params)
    book = unpacker.unpack(section["code_book"])
    if (book is not None) != isinstance(model, NestedDichotomiesClassifier | OutputCodeClassifier):
        raise ValueError("its code_book does not fit the rest.")
    if book is not None:
        _check(book, len(joint.classes_), nested=isinstance(model, NestedDichotomiesClassifier))
    restore(model, joint, book)
    return model


def _check(book: np.ndarray, n_classes: int, *, nested: bool) -> None:
    """Raise a ValueError unless an array holds codes of the classes."""
    good = book.ndim == 2 and book.shape[0] == n_classes and book.shape[1] > 0
    good = good and bool(np.all(np.isin(book, (-1.0, 0.0, 1.0) if nested else (-1.0, 1.0))))
    if nested:
        both = np.any(book < 0, axis=0) & np.any(book > 0, axis=0)
        good = good and book.shape[1] == n_classes - 1 and bool(np.all(both))
    if not good:
        raise ValueError("its code_book does not fit the rest.")
