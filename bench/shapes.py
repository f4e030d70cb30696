"""Data of the shapes that users have, made from a seed or from the folder of real data."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer

from gpucenters.readers import read


@dataclass(frozen=True)
class Shape:
    """A named data set: what it stands for, and how it is made, or one of so many parts of it."""

    about: str
    make: Callable[..., Any]
    classes: int = 2
    codes: Callable[[], np.ndarray] | None = None  # of the rows, where they are known


def zipf_text(n: int, m: int, per_row: int, exponent: float, seed: int = 0) -> Any:
    """CSR word counts, float32: words drawn by Zipf's law, duplicates of a row summed."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(np.arange(1, m + 1, dtype=np.float64) ** -exponent)
    names = rng.permutation(m).astype(np.int32)  # frequent words lie anywhere
    indices = np.empty(n * per_row, dtype=np.int32)
    for start in range(0, indices.size, 2**22):
        part = indices[start : start + 2**22]
        part[:] = names[np.searchsorted(steps, rng.random(part.size) * steps[-1])]
    indptr = np.arange(0, indices.size + 1, per_row, dtype=np.int32)
    X = scipy.sparse.csr_matrix(
        (np.ones(indices.size, dtype=np.float32), indices, indptr), shape=(n, m)
    )
    X.sum_duplicates()
    return X


def cells(n: int = 20_000, m: int = 20_000, seed: int = 0) -> Any:
    """CSR of single cells, float32: each gene is seen in its own share of them."""
    rng = np.random.default_rng(seed)
    rate = rng.beta(0.25, 2.25, m)
    indptr, indices = [0], []
    for _ in range(n):
        found = np.flatnonzero(rng.random(m) < rate).astype(np.int32)
        indices.append(found)
        indptr.append(indptr[-1] + found.size)
    data = rng.lognormal(0.0, 0.5, indptr[-1]).astype(np.float32)
    return scipy.sparse.csr_matrix(
        (data, np.concatenate(indices), np.asarray(indptr, dtype=np.int32)), shape=(n, m)
    )


def sparse_counts(n: int, m: int, per_row: int, seed: int = 0) -> Any:
    """CSR counts of 1, float64: columns drawn at random, duplicates of a row summed."""
    rng = np.random.default_rng(seed)
    indptr = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    indices = rng.integers(0, m, n * per_row).astype(np.int32)
    X = scipy.sparse.csr_matrix((np.ones(n * per_row), indices, indptr), shape=(n, m))
    X.sum_duplicates()
    return X


def tfidf(n: int, m: int, per_row: int) -> Any:
    """TF-IDF of `zipf_text`, float64."""
    return TfidfTransformer().fit_transform(zipf_text(n, m, per_row, 1.07).astype(np.float64))


@cache
def _reviews() -> tuple[list[str], np.ndarray]:
    """25,000 reviews of IMDB, and their classes."""
    data = read(Path(os.environ.get("GPUCENTERS_DATA", "../shared/data")) / "imdb.train.tsv.gz")
    return list(data.X), np.unique(np.asarray(data.y), return_inverse=True)[1]


def reviews(vectorizer: Any, step: int = 1) -> Any:
    """Every so many reviews as a vectorizer gives them."""
    return vectorizer.fit_transform(_reviews()[0][::step])


def review_codes(step: int = 1) -> np.ndarray:
    """The classes of these reviews."""
    return _reviews()[1][::step]


def shuffled_rows(X: Any) -> Any:
    """The same CSR matrix, the entries of each row in a random order."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    order = np.lexsort((np.random.default_rng(0).random(X.nnz), rows))
    parts = X.data[order], X.indices[order], X.indptr
    return scipy.sparse.csr_matrix(parts, shape=X.shape)


def positive_genes() -> Any:
    """Gene expression as CSR that stores each value, log-normal."""
    return scipy.sparse.csr_matrix(np.exp(normal(102, 12_600).astype(np.float64)))


def of_sklearn(load: Callable[..., Any], classes: int) -> tuple[Any, int, Any]:
    """How X of one of scikit-learn's data sets is made, its number of classes, and its codes."""
    return lambda: load().data, classes, lambda: load().target


def normal(n: int, m: int, seed: int = 0) -> np.ndarray:
    """Dense standard normal, float32."""
    return np.random.default_rng(seed).standard_normal((n, m), dtype=np.float32)


