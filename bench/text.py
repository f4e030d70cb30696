"""From a file of texts to a saved model, and to predictions of as many new texts."""

from __future__ import annotations

import argparse
import json
import pickle
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction import text as sklearn_text
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import gpucenters
from gpucenters import SparseMultinomialNB
from gpucenters.readers import read
from gpucenters.text import CountVectorizer

from .arguments import folder, rounds
from .timing import machine

K = 10_000  # words that are selected
COPIES = 16  # of the 100,000 tweets: as many as Sentiment140 has
Made = tuple[Path, Path]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    parser.add_argument("sets", nargs="*", help=f"{', '.join(SETS)}; by default all")
    rounds(parser, 5)
    folder(parser)


def run(options: argparse.Namespace) -> None:
    """Time each way on each set, alternating, and print a table each."""
    results: dict[str, Any] = {"machine": machine(), "k": K, "sets": {}}
    for name in options.sets or SETS:
        with tempfile.TemporaryDirectory() as place:
            train, test = SETS[name](Path(options.data), Path(place))
            results["sets"][name] = _bench(name, train, test, options.repeat)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


def _bench(name: str, train: Path, test: Path, repeat: int) -> dict[str, Any]:
    new = read(test)
    found: dict[str, dict[str, list[float]]] = {way: {} for way in WAYS}
    for _ in range(repeat):
        for way, steps in WAYS.items():
            saved = train.with_name("model")
            row = found[way]
            _timed(row, "fit", lambda steps=steps, saved=saved: steps[0](train, saved))
            model = steps[1](saved)
            predicted = _timed(row, "predict", lambda model=model: model(list(new.X)))
            row["accuracy"] = [
                float(np.mean(np.asarray(predicted).astype(str) == new.y.astype(str)))
            ]
    print(
        f"\n{name}: {len(read(train)):,} texts to fit, {len(new):,} to predict; medians of {repeat}"
    )
    print(
        f"{'':44}{'fit s':>8}{'/ ours':>8}{'cpu s':>8}{'predict s':>11}{'cpu s':>8}{'accuracy':>10}"
    )
    rows = {w: {n: float(np.median(v)) for n, v in row.items()} for w, row in found.items()}
    ours = next(iter(rows.values()))["fit"]
    for way, row in rows.items():
        print(
            f"{way:48}{row['fit']:8.2f}{row['fit'] / ours:8.2f}{row['fit cpu']:8.2f}"
            f"{row['predict']:11.2f}{row['predict cpu']:8.2f}{row['accuracy']:10.4f}"
        )
    return rows


def _timed(row: dict[str, list[float]], name: str, work: Callable[[], Any]) -> Any:
    """Do it, and note the seconds, and those of all processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    row.setdefault(name, []).append(time.perf_counter() - wall)
    row.setdefault(f"{name} cpu", []).append(time.process_time() - cpu)
    return found


def _fit_ours(path: Path, saved: Path) -> None:
    data = read(path)
    model = make_pipeline(CountVectorizer(), SparseMultinomialNB(k=K)).fit(data.X, data.y)
    gpucenters.save(model, saved)


def _fit_theirs(selected: bool) -> Callable[[Path, Path], None]:
    """A pipeline of scikit-learn, from a table that pandas reads to a pickle."""

    def fit(path: Path, saved: Path) -> None:
        table = pd.read_csv(path, sep="\t", quoting=3, keep_default_na=False)
        models = [SelectKBest(chi2, k=K), LogisticRegression(max_iter=1000)]
        steps = models if selected else [MultinomialNB()]
        model = make_pipeline(sklearn_text.CountVectorizer(), *steps)
        model.fit(table["text"], table["label"])
        saved.write_bytes(pickle.dumps(model))

    return fit


def _load_ours(saved: Path) -> Callable[[list[str]], Any]:
    return gpucenters.load(saved).predict


def _load_theirs(saved: Path) -> Callable[[list[str]], Any]:
    return pickle.loads(saved.read_bytes()).predict


#: Each way: what fits to a file and saves, and what loads and predicts.
WAYS: dict[str, tuple[Callable[[Path, Path], None], Callable[[Path], Any]]] = {
    f"CountVectorizer, SparseMultinomialNB(k={K})": (_fit_ours, _load_ours),
    "scikit-learn: MultinomialNB": (_fit_theirs(False), _load_theirs),
    "scikit-learn: SelectKBest, LogisticRegression": (_fit_theirs(True), _load_theirs),
}


def _with_fasttext() -> None:
    """Add fastText's supervised mode where it is installed."""
    try:
        import fasttext
    except ImportError:
        return

    def fit(path: Path, saved: Path) -> None:
        data, lines = read(path), path.with_name("lines")
        with lines.open("w", encoding="utf-8") as file:
            for label, words in zip(data.y, data.X, strict=True):
                file.write(f"__label__{label} {' '.join(words.split())}\n")
        fasttext.train_supervised(str(lines), thread=0, verbose=0).save_model(str(saved))

    def load(saved: Path) -> Callable[[list[str]], Any]:
        model = fasttext.load_model(str(saved))

        def predict(texts: list[str]) -> list[str]:
            labels, _ = model.predict([" ".join(words.split()) for words in texts])
            return [label[0].removeprefix("__label__") for label in labels]

        return predict

    WAYS["fastText, supervised"] = fit, load


_with_fasttext()


def _imdb(data: Path, _: Path) -> Made:
    return data / "imdb.train.tsv.gz", data / "imdb.test.tsv.gz"


def _ag_news(data: Path, place: Path) -> Made:
    found = read(data / "ag_news.test.tsv.gz")
    return _halves(found.X, found.y, place)


def _tweets(data: Path, place: Path) -> Made:
    """Copies of the tweets in which rare words are others: the vocabulary grows with them."""
    found = read(data / "sentiment140_100k.tsv.gz")
    counts = sklearn_text.CountVectorizer()
    often = np.asarray(counts.fit_transform(found.X).sum(axis=0)).ravel() > 5
    kept = set(counts.get_feature_names_out()[often])
    texts, labels = [], []
    for copy in range(COPIES):

        def other(match: re.Match, copy: int = copy) -> str:
            word = match[0]
            return word if copy == 0 or word.lower() in kept else f"{word}{copy}"

        texts += [re.sub(r"\w\w+", other, words) for words in found.X]
        labels += list(found.y)
    return _halves(texts, np.asarray(labels), place)


def _halves(texts: Any, y: np.ndarray, place: Path) -> Made:
    """Two files, of every second text each."""
    paths = place / "train.tsv", place / "test.tsv"
    for first, path in enumerate(paths):
        with path.open("w", encoding="utf-8") as file:
            file.write("label\ttext\n")
            for label, words in zip(y[first::2], texts[first::2], strict=True):
                file.write(f"{label}\t{words}\n")
    return paths


SETS: dict[str, Callable[[Path, Path], Made]] = {
    "imdb": _imdb,
    "ag_news": _ag_news,
    "tweets": _tweets,
}
