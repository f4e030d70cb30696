"""An estimate of what fits take on a card, from the calls that the stand-in for CuPy writes down.

The data are a part of the shape, and so are the chunks: the launches and waits are those of the
whole, and bytes are multiplied.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucenters.arrays import functions, schedule

_MULTIPROCESSORS = 132
_CACHE = 50e6  # bytes of the L2 cache
_SECTOR = 32  # bytes that an access to memory moves at least
_IN_CACHE = 8  # bytes that one to the cache moves
_LATENCY = 5e-7  # seconds until a thread has what it reads
_CONFLICT = 1e-9  # seconds for each further addition to one address


@dataclass(frozen=True)
class Card:
    """Rates of a card and its host.

    Attributes
    ----------
    bandwidth : float
        Bytes a second that it reads and writes.
    launch, wait : float
        Seconds that the host needs to start a kernel, and to learn of the end of one.
    upload : float
        Bytes a second from page-locked memory to the card.
    stage : float
        Bytes a second from pageable memory to page-locked memory.
    """

    bandwidth: float
    launch: float
    wait: float
    upload: float
    stage: float

    def seconds(self, call: Any, part: int, classes: int) -> float:
        """What a call takes, whose arrays are one of so many parts."""
        rate, size = self.bandwidth, part * (call.read + call.written)
        if call.blocks is not None:  # (Blocks for more than the classes are of a part of them.)
            blocks = call.blocks if call.blocks <= classes else part * call.blocks
            rate *= min(1.0, blocks / _MULTIPROCESSORS)
        each = _SECTOR if part * call.span > _CACHE else _IN_CACHE
        moved = size / rate + part * call.random * each / self.bandwidth
        conflicts, chain = part * call.hottest * _CONFLICT, call.serial * _LATENCY
        return max(call.launches * self.launch, moved, conflicts, chain)


@dataclass(frozen=True)
class Estimate:
    """What a card would take for a piece of work, in seconds and bytes.

    Attributes
    ----------
    seconds : float
    launches, waits : int
    bytes : int
        Read and written.
    kernels : int
        To be compiled when it is done for the first time.
    pinned, workspace : int
        Page-locked memory, and the most that a call needs beyond arguments and results.
    libraries : list of str
        Those of CUDA that it uses, which take memory outside of CuPy's pool.
    greatest : list of (str, float)
        The three kinds of calls that take most of the time.
    """

    seconds: float
    launches: int
    waits: int
    bytes: int
    kernels: int
    pinned: int
    workspace: int
    libraries: list[str]
    greatest: list[tuple[str, float]]


def estimate(work: Callable[[], Any], card: Card, part: int = 1, classes: int = 2) -> Estimate:
    """The estimate for ``work``, done on the stand-in."""
    import cupy

    fake: Any = cupy._fake  # type: ignore[attr-defined]
    with fake.count_syncs() as counts, fake.recording() as calls:
        work()
    times: Counter[str] = Counter()
    for call in calls:
        times[_shown(call)] += card.seconds(call, part, classes)
    times["waits"] = card.wait * counts.syncs
    seconds = sum(times.values())
    sent = part * sum(call.sent for call in calls)
    if sent:
        # While a chunk is worked on, the next one is sent, and the host fills the one after it.
        last = max(i for i, call in enumerate(calls) if call.sent)
        behind = sum(card.seconds(call, part, classes) for call in calls[last + 1 :])
        first = part * max(call.sent for call in calls) / card.stage
        times["upload"] = sent / card.upload
        times["host"] = sent / card.stage + card.launch * sum(c.launches for c in calls[:last])
        seconds = first + max(seconds - behind, times["upload"], times["host"]) + behind
    return Estimate(
        seconds,
        sum(call.launches for call in calls),
        counts.syncs,
        part * sum(call.read + call.written for call in calls),
        len({call.kernel for call in calls} - {()}),
        part * sum(call.workspace for call in calls if call.name == "alloc_pinned"),
        part * max((call.workspace for call in calls), default=0),
        sorted(fake.libraries(calls)),
        times.most_common(3),
    )


def _shown(call: Any) -> str:
    """The name of a call, with the shape of a reduction that few blocks share."""
    few = call.blocks is not None and call.blocks < _MULTIPROCESSORS and call.reduction[1] > 2**14
    return f"{call.name} of {call.blocks} rows" if few else call.name


@contextlib.contextmanager
def parts_of_chunks(part: int) -> Iterator[None]:
    """Chunks (and parts of rows) that are one of so many parts of those of the whole data."""
    modules: list[tuple[Any, str]] = [(schedule, "CUDA_CHUNK"), (schedule, "UPLOAD_BYTES")]
    modules += [(functions, "CUDA_CHUNK"), (functions, "_PART_OF_ROW")]
    before = [getattr(module, name) for module, name in modules]
    for (module, name), size in zip(modules, before, strict=True):
        setattr(module, name, max(1, size // part))
    try:
        yield
    finally:
        for (module, name), size in zip(modules, before, strict=True):
            setattr(module, name, size)


def use_stand_in() -> None:
    """Make the stand-in for CuPy the one that is imported, whether or not there is a device."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fake_cupy"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The rates of the card; those of an H100 and its host by default."""
    rates = {
        "bandwidth": (3.35e12, "bytes a second of the card's memory"),
        "launch": (3e-6, "seconds to start a kernel"),
        "wait": (1e-5, "seconds until the host knows that the card is done"),
        "upload": (5.5e10, "bytes a second from page-locked memory"),
        "stage": (6e10, "bytes a second from pageable to page-locked memory"),
    }
    for name, (value, about) in rates.items():
        parser.add_argument(f"--{name}", type=float, default=value, help=about)


def card_of(options: argparse.Namespace) -> Card:
    """The card that the options say."""
    return Card(*(getattr(options, name) for name in Card.__dataclass_fields__))


def show(row: str, found: Estimate) -> None:
    """Print a row of the table; MB are those of the greatest sort and of page-locked memory."""
    items = ", ".join(f"{name} {1e3 * took:.2f}" for name, took in found.greatest)
    print(
        f"{row:24}{1e3 * found.seconds:9.2f} ms {found.launches:7,} launches {found.waits:4} waits"
        f"{found.bytes / 1e9:8.2f} GB {found.kernels:4} kernels"
        f"{(found.workspace + found.pinned) / 1e6:8,.0f} MB  {items}"
    )
