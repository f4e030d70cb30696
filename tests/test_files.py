"""Model files: the exact round trip, what a support alone can do, and files that are not right."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import os
import pickle
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from bits import bits
from conftest import BACKENDS, cupy
from every_model import others
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from stand_in import on_stand_in

import gpucenters
from gpucenters import (
    DeviceUnavailableError,
    GMEBClassifier,
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    load,
)
from gpucenters._models import MODELS as REGISTRY
from gpucenters._models import found
from gpucenters.arrays.backend import HOST
from gpucenters.arrays.namespace import array_namespace, is_numpy, is_sparse, to_numpy
from gpucenters.blocks.transforms import NotNegative
from gpucenters.estimators.base import Classifier
from gpucenters.files import container
from gpucenters.files.state import Packer, Unpacker
from gpucenters.statistics import Recipe

M = 9
_rng = np.random.default_rng(3)
Y = np.arange(60) % 3
X = _rng.poisson(1.0 + Y[:, None] * _rng.random(M), (60, M)).astype(float)
COVARIANCE = np.cov(X.T) + np.eye(M)
MODELS = [
    L2CenterClassifier(k=4),
    L2CenterClassifier(k=0.5, scale="pooled", priors="empirical"),
    L2CenterClassifier(k="all", scale="std"),
    L1CenterClassifier(k=4),
    L1CenterClassifier(k=4, scale="std"),
    MahalanobisCenterClassifier(k=4, shrinkage="ledoit-wolf"),
    MahalanobisCenterClassifier(k=4, covariance=COVARIANCE),
    SparseBernoulliNB(k=4, binarize=1.0),
    SparseMultinomialNB(k=4, alpha=0.5, fit_prior=False),
    SparseMultinomialNB(),
    SparsePoissonNB(k=4, scale="dispersion"),
    SparseGaussianNB(k=4, pooling=1.0),
    ShrunkenCentroidClassifier(k=4),
    ShrunkenCentroidClassifier(threshold=0.5),
]
MODELS += others(MODELS, k=4)


def name_of(model: Any) -> str:
    params = {n: v for n, v in model.get_params().items() if isinstance(v, int | float | str)}
    return "-".join([type(model).__name__, *(str(v) for v in params.values() if v is not False)])


each_model = pytest.mark.parametrize("model", MODELS, ids=name_of)
KINDS = [MODELS[1], MODELS[4], MODELS[5], *MODELS[7:9], *MODELS[10:13]]
KINDS += others(KINDS, k=4)
each_kind = pytest.mark.parametrize("model", KINDS, ids=lambda m: type(m).__name__)
STREAMS = [m for m in MODELS if hasattr(m, "partial_fit")]
each_stream = pytest.mark.parametrize("model", STREAMS, ids=name_of)
full_or_not = pytest.mark.parametrize("full", [False, True], ids=["support", "full"])
# What all models have, or those of a kind, of the selected features alone.
ATTRIBUTES = ["classes_", "support_", "ranking_", "centers_", "objective_", "n_features_in_"]
ATTRIBUTES += ["coef_", "intercept_", "class_count_", "class_log_prior_", "gap_", "upper_bound_"]
ATTRIBUTES += ["means_", "shrinkage_", "variances_", "epsilon_", "threshold_", "offset_"]
ATTRIBUTES += ["class_exposure_"]
# What only a file with everything gives.
FULL_ATTRIBUTES = ["scores_", "feature_importances_", "feature_count_", "feature_log_prob_"]
FULL_ATTRIBUTES += ["covariance_", "transformation_", "pvalues_"]
METHODS = ["predict", "decision_function", "predict_proba", "predict_log_proba", "transform"]


def saved(model: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    model.save(file, **options)
    return file.getvalue()


def loaded(content: bytes, device: str | None = None) -> Any:
    return load(io.BytesIO(content), device)


def again(model: Any, **options: Any) -> Any:
    return loaded(saved(model, **options))


def assert_equal(found: Any, expected: Any) -> None:
    """Of the same library, type and bits."""
    if found is None or expected is None:
        assert found is expected
        return
    assert array_namespace(found) is array_namespace(expected)
    found, expected = (to_numpy(x.toarray() if is_sparse(x) else x) for x in (found, expected))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def assert_same(found: Any, expected: Any, data: Any, names: list[str] = ATTRIBUTES) -> None:
    for name in names:
        assert hasattr(found, name) == hasattr(expected, name), name
        if hasattr(expected, name):
            assert_equal(getattr(found, name), getattr(expected, name))
    for name in METHODS:
        assert_equal(getattr(found, name)(data), getattr(expected, name)(data))
    assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()


# --- the round trip ----------------------------------------------------------------------------


@full_or_not
@pytest.mark.parametrize("n_classes", [2, 3])
@each_model
def test_a_model_comes_back_with_the_same_bits(
    model: Any, n_classes: int, full: bool, backend: Any
) -> None:
    fitted = clone(model).fit(backend.array(X), np.minimum(Y, n_classes - 1))
    content = saved(fitted, full=full)
    names = ATTRIBUTES + FULL_ATTRIBUTES * full
    there = loaded(content)
    if backend.name == "cupy":
        backend.check(there.decision_function(backend.array(X)))
        assert_same(there, fitted, backend.array(X), names)
    # The numbers are those of the model that is moved to the host.
    assert_same(loaded(content, "cpu"), fitted.to("cpu"), X, names)
    params, expected = there.get_params(), fitted.get_params()
    assert params.keys() == expected.keys()
    for name, value in params.items():
        np.testing.assert_array_equal(value, expected[name])


@each_kind
def test_sparse_data_and_a_path(model: Any, sparse_backend: Any, tmp_path: Path) -> None:
    data = sparse_backend.csr(X)
    fitted = clone(model).fit(data, Y)
    for full in (False, True):
        fitted.save(tmp_path / "model", full=full)
        assert_same(load(str(tmp_path / "model")), fitted, data)


def test_arrays_that_two_parts_share_are_written_once() -> None:
    wide = _rng.random((6, 4000))
    model = L2CenterClassifier().fit(wide, [0, 1] * 3)
    assert len(saved(model, full=True)) < 8 * 4000 * 4 + 4000  # gain twice, sums of two classes
    there = again(model, full=True)
    assert there._fitted.centers.total is there._fitted.statistics.total


@each_kind
def test_a_file_without_full_is_as_large_as_its_support(model: Any) -> None:
    wide = np.concatenate([X, np.zeros((60, 991))], axis=1)
    if isinstance(model, MahalanobisCenterClassifier):
        wide = wide[:, :200]  # k columns of 200 numbers, of 200
    if isinstance(model, L2CenterClassifier | L1CenterClassifier):
        wide = wide + np.arange(60)[:, None] % 2  # no constant columns
    fitted = clone(model).set_params(k=2).fit(wide, Y)
    size = len(saved(fitted))
    assert size < (20_000 if isinstance(model, MahalanobisCenterClassifier) else 4_000)
    assert size < len(saved(fitted, full=True)) / 2


@pytest.mark.parametrize("k", [3, np.int64(3), 0.4, np.float64(0.4), 1.0, "all"])
@pytest.mark.parametrize("priors", ["uniform", [0.2, 0.3, 0.5], (0.2, 0.3, 0.5), None])
def test_parameters_come_back(k: Any, priors: Any) -> None:
    priors = np.asarray([0.5, 0.3, 0.2], np.float32) if priors is None else priors
    model = L2CenterClassifier(k, priors=priors, memory_budget="1GB", verbose=False).fit(X, Y)
    there = again(model)
    assert there.k == k and isinstance(there.k, int | float | str)
    assert type(there.priors) is type(priors)
    assert_same(there, model, X)
    assert_same(there.fit(X[10:], Y[10:]), clone(model).fit(X[10:], Y[10:]), X)


def test_arrays_of_other_libraries_among_the_parameters_come_back_as_numpy() -> None:
    for priors in (cupy.asarray([0.5, 0.3, 0.2]), pd.Series([0.5, 0.3, 0.2])):
        model = L2CenterClassifier(priors=priors).fit(X, Y)
        assert_same(again(model), model, X)
        assert again(model).priors.tolist() == [0.5, 0.3, 0.2]


def test_a_parameter_that_no_file_can_hold_is_named(tmp_path: Path) -> None:
    model = L2CenterClassifier(k=2).fit(X, Y)
    for verbose, kind in ({1}, "set"), ([1j], "complex"), (np.asarray([1j]), "array of complex"):
        model.set_params(verbose=verbose)
        with pytest.raises(TypeError, match=f"cannot hold verbose: it .*{kind}"):
            model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_parameter_set_after_the_fit_is_kept_beside_that_of_the_fit() -> None:
    model = L2CenterClassifier(k=2, priors=[0.2, 0.3, 0.5]).fit(X, Y)
    model.set_params(k=5, priors="uniform")
    there = again(model)
    assert there.k == 5 and there.priors == "uniform"
    assert_same(there, model, X)


LABELS = [
    ["a", "b", "c"],
    ["", "日本語 \U0001f600", "x" * 5000],
    ["a\x00b", "\ud800", "é"],
    np.array(["no", "yes", "é"], dtype=object),
    np.array(["a", "bb", "ccc" * 9999], dtype=object),
    np.array([-1, 0, 2**62]),
    np.array([1, 2, 3], dtype=np.uint8),
    np.array([1, 2, 3], dtype=">i2"),
    np.array([0.0, 1.0, 3.0], dtype=np.float32),
    np.array(["2020-01-01", "2021-01-01", "2022-02-02"], dtype="M8[D]"),
    np.array([1, 2, 3], dtype="m8[s]"),
]


@pytest.mark.parametrize("labels", LABELS, ids=lambda x: repr(x)[:40])
def test_labels_come_back(labels: Any) -> None:
    y = np.asarray(labels)[Y]
    model = L2CenterClassifier(k=2).fit(X, y)
    there = again(model)
    assert there.classes_.dtype == model.classes_.dtype
    assert list(map(type, there.classes_.tolist())) == list(map(type, model.classes_.tolist()))
    assert there.predict(X).tolist() == model.predict(X).tolist()
    assert not there.classes_.flags.writeable
    assert there.score(X, y) == model.score(X, y)


def test_two_boolean_labels_come_back() -> None:
    model = L2CenterClassifier(k=2).fit(X, Y > 0)
    assert_same(again(model), model, X)


@full_or_not
@each_kind
def test_feature_names_and_the_output_config_come_back(model: Any, full: bool) -> None:
    frame = pd.DataFrame(X, columns=[f"ü{i}" * (1 + 50 * i) for i in range(M)])
    fitted = clone(model).fit(frame, Y).set_output(transform="pandas")
    there = again(fitted, full=full)
    assert there.feature_names_in_.tolist() == fitted.feature_names_in_.tolist()
    pd.testing.assert_frame_equal(there.transform(frame), fitted.transform(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        there.predict(frame.rename(columns={frame.columns[0]: "other"}))


# --- the support alone -------------------------------------------------------------------------


@each_model
def test_fewer_features_follow_from_the_support(model: Any, backend: Any) -> None:
    data = backend.array(X)
    fitted = clone(model).fit(data, Y)
    there = again(fitted) if backend.name == "cupy" else again(fitted.to("cpu"))
    data = data if backend.name == "cupy" else X
    expected = fitted if backend.name == "cupy" else fitted.to("cpu")
    n_kept = len(fitted.support_)
    for k in [n_kept] if isinstance(model, SparseMultinomialNB) else [n_kept, 3, 1, 1 / M]:
        few, want = there.with_k(k), expected.with_k(k)
        exact = ATTRIBUTES if k == n_kept else [n for n in ATTRIBUTES if n != "objective_"]
        assert_same(few, want, data, exact)
        assert few.objective_ == pytest.approx(want.objective_, rel=1e-12)
        assert_same(again(few), few, data)
    assert_same(pickle.loads(pickle.dumps(there)), expected, data)
    assert_same(copy.deepcopy(there), expected, data)
    assert_same(there.to("cpu"), expected.to("cpu"), X)
    assert_same(there.to("cuda").to("cpu"), expected.to("cpu"), X)


@pytest.mark.filterwarnings("ignore::gpucenters.UninformativeFeaturesWarning")
@pytest.mark.parametrize("model", [m for m in MODELS if m.k == 4], ids=name_of)
def test_what_needs_all_features_says_full(model: Any) -> None:
    fitted = clone(model).fit(X, Y)
    there = again(fitted)
    for name in FULL_ATTRIBUTES:
        if hasattr(fitted, name):
            with pytest.raises(AttributeError, match="full=True"):
                getattr(there, name)
    calls = [lambda m: m.with_k(5), lambda m: m.with_k(1.0), lambda m: m.with_k("all")]
    calls.append(lambda m: m.save(io.BytesIO(), full=True))
    if isinstance(model, SparseMultinomialNB):
        calls.append(lambda m: m.with_k(3))
    if hasattr(model, "partial_fit"):
        calls.append(lambda m: m.partial_fit(X, Y))
    if hasattr(model, "predict_joint_log_proba"):
        calls.append(lambda m: m.predict_joint_log_proba(X))
    for call in calls:
        with pytest.raises(ValueError, match="full=True"):
            call(there)
        call(fitted)
    if fitted.scale_ is None:
        assert there.scale_ is None
    else:
        with pytest.raises(AttributeError, match="full=True"):
            _ = there.scale_
    with pytest.raises(ValueError, match="k=0 is not valid"):
        there.with_k(0)
    assert_same(there, again(clone(model).fit(X, Y)), X)


def test_a_model_of_all_features_keeps_their_scores_but_no_statistics() -> None:
    model = L2CenterClassifier(scale="std").fit(X, Y)
    there = again(model)
    assert_same(there, model, X, ["scores_", "scale_"])
    assert_same(there.with_k(3), model.with_k(3), X)
    with pytest.raises(ValueError, match="full=True"):
        there.partial_fit(X, Y)


# --- streams -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array], ids=["dense", "csr"])
@each_stream
def test_a_stream_goes_on_bit_for_bit(model: Any, kind: Any) -> None:
    scaled = X * 1e3 + 7 if isinstance(model, L2CenterClassifier) else X
    first, second = kind(scaled[:31]), kind(scaled[31:])
    stream = clone(model).partial_fit(first, Y[:31], classes=[0, 1, 2])
    unsolved = again(stream, full=True)
    stream.predict(first)
    solved = again(stream, full=True)
    assert_same(solved, stream, first, ATTRIBUTES + FULL_ATTRIBUTES)
    stream.partial_fit(second, Y[31:])
    for there in (unsolved, solved):
        there.partial_fit(second, Y[31:])
        assert bits(there._fitted.statistics) == bits(stream._fitted.statistics)
        assert_same(there, stream, second, ATTRIBUTES + FULL_ATTRIBUTES)
    assert_same(again(stream), stream, second)


@each_stream
def test_a_stream_that_lacks_classes(model: Any) -> None:
    given = [0, 1, 2, 3]
    stream = clone(model).partial_fit(X[Y == 1], Y[Y == 1], classes=given)
    with pytest.raises(NotFittedError, match="needs two classes"):
        saved(stream)
    there = again(stream, full=True)
    there.partial_fit(X[Y == 0], Y[Y == 0])
    stream.partial_fit(X[Y == 0], Y[Y == 0])
    with pytest.warns(UserWarning, match="no sample of class 2, 3"):
        stream.predict(X)
    with pytest.warns(UserWarning, match="no sample of class 2, 3"):
        there.predict(X)
    assert_same(there, stream, X)
    assert_same(again(stream), stream, X)  # and no warning again
    assert_same(again(stream, full=True), stream, X)


def test_statistics_that_fit_made_and_a_stream_cannot_follow_come_back() -> None:
    y = np.arange(300) % 150  # so many classes that their scatter is kept together
    wide = _rng.random((300, 340))
    model = MahalanobisCenterClassifier(k=2, shrinkage=0.5).fit(wide, y)
    assert model._fitted.statistics.recipe.final is not None
    there = again(model, full=True)
    assert_same(there, model, wide, ["covariance_"])


def test_columns_that_are_kept_centred_come_back() -> None:
    far = scipy.sparse.csr_array(X + 1e7 * (np.arange(M) == 2))
    model = L2CenterClassifier(k=3, scale="std").partial_fit(far, Y, classes=[0, 1, 2])
    assert model._fitted.statistics.ill_conditioned is not None
    there = again(model, full=True).partial_fit(far, Y)
    assert bits(there._fitted.statistics) == bits(model.partial_fit(far, Y)._fitted.statistics)


def test_every_model_of_the_package_has_a_name_in_files() -> None:
    public = [getattr(gpucenters, name) for name in gpucenters.__all__]
    models = [x for x in public if isinstance(x, type) and issubclass(x, Classifier)]
    assert {found(model.kind) for model in REGISTRY} == {*models}


def test_only_fitted_models_of_the_package_are_saved() -> None:
    class Other(L2CenterClassifier):
        pass

    with pytest.raises(NotFittedError):
        saved(L2CenterClassifier())
    with pytest.raises(TypeError, match="Other is none of them"):
        saved(Other().fit(X, Y))


# --- devices -----------------------------------------------------------------------------------


@pytest.fixture
def without_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from gpucenters.arrays import cuda

    def hide() -> None:
        monkeypatch.setattr(cupy, "is_available", lambda: False)
        cuda.probe.cache_clear()

    yield hide
    monkeypatch.undo()
    cuda.probe.cache_clear()


@on_stand_in
@full_or_not
@each_kind
def test_a_model_of_a_device_loads_without_one(model: Any, full: bool, without_cuda: Any) -> None:
    fitted = clone(model).fit(BACKENDS["cupy"].array(X), Y)
    content, expected = saved(fitted, full=full), fitted.to("cpu")
    assert loaded(content).device is None
    assert not is_numpy(array_namespace(loaded(content).centers_))
    without_cuda()
    assert_same(loaded(content), expected, X)
    for device in ("cuda", "cuda:0"):
        with pytest.raises(DeviceUnavailableError, match="CUDA cannot be used"):
            loaded(content, device)


@on_stand_in
def test_a_model_whose_device_is_missing_predicts_on_the_host(without_cuda: Any) -> None:
    model = L2CenterClassifier(k=4, device="cuda").fit(X, Y)
    content, expected = saved(model, full=True), model.predict_proba(X)
    without_cuda()
    there = loaded(content)
    assert_equal(there.predict_proba(X), expected)
    there.partial_fit(X, Y)
    with pytest.raises(DeviceUnavailableError):
        there.fit(X, Y)


def test_a_model_loads_where_it_is_asked_for() -> None:
    backend = BACKENDS["cupy"]
    model = L2CenterClassifier(k=4).fit(X, Y)
    there = loaded(saved(model), "cuda")
    assert there.device == "cuda"
    there.device = None
    assert_same(there, model.to("cuda").set_params(device=None), backend.array(X))
    with pytest.raises(DeviceUnavailableError, match="does not exist"):
        loaded(saved(model), "cuda:99")
    with pytest.raises(ValueError, match="unknown device"):
        loaded(saved(model), "gpu")


# --- files that are not right ------------------------------------------------------------------

SMALL = saved(L2CenterClassifier(k=2).fit(X[:, :3], Y))


def test_every_truncation_is_found() -> None:
    for length in range(len(SMALL)):
        with pytest.raises(ValueError, match="is truncated"):
            loaded(SMALL[:length])


def test_every_flipped_byte_is_found() -> None:
    rng = np.random.default_rng(0)
    places = [*range(60), *rng.integers(0, len(SMALL), 940)]
    for place, change in zip(places, rng.integers(1, 256, len(places)), strict=True):
        content = bytearray(SMALL)
        content[place] ^= change
        with pytest.raises(ValueError, match=r"was altered|is truncated|is not a model file"):
            loaded(bytes(content))


def test_bytes_that_are_added_or_swapped_are_found() -> None:
    for content in (SMALL + b"\0", SMALL[:60] + SMALL[61:] + SMALL[60:61], SMALL + SMALL):
        with pytest.raises(ValueError, match="was altered"):
            loaded(content)


def resealed(content: bytes) -> bytes:
    """Content with the length and checksum that belong to it, as anybody can write them."""
    front = content[:12] + len(content).to_bytes(8, "little")
    return front + hashlib.sha256(front + content[52:]).digest() + content[52:]


def test_a_newer_version_is_named() -> None:
    assert resealed(SMALL) == SMALL
    newer = resealed(SMALL[:8] + (2).to_bytes(4, "little") + SMALL[12:])
    with pytest.raises(ValueError, match=r"version 2 of the format.*newer gpucenters is needed"):
        loaded(newer)


def test_the_versions_that_wrote_a_file_are_in_its_errors() -> None:
    newer = {"gpucenters": "9.1", "scikit-learn": "2.0"}
    content = _file({"arrays": 0, "versions": newer, "model": {"class": "NewerClassifier"}})
    why = r"not know the model 'NewerClassifier'\. \(Written with gpucenters 9.1, scikit-learn 2.0"
    with pytest.raises(ValueError, match=why):
        loaded(content)
    content = _file({"arrays": 0, "versions": {"gpucenters": "9.1"}, "model": {}, "other": {}})
    with pytest.raises(ValueError, match=r"sections \['other'\].*gpucenters 9.1"):
        loaded(content)
    for versions in (None, [], "9.1", 9):
        with pytest.raises(ValueError, match="does not hold a model"):
            loaded(_file({"arrays": 0, "versions": versions}))
    assert f'"gpucenters": "{gpucenters.__version__}"'.encode() in SMALL
    assert f'"numpy": "{np.__version__}"'.encode() in SMALL


FOREIGN = [b"PK\x03\x04 and more", pickle.dumps([1] * 99), b"\x93NUMPY\x01\0", b"x", b"text " * 99]


@pytest.mark.parametrize("content", FOREIGN, ids=lambda b: repr(b[:4]))
def test_other_files_are_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="foreign' is not a model file of gpucenters"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")


@full_or_not
@pytest.mark.parametrize("model", [*KINDS, GMEBClassifier()], ids=lambda m: type(m).__name__)
def test_a_wrong_file_with_a_right_checksum_is_an_error_or_a_model(model: Any, full: bool) -> None:
    content = saved(clone(model).fit(X, Y), full=full)
    rng = np.random.default_rng(1)
    for place in [*range(52, 200), *rng.integers(52, len(content), 200)]:
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        with contextlib.suppress(ValueError):
            loaded(resealed(bytes(changed)))


def _npy(array: np.ndarray, **changes: Any) -> bytes:
    """An array in the .npy format whose header says something else."""
    header = np.lib.format.header_data_from_array_1_0(array) | changes
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


def _file(document: Any, *arrays: bytes) -> bytes:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    parts = [_npy(np.frombuffer(text, np.uint8)), *arrays]
    return resealed(SMALL[:12] + bytes(40) + b"".join(parts))


ARRAY = np.zeros(4)
WRONG = {
    "large": _file({"arrays": 1}, _npy(ARRAY, shape=(2**40,))),
    "overflowing": _file({"arrays": 1}, _npy(ARRAY, shape=(2**40, 2**40))),
    "negative": _file({"arrays": 1}, _npy(ARRAY, shape=(-1,))),
    "two negative": _file({"arrays": 1}, _npy(ARRAY, shape=(-2, -2))),
    "nothing of much": _file({"arrays": 1}, _npy(ARRAY, shape=(2**62, 0))),
    "wide type": _file({"arrays": 1}, _npy(ARRAY, descr="<U500000000")),
    "no width": _file({"arrays": 1}, _npy(ARRAY, descr="<U0", shape=(2**40,))),
    "objects": _file({"arrays": 1}, _npy(ARRAY, descr="|O")),
    "fields": _file({"arrays": 1}, _npy(ARRAY, descr=[("a", "<f8")])),
    "many arrays": _file({"arrays": 2**62}),
    "no arrays": _file({}),
    "more bytes": _file({"arrays": 0}, b"more"),
    "no JSON": _file(b"{"),
    "no object": _file(b"[]"),
    "deep": _file(b"[" * 10**6),
    "wide number": _file(b"1" * 10**5),
    "no model": _file({"arrays": 0}),
    "unknown section": _file({"arrays": 0, "model": {}, "other": {}}),
    "unknown model": _file({"arrays": 0, "model": {"class": "os.system"}}),
    "a key twice": _file(b'{"arrays": 0, "model": {"class": "A", "class": "B"}}'),
    "nothing in it": _file({"arrays": 0, "model": {"class": "L2CenterClassifier"}}),
}


WHY = {
    "large": "more than there are",
    "negative": "shape",
    "no width": "<U0",
    "objects": "object",
    "more bytes": "after the last array",
    "a key twice": "is there twice",
    "unknown section": "sections .'other'",
    "unknown model": "does not know the model 'os.system'",
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_made_file_says_allocates_nothing(case: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(WRONG[case])
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"does not hold a model: .*{WHY.get(case, '')}"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


def _changed(**changes: Any) -> bytes:
    """SMALL with other values of some keys of its document."""
    text, arrays = container.read(io.BytesIO(SMALL), lambda document, arrays: (document, arrays))

    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(v) for v in value]
        if not isinstance(value, dict):
            return value
        return {k: changes[k] if k in changes else change(v) for k, v in value.items()}

    file = io.BytesIO()
    container.write(file, change(text), arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    "changes",
    [
        {"n_features_in_": 2},
        {"n_features_in_": 2**40},
        {"n_features_in_": 10**12, "n_features": 10**12},
        {"n_features": 4},
        {"support": {"device": 0}},
        {"gain": {"device": 0}},
        {"gain": {"device": -1}},
        {"gain": {"array": 99}},
        {"class_weight": {"tuple": [1.0]}},
        {"met": {"tuple": [0, 7]}},
        {"selection": None, "centers": None},
        {"kept": {"Recipe": {"kind": "class sums"}}},
        {"centers": {"dict": {}}},
        {"params": {"unknown": 1}},
        {"device": "cuda:0; rm"},
        {"device": 5},
        {"k": {"array": 0}, "params": {"dict": {}}},
    ],
    ids=str,
)
def test_parts_that_do_not_fit_together_are_found(changes: dict[str, Any]) -> None:
    assert_same(loaded(_changed()), loaded(SMALL), X[:, :3])
    with pytest.raises(ValueError, match="does not hold a model"):
        loaded(_changed(**changes))


# --- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["write_array", "fsync", "replace"])
def test_an_interrupt_leaves_the_file_as_it_was(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    path.write_bytes(SMALL)
    path.chmod(0o600)

    def interrupt(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np.lib.format if step == "write_array" else os, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        L2CenterClassifier().fit(X, Y).save(path)
    assert path.read_bytes() == SMALL
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    L2CenterClassifier().fit(X, Y).save(path)
    assert load(path).k == "all"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link_and_only_regular_files_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = L2CenterClassifier(k=2).fit(X, Y)
    (tmp_path / "link").symlink_to(tmp_path / "model")
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "model").is_file()
    assert_same(load(tmp_path / "link"), model, X)
    with pytest.raises(ValueError, match="is not a regular file"):
        model.save(os.devnull)
    with pytest.raises(ValueError, match="is not a regular file"):
        model.save(tmp_path)
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "no folder" / "model")
    monkeypatch.chdir(tmp_path)
    model.save("here")
    assert_same(load("here"), model, X)
    with open("open", "wb") as file:
        model.save(file)
    with open("open", "rb") as file:
        assert_same(load(file), model, X)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["here", "link", "model", "open"]


def test_a_saved_model_does_not_change() -> None:
    model = L2CenterClassifier(k=2).fit(X, Y)
    twin = copy.deepcopy(model)
    for full in (False, True):
        saved(model, full=full)
    assert not model._fitted.shared
    assert_same(model.partial_fit(X, Y), twin.partial_fit(X, Y), X, ATTRIBUTES + FULL_ATTRIBUTES)


def test_a_field_keeps_its_first_name_in_files() -> None:
    recipe = Recipe("class sums", NotNegative("a model"))
    packed = Packer().pack(recipe, "recipe")
    assert packed["Recipe"]["reader"] == {"NotNegative": {"caller": "a model"}}
    assert Unpacker([], HOST).unpack(packed) == recipe
