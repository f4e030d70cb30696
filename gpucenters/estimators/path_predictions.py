"""The predictions of a fitted model for several numbers of features, in one pass over X."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.context import Context
from ..arrays.namespace import array_namespace, to_numpy
from ..arrays.schedule import ranges
from ..arrays.typing import Array
from ..solvers.decisions import scores_of_supports, softmax
from ..solvers.path import Path, score_path
from .base import CenterClassifier
from .fitted import FittedModel
from .validation import check_backend, check_X

_WORKSPACE = 8  # arrays of the size of the scores that are alive at once
_IN_CACHE = 2**21  # scores of all k that are formed at once, where data need not be read whole
_LEAST_ROWS = 2**12


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
    bound : ndarray of shape (S,), float64
        On the rounding of the scores.
    changes : tuple of three ndarrays
        The features that enter or leave the support at some k, the number of this k, and 1 or -1.
    """

    codes: np.ndarray
    decision: np.ndarray | None
    probability: np.ndarray | None
    bound: np.ndarray
    changes: tuple[np.ndarray, np.ndarray, np.ndarray]

    def put(self, rows: slice, numbers: Any, scores: Array, relative: Array, factor: float) -> None:
        """Set the predictions of some samples and some k from (q, S, n) scores."""
        xp, q = array_namespace(scores), scores.shape[0]
        codes = xp.argmax(scores, axis=0) if q > 1 else scores[0, :, :] > 0
        self.codes[numbers, rows] = to_numpy(codes)
        if self.decision is not None:
            self.decision[numbers, rows, :] = to_numpy(xp.permute_dims(scores, (1, 2, 0)))
        if self.probability is not None:
            flat = xp.permute_dims(xp.reshape(relative, (q, -1)), (1, 0))
            shares = to_numpy(softmax(flat, factor))
            shape = scores.shape[1], scores.shape[2], shares.shape[1]
            self.probability[numbers, rows, :] = shares.reshape(shape)


def predict_path(
    model: CenterClassifier,
    X: Any,
    ks: list[int],
    *,
    decision: bool = False,
    probability: bool = False,
    in_doubt: Callable[[PathPredictions], np.ndarray] | None = None,
) -> PathPredictions:
    """The predictions of ``model.with_k(k)`` for each k: to rounding, and the labels exactly.

    Parameters
    ----------
    model : CenterClassifier
        Fitted, with a score for every class.
    X : {array, sparse matrix, DataFrame} of shape (n, m)
    ks : list of S ints, ascending, from 1 to m
    decision, probability : bool
        Whether these are asked for.
    in_doubt : callable, optional
        From predictions to a mask of the k where their rounding matters: for these the samples are
        scored as `with_k` does it.
    """
    fitted = FittedModel(model)
    centers = fitted.centers
    checked = check_X(model, X, reset=False)
    check_backend(model, checked, "sparsity_path")
    n, classes = checked.shape[0], len(model.classes_)
    q = 1 if classes == 2 else classes

    def work(ctx: Context) -> tuple[Path, PathPredictions, np.ndarray]:
        block = model._rows(checked, ctx)
        path = score_path(centers, ks, fitted.log_prior, block, ctx)
        found = PathPredictions(
            np.empty((len(ks), n), np.min_scalar_type(classes - 1)),
            np.empty((len(ks), n, q)) if decision else None,
            np.empty((len(ks), n, classes)) if probability else None,
            np.zeros(len(ks)),
            _changes(path),
        )
        row = (q + 1) * len(ks)
        shared = ctx.shared_by_threads(n * row)
        step = shared.budget // (8 * _WORKSPACE * row)
        if path.in_parts and not ctx.backend.sync_is_expensive:
            step = min(step, max(_LEAST_ROWS, _IN_CACHE // row))

        def score(rows: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
            here = block if rows == (0, n) else block.rows(*rows, shared)
            scores, relative, bound, doubt = path.scores(here, shared, probability)
            found.put(slice(*rows), slice(None), scores, relative, fitted.per_score)
            return to_numpy(bound), to_numpy(doubt)

        doubtful = np.zeros(len(ks), np.bool)
        for bound, doubt in shared.map(score, ranges(n, max(1, step))):
            found.bound = np.maximum(found.bound, bound)
            doubtful |= doubt
        return path, found, doubtful

    def again(ctx: Context) -> Array | None:
        prior = fitted.log_prior_of_met
        decisions = [centers.decision(path.support(s), prior) for s in numbers]
        return scores_of_supports(decisions, model._rows(checked, ctx), ctx)

    path, found, doubtful = fitted.run(work)
    if in_doubt is not None:
        doubtful = doubtful | in_doubt(found)
    numbers = np.flatnonzero(doubtful).tolist()
    if numbers:
        scores = fitted.run(again)
        with fitted.backend.current():
            xp = None if scores is None else array_namespace(scores)
            if xp is not None and bool(xp.all(xp.isfinite(scores))):
                found.put(slice(0, n), numbers, scores, scores, fitted.per_score)
                return found
        for s in numbers:
            _score_again(model, X, ks[s], s, found)
    return found


def _changes(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    numbers, parts, signs = zip(
        *((s, to_numpy(x), sign) for s, x, sign in path.changes()), strict=True
    )
    sizes = [len(part) for part in parts]
    number, sign = (np.repeat(np.asarray(x, np.int32), sizes) for x in (numbers, signs))
    return np.concatenate(parts), number, sign


def _score_again(model: CenterClassifier, X: Any, k: int, s: int, found: PathPredictions) -> None:
    """Replace the predictions of one k by those of the model at this k."""
    fitted = FittedModel(model.with_k(k))
    both = [fitted.scores(X, "sparsity_path", relative=relative)[0] for relative in (False, True)]
    with fitted.backend.current():
        scores, relative = (array_namespace(a).permute_dims(a, (1, 0))[:, None, :] for a in both)
        found.put(slice(0, scores.shape[2]), [s], scores, relative, fitted.per_score)
