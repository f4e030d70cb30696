"""Models of text files that are larger than memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline

from .errors import ReadError
from .reading import batches
from .vectorizers import hashing_vectorizer


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
    for batch in batches(path, rows, **options):
        model.partial_fit(vectorizer.transform(batch.X), batch.y, classes=classes)
        done += len(batch)
        report(done, total)
    return Pipeline([("vectorizer", vectorizer), ("classifier", model)])
