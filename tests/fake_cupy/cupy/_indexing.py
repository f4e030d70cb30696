"""Reading and writing elements.

CuPy's manners here: a basic index gives a view, also for a single element (a 0-d view); a host
array as index is uploaded; a boolean mask makes the host wait for its count, in reading and in
writing; an integer out of bounds in an index array wraps around silently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from cupy._fake import ledger
from cupy._fake.counting import counter
from cupy._fake.subnormal import flushed

if TYPE_CHECKING:
    from cupy._ndarray import ndarray

# The data types that the atomic operation of a device, and so `ufunc.at`, exists for.
_INTEGERS = ("int32", "int64", "uint32", "uint64")
_NUMBERS = (*_INTEGERS, "float32", "float64")
_SCATTER_DTYPES = {
    "add": (*_NUMBERS, "float16"),
    "sub": ("int32", "uint32"),
    "max": _NUMBERS,
    "min": _NUMBERS,
    "and": _INTEGERS,
    "or": _INTEGERS,
    "xor": _INTEGERS,
}
_SCATTER = {
    "add": np.add,
    "sub": np.subtract,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _upload(value: Any, dtype: Any = None) -> ndarray:
    from cupy._creation import asarray

    return asarray(value, dtype=dtype)


def _is_scalar(entry: Any) -> bool:
    return np.isscalar(entry) and not isinstance(entry, bool | np.bool)


def _prepare(key: Any) -> tuple[list[Any], bool]:
    """The entries of a key, arrays among them on the device; and whether there is an array."""
    from cupy._ndarray import ndarray

    entries = list(key) if isinstance(key, tuple) else [key]
    advanced = False
    for i, entry in enumerate(entries):
        if entry is None or entry is Ellipsis or isinstance(entry, slice) or _is_scalar(entry):
            continue
        if not isinstance(entry, ndarray):
            try:
                array = _upload(entry)
            except ValueError:
                raise IndexError(
                    "only integers, slices (`:`), ellipsis (`...`),numpy.newaxis (`None`) and "
                    "integer or boolean arrays are valid indices"
                ) from None
            if isinstance(entry, list | tuple) and array.size == 0:
                array = array.astype(np.int32)
            entries[i] = array
        if entries[i].dtype.kind not in "biu":
            raise IndexError(
                "arrays used as indices must be of integer or boolean type. "
                f"(actual: {entries[i].dtype.type})"
            )
        entries[i]._use()
        advanced = True
    return entries, advanced


def _host_key(array: ndarray, entries: list[Any], reason: str) -> tuple[Any, ...]:
    """The key for NumPy; a mask is counted as the synchronisation that it costs."""
    from cupy._ndarray import ndarray

    used = sum(
        e.ndim if isinstance(e, ndarray) and e.dtype.kind == "b" else 1
        for e in entries
        if e is not None and e is not Ellipsis
    )
    axis, key = 0, []
    for entry in entries:
        if entry is Ellipsis:
            axis += array.ndim - used
        if not isinstance(entry, ndarray):
            axis += entry is not None and entry is not Ellipsis
            key.append(entry)
        elif entry.dtype.kind == "b":
            if entry.size:
                counter.sync(reason)
            axis += entry.ndim
            key.append(entry._host)
        else:
            length = array.shape[axis] if axis < array.ndim else 0
            axis += 1
            key.append(entry._host % length if length else entry._host)
    return tuple(key)


def getitem(array: ndarray, key: Any) -> ndarray:
    entries, advanced = _prepare(key)
    if not advanced:
        # The ellipsis makes NumPy give a 0-d view where it would give a scalar.
        basic = entries if any(e is Ellipsis for e in entries) else [*entries, Ellipsis]
        return type(array)._wrap(array._host[tuple(basic)], base=array)
    array._use()
    taken = array._host[_host_key(array, entries, "mask getitem")]
    counter.launches += 1
    ledger.note_function("getitem", [array._host, *_keys_of(entries)], [taken])
    return type(array)._wrap(np.array(taken, copy=True))


def _keys_of(entries: list[Any]) -> list[np.ndarray]:
    return [e._host for e in entries if hasattr(e, "_host")]


def setitem(array: ndarray, key: Any, value: Any) -> None:
    from cupy._ndarray import ndarray

    entries, advanced = _prepare(key)
    if isinstance(value, ndarray):
        value._use()
    elif advanced:
        value = _upload(value, array.dtype)
    else:
        getitem(array, key).fill(value)
        return
    array._use()
    host_key = _host_key(array, entries, "mask setitem")
    host = value._host
    if host.dtype != array.dtype:
        host = flushed(flushed(host).astype(array.dtype))
    array._host[host_key] = host
    counter.launches += 1
    if ledger.calls is not None:
        read, keys = value._host, _keys_of(entries)
        if advanced:
            size = keys[0].size if keys[0].dtype.kind != "b" else read.size
            ledger.note(
                "setitem",
                read=read.nbytes + sum(k.nbytes for k in keys),
                random=max(size, read.size),
                span=array.nbytes,
            )
        else:
            written = array._host[host_key] if host_key else array._host
            ledger.note_function("setitem", [read], [written])


def scatter(array: ndarray, key: Any, value: Any, operation: str) -> None:
    """``ufunc.at``: duplicates in the key all count."""
    from cupy._ndarray import ndarray

    entries, _ = _prepare(key)
    by_integers = any(isinstance(e, ndarray) and e.dtype.kind != "b" for e in entries)
    if by_integers and array.dtype.name not in _SCATTER_DTYPES[operation]:
        raise TypeError(
            f"cupy.{_SCATTER[operation].__name__}.at only supports "
            f"{', '.join(_SCATTER_DTYPES[operation])} as data type"
        )
    value = value if isinstance(value, ndarray) else _upload(value, array.dtype)
    for operand in (array, value):
        operand._use()
    host_key = _host_key(array, entries, f"mask scatter_{operation}")
    _SCATTER[operation].at(array._host, host_key, value._host.astype(array.dtype, copy=False))
    counter.launches += 1
    if ledger.calls is not None:
        keys = _keys_of(entries)
        of_all = np.zeros(array.shape, np.int64)
        np.add.at(of_all, host_key, 1)
        ledger.note(
            f"{operation}.at",
            read=value.nbytes + sum(k.nbytes for k in keys),
            random=2 * int(of_all.sum()),
            span=array.nbytes,
            hottest=int(of_all.max(initial=0)),
        )
