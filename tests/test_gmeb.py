"""GMEB: against a conic solver, worked examples, its certificate, and the norm and its dual."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from conic import optimum
from gmeb_problems import KINDS, Draw, draw

from gpucenters.arrays.backend import backend_of
from gpucenters.arrays.context import Context
from gpucenters.blocks.convert import as_block
from gpucenters.blocks.samples import make_samples
from gpucenters.reductions.working_columns import TwoClasses
from gpucenters.solvers import gmeb_certificate, gmeb_hyperplanes
from gpucenters.solvers.gmeb.hyperplanes import MarginProblems
from gpucenters.solvers.gmeb.newton import weighted_least_squares
from gpucenters.solvers.gmeb.problem import Problem, certificate, worst_case_l1, worst_case_l1_dual
from gpucenters.solvers.gmeb.working_set import Solution, solve

E1 = [[1.0, 3], [1, -1], [-3, -1], [1, -1]], [1, 1, 0, 0]
E2 = [[-2.0], [-2], [1], [3]], [0, 0, 1, 1]
E3 = [[0.0], [-1], [1]], [1, 0, 0]


def problem_of(X: Any, d: Draw) -> Problem:
    """The problem for data in some container."""
    backend = backend_of(X)
    with backend.current():
        samples = make_samples(
            d.y.astype(int), len(d.y), backend, n_classes=2, sample_weight=d.weight
        )
        block = as_block(X, backend)
        found = MarginProblems.of(block, samples, Context.of(backend)).problem(
            1, d.r_plus, d.r_minus
        )
        if d.centred:
            return found
        w = np.ones(len(d.y)) if d.weight is None else d.weight
        p, q = (
            backend.asarray(w[rows] @ d.X[rows] ** 2 / w[rows].sum() / r)
            for rows, r in ((d.y, d.r_plus), (~d.y, d.r_minus))
        )
        return replace(found, mean=backend.zeros(d.X.shape[1]), p=p, q=q)


def solved(problem: Problem, tol: float = 1e-8) -> Solution:
    with problem.backend.current():
        return solve(problem, tol, 50, Context.of(problem.backend))


def fit(data: Any, r_plus: float, r_minus: float, backend: Any) -> tuple[Solution, Problem]:
    X, y = np.asarray(data[0]), np.asarray(data[1]) > 0
    problem = problem_of(backend.array(X), Draw(X, y, r_plus, r_minus, None, True))
    return solved(problem), problem


def close(found: Any, expected: Any, atol: float = 1e-7) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def test_example_of_a_budget_that_binds(backend: Any) -> None:
    found, _ = fit(E1, 0.03, 0.03, backend)
    assert backend.host(found.columns).tolist() == [0, 1]
    close(backend.host(found.w), [0.05, 0.05])
    close([found.offset, found.t, found.omega], [0, 0.5, 1])
    close([found.objective, found.bound, found.multiplier], [3.6, 3.6, 0.4])


def test_example_of_the_least_norm_where_the_budget_does_not_bind(backend: Any) -> None:
    found, _ = fit(E1, 3, 3, backend)
    close(backend.host(found.w), [0.25, 0.25], 1e-3)
    close([found.objective, found.omega, found.t], [2, 0.5, 0.5], 1e-3)
    close([found.objective, found.multiplier], [2, 0], 1e-6)


def test_example_at_an_end_of_the_worst_case(backend: Any) -> None:
    found, _ = fit(E2, 1.25, 16, backend)
    close(backend.host(found.w), [0.5])
    close([found.offset, found.objective, found.t, found.multiplier], [0, 0.5, 1, 1.5])


def test_example_without_a_weight(backend: Any) -> None:
    found, _ = fit(E3, 1, 1, backend)
    assert abs(backend.host(found.w)).sum() < 1e-9
    close([found.offset, found.objective, found.bound], [-1, 2, 2])


def _compare(kind: str, seed: int) -> None:
    d = draw(kind, seed)
    problem = problem_of(d.X, d)
    found = solved(problem)
    scale = problem.scale
    # The conic solver needs features of one scale.
    varies = problem.p + problem.q > 0
    unit = np.where(varies, np.sqrt((problem.p + problem.q) / 2), 1.0)
    Z = np.where(varies, (d.X - problem.mean) / unit, 0.0)
    c = np.ones(len(d.y)) if d.weight is None else d.weight
    y = np.where(d.y, 1.0, -1.0)
    wanted = optimum(Z, y, c, problem.p / unit**2, problem.q / unit**2)
    assert abs(found.objective - wanted) <= 1e-7 * scale
    assert found.objective - found.bound >= -1e-12 * scale
    assert found.objective - found.bound <= 1e-6 * scale
    assert found.rounds <= 12
    # What is reported is what the weights do.
    used = found.columns
    f = (d.X[:, used] - problem.mean[used]) @ found.w + found.offset
    loss = c @ np.maximum(1 - y * f, 0)
    assert abs(loss - found.objective) <= 1e-11 * scale
    t = np.linspace(0, 1, 101)[:, None]
    norms = np.sqrt(t * problem.p[used] + (1 - t) * problem.q[used]) @ np.abs(found.w)
    assert norms.max(initial=0.0) <= found.omega * (1 + 1e-12) <= 1 + 1e-11
    if not d.centred:
        return
    for rows, r in ((d.y, d.r_plus), (~d.y, d.r_minus)):
        assert c[rows] @ (f[rows] - found.offset) ** 2 / c[rows].sum() <= r * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_is_that_of_a_conic_solver(kind: str) -> None:
    for seed in range(2):
        _compare(kind, seed)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_many_objectives_are_those_of_a_conic_solver(kind: str) -> None:
    for seed in range(2, 24):
        _compare(kind, seed)


def test_every_container_has_the_same_optimum(backend: Any) -> None:
    d = draw("weights", 5)
    wanted = solved(problem_of(d.X, d))
    for X in backend.containers(d.X):
        problem = problem_of(X, d)
        found = solved(problem)
        close(found.objective, wanted.objective, 1e-7 * problem.scale)
        assert found.objective - found.bound <= 1e-7 * problem.scale
        assert found.rounds <= 12


@pytest.mark.parametrize("kind", ["generic", "weights", "column scales"])
def test_the_certificate_holds_for_any_weights_and_multipliers(kind: str, backend: Any) -> None:
    rng = np.random.default_rng(0)
    d = draw(kind, 1)
    best = solved(problem_of(d.X, d)).objective
    problem = problem_of(backend.array(d.X), d)
    ctx = Context.of(problem.backend)
    n = problem.data.sign.shape[0]
    for size in (0.1, 10.0):
        w = backend.array(size * rng.normal(size=d.X.shape[1]) / d.X.std(axis=0))
        mu = backend.array(rng.normal(size=n) + 0.5)
        with problem.backend.current():
            found = certificate(problem, w, mu, ctx)
        assert found.omega <= 1 + 1e-12
        assert found.objective >= best - 1e-9 and found.dual.bound <= best + 1e-9
        assert found.gap >= 0
        y, host = backend.host(problem.data.sign), backend.host(found.dual.mu)
        assert abs(y @ host) <= 1e-12 * n and host.min() >= 0
        assert np.all(host <= backend.host(problem.data.weight))


def test_the_public_functions_give_solution_and_certificate(backend: Any) -> None:
    d = draw("weights", 2)
    X, y = backend.array(d.X), d.y.astype(int)
    bounds = {"r_plus": d.r_plus, "r_minus": d.r_minus, "sample_weight": d.weight}
    found, wanted = gmeb_hyperplanes(X, y, **bounds), solved(problem_of(d.X, d), 1e-6)
    close(found.loss[0], wanted.objective)
    w, mu = np.zeros(d.X.shape[1]), np.ones(len(y))
    w[backend.host(found.columns)] = backend.host(found.w)[0]
    proof = gmeb_certificate(X, y, w, mu, **bounds)
    close([proof.objective, proof.omega], [wanted.objective, wanted.omega], 1e-5)
    assert proof.dual.bound <= wanted.objective


def test_the_offset_is_best(backend: Any) -> None:
    rng = np.random.default_rng(1)
    for kind in ("generic", "weights", "integers that contradict"):
        d = draw(kind, 3)
        problem = problem_of(backend.array(d.X), d)
        f = np.round(rng.normal(size=problem.data.sign.shape[0]), 1)
        with problem.backend.current():
            b = problem.best_offset(backend.array(f))
            losses = [
                problem.hinge_loss(backend.array(f), t)
                for t in (b, *np.linspace(-5, 5, 51).tolist())
            ]
        assert losses[0] <= min(losses) + 1e-12


def test_the_norm_and_its_dual_are_dual(backend: Any) -> None:
    rng = np.random.default_rng(2)
    t = np.linspace(0, 1, 2001)[:, None]
    for size in (1.0, 1e-150):
        for _ in range(20):
            p, q = rng.exponential(size=(2, 5)) * size * (rng.random((2, 5)) < 0.8)
            w, g = rng.normal(size=(2, 5)) * (p + q > 0)
            args = backend.array(p), backend.array(q)
            with backend_of(args[0]).current():
                omega, at = worst_case_l1(backend.array(w), *args)
                dual, at_dual = worst_case_l1_dual(backend.array(g), *args)
            roots = np.sqrt(t * p + (1 - t) * q)
            values = roots @ np.abs(w)
            assert values.max() <= omega * (1 + 1e-12) <= (1 + 1e-5) * values.max() + 1e-300
            close(np.sqrt(at * p + (1 - at) * q) @ np.abs(w), omega, 1e-12 * omega)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.where(g == 0, 0.0, np.abs(g) / roots).max(axis=1)
                there = np.abs(g) / np.sqrt(at_dual * p + (1 - at_dual) * q)
            assert dual <= ratios.min() * (1 + 1e-12)
            close(np.nanmax(np.where(g == 0, 0.0, there)), dual, 1e-9 * dual)
            assert abs(w @ g) <= omega * dual * (1 + 1e-12)
            assert dual >= ratios.min() * (1 - 1e-2)


def test_the_norm_of_nothing_is_zero(backend: Any) -> None:
    zero, one = backend.array(np.zeros(3)), backend.array(np.ones(3))
    for w, p in ((zero, one), (one, zero)):
        assert worst_case_l1(w, p, p) == (0.0, 0.5)
        assert worst_case_l1_dual(w, p, p) == (0.0, 0.5)


@pytest.mark.parametrize("least", [-6, 5], ids=["some", "none"])
def test_features_that_matter_are_factorised_and_the_others_solved_for(
    least: int, sparse_backend: Any
) -> None:
    rng = np.random.default_rng(6)
    X = (rng.random((400, 320)) < 0.02) * rng.normal(size=(400, 320))
    weight, ridge = rng.uniform(0.1, 2, 400), 10.0 ** rng.uniform(least, 7, 320)
    b, shift, scale = rng.normal(size=321), rng.normal(size=320) / 50, rng.uniform(0.5, 2, 320)
    Z = np.column_stack([(X - shift) / scale, np.ones(400)])
    matrix = (Z.T * weight) @ Z + np.diag(np.append(ridge, 0))
    expected, size = np.linalg.solve(matrix, b), np.sqrt(np.diag(matrix))
    array = sparse_backend.array
    for data in (sparse_backend.csr(X), array(X)):
        backend = backend_of(data)
        with backend.current():
            every, ctx = backend.asarray(np.arange(320)), Context.of(backend)
            samples = make_samples(np.arange(400) % 2, 400, backend)
            classes = TwoClasses.of(as_block(data, backend), samples, 1)
            columns = classes.columns(every, array(shift), array(scale), ctx)
            solve = weighted_least_squares(columns, array(weight), array(ridge), backend)
            found = sparse_backend.host(solve(array(b)))
        close(size * found, size * expected, 1e-3 * np.abs(size * expected).max())


def test_sparse_features_beyond_the_first_ones_have_the_same_optimum() -> None:
    rng = np.random.default_rng(7)
    X = rng.poisson(0.01 + 0.3 / np.arange(1, 701), (500, 700)).astype(float)
    y = (X[:, 3:9].sum(axis=1) - X[:, 9:40].sum(axis=1) + rng.normal(size=500) > 0).astype(int)
    sparse = gmeb_hyperplanes(scipy.sparse.csr_array(X), y, r_plus=20.0)
    dense = gmeb_hyperplanes(X, y, r_plus=20.0)
    for found in (sparse, dense):
        assert found.loss[0] - found.bound[0] <= 1e-6 * found.scale[0]
        assert found.rounds[0] <= 12
    close(sparse.loss, dense.loss, 1e-6 * dense.scale[0])
    close(sparse.omega, dense.omega, 1e-6)
