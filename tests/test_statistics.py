"""Statistics: made from shards, merged, moved, pickled, and fitted from."""

from __future__ import annotations

import copy
import itertools
import pickle
import pickletools
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from conftest import BACKENDS
from every_model import others
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from strategies import Problem, modest, problems, quietly

import gpucenters
from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
)
from gpucenters.statistics import Statistics

MODELS = [
    L2CenterClassifier(k=2),
    L2CenterClassifier(k=2, scale="std"),
    L2CenterClassifier(k=2, scale="pooled", priors="empirical"),
    SparseBernoulliNB(k=2, alpha=0.5),
    SparseMultinomialNB(k=2),
    SparsePoissonNB(k=2),
    SparseGaussianNB(k=2, var_smoothing=1e-3),
    ShrunkenCentroidClassifier(k=2),
    SparsePoissonNB(k=2, scale="dispersion", exposure=None),
    MahalanobisCenterClassifier(k=2, shrinkage=0.3),
    MahalanobisCenterClassifier(k=2, shrinkage="ledoit-wolf"),
]
MODELS += others(MODELS, "statistics", k=2)
EXACT = MODELS[
    :8
]  # those whose raw sums of integers, stored sparse, have the same bits in any order

rng = np.random.default_rng(0)
X = rng.poisson(1.0, (60, 5)).astype(np.float64)
X[:, 4] += 3
y = np.arange(60) % 3
s = rng.integers(0, 3, 60).astype(np.float64)
SHARDS = [slice(0, 7), slice(7, 8), slice(8, 40), slice(40, 60)]


def _shards(model: Any, data: Any, weights: Any = None) -> list[Statistics]:
    return [
        model.statistics(
            data[rows, :],
            y[rows],
            classes=[0, 1, 2],
            sample_weight=None if weights is None else weights[rows],
        )
        for rows in SHARDS
    ]


def _merged(parts: list[Statistics]) -> Statistics:
    whole = parts[0].copy()
    for part in parts[1:]:
        whole.merge(part)
    return whole


def _bits(statistics: Statistics) -> list[Any]:
    found = [np.asarray(a).tobytes() for _, _, a in statistics.to(_HOST)._arrays()]
    return [*found, list(statistics.class_weight), list(statistics.count)]


_HOST = gpucenters.arrays.backend.HOST


