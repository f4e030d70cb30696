"""Products of matrices and eigenvectors whose bits do not depend on the number of threads.

BLAS partitions its work by the number of its threads, and the last bits depend on the partition. So
it is limited to one thread while a model is fitted, and `gram` runs fixed tiles on several threads.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from scipy.linalg import lapack
from threadpoolctl import OpenBLASController, ThreadpoolController

from .backend import Backend
from .namespace import is_numpy
from .schedule import ranges, run
from .typing import Array

_TILE = 256  # columns of one tile: enough for BLAS to reach its peak


class _Holder:
    """One that needs the limit."""


_lock = threading.RLock()
# One for each `one_blas_thread` that is active. Of one that an interrupt ended at its very end the
# frame is gone, and so is the holder.
_holders: weakref.WeakSet[_Holder] = weakref.WeakSet()
_limit: Any = None


def _after_fork() -> None:
    """In a child process: no thread that held the lock or the limit exists here."""
    global _lock
    _lock = threading.RLock()
    _holders.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread(backend: Backend) -> Iterator[None]:
    """Limit the host's BLAS to one thread; on backends of other libraries nothing is done.

    The setting belongs to the process: of fits that run at the same time the first one sets it, and
    the last one restores it.
    """
    global _limit
    if not is_numpy(backend.xp):
        yield
        return
    holder = _Holder()
    try:
        with _lock:
            if not _holders:
                if _limit is not None:  # a limit that a parent process had set
                    _restore()
                _free_control()
                _limit = _libraries().limit(limits=1, user_api="blas")
            _holders.add(holder)
        yield
    finally:
        with _lock:
            _holders.discard(holder)
            if not _holders and _limit is not None:
                _restore()
                _limit = None


def _restore() -> None:
    _free_control()
    _limit.restore_original_limits()
    _free_control()


def _free_control() -> None:
    """Let this thread set the limit: in threadpoolctl 3.8 the first thread that sets it owns it.

    The limit here is counted over threads, so the thread that restores it may be another one.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


def add_gram(rows: Array, into: Array, backend: Backend) -> None:
    """``into += rows.T @ rows``, in place.

    Parameters
    ----------
    rows : array of shape (r, m), float64
    into : array of shape (m, m), float64
        Symmetric, and it stays so to the bit.
    backend : Backend
    """
    xp, m = backend.xp, rows.shape[1]
    cuts = [slice(*cut) for cut in ranges(m, _TILE if is_numpy(xp) else m)]

    def add(tile: tuple[slice, slice]) -> None:
        left, right = tile
        part = xp.matrix_transpose(rows[:, left]) @ rows[:, right]
        if left == right:
            # NumPy's product with the own transpose is exactly symmetric; others are made so.
            into[left, left] += part if is_numpy(xp) else (part + xp.matrix_transpose(part)) / 2
        else:
            into[left, right] += part
            into[right, left] += xp.matrix_transpose(part)

    tiles = [(a, b) for i, a in enumerate(cuts) for b in cuts[i:]]
    if len(tiles) == 1:
        add(tiles[0])
        return
    for _ in run(add, tiles, backend):
        pass


def gram(rows: Array, backend: Backend) -> Array:
    """``rows.T @ rows``: symmetric, of shape (m, m)."""
    out = backend.zeros((rows.shape[1], rows.shape[1]))
    add_gram(rows, out, backend)
    return out


def quadratic_forms(matrix: Array, vectors: Array, backend: Backend) -> Array:
    """``v.T @ matrix @ v`` of each column v of ``vectors``: shape (m,)."""
    xp, m = backend.xp, vectors.shape[1]

    def forms(cut: tuple[int, int]) -> Array:
        v = vectors[:, cut[0] : cut[1]]
        return xp.sum(v * (matrix @ v), axis=0)

    return xp.concat(list(run(forms, ranges(m, _TILE), backend)))


def factorised(matrix: Array, backend: Backend) -> Callable[[Array], Array]:
    """``solve(b)`` for systems with one symmetric positive definite matrix: (k,) or (k, q).

    One factorisation serves all of them. Where rounding has left the matrix indefinite that is
    Gauss's on the host, and elsewhere, where the array API standard has none to keep, each call
    factorises anew. It has no triangular solve either: the inverse of the Cholesky factor is kept.
    """
    if is_numpy(backend.xp):
        factor, failed = lapack.dpotrf(matrix, lower=True)
        if not failed:
            return lambda b: lapack.dpotrs(factor, b, lower=True)[0]
        factors, pivots, _ = lapack.dgetrf(matrix)
        return lambda b: lapack.dgetrs(factors, pivots, b)[0]
    linalg, transpose = backend.xp.linalg, backend.xp.matrix_transpose
    try:
        root = linalg.cholesky(matrix)
    except Exception as error:  # each library has a LinAlgError of its own
        if not type(error).__name__.endswith("LinAlgError"):
            raise
        return lambda b: linalg.solve(matrix, b)
    eye = backend.xp.eye(matrix.shape[0], dtype=backend.xp.float64, device=backend.device)
    inverse = linalg.solve(root, eye)
    return lambda b: transpose(inverse) @ (inverse @ b)
