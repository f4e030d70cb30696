from __future__ import annotations

from typing import Any

import scipy as _scipy


def get_array_module(*args: Any) -> Any:
    """`cupyx.scipy` where one of the arguments lives on a device, else SciPy."""
    import sys

    import cupy

    here = cupy.get_array_module(*args) is cupy
    return sys.modules[__name__] if here else _scipy
