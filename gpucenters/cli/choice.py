"""The model that a command fits: the one that is named, or one that suits the kind of the data."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from .models import Estimator, ModelOptions, make_model
from .output import say

if TYPE_CHECKING:
    from ..readers import Data

#: What suits each kind of data: docs/guide/models.md has the accuracies on public sets.
SUITED: dict[str, tuple[str, dict[str, str]]] = {
    "texts": ("poisson", {}),
    "counts": ("poisson", {}),
    "measurements": ("l2", {"scale": "pooled", "priors": "empirical"}),
}
_SPREAD = 10  # times the median: where a scale helped l2 on 54 of 59 public sets
_PART = 2**22  # values of dense data that are looked at together


class Choice:
    """Models for the options of a command, of which the data choose one.

    Parameters
    ----------
    options : ModelOptions

    Raises
    ------
    typer.BadParameter
        As `make_model`, and for options that no model takes which data could choose.
    """

    def __init__(self, options: ModelOptions) -> None:
        self.options = options
        if options.estimator is not None:
            self._models = {"": make_model(options)}
            return
        self._models, faults = {}, []
        for kind, (name, defaults) in SUITED.items():
            given: dict[str, Any] = {
                key: getattr(options, key) or value for key, value in defaults.items()
            }
            try:
                self._models[kind] = make_model(
                    replace(options, estimator=Estimator(name), **given)
                )
            except typer.BadParameter as error:
                faults.append(error)
        if not self._models:
            raise faults[-1]

    def model(self, kind: str) -> Any:
        """The model for a kind of data, not fitted; says which one was chosen, and why."""
        if self.options.estimator is not None:
            return self._models[""]
        why = f"suits {kind}"
        if kind not in self._models:
            kind, why = next(iter(self._models)), "takes the given options"
        name, defaults = SUITED[kind]
        flags = [f"--{key} {getattr(self.options, key) or of}" for key, of in defaults.items()]
        say(f"model: {' '.join(['-e', name, *flags])}, which {why}. Another -e overrides it.")
        return self._models[kind]

    def warn_of_spread(self, X: Any) -> None:
        """Warn where l2 is named, without a scale, for features of very different spreads."""
        options = self.options
        if options.estimator == "l2" and options.scale is None and spread(X) >= _SPREAD:
            warnings.warn(
                "the standard deviations of the features differ by orders of magnitude, and the "
                "features of the largest decide: give --scale pooled, or --scale none if that is "
                "right.",
                stacklevel=2,
            )


def kind_of(data: Data) -> str:
    """The kind of data: counts are non-negative whole numbers of which half or more are zero.

    Of data on disk the first rows tell.
    """
    if data.is_text:
        return "texts"
    import numpy as np

    from ..arrays.namespace import is_sparse
    from ..arrays.on_disk import is_on_disk

    X, rows = data.X, max(1, _PART // max(1, data.X.shape[1]))
    if is_on_disk(X):
        X = X[:rows]
    values, rows = (X.data, _PART) if is_sparse(X) else (X, rows)
    nonzero = 0
    for start in range(0, len(values), rows):
        part = values[start : start + rows]
        if not np.all((part >= 0) & (part == np.floor(part))):
            return "measurements"
        nonzero += int(np.count_nonzero(part))
    return "counts" if 2 * nonzero <= math.prod(X.shape) else "measurements"


def spread(X: Any) -> float:
    """The largest standard deviation of a feature, divided by the median of all that vary."""
    import numpy as np
    from sklearn.utils.sparsefuncs import mean_variance_axis

    from ..arrays.namespace import is_sparse
    from ..arrays.on_disk import is_on_disk

    if is_on_disk(X):
        return 1.0  # another pass over it would take as long as the fit
    if is_sparse(X):
        variance = mean_variance_axis(X, axis=0)[1]
    else:
        columns = max(1, _PART // len(X))
        parts = range(0, X.shape[1], columns)
        with np.errstate(over="ignore", invalid="ignore"):  # the fit names such features
            variance = np.concatenate(
                [np.var(X[:, i : i + columns], axis=0, dtype=np.float64) for i in parts]
            )
    varying = np.sqrt(variance[variance > 0])
    return float(varying.max() / np.median(varying)) if len(varying) else 1.0
