"""Counts of what makes the host wait for the device, and of what crosses to it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from cupy._fake import flight, streams


@dataclass
class Counter:
    """`syncs`: times the host waited. `uploads`: copies from pageable host memory.

    Copies from pinned memory are `pinned_uploads`: they can overlap with work, the others can't.
    `launches`: operations on arrays of the device, views left out.
    """

    syncs: int = 0
    launches: int = 0
    uploads: int = 0
    pinned_uploads: int = 0
    uploaded_bytes: int = 0
    log: list[tuple[str, str]] = field(default_factory=list)

    def sync(self, reason: str) -> None:
        """The host waits for the current stream."""
        self.wait(reason)
        flight.synchronize(streams.name())

    def wait(self, reason: str) -> None:
        """The host waits for something."""
        from cupy._core import syncdetect

        syncdetect._declare_synchronize()
        self.syncs += 1
        self.log.append(("sync", reason))

    def upload(self, reason: str, nbytes: int, *, pinned: bool) -> None:
        if pinned:
            self.pinned_uploads += 1
        else:
            self.uploads += 1
        self.uploaded_bytes += nbytes
        self.log.append(("pinned upload" if pinned else "upload", reason))

    @property
    def reasons(self) -> list[str]:
        """What synchronised, in order."""
        return [reason for kind, reason in self.log if kind == "sync"]

    def reset(self) -> None:
        self.syncs = self.launches = 0
        self.uploads = self.pinned_uploads = self.uploaded_bytes = 0
        self.log.clear()


counter = Counter()


@contextlib.contextmanager
def count_syncs() -> Iterator[Counter]:
    """What happens within the block alone: ``with count_syncs() as seen: ...; seen.syncs``."""
    seen = Counter()
    start = (counter.syncs, counter.uploads, counter.pinned_uploads, counter.uploaded_bytes)
    first, launches = len(counter.log), counter.launches
    try:
        yield seen
    finally:
        seen.syncs = counter.syncs - start[0]
        seen.launches = counter.launches - launches
        seen.uploads = counter.uploads - start[1]
        seen.pinned_uploads = counter.pinned_uploads - start[2]
        seen.uploaded_bytes = counter.uploaded_bytes - start[3]
        seen.log.extend(counter.log[first:])
