"""Gains under permuted labels: equal to refits, and p-values that hold what they promise."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from permutation_problems import differences, draw
from scipy import stats
from sklearn.base import clone
from test_path import _texts

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    PermutationGains,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    permutation_gains,
)
from gpucenters.arrays.context import Context
from gpucenters.blocks.convert import as_block
from gpucenters.blocks.samples import make_samples
from gpucenters.estimators.permutation import LabelPermutations
from gpucenters.reductions.permuted_columns import PermutedCodes
from gpucenters.solvers import ranking_key
from gpucenters.solvers.permutation import _map_runs

EXACT = [L2CenterClassifier(), L1CenterClassifier(), SparseBernoulliNB(), SparsePoissonNB()]
ROUNDED = [
    L2CenterClassifier(scale="std"),
    L2CenterClassifier(scale="pooled"),
    L1CenterClassifier(scale="std"),
    L1CenterClassifier(scale="pooled"),
    SparseMultinomialNB(),
    SparsePoissonNB(exposure=None, scale="dispersion"),
    SparseGaussianNB(),
    ShrunkenCentroidClassifier(offset=0.5),
]


def _id(model: Any) -> str:
    return f"{type(model).__name__}-{getattr(model, 'scale', None)}"


def _problem(k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers with many ties and zeros; some columns are full, one constant, one empty."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (23, 12)) * (rng.random((23, 12)) < np.linspace(0.2, 1, 12))
    y = rng.permutation(np.arange(23) % k)
    X[:, 1], X[:, 2], X[:, 3] = 3, 0, X[:, 3] + 2 * y
    return X, y


def _null(model: Any, X: Any, y: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The gains of ``model`` for each column of ``codes``, the columns of X in reverse: (m, p)."""
    model = clone(model).fit(X, y)
    backend = model._fitted.backend
    ctx = Context.of(backend)
    block = model._read(as_block(X, backend))
    samples = make_samples(y, X.shape[0], backend)
    gain = model._null_gain(block, ctx).gain
    xp, m = backend.xp, X.shape[1]
    batches = lambda: [PermutedCodes(backend.asarray(codes), samples)]  # noqa: E731
    every = xp.flip(backend.arange(m))
    task = lambda run: run.shaped(gain(run))  # noqa: E731
    parts = [g for _, _, g in _map_runs(task, block, every, batches, ctx)]
    return xp.flip(xp.concat(parts), axis=0)


def _shuffled(y: np.ndarray, count: int) -> np.ndarray:
    codes = y.astype(np.uint8)
    return LabelPermutations(codes, np.zeros(len(y), int), count, 5).codes(np.arange(count))


def _refits(model: Any, X: Any, codes: np.ndarray, backend: Any) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [clone(model).fit(X, labels) for labels in codes.T]
    return np.stack([backend.host(fit.scores_) for fit in fits], axis=1)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("model", EXACT, ids=_id)
def test_gains_of_integers_are_those_of_refits_to_the_bit(model: Any, k: int, backend: Any) -> None:
    X, y = _problem(k)
    codes = _shuffled(y, 5)
    for container in backend.containers(X, (np.float32,)):
        found = backend.host(_null(model, container, y, codes))
        np.testing.assert_array_equal(found, _refits(model, container, codes, backend))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("model", [*ROUNDED, *EXACT], ids=_id)
