"""Whether the workers of a cluster run the caller's version of the library."""

from __future__ import annotations

from typing import Any

from .. import __version__


def check_versions(client: Any) -> None:
    """Raise a RuntimeError that names a worker with another version of gpucenters, or none."""
    found = client.get_versions(packages=["gpucenters"])["workers"]
    for worker, versions in found.items():
        version = versions["packages"].get("gpucenters")
        if version != __version__:
            raise RuntimeError(
                f"worker {worker} has gpucenters {version}, this process {__version__}: install "
                "one version everywhere."
            )
