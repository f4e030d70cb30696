"""The steps behind the model of a pipeline: options as JSON, fitted arrays as arrays."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from ..arrays.namespace import is_array
from ..estimators import LogRatioScaler
from .state import Packer, Unpacker

_LINEAR = {"classes_": ("class",), "coef_": ("decision", "feature"), "intercept_": ("decision",)}

#: The steps that a file may hold: the arrays of each, with their axes.
STEPS: dict[Any, dict[str, tuple[str, ...]]] = {
    LinearSVC: _LINEAR,
    LogRatioScaler: {"classes_": ("class",), "log_ratios_": ("decision", "feature")},
    LogisticRegression: _LINEAR,
    MaxAbsScaler: dict.fromkeys(("scale_", "max_abs_"), ("feature",)),
    StandardScaler: dict.fromkeys(("scale_", "mean_", "var_"), ("feature",)),
}
_KINDS = {kind.__name__: kind for kind in STEPS}
_OTHERS = (
    *("n_features_in_", "feature_names_in_", "_sklearn_output_config"),
    *("n_iter_", "n_samples_seen_"),
)


def pack_step(step: Any, packer: Packer) -> dict[str, Any]:
    """A fitted step as JSON.

    Parameters
    ----------
    step : estimator of a type in `STEPS`
    packer : Packer
    """
    check_is_fitted(step)
    kind = type(step)
    default = {n: p.default for n, p in signature(kind).parameters.items()}
    # Another version may lack an option: those that were not given are left to their defaults.
    params = {
        n: packer.pack(v, f"{n} of the {kind.__name__}")
        for n, v in step.get_params(deep=False).items()
        if type(v) is not type(default[n]) or v != default[n]
    }
    known = {n: vars(step)[n] for n in (*STEPS[kind], *_OTHERS) if n in vars(step)}
    attributes = {
        n: packer.place(v)
        if is_array(v) and not isinstance(v, np.ndarray)
        else packer.pack(v, f"{n} of the {kind.__name__}")
        for n, v in known.items()
    }
    return {"class": kind.__name__, "params": params, "attributes": attributes}


def unpack_step(section: dict[str, Any], n_features: int, unpacker: Unpacker) -> Any:
    """The step that was packed, for so many columns."""
    if section["class"] not in _KINDS:
        raise ValueError(f"this gpucenters does not know the step {section['class']!r}.")
    kind = _KINDS[section["class"]]
    step = kind(**{n: unpacker.unpack(v) for n, v in section["params"].items()})
    step._validate_params()
    for name in (*STEPS[kind], *_OTHERS):
        if name in section["attributes"]:
            setattr(step, name, unpacker.unpack(section["attributes"][name]))
    sizes = {"feature": n_features}
    if "classes_" in STEPS[kind]:
        n_classes = len(step.classes_)
        sizes |= {"class": n_classes, "decision": 1 if n_classes == 2 else n_classes}
    fits = step.n_features_in_ == n_features and sizes.get("class", 2) > 1
    for name, axes in STEPS[kind].items():
        value = getattr(step, name)
        if not isinstance(value, float | None):  # of what an option leaves out
            fits = fits and value.shape == tuple(sizes[axis] for axis in axes)
    if not fits:
        raise ValueError(f"its {section['class']} does not fit the rest.")
    return step