def test_gains_of_reals_are_those_of_refits_to_rounding(model: Any, k: int, backend: Any) -> None:
    X, y = _problem(k)
    X = X * np.sqrt(2.0)
    codes = _shuffled(y, 5)
    for container in backend.containers(X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = backend.host(_null(model, container, y, codes))
        expected = _refits(model, container, codes, backend)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("offset", [0, 1e6])
def test_a_pooled_scale_far_from_zero_keeps_its_digits(offset: float, backend: Any) -> None:
    """Raw sums of squares would leave four digits of it."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 4)) + offset
    X[:2, 0] = 0  # (Not stored in sparse data.)
    X[:, 3] = np.where(X[:, 1] > offset, 0.1 + 0.2, 0.3)  # constant up to rounding
    y = rng.permutation(np.arange(40) % 2)
    codes, model = _shuffled(y, 5), L2CenterClassifier(scale="pooled")
    for container in backend.containers(X):
        found = backend.host(_null(model, container, y, codes))
        expected = _refits(model, container, codes, backend)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-20)


def _by_definition(
    model: Any, X: np.ndarray, y: np.ndarray, codes: np.ndarray, itself: int
) -> dict[str, np.ndarray]:
    """P-values from refits, by their definitions."""
    key = ranking_key(clone(model).fit(X, y).scores_)
    null = np.stack([ranking_key(clone(model).fit(X, c).scores_) for c in codes.T])
    tries, order = len(null) + itself, np.argsort(-key, kind="stable")
    here = np.sum(key[:, None] >= key, axis=0)
    fwer, before = np.empty(len(key)), 0.0
    for rank, i in enumerate(order):
        largest = null[:, order[rank:]].max(axis=1)
        before = fwer[i] = max(before, (itself + np.sum(largest >= key[i])) / tries)
    return {
        "pvalues": (itself + np.sum(null >= key, axis=0)) / tries,
        "pvalues_fwer": fwer,
        "false_discoveries": (np.sum(null[:, :, None] >= key, axis=(0, 1)) + itself * here) / tries,
        "ranking": order,
    }


@pytest.mark.parametrize("model", EXACT, ids=_id)
def test_p_values_are_those_of_their_definitions(model: Any, backend: Any) -> None:
    X, y = _problem(2, seed=3)
    codes = LabelPermutations(y.astype(np.uint8), np.zeros(len(y), int), 60, 7).codes(np.arange(60))
    expected = _by_definition(model, X.astype(np.float64), y, codes, itself=1)
    expected["qvalues"] = stats.false_discovery_control(expected["pvalues"])
    for container in backend.containers(X):
        found = permutation_gains(model, container, y, 60, random_state=7)
        for name, value in expected.items():
            np.testing.assert_allclose(getattr(found, name), value, rtol=1e-14, err_msg=name)
        fitted = clone(model).fit(container, y)
        np.testing.assert_array_equal(found.scores, backend.host(fitted.scores_))
        assert (found.n_permutations, found.exact) == (60, False)


def test_results_do_not_depend_on_memory_or_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small budget makes many passes over X and many batches of permutations."""
    X, y = _problem(2)
    models = [L2CenterClassifier(), L1CenterClassifier(), L2CenterClassifier(scale="pooled")]
    for model, container in itertools.product(models, [X, scipy.sparse.csr_array(X)]):
        found = []
        for budget, threads in ((None, "1"), (20_000, "1"), (3_000, "2")):
            monkeypatch.setenv("OMP_NUM_THREADS", threads)
            model.set_params(memory_budget=budget)
            found.append(permutation_gains(model, container, y, 50, random_state=0))
        for other in found[1:]:
            for name in ("pvalues", "pvalues_fwer", "false_discoveries"):
                np.testing.assert_array_equal(getattr(other, name), getattr(found[0], name))


@pytest.mark.parametrize("model", [L2CenterClassifier("all", scale="pooled"), *EXACT], ids=_id)
def test_host_data_may_be_compared_on_a_device(model: Any) -> None:
    X, y = _problem(3)
    for container in (X, np.asfortranarray(X, np.float32), scipy.sparse.csr_array(X)):
        there, here = (
            permutation_gains(clone(model).set_params(device=d), container, y, 40, random_state=0)
            for d in ("cuda", "cpu")
        )
        for name in ("ranking", "pvalues", "pvalues_fwer", "false_discoveries"):
            np.testing.assert_array_equal(getattr(there, name), getattr(here, name))


# --- ties ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize(
    "model",
    [L2CenterClassifier(), *ROUNDED, SparsePoissonNB(), SparseGaussianNB(pooling=1)],
    ids=_id,
)
def test_exact_p_values_count_the_observed_labels_and_those_with_classes_swapped(
    model: Any, kind: Any, backend: Any
) -> None:
    """However the sums of many label vectors are rounded."""
    rng = np.random.default_rng(0)
    for offset, y, swapped in (
        (37, [0, 1, 1, 0, 1, 0], 2),
        (1e6, [0, 1, 2, 0, 1, 2], 6),
        (1e6, [0, 1, 1, 0, 1, 1], 1),
    ):
        X = (offset + rng.normal(size=(6, 300))).astype(kind)
        for container in backend.containers(X, (kind,)):
            found = permutation_gains(model, container, np.array(y))
            assert found.exact
            for p in (found.pvalues, found.pvalues_fwer):
                assert p.min() >= swapped / found.n_permutations * (1 - 1e-12)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(5))
