"""The mathematics: pure functions and frozen dataclasses, written once against the array API.

Arrays and integer class codes go in, `SparseCenters` come out; no scikit-learn is needed.
"""

from .centers import SparseCenters
from .l1 import L1Centers, l1_centers
from .l2 import L2Centers, l2_centers
from .selection import Selection, ranking_key, resolve_k, select

__all__ = [
    "L1Centers",
    "L2Centers",
    "Selection",
    "SparseCenters",
    "l1_centers",
    "l2_centers",
    "ranking_key",
    "resolve_k",
    "select",
]
