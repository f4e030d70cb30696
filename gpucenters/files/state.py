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
from ..arrays.namespace import is_array, to_numpy
from ..arrays.typing import Array
from ..solvers.selection import Selection
from ..solvers.support import SupportCenters
from ..statistics import ClassMoments, ClassSums, CrossMoments, ExposedSums, Recipe
from .container import KINDS

_OF_ALL = (ClassMoments, ClassSums, CrossMoments, ExposedSums, Recipe, Selection, SupportCenters)
#: The classes that a file may hold. It names them: a name that was written must stay readable.
CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (*_OF_ALL, *(found(path) for model in MODELS for path in model.holds))
}


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
            part = getattr(value, name)
            if name in on_device and part is not None:
                packed[name] = self.place(part)
            else:
                packed[name] = self.pack(part, what)
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
        self._backend = backend
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
                self._moved[content] = self._backend.move(self._arrays[content])
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
        made = CLASSES[kind]
        if any(f.name == "backend" for f in fields(made)):
            parts["backend"] = self._backend
        return made(**parts)
