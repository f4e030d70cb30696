"""A fitted model as a section of a model file, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .. import _models
from ..arrays.backend import HOST, Backend, DeviceUnavailableError, resolve_backend
from ..arrays.namespace import is_cupy
from ..files.state import Packer, Unpacker, check_fitted
from ..solvers.centers import SupportCenters, keep_support, needs_full
from .fitted import Fitted, FittedModel, commit

_KINDS = {model.class_name: model.kind for model in _models.MODELS}
_ATTRIBUTES = (
    *("classes_", "n_features_in_", "feature_names_in_", "_sklearn_output_config"),
    *("r_plus_", "r_minus_", "grid_", "fold_scores_", "best_score_"),
    "_reading",  # of the command line: how data are to be read
)
_FITTED = ("centers", "params", "statistics", "selection", "met")


def pack_model(
    model: Any, packer: Packer, *, full: bool, narrow: bool = False
) -> tuple[dict[str, Any], np.ndarray | None]:
    """A fitted model as JSON, and the columns of X that it keeps, where others go.

    Others may go only if it is ``narrow``: it becomes a model of its selected features alone.
    """
    name, columns = type(model).__name__, None
    if name not in _KINDS or _models.found(_KINDS[name]) is not type(model):
        inner = " Its best_estimator_ is one." if hasattr(model, "best_estimator_") else ""
        raise TypeError(
            f"model files hold the models of gpucenters, and {name} is none of them.{inner}"
        )
    fitted, params = _whole(model) if full else _of_support(model), model.get_params(deep=False)
    known = {n: vars(model)[n] for n in _ATTRIBUTES if n in vars(model)}
    kept: Any = getattr(fitted.centers, "kept", None)
    narrow = narrow and kept is not None and hasattr(model, "get_support")
    if narrow and not kept.reads_all_features:
        columns = model.support_
        fitted, params, known = _of_columns(columns, fitted, params, known)
    backend = fitted.backend
    with backend.current():
        section = {
            "class": name,
            "params": {n: packer.pack(v, n) for n, v in params.items()},
            "attributes": {n: packer.pack(v, n) for n, v in known.items()},
            # Models of other libraries are loaded on the CPU.
            "device": f"cuda:{backend.device.id}" if is_cupy(backend.xp) else "cpu",
            "fitted": {n: packer.pack(getattr(fitted, n), n) for n in _FITTED},
        }
    return section, columns


def _whole(model: Any) -> Fitted:
    """The state with everything; raises where the model holds its support alone."""
    fitted = FittedModel(model).state
    lacks_statistics = hasattr(model, "fit_statistics") and fitted.statistics is None
    if lacks_statistics or isinstance(fitted.centers, SupportCenters):
        raise needs_full("save(full=True)")
    return fitted


def _of_support(model: Any) -> Fitted:
    """The state with what the selected features need; solves a stream for them."""
    fitted, m = FittedModel(model), model.n_features_in_
    centers, selection = fitted.centers, fitted.selection
    kept = fitted.run(lambda ctx: keep_support(centers, selection, m, ctx))
    return replace(fitted.state, centers=kept, selection=selection, statistics=None)


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


def unpack_model(
    section: dict[str, Any], arrays: list[np.ndarray], backend: Backend | None
) -> tuple[Any, Unpacker]:
    """The model that was packed, and what unpacks the other sections of its file.

    ``backend`` None is where the model was saved, or the host where that cannot be used.
    """
    if section["class"] not in _KINDS:
        raise ValueError(f"this gpucenters does not know the model {section['class']!r}.")
    backend = backend or _saved_backend(section["device"])
    unpacker = Unpacker(arrays, backend)
    with backend.current():
        params = {n: unpacker.unpack(v) for n, v in section["params"].items()}
        known = {n: v for n, v in section["attributes"].items() if n in _ATTRIBUTES}
        attributes = {n: unpacker.unpack(v) for n, v in known.items()}
        parts = {n: unpacker.unpack(section["fitted"][n]) for n in _FITTED}
    model: Any = _models.found(_KINDS[section["class"]])(**params)
    fitted = Fitted(backend=backend, **parts)
    commit(model, attributes, attributes.pop("classes_"), fitted)
    check_fitted(model, fitted)
    return model, unpacker


def _saved_backend(device: str) -> Backend:
    try:
        return resolve_backend(device, None)
    except DeviceUnavailableError:
        return HOST
