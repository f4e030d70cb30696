"""X in pieces: dense and sparse blocks, their samples, and the checks of X.

How the values of X are reached stays inside this folder: chunks, layouts, devices and disks. What
is computed of them is in `gpucenters.reductions`: sums, medians and products are functions of a
block.

What solvers and statistics see of X (n x m) is a `Block`, of one of two layouts. Both have
``backend`` (where the work is done), ``shape``, ``transform`` (of each value, or None),
``has_implicit_zeros`` (whether values that are not stored are zero, so that raw sums are the cheap
ones), and the methods

``rows(start, stop, ctx)``
    The rows start..stop; without a copy of dense and CSR data.
``narrowed(also=None)``
    The columns whose sums this block changes, and the block of these alone. The columns are
    ascending, and ``also`` are among them. None where they are not few.
``holds_integers(ctx)``
    Whether all values are integers.
``check_finite(squares, ctx)``
    Raises a ValueError that names the feature and row of the first bad value. Bad is what is not
    finite, what the transform refuses and, if ``squares``, what is too large to be squared.
"""

from __future__ import annotations

from typing import TypeAlias

from .dense import DenseBlock
from .sparse import SparseBlock

__all__ = ["Block"]

Block: TypeAlias = DenseBlock | SparseBlock
