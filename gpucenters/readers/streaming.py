"""Vectorizers by name, and models of text files that are larger than memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline

from ..text import CountVectorizer, TfidfVectorizer
from .data import ReadError, as_whole
from .reading import batches


def make_vectorizer(
    kind: str = "count",
    *,
    ngrams: tuple[int, int] = (1, 1),
    min_df: int | float = 1,
    token_pattern: str | None = None,
    norm: str | None = "l2",
    n_features: int = 2**20,
    binary: bool = False,
    analyzer: str = "word",
    stop_words: str | list[str] | None = None,
) -> Any:
    """A vectorizer that suits the models.

    Parameters
    ----------
    kind : {"count", "tfidf", "hashing"}, default="count"
        "hashing" counts without signs and without a norm, which naive Bayes could not take.
    ngrams : tuple of two int, default=(1, 1)
        The fewest and the most words, or characters, of an n-gram.
    min_df : int or float, default=1
        In how many texts a word must be; "hashing", which sees a text at a time, takes no other.
    token_pattern : str, optional
        A regular expression; by default scikit-learn's, words of two characters and more.
    norm : {"l2", "l1", None}, default="l2"
        Of "tfidf". With None a row's value depends on its own word alone, so that a model file
        needs the words of the support only.
    n_features : int, default=2**20
        Of "hashing".
    binary : bool, default=False
        Whether a word counts once in a text.
    analyzer : {"word", "char", "char_wb"}, default="word"
        Whether n-grams are of words, of characters, or of the characters of a word and the spaces
        around it.
    stop_words : "english" or list of str, optional
        Words that are left out: those that scikit-learn has, or these.

    Returns
    -------
    CountVectorizer or TfidfVectorizer of ``gpucenters.text``, or HashingVectorizer
    """
    options: dict[str, Any] = {"ngram_range": tuple(ngrams), "binary": binary}
    options |= {"analyzer": analyzer, "stop_words": stop_words}
    if token_pattern is not None:
        options["token_pattern"] = token_pattern
    if kind == "hashing":
        if min_df != 1:
            raise ValueError("hashing sees one text at a time and knows no min_df: leave it out.")
        return hashing_vectorizer(n_features=n_features, **options)
    if kind == "count":
        return CountVectorizer(min_df=min_df, **options)
    if kind == "tfidf":
        return TfidfVectorizer(min_df=min_df, norm=norm, **options)
    raise ValueError(f"vectorizer={kind!r} is not valid: use count, tfidf or hashing.")


def hashing_vectorizer(**options: Any) -> HashingVectorizer:
    """A vectorizer that counts, without a vocabulary."""
    return HashingVectorizer(alternate_sign=False, norm=None, **options)


def fit_text(
    path: Any,
    estimator: Any,
    vectorizer: HashingVectorizer | None = None,
    *,
    rows: int = 10_000,
    progress: Callable[[int, int | None], None] | None = None,
    **options: Any,
) -> Pipeline:
    """Fit a model to a file of texts of which no more than a batch is in memory.

    One pass finds the labels, a second one hashes the texts and adds them batch by batch.

    Parameters
    ----------
    path : str or path-like
        A file of texts with labels: see `read`. It is read twice, so not "-".
    estimator : classifier with ``partial_fit``
        Its clone is fitted.
    vectorizer : HashingVectorizer, optional
        By default one that counts: ``HashingVectorizer(alternate_sign=False, norm=None)``. Others
        need all texts at once.
    rows : int, default=10,000
        Texts of a batch.
    progress : callable, optional
        Called after each batch with the number of texts so far and their total, which in the first
        pass is None.
    **options
        Those of `read`.

    Returns
    -------
    Pipeline
        With the steps "vectorizer" and "classifier", both fitted. The model is that of all texts at
        once: see ``partial_fit``.

    Raises
    ------
    TypeError
        For a model that cannot be fitted in batches, or another vectorizer.
    ReadError
        For a file that is not right, has no texts or no labels.
    """
    if not hasattr(estimator, "partial_fit"):
        raise TypeError(
            f"{type(estimator).__name__} cannot be fitted in batches, since its centers are no "
            "function of sums: read the whole file and fit it, or choose another model."
        )
    vectorizer = hashing_vectorizer() if vectorizer is None else clone(vectorizer)
    if not isinstance(vectorizer, HashingVectorizer):
        raise TypeError(
            f"{type(vectorizer).__name__} needs all texts at once: use a HashingVectorizer, or "
            "read the whole file and fit it."
        )
    if path == "-":
        raise ReadError(path, "a fit in batches reads twice, which needs a file.")
    report = progress or (lambda done, total: None)
    labels: set[Any] = set()
    total = done = 0
    for batch in batches(path, rows, **options):
        if not batch.is_text or batch.y is None:
            what = "texts" if not batch.is_text else "labels"
            raise ReadError(path, f"there are no {what} in it: name their column or file.")
        labels.update(batch.y.tolist())
        total += len(batch)
        report(total, None)
    model, classes = clone(estimator), sorted(labels)
    whole = as_whole(np.asarray(classes))  # of all batches, since one tells nothing of the others
    known = dict(zip(classes, whole.tolist(), strict=True)) if whole.dtype.kind == "U" else {}
    classes = sorted({*known.values()}) or classes
    for batch in batches(path, rows, **options):
        y: Any = batch.y
        y = np.asarray([known[label] for label in y.tolist()]) if known else y
        model.partial_fit(vectorizer.transform(batch.X), y, classes=classes)
        done += len(batch)
        report(done, total)
    return Pipeline([("vectorizer", vectorizer), ("classifier", model)])