def _assert_same_model(found: Any, expected: Any, backend: Any = None) -> None:
    host = np.asarray if backend is None else backend.host
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_allclose(host(found.scores_), host(expected.scores_), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(host(found.centers_), host(expected.centers_), rtol=1e-9)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(found.classes_, expected.classes_)


@pytest.mark.parametrize("weights", [None, s, s + 0.25], ids=["unit", "integer", "real"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_merged_shards_fit_as_all_samples(model: Any, weights: Any, backend: Any) -> None:
    for container in backend.containers(X):
        expected = quietly(clone(model).fit, container, y, weights)
        whole = _merged(_shards(model, container, weights))
        found = quietly(clone(model).fit_statistics, whole)
        _assert_same_model(found, expected, backend)
        assert found.n_features_in_ == 5
        predicted = backend.host(found.predict(container))
        np.testing.assert_array_equal(predicted, backend.host(expected.predict(container)))


@pytest.mark.parametrize("weights", [None, s], ids=["unit", "weights"])
@pytest.mark.parametrize("model", MODELS[:9], ids=str)
def test_values_other_than_zero_are_counted_in_the_same_pass(
    model: Any, weights: Any, backend: Any
) -> None:
    w = np.ones(60) if weights is None else weights
    x = X.copy()
    x[x == 2] = 0.5  # of Bernoulli's ones, too
    expected = np.asarray([(w[:, None] * (x != 0))[y == c].sum(axis=0) for c in range(3)])
    for container in backend.containers(x):
        options = {"sample_weight": weights, "nonzero": True}
        found = model.statistics(container, y, **options)
        np.testing.assert_array_equal(backend.host(found.nonzero), expected)
        plain = model.statistics(container, y, sample_weight=weights)
        assert plain.nonzero is None
        for name, _, sums in plain._arrays():
            backend.assert_same(getattr(found, name), sums)
        parts = [
            model.statistics(container[rows, :], y[rows], classes=[0, 1, 2], nonzero=True)
            for rows in SHARDS
        ]
        whole = pickle.loads(pickle.dumps(_merged(parts))).merge_classes([0, 1, 0])
        counts = [(x != 0)[y == 1].sum(axis=0), (x != 0)[y != 1].sum(axis=0)]
        np.testing.assert_array_equal(backend.host(whole.nonzero), counts[::-1])
        with pytest.raises(ValueError, match="with numbers of values other than zero"):
            parts[0].merge(plain)
        clone(model).fit_statistics(found)


def test_statistics_of_other_values_are_described_and_not_merged() -> None:
    x = np.abs(X)
    models = [SparseBernoulliNB(binarize=0.5), SparseBernoulliNB(binarize=1.0)]
    one, other = (model.statistics(x, y) for model in models)
    message = r"class sums of values binarized at 0\.5.* class sums of values binarized at 1\.0"
    with pytest.raises(ValueError, match=message):
        one.merge(other)


def test_nonzero_counts_of_dense_and_sparse_parts_merge() -> None:
    for model in (L2CenterClassifier(), L2CenterClassifier(scale="std")):
        parts = [
            model.statistics(kind(X[rows]), y[rows], classes=[0, 1, 2], nonzero=True)
            for kind, rows in zip([np.asarray, scipy.sparse.csr_array] * 2, SHARDS, strict=True)
        ]
        expected = [(X != 0)[y == c].sum(axis=0) for c in range(3)]
        np.testing.assert_array_equal(_merged(parts).nonzero, expected)
    # Raw sums that cancel: sparse data are read again, about their means.
    large = scipy.sparse.csr_array(X + 0.1 + 1e6)
    found = L2CenterClassifier().statistics(large, y, nonzero=True)
    assert found.centred is not None and found.nonzero.tolist() == [[20.0] * 5] * 3
    with pytest.raises(ValueError, match="of MahalanobisCenterClassifier have no nonzero counts"):
        MahalanobisCenterClassifier().statistics(X, y, nonzero=True)


@pytest.mark.parametrize("model", EXACT, ids=str)
@given(problem=problems(), data=st.data())
@modest(30)
def test_sparse_integer_sums_merge_to_the_same_bits_in_any_order(
    model: Any, problem: Problem, data: Any
) -> None:
    values, labels, weights = np.abs(problem.X), problem.y, problem.weight
    n, classes = len(labels), np.unique(labels)
    cuts = sorted(data.draw(st.lists(st.integers(1, n - 1), max_size=3, unique=True)))
    order = data.draw(st.permutations(range(len(cuts) + 1)))
    bounds = [0, *cuts, n]
    matrix = scipy.sparse.csr_array(values.astype(np.float64))
    parts = [
        model.statistics(
            matrix[bounds[i] : bounds[i + 1]],
            labels[bounds[i] : bounds[i + 1]],
            classes=classes,
            sample_weight=weights[bounds[i] : bounds[i + 1]],
        )
        for i in range(len(bounds) - 1)
    ]
    if getattr(parts[0], "ill_conditioned", None) is not None or any(
        getattr(part, "centred", None) is not None for part in parts
    ):
        return  # what is kept centred merges to the same bits in a fixed order only
    one = _merged(parts)
    other = _merged([parts[i] for i in order])
    for name in ("total", "square", "sum_of_squares"):
        if getattr(one, name, None) is not None:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.class_weight == other.class_weight and one.count == other.count


@given(problem=problems(), data=st.data(), offset=st.sampled_from([0, 1, 10**6]))
@modest(60)
def test_scaled_l2_from_any_split_is_that_of_all_samples(
    problem: Problem, data: Any, offset: int
) -> None:
    """Ill-conditioned columns of one part, of both, or of neither."""
    values, labels, weights = problem.X.astype(np.float64), problem.y, problem.weight
    values[:, 0] += offset
    n, classes = len(labels), np.unique(labels)
    cut = data.draw(st.integers(1, n - 1))
    model = L2CenterClassifier(scale="std")
    kinds = data.draw(
        st.lists(st.sampled_from([np.asarray, scipy.sparse.csr_array]), min_size=2, max_size=2)
    )
    expected = clone(model).fit(values, labels, weights)
    parts = [
        model.statistics(kind(values[r]), labels[r], classes=classes, sample_weight=weights[r])
        for kind, r in zip(kinds, (slice(0, cut), slice(cut, n)), strict=True)
    ]
    found = clone(model).fit_statistics(parts[0].merge(parts[1]))
    np.testing.assert_allclose(found.scale_, expected.scale_, rtol=1e-7)
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-7, atol=1e-9)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("model", [L2CenterClassifier(), L2CenterClassifier(scale="std")], ids=str)
def test_a_shard_whose_sums_cancel_is_centred_and_loses_no_digits(model: Any) -> None:
    values = np.asarray([[1e8], [1e8 + 1], [1e8 + 2], [1e8 + 3], [1e8 + 4], [1e8 + 5]]) + 0.5
    labels = [0, 0, 0, 1, 1, 1]
    expected = clone(model).fit(values, labels)
    matrix = scipy.sparse.csr_array(values)
    parts = [
        model.statistics(matrix[[0, 3, 1]], [0, 1, 0], classes=[0, 1]),
        model.statistics(matrix[[4, 2, 5]], [1, 0, 1], classes=[0, 1]),
    ]
    found = clone(model).fit_statistics(parts[0].merge(parts[1]))
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-6)


def test_a_shard_in_which_a_column_is_not_stored_merges_with_one_that_keeps_it_centred() -> None:
    values = np.zeros((8, 3))
    values[:4, 1] = 1e7 + np.arange(4)  # ill-conditioned in the first shard, zero in the second
    values[:, 2] = np.arange(8)
    labels = np.arange(8) % 2
    model = L2CenterClassifier(scale="pooled")
    expected = clone(model).fit(values, labels)
    matrix = scipy.sparse.csr_array(values)
    for order in ((0, 1), (1, 0)):
        parts = [
            model.statistics(matrix[r], labels[r], classes=[0, 1])
            for r in (slice(0, 4), slice(4, 8))
        ]
        assert parts[0].ill_conditioned is not None
        found = clone(model).fit_statistics(parts[order[0]].merge(parts[order[1]]))
        np.testing.assert_allclose(found.scale_, expected.scale_, rtol=1e-12)
        np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mapping", [[0, 0, 1], [1, 0, 0], [0, 1, 0], [2, 0, 1]])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_merged_classes_are_those_of_merged_labels(model: Any, mapping: list[int]) -> None:
    labels = np.asarray(mapping)[y]
    for container in (X, scipy.sparse.csr_array(X + np.asarray([0, 0, 0, 0, 1e4]))):
        expected = quietly(clone(model).fit, container, labels, s)
        apart = model.statistics(container, y, sample_weight=s)
        kept = _bits(apart)
        union = apart.merge_classes(mapping)
        _assert_same_model(quietly(clone(model).fit_statistics, union), expected)
        assert _bits(apart) == kept


def test_merge_classes_takes_labels_and_refuses_other_mappings() -> None:
    apart = L2CenterClassifier().statistics(X, y)
    union = apart.merge_classes([0, 1, 1], classes=["rest", "others"])
    assert union.class_weight == [40.0, 20.0]  # in the order of the labels
    assert L2CenterClassifier().fit_statistics(union).classes_.tolist() == ["others", "rest"]
    for mapping in ([0, 1], [0, 2, 2], [0, 1, -1], []):
        with pytest.raises(ValueError, match="must name a new class"):
            apart.merge_classes(mapping)
    with pytest.raises(ValueError, match=r"classes has shape \(1,\), expected \(2,\)"):
        apart.merge_classes([0, 1, 1], classes=["one"])


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_statistics_pickle_on_the_host_without_modules(model: Any, backend: Any) -> None:
    for container in backend.containers(X):
        statistics = model.statistics(container, y)
        dumped = pickle.dumps(statistics)
        names = {str(arg) for _, arg, _ in pickletools.genops(dumped) if isinstance(arg, str)}
        assert not any(name.startswith(("cupy.", "cupyx")) for name in names)
        restored = pickle.loads(dumped)
        assert restored.backend == statistics.backend
        assert _bits(restored) == _bits(statistics)
        assert _bits(copy.deepcopy(statistics)) == _bits(statistics)
        _assert_same_model(
            quietly(clone(model).fit_statistics, restored),
            quietly(clone(model).fit, container, y),
            backend,
        )


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_statistics_of_one_device_merge_with_those_of_another(model: Any) -> None:
    there = BACKENDS["cupy"].array(X)
    parts = [
        model.statistics(X[:30], y[:30], classes=[0, 1, 2]),
        model.statistics(there[30:, :], y[30:], classes=[0, 1, 2]),
    ]
    found = quietly(clone(model).fit_statistics, parts[0].merge(parts[1]))
    assert isinstance(found.scores_, np.ndarray)
    _assert_same_model(found, quietly(clone(model).fit, X, y))
    moved = quietly(clone(model).set_params(device="cuda").fit_statistics, parts[0])
    BACKENDS["cupy"].check(moved.scores_)


def test_merge_leaves_the_other_statistics_as_they_are() -> None:
    for model in MODELS:
        for kind in (np.asarray, scipy.sparse.csr_array):
            one, other = (model.statistics(kind(X[r]), y[r], classes=[0, 1, 2]) for r in SHARDS[2:])
            kept = _bits(other)
            assert one.merge(other) is one
            assert _bits(other) == kept


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("scale", [None, "std"])
def test_a_merge_that_overflows_changes_nothing(scale: Any, kind: Any) -> None:
    model = L2CenterClassifier(scale=scale)
    one = model.statistics(kind(np.full((2, 1), 1e154)), [0, 1])
    other = model.statistics(kind(np.full((2, 1), -1e154)), [0, 1])
    kept = _bits(one)
    with pytest.raises(ValueError, match="overflow float64"):
        one.merge(other)
    assert _bits(one) == kept


def test_merge_refuses_statistics_that_were_made_otherwise() -> None:
    plain, scaled = L2CenterClassifier(), L2CenterClassifier(scale="std")
    with pytest.raises(ValueError, match=r"class moments.*with second moments for each feature"):
        plain.statistics(X, y).merge(scaled.statistics(X, y))
    with pytest.raises(ValueError, match=r"3 classes and 5 features, the others of 3 and 4"):
        plain.statistics(X, y).merge(plain.statistics(X[:, :4], y))
    with pytest.raises(ValueError, match="the classes of the two statistics differ"):
        plain.statistics(X, y).merge(plain.statistics(X, y + 1))
    with pytest.raises(ValueError, match="cannot be merged"):
        plain.statistics(X, y).merge(SparseMultinomialNB().statistics(X, y))
    one, two = (SparseBernoulliNB(binarize=t).statistics(X, y) for t in (0.0, 1.0))
    with pytest.raises(ValueError, match="cannot be merged"):
        one.merge(two)
    with pytest.raises(TypeError, match="only statistics can be merged, got ndarray"):
        plain.statistics(X, y).merge(X)


def test_fit_statistics_refuses_what_does_not_serve_the_model() -> None:
    sums = SparseMultinomialNB().statistics(X, y)
    with pytest.raises(ValueError, match=r"L2CenterClassifier .* needs class moments, got class s"):
        L2CenterClassifier().fit_statistics(sums)
    with pytest.raises(ValueError, match="with second moments for each feature, got class mom"):
        L2CenterClassifier(scale="std").fit_statistics(L2CenterClassifier().statistics(X, y))
    with pytest.raises(TypeError, match=r"takes what statistics\(\) returns, got ndarray"):
        L2CenterClassifier().fit_statistics(X)
    few = L2CenterClassifier().statistics(X[y < 2], y[y < 2], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="class 2 is left without weight"):
        L2CenterClassifier().fit_statistics(few)
    with pytest.raises(ValueError, match="needs samples of at least two classes, got 1"):
        L2CenterClassifier().fit_statistics(L2CenterClassifier().statistics(X, y * 0))
    with pytest.raises(ValueError, match="priors has 2 entries, but there are 3 classes"):
        L2CenterClassifier(priors=[0.5, 0.5]).fit_statistics(L2CenterClassifier().statistics(X, y))
    # Statistics with more than a model needs do serve it.
    more = L2CenterClassifier(scale="std").statistics(X, y)
    _assert_same_model(L2CenterClassifier().fit_statistics(more), L2CenterClassifier().fit(X, y))


def test_statistics_leave_the_model_as_it_is_and_are_not_changed_by_it() -> None:
    model = L2CenterClassifier(k=2)
    statistics = model.statistics(X, y)
    assert not hasattr(model, "n_features_in_") and not hasattr(model, "classes_")
    kept = _bits(statistics)
    model.fit_statistics(statistics)
    model.partial_fit(X, y)
    assert _bits(statistics) == kept
    _assert_same_model(model, L2CenterClassifier(k=2).fit(np.tile(X, (2, 1)), np.tile(y, 2)))


def test_statistics_keep_the_names_of_features_and_classes() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    labels = np.asarray(["ham", "eggs", "spam"])[y]
    statistics = L2CenterClassifier().statistics(frame, labels)
    model = L2CenterClassifier(k=2).fit_statistics(statistics)
    assert model.classes_.tolist() == ["eggs", "ham", "spam"]
    expected = L2CenterClassifier(k=2).fit(frame, labels)
    assert model.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="the feature_names of the two statistics differ"):
        statistics.merge(L2CenterClassifier().statistics(frame.rename(columns=str.upper), labels))
    model.fit_statistics(L2CenterClassifier().statistics(X, y))
    assert not hasattr(model, "feature_names_in_")


