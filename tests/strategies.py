"""Small problems for hypothesis, and comparisons of their solutions."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpucenters import UninformativeFeaturesWarning


class Problem(NamedTuple):
    """Whole values, class codes and optional whole weights, positive in sum for each class."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None

    @property
    def weight(self) -> np.ndarray:
        """Weight of each sample."""
        return np.ones(len(self.y)) if self.weights is None else self.weights


def modest(examples: int) -> settings:
    """Settings with the same examples in every run."""
    return settings(
        derandomize=True,
        max_examples=examples,
        deadline=None,
        database=None,
        # A backend holds no state, so that one may serve many examples.
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


@st.composite
def problems(draw: Any, classes: tuple[int, int] = (2, 4), weighted: bool | None = None) -> Problem:
    """Problems of few distinct values, with many ties and zeros."""
    k = draw(st.integers(*classes))
    n, m = draw(st.integers(k, 12)), draw(st.integers(1, 5))
    X = draw(arrays(np.int64, (n, m), elements=st.integers(-4, 4)))
    rest = draw(st.lists(st.integers(0, k - 1), min_size=n - k, max_size=n - k))
    y = np.asarray(draw(st.permutations([*range(k), *rest])))
    weights = None
    if draw(st.booleans()) if weighted is None else weighted:
        weights = draw(arrays(np.int64, n, elements=st.integers(0, 3)))
        for c in range(k):
            if not weights[y == c].any():
                weights[np.flatnonzero(y == c)[0]] = 1
    return Problem(X, y, weights)


def storing(backend: Any, values: Any, stored: Any, dtype: Any = np.float64) -> Any:
    """A CSR matrix of ``values`` with an entry wherever ``stored`` says, zeros too."""
    values, stored = np.asarray(values, dtype=dtype), np.asarray(stored, dtype=bool)
    rows, columns = np.nonzero(stored)
    indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    parts = (values[rows, columns], columns.astype(np.int32), indptr.astype(np.int32))
    matrix = scipy.sparse.csr_matrix(parts, shape=values.shape)
    assert matrix.nnz == stored.sum()
    return matrix if backend.name == "numpy" else backend.sparse.csr_matrix(matrix)


def solution(centers: Any, backend: Any) -> dict[str, np.ndarray]:
    """Free, tied, gain and loss on the host."""
    found = {name: backend.host(getattr(centers, name)) for name in ("free", "tied", "gain")}
    return found | {"loss": np.asarray(centers.loss)}


def assert_equal(found: dict, expected: dict) -> None:
    """Assert equal numbers; zeros of either sign are equal."""
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def assert_close(found: dict, expected: dict) -> None:
    """Assert equality up to rounding."""
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12, err_msg=name)


def quietly(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call without warnings that k exceeds the positive gains, or that features separate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UninformativeFeaturesWarning)
        warnings.filterwarnings("ignore", message=".*constant up to rounding within each class")
        return function(*args, **kwargs)


def floats(values: Any) -> np.ndarray:
    """Fractions as float64."""
    return np.asarray(values, dtype=object).astype(np.float64)
