"""Models of text files in batches: the model of all texts, and never more than a batch of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from test_files import ATTRIBUTES, FULL_ATTRIBUTES, assert_equal

import gpucenters.text
from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)
from gpucenters.readers import ReadError, fit_text, make_vectorizer, read

_rng = np.random.default_rng(2)
_LABELS = np.repeat(["b", "a", "c"], [50, 3, 40])  # a batch need not have all of them
ROWS = [(y, " ".join(_rng.choice([*"uvwxyz", y], 8) + "q")) for y in _LABELS.tolist()]
MODELS = [
    L2CenterClassifier(k=4),
    L2CenterClassifier(k=4, scale="std"),
    MahalanobisCenterClassifier(k=4, shrinkage=0.5),
    SparseBernoulliNB(k=4),
    SparseMultinomialNB(k=4),
]
EXACT = [MODELS[0], *MODELS[3:]]  # functions of sums of integers; centred moments are rounded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "texts.tsv"
    file.write_text("\n".join(map("\t".join, ROWS)), encoding="utf-8")
    return file


@pytest.mark.parametrize("rows", [1, 10, 1000])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_batches_give_the_model_of_all_texts(
    model: Any, rows: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = read(path)
    words = make_vectorizer("hashing", n_features=32)
    expected = clone(model).fit(words.transform(data.X), data.y)
    held = []
    transform = HashingVectorizer.transform
    monkeypatch.setattr(
        HashingVectorizer, "transform", lambda self, X: held.append(len(X)) or transform(self, X)
    )
    told: list[Any] = []
    found = fit_text(path, model, words, rows=rows, progress=lambda *so_far: told.append(so_far))
    assert held == np.diff([n for n, total in told if total == 93], prepend=0).tolist()
    assert max(held) == min(rows, 93)
    assert [n for n, _ in told] == 2 * [*range(rows, 93, rows), 93]
    assert [total for _, total in told] == [None] * len(held) + [93] * len(held)
    assert not hasattr(model, "classes_")
    assert list(found.named_steps) == ["vectorizer", "classifier"]
    if model not in EXACT:
        assert found[-1].ranking_.tolist() == expected.ranking_.tolist()
        np.testing.assert_allclose(found[-1].scores_, expected.scores_, atol=1e-12)
        return
    for name in ATTRIBUTES + FULL_ATTRIBUTES:
        if hasattr(expected, name):
            assert_equal(getattr(found[-1], name), getattr(expected, name))
    assert_equal(found.predict_proba(data.X), expected.predict_proba(words.transform(data.X)))


def test_what_cannot_be_fitted_in_batches_is_named(path: Path) -> None:
    with pytest.raises(TypeError, match="L1CenterClassifier cannot be fitted in batches"):
        fit_text(path, L1CenterClassifier())
    with pytest.raises(TypeError, match="CountVectorizer needs all texts at once"):
        fit_text(path, L2CenterClassifier(), CountVectorizer())
    with pytest.raises(ReadError, match=r"texts\.tsv: there are no labels in it"):
        fit_text(path, L2CenterClassifier(), format="lines")
    path.write_text("label\tone\ttwo\na\t1\t2\n")
    with pytest.raises(ReadError, match=r"texts\.tsv: there are no texts in it"):
        fit_text(path, L2CenterClassifier())


def test_vectorizers_by_name() -> None:
    count = make_vectorizer("count", ngrams=(1, 2), min_df=3, token_pattern="x")
    expected = CountVectorizer(ngram_range=(1, 2), min_df=3, token_pattern="x")
    assert repr(count) == repr(expected) and type(count) is gpucenters.text.CountVectorizer
    assert repr(make_vectorizer("tfidf", norm=None)) == repr(TfidfVectorizer(norm=None))
    assert repr(make_vectorizer("tfidf", binary=True)) == repr(TfidfVectorizer(binary=True))
    hashing = make_vectorizer("hashing", n_features=99)
    assert (hashing.n_features, hashing.alternate_sign, hashing.norm) == (99, False, None)
    with pytest.raises(ValueError, match="hashing sees one text at a time and knows no min_df"):
        make_vectorizer("hashing", min_df=2)
    with pytest.raises(ValueError, match="vectorizer='words' is not valid"):
        make_vectorizer("words")
