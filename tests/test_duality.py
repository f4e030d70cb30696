"""The dual of sparse multinomial naive Bayes: its solution, its bounds and its supports."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from multinomial_sums import centers_of
from strategies import quietly

from gpucenters.solvers.divergence import divergence, phi
from gpucenters.solvers.duality import solve_dual

rng = np.random.default_rng(0)


def _value(f: np.ndarray, support: Any) -> float:
    f = f[:, list(support)]
    mass = f.sum(axis=1)
    return float((f * np.log(f / (f.sum(axis=0) * (mass / mass.sum())[:, None]))).sum())


@pytest.mark.parametrize("problems", [150, pytest.param(500, marks=pytest.mark.full)])
@pytest.mark.parametrize("classes", [2, 3])
def test_bounds_hold_and_supports_are_optimal_at_every_k(
    classes: int, problems: int, record_property: Any
) -> None:
    rng = np.random.default_rng(classes)
    optimal = certified = tried = 0
    for number in range(problems):
        m = int(rng.integers(2, 10))
        total = rng.poisson(rng.choice([0.5, 2, 10, 100]), (classes, m)).astype(float)
        if number % 3 == 1:  # equal columns, such as rare words
            total = total[:, rng.integers(0, max(1, m // 2), m)]
        elif number % 3 == 2:
            total = rng.exponential(5.0, (classes, m))
        centers, f = centers_of(total), total + 1
        phi = [
            max(_value(f, D) for D in itertools.combinations(range(m), k)) for k in range(1, m + 1)
        ]
        chosen = [quietly(centers.select, k) for k in range(1, m + 1)]
        for k, (best, one) in enumerate(zip(phi, chosen, strict=True), start=1):
            slack = 1e-10 * max(1.0, best)
            psi = one.value + one.gap
            assert one.gap >= 0
            assert one.value == pytest.approx(_value(f, one.support), rel=1e-9, abs=1e-9)
            # psi(k - K + 1) <= phi(k) <= psi(k)
            assert best <= psi + slack
            if k >= classes:
                earlier = chosen[k - classes]
                assert earlier.value + earlier.gap <= best + slack
            tried += 1
            optimal += one.value >= best - slack
            certified += one.gap == 0
    record_property("optimal", optimal / tried)
    record_property("certified", certified)
    assert tried > 4 * problems
    assert optimal >= 0.97 * tried


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_no_point_near_the_dual_solution_is_less(classes: int, backend: Any) -> None:
    rng = np.random.default_rng(classes)
    for k in (1, 3, 11, 39):
        f = rng.poisson(5.0, (classes, 40)) + 0.5
        dual = solve_dual(backend.array(f), k, [1 / classes] * classes)
        assert sum(dual.p) == pytest.approx(1, rel=1e-14)

        def largest(p: np.ndarray, f: np.ndarray = f, k: int = k) -> float:
            h = (f * np.log(f / (f.sum(axis=0) * p[:, None]))).sum(axis=0)
            return float(np.sort(h)[-k:].sum())

        p = np.array(dual.p)
        assert dual.value == pytest.approx(largest(p), rel=1e-12)
        # No perturbed point has a smaller value.
        for size in (1e-3, 1e-5):
            for _ in range(50):
                q = p * np.exp(size * rng.normal(size=classes))
                assert largest(q / q.sum()) >= dual.value * (1 - 1e-12)


def test_the_support_is_never_below_the_published_reconstruction() -> None:
    # The paper's algorithm returns the k largest h_i at the dual solution.
    rng = np.random.default_rng(5)
    better = 0
    for _ in range(200):
        total = rng.poisson(3.0, (2, 30)).astype(float)
        k = int(rng.integers(1, 30))
        chosen = centers_of(total).select(k)
        h = divergence(total + 1, list(chosen.p))
        published = _value(total + 1, np.argsort(-h, kind="stable")[:k])
        assert chosen.value >= published - 1e-12 * max(1.0, published)
        better += chosen.value > published + 1e-9
    assert better > 20  # the swaps improve some supports


def test_relative_entropy_keeps_its_digits() -> None:
    z = np.array([0.0, 1e-300, 1e-12, -1e-9, 5e-5, 1e-4, -1e-4, 0.3, -1.0, 1e6])
    x = z.astype(np.longdouble)
    with np.errstate(all="ignore"):
        plain = np.where(x > -1, (1 + x) * np.log1p(x), 0) - x
    expected = np.where(np.abs(x) < 1e-3, x * x / 2 - x**3 / 6 + x**4 / 12 - x**5 / 20, plain)
    np.testing.assert_allclose(phi(z), expected.astype(float), rtol=1e-14)
    assert phi(np.array([0.0]))[0] == 0
