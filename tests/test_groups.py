"""Groups of samples: which are taken, as what, and which are refused, wherever there are groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from answers import mixed_data
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut

from gpucenters import L2CenterClassifier, SparsityPathCV, permutation_gains, sparsity_path

X, Y = mixed_data(2)
BLOCKS = np.arange(24) // 6

CALLS: dict[str, Callable[[Any], Any]] = {
    "permutation_gains": lambda groups: (
        permutation_gains(L2CenterClassifier(), X, Y, 5, groups=groups, random_state=0).pvalues
    ),
    "sparsity_path": lambda groups: (
        sparsity_path(L2CenterClassifier(), X, Y, ks=[2], cv=GroupKFold(2), groups=groups).mean
    ),
    "random splits": lambda groups: (
        sparsity_path(
            L2CenterClassifier(), X, Y, ks=[2], n_splits=2, groups=groups, random_state=0
        ).mean
    ),
    "SparsityPathCV": lambda groups: (
        SparsityPathCV(L2CenterClassifier(), ks=[2], cv=LeaveOneGroupOut())
        .fit(X, Y, groups=groups)
        .path_.mean
    ),
}


def _with(value: Any, dtype: Any = object) -> np.ndarray:
    groups = BLOCKS.astype(dtype)
    groups[[5, 7]] = value
    return groups


BAD_GROUPS = {
    "NaN": (_with(np.nan, float), "groups contains NaN, first in row 5"),
    "None": (_with(None), "groups contains None, first in row 5"),
    "NaN among strings": (
        ["a"] * 5 + [np.nan] + ["b"] * 18,
        "groups contains NaN, first in row 5",
    ),
    "NA of integers": (
        pd.Series(_with(None), dtype="Int64"),
        "groups contains <NA>, first in row 5",
    ),
    "NA of strings": (
        pd.Series(_with(None)).map(str, na_action="ignore").astype("string"),
        "groups contains <NA>, first in row 5",
    ),
    "NaN of categories": (
        pd.Series(_with(None)).map(str, na_action="ignore").astype("category"),
        "groups contains NaN, first in row 5",
    ),
    "null of polars": (pl.Series(_with(None).tolist()), "groups contains NaN, first in row 5"),
    "NaT": (_with("NaT", "M8[D]"), "groups contains NaT, first in row 5"),
    "two columns": (np.stack([BLOCKS, BLOCKS], axis=1), r"groups must.*shape \(24, 2\)"),
    "a number": (np.asarray(3), r"groups must.*shape \(\)"),
    "another length": ([1, 2, 3], "groups has 3 entries, but X has 24"),
    "mixed types": (_with("a"), "groups cannot be compared.*'a' in row 5 beside 0"),
}


@pytest.mark.parametrize("call", list(CALLS))
@pytest.mark.parametrize("case", list(BAD_GROUPS))
def test_groups_that_are_missing_or_no_groups_are_refused(case: str, call: str) -> None:
    groups, message = BAD_GROUPS[case]
    with pytest.raises(ValueError, match=message):
        CALLS[call](groups)


@pytest.mark.parametrize("call", list(CALLS))
def test_groups_of_every_kind_are_taken_by_their_exact_values(call: str, backend: Any) -> None:
    large = BLOCKS + 2**53
    expected = CALLS[call](BLOCKS)
    for groups in (
        BLOCKS.tolist(),
        backend.array(BLOCKS),
        BLOCKS[:, None],
        large,
        pd.Series(large, dtype="Int64"),
        pd.DataFrame({"donor": pd.Series(large, dtype="int64[pyarrow]")}),
        np.asarray(list("abcd"))[BLOCKS],
        pd.Series(list("abcd"), dtype="category")[BLOCKS],
        pl.Series(np.asarray(list("abcd"))[BLOCKS]),
        BLOCKS.astype(object),
    ):
        np.testing.assert_array_equal(CALLS[call](groups), expected)
