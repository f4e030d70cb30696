"""Data of the shapes that users have, made from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse


@dataclass(frozen=True)
class Shape:
    """A named data set: what it stands for, and how it is made."""

    about: str
    make: Callable[[], Any]


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


def normal(n: int, m: int, seed: int = 0) -> np.ndarray:
    """Dense standard normal, float32."""
    return np.random.default_rng(seed).standard_normal((n, m), dtype=np.float32)


SHAPES = {
    "twitter-count": Shape(
        "1.6 million tweets x 273,779 words", lambda: zipf_text(1_600_000, 273_779, 12, 1.07)
    ),
    "twitter-bigram": Shape(
        "1.6 million tweets x 12,082,555 bigrams",
        lambda: zipf_text(1_600_000, 12_082_555, 23, 0.9),
    ),
    "imdb-bigram": Shape(
        "25,000 reviews x 8,950,169 bigrams", lambda: zipf_text(25_000, 8_950_169, 250, 0.9)
    ),
    "cells": Shape("20,000 cells x 20,000 genes, CSR", cells),
    "genes": Shape("102 samples x 12,600 genes, dense", lambda: normal(102, 12_600)),
    "tall": Shape("2,000 samples x 20,000 features, dense", lambda: normal(2_000, 20_000)),
}


def labels(n: int, kind: str, seed: int = 1) -> np.ndarray:
    """Two classes at random: 0 and 1, or "neg" and "pos" as a string or an object array."""
    codes = np.random.default_rng(seed).integers(0, 2, n)
    if kind == "int":
        return codes
    names = np.asarray(["neg", "pos"])[codes]
    return names.astype(object) if kind == "object" else names
