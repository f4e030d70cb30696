"""What solvers and statistics see of X (n x m): a block of one of two layouts.

Both have ``backend`` (where the work is done), ``shape``, ``reader`` (what the values are read as),
``has_implicit_zeros`` (whether values that are not stored are zero, so that raw sums are the cheap
ones), and the methods below. Sums, medians and products over the values are functions of a block,
in `gpucenters.reductions`.

``read_as(reader)``
    The block with its values read by a reader.
``rows(start, stop, ctx)``
    The rows start..stop; without a copy of dense and CSR data.
``narrowed(also=None)``
    The columns whose sums this block changes, and the block of these alone. The columns are
    ascending, and ``also`` are among them. None where they are not few.
``holds_integers(ctx)``
    Whether all values are integers.
``check_finite(squares, ctx)``
    Raises a ValueError that names the feature and row of the first bad value. Bad is what is not
    finite, what the reader refuses and, if ``squares``, what is too large to be squared.
"""

from __future__ import annotations

from typing import TypeAlias

from .dense import DenseBlock
from .sparse import SparseBlock

Block: TypeAlias = DenseBlock | SparseBlock
