"""Fitted models as files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
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
from ..estimators._statistics import StatisticsClassifier
from ..solvers.support import SupportCenters, keep_support, needs_full
from .checks import check_fitted
from .container import read, write
from .state import Packer, Unpacker

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
)
_FITTED = ("centers", "params", "statistics", "selection", "met")


def save(model: Classifier, path: Any, *, full: bool = False) -> None:
    """Write a fitted model: see its method ``save``.

    Parameters
    ----------
    model : Classifier
    path : str, path-like or binary file
    full : bool, default=False
        Whether to write what all features need.
    """
    check_is_fitted(model)
    name = type(model).__name__
    if MODELS.get(name) is not type(model):
        raise TypeError(f"model files hold the models of gpucenters, and {name} is none of them.")
    fitted = _whole(model) if full else _of_support(model)
    packer = Packer()
    with fitted.backend.current():
        params = {n: packer.pack(v, n) for n, v in model.get_params(deep=False).items()}
        known = {n: vars(model)[n] for n in _ATTRIBUTES if n in vars(model)}
        section = {
            "class": name,
            "params": params,
            "attributes": {n: packer.pack(v, n) for n, v in known.items()},
            "device": _device_name(fitted.backend),
            "fitted": {n: packer.pack(getattr(fitted, n), n) for n in _FITTED},
        }
        write(path, {"model": section}, packer.arrays)


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
    """The fitted model of a file that its method ``save`` has written.

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
    model
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
    model = read(path, partial(_unpacked, backend))
    if device is not None:
        model.device = device
    return model


def _unpacked(
    backend: Backend | None, document: dict[str, Any], arrays: list[np.ndarray]
) -> Classifier:
    """The model of a file, on a backend or (None) where it was saved."""
    section = document.pop("model")
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
    model = MODELS[section["class"]](**params)
    model._commit(attributes, attributes.pop("classes_"), Fitted(backend=backend, **fitted))
    check_fitted(model)
    return model


def _saved_backend(device: str) -> Backend:
    try:
        return resolve_backend(device, None)
    except DeviceUnavailableError:
        return HOST


def _device_name(backend: Backend) -> str:
    """The name of a CUDA device; models of other libraries are loaded on the CPU."""
    return f"cuda:{backend.device.id}" if is_cupy(backend.xp) else "cpu"
