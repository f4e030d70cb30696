"""``gpucenters devices``."""

from __future__ import annotations

from .data import AsJson
from .output import show_json, show_table


def devices(json: AsJson = False) -> None:
    """List the devices of this machine, and why those that cannot be used cannot."""
    import gpucenters

    found = gpucenters.devices()
    if json:
        show_json([vars(device) for device in found])
    else:
        show_devices(found)


def show_devices(found: list) -> None:
    """Print a table of devices.

    Parameters
    ----------
    found : list of DeviceInfo
    """
    rows = [[device.name, "yes" if device.usable else "no", device.description] for device in found]
    head = {"device": "left", "usable": "left", "what it is, or why it cannot be used": "left"}
    show_table("Devices of this machine", head, rows)
