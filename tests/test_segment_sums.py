"""Sums of terms over segments of features, products of several supports, and rows of blocks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gpucenters.arrays.backend import backend_of
from gpucenters.arrays.context import Context
from gpucenters.blocks.convert import as_block
from gpucenters.reductions.products import add_products, product, products
from gpucenters.reductions.segment_sums import (
    DistanceTerms,
    LinearTerms,
    segment_sums,
    segment_totals,
)

CUTS = [0, 1, 4, 5]


def _problem(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (11, 8)) * (rng.random((11, 8)) < 0.6)
    return rng, X, rng.permutation(8)[:5]


def _sums(terms: np.ndarray) -> np.ndarray:
    """(r, S, n) from (n, d, r) terms of the features in their order."""
    parts = [terms[:, a:b, :].sum(axis=1) for a, b in pairwise(CUTS)]
    return np.stack(parts).transpose(2, 0, 1)


def _absolute(x: Any, center: Any) -> Any:
    return abs(x - center)


@pytest.mark.parametrize("q", [1, 3])
def test_linear_terms(q: int, backend: Any) -> None:
    rng, X, columns = _problem(q)
    shift, coef, size = rng.integers(-2, 3, 5), rng.integers(-4, 5, (5, q)), rng.integers(0, 3, 5)
    of = backend.array
    terms = LinearTerms(of(shift, float), of(coef, float), of(size, float))
    x = X[:, columns] - shift
    every = np.concatenate([x[:, :, None] * coef, (abs(x) * size)[:, :, None]], axis=2)
    for held in backend.containers(X):
        block, ctx = as_block(held, backend_of(held)), Context.of(backend_of(held))
        found = backend.host(segment_sums(block, of(columns), CUTS, terms, ctx))
        np.testing.assert_array_equal(found[:-1], _sums(every)[:-1])
        # The bound of sparse data is that of the products and of the shift apart.
        assert np.all(found[-1] >= _sums(every)[-1])


@pytest.mark.parametrize("k", [2, 4])
def test_distance_terms(k: int, backend: Any) -> None:
    rng, X, columns = _problem(k)
    centers, scale = rng.integers(-2, 3, (k, 5)) / 2, 2.0 ** rng.integers(-2, 3, 5)
    of = backend.array
    terms = DistanceTerms(_absolute, of(centers), of(scale), 0.5)
    distance = abs(X[:, columns, None] - centers.T) * scale[:, None]
    scores = distance[:, :, :1] - distance[:, :, 1:] if k == 2 else -distance
    for held in backend.containers(X):
        block, ctx = as_block(held, backend_of(held)), Context.of(backend_of(held))
        found = backend.host(segment_sums(block, of(columns), CUTS, terms, ctx))
        np.testing.assert_array_equal(found[:-1], _sums(scores))
        least = _sums(np.abs(scores).max(axis=2, keepdims=True) / 2)[0]
        assert np.all(found[-1] >= least / (2 if k == 2 else 1))


def test_equal_centers_of_two_classes_leave_no_doubt(sparse_backend: Any) -> None:
    of = sparse_backend.array
    zeros, ones = of(np.zeros((2, 3))), of(np.ones(3))
    terms = DistanceTerms(_absolute, zeros, ones, 1.0)
    for held in sparse_backend.containers(np.arange(12).reshape(4, 3)):
        block, ctx = as_block(held, backend_of(held)), Context.of(backend_of(held))
        found = segment_sums(block, of(np.arange(3)), [0, 3], terms, ctx)
        assert not sparse_backend.host(found).any()


def test_totals_of_segments(backend: Any) -> None:
    values = np.arange(10).reshape(2, 5)
    found = backend.host(segment_totals(backend.array(values, float), CUTS))
    np.testing.assert_array_equal(found, [[0, 6, 4], [5, 21, 9]])


def test_products_of_several_supports_have_the_bits_of_each(backend: Any) -> None:
    rng, X, _ = _problem(7)
    of = backend.array
    supports = [np.sort(rng.permutation(8)[:d]) for d in (1, 3, 8, 4)]
    parts = [
        (of(s), of(rng.normal(size=len(s))), of(rng.normal(size=(len(s), 2)))) for s in supports
    ]
    for held in backend.containers(X / 3):
        block = as_block(held, backend_of(held))
        for budget in ("1GB", 1000):
            ctx = Context.of(backend_of(held), budget)
            found = products(block, parts, ctx)
            for one, part in zip(found, parts, strict=True):
                backend.assert_same(one, product(block, *part, ctx))


def test_rows_are_those_of_the_block(backend: Any) -> None:
    _, X, columns = _problem(8)
    of, order = backend.array, np.sort(columns)
    shift, coef = of(np.zeros(5)), of(np.eye(5))
    for held in backend.containers(X):
        block, ctx = as_block(held, backend_of(held)), Context.of(backend_of(held))
        for start, stop in ((0, 11), (3, 7), (10, 11)):
            part = block.rows(start, stop, ctx)
            assert part.shape == (stop - start, 8)
            found = backend.host(product(part, of(order), shift, coef, ctx))
            np.testing.assert_array_equal(found, X[start:stop, order])


def test_products_of_a_few_columns_are_added(backend: Any) -> None:
    rng, X, columns = _problem(9)
    X[[0, 4], :] = 0
    columns, coef, out = np.sort(columns)[:2], rng.integers(-2, 3, (2, 3, 4)), np.ones((3, 4, 11))
    expected = out + np.einsum("nd,drs->rsn", X[:, columns], coef)
    for held in backend.containers(X):
        block, ctx = as_block(held, backend_of(held)), Context.of(backend_of(held))
        into = ctx.backend.zeros((3, 4, 11)) + 1.0
        add_products(block, backend.array(columns), backend.array(coef, float), into, ctx)
        np.testing.assert_array_equal(backend.host(into), expected)
