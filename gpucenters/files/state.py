"""What a model holds, as JSON and arrays, and back.

JSON's own values stand for themselves. Each object of the JSON has one key that says what it is:

=========  ==================================================================================
key        value
=========  ==================================================================================
"array"    the number of an array that belongs on the host
"device"   the number of an array that belongs where the model lives
"objects"  the elements of an array of objects
"tuple"    the elements of a tuple
"dict"     the entries of a dict
"..."      the name of a class in `CLASSES`: its fields
=========  ==================================================================================
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from .._models import MODELS, found
from ..arrays.backend import Backend
from ..arrays.namespace import array_namespace, is_array, to_numpy
from ..arrays.typing import Array
from ..solvers.centers import Centers, SupportCenters
from ..solvers.gmeb.hyperplanes import Hyperplanes
from ..solvers.selection import Selection
from ..statistics import ClassMoments, ClassSums, CrossMoments, ExposedSums, Recipe, Statistics
from .container import KINDS

_OF_ALL = (ClassMoments, ClassSums, CrossMoments, ExposedSums, Recipe, Selection, SupportCenters)
#: The classes that a file may hold. It names them: a name that was written must stay readable.
CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (*_OF_ALL, *(found(path) for model in MODELS for path in model.holds))
}
_MOST_FEATURES = 2**36  # the class sums of more take a terabyte: no fit has them
_RENAMED = {"reader": "transform"}  # names of fields in files, and what they are called now
_FIRST_NAMES = {now: first for first, now in _RENAMED.items()}
_INTEGERS = ("support", "columns", "ill_conditioned")


class Packer:
    """Packs values as JSON, and collects their arrays, each once.

    Attributes
    ----------
    arrays : list of arrays
        Of any library: those of a device come to the host when they are written.
    """

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self._number: dict[int, int] = {}

    def pack(self, value: Any, what: str) -> Any:
        """A value as JSON.

        Parameters
        ----------
        value : object
        what : str
            What it is, for the error.

        Raises
        ------
        TypeError
            For a value that a file cannot hold.
        """
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            value = value.item()
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list):
            return [self.pack(v, what) for v in value]
        if isinstance(value, tuple):
            return {"tuple": [self.pack(v, what) for v in value]}
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                return {"items": [[self.pack(x, what) for x in pair] for pair in value.items()]}
            return {"dict": {str(key): self.pack(v, what) for key, v in value.items()}}
        if CLASSES.get(type(value).__name__) is type(value):
            return self._pack_fields(value, what)
        if is_array(value) or hasattr(value, "__array__"):
            return self._pack_array(value, what)
        raise TypeError(f"a model file cannot hold {what}: it has a {type(value).__name__}.")

    def place(self, array: Any) -> dict[str, Any]:
        """An array that belongs where the model lives."""
        return {"device": self._add(array)}

    def _pack_fields(self, value: Any, what: str) -> dict[str, Any]:
        names = [f.name for f in fields(value) if f.name != "backend"]
        on_device = getattr(value, "ARRAYS", ())
        packed = {}
        for name in names:
            part, written = getattr(value, name), _FIRST_NAMES.get(name, name)
            if name in on_device and part is not None:
                packed[written] = self.place(part)
            else:
                packed[written] = self.pack(part, what)
        return {type(value).__name__: packed}

    def _pack_array(self, value: Any, what: str) -> dict[str, Any]:
        host = to_numpy(value)
        if host.dtype.kind == "O" and host.ndim == 1:
            return {"objects": self.pack(host.tolist(), what)}
        if host.dtype.kind not in KINDS:
            raise TypeError(f"a model file cannot hold {what}: it is an array of {host.dtype}.")
        return {"array": self._add(host)}

    def _add(self, array: Any) -> int:
        """The number of an array, which the list keeps alive, so that its id is its own."""
        if id(array) not in self._number:
            self._number[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return self._number[id(array)]


class Unpacker:
    """Unpacks what `Packer` has packed; each array is moved to the device once.

    Parameters
    ----------
    arrays : list of NumPy arrays
    backend : Backend
        Where the model is to live.
    """

    def __init__(self, arrays: list[np.ndarray], backend: Backend) -> None:
        self._arrays = arrays
        self.backend = backend
        self._moved: dict[int, Array] = {}

    def unpack(self, value: Any) -> Any:
        """The value that was packed as this JSON."""
        if isinstance(value, list):
            return [self.unpack(v) for v in value]
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        if kind == "array":
            return self._arrays[content]
        if kind == "device":
            if content not in self._moved:
                self._moved[content] = self.backend.move(self._arrays[content])
            return self._moved[content]
        if kind == "objects":
            found = np.empty(len(content), dtype=object)
            found[:] = content
            return found
        if kind == "items":
            return dict(map(self.unpack, content))
        if kind == "tuple":
            return tuple(self.unpack(v) for v in content)
        parts = {name: self.unpack(v) for name, v in content.items()}
        if kind == "dict":
            return parts
        made, parts = CLASSES[kind], {_RENAMED.get(name, name): v for name, v in parts.items()}
        if any(f.name == "backend" for f in fields(made)):
            parts["backend"] = self.backend
        return made(**parts)


# Whether the parts of a loaded model fit together.
#
# A file that was saved passes, and a damaged one fails its checksum before. These checks are for
# one that somebody has made: its arrays must not be read where they are not, least of all on a
# device.


def check_fitted(model: Any, fitted: Any) -> None:
    """Raise a ValueError unless the parts of a model and of its `Fitted` fit together."""
    m, names = model.n_features_in_, vars(model).get("feature_names_in_")
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