def test_l1_has_no_statistics() -> None:
    assert not hasattr(L1CenterClassifier(), "statistics")


def test_many_classes_kept_together_do_not_merge_into_unions(monkeypatch: Any) -> None:
    from gpucenters.statistics import cross_moments

    monkeypatch.setattr(cross_moments, "_MOST_APART", 0)
    model = MahalanobisCenterClassifier(shrinkage=0.1).fit(X, y)
    together = model._fitted.statistics
    with pytest.raises(ValueError, match="were kept together"):
        together.merge_classes([0, 1, 1])
    # Those that statistics() makes are kept apart.
    apart = MahalanobisCenterClassifier(shrinkage=0.1).statistics(X, y)
    assert apart.scatter.shape == (3, 5, 5) and together.scatter.shape == (2, 5, 5)


def test_scatter_matrices_kept_together_merge() -> None:
    from gpucenters.arrays.context import Context
    from gpucenters.blocks.convert import as_block
    from gpucenters.blocks.samples import make_samples
    from gpucenters.statistics import CrossMoments, Recipe

    recipe, ctx = Recipe("cross moments", final=(20.0, 20.0, 20.0)), Context.of(_HOST)

    def of(rows: slice) -> CrossMoments:
        block = as_block(X[rows], _HOST)
        return recipe.empty(block, 3).add(block, make_samples(y[rows], len(y[rows]), _HOST), ctx)

    whole = of(slice(0, 60))
    merged = of(slice(0, 25)).merge(of(slice(25, 60)))
    np.testing.assert_allclose(merged.scatter, whole.scatter, rtol=1e-12)
    assert merged.class_weight == whole.class_weight and merged.count == whole.count


