"""Real texts through readers and model files: the predictions of the same pipeline in Python."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
    load,
    save,
)
from gpucenters.readers import batches, fit_text, make_vectorizer, read

pytestmark = pytest.mark.filterwarnings("ignore::gpucenters.UninformativeFeaturesWarning")
SETS = {
    "mpqa": ("mpqa.tsv.gz", "mpqa.tsv.gz"),
    "r8": ("r8.train.tsv.gz", "r8.test.tsv.gz"),
    "ag news": ("ag_news.test.tsv.gz", "ag_news.test.tsv.gz"),
}
MODELS = [
    L2CenterClassifier(k=200, scale="std"),
    L1CenterClassifier(k=0.1),
    SparseBernoulliNB(k=500),
    SparseMultinomialNB(k=200),
]


def lines(path: Path) -> list[list[str]]:
    """The rows of a file as its description has them: by Python alone."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        next(file)
        return [line.rstrip("\n").split("\t", 1) for line in file]


def check(pipeline: Pipeline, texts: list[str]) -> None:
    """Predictions of the saved pipeline are those of the pipeline, every one."""
    expected = pipeline.predict(texts)
    for full in (False, True):
        file = io.BytesIO()
        save(pipeline, file, full=full)
        file.seek(0)
        there = load(file)
        assert np.array_equal(there.predict(texts), expected)
        some = texts[::20]
        assert np.array_equal(there.decision_function(some), pipeline.decision_function(some))


@pytest.mark.parametrize("name", ["mpqa.tsv.gz", "r8.test.tsv.gz", "imdb.test.tsv.gz"])
def test_files_are_read_as_they_are_described(name: str, data_dir: Path) -> None:
    labels, texts = map(list, zip(*lines(data_dir / name), strict=True))
    data = read(data_dir / name)
    assert texts == data.X and data.y.tolist() == labels  # type: ignore[union-attr]
    if name.startswith("mpqa"):
        parts = list(batches(data_dir / name, 1000))
        assert [len(part) for part in parts] == [1000] * 10 + [606]
        assert [text for part in parts for text in part.X] == texts


@pytest.mark.parametrize("kind", ["count", "tfidf", "hashing"])
@pytest.mark.parametrize("name", SETS)
def test_saved_models_predict_as_the_pipeline_does(name: str, kind: str, data_dir: Path) -> None:
    train, test = (read(data_dir / part) for part in SETS[name])
    model = MODELS[[*SETS].index(name) % len(MODELS)]
    norm = None if name == "r8" else "l2"
    vectorizer = make_vectorizer(kind, norm=norm, n_features=2**16)
    pipeline = make_pipeline(vectorizer, model).fit(train.X, train.y)
    check(pipeline, test.X[:2500])


@pytest.mark.full
@pytest.mark.parametrize("kind", ["count", "tfidf", "hashing"])
@pytest.mark.parametrize("name", [*SETS, "imdb"])
def test_saved_models_of_all_kinds(name: str, kind: str, data_dir: Path) -> None:
    parts = SETS.get(name, ("imdb.train.tsv.gz", "imdb.test.tsv.gz"))
    train, test = (read(data_dir / part) for part in parts)
    vectorizer = make_vectorizer(kind, ngrams=(1, 2), min_df=1 if kind == "hashing" else 2)
    X = vectorizer.fit_transform(train.X)
    texts = test.X[:: max(1, len(test.X) // 5000)]
    for model in MODELS:
        check(make_pipeline(vectorizer, clone(model).fit(X, train.y)), texts)


def test_a_model_in_batches_is_that_of_the_whole_file(data_dir: Path) -> None:
    path = data_dir / "mpqa.tsv.gz"
    data = read(path)
    found = fit_text(path, SparseBernoulliNB(k=1000), rows=999)
    whole = make_pipeline(make_vectorizer("hashing"), SparseBernoulliNB(k=1000))
    whole.fit(data.X, data.y)
    assert np.array_equal(found[-1].scores_, whole[-1].scores_)
    assert np.array_equal(found.predict_proba(data.X), whole.predict_proba(data.X))


def test_csv_of_real_texts_holds_the_same(data_dir: Path, tmp_path: Path) -> None:
    rows = lines(data_dir / "imdb_sentences.tsv.gz")
    with gzip.open(tmp_path / "data.csv.gz", "wt", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("stars", "review"), *rows])
    data = read(tmp_path / "data.csv.gz", label="stars", text="review")
    assert [[y, x] for x, y in zip(data.X, data.y.tolist(), strict=True)] == rows  # type: ignore
