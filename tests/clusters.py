"""Data in partitions and models, for the tests of fits on a Dask cluster."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import dask
import numpy as np
import pytest
import scipy.sparse as sp

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
)

WARNINGS = [
    # Of the libraries that the cluster is made of.
    pytest.mark.filterwarnings("default::DeprecationWarning"),
    pytest.mark.filterwarnings("default::FutureWarning"),
    pytest.mark.filterwarnings("default::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph"),
    pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler"),
]

RNG = np.random.default_rng(0)
COUNTS = sp.csr_array(RNG.poisson(0.4, (240, 30)) * (RNG.random((240, 30)) < 0.9))
VALUES = RNG.standard_normal((240, 6)) + 3.0
LABELS = RNG.integers(0, 3, 240)
COUNTS = sp.csr_array(COUNTS + sp.csr_array((LABELS[:, None] == np.arange(30) // 2) * 2))
WEIGHTS = RNG.integers(0, 3, 240)
EDGES = [0, 31, 31, 90, 91, 160, 200, 240]  # one partition is empty, one is a row

ON_SUMS = [
    L2CenterClassifier(k=4),
    L2CenterClassifier(k=4, scale="pooled", priors="empirical"),
    SparseBernoulliNB(k=4),
    SparseMultinomialNB(k=4),
    SparsePoissonNB(k=4),
    SparseGaussianNB(k=4),
    ShrunkenCentroidClassifier(k=4),
]
# Of moments that are centred where they are made: equal up to rounding.
CENTRED = (SparseGaussianNB, ShrunkenCentroidClassifier)
ON_MEDIANS = [L1CenterClassifier(k=2), L1CenterClassifier(k=2, scale="std")]


def name_of(model: Any) -> str:
    return f"{type(model).__name__}-{getattr(model, 'scale', None)}"


def parts(x: Any, edges: list[int] = EDGES) -> list[Any]:
    return [dask.delayed(x[a:b]) for a, b in itertools.pairwise(edges)]


def same_bits(a: Any, b: Any) -> None:
    same = np.array_equal
    if getattr(a, "scale", None) == "pooled" or isinstance(a, CENTRED):
        same = partial(np.allclose, rtol=1e-12)
    assert same(a.scores_, b.scores_)
    assert same(a.centers_, b.centers_)
    assert np.array_equal(a.ranking_, b.ranking_)
    assert a.classes_.tolist() == b.classes_.tolist()
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-13)
