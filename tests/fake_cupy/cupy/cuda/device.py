from __future__ import annotations

from typing import Any

from cupy._fake import devices as _devices
from cupy._fake import flight as _flight
from cupy._fake.counting import counter as _counter
from cupy._fake.memory import TOTAL as _TOTAL
from cupy._fake.memory import pool as _pool
from cupy._fake.streams import note as _note


class Device:
    """One of the pretended devices; without a number, the current one."""

    def __init__(self, device: int | Device | None = None) -> None:
        if isinstance(device, Device):
            device = device.id
        self.id = _devices.current() if device is None else int(device)

    def __int__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def __enter__(self) -> Any:
        _devices.push(self.id)
        return self

    def __exit__(self, *args: object) -> None:
        _devices.pop()

    def __hash__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __lt__(self, other: Device) -> bool:
        return self.id < other.id

    def use(self) -> None:
        _devices.make_current(self.id)

    def synchronize(self) -> None:
        _counter.wait("Device.synchronize")
        _flight.synchronize_all()
        _note("synchronize", f"device {self.id}")

    @property
    def compute_capability(self) -> str:
        return "90"

    @property
    def attributes(self) -> dict[str, int]:
        return {"MultiProcessorCount": 1, "WarpSize": 32}

    @property
    def mem_info(self) -> tuple[int, int]:
        return _pool(self.id).free(), _TOTAL


def get_device_id() -> int:
    return _devices.current()
