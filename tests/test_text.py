"""The vectorizers of `gpucenters.text` against scikit-learn's."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.feature_extraction.text as sklearn_text
from sklearn.base import clone

from gpucenters import text
from gpucenters.readers import read

# Letters, digits and marks that case, normal forms and other engines of patterns disagree on.
ODD = [*"İΣςßﬁ²٣Ⅷªⅷ_१K", *"\u017f\u1e9eé", "\u0301", "\u200d"]
ODD += ["\ud800", "\udfff", "\0", "\u2028", "\x1c"]
PATTERNS = [
    *(r"(?u)\b\w+\b", r"\w\w\w+", r"\b\w{2,}\b", r"\w+"),
    *(r"(\w+)", r"[a-z]+", r"\S+", r"\w{0,}"),
]
NO_TEXTS = [None, float("nan"), np.nan, 3, b"caf\xc3\xa9 bytes", b"\xff", np.str_("of numpy")]


def random_text(rng: np.random.Generator) -> str:
    """Words of a few letters, and characters of all planes."""
    planes = [(97, 123), (32, 128), (0, 0x300), (0, 0x3000), (0, 0x20000), (0, 0x110000)]
    found = []
    for kind in rng.integers(0, 10, rng.integers(0, 30)):
        if kind < 2:
            found.append(" ")
        elif kind < 4:
            found.append(str(rng.choice(ODD)) if kind == 3 else "a")
        else:
            found.append(chr(rng.integers(*planes[kind - 4])))
    return "".join(found)


def random_problem(rng: np.random.Generator) -> tuple[list[Any], dict[str, Any]]:
    """Texts and parameters."""
    texts: list[Any] = [random_text(rng) for _ in range(rng.integers(1, 25))]
    if rng.random() < 0.05:
        texts[rng.integers(len(texts))] = NO_TEXTS[rng.integers(len(NO_TEXTS))]
    fewest = int(rng.integers(1, 4))
    options = {
        "ngram_range": (fewest, fewest + int(rng.integers(0, 3))),
        "token_pattern": PATTERNS[rng.integers(len(PATTERNS))],
        "lowercase": False,
        "stop_words": ["ab", "a", "b", "aa"],
        "min_df": 2,
        "max_df": 0.5,
        "max_features": 5,
        "binary": True,
        "vocabulary": ["aa", "a a", "ab", "x"],
        "strip_accents": "unicode",
        "analyzer": ["char", "char_wb"][rng.integers(2)],
        "dtype": [np.float32, np.int8, np.uint16][rng.integers(3)],
    }
    return texts, {name: value for name, value in options.items() if rng.random() < 0.2}


def outcome(kind: Any, options: dict[str, Any], texts: Any) -> Any:
    """What a vectorizer gives for texts, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        vectorizer = kind(**options)
        try:
            X, vocabulary = vectorizer.fit_transform(iter(texts)), vectorizer.vocabulary_
            return X, vectorizer.transform(texts[::-1]), [*vocabulary], [*vocabulary.values()]
        except (AttributeError, TypeError, ValueError) as error:
            return type(error), str(error)


def assert_same(name: str, options: dict[str, Any], texts: list[Any]) -> bool:
    """Assert that our vectorizer gives what scikit-learn's gives; whether that is no error."""
    expected = outcome(getattr(sklearn_text, name), options, texts)
    found = outcome(getattr(text, name), options, texts)
    if isinstance(expected[0], type):
        assert found == expected, options
        return False
    assert sorted(zip(*found[2:], strict=True)) == sorted(zip(*expected[2:], strict=True))
    assert {*map(type, found[3])} == {*map(type, expected[3])}
    for one, other in zip(found[:2], expected[:2], strict=True):
        assert type(one) is type(other) and one.shape == other.shape and one.dtype == other.dtype
        if getattr(text, name)(**options).counts_by_arrow():
            assert one.has_sorted_indices
        one, other = one.copy(), other.copy()
        for X in (one, other):
            X.has_sorted_indices = False
            X.sort_indices()
        for part in ("indptr", "indices"):
            assert getattr(one, part).dtype == getattr(other, part).dtype
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
        if name == "CountVectorizer":
            np.testing.assert_array_equal(one.data, other.data)
        else:  # its norms are sums in the order of the entries
            np.testing.assert_allclose(
                one.data, other.data, rtol=1e-5 if one.dtype == np.float32 else 1e-12
            )
    return True