def test_p_values_are_those_of_exact_arithmetic(seed: int, backend: Any) -> None:
    """`make attack ATTACK=permutations` has more."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        model, X, y, more = draw(rng)
        kinds = backend.containers(X, (X.dtype.type,))
        wrong = list(differences(model, X, y, more, kinds[rng.integers(len(kinds))]))
        assert not wrong, (model, X, y, more, wrong)


def test_a_difference_of_class_means_keeps_its_digits_at_an_offset(backend: Any) -> None:
    """Sums of the values themselves would leave none."""
    X = 2.0**52 + np.array([[0.0], [1], [2], [3], [4], [5], [6], [11]])
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    for container in backend.containers(X):
        assert permutation_gains(L2CenterClassifier(), container, y).pvalues[0] == 2 / 70


# --- label vectors ---------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [None, [0, 0, 0, 0, 1, 1, 1, 1]])
def test_few_label_vectors_are_all_taken_and_the_p_values_exact(groups: Any) -> None:
    rng = np.random.default_rng(2)
    X = rng.integers(0, 9, (8, 5)).astype(float)
    y = np.array([0, 1, 1, 0, 1, 0, 2, 0])
    blocks = np.asarray(groups or [0] * 8)
    every = {
        p
        for p in set(itertools.permutations(y.tolist()))
        if groups is None or (sorted(p[:4]) == sorted(y[:4]) and sorted(p[4:]) == sorted(y[4:]))
    }
    codes = np.array(sorted(every)).T
    model = L2CenterClassifier()
    found = permutation_gains(model, X, y, len(every), groups=groups and blocks)
    assert found.exact and found.n_permutations == len(every)
    expected = _by_definition(model, X, y, codes, itself=0)
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-14, err_msg=name)
    fewer = permutation_gains(model, X, y, len(every) - 1, groups=groups and blocks)
    assert not fewer.exact and fewer.n_permutations == len(every) - 1


def test_labels_are_permuted_within_their_groups_and_every_order_is_as_likely() -> None:
    codes, groups = np.array([0, 1, 0, 1, 1, 2]), np.array([1, 0, 1, 0, 1, 0])
    found = LabelPermutations(codes, groups, 8, 0)
    assert not found.exact
    labels = found.codes(np.arange(8))
    np.testing.assert_array_equal(labels[:, 3:5], found.codes(np.array([3, 4])))
    many = LabelPermutations(np.tile(codes, 4), np.tile(groups, 4), 3000, 0).codes(np.arange(3000))
    for group in (0, 1):
        rows = np.tile(groups, 4) == group
        expected = np.bincount(np.tile(codes, 4)[rows], minlength=3)
        for c in range(3):
            share = np.mean(many[rows] == c, axis=1)
            mean = expected[c] / rows.sum()
            assert (np.sum(many[rows] == c, axis=0) == expected[c]).all()
            assert np.abs(share - mean).max() <= 5 * np.sqrt(mean * (1 - mean) / 3000)


def test_groups_remove_what_the_groups_explain() -> None:
    """Batches of unequal classes: a feature that tells the batch alone is not significant."""
    rng = np.random.default_rng(0)
    batch = np.repeat([0, 1], 40)
    y = np.concatenate([np.arange(40) % 4 == 0, np.arange(40) % 4 != 0]).astype(int)
    X = np.stack([batch + 0.1 * rng.normal(size=80), y + rng.normal(size=80)], axis=1)
    free = permutation_gains(L2CenterClassifier(), X, y, 199, random_state=0)
    within = permutation_gains(L2CenterClassifier(), X, y, 199, groups=batch, random_state=0)
    assert free.pvalues[0] == 1 / 200
    assert within.pvalues[0] > 0.05 >= within.pvalues[1]


@pytest.mark.parametrize("model", [SparsePoissonNB(), *EXACT[:2], ROUNDED[1]], ids=_id)
def test_labels_of_whole_groups_are_exchanged_whatever_their_sizes(
    model: Any, backend: Any
) -> None:
    """Classes change their size with the labels, and gains are still those of refits."""
    sizes = np.array([1, 4, 2, 3, 2, 5])
    groups = np.repeat(np.arange(6), sizes)
    of_groups = np.array([0, 0, 1, 1, 0, 1])
    rng = np.random.default_rng(3)
    rows = rng.permutation(len(groups))
    groups = groups[rows]
    X, y = rng.integers(0, 9, (len(groups), 5)).astype(float), of_groups[groups]
    every = np.array(sorted(set(itertools.permutations(of_groups.tolist()))))
    expected = _by_definition(model, X, y, every[:, groups].T, itself=0)
    for container in backend.containers(X):
        found = permutation_gains(model, container, y, groups=groups + 7, permute="groups")
        assert found.exact and found.n_permutations == 20
        for name, value in expected.items():
            np.testing.assert_allclose(getattr(found, name), value, rtol=1e-14, err_msg=name)


def test_labels_of_many_groups_are_exchanged_at_random_and_in_batches_of_one_size() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 4, 12)
    groups, of_groups = np.repeat(np.arange(12), sizes), np.arange(12) % 3
    labels = LabelPermutations(of_groups, np.zeros(12, int), 500, 0, groups)
    assert not labels.exact
    batches = labels.batches(64)
    np.testing.assert_array_equal(np.sort(np.concatenate(batches)), np.arange(500))
    for numbers in batches:
        codes = labels.codes(numbers)
        assert len(np.unique([np.bincount(c, minlength=3) for c in codes.T], axis=0)) == 1
        assert all(len(set(codes[groups == g, 0])) == 1 for g in range(12))
    X = rng.normal(size=(len(groups), 4))
    found = permutation_gains(
        L2CenterClassifier(scale="pooled"), X, of_groups[groups], 500, groups, 0, permute="groups"
    )
    assert found.n_permutations == 500 and not found.exact


def test_whole_groups_hold_the_level_where_samples_of_a_group_are_alike() -> None:
    """Donors with two labels: each sample repeats its donor, which all samples seem to confirm."""
    donor, free, whole = np.repeat(np.arange(8), 10), 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(8, 1))[donor] + 0.3 * rng.normal(size=(80, 1))
        y = rng.permutation(np.arange(8) % 2)[donor]
        found = permutation_gains(L2CenterClassifier(), X, y, 99, random_state=seed)
        free += found.pvalues[0] <= 0.05
        found = permutation_gains(L2CenterClassifier(), X, y, groups=donor, permute="groups")
        whole += found.pvalues[0] <= 0.05
    assert free > 20 and whole <= stats.binom.ppf(0.9999, 60, 0.05)


def test_what_can_be_permuted_must_be_said() -> None:
    X, y = _problem(2)
    model = L2CenterClassifier()
    with pytest.raises(ValueError, match="Use permute='groups' to exchange the labels of whole"):
        permutation_gains(model, X, y, groups=y)
    with pytest.raises(ValueError, match=r"group a are not all equal: rows 0 and \d+ differ"):
        permutation_gains(model, X, y, groups=["a"] * len(y), permute="groups")
    with pytest.raises(ValueError, match="needs groups"):
        permutation_gains(model, X, y, permute="groups")
    with pytest.raises(ValueError, match="permute='blocks'"):
        permutation_gains(model, X, y, groups=y, permute="blocks")
    y, groups = np.array([0, 0, 0, 1, 1]), [0, 0, 0, 1, 2]  # class 0 may have one sample
    with pytest.raises(ValueError, match="ddof=1 leaves a class of 1 sample"):
        permutation_gains(SparseGaussianNB(ddof=1), X[:5], y, groups=groups, permute="groups")


# --- what the p-values promise ---------------------------------------------------------------


def _singh(data_dir: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(data_dir / "singh.npz") as data:
        return data["X"], data["y"]


def test_p_values_of_shuffled_labels_are_uniform_on_gene_expression(data_dir: Path) -> None:
    """Of 200 shuffles of the labels, each compared with 99 more."""
    X, y = _singh(data_dir)
    X = X[:, ::600]
    rng = np.random.default_rng(0)
    found = np.stack(
        [
            permutation_gains(
                L2CenterClassifier(), X, rng.permutation(y), 99, random_state=s
            ).pvalues
            for s in range(200)
        ]
    )
    for p in found.T:  # p is uniform on 0.01, 0.02, ..., 1
        assert stats.kstest(p - 0.01 * rng.random(p.shape), "uniform").pvalue > 1e-4


def test_p_values_of_values_that_tie_are_not_too_small_and_few_selections_err() -> None:
    """Zeros and ones: P(p <= a) <= a, and one error or more in 5% of all searches at most."""
    rng = np.random.default_rng(1)
    X = scipy.sparse.csr_array((rng.random((30, 40)) < 0.15).astype(float))
    y = np.arange(30) % 2
    small, errors, sets = np.zeros(3), 0, 300
    for s in range(sets):
        found = permutation_gains(L2CenterClassifier(), X, rng.permutation(y), 99, random_state=s)
        small += [np.mean(found.pvalues <= a) for a in (0.01, 0.05, 0.2)]
        errors += bool(np.any(found.pvalues_fwer <= 0.05))
    for share, a in zip(small / sets, (0.01, 0.05, 0.2), strict=True):
        assert share <= a + 4 * np.sqrt(a / sets / 40)
    assert errors <= stats.binom.ppf(0.9999, sets, 0.05)


@pytest.mark.filterwarnings("ignore::gpucenters.UninformativeFeaturesWarning")
@pytest.mark.parametrize(
    ("data", "step"),
    [("singh", 600), pytest.param("singh", 60, marks=pytest.mark.full), ("mpqa", 60)],
)
def test_few_searches_of_real_data_with_shuffled_labels_err(
    data: str, step: int, data_dir: Path
) -> None:
    """Of 200 shuffles: P(p <= a) <= a at every feature, and one error or more in 5% at most."""
    if data == "singh":
        X, y = _singh(data_dir)
    else:
        X, y = _texts(data_dir / "mpqa.tsv.gz")
        X, y = X[::20].tocsc(), y[::20]
    X = X[:, ::step]
    rng, sets = np.random.default_rng(0), 200
    found = [
        permutation_gains(
            L2CenterClassifier(scale="std"), X, rng.permutation(y), 39, random_state=s
        )
        for s in range(sets)
    ]
    pvalues = np.stack([one.pvalues for one in found])
    for a in (0.05, 0.2):
        most = stats.binom.ppf(1 - 1e-4 / X.shape[1], sets, a)
        assert np.sum(pvalues <= a, axis=0).max() <= most
    errors = sum(bool(np.any(one.pvalues_fwer <= 0.05)) for one in found)
    assert errors <= stats.binom.ppf(0.9999, sets, 0.05)


# --- k_at and errors -------------------------------------------------------------------------


def _made(pvalues: Any, false: Any, scores: Any, count: int = 99) -> PermutationGains:
    scores = np.asarray(scores, float)
    order = np.argsort(-scores, kind="stable")
    q = stats.false_discovery_control(pvalues)
    parts = (np.asarray(pvalues), np.asarray(pvalues), q, np.asarray(false, float))
    return PermutationGains(scores, order, *parts, count, False)


def test_k_at_is_the_largest_k_of_a_small_enough_estimate() -> None:
    # 0.1/1, 0.4/3 (two equal scores), 0.36/4, 3/5
    found = _made([0.01] * 5, [0.4, 0.1, 0.4, 3.0, 0.36], [5, 9, 5, 1, 3])
    assert [found.k_at(f) for f in (0.05, 0.09, 0.1, 0.14, 0.6)] == [0, 4, 4, 4, 5]
    ties = _made([0.01] * 5, [0.4, 0.1, 0.4, 3.0, 2.0], [5, 9, 5, 1, 3])
    assert [ties.k_at(f) for f in (0.1, 0.13, 0.14, 0.5)] == [1, 1, 3, 4]


def test_k_at_by_benjamini_hochberg_says_when_there_are_too_few_permutations() -> None:
    found = _made([0.01, 0.01, 0.5, 0.9], [0] * 4, [4, 3, 2, 1])
    assert found.k_at(0.05, method="bh") == 2
    m = 100
    few = _made([0.01] * 5 + [0.5] * 95, [0.0] * m, np.arange(m, 0, -1.0))
    with pytest.warns(UserWarning, match="20 of 100 features or more can pass, and no fewer"):
        assert few.k_at(0.05, method="bh") == 0
    enough = _made([0.01] * 20 + [0.5] * 80, [0.0] * m, np.arange(m, 0, -1.0))
    assert enough.k_at(0.05, method="bh") == 20


@pytest.mark.parametrize("count", [5, 10])
def test_k_at_finds_nothing_where_too_few_permutations_cannot_show_it(count: int) -> None:
    """A rate of 0 was estimated for one feature in six, or eleven, of data without any."""
    kept = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(20, 10)), rng.permutation(np.arange(20) % 2)
        found = permutation_gains(L2CenterClassifier(), X, y, count, random_state=seed)
        with pytest.warns(UserWarning, match=f"the estimates of {count} permutations are at least"):
            kept += found.k_at(0.05) > 0
    assert kept == 0


@pytest.mark.parametrize("fdr", [0, -0.1, 1.5, float("nan"), "a", True])
def test_k_at_refuses_what_is_no_rate(fdr: Any) -> None:
    with pytest.raises(ValueError, match="fdr="):
        _made([0.5], [1.0], [1.0]).k_at(fdr)
    with pytest.raises(ValueError, match="method="):
        _made([0.5], [1.0], [1.0]).k_at(0.1, method="sam")


def test_what_cannot_be_permuted_is_refused() -> None:
    X, y = _problem(2)
    with pytest.raises(TypeError, match="change with the labels"):
        permutation_gains(MahalanobisCenterClassifier(), X, y)
    with pytest.raises(TypeError, match="model of gpucenters"):
        permutation_gains(object(), X, y)
    for count in (0, True, 2.5):
        with pytest.raises(ValueError, match="n_permutations"):
            permutation_gains(L2CenterClassifier(), X, y, count)
    with pytest.raises(ValueError, match="cannot be permuted"):
        permutation_gains(L2CenterClassifier(), X, y, groups=y)
    with pytest.raises(ValueError, match="groups has 3"):
        permutation_gains(L2CenterClassifier(), X, y, groups=[1, 2, 3])
    with pytest.raises(ValueError, match="NaN"):
        permutation_gains(L2CenterClassifier(), np.where(X == 2, np.nan, X), y)


def test_the_estimator_stays_as_it_is_and_labels_may_be_strings() -> None:
    X, y = _problem(2)
    model = L2CenterClassifier(k=2)
    found = permutation_gains(model, X, np.array(["no", "yes"])[y], 20, random_state=1)
    assert not hasattr(model, "classes_") and model.k == 2
    again = permutation_gains(model.fit(X, y), X, y, 20, random_state=1, verbose=True)
    np.testing.assert_array_equal(found.pvalues, again.pvalues)
    assert found.pvalues[3] == found.pvalues.min()


def test_x_in_a_file_is_refused_in_the_name_of_the_function() -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        X = file.create_dataset("X", data=np.eye(4))
        with pytest.raises(TypeError, match="permutation_gains needs all of X"):
            permutation_gains(L2CenterClassifier(), X, [0, 0, 1, 1])
