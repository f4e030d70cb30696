"""Selecting rows and columns of a compressed matrix.

Along the rows of a CSR matrix the order of the entries is kept. A choice of columns by number or
by mask is written by threads that race for places and comes out unsorted: here, falling.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from cupy._fake.counting import counter
from cupyx.scipy.sparse._base import _spbase, dense, sparray


class Indexing(_spbase):
    def __getitem__(self, key: Any) -> Any:
        row, column = self._keys(key)
        integers = isinstance(row, int), isinstance(column, int)
        if all(integers):
            counter.sync("sparse element")
            return dense(np.asarray(self._scipy()[row, column], dtype=self.dtype))
        if isinstance(self, sparray) and any(integers):
            raise NotImplementedError("the stand-in has no 1-D sparse arrays")
        if isinstance(row, cupy.ndarray) and isinstance(column, cupy.ndarray):
            if row.ndim == 2 and row.shape[1] == 1 and (column.ndim == 1 or len(column) == 1):
                row, column = row[:, 0], column.ravel()
            else:
                picked = self._scipy()[row._host, column._host]
                picked = picked.toarray() if hasattr(picked, "toarray") else np.asarray(picked)
                return dense(picked if isinstance(self, sparray) else np.atleast_2d(picked))
        major, minor = self._swap(*(_as_slice(k) for k in (row, column)))
        if _is_all(major, self._swap(*self.shape)[0]) and _is_all(
            minor, self._swap(*self.shape)[1]
        ):
            return self.copy()
        return self._select_major(major)._select_minor(minor)

    def _keys(self, key: Any) -> tuple[Any, Any]:
        if not isinstance(key, tuple):
            key = (key,)
        if Ellipsis in [k for k in key if not hasattr(k, "ndim")]:
            at = [k is Ellipsis for k in key].index(True)
            full = (slice(None),) * (3 - len(key))
            key = key[:at] + full + key[at + 1 :]
        row, column = (*key, slice(None), slice(None))[:2]
        return self._one_key(row, self.shape[0], "row"), self._one_key(
            column, self.shape[1], "column"
        )

    def _one_key(self, key: Any, length: int, what: str) -> Any:
        if isinstance(key, slice):
            return key
        if isinstance(key, cupy.ndarray | np.ndarray) and key.ndim == 0 and key.dtype != bool:
            key = key.item()
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            if not -length <= key < length:
                raise IndexError(f"{what} index ({key}) out of range")
            return int(key) % length
        array = cupy.asarray(key)
        if array.dtype == bool:
            if array.ndim != 1 or len(array) != length:
                raise IndexError(f"boolean {what} index has incorrect length")
            return array.nonzero()[0]
        if array.ndim not in (1, 2):
            raise IndexError("Index dimension must be 1 or 2")
        return array.astype(self.indices.dtype) % length

    def _select_major(self, key: Any) -> Any:
        major, minor = self._swap(*self.shape)
        if _is_all(key, major):
            return self
        if isinstance(key, slice) and key.step in (None, 1):
            start, stop, _ = key.indices(major)
            stop = max(start, stop)
            counter.sync("sparse row slice")
            bounds = self.indptr._host[[start, stop]]
            part = slice(int(bounds[0]), int(bounds[1]))
            return self._from_parts(
                self.data[part].copy(),
                self.indices[part].copy(),
                self.indptr[start : stop + 1] - self.indptr.dtype.type(bounds[0]),
                self._swap(stop - start, minor),
                self,
            )
        chosen = np.arange(major)[key] if isinstance(key, slice) else key._host
        counter.sync("sparse row selection")
        starts = self.indptr._host[chosen]
        counts = self.indptr._host[chosen + 1] - starts
        indptr = np.concatenate(([0], np.cumsum(counts))).astype(self.indptr.dtype)
        where = np.repeat(starts - indptr[:-1], counts) + np.arange(indptr[-1])
        return self._from_parts(
            dense(self.data._host[where]),
            dense(self.indices._host[where]),
            dense(indptr),
            self._swap(chosen.size, minor),
            self,
        )

    def _select_minor(self, key: Any) -> Any:
        major, minor = self._swap(*self.shape)
        if _is_all(key, minor):
            return self
        in_order = isinstance(key, slice) and key.step in (None, 1)
        chosen = np.arange(minor)[key] if isinstance(key, slice) else key._host
        counter.sync("sparse column slice" if in_order else "sparse column selection")
        # Every stored entry is repeated for each time that its column is asked for.
        order = np.argsort(chosen, kind="stable")
        first, last = (
            np.searchsorted(chosen[order], self.indices._host, side) for side in ("left", "right")
        )
        times = last - first
        rows = np.repeat(np.arange(major), np.diff(self.indptr._host))
        source = np.repeat(np.arange(times.size), times)
        within = np.arange(source.size) - np.repeat(np.cumsum(times) - times, times)
        indices = order[first[source] + within]
        rows = rows[source]
        if not in_order:
            turned = np.lexsort((-indices, rows))
            source, indices = source[turned], indices[turned]
        indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=major))))
        dtype = self.indices.dtype
        return self._from_parts(
            dense(self.data._host[source]),
            dense(indices.astype(dtype)),
            dense(indptr.astype(dtype)),
            self._swap(major, chosen.size),
            self if in_order else None,
        )


def _as_slice(key: Any) -> Any:
    return slice(key, key + 1) if isinstance(key, int) else key


def _is_all(key: Any, length: int) -> bool:
    return isinstance(key, slice) and key.indices(length) == (0, length, 1)
