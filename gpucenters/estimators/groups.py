"""Groups of samples: blocks to permute labels in, and what splitters keep together."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.label_values import exact_values, first_missing


def check_groups(groups: Any, n_samples: int) -> np.ndarray:
    """The group of each sample as a NumPy array of shape (n_samples,).

    Raises
    ------
    ValueError
        For another shape, and for groups that are missing or cannot be compared with each other.
    """
    found = np.asarray(exact_values(groups, "groups"))
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise ValueError(f"groups must have one entry for each sample, got shape {found.shape}.")
    if found.shape[0] != n_samples:
        raise ValueError(f"groups has {found.shape[0]} entries, but X has {n_samples} samples.")
    if found.dtype.kind == "T":
        found = found.astype(object)
    if missing := first_missing(found):
        row, what = missing
        raise ValueError(
            f"groups contains {what}, first in row {row}: leave such samples out, or name a group "
            "for them."
        )
    try:
        np.unique(found)
    except TypeError as error:
        kinds = [type(value) for value in found.tolist()]
        row = next((i for i, kind in enumerate(kinds) if kind is not kinds[0]), 0)
        raise ValueError(
            f"groups cannot be compared with each other: {found[row]!r} in row {row} beside "
            f"{found[0]!r}. Use numbers alone, or strings alone."
        ) from error
    return found
