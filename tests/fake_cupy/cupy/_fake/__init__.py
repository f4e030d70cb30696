"""What a test may look at and set, and what the real CuPy has no counterpart of.

- `counter.syncs`, `counter.uploads`, `counter.log`, `counter.reset()`, `count_syncs()`
- `actions`: what was put on which stream, in order
- `recording()`: the calls within a block, with the bytes of each and what else a GPU would feel
- `faults`: what would be a race between host, copies and work (`flight`)
- `set_device_count(2)`, or the environment variable FAKE_CUPY_DEVICES
- `reset()`: everything back to the state after import
"""

from cupy._fake import memory
from cupy._fake.counting import Counter, count_syncs, counter
from cupy._fake.devices import set_device_count
from cupy._fake.flight import faults
from cupy._fake.ledger import Call, libraries, recording
from cupy._fake.memory import Pool, pool
from cupy._fake.streams import Action, actions

__all__ = [
    "Action",
    "Call",
    "Counter",
    "Pool",
    "actions",
    "count_syncs",
    "counter",
    "faults",
    "libraries",
    "memory",
    "pool",
    "recording",
    "reset",
    "set_device_count",
]


def reset() -> None:
    from cupy._fake import devices, memory, streams

    counter.reset()
    streams.reset()
    devices.reset()
    memory.reset()
