"""Rows whose best classes rounding cannot tell apart: far classes, exact ties, offsets."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import exact
import numpy as np
import pytest
import scipy.sparse

from gpucenters import L2CenterClassifier, MahalanobisCenterClassifier, sparsity_path
from gpucenters.arrays.backend import HOST
from gpucenters.arrays.context import Context
from gpucenters.arrays.double_double import Double, add, divide, multiply, total, two_product
from gpucenters.blocks.convert import as_block
from gpucenters.estimators.fitted import FittedModel
from gpucenters.multiclass import OneVsRestClassifier
from gpucenters.reductions.products import product
from gpucenters.solvers import l2_centers, select
from gpucenters.solvers.close_scores import compare_close_scores


def _exact_classes(X: Any, y: Any, rows: Any, weights: Any = None) -> list[int]:
    """The first class of least squared distance to its mean, in exact arithmetic."""
    free = exact.exact_l2(X, y, X.shape[1], weights=weights).free
    distances = [
        [sum((x - t) ** 2 for x, t in zip(row, center, strict=True)) for center in free]
        for row in exact.fractions(rows)
    ]
    return [d.index(min(d)) for d in distances]


def _far_problem(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(X, y, rows to predict): integers in halves; some class or feature lies far away."""
    k, m, n = (int(rng.integers(*bounds)) for bounds in ((3, 6), (1, 4), (8, 16)))
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    X = rng.integers(-4, 5, (n, m)) / 2
    far = 2.0 ** rng.integers(0, 31)
    X[y == rng.integers(k), rng.integers(m)] += far
    X[:, rng.integers(m)] += rng.choice([0, 1000, far])
    pairs = rng.integers(0, n, (2, 8))
    return X, y, np.concatenate([X, (X[pairs[0]] + X[pairs[1]]) / 2])


@pytest.mark.parametrize("seed", range(12))
def test_predictions_are_those_of_exact_arithmetic_however_far_a_class_is(
    seed: int, backend: Any
) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(4):
        X, y, rows = _far_problem(rng)
        expected = _exact_classes(X, y, rows)
        for held, asked in zip(backend.containers(X), backend.containers(rows), strict=True):
            model = L2CenterClassifier().fit(held, y)
            assert backend.host(model.predict(asked)).tolist() == expected
            scores = backend.host(model.decision_function(asked))
            assert scores.argmax(axis=1).tolist() == expected
            assert backend.host(model.predict_proba(asked)).argmax(axis=1).tolist() == expected


@pytest.mark.parametrize("seed", [108, 297, 355, 382])  # with ties that a product decides wrongly
def test_ties_of_two_classes_of_integers_go_to_the_first(seed: int, backend: Any) -> None:
    rng = np.random.default_rng(seed)
    y, offset = np.repeat([0, 1], [3, 7]), 10.0 ** rng.integers(0, 10, 3)
    X, rows = rng.integers(-4, 5, (10, 3)) + offset, rng.integers(-4, 5, (200, 3)) + offset
    expected = _exact_classes(X, y, rows)
    for held, asked in zip(backend.containers(X), backend.containers(rows), strict=True):
        model = L2CenterClassifier().fit(held, y)
        assert backend.host(model.predict(asked)).tolist() == expected
        assert backend.host(model.predict_proba(asked)).argmax(axis=1).tolist() == expected
        both = OneVsRestClassifier(L2CenterClassifier()).fit(held, y)
        backend.assert_same(both.decision_function(asked), model.decision_function(asked))
        labels = np.asarray(expected)
        path = sparsity_path(model, held, y, X_test=asked, y_test=labels, ks=[1, 2, 3])
        assert path.scores[-1, 0] == 1
        shorter = [model.with_k(k).score(asked, labels) for k in (1, 2)]
        assert path.scores[:2, 0].tolist() == shorter


@pytest.mark.parametrize("scale", [None, "std"])
def test_a_far_class_changes_neither_predictions_nor_probabilities_of_the_others(
    scale: str | None, backend: Any
) -> None:
    rng = np.random.default_rng(3)
    y = np.arange(600) % 3
    X = rng.normal(size=(600, 2))
    X[:, 0] += 2 * (y == 1)
    X[y == 2, 1] = 2.0**31 - 1
    center = np.stack([X[y == c].mean(axis=0) for c in range(3)])
    sigma = X.std(axis=0) if scale else np.ones(2)
    z = -(((X[:, None] - center) / sigma) ** 2).sum(axis=2) / 2
    expected = np.exp(z - np.logaddexp.reduce(z, axis=1, keepdims=True))
    for held in backend.containers(X):
        model = L2CenterClassifier(scale=scale).fit(held, y)
        found = backend.host(model.predict_proba(held))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert np.array_equal(backend.host(model.predict(held)), found.argmax(axis=1))