def test_a_model_does_not_change_when_its_statistics_are_merged_further() -> None:
    for model in MODELS:
        statistics = model.statistics(X, y)
        fitted = quietly(clone(model).fit_statistics, statistics)
        expected = [np.asarray(fitted.centers_).copy(), fitted.predict(X)]
        fitted._fitted.cache.clear()
        statistics.merge(model.statistics(X + 1, y))
        np.testing.assert_array_equal(fitted.centers_, expected[0])
        np.testing.assert_array_equal(fitted.predict(X), expected[1])


def test_copies_of_statistics_share_nothing() -> None:
    for model in (L2CenterClassifier(), L2CenterClassifier(scale="std"), SparseMultinomialNB()):
        for kind in (np.asarray, scipy.sparse.csr_array):
            one = model.statistics(kind(X), y)
            kept = _bits(one)
            for made in (one.copy(), copy.copy(one), copy.deepcopy(one), one.to("cpu")):
                made.merge(made.copy())
            assert _bits(one) == kept


def test_statistics_move_to_a_device_by_its_name() -> None:
    there = L2CenterClassifier().statistics(BACKENDS["cupy"].array(X), y)
    assert isinstance(there.to("cpu").total, np.ndarray)
    BACKENDS["cupy"].check(L2CenterClassifier().statistics(X, y).to("cuda").total)


