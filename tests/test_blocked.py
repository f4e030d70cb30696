"""Gains within blocks: against statsmodels, against the models of each block, and under a null."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import statsmodels.api as sm
from conftest import Backend
from scipy.stats import chi2, f
from sklearn.base import clone

from gpucenters import (
    BlockGains,
    L2CenterClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    block_gains,
)
from gpucenters.estimators.blocked import rest_block_gains

RNG = np.random.default_rng(3)
N, DONORS, GROUPS = 150, 4, 3
DONOR = RNG.integers(0, DONORS, N)
GROUP = RNG.integers(0, GROUPS, N)
GROUP[(DONOR == 3) & (GROUP == 2)] = 0  # donor 3 lacks group 2
RATE = np.exp(0.5 * DONOR[:, None] * RNG.standard_normal(5) + 0.4 * (GROUP == 1)[:, None])
COUNTS = RNG.poisson(RATE).astype(np.float64)
VALUES = RNG.standard_normal((N, 5)) + 3.0 * DONOR[:, None] + 0.5 * (GROUP == 2)[:, None]
LENGTHS = RNG.integers(5, 50, N).astype(np.float64)

POOLED = SparseGaussianNB(pooling=1, var_smoothing=0)


def _cells(group: np.ndarray, donor: np.ndarray) -> tuple[np.ndarray, list[int], list[int]]:
    """(class of each sample, group of each class, donor of each class)."""
    pairs, codes = np.unique(np.stack([group, donor], axis=1), axis=0, return_inverse=True)
    return codes.reshape(-1), pairs[:, 0].tolist(), pairs[:, 1].tolist()


def _gains(
    model: Any, X: Any, group: np.ndarray = GROUP, donor: np.ndarray = DONOR, **options: Any
) -> BlockGains:
    codes, groups, donors = _cells(group, donor)
    return block_gains(model, model.statistics(X, codes, **options), groups, donors)


def _designs() -> tuple[np.ndarray, np.ndarray]:
    """Indicators of the blocks, and of the groups in each block."""
    codes = _cells(GROUP, DONOR)[0]
    return (
        (DONOR[:, None] == np.arange(DONORS)).astype(float),
        (codes[:, None] == np.arange(codes.max() + 1)).astype(float),
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_gaussian_gains_are_the_likelihood_ratios_of_linear_models(
    backend: Backend, sparse: bool
) -> None:
    if sparse and backend.sparse is None:
        pytest.skip("no sparse matrices")
    X = backend.csr(VALUES) if sparse else backend.array(VALUES)
    found, (null, full) = _gains(POOLED, X), _designs()
    for i in range(5):
        blocks, cells = sm.OLS(VALUES[:, i], null).fit(), sm.OLS(VALUES[:, i], full).fit()
        np.testing.assert_allclose(found.scores[i], cells.llf - blocks.llf, rtol=1e-9)
        np.testing.assert_allclose(found.pvalues[i], cells.compare_f_test(blocks)[1], rtol=1e-9)
    assert found.degrees.tolist() == [full.shape[1] - DONORS] * 5


@pytest.mark.parametrize(
    ("model", "X", "family", "options"),
    [
        (SparsePoissonNB(alpha=1e-10), COUNTS, sm.families.Poisson(), {"exposure": LENGTHS}),
        (SparsePoissonNB(alpha=1e-10, exposure=None), COUNTS, sm.families.Poisson(), {}),
        (SparseBernoulliNB(alpha=1e-10), np.minimum(COUNTS, 1), sm.families.Binomial(), {}),
    ],
)
def test_gains_of_counts_are_the_likelihood_ratios_of_generalised_linear_models(
    backend: Backend, model: Any, X: np.ndarray, family: Any, options: dict[str, Any]
) -> None:
    found, (null, full) = _gains(model, backend.array(X), **options), _designs()
    offset = np.log(options["exposure"]) if options else None
    for i in range(5):
        blocks, cells = (sm.GLM(X[:, i], d, family, offset).fit() for d in (null, full))
        np.testing.assert_allclose(found.scores[i], cells.llf - blocks.llf, rtol=1e-6)
        ratio = 2 * (cells.llf - blocks.llf)
        # A feature that all or no samples of a block have has no parameter there.
        share = null.T @ X[:, i] / null.sum(axis=0)
        tested = (share > 0) & ((share < 1) | (not isinstance(model, SparseBernoulliNB)))
        degrees = np.sum(np.asarray([2, 2, 2, 1])[tested])
        np.testing.assert_allclose(found.pvalues[i], chi2.sf(ratio, degrees), rtol=1e-6)


@pytest.mark.parametrize(
    "model", [SparseBernoulliNB(alpha=0.5), SparsePoissonNB(exposure=None, alpha=2.0)]
)
def test_gains_of_counts_are_the_sums_of_those_of_the_models_of_each_block(model: Any) -> None:
    found = _gains(model, COUNTS)
    of_blocks = [clone(model).fit(COUNTS[b == DONOR], GROUP[b == DONOR]) for b in range(DONORS)]
    np.testing.assert_allclose(found.scores, sum(m.scores_ for m in of_blocks), rtol=1e-12)
    assert found.ranking.tolist() == np.argsort(-found.scores).tolist()


def test_dispersion_is_that_within_all_groups_of_all_blocks() -> None:
    plain, scaled = (SparsePoissonNB(exposure=None, scale=s) for s in (None, "dispersion"))
    x, cells = COUNTS * RNG.integers(1, 4, N)[:, None], _designs()[1]
    means = (cells.T @ x) / cells.sum(axis=0)[:, None]
    within, left = cells @ means, N - cells.shape[1]
    dispersion = np.maximum(np.sum((x - within) ** 2 / within, axis=0) / left, 1)
    found, of_plain = _gains(scaled, x), _gains(plain, x)
    np.testing.assert_allclose(found.scores, of_plain.scores / dispersion, rtol=1e-9)
    ratio = 2 * _gains(clone(plain).set_params(alpha=1e-10), x).scores
    np.testing.assert_allclose(found.pvalues, f.sf(ratio / 7 / dispersion, 7, left), rtol=1e-6)


def test_one_block_gives_the_gains_of_the_model() -> None:
    models = SparseGaussianNB(pooling=1), SparsePoissonNB(alpha=1e-10)
    for model, X in zip(models, (VALUES, COUNTS), strict=True):
        found, fitted = _gains(model, X, donor=np.zeros(N, int)), clone(model).fit(X, GROUP)
        np.testing.assert_allclose(found.scores, fitted.scores_, rtol=1e-9)
        np.testing.assert_allclose(found.centers, fitted.centers_, rtol=1e-8)


def test_the_example_of_the_formulas() -> None:
    x = np.asarray([0.0, 2, 4, 10, 12, 14])[:, None]
    found = _gains(POOLED, x, np.asarray([0, 0, 1, 0, 1, 1]), np.asarray([0, 0, 0, 1, 1, 1]))
    assert found.scores.round(6).tolist() == [4.158883] and found.degrees.tolist() == [2]
    np.testing.assert_allclose(found.pvalues, f.sf(3, 2, 2))


def test_a_difference_between_blocks_changes_nothing() -> None:
    before, after = (_gains(POOLED, VALUES + s * DONOR[:, None] ** 2) for s in (0.0, 100.0))
    np.testing.assert_allclose(after.scores, before.scores, rtol=1e-9)
    only = _gains(POOLED, DONOR[:, None] * np.ones(2))
    assert only.scores.tolist() == [0, 0] and only.pvalues.tolist() == [1, 1]
    difference = after.centers[1] - after.centers[0]
    np.testing.assert_allclose(difference, before.centers[1] - before.centers[0], atol=1e-9)


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (SparseGaussianNB(pooling=1), VALUES),
        (SparsePoissonNB(scale="dispersion"), scipy.sparse.csr_matrix(COUNTS)),
        (SparseBernoulliNB(), COUNTS),
    ],
)
def test_each_group_against_the_rest_is_the_comparison_of_their_union(model: Any, X: Any) -> None:
    codes, groups, donors = _cells(GROUP, DONOR)
    some = [2, 0, 1]
    every = list(rest_block_gains(model, model.statistics(X, codes), groups, donors, some))
    for group, each in zip(some, every, strict=True):
        expected = _gains(model, X, (group == GROUP).astype(int))
        for name in ("scores", "pvalues", "degrees", "centers"):
            np.testing.assert_allclose(getattr(each, name), getattr(expected, name), rtol=1e-9)


def test_features_without_counts_in_a_block_test_nothing_there() -> None:
    x = COUNTS.copy()
    x[:, 0], x[DONOR == 1, 1] = 0, 0
    found = _gains(SparsePoissonNB(exposure=None), x)
    assert found.degrees.tolist() == [0, 5, 7, 7, 7]
    assert found.scores[0] == 0 and found.pvalues[0] == 1


def test_what_is_refused() -> None:
    codes, groups, donors = _cells(GROUP, DONOR)
    statistics = POOLED.statistics(VALUES, codes)
    for model in (L2CenterClassifier(), SparseMultinomialNB()):
        with pytest.raises(TypeError, match=f"pooling=1.*got {type(model).__name__}"):
            block_gains(model, statistics, groups, donors)
    for options in ({"pooling": 0.5}, {"ddof": 1}):
        with pytest.raises(ValueError, match="one variance for all classes and blocks"):
            block_gains(clone(POOLED).set_params(**options), statistics, groups, donors)
    with pytest.raises(ValueError, match=r"blocks has 1 entries, but .* 11 classes"):
        block_gains(POOLED, statistics, groups, donors[:1])
    with pytest.raises(ValueError, match=r"classes 0 and 1 are both of group 0 in block 7"):
        block_gains(POOLED, statistics, groups, [7] * 11)
    with pytest.raises(ValueError, match="needs exposed sums"):
        block_gains(SparsePoissonNB(), statistics, groups, donors)
    with pytest.raises(TypeError, match=r"what statistics\(\) returns, got ndarray"):
        block_gains(POOLED, VALUES, groups, donors)
    exact = _designs()[1] @ RNG.standard_normal((11, 1))
    with pytest.raises(
        ValueError, match=r"feature 0 has no variance within.*var_smoothing above 0"
    ):
        _gains(POOLED, exact)


def test_blocks_of_one_group_each_name_the_permutation_of_whole_blocks() -> None:
    donor = np.arange(N) // 10
    case = donor % 2
    with pytest.raises(
        ValueError, match=r"of two of the groups \[0, 1\].*whole blocks.*groups=blocks"
    ):
        _gains(POOLED, VALUES, case, donor)
    codes, groups, donors = _cells(GROUP, np.where(GROUP == 1, 9, DONOR))
    statistics = POOLED.statistics(VALUES, codes)
    (alone,) = rest_block_gains(POOLED, statistics, groups, donors, [1])
    assert alone.scores.tolist() == [0] * 5 and alone.pvalues.tolist() == [1] * 5


def test_classes_without_samples_are_left_out() -> None:
    codes, groups, donors = _cells(GROUP, DONOR)
    statistics = POOLED.statistics(VALUES, codes, classes=range(13))
    found = block_gains(POOLED, statistics, [*groups, 5, 0], [*donors, 0, 8])
    assert found.groups == [0, 1, 2]
    np.testing.assert_array_equal(found.scores, _gains(POOLED, VALUES).scores)


def test_level_under_donor_effects() -> None:
    # 300 features without any difference between groups; donors differ, and in their cell types.
    # tests/attack/blocks.py has as many whole simulations.
    rng = np.random.default_rng(0)
    donor = rng.integers(0, 6, 180)
    group = (rng.random(180) < np.linspace(0.1, 0.9, 6)[donor]).astype(int)
    x = rng.standard_normal((180, 300)) + rng.standard_normal((6, 300))[donor]
    plain = SparseGaussianNB(pooling=1).fit(x, group).pvalues_
    within = _gains(SparseGaussianNB(pooling=1), x, group, donor).pvalues
    assert np.mean(plain < 0.05) > 0.3
    assert 0.02 <= np.mean(within < 0.05) <= 0.08
