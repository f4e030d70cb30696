"""The bits of statistics, for tests that they do not change."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpucenters.arrays.backend import HOST


def bits(statistics: Any) -> list[Any]:
    """The bytes of every array of the statistics, and their lists of weights and counts."""
    arrays = [np.asarray(array).tobytes() for _, _, array in statistics.to(HOST)._arrays()]
    return [*arrays, list(statistics.class_weight), list(statistics.count)]
