"""What the standard lacks, in pure array API: for any dense namespace."""

from __future__ import annotations

from .typing import Array, Namespace


def top_k(key: Array, k: int, xp: Namespace) -> Array:
    """Indices of the k largest keys, ascending; among equal keys the lower index is taken."""
    order = xp.argsort(-key, stable=True)
    return xp.sort(order[:k])
