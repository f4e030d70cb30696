"""Sparse Poisson naive Bayes: exhaustive search, scikit-learn, exposures, and errors."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
import sklearn
from exact_densities import exact_poisson
from sklearn.base import clone
from sklearn.feature_selection import SelectFdr, SelectKBest
from sklearn.model_selection import cross_validate
from sklearn.naive_bayes import MultinomialNB
from strategies import quietly

from gpucenters import SparsePoissonNB, load, poisson_gain
from gpucenters.arrays import schedule
from gpucenters.arrays.context import Context
from gpucenters.blocks.convert import as_block
from gpucenters.blocks.samples import make_samples
from gpucenters.solvers import poisson_nb

rng = np.random.default_rng(0)
COUNTS = rng.poisson(rng.gamma(1.0, 1.0, (3, 12))[np.arange(60) % 3]).astype(np.float64)
COUNTS[:, 3] = 0
Y = np.arange(60) % 3
EXPOSURE = rng.integers(1, 9, 60) / 4.0


@pytest.mark.parametrize("scale", [None, "dispersion"])
@pytest.mark.parametrize("exposure", ["total", None, "given"])
def test_equals_exhaustive_search(exposure: Any, scale: Any, backend: Any) -> None:
    rng = np.random.default_rng(2)
    for number in range(6 if backend.name == "numpy" else 2):
        K, m = int(rng.integers(2, 5)), int(rng.integers(2, 6))
        y = np.concatenate([np.arange(K), np.arange(K), rng.integers(0, K, 4)])
        X = rng.poisson(2.0, (len(y), m)).astype(float)
        X[:, 0] = X[:, -1]
        given = rng.integers(1, 5, len(y)) / 2.0
        e = {"total": X.sum(axis=1), None: np.ones(len(y)), "given": given}[exposure]
        weights = rng.integers(1, 4, len(y)) if number % 2 else None
        alpha = [Fraction(1), Fraction(1, 2)][number % 2]
        truth = exact_poisson(X, y, e, alpha, weights, dispersion=scale is not None)
        rows = {"exposure": given} if exposure == "given" else {}
        containers = backend.containers(X)
        held = containers[number % len(containers)]
        model = SparsePoissonNB(
            alpha=float(alpha), scale=scale, exposure=None if exposure is None else "total"
        ).fit(held, y, weights, **rows)
        scores = backend.host(model.scores_)
        np.testing.assert_allclose(scores, np.array(truth.gain, float), rtol=1e-9, atol=1e-14)
        for k, support in truth.supports.items():
            assert tuple(quietly(model.with_k, k).support_) == support
        assert model.objective_ == pytest.approx(float(truth.loss), rel=1e-12)
        tied = X.T @ (np.ones(len(y)) if weights is None else weights)
        tied = tied / backend.host(model.class_exposure_).sum()
        rates = np.array(truth.free, float) * tied
        np.testing.assert_allclose(backend.host(model.centers_), rates, rtol=1e-12)


def test_examples_with_numbers() -> None:
    f, y = np.asarray([[3, 2, 0], [1, 2, 0]]), [0, 1]
    gain = poisson_nb(f, y, exposure=[2, 2]).gain
    np.testing.assert_allclose(gain, [0.339798, 0, 0], atol=5e-7)
    assert gain.tolist()[1:] == [0, 0]
    scores, _ = poisson_gain(f, y, exposure=[2, 2])
    np.testing.assert_allclose(scores, [0.523248, 0, 0], atol=5e-7)
    x = np.asarray([[1], [3], [0], [6]])
    assert poisson_nb(x, [0, 0, 1, 1], exposure=None, scale="dispersion").scale.tolist() == [3.5]


@pytest.mark.parametrize("offset", [0, 10**8])
def test_features_of_equal_rates_have_a_gain_of_exactly_zero(offset: int, backend: Any) -> None:
    y = np.repeat([0, 1, 2], [4, 8, 4])
    same = offset + np.tile([0, 2, 1, 5], 4)
    for X in backend.containers(np.stack([same, same * 0, same * 3], axis=1)):
        for exposure in ("total", None):
            for scale in (None, "dispersion"):
                found = poisson_nb(X, y, exposure=exposure, scale=scale).gain
                assert backend.host(found).tolist() == [0, 0, 0]


def test_sums_of_real_counts_that_are_rounded_have_no_gain(backend: Any) -> None:
    x = np.asarray([0.1, 0.1, 0.1, 0.3, 0, 0])
    assert sum(x[:3]) != sum(x[3:])
    for X in backend.containers(np.stack([x, x * 1e8], axis=1)):
        found = poisson_nb(X, [0, 0, 0, 1, 1, 1], exposure=None).gain
        assert backend.host(found).tolist() == [0, 0]


def test_ratios_of_rare_events_keep_their_digits(backend: Any) -> None:
    rows = np.asarray([[1e6, 1e6], [0, 1e6]])
    for X in backend.containers(rows):
        model = SparsePoissonNB(k=1, alpha=1e-10, exposure=None).fit(X, [0, 1])
        found = backend.host(model.decision_function(X))
        # Of 500,000 expected events one class has a million, the other none.
        logs = np.log(1e-10 / (5e5 + 1e-10)) - np.log((1e6 + 1e-10) / (5e5 + 1e-10))
        np.testing.assert_allclose(found, [1e6 * logs + 1e6, 1e6], rtol=1e-13)


def test_chunks_of_rows_divide_squares_by_their_own_exposures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts, y = np.tile(COUNTS, (20, 1)), np.tile(Y, 20)
    counts[600:] += np.arange(600)[:, None] % 7
    expected = poisson_nb(counts, y, scale="dispersion").scale
    monkeypatch.setattr(schedule, "first_chunk", lambda backend, budget: 64)
    monkeypatch.setattr(schedule, "_MOST_ROWS", 50)
    for X in (counts, scipy.sparse.csr_array(counts), scipy.sparse.csc_array(counts)):
        found = poisson_nb(X, y, scale="dispersion").scale
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_shares_of_counts_are_not_taken_away_from_sums() -> None:
    X = scipy.sparse.csr_array(COUNTS)
    for model, rows in ((SparsePoissonNB(scale="dispersion"), {}), (SparsePoissonNB(), EXPOSURE)):
        given = {} if len(rows) == 0 else {"exposure": rows}
        statistics = model.statistics(X, Y, **given)
        ctx = Context.of(statistics.backend)
        block = as_block(X[:5], statistics.backend)
        assert statistics.without(block, make_samples(Y[:5], 5, statistics.backend), ctx) is None


@pytest.mark.parametrize("classes", [2, 3])
def test_with_all_features_and_no_smoothing_is_multinomial_nb(classes: int, backend: Any) -> None:
    y, weights = Y % classes, np.arange(60) % 4 + 1.0
    for s in (None, weights):
        theirs = MultinomialNB(alpha=1e-10, force_alpha=True).fit(COUNTS, y, s)
        for X in backend.containers(COUNTS):
            ours = SparsePoissonNB(alpha=1e-10).fit(X, y, s)
            np.testing.assert_allclose(
                backend.host(ours.predict_proba(X)), theirs.predict_proba(COUNTS), atol=1e-10
            )
            np.testing.assert_array_equal(backend.host(ours.predict(X)), theirs.predict(COUNTS))


@pytest.mark.parametrize("classes", [2, 3])
def test_joint_log_probabilities_are_of_all_features(classes: int, backend: Any) -> None:
    rng, y = np.random.default_rng(classes), np.arange(30) % classes
    X, e = rng.poisson(rng.gamma(1, 1, 6), (30, 6)) * np.asarray([1, 1, 1, 1, 1, 0]), rng.random(30)
    X[:, 0] += 1
    peer = MultinomialNB(alpha=1e-10).fit(X[:, :5], y)
    for held in backend.containers(X):
        model = SparsePoissonNB(alpha=0).fit(held, y)
        found = backend.host(model.predict_joint_log_proba(held))
        expected = peer.predict_joint_log_proba(X[:, :5]) - X.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found, expected, rtol=1e-8)
        for scale in (None, "dispersion"):
            model = SparsePoissonNB(k=2, scale=scale).fit(held, y, exposure=e)
            free, tied = np.zeros((classes, 6)), X.sum(axis=0) / e.sum()
            free += tied
            free[:, model.support_] = backend.host(model.centers_)
            d = 1.0 if scale is None else backend.host(model.scale_)[:5]
            rate, x = free[:, :5], X[:, :5]
            expected = (x / d) @ np.log(rate).T - e[:, None] * (rate / d).sum(axis=1)
            expected = expected + backend.host(model.class_log_prior_)
            found = backend.host(model.predict_joint_log_proba(held, exposure=e))
            np.testing.assert_allclose(found, expected, rtol=1e-10)
            with pytest.raises(ValueError, match="hand the exposures"):
                model.predict_joint_log_proba(held)


@pytest.mark.parametrize("scale", [None, "dispersion"])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_log_likelihoods(scale: Any, classes: int, backend: Any) -> None:
    y = Y % classes
    for X in backend.containers(COUNTS):
        model = SparsePoissonNB(k=4, scale=scale).fit(X, y, exposure=EXPOSURE)
        D = model.support_
        rates, prior = backend.host(model.centers_), backend.host(model.class_log_prior_)
        d = 1.0 if scale is None else backend.host(model.scale_)[D][:, None]
        logs = scipy.stats.poisson.logpmf(
            COUNTS[:, D, None], EXPOSURE[:, None, None] * rates.T[None, :, :]
        )
        expected = np.sum(logs / d, axis=1) + prior
        expected = expected[:, 1:] - expected[:, :1]
        found = backend.host(model.decision_function(X, exposure=EXPOSURE))
        found = found[:, None] if classes == 2 else found[:, 1:] - found[:, :1]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_the_gain_is_the_likelihood_ratio_of_a_poisson_regression() -> None:
    gain, pvalues = poisson_gain(COUNTS, Y, exposure=EXPOSURE)
    for i in (0, 1, 5):
        x = COUNTS[:, i]
        own = np.bincount(Y, x) / np.bincount(Y, EXPOSURE)
        logs = [
            scipy.stats.poisson.logpmf(x, EXPOSURE * r).sum()
            for r in (own[Y], x.sum() / EXPOSURE.sum())
        ]
        assert gain[i] == pytest.approx(logs[0] - logs[1], rel=1e-10)
        assert pvalues[i] == pytest.approx(scipy.stats.chi2.sf(2 * gain[i], 2), rel=1e-10)
    assert gain[3] == 0 and pvalues[3] == 1


def test_p_values_with_a_dispersion_are_of_the_f_distribution() -> None:
    plain = SparsePoissonNB(exposure=None).fit(COUNTS * 3, Y)
    model = SparsePoissonNB(exposure=None, scale="dispersion", alpha=7.0).fit(COUNTS * 3, Y)
    assert model.scale_.max() > 2
    statistic = scipy.stats.chi2.isf(plain.pvalues_, 2) / model.scale_ / 2
    expected = scipy.stats.f.sf(statistic, 2, 57)
    some = plain.pvalues_ > 1e-12
    np.testing.assert_allclose(model.pvalues_[some], expected[some], rtol=1e-6)


def test_score_functions_serve_scikit_learns_selectors() -> None:
    X = scipy.sparse.csr_array(COUNTS)
    scores, pvalues = poisson_gain(X, Y)
    best = SelectKBest(poisson_gain, k=3).fit(X, Y)
    assert best.get_support(indices=True).tolist() == sorted(np.argsort(-scores)[:3].tolist())
    kept = SelectFdr(poisson_gain, alpha=0.05).fit(X, Y).get_support()
    assert 0 < kept.sum() < 12
    assert pvalues[kept].max() < pvalues[~kept].min()


# --- exposures ---------------------------------------------------------------------------------


def test_row_totals_and_ones_are_exposures_that_may_be_given(backend: Any) -> None:
    for X in backend.containers(COUNTS):
        for own, given in (("total", COUNTS.sum(axis=1)), (None, np.ones(60))):
            one = SparsePoissonNB(exposure=own, scale="dispersion").fit(X, Y)
            two = SparsePoissonNB(scale="dispersion").fit(X, Y, exposure=backend.array(given))
            for name in ("scores_", "centers_", "scale_", "class_exposure_"):
                found, expected = (backend.host(getattr(m, name)) for m in (two, one))
                np.testing.assert_allclose(found, expected, rtol=1e-13)
            np.testing.assert_allclose(
                backend.host(two.decision_function(X, exposure=given)),
                backend.host(one.decision_function(X)),
                rtol=1e-9,
                atol=1e-11,
            )


def test_given_exposures_in_batches_shards_and_files(backend: Any) -> None:
    model = SparsePoissonNB(k=4, scale="dispersion")
    for X in backend.containers(COUNTS):
        whole = clone(model).fit(X, Y, exposure=EXPOSURE)
        batches, parts = clone(model), []
        for rows in (slice(0, 20), slice(20, 60)):
            some = {"classes": [0, 1, 2], "exposure": EXPOSURE[rows]}
            batches.partial_fit(X[rows, :], Y[rows], **some)
            parts.append(model.statistics(X[rows, :], Y[rows], **some))
        merged = clone(model).fit_statistics(parts[0].merge(parts[1]))
        file = io.BytesIO()
        whole.save(file)
        file.seek(0)
        expected = backend.host(whole.predict_proba(X, exposure=EXPOSURE))
        for other in (batches, merged, load(file), whole.with_k(4)):
            assert other.support_.tolist() == whole.support_.tolist()
            # (Files are loaded where their arrays can live: of strict arrays on the host.)
            there = other._fitted.backend == whole._fitted.backend
            found = other.predict_proba(X if there else COUNTS, exposure=EXPOSURE)
            found = backend.host(found) if there else found
            np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_exposures_are_handed_in_where_the_model_was_fitted_with_them() -> None:
    given = SparsePoissonNB().fit(COUNTS, Y, exposure=EXPOSURE)
    without = SparsePoissonNB().fit(COUNTS, Y)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        with pytest.raises(ValueError, match="hand the exposures of these rows to this method"):
            getattr(given, name)(COUNTS)
        with pytest.raises(ValueError, match="was fitted without exposure="):
            getattr(without, name)(COUNTS, exposure=EXPOSURE)
    assert given.score(COUNTS, Y, exposure=EXPOSURE) > 0.5
    stream = SparsePoissonNB().partial_fit(COUNTS, Y, classes=[0, 1, 2], exposure=EXPOSURE)
    with pytest.raises(ValueError, match="each call of partial_fit"):
        stream.partial_fit(COUNTS, Y)
    with pytest.raises(ValueError, match="they cannot be merged"):
        SparsePoissonNB().statistics(COUNTS, Y, exposure=EXPOSURE).merge(
            SparsePoissonNB().statistics(COUNTS, Y)
        )
    assert not any(value is EXPOSURE for value in vars(given).values())


def test_counts_without_exposure_name_their_row(backend: Any) -> None:
    X, e = COUNTS[:, [0, 1, 5]].copy(), EXPOSURE.copy()
    X[7], e[7] = 0, 0
    for held in backend.containers(X):
        model = SparsePoissonNB().fit(held, Y, exposure=e)
        found = backend.host(model.predict_log_proba(held, exposure=e))
        np.testing.assert_allclose(found[7], np.log([1 / 3] * 3))
    X[7, 1] = 2
    for held in backend.containers(X):
        with pytest.raises(ValueError, match="exposure of row 7 is 0, but X has counts"):
            SparsePoissonNB().fit(held, Y, exposure=e)
        with pytest.raises(ValueError, match="exposure of row 7 is 0, but X has counts"):
            model.predict(held, exposure=e)
        weights = np.arange(60) != 7
        assert SparsePoissonNB().fit(held, Y, weights, exposure=e).class_exposure_ is not None


@pytest.mark.parametrize(
    ("exposure", "message"),
    [
        (np.ones(59), "exposure.shape"),
        (-EXPOSURE, "Negative values in data passed to `exposure`, first in row 0"),
        (EXPOSURE * np.nan, "exposure contains NaN"),
        (np.ones((60, 2)), "exposure must be 1D"),
        ("total", "exposure must be an array of numbers"),
    ],
)
def test_wrong_exposures_are_named(exposure: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        SparsePoissonNB().fit(COUNTS, Y, exposure=exposure)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"exposure": "rows"}, "exposure='rows'"),
        ({"exposure": EXPOSURE}, "hand numbers for each row to fit"),
        ({"scale": "std"}, "scale='std'"),
        ({"alpha": -1}, "alpha=-1"),
    ],
    ids=["word", "array", "scale", "alpha"],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SparsePoissonNB(**parameters).fit(COUNTS, Y)


def test_exposures_are_routed_as_metadata() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = SparsePoissonNB(k=4).set_fit_request(exposure=True).set_score_request(exposure=True)
        found = cross_validate(model, COUNTS, Y, cv=3, params={"exposure": EXPOSURE})
    assert np.all(found["test_score"] > 0.4)


def test_negative_counts_are_named(backend: Any) -> None:
    X = COUNTS.copy()
    X[5, 2] = -1
    for held in backend.containers(X):
        for scale in (None, "dispersion"):
            with pytest.raises(
                ValueError, match=r"Negative values .* feature 2 \(first in row 5\)"
            ):
                SparsePoissonNB(scale=scale).fit(held, Y)