def test_a_far_class_does_not_confuse_mahalanobis_centers(backend: Any) -> None:
    rng = np.random.default_rng(4)
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 2)) + 2.0 * (y == 1)[:, None]
    X[y == 2, 1] += 2.0**30
    identity = MahalanobisCenterClassifier(covariance=np.eye(2))
    expected = _exact_classes(X, y, X)
    for held in backend.containers(X):
        assert backend.host(identity.fit(held, y).predict(held)).tolist() == expected


def test_ties_of_many_classes_go_to_the_first(backend: Any) -> None:
    for held in backend.containers([[0.0], [2.0], [6.0]]):
        model = L2CenterClassifier().fit(held, [0, 1, 2])
        asked = backend.array([[1.0], [4.0], [5.0]])
        if held.__class__ is not asked.__class__:
            asked = backend.csr([[1.0], [4.0], [5.0]])
        assert backend.host(model.predict(asked)).tolist() == [0, 1, 2]
        # Means that are thirds: the sums decide, not the rounded means.
        thirds = [[0.0], [0.0], [1.0], [1.0], [1.0], [0.0], [9.0]]
        model = L2CenterClassifier().fit(backend.array(thirds), [0, 0, 0, 1, 1, 1, 2])
        assert backend.host(model.predict(backend.array([[0.5]]))).tolist() == [0]


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_only_the_support_counts_where_classes_are_compared_again(
    layout: str, sparse_backend: Any
) -> None:
    # Feature 1 tells the classes apart; the others hold values of any size.
    rng = np.random.default_rng(0)
    X = np.zeros((60, 5))
    y = np.arange(60) % 3
    X[:, 1] = np.asarray([0.0, 200.0, 600.0])[y]
    X[:, [0, 2, 3, 4]] = rng.integers(-20, 21, (60, 4))
    model = L2CenterClassifier(k=1).fit(getattr(sparse_backend, layout)(X), y)
    assert model.support_.tolist() == [1]
    asked = np.concatenate([X[:20], X[20:40]])
    asked[:20, 1], asked[20:, 1] = 100.0, 400.0  # halfway: exact ties
    found = sparse_backend.host(model.predict(getattr(sparse_backend, layout)(asked)))
    assert found.tolist() == [0] * 20 + [1] * 20


