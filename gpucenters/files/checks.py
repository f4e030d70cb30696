"""Whether the parts of a loaded model fit together.

A file that was saved passes, and a damaged one fails its checksum before. These checks are for one
that somebody has made: its arrays must not be read where they are not, least of all on a device.
"""

from __future__ import annotations

from typing import Any

from ..arrays.namespace import array_namespace
from ..arrays.typing import Array
from ..estimators._base import Classifier
from ..solvers.centers import Centers
from ..solvers.gmeb.hyperplanes import Hyperplanes
from ..solvers.selection import Selection
from ..solvers.support import SupportCenters
from ..statistics import Statistics

_MOST_FEATURES = 2**36  # the class sums of more take a terabyte: no fit has them
_INTEGERS = ("support", "columns", "ill_conditioned")


def check_fitted(model: Classifier) -> None:
    """Raise a ValueError unless the parts of a fitted model fit together."""
    fitted, m, names = model._fitted, model.n_features_in_, vars(model).get("feature_names_in_")
    _require(model.classes_.ndim == 1 and len(model.classes_) > 1, "classes_")
    _require(isinstance(m, int) and 0 < m <= _MOST_FEATURES, "n_features_in_")
    _require(names is None or names.shape == (m,), "feature_names_in_")
    reading = vars(model).get("_reading", {})
    _require(isinstance(reading, dict), "_reading")
    medians = reading.get("medians", None)
    _require(medians is None or (medians.shape == (m,) and medians.dtype.kind == "f"), "medians")
    _require(isinstance(fitted.params, dict), "params")
    met = range(len(model.classes_)) if fitted.met is None else fitted.met
    _require(all(0 <= c < len(model.classes_) for c in met), "met")
    sizes = {"class": len(met), "feature": m, "candidate": m}
    _require("k" in fitted.params or isinstance(fitted.centers, Hyperplanes), "params")
    if fitted.centers is not None:
        _check_centers(fitted.centers, sizes)
    if fitted.selection is not None:
        _require(fitted.centers is not None, "selection")
        _check_selection(fitted.selection, m)
    if fitted.statistics is not None:
        _check_statistics(fitted.statistics, sizes | {"class": len(model.classes_)})
    _require(fitted.centers is not None or fitted.statistics is not None, "fitted")


def _check_centers(centers: Any, sizes: dict[str, int]) -> None:
    _require(isinstance(centers, Centers), "centers")
    _require(len(centers.class_weight) == sizes["class"], "class_weight")
    if isinstance(centers, SupportCenters):
        _require(centers.n_features == sizes["feature"], "n_features")
        _check_selection(centers.selection, sizes["feature"])
        _require(not isinstance(centers.kept, SupportCenters), "kept")
        _check_centers(centers.kept, sizes | {"candidate": centers.selection.support.shape[0]})
    if isinstance(centers, Hyperplanes):
        sizes = sizes | _check_hyperplanes(centers, sizes)
    _check_arrays(centers, sizes)


def _check_hyperplanes(centers: Hyperplanes, sizes: dict[str, int]) -> dict[str, int]:
    """The sizes of their arrays."""
    decisions = 1 if sizes["class"] == 2 else sizes["class"]
    for name in ("t", "omega", "loss", "bound", "multiplier", "scale", "rounds"):
        _require(len(getattr(centers, name)) == decisions, name)
    _check_ascending(centers.columns, sizes["feature"], "columns")
    return {"decision": decisions, "column": centers.columns.shape[0]}


def _check_ascending(numbers: Array, below: int, name: str) -> None:
    xp = array_namespace(numbers)
    ascending = bool(xp.all(numbers[1:] > numbers[:-1]))
    inside = numbers.shape[0] == 0 or (int(numbers[0]) >= 0 and int(numbers[-1]) < below)
    _require(ascending and inside, name)


def _check_selection(selection: Any, n_features: int) -> None:
    _require(isinstance(selection, Selection), "selection")
    support = selection.support
    _check_arrays(selection, {"chosen": support.shape[0]})
    _check_ascending(support, n_features, "support")


def _check_statistics(statistics: Any, sizes: dict[str, int]) -> None:
    _require(isinstance(statistics, Statistics), "statistics")
    both = statistics.class_weight, statistics.count
    _require(all(len(x) == sizes["class"] for x in both), "class_weight")
    columns: Array | None = getattr(statistics, "ill_conditioned", None)
    if columns is not None:
        xp, m = array_namespace(columns), sizes["feature"]
        _require(bool(xp.all((columns >= 0) & (columns < m))), "ill_conditioned")
        sizes = sizes | {"column": columns.shape[0]}
    _check_arrays(statistics, sizes)


def _check_arrays(part: Any, sizes: dict[str, int]) -> None:
    for name, axes in part.ARRAYS.items():
        value = getattr(part, name)
        if value is None:
            continue
        xp = array_namespace(value)
        kind = xp.int64 if name in _INTEGERS else xp.float64
        expected = tuple(sizes[axis] for axis in axes)
        if name == "scatter" and part.recipe.final is not None:
            expected = (2, *expected[1:])
        if name == "centred":  # for each feature, or summed over them
            expected = expected[: max(value.ndim, 1)]
        _require(value.dtype == kind and value.shape == expected, name)


def _require(condition: bool, name: str) -> None:
    if not condition:
        raise ValueError(f"its {name} does not fit the rest.")
