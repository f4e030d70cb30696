"""Asynchronous copies from the host to a CUDA device, overlapped with computation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import cuda
from .backend import HOST
from .schedule import ranges, run, thread_count
from .typing import NumPyOrCuPy as Array

_ALIGNMENT = 512  # bytes: where an array may begin on the device
_COPY_BYTES = 2**22  # bytes that one thread copies in one go
_SLOTS = 4  # one is worked on, one is copied to the device, and the host fills the others
_LARGEST_SLACK = 8  # a slot is freed if it is larger than so many times the chunk


@dataclass
class _Slot:
    """Room for one chunk: page-locked memory, and as much of the device's."""

    host: np.ndarray
    device: Array
    copied: Any  # the event after which the page-locked half may be written again


class Upload:
    """Sends chunks of host arrays to the current device.

    Only page-locked memory can be copied while kernels run, so a chunk goes there first. Slots take
    turns: while the device works on one, the others are filled. What `send` returns is for work
    queued on the current stream before the third call from then: the fourth overwrites it, and
    waits for such work alone.
    """

    def __init__(self) -> None:
        self._slots: list[_Slot | None] = [None] * _SLOTS
        self._pool = ThreadPoolExecutor(thread_count(HOST))  # which starts threads when needed
        self._cupy = cuda.require()
        self._stream = self._cupy.cuda.Stream(non_blocking=True)
        self._before: Any = None  # all work that was queued when the last chunk was sent

    def send(self, *arrays: np.ndarray) -> list[Array]:
        """The arrays on the device, contiguous; what is queued from now on waits for them."""
        working = self._cupy.cuda.get_current_stream()
        queued = self._cupy.cuda.Event(disable_timing=True)
        queued.record(working)
        before, self._before = self._before, queued
        bounds = np.cumsum([0] + [-(-a.nbytes // _ALIGNMENT) * _ALIGNMENT for a in arrays]).tolist()
        slot, self._slots = self._slots[0], [*self._slots[1:], None]
        if slot is not None:
            slot.copied.synchronize()
            self._stream.wait_event(before)  # the last work on this slot is among it
        if slot is None or not bounds[-1] <= slot.host.shape[0] <= _LARGEST_SLACK * bounds[-1]:
            slot = None  # its memory is released before the new slot is allocated
            slot = self._new_slot(bounds[-1])
            self._stream.wait_event(queued)  # its memory may have served anything before
        self._slots[-1] = slot
        for array, start in zip(arrays, bounds, strict=False):
            _copy(array, slot.host[start : start + array.nbytes], self._pool)
        slot.device[: bounds[-1]].set(slot.host[: bounds[-1]], stream=self._stream)
        slot.copied.record(self._stream)
        working.wait_event(slot.copied)
        return [
            slot.device[start : start + a.nbytes].view(a.dtype).reshape(a.shape)
            for a, start in zip(arrays, bounds, strict=False)
        ]

    def _new_slot(self, size: int) -> _Slot:
        import cupyx

        # Of a power of two, as which CuPy allocates page-locked memory: for chunks that differ.
        size = 1 << max(size - 1, 0).bit_length()
        device = self._cupy.empty(size, self._cupy.uint8)
        host = cupyx.empty_pinned(size, np.uint8)
        return _Slot(host, device, self._cupy.cuda.Event(disable_timing=True))

    def __del__(self) -> None:
        self._pool.shutdown(wait=False)
        # CuPy may reuse page-locked memory during a copy, so wait for the copies.
        for slot in self._slots:
            if slot is not None:
                slot.copied.synchronize()


def sendable(array: np.ndarray) -> np.ndarray:
    """The array, as float64 where it is of a type that no device has."""
    if array.dtype.itemsize > 8 or not array.dtype.isnative:
        return array.astype(np.float64)
    return array


def _copy(source: np.ndarray, target: np.ndarray, pool: ThreadPoolExecutor) -> None:
    """Copy an array of any strides into as many bytes, side by side."""
    target = target.view(source.dtype).reshape(source.shape)
    if source.size == 0:
        return
    step = max(1, _COPY_BYTES * source.shape[0] // max(source.nbytes, 1))

    def copy(cut: tuple[int, int]) -> None:
        target[cut[0] : cut[1]] = source[cut[0] : cut[1]]

    for _ in run(copy, ranges(source.shape[0], step), HOST, pool=pool):
        pass