def test_equal_centers_are_not_compared_row_by_row(
    monkeypatch: pytest.MonkeyPatch, backend: Any
) -> None:
    X = np.asarray([[0.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
    model = L2CenterClassifier().fit(backend.array(X), [0, 1, 2])

    def refuse(*args: Any) -> None:
        raise AssertionError("rows were read again")

    monkeypatch.setattr("gpucenters.solvers.close_scores.padded_rows", refuse)
    assert backend.host(model.predict(backend.array(X))).tolist() == [0, 0, 2]


@pytest.mark.parametrize("seed", range(8))
def test_features_that_differ_by_a_constant_have_equal_gains(seed: int, backend: Any) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 6))
    y = np.concatenate([np.arange(k), rng.integers(0, k, 20)])
    column = rng.integers(-9, 10, y.shape[0])
    offset = 10 ** int(rng.integers(1, 8))
    X = np.stack([column + offset, column, column + 2 * offset], axis=1)
    for held in backend.containers(X):
        centers = l2_centers(held, y)
        assert len(set(backend.host(centers.gain).tolist())) == 1
        assert backend.host(select(centers, 1).support).tolist() == [0]


def test_the_winner_depends_neither_on_rounded_scores_nor_on_other_close_classes(
    backend: Any,
) -> None:
    # Classes 1 to 3 tie at a row of equal values, but for rounding; class 0 is worse.
    for seed in range(4 if backend.name == "numpy" else 1):
        rng = np.random.default_rng(seed)
        Z = rng.random((5, 4, 3))
        parts = [np.roll(Z, c, axis=2).reshape(5, 12) for c in range(3)]
        X, y = np.concatenate([parts[0] - 1e-3, *parts]), np.repeat(np.arange(4), 5)
        rows = np.repeat(0.9 + 0.1 * np.arange(5), 12).reshape(5, 12)
        centers = l2_centers(backend.array(X), y)
        columns = backend.array(np.arange(12))
        ctx = Context.of(centers.backend)
        block = as_block(backend.array(rows), centers.backend)
        form_of, winners = centers.pair_forms(columns), []
        distance = ((rows[:, None] - [X[y == c].mean(axis=0) for c in range(4)]) ** 2).sum(axis=2)
        for bound in [1e-12] * 6 + [10.0]:
            scores = backend.array(rng.uniform(-1e-12, 1e-12, (5, 4)) - distance)
            bounds = backend.array(np.full(5, bound))
            for relative in (False, True):
                found = compare_close_scores(
                    scores + 0, bounds, form_of, [0.0] * 4, block, columns, ctx, relative=relative
                )
                winners.append(backend.host(found).argmax(axis=1).tolist())
        assert len(set(map(tuple, winners))) == 1
        assert set(winners[0]) <= {1, 2, 3}


def test_zeros_at_the_end_change_no_bit_of_a_sum_in_twice_the_precision(backend: Any) -> None:
    rng = np.random.default_rng(1)
    for count in (1, 2, 5, 11):
        a, b = rng.normal(size=(2, 3, count)) * 10.0 ** rng.integers(-8, 9, (2, 3, count))
        expected = total(
            multiply(*(Double(backend.array(x), backend.array(0 * x)) for x in (a, b)))
        )
        for more in (1, 3, 8):
            zeros = np.zeros((3, more))
            a_, b_ = np.concatenate([a, zeros], axis=1), np.concatenate([b, zeros + 2], axis=1)
            found = total(
                multiply(*(Double(backend.array(x), backend.array(0 * x)) for x in (a_, b_)))
            )
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(backend.host(one), backend.host(other))


def test_twice_the_precision_is_exact_to_100_bits(backend: Any) -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.normal(size=40) * 10.0 ** rng.integers(-8, 9, 40) for _ in range(3))
    of = backend.array
    found = divide(multiply(two_product(of(a), of(b)), Double(of(b), of(c * 0))), of(c))
    both = add(found, two_product(of(c), of(c)))
    sums = total(Double(*(part[None, :] for part in found)))
    exactly = [
        Fraction(x) * Fraction(y) ** 2 / Fraction(z) for x, y, z in zip(a, b, c, strict=True)
    ]
    expected = [x + Fraction(z) ** 2 for x, z in zip(exactly, c, strict=True)]
    for i, value in enumerate(expected):
        near = sum(Fraction(float(backend.host(part)[i])) for part in both)
        assert abs(near - value) <= (abs(exactly[i]) + Fraction(c[i]) ** 2) * Fraction(1, 2**98)
    near = sum(Fraction(float(backend.host(part)[0])) for part in sums)
    assert abs(near - sum(exactly)) <= sum(map(abs, exactly)) * Fraction(1, 2**97)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
@pytest.mark.parametrize("scale", [None, "std"])
def test_the_bound_on_rounding_holds(scale: str | None, kind: Any) -> None:
    rng, near = np.random.default_rng(7), 0
    for _ in range(30):
        X, y, rows = _far_problem(rng)
        X, rows = X + rng.normal(size=X.shape), rows + rng.normal(size=rows.shape)
        rows *= 10.0 ** rng.integers(0, 10, rows.shape) * rng.choice([-1, 1], rows.shape)
        model = L2CenterClassifier(scale=scale).fit(X, y)
        ctx, form = Context.of(HOST), FittedModel(model).decision().form
        block = as_block(kind(rows), HOST, summed=False, checked=True)
        every = np.arange(X.shape[1])
        size, constant = form.rounding
        found = product(block, every, form.shift, form.coef, ctx, bound_coef=size)
        bounds = found[:, -1] + constant
        assert np.all(bounds > 0)
        free, sigma = exact.fractions(model.centers_), np.ones(X.shape[1])
        sigma = exact.fractions(sigma if scale is None else model.scale_)
        tied = [sum(column) / len(free) for column in zip(*free, strict=True)]
        for row, scores, bound in zip(exact.fractions(rows), found, bounds, strict=True):
            for c, center in enumerate(free):
                parts = zip(row, center, tied, sigma, strict=True)
                truth = sum((2 * (a - t) * (x - t) - (a - t) ** 2) / s**2 for x, a, t, s in parts)
                error = abs(Fraction(scores[c] + form.offset[c]) - truth)
                assert error <= bound
                near += error > bound / 10_000
    assert near  # the bound is no more than 10,000 times too large
