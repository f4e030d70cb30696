"""The table of input types is that of the documentation, and each cell of it is true."""

from __future__ import annotations

import re
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import array_api_compat
import cupy
import cupyx.scipy.sparse
import numpy as np
import pytest
import scipy.sparse
from conftest import HERE
from every_model import EVERY
from input_types import (
    AS_ARRAY,
    AS_CSR,
    COLUMNS,
    IN_BLOCKS,
    IN_MEMORY,
    IN_PARTS,
    MOVED,
    REFUSED,
    TYPES,
    InputType,
    table,
)
from small_data import COUNTS, HALVES

from gpucenters import (
    GMEBClassifier,
    L1CenterClassifier,
    L2CenterClassifier,
    SparseBernoulliNB,
)

SUMS = tuple(kind for kind in EVERY if hasattr(kind, "statistics"))
GMEB = partial(GMEBClassifier, tol=0.5)  # a round or two
MODELS = (SUMS, (L1CenterClassifier,), (GMEB,), (L2CenterClassifier, SparseBernoulliNB))
DEVICES = (None, None, None, "cuda")
CASES = [
    pytest.param(row, column, id=f"{row.name}: {COLUMNS[column]}")
    for row in TYPES
    for column in range(len(COLUMNS))
]


@pytest.mark.parametrize("page", ["README.md", "docs/guide/inputs.md"])
def test_the_table_of_the_page_is_the_declared_one(page: str) -> None:
    text = Path(HERE.parent, page).read_text(encoding="utf-8")
    found = re.search(r"<!-- inputs -->\s*(.*?)\s*<!-- /inputs -->", text, re.DOTALL)
    assert found is not None and found[1] == table()


@pytest.mark.parametrize(("row", "column"), CASES)
def test_each_cell_is_true(row: InputType, column: int) -> None:
    missing = []
    for make in row.make:
        try:
            X = make(COUNTS.astype(np.float64))
        except ImportError as error:
            missing.append(error.name)
            continue
        for model in MODELS[column]:
            if row.outcomes[column] == REFUSED:
                with pytest.raises(TypeError, match=re.escape(row.instead)):
                    model().fit(X, HALVES)
            else:
                _check(model(device=DEVICES[column]), X, row.outcomes[column])
    if len(missing) == len(row.make):
        pytest.skip(f"{missing[0]} is not installed")


def _check(model: Any, X: Any, outcome: str) -> None:
    """Assert where the model is, and of which type the outputs are."""
    model.fit(X, HALVES)
    predicted = model.predict(X)
    columns = model.transform(X) if hasattr(model, "get_support") else predicted
    home = model.scores_ if hasattr(model, "scores_") else model.coef_
    if outcome == MOVED:
        assert isinstance(home, cupy.ndarray)
        assert not isinstance(columns, cupy.ndarray) and not cupyx.scipy.sparse.issparse(columns)
        return
    assert array_api_compat.array_namespace(home) is array_api_compat.array_namespace(predicted)
    if outcome == AS_CSR:
        assert columns is predicted or columns.format == "csr"
    elif outcome == IN_PARTS:
        assert type(columns) is np.ndarray or scipy.sparse.issparse(columns)
    elif outcome == AS_ARRAY:
        assert type(columns) is np.ndarray
    elif scipy.sparse.issparse(X) or cupyx.scipy.sparse.issparse(X):
        assert columns is predicted or type(columns) is type(X)
    else:
        assert array_api_compat.array_namespace(columns) is array_api_compat.array_namespace(X)


@pytest.mark.parametrize("column", range(3))
def test_a_memory_map_is_read_in_blocks_where_the_table_says_so(column: int) -> None:
    (row,) = (row for row in TYPES if row.name == "memory map")
    y = np.arange(12_000) % 2
    X = row.make[0](np.random.default_rng(0).standard_normal((12_000, 50)) + y[:, None])
    tracemalloc.start()
    try:
        MODELS[column][0](memory_budget="1MB").fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert row.outcomes[column] == (IN_BLOCKS if peak < X.nbytes / 2 else IN_MEMORY), peak