@pytest.fixture(params=[200, 2**22], ids=["parts", "whole"])
def _parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_PART", request.param)


@pytest.mark.usefixtures("_parts")
@pytest.mark.parametrize("name", ["CountVectorizer", "TfidfVectorizer"])
def test_random_texts_of_all_planes_have_the_counts_of_scikit_learn(name: str) -> None:
    rng = np.random.default_rng(0)
    fitted = [assert_same(name, *random_problem(rng)[::-1]) for _ in range(150)]
    assert 50 < sum(fitted) < len(fitted)


@pytest.mark.parametrize("set_name", ["mpqa", "r8.test", "trec.train", "semeval_tweets.val"])
def test_real_texts_have_the_counts_of_scikit_learn(set_name: str, data_dir: Path) -> None:
    texts = list(read(data_dir / f"{set_name}.tsv.gz").X)[:2000]
    assert assert_same("CountVectorizer", {"ngram_range": (1, 2), "min_df": 2}, texts)
    assert assert_same("TfidfVectorizer", {"stop_words": "english"}, texts)


def test_files_are_read_as_scikit_learn_reads_them(tmp_path: Path) -> None:
    for number, words in enumerate(["a fine film", "fine, fine"]):
        (tmp_path / str(number)).write_text(words)
    paths = [str(tmp_path / "0"), str(tmp_path / "1")]
    assert assert_same("CountVectorizer", {"input": "filename"}, paths)


def test_which_loop_counts() -> None:
    assert text.CountVectorizer().counts_by_arrow()
    for options in (
        {"analyzer": "char"},
        {"tokenizer": str.split},
        {"strip_accents": "ascii"},
        {"preprocessor": str.lower},
        {"token_pattern": r"[a-z]+"},
        {"token_pattern": r"\b\w\w+\b|x"},
        {"ngram_range": (0, 1)},
    ):
        assert not text.TfidfVectorizer(**options).counts_by_arrow()


@pytest.mark.parametrize("step", ["build_analyzer", "build_preprocessor", "build_tokenizer"])
@pytest.mark.parametrize("of_object", [False, True])
def test_a_step_that_a_subclass_or_an_object_overrides_is_taken(step: str, of_object: bool) -> None:
    def replaced(vectorizer: Any) -> Any:
        return {
            "build_analyzer": lambda words: words.rstrip("s").split(),
            "build_preprocessor": lambda words: words.replace("s", " "),
            "build_tokenizer": lambda words: words.split("o"),
        }[step]

    texts = ["films and dogs", "dog film"]
    counts = []
    for module in (sklearn_text, text):
        if of_object:
            vectorizer = module.CountVectorizer()
            setattr(vectorizer, step, lambda: replaced(None))
        else:
            vectorizer = type("Own", (module.CountVectorizer,), {step: replaced})()
        X = vectorizer.fit_transform(texts)
        counts.append((vectorizer.vocabulary_, X.toarray().tolist()))
    assert counts[0] == counts[1]
    assert not vectorizer.counts_by_arrow()


def test_without_pyarrow_scikit_learn_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a fine film", "no film"]
    expected = text.CountVectorizer().fit_transform(texts)
    monkeypatch.setattr(text, "find_spec", lambda _: None)
    vectorizer = text.CountVectorizer()
    assert not vectorizer.counts_by_arrow()
    np.testing.assert_array_equal(vectorizer.fit_transform(texts).toarray(), expected.toarray())


def test_clones_and_pickles_count_as_the_original() -> None:
    vectorizer = text.TfidfVectorizer(min_df=2, ngram_range=(1, 2)).fit(["be see", "see be see"])
    again = pickle.loads(pickle.dumps(vectorizer))
    assert clone(vectorizer).get_params() == vectorizer.get_params()
    assert (again.transform(["be see"]) != vectorizer.transform(["be see"])).nnz == 0


def test_stop_words_that_no_text_can_hold_warn_as_in_scikit_learn() -> None:
    for module in (sklearn_text, text):
        with pytest.warns(UserWarning, match="Your stop_words may be inconsistent"):
            module.CountVectorizer(stop_words=["don't"]).fit(["do not", "don't"])