def test_pickled_statistics_of_a_device_load_where_cuda_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gpucenters.arrays import cuda

    dumped = pickle.dumps(L2CenterClassifier().statistics(BACKENDS["cupy"].array(X), y))
    monkeypatch.setattr(cuda, "probe", lambda: (None, "no device"))
    restored = pickle.loads(dumped)
    assert restored.backend == _HOST
    _assert_same_model(
        L2CenterClassifier().fit_statistics(restored), L2CenterClassifier().fit(X, y)
    )


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_read_only_arrays_are_copied_before_they_are_added_to(model: Any) -> None:
    """joblib hands out memory maps that cannot be written to."""
    one, other = (model.statistics(X[r], y[r], classes=[0, 1, 2]) for r in SHARDS[2:])
    expected = _bits(one.copy().merge(other))
    for _, _, array in [*one._arrays(), *other._arrays()]:
        array.flags.writeable = False
    assert _bits(one.merge(other)) == expected
    stream = quietly(clone(model).fit_statistics, other)
    for _, _, array in stream._fitted.statistics._arrays():
        array.flags.writeable = False
    stream.partial_fit(X, y)


@pytest.mark.parametrize("offset", [1e6, 1.7e7, 3.9e7, 1e9])
def test_objective_of_sparse_data_at_an_offset_is_that_of_dense_data(offset: float) -> None:
    values = offset + (np.arange(60) % 7 == 0)[:, None]
    labels = np.arange(60) % 2
    matrix = scipy.sparse.csr_array(values)
    expected = L2CenterClassifier().fit(values, labels).objective_
    assert expected == pytest.approx(0.2544, abs=1e-4)
    assert L2CenterClassifier().fit(matrix, labels).objective_ == pytest.approx(expected, rel=1e-6)
    batches, merged = L2CenterClassifier(), None
    for start in range(0, 60, 4):
        rows = slice(start, start + 4)
        batches.partial_fit(matrix[rows], labels[rows], classes=[0, 1])
        part = L2CenterClassifier().statistics(matrix[rows], labels[rows])
        merged = part if merged is None else merged.merge(part)
    assert batches.objective_ == pytest.approx(expected, rel=1e-6)
    found = L2CenterClassifier().fit_statistics(merged).objective_
    assert found == pytest.approx(expected, rel=1e-6)


