"""Texts, genes and their random splits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from gpucenters.readers import read

TEXTS = {
    "mpqa": ("mpqa.tsv.gz",),
    "sst2": tuple(
        f"sst2.{part}.tsv.gz" for part in ("phrases.train", "sentences.dev", "sentences.test")
    ),
    "imdb": ("imdb.train.tsv.gz", "imdb.test.tsv.gz"),
    "sentiment140": ("sentiment140_100k.tsv.gz",),
    "r8": ("r8.train.tsv.gz", "r8.test.tsv.gz"),
    "amazon": ("amazon_multidomain.tsv.gz",),
}


def read_texts(folder: Path, name: str, most: int | None = None) -> tuple[list[str], np.ndarray]:
    """Texts and class codes; with ``most``, that many of them at random."""
    whole = folder / f"{name}.tsv.gz"  # a larger copy that the user has, as of Sentiment140
    files = [whole] if whole.exists() else [folder / file for file in TEXTS[name]]
    parts = [read(file) for file in files]
    texts = [text for part in parts for text in part.X]
    y = np.concatenate([np.asarray(part.y) for part in parts])
    y = np.unique(y, return_inverse=True)[1]
    if most is not None and most < len(texts):
        kept = np.random.default_rng(0).permutation(len(texts))[:most]
        texts, y = [texts[i] for i in kept], y[kept]
    return texts, y


def word_counts(texts: list[str]) -> Any:
    """CSR counts of all words, also those of one letter."""
    return CountVectorizer(token_pattern=r"(?u)\b\w+\b", dtype=np.float64).fit_transform(texts)


def read_genes(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Expressions and class codes."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        return file["X"].astype(np.float64), file["y"]


@dataclass(frozen=True)
class Split:
    """80% to train and 20% to test, features divided by their standard deviation in training."""

    train: Any
    test: Any
    y_train: np.ndarray
    y_test: np.ndarray
    unscaled: Any  # train and test, as they were
    unscaled_test: Any


def split(X: Any, y: np.ndarray, number: int, *, positive: bool = False) -> Split:
    """Random split ``number``; with ``positive``, features are shifted so that their least is 0."""
    if positive:
        X = X - X.min(axis=0)
    train, test, y_train, y_test = train_test_split(
        X, y, test_size=0.2, random_state=number, stratify=y
    )
    by = StandardScaler(with_mean=False).fit(train)
    return Split(by.transform(train), by.transform(test), y_train, y_test, train, test)


def sizes(m: int, shares: tuple[float, ...]) -> list[int]:
    """Numbers of features of these shares, each once."""
    return sorted({max(1, int(share * m * (1 + 1e-12))) for share in shares})
