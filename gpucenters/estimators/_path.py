"""The predictions of a fitted model for several numbers of features, in one pass over X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.context import Context
from ..arrays.grid import ranges
from ..arrays.namespace import array_namespace, to_numpy
from ..blocks.convert import as_block
from ..solvers.path import Path, score_path
from ._base import CenterClassifier
from .probabilities import softmax
from .validation import check_backend, check_X

_WORKSPACE = 8  # arrays of the size of the scores that are alive at once


@dataclass
class PathPredictions:
    """Predictions of S numbers of features, on the host.

    Attributes
    ----------
    codes : ndarray of integers of shape (S, n)
        The class of each sample, as a position in ``classes_``.
    decision : ndarray of shape (S, n, q), float64, or None
        Scores as `decision_function` gives them; q is 1 for two classes.
    probability : ndarray of shape (S, n, K), float64, or None
    entering : tuple of two ndarrays
        The features that enter the support at each k, and the number of the k.
    leaving : tuple of two ndarrays
        Those that leave it.
    """

    codes: np.ndarray
    decision: np.ndarray | None
    probability: np.ndarray | None
    entering: tuple[np.ndarray, np.ndarray]
    leaving: tuple[np.ndarray, np.ndarray]


def predict_path(
    model: CenterClassifier, X: Any, ks: list[int], *, decision: bool, probability: bool
) -> PathPredictions:
    """The predictions of ``model.with_k(k)`` for each k, to rounding, and its labels exactly.

    Parameters
    ----------
    model : CenterClassifier
        Fitted, with a score for every class.
    X : {array, sparse matrix, DataFrame} of shape (n, m)
    ks : list of S ints, ascending, from 1 to m
    decision, probability : bool
        Whether these are asked for.
    """
    centers, fitted = model._centers(), model._ready()
    checked = check_X(model, X, reset=False)
    check_backend(model, checked, "sparsity_path")
    n, q = checked.shape[0], len(model.classes_)
    kind = np.min_scalar_type(q - 1)
    q = 1 if q == 2 else q

    def work(ctx: Context) -> tuple[PathPredictions, list[int]]:
        block = model._read(as_block(checked, ctx.backend, summed=not model._linear, checked=True))
        path = score_path(centers, ks, model._path_log_prior(), block, ctx)
        found = PathPredictions(
            np.empty((len(ks), n), kind),
            np.empty((len(ks), n, q)) if decision else None,
            np.empty((len(ks), n, len(model.classes_))) if probability else None,
            *_changes(path),
        )
        doubtful = np.zeros(len(ks), np.bool)
        step = max(1, ctx.budget // (8 * _WORKSPACE * (q + 1) * len(ks)))
        for start, stop in ranges(n, step):
            here = block if step >= n else block.rows(start, stop, ctx)
            scores, relative, doubt = path.scores(here, ctx)
            xp, rows = array_namespace(scores), slice(start, stop)
            doubtful |= to_numpy(doubt)
            codes = xp.argmax(scores, axis=0) if q > 1 else scores[0, :, :] > 0
            found.codes[:, rows] = to_numpy(codes)
            if found.decision is not None:
                found.decision[:, rows, :] = to_numpy(xp.permute_dims(scores, (1, 2, 0)))
            if found.probability is not None:
                flat = xp.permute_dims(xp.reshape(relative, (q, -1)), (1, 0))
                shares = to_numpy(softmax(flat, model._per_score))
                found.probability[:, rows, :] = shares.reshape(len(ks), stop - start, -1)
        return found, np.flatnonzero(doubtful).tolist()

    found, doubtful = model._run(work)
    for s in doubtful:
        _score_again(model, fitted.backend, X, ks[s], s, found)
    return found


def _changes(path: Path) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    parts: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {1: [], -1: []}
    for s, features, sign in path.changes():
        host = to_numpy(features)
        parts[sign].append((host, np.full(len(host), s, np.int32)))
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int32)
    both = []
    for sign in (1, -1):
        features, numbers = zip(nothing, *parts[sign], strict=True)
        both.append((np.concatenate(features), np.concatenate(numbers)))
    return tuple(both)


def _score_again(
    model: CenterClassifier, backend: Any, X: Any, k: int, s: int, found: PathPredictions
) -> None:
    """Replace the predictions of one k by those of the model at this k."""
    at_k = model.with_k(k)
    scores, _ = at_k._score_rows(X, "sparsity_path")
    with backend.current():
        xp = array_namespace(scores)
        codes = xp.argmax(scores, axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0
        found.codes[s, :] = to_numpy(codes)
        if found.decision is not None:
            found.decision[s, :, :] = to_numpy(scores)
    if found.probability is not None:
        found.probability[s, :, :] = to_numpy(at_k.predict_proba(X))
