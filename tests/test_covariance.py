"""The covariance of Mahalanobis centers: its values, its shrinkage, and which are refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from correlated import attribute, correlated, residuals
from sklearn.covariance import ledoit_wolf, shrunk_covariance

from gpucenters import MahalanobisCenterClassifier


@pytest.mark.parametrize("shrinkage", [None, 0, 0.3, 1])
@pytest.mark.parametrize("covariance", ["pooled", "total"])
def test_pooled_total_and_shrunk_covariances_equal_their_definitions(
    covariance: str, shrinkage: Any, backend: Any
) -> None:
    X, y = correlated()
    model = MahalanobisCenterClassifier(covariance=covariance, shrinkage=shrinkage)
    model.fit(backend.array(X), y)
    R = residuals(X, y)
    S = R.T @ R / (60 - 3) if covariance == "pooled" else np.cov(X.T)
    expected = shrunk_covariance(S, shrinkage=shrinkage or 0)
    np.testing.assert_allclose(attribute(model, "covariance_", backend), expected, rtol=1e-12)
    assert model.shrinkage_ == (shrinkage or 0)
    T = attribute(model, "transformation_", backend)
    np.testing.assert_array_equal(T, T.T)
    np.testing.assert_allclose(T @ expected @ T, np.eye(5), atol=1e-12)
    assert np.linalg.eigvalsh(T)[0] > 0


@pytest.mark.parametrize("shape", [(60, 5), (20, 40), (30, 1)])
def test_ledoit_wolf_shrinkage_equals_scikit_learn(shape: tuple[int, int], backend: Any) -> None:
    X, y = correlated(3, *shape) if shape[1] > 1 else correlated(3, 30, 2)
    X = np.ascontiguousarray(X[:, : shape[1]]) + 7.0
    S, amount = ledoit_wolf(residuals(X, y), assume_centered=True)
    for container in backend.containers(X):
        model = MahalanobisCenterClassifier(shrinkage="ledoit-wolf").fit(container, y)
        assert model.shrinkage_ == pytest.approx(amount, rel=1e-10)
        np.testing.assert_allclose(
            attribute(model, "covariance_", backend), S, rtol=1e-10, atol=1e-14
        )


def test_ledoit_wolf_takes_weights_as_repetitions(backend: Any) -> None:
    X, y = correlated()
    s = np.random.default_rng(1).integers(0, 4, 60)
    R, repeated = np.repeat(X, s, axis=0), np.repeat(y, s)
    model = MahalanobisCenterClassifier(shrinkage="ledoit-wolf")
    model.fit(backend.array(X), y, sample_weight=s)
    S, amount = ledoit_wolf(residuals(R, repeated), assume_centered=True)
    assert model.shrinkage_ == pytest.approx(amount, rel=1e-10)
    np.testing.assert_allclose(attribute(model, "covariance_", backend), S, rtol=1e-10)


def test_the_transformation_is_the_symmetric_inverse_root() -> None:
    # Every root whitens, but each rotates the features: with the Cholesky root two other features
    # have the largest gains.
    X, y = correlated(2, 400, 4, seed=5)
    model = MahalanobisCenterClassifier(k=2).fit(X, y)
    R = residuals(X, y)
    S = R.T @ R / 398
    delta = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    gain = (np.real(scipy.linalg.fractional_matrix_power(S, -0.5)) @ delta) ** 2 / 2
    turned = scipy.linalg.solve_triangular(np.linalg.cholesky(S), delta, lower=True) ** 2 / 2
    np.testing.assert_allclose(model.scores_, gain, rtol=1e-8)
    best, other = (sorted(np.argsort(-g)[:2].tolist()) for g in (gain, turned))
    assert model.support_.tolist() == best != other
    assert gain.sum() == pytest.approx(
        turned.sum()
    )  # the sum of all gains does not depend on the root


def test_the_covariance_of_steps_of_one_unit_in_the_last_place_is_exact(backend: Any) -> None:
    # The values differ in the last place, and their sums round by more than that.
    steps = np.random.default_rng(0).integers(0, 8, (4000, 2))
    X, y = 1e8 + steps * 2.0**-26, np.arange(4000) % 2
    model = MahalanobisCenterClassifier().fit(backend.array(X), y)
    R = residuals(steps.astype(float), y)
    expected = R.T @ R / 3998
    np.testing.assert_allclose(
        attribute(model, "covariance_", backend) * 2.0**52, expected, rtol=1e-6, atol=1e-6
    )


def test_a_singular_covariance_names_the_rank_and_the_remedy(backend: Any) -> None:
    X, y = correlated(2)
    X[:, 4] = X[:, 0] + X[:, 2]
    for container in backend.containers(X):
        with pytest.raises(ValueError, match=r"singular: its rank is 4\. .* Use shrinkage"):
            MahalanobisCenterClassifier(shrinkage=None).fit(container, y)
        model = MahalanobisCenterClassifier(shrinkage=1e-3).fit(container, y)
        assert model.score(container, y) > 0.5
    with pytest.raises(ValueError, match="its rank is 0"):
        MahalanobisCenterClassifier(shrinkage=0.5).fit(backend.array(np.ones((4, 3))), [0, 0, 1, 1])
    wide, labels = correlated(2, 20, 40)
    with pytest.raises(ValueError, match="its rank is 18"):
        MahalanobisCenterClassifier(shrinkage=None).fit(backend.array(wide), labels)
    scaled = X.copy()
    scaled[:, 4] = wide[: len(X), 0].mean() + 1e-9 * np.arange(len(X)) % 3e-9
    with pytest.raises(ValueError, match=r"scales lie far apart.* bring the features to one scale"):
        MahalanobisCenterClassifier(shrinkage=None).fit(backend.array(scaled), y)
    model = MahalanobisCenterClassifier(covariance=np.ones((5, 5)), shrinkage=None)
    with pytest.raises(ValueError, match=r"Use shrinkage='auto' or a number in \(0, 1\]"):
        model.fit(backend.array(X), y)
    with pytest.raises(ValueError, match=r"Use shrinkage='auto' or a larger number"):
        model.set_params(shrinkage=1e-16).fit(backend.array(X), y)
    # Residuals of one length in one direction, for which the amount of Ledoit and Wolf is zero.
    line = np.asarray([[1.0, 5], [-1, 5], [1, 6], [-1, 6]])
    named = r"its rank is 1\. Some are constant within .*: feature 1\. Use shrinkage='auto' or a n"
    for shrinkage in (None, "ledoit-wolf"):
        with pytest.raises(ValueError, match=named):
            model.set_params(shrinkage=shrinkage, covariance="pooled").fit(
                backend.array(line), [0, 0, 1, 1]
            )


@pytest.mark.parametrize("power", [-150, -90, 76.5, 80, 150])
def test_ledoit_wolf_refuses_fourth_powers_out_of_range(power: float, backend: Any) -> None:
    X, y = correlated(2)
    model = MahalanobisCenterClassifier(shrinkage="ledoit-wolf")
    expected = model.fit(backend.array(X), y).shrinkage_
    scaled = model.fit(backend.array(X * 2.0 ** (200 if power > 0 else -200)), y)
    assert scaled.shrinkage_ == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match=r"fourth powers of X.* Rescale X"):
        model.fit(backend.array(X * 10.0**power), y)


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (
            [[1.0, 0.5], [0.25, 1.0]],
            r"not symmetric: entry \(0, 1\) is 0.5, entry \(1, 0\) is 0.25",
        ),
        ([[1.0, 2.0], [2.0, 1.0]], r"not positive definite: its smallest eigenvalue is -1"),
        ([[-1.0, 0.0], [0.0, -2.0]], "not positive definite"),
        ([[1.0, 1.0], [1.0, 1.0]], "singular: its rank is 1"),
        (np.eye(3), r"shape \(3, 3\), but X has 2 features"),
        ([1.0, 1.0], r"shape \(2,\)"),
        ([[1.0, np.nan], [np.nan, 1.0]], "NaN or infinity"),
        ([["a", "b"], ["b", "a"]], "a dense matrix of real numbers"),
        (np.eye(2) + 0.5j * np.eye(2), "real numbers, got one of complex128"),
        (scipy.sparse.eye(2, format="csr"), "a sparse one: use covariance.toarray"),
        ([[0.0, 0.0], [0.0, 0.0]], r"singular: its rank is 0\.$"),
        ("diagonal", "use 'pooled', 'total' or a matrix"),
        (None, "use 'pooled', 'total' or a matrix"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(type(value).__name__),
)
def test_a_given_covariance_that_is_invalid_is_refused(
    covariance: Any, message: str, backend: Any
) -> None:
    X, y = correlated(2)
    with pytest.raises(ValueError, match=message):
        MahalanobisCenterClassifier(covariance=covariance, shrinkage=None).fit(
            backend.array(X[:, :2]), y
        )
    model = MahalanobisCenterClassifier(covariance=covariance, shrinkage=None)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(backend.array(X[:, :2]), y, classes=[0, 1]).predict(
            backend.array(X[:, :2])
        )


def test_a_given_covariance_may_live_anywhere_and_is_copied(backend: Any) -> None:
    X, y = correlated(2)
    S = np.cov(X.T)
    expected = MahalanobisCenterClassifier(covariance=S).fit(backend.array(X), y)
    for given_ in (S.tolist(), backend.array(S), S.astype(np.float32).astype(object)):
        model = MahalanobisCenterClassifier(covariance=given_).fit(backend.array(X), y)
        np.testing.assert_allclose(
            *(attribute(m, "scores_", backend) for m in (model, expected)), rtol=1e-4
        )
    model = MahalanobisCenterClassifier(covariance=S)
    model.partial_fit(backend.array(X), y, classes=[0, 1])
    S *= 100  # after the batch, before the model is solved
    np.testing.assert_array_equal(*(attribute(m, "scores_", backend) for m in (model, expected)))


@pytest.mark.parametrize("shrinkage", [-0.1, 1.5, True, np.nan, "always", [0.5]])
def test_fit_refuses_an_invalid_shrinkage(shrinkage: Any) -> None:
    X, y = correlated(2)
    with pytest.raises(ValueError, match="is not valid: use 'auto', None, a number in"):
        MahalanobisCenterClassifier(shrinkage=shrinkage).fit(X, y)


@pytest.mark.parametrize("covariance", ["total", np.eye(5)], ids=["total", "given"])
def test_ledoit_wolf_refuses_a_total_or_given_covariance(covariance: Any) -> None:
    X, y = correlated(2)
    with pytest.raises(ValueError, match="needs covariance='pooled'"):
        MahalanobisCenterClassifier(covariance=covariance, shrinkage="ledoit-wolf").fit(X, y)


SMALL = np.asarray([[0, 1], [1, 0], [5, 1], [6, 2], [5, 3], [0, 0]])
SMALL_Y, SMALL_S = np.asarray([0, 0, 1, 1, 1, 0]), np.asarray([0.1, 0.2, 0.2, 0.4, 0.05, 0.05])


@pytest.mark.parametrize(("covariance", "means"), [("pooled", 2), ("total", 1)])
def test_weights_that_are_no_repetitions_divide_by_their_sum(
    covariance: str, means: int, backend: Any
) -> None:
    groups = SMALL_Y if covariance == "pooled" else np.zeros(6, dtype=int)
    scatter = sum(
        np.cov(SMALL[groups == c].T, aweights=SMALL_S[groups == c], ddof=0)
        * SMALL_S[groups == c].sum()
        for c in set(groups)
    )
    for weight in (1, means + 0.4, means + 0.6, 10):
        model = MahalanobisCenterClassifier(covariance=covariance)
        small = weight < means + 0.5
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            model.fit(backend.array(SMALL), SMALL_Y, sample_weight=weight * SMALL_S)
        assert [str(w.message).partition(":")[0] for w in seen] == [
            f"covariance={covariance!r}"
        ] * small
        divisor = weight if small else weight - means
        found = attribute(model, "covariance_", backend)
        np.testing.assert_allclose(found, scatter * weight / divisor, rtol=1e-12)


def test_ledoit_wolf_counts_the_samples_where_weights_are_no_repetitions(backend: Any) -> None:
    X, y = correlated(3, 20, 40)
    model = MahalanobisCenterClassifier(shrinkage="ledoit-wolf")
    expected = ledoit_wolf(residuals(X, y), assume_centered=True)[1]
    found = model.fit(backend.array(X), y, sample_weight=np.full(20, 0.05)).shrinkage_
    assert found == pytest.approx(expected, rel=1e-10) != 1


@pytest.mark.parametrize("shrinkage", [None, 0.5, "ledoit-wolf"])
def test_one_sample_in_each_class_has_no_covariance(shrinkage: Any, backend: Any) -> None:
    model = MahalanobisCenterClassifier(shrinkage=shrinkage)
    with pytest.raises(ValueError, match=r"its rank is 0\. All are constant in each class"):
        model.fit(backend.array(SMALL[:3]), [0, 1, 2])