SHAPES = {
    "twitter-count": Shape(
        "1.6 million tweets x 273,779 words",
        lambda part=1: zipf_text(1_600_000 // part, 273_779 // part, 12, 1.07),
    ),
    "twitter-bigram": Shape(
        "1.6 million tweets x 12,082,555 bigrams",
        lambda part=1: zipf_text(1_600_000 // part, 12_082_555 // part, 23, 0.9),
    ),
    "imdb-bigram": Shape(
        "25,000 reviews x 8,950,169 bigrams",
        lambda part=1: zipf_text(25_000 // part, 8_950_169 // part, 250, 0.9),
    ),
    "cells": Shape(
        "20,000 cells x 20,000 genes, CSR", lambda part=1: cells(20_000, 20_000 // part)
    ),
    "genes": Shape("102 samples x 12,600 genes, dense", lambda part=1: normal(102, 12_600 // part)),
    "tall": Shape(
        "2,000 samples x 20,000 features, dense", lambda part=1: normal(2_000, 20_000 // part)
    ),
}


#: Shapes for `bench fit` alone: many classes, tall data, few columns, and what is no word count.
FIT_SHAPES = {
    "imdb-count": Shape(
        "25,000 reviews, CountVectorizer",
        lambda: reviews(CountVectorizer()),
        codes=review_codes,
    ),
    "imdb-tfidf2": Shape(
        "25,000 reviews, TfidfVectorizer of words and pairs that two reviews have",
        lambda: reviews(TfidfVectorizer(ngram_range=(1, 2), min_df=2)),
        codes=review_codes,
    ),
    "chars": Shape(
        "6,250 reviews, TfidfVectorizer of pairs of characters",
        lambda: reviews(TfidfVectorizer(analyzer="char", ngram_range=(2, 2)), 4),
        codes=lambda: review_codes(4),
    ),
    "twitter-count-unsorted": Shape(
        SHAPES["twitter-count"].about, lambda: shuffled_rows(SHAPES["twitter-count"].make())
    ),
    "twitter-bigram-unsorted": Shape(
        SHAPES["twitter-bigram"].about, lambda: shuffled_rows(SHAPES["twitter-bigram"].make())
    ),
    **SHAPES,
    "classes-1000": Shape(
        "20,000 samples x 1,000 features, 1,000 classes, dense", lambda: normal(20_000, 1_000), 1000
    ),
    "classes-100": Shape(
        "5,000 samples x 2,000 features, 100 classes, dense", lambda: normal(5_000, 2_000), 100
    ),
    "classes-20": Shape(
        "20,000 samples x 1,000 features, 20 classes, dense", lambda: normal(20_000, 1_000), 20
    ),
    "mnist": Shape(
        "60,000 samples x 784 features, 10 classes, dense", lambda: normal(60_000, 784), 10
    ),
    "column": Shape("5 million samples x 1 feature, dense", lambda: normal(5_000_000, 1)),
    "two-columns": Shape("10 million samples x 2 features, dense", lambda: normal(10_000_000, 2)),
    "tall-20": Shape("1 million samples x 20 features, dense", lambda: normal(1_000_000, 20)),
    "nb-classes": Shape(
        "5,000 documents x 131,072 words, 300 classes, CSR",
        lambda: sparse_counts(5_000, 131_072, 80),
        300,
    ),
    "multinomial-1000": Shape(
        "20,000 documents x 2,000 words, 1,000 classes, CSR",
        lambda: sparse_counts(20_000, 2_000, 40),
        1000,
    ),
    "tfidf": Shape("25,000 documents x 50,000 words, TF-IDF", lambda: tfidf(25_000, 50_000, 120)),
    "genes-multinomial": Shape("102 samples x 12,600 genes, positive, CSR", positive_genes),
    "digits": Shape("1,797 samples x 64 pixels, 10 classes", *of_sklearn(load_digits, 10)),
    "cancer": Shape("569 samples x 30 features", *of_sklearn(load_breast_cancer, 2)),
    "iris": Shape("150 samples x 4 features, 3 classes", *of_sklearn(load_iris, 3)),
}


def labels(
    n: int, kind: str, classes: int = 2, seed: int = 1, codes: np.ndarray | None = None
) -> np.ndarray:
    """Classes, at random if not given: numbers, or names as a string or an object array."""
    if codes is None:
        codes = np.random.default_rng(seed).integers(0, classes, n)
        codes[:classes] = np.arange(classes)
    if kind == "int":
        return codes
    names = np.asarray(["neg", "pos", *(f"class {c}" for c in range(2, classes))])[codes]
    return names.astype(object) if kind == "object" else names
