"""Files of text models: the exact round trip, the words that stay, and files that are wrong."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import BACKENDS, cupy
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import LinearSVC
from stand_in import on_stand_in
from test_files import ATTRIBUTES, FULL_ATTRIBUTES, assert_equal, resealed

import gpucenters.text
from gpucenters import (
    DeviceUnavailableError,
    L1CenterClassifier,
    L2CenterClassifier,
    LogRatioScaler,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
    load,
    save,
)
from gpucenters.files import container

_rng = np.random.default_rng(11)
_WORDS = np.array([*"abcdefghij", "ñu", "日本", "\U0001f600ok", "x" * 40, "don't", "a\tb"]) + "q"
Y = np.array(["no", "yes", "né"])[np.arange(60) % 3]
TEXTS = [
    " ".join(_rng.choice(_WORDS, 9, p=_rng.dirichlet(0.5 + (np.arange(16) % 3 == i % 3))))
    for i in range(60)
]
NEW = [*TEXTS[:12], "", "nothing known", "aq " * 50, "bq cq 日本q bq cq"]
VECTORIZERS = {
    "count": CountVectorizer(),
    "binary bigrams": CountVectorizer(binary=True, ngram_range=(1, 2), min_df=2, dtype=np.int32),
    "characters": CountVectorizer(analyzer="char_wb", ngram_range=(2, 3), max_features=80),
    "given words": CountVectorizer(vocabulary=[*_WORDS, "never"], token_pattern=r"\S+"),
    "given numbers": CountVectorizer(vocabulary={"bq": 1, "aq": 0, "cq": 3, "ñuq": 2}),
    "stop words": CountVectorizer(stop_words=["aq", "bq"], strip_accents="unicode"),
    "tf-idf": TfidfVectorizer(stop_words="english"),
    "tf": TfidfVectorizer(use_idf=False, norm="l1"),
    "tf-idf, no norm": TfidfVectorizer(norm=None, ngram_range=(1, 2)),
    "tf, no norm": TfidfVectorizer(norm=None, use_idf=False, sublinear_tf=True),
    "tf-idf, float32": TfidfVectorizer(norm=None, dtype=np.float32, smooth_idf=False),
    "own count": gpucenters.text.CountVectorizer(ngram_range=(1, 2)),
    "own tf-idf": gpucenters.text.TfidfVectorizer(),
    "hashing": HashingVectorizer(n_features=64, alternate_sign=False, norm=None),
}
CUT = [name for name in VECTORIZERS if name not in ("tf-idf", "own tf-idf", "tf", "hashing")]
MODELS = [
    L2CenterClassifier(k=3, scale="std"),
    L2CenterClassifier(k=0.5),
    L1CenterClassifier(k=3),
    MahalanobisCenterClassifier(k=3, shrinkage=0.5),
    SparseBernoulliNB(k=3),
    SparseMultinomialNB(k=3),
    SparseMultinomialNB(),
]
each_vectorizer = pytest.mark.parametrize("name", VECTORIZERS)
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{type(m).__name__}-{m.k}")
full_or_not = pytest.mark.parametrize("full", [False, True], ids=["support", "full"])
pytestmark = pytest.mark.filterwarnings("ignore::gpucenters.UninformativeFeaturesWarning")


def fit(name: str, model: Any) -> Pipeline:
    steps = [("words of", clone(VECTORIZERS[name])), ("m", clone(model))]
    return Pipeline(steps).fit(TEXTS, Y)


def saved(model: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    save(model, file, **options)
    return file.getvalue()


def again(model: Any, device: str | None = None, **options: Any) -> Any:
    return load(io.BytesIO(saved(model, **options)), device)


def assert_predicts_as(found: Pipeline, expected: Pipeline) -> None:
    for name in ("decision_function", "predict", "transform"):
        assert_equal(getattr(found, name)(NEW), getattr(expected, name)(NEW))


# --- the round trip ----------------------------------------------------------------------------


@each_model
@each_vectorizer
def test_a_pipeline_comes_back_with_the_same_bits(name: str, model: Any) -> None:
    fitted = fit(name, model)
    for full in (False, True):
        there = again(fitted, full=full)
        assert_predicts_as(there, fitted)
        assert [n for n, _ in there.steps] == ["words of", "m"]
        for attribute in set(ATTRIBUTES) - {"support_", "ranking_", "coef_", "n_features_in_"}:
            assert hasattr(there[-1], attribute) == hasattr(fitted[-1], attribute)
            if hasattr(fitted[-1], attribute):
                assert_equal(getattr(there[-1], attribute), getattr(fitted[-1], attribute))
        assert_equal(pickle.loads(pickle.dumps(there)).predict(NEW), fitted.predict(NEW))


@each_model
@pytest.mark.parametrize("name", CUT)
def test_counts_keep_the_words_of_the_support_alone(name: str, model: Any) -> None:
    fitted = fit(name, model)
    there, k = again(fitted), len(fitted[-1].support_)
    words = fitted[0].get_feature_names_out()
    if isinstance(model, MahalanobisCenterClassifier) or k == len(words):
        assert there[0].get_feature_names_out().tolist() == words.tolist()
        return
    assert there[0].get_feature_names_out().tolist() == words[fitted[-1].support_].tolist()
    assert there[-1].support_.tolist() == list(range(k)) and there[-1].n_features_in_ == k
    assert there[-1].k == k
    kept = there[0].get_feature_names_out()
    assert kept[there[-1].ranking_].tolist() == words[fitted[-1].ranking_].tolist()
    assert there[:-1].transform(NEW).shape == (len(NEW), k)
    assert there[0].fixed_vocabulary_ and there[0].vocabulary == kept.tolist()
    if isinstance(model, SparseMultinomialNB):
        with pytest.raises(ValueError, match="full=True"):
            there[-1].with_k(1)
    else:
        one = make_pipeline(there[0], there[-1].with_k(1))
        assert_predicts_as(one, make_pipeline(fitted[0], fitted[-1].with_k(1)))
        assert_predicts_as(again(one), one)
    with pytest.raises(ValueError, match="full=True"):
        saved(there, full=True)
    refitted = clone(there).fit(TEXTS, Y)
    assert refitted[:-1].get_feature_names_out().tolist() == kept.tolist()


@pytest.mark.parametrize("name", ["tf-idf", "tf", "hashing"])
def test_rows_with_a_norm_and_hashes_keep_all_columns(name: str) -> None:
    fitted = fit(name, SparseBernoulliNB(k=3))
    there = again(fitted)
    assert there[-1].n_features_in_ == fitted[-1].n_features_in_
    assert there[-1].support_.tolist() == fitted[-1].support_.tolist()
    if name != "hashing":
        names = [p[:-1].get_feature_names_out().tolist() for p in (there, fitted)]
        assert names[0] == names[1]


@each_vectorizer
def test_with_full_everything_goes_on(name: str) -> None:
    fitted = fit(name, SparseBernoulliNB(k=3))
    there = again(fitted, full=True)
    for attribute in ATTRIBUTES + FULL_ATTRIBUTES:
        if hasattr(fitted[-1], attribute):
            assert_equal(getattr(there[-1], attribute), getattr(fitted[-1], attribute))
    assert_same_options(there[0], fitted[0])
    for pipeline in (there, fitted):
        pipeline[-1].partial_fit(pipeline[0].transform(NEW), np.resize(Y, len(NEW)))
    assert_predicts_as(there, fitted)
    if name != "hashing":  # which sees each text alone
        assert vars(there[0]).keys() - {"_stop_words_id"} <= vars(fitted[0]).keys()
        assert there[0].vocabulary_ == fitted[0].vocabulary_
        assert there[0].fixed_vocabulary_ == fitted[0].fixed_vocabulary_
    half = slice(0, 60, 2)
    for pipeline in (there, fitted):
        pipeline.fit(TEXTS[half], Y[half])
    assert_predicts_as(there, fitted)


SECOND = [
    (LogisticRegression(C=0.5, class_weight={"no": 2.0}),),
    (LinearSVC(fit_intercept=False, random_state=0),),
    (StandardScaler(with_mean=False), LogisticRegression(fit_intercept=False, solver="newton-cg")),
    (MaxAbsScaler(), LinearSVC(C=2.0, random_state=0)),
    (LogRatioScaler(alpha=0.5), LogisticRegression()),
]


@pytest.mark.parametrize("second", SECOND, ids=str)
@pytest.mark.parametrize(("name", "classes"), [("own count", 2), ("tf-idf", 3), (None, 2)])
def test_a_second_stage_comes_back_with_the_same_bits(
    name: str | None, second: tuple[Any, ...], classes: int
) -> None:
    y = np.where(Y == "né", "no", Y) if classes == 2 else Y
    vectorizer = [] if name is None else [clone(VECTORIZERS[name])]
    texts = TEXTS if vectorizer else VECTORIZERS["count"].fit_transform(TEXTS)
    fitted = make_pipeline(*vectorizer, L2CenterClassifier(k=4), *map(clone, second)).fit(texts, y)
    for full in (False, True):
        there = again(fitted, full=full)
        assert there.predict(texts).tolist() == fitted.predict(texts).tolist()
        assert_equal(there.decision_function(texts), fitted.decision_function(texts))
        if hasattr(fitted, "predict_proba"):
            assert_equal(there.predict_proba(texts), fitted.predict_proba(texts))
        assert [*there.named_steps] == [*fitted.named_steps]
        for found, expected in zip(
            there.steps[-len(second) :], fitted.steps[-len(second) :], strict=True
        ):
            assert str(found) == str(expected)
            assert vars(found[1]).keys() == vars(expected[1]).keys()
        assert there.fit(texts, y).predict(texts).tolist() == fitted.predict(texts).tolist()


def test_names_and_the_output_config_of_a_second_stage_come_back() -> None:
    model = make_pipeline(L2CenterClassifier(k=2), StandardScaler(), LogisticRegression())
    frame = pd.DataFrame(np.eye(6)[:, :3], columns=["a", "b", "c"])
    fitted = model.set_output(transform="pandas").fit(frame, [0, 1] * 3)
    there = again(fitted)
    assert there[-1].feature_names_in_.tolist() == fitted[-1].feature_names_in_.tolist()
    pd.testing.assert_frame_equal(there[:-1].transform(frame), fitted[:-1].transform(frame))


def assert_same_options(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    for name, value in expected.get_params().items():
        if name == "vocabulary" and value is not None:
            value = expected.get_feature_names_out().tolist()
        assert getattr(found, name) == value, name


def test_words_and_names_of_any_characters_come_back() -> None:
    words = ["", "a\x00", "\ud800", "new\nline", "日本語 \U0001f600", "w" * 100_000]
    vectorizer = CountVectorizer(vocabulary=words, token_pattern=r"(?s)\S+")
    X = np.eye(6)
    for full in (False, True):
        model = make_pipeline(vectorizer, SparseBernoulliNB().fit(X, [0, 1] * 3))
        content = saved(model, full=full)
        assert len(content) < 110_000
        assert load(io.BytesIO(content))[:-1].get_feature_names_out().tolist() == words


# --- what no file holds ------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["tokenizer", "preprocessor", "analyzer"])
@pytest.mark.parametrize("kind", [CountVectorizer, TfidfVectorizer, HashingVectorizer])
def test_a_function_is_named(kind: Any, option: str) -> None:
    vectorizer = kind(**{option: str.split, "token_pattern": None, "lowercase": False})
    if option == "preprocessor":
        vectorizer.set_params(preprocessor=str.lower, token_pattern=r"\w+")
    model = make_pipeline(vectorizer, L2CenterClassifier(k=2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(TEXTS, Y)
    with pytest.raises(TypeError, match=f"cannot hold {option} of the {kind.__name__}"):
        saved(model)


def test_other_pipelines_are_named() -> None:
    class Own(CountVectorizer):
        pass

    model = L2CenterClassifier(k=2)
    cases = [
        (make_pipeline(CountVectorizer(), TfidfTransformer(), model), "'tfidftransformer' .Tfidf"),
        (make_pipeline(Own(), model), r"the steps 'own' \(Own\)"),
        (make_pipeline(CountVectorizer(), "passthrough", model), "'passthrough' .str"),
        (make_pipeline(CountVectorizer(), LogisticRegression()), "'logisticregression'"),
        (make_pipeline(CountVectorizer()), "'countvectorizer'"),
        (make_pipeline(CountVectorizer(), CountVectorizer(), model), "'countvectorizer-2'"),
        (make_pipeline(CountVectorizer(), model, MultinomialNB()), r"'multinomialnb' \(Multi"),
    ]
    for pipeline, what in cases:
        with pytest.raises(TypeError, match=f"LogisticRegression.*this one has .*{what}"):
            saved(pipeline)

    class Other(L2CenterClassifier):
        pass

    with pytest.raises(TypeError, match="Other is none of them"):
        saved(make_pipeline(CountVectorizer(), Other()).fit(TEXTS, Y))


def test_an_option_of_a_second_stage_that_no_file_can_hold_is_named() -> None:
    second = LogisticRegression(random_state=np.random.RandomState(0))
    fitted = make_pipeline(CountVectorizer(), L2CenterClassifier(k=2), second).fit(TEXTS, Y)
    with pytest.raises(TypeError, match="cannot hold random_state of the LogisticRegression"):
        saved(fitted)


def test_parts_that_do_not_fit_are_refused() -> None:
    fitted = fit("count", L2CenterClassifier(k=2))
    with pytest.raises(NotFittedError):
        saved(make_pipeline(CountVectorizer(), L2CenterClassifier()))
    with pytest.raises(NotFittedError):
        saved(make_pipeline(CountVectorizer(), fitted[-1]))
    with pytest.raises(NotFittedError):
        saved(make_pipeline(fitted[0], fitted[-1], LogisticRegression()))
    for vectorizer in (HashingVectorizer(), CountVectorizer(vocabulary=["aq"])):
        with pytest.raises(ValueError, match="columns, and the model was fitted to"):
            saved(make_pipeline(vectorizer, fitted[-1]))


# --- devices -----------------------------------------------------------------------------------


@on_stand_in
@pytest.mark.parametrize("name", ["count", "tf-idf", "hashing"])
def test_a_text_model_of_a_device_loads_without_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpucenters.arrays import cuda

    fitted = fit(name, L2CenterClassifier(k=3, device="cuda"))
    expected = fitted.decision_function(NEW)
    content = saved(fitted)
    assert load(io.BytesIO(content))[-1].centers_.device == BACKENDS["cupy"].device
    with monkeypatch.context() as hidden:
        hidden.setattr(cupy, "is_available", lambda: False)
        cuda.probe.cache_clear()
        there = load(io.BytesIO(content))
        assert_equal(there.decision_function(NEW), expected)
        with pytest.raises(DeviceUnavailableError):
            load(io.BytesIO(content), "cuda")
    cuda.probe.cache_clear()
    moved = load(io.BytesIO(content), "cpu")
    assert moved[-1].device == "cpu"
    assert_equal(moved.predict(NEW), fitted.predict(NEW))


# --- files that are not right ------------------------------------------------------------------

_SMALL = Pipeline([("v", TfidfVectorizer(norm=None)), ("m", SparseBernoulliNB(k=2))])
SMALL = saved(_SMALL.fit(["aa bb", "aa cc", "bb dd"], [0, 1, 1]))


def test_every_truncation_and_every_flipped_byte_is_found() -> None:
    rng = np.random.default_rng(0)
    for length in range(len(SMALL)):
        with pytest.raises(ValueError, match="is truncated"):
            load(io.BytesIO(SMALL[:length]))
    places = rng.integers(0, len(SMALL), 1000)
    for place, change in zip(places, rng.integers(1, 256, 1000), strict=True):
        content = bytearray(SMALL)
        content[place] ^= change
        with pytest.raises(ValueError, match=r"was altered|is truncated|is not a model file"):
            load(io.BytesIO(bytes(content)))


@pytest.mark.parametrize("name", ["tf-idf, no norm", "hashing"])
def test_a_wrong_file_with_a_right_checksum_is_an_error_or_a_model(name: str) -> None:
    content, rng = saved(fit(name, SparseBernoulliNB(k=3))), np.random.default_rng(1)
    for place in rng.integers(52, len(content), 400):
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        with contextlib.suppress(ValueError):
            load(io.BytesIO(resealed(bytes(changed))))


def _changed(content: bytes = SMALL, step: int = 0, **changes: Any) -> bytes:
    """A file with other values of some keys of the section of a step, or of the document."""
    text, arrays = container.read(io.BytesIO(content), lambda document, arrays: (document, arrays))
    text = copy.deepcopy(text)
    section = text["steps"][step][1]
    for key, value in changes.items():
        places = (section["params"], section.get("attributes", {}), text)
        next((place for place in places if key in place), section)[key] = value
    file = io.BytesIO()
    container.write(file, text, [*arrays, np.array([2, 1]), np.array([2, 4, 6]), np.ones(2, "U1")])
    return file.getvalue()


@pytest.mark.parametrize(
    "changes",
    [
        {"class": "os.system"},
        {"class": "CountVectorizer"},
        {"class": "HashingVectorizer"},
        {"dtype": "|O"},
        {"dtype": "none"},
        {"use_idf": False},
        {"use_idf": 1},
        {"idf": None},
        {"idf": {"array": -1}},
        {"idf": {"array": -2}},
        {"words": None},
        {"words": {"tuple": [{"array": 0}, {"array": -3}]}},
        {"words": {"tuple": [{"array": -1}, {"array": -3}]}},
        {"words": {"objects": ["aa", "aa"]}},
        {"steps": []},
        {"steps": ["v"]},
        {"steps": [["m", None], ["m", None]]},
        {"steps": [[1, None]]},
        {"params": {"unknown": 1}},
    ],
    ids=str,
)
def test_parts_of_a_vectorizer_that_do_not_fit_are_found(changes: dict[str, Any]) -> None:
    assert_equal(load(io.BytesIO(_changed())).predict(["aa bb"]), _SMALL.predict(["aa bb"]))
    with pytest.raises(ValueError, match="does not hold a model"):
        load(io.BytesIO(_changed(**changes)))


@pytest.mark.parametrize(
    "changes",
    [
        {"input": "filename"},
        {"input": "file"},
        {"analyzer": "sentences"},
        {"token_pattern": "(a"},
        {"ngram_range": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [CountVectorizer, TfidfVectorizer, HashingVectorizer])
def test_options_of_a_vectorizer_that_are_not_right_are_found(
    kind: Any, changes: dict[str, Any]
) -> None:
    options = {"n_features": 8} if kind is HashingVectorizer else {}
    fitted = make_pipeline(kind(**options), L2CenterClassifier(k=2)).fit(TEXTS, Y)
    with pytest.raises(ValueError, match=r"does not hold a model.*Written with gpucenters "):
        load(io.BytesIO(_changed(saved(fitted), **changes)))


@pytest.mark.parametrize("kind", [CountVectorizer, TfidfVectorizer, HashingVectorizer])
def test_a_vectorizer_that_opens_files_is_not_saved(kind: Any, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("aa bb")
    paths = [str(tmp_path / "text")] * 2
    fitted = make_pipeline(kind(input="filename"), L2CenterClassifier(k=1)).fit(paths, [0, 1])
    with pytest.raises(TypeError, match="input='content', not 'filename'"):
        saved(fitted)


PLAIN_PATTERNS = [
    r"(?u)\b\w\w+\b",
    r"\S+",
    r"[^]a]{2,}",
    r"\w+|[^\w\s]",
    r"(?i)[a-z']+|\$\d{2}",
    "",
]
PLAIN_PATTERNS += [r"\w{3}", r"a*?", r"\w++", "[]" * 30]
OTHER_PATTERNS = [r"(a+)+$", r"(a|a)*b", r"\w*\w*x", r"a?a?aa", r".*x", r"\w+(?:'\w+)?", r"(a)\1"]
OTHER_PATTERNS += [r"(?=a+)b", r"(?x)a +", "|".join(["a+"] * 12), "[]a]" * 99 + "()"]


@pytest.mark.parametrize("pattern", PLAIN_PATTERNS)
def test_a_token_pattern_that_cannot_backtrack_loads_in_silence(pattern: str) -> None:
    assert again_with(pattern).token_pattern == pattern


@pytest.mark.parametrize("pattern", OTHER_PATTERNS)
def test_a_token_pattern_that_may_backtrack_is_named(pattern: str) -> None:
    with pytest.warns(UserWarning, match=re.escape(f"the token pattern {pattern!r} of the model")):
        assert again_with(pattern).token_pattern == pattern


def again_with(pattern: str) -> Any:
    """The vectorizer of SMALL with another token pattern, loaded."""
    return load(io.BytesIO(_changed(token_pattern=pattern)))[0]


_TWO = make_pipeline(CountVectorizer(), L2CenterClassifier(k=2), StandardScaler(with_mean=False))
_TWO.steps.append(("second", LogisticRegression()))
TWO = saved(_TWO.fit(["aa bb", "aa cc", "bb dd"], [0, 1, 1]))


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        (3, {"class": "os.system"}),
        (3, {"class": "CountVectorizer"}),
        (3, {"params": {"C": -1.0}}),
        (3, {"params": {"unknown": 1}}),
        (3, {"n_features_in_": 3}),
        (3, {"classes_": {"array": -1}, "coef_": {"array": -2}}),
        (3, {"classes_": {"tuple": [0]}}),
        (3, {"coef_": {"array": -2}}),
        (3, {"intercept_": {"array": -2}}),
        (3, {"attributes": {}}),
        (2, {"scale_": {"array": -2}}),
        (2, {"class": "L2CenterClassifier"}),
        (2, {"class": "LogRatioScaler"}),
        (2, {"class": "TfidfVectorizer"}),
    ],
    ids=str,
)
def test_parts_of_a_second_stage_that_do_not_fit_are_found(
    step: int, changes: dict[str, Any]
) -> None:
    assert_equal(load(io.BytesIO(_changed(TWO))).predict(["aa bb"]), _TWO.predict(["aa bb"]))
    with pytest.raises(ValueError, match="does not hold a model"):
        load(io.BytesIO(_changed(TWO, step, **changes)))