def test_objective_of_single_rows_at_an_offset_is_that_of_dense_data() -> None:
    values = 1e9 + np.arange(12.0)[:, None] / 3
    labels = np.arange(12) % 2
    expected = L2CenterClassifier().fit(values, labels).objective_
    batches, merged = L2CenterClassifier(), None
    for i in range(12):
        row, label = scipy.sparse.csr_array(values[i : i + 1]), labels[i : i + 1]
        batches.partial_fit(row, label, classes=[0, 1])
        part = L2CenterClassifier().statistics(row, label, classes=[0, 1])
        merged = part if merged is None else merged.merge(part)
    assert batches.objective_ == pytest.approx(expected, rel=1e-6)
    assert L2CenterClassifier().fit_statistics(merged).objective_ == pytest.approx(
        expected, rel=1e-6
    )


def test_merge_classes_refuses_what_is_no_sequence_of_codes() -> None:
    apart = L2CenterClassifier().statistics(X, y)
    for mapping in ({0: 0, 1: 1, 2: 1}, "011", None, [0.0, 1.0, 1.0], ["a", "b", "b"]):
        with pytest.raises(TypeError, match="mapping must be a sequence of K class codes"):
            apart.merge_classes(mapping)
    with pytest.raises(ValueError, match="must name a new class"):
        apart.merge_classes([0, 10**12, 1])
    with pytest.raises(ValueError, match="names a label twice"):
        apart.merge_classes([0, 1, 1], classes=["a", "a"])
    with pytest.raises(ValueError, match="classes must name at least two classes"):
        L2CenterClassifier().statistics(X, y, classes=[])


def test_unlabelled_statistics_take_the_labels_of_those_they_are_merged_with() -> None:
    apart = L2CenterClassifier().statistics(X, y)
    union = apart.merge_classes([0, 1, 2])
    assert union.classes is None
    assert union.merge(apart).classes.tolist() == [0, 1, 2]


@pytest.mark.parametrize("weight", [1e-100, 1.0, 1e100])
def test_scaled_l2_of_sparse_data_does_not_depend_on_the_unit_of_weights(weight: float) -> None:
    values = (1 + 1e-6 * np.random.default_rng(0).random((20, 3))) * 1e60
    labels = np.arange(20) % 2
    expected = L2CenterClassifier(scale="std").fit(values, labels)
    found = L2CenterClassifier(scale="std").fit(
        scipy.sparse.csr_array(values), labels, np.full(20, weight)
    )
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-6)


def test_statistics_of_other_values_or_moments_do_not_serve_a_model() -> None:
    present = SparseBernoulliNB(binarize=0.0).statistics(X, y)
    with pytest.raises(ValueError, match="Make the statistics with the parameters of this model"):
        SparseBernoulliNB(binarize=1.0).fit_statistics(present)
    plain = MahalanobisCenterClassifier(shrinkage=0.3).statistics(X, y)
    with pytest.raises(ValueError, match="needs cross moments with fourth moments, got cross m"):
        MahalanobisCenterClassifier(shrinkage="ledoit-wolf").fit_statistics(plain)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
def test_statistics_with_a_batch_leave_the_others_as_they_are_until_they_settle(
    model: Any, kind: Any, wide: bool
) -> None:
    from gpucenters.arrays.context import Context
    from gpucenters.blocks.convert import as_block
    from gpucenters.blocks.samples import make_samples

    data = np.concatenate([X, np.zeros((60, 300))], axis=1) if wide else X
    block = model._read(as_block(kind(data[54:]), _HOST))
    batch = block, make_samples(y[54:], 6, _HOST, n_classes=3), Context.of(_HOST)

    def before() -> Statistics:
        return model.statistics(kind(data[:54]), y[:54], classes=[0, 1, 2])

    def after() -> Statistics:
        return before().add_batch(*batch)

    kept, expected = _bits(before()), _bits(before().add_batch(*batch, shared=True))
    assert kept != expected
    statistics = before()
    statistics.add_batch(*batch)  # an interrupt before the assignment leaves it at this
    assert _bits(statistics) == kept
    assert _bits(after().copy()) == expected
    assert _bits(after().to("cuda")) == expected
    assert _bits(pickle.loads(pickle.dumps(after()))) == expected
    assert _bits(after().add_batch(*batch)) == _bits(after().copy().add_batch(*batch))
    assert _bits(after().merge_classes([0, 1, 2])) == _bits(after().copy().merge_classes([0, 1, 2]))
    assert _bits(after().merge(after())) == _bits(after().copy().merge(after().copy()))


def test_merged_classes_are_in_the_order_of_three_labels() -> None:
    apart = L2CenterClassifier().statistics(X, y, sample_weight=1.0 + y)
    union = apart.merge_classes([0, 1, 2], classes=["c", "a", "b"])
    assert union.classes.tolist() == ["a", "b", "c"]
    assert union.class_weight == [40.0, 60.0, 20.0]
    np.testing.assert_array_equal(union.total, apart.total[[1, 2, 0]])


def test_statistics_without_names_take_the_names_of_those_they_are_merged_with() -> None:
    pandas = pytest.importorskip("pandas")
    plain = L2CenterClassifier().statistics(X, y)
    frame = pandas.DataFrame(X, columns=list("abcde"))
    merged = plain.merge(L2CenterClassifier().statistics(frame, y))
    assert merged.feature_names.tolist() == list("abcde")


CANCELLING = {
    "real": ([3e7 + 0.3, 3e7 + 0.3, 3e7 + 0.7, 3e7 + 0.7], None),
    "real before whole": ([3e7 + 0.3, 3e7 + 0.3, 3e7, 3e7], None),
    "whole before real": ([3e7, 3e7, 3e7 + 0.3, 3e7 + 0.3], None),
    "whole of real weights": ([3e7, 3e7, 3e7 + 1, 3e7 + 1], [0.3, 0.3, 0.1, 0.1]),
    "whole and large in one class": ([0.0, 1e9, 1.0, 1e9 + 1], None),
}


@pytest.mark.parametrize("width", [1, 1000])
@pytest.mark.parametrize("case", list(CANCELLING))
def test_objective_of_sparse_rows_that_cancel_is_that_of_dense_data(case: str, width: int) -> None:
    values, weights = np.zeros((4, width)), CANCELLING[case][1]
    values[:, 0] = CANCELLING[case][0]
    w = np.ones(4) if weights is None else np.asarray(weights)
    labels, matrix = np.asarray([0, 1, 0, 1]), scipy.sparse.csr_array(values)
    expected = L2CenterClassifier().fit(values, labels, w).objective_
    assert expected > 0.01
    stream, parts = L2CenterClassifier(), []
    for rows in (slice(0, 2), slice(2, 4)):
        stream.partial_fit(matrix[rows], labels[rows], [0, 1], sample_weight=w[rows])
        part = L2CenterClassifier().statistics(matrix[rows], labels[rows], sample_weight=w[rows])
        parts.append(part)
    merged = L2CenterClassifier().fit_statistics(parts[0].merge(parts[1]))
    whole = L2CenterClassifier().fit(matrix, labels, w)
    for model in (stream, merged, whole):
        assert model.objective_ == pytest.approx(expected, rel=1e-6)


def test_whole_numbers_that_are_exact_in_each_part_alone_merge_without_loss() -> None:
    values = np.asarray([3e7 + 1, 3e7, 3e7, 3e7, 0, 0])[:, None]
    labels = np.asarray([0, 0, 0, 0, 1, 1])
    expected = L2CenterClassifier().fit(values, labels).objective_
    for cuts in ((slice(0, 1), slice(1, 6)), (slice(1, 6), slice(0, 1))):
        one, other = (
            L2CenterClassifier().statistics(
                scipy.sparse.csr_array(values[rows]), labels[rows], classes=[0, 1]
            )
            for rows in cuts
        )
        assert one.sum_of_squares is not None and other.sum_of_squares is not None
        found = L2CenterClassifier().fit_statistics(one.merge(other)).objective_
        assert found == pytest.approx(expected, rel=1e-9)


def test_a_class_of_one_sample_has_no_scatter_whatever_its_weight() -> None:
    matrix = scipy.sparse.csr_array([[0.1, 1e5 / 3], [1 / 3, 0.7]])
    weights = np.asarray([[0.3, 0.7], [0.7, 0.3], [1 / 3, 1e-3]])
    for w in weights:
        assert L2CenterClassifier().fit(matrix, [0, 1], w).objective_ == 0


def test_a_stream_of_sparse_rows_keeps_the_squared_norms_of_its_sums() -> None:
    values = np.zeros((12, 1000))
    values[np.arange(12), np.arange(12) % 5 * 200] = np.arange(12) / 3 - 1.7
    stream, matrix = L2CenterClassifier(), scipy.sparse.csr_array(values)
    for i in range(12):
        stream.partial_fit(matrix[i : i + 1], [i % 2], classes=[0, 1])
        kept = stream._fitted.settled().statistics
        np.testing.assert_allclose(kept.norms, (kept.total**2).sum(axis=1), rtol=1e-12)


def test_single_sparse_rows_of_whole_numbers_merge_to_raw_sums() -> None:
    values, labels = 1e4 + np.arange(12.0)[:, None], np.arange(12) % 2
    parts = [
        L2CenterClassifier().statistics(
            scipy.sparse.csr_array(values[i : i + 1]), labels[i : i + 1], classes=[0, 1]
        )
        for i in range(12)
    ]
    expected = [float((values[labels == c] ** 2).sum()) for c in (0, 1)]
    assert _merged(parts).sum_of_squares.tolist() == expected
    assert _merged(parts[::-1]).sum_of_squares.tolist() == expected


def test_a_column_that_a_batch_makes_ill_conditioned_keeps_the_scatter_of_earlier_batches() -> None:
    first = np.asarray([0, 100, 2000, 1500])[:, None]
    values = np.concatenate([first, 1000 + np.arange(40)[:, None] % 3])
    labels = np.arange(44) % 2
    expected = L2CenterClassifier(scale="pooled").fit(values, labels)
    matrix, stream = scipy.sparse.csr_array(values), L2CenterClassifier(scale="pooled")
    stream.partial_fit(matrix[:4], labels[:4], classes=[0, 1])
    assert stream._fitted.statistics.ill_conditioned is None
    stream.partial_fit(matrix[4:], labels[4:])
    assert stream._fitted.statistics.ill_conditioned.tolist() == [0]
    np.testing.assert_allclose(stream.scale_, expected.scale_, rtol=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("scale", [None, "std"])
def test_a_merge_with_itself_that_overflows_changes_nothing(scale: Any, kind: Any) -> None:
    model = L2CenterClassifier(scale=scale)
    values = np.asarray([[9e153], [1e100], [-9e153], [-1e100]])
    one = model.statistics(kind(values), [0, 0, 1, 1])
    states = [_bits(one)]

    def double() -> None:
        for _ in range(9):
            one.merge(one)
            states.append(_bits(one))

    with pytest.raises(ValueError, match="overflow float64"):
        double()
    assert _bits(one) == states[-1]


@pytest.mark.parametrize("seed", range(6))
def test_shards_of_sparse_whole_numbers_that_cancel_merge_to_the_bits_of_all_rows(
    seed: int, sparse_backend: Any
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, (40, 3)) * (rng.random((40, 3)) < 0.5)
    labels = np.arange(40) % 3
    values[:9, :] = 7  # of the first shard, where each class is constant or nearly so
    values[:9, 0] += rng.integers(0, 2, 9)
    cuts = [0, 9, int(rng.integers(10, 39)), 40]
    expected = L2CenterClassifier().fit(sparse_backend.csr(values), labels).objective_
    parts = [
        L2CenterClassifier().statistics(
            sparse_backend.csr(values[a:b]), labels[a:b], classes=range(3)
        )
        for a, b in itertools.pairwise(cuts)
    ]
    for order in itertools.permutations(parts):
        first, *rest = (part.copy() for part in order)
        for part in rest:
            first.merge(part)
        assert L2CenterClassifier().fit_statistics(first).objective_ == expected
