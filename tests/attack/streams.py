"""Streams of batches with failures, copies, pickles and refits between them, against one fit."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import scipy.sparse as sp
from bits import bits
from sklearn.base import clone

from gpucenters import (
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)

from .report import Report

PROBLEMS = 2000
MODELS = [
    L2CenterClassifier(2),
    L2CenterClassifier(2, scale="std"),
    L2CenterClassifier(2, scale="pooled", priors="empirical"),
    SparseBernoulliNB(2),
    SparseMultinomialNB(2),
    MahalanobisCenterClassifier(2, shrinkage=0.2),
    MahalanobisCenterClassifier(2, shrinkage="ledoit-wolf"),
]
KINDS = [np.asarray, sp.csr_array, sp.csc_array, np.asfortranarray, sp.coo_matrix]


WRONG = ["nan", "infinity", "narrow", "wide", "label", "negative weight", "nan weight", "long y"]
WRONG += ["empty", "classes", "damaged", "huge", "complex", "strings"]


class Stream:
    """Rows, labels and weights in batches, the model that gets them, and what was done to it."""

    def __init__(self, rng: np.random.Generator, report: Report) -> None:
        self.rng, self.report = rng, report
        self.blank = MODELS[rng.integers(len(MODELS))]
        K, m = int(rng.integers(2, 5)), int(rng.choice([2, 3, 6, 40, 3000]))
        if isinstance(self.blank, MahalanobisCenterClassifier):
            m = min(m, 6)
        n = int(rng.integers(6 * K, 80))
        y = rng.permutation(np.append(np.repeat(np.arange(K), 4), rng.integers(0, K, n - 4 * K)))
        self.integer = bool(rng.random() < 0.5)
        X = rng.poisson(1.5, (n, m)) if self.integer else np.abs(rng.standard_normal((n, m)))
        X = X * (rng.random((n, m)) < rng.choice([0.02 if m > 1000 else 0.3, 0.7, 1]))
        X[:, 0] += y
        if rng.random() < 0.3:
            X = X + rng.choice([10, 1000]) * (X != 0)
        self.X, self.classes = X.astype(np.float64), np.arange(K) * 3 - 1
        if rng.random() < 0.4:
            self.classes = np.array([f"class {c}" for c in range(K)])
        self.y = self.classes[y]
        self.weights = None
        if rng.random() < 0.4:
            self.weights = rng.integers(0, 3, n).astype(np.float64)
            for c in range(K):
                self.weights[np.flatnonzero(y == c)[:3]] = 1
        cuts = np.unique(rng.integers(1, n, rng.integers(1, 6)))
        self.parts = np.split(np.arange(n), cuts)
        self.kind = rng.integers(-1, len(KINDS))  # -1: any for each batch
        self.model, self.seen, self.log = clone(self.blank), np.arange(0), []
        self.kept: list[tuple[Any, Any]] = []  # models left behind, and their bits

    def batch(self, rows: np.ndarray) -> tuple[Any, np.ndarray, Any]:
        kind = self.kind if self.kind >= 0 else self.rng.integers(len(KINDS))
        s = None if self.weights is None else self.weights[rows]
        return KINDS[kind](self.X[rows]), self.y[rows], s

    def state(self, model: Any) -> Any:
        if not hasattr(model, "_fitted"):
            return None
        return [bits(model._fitted.statistics), model.classes_.tolist(), model.n_features_in_]

    def fail(self, kind: str, *more: object) -> None:
        self.report.fail(kind, f"# {self.blank!r}: {self.log}", *more)

    def add(self, model: Any, rows: np.ndarray) -> None:
        X, y, s = self.batch(rows)
        model.partial_fit(X, y, classes=self.classes, sample_weight=s)

    def refused(self, rows: np.ndarray) -> None:
        """A batch that is wrong in one way."""
        what = str(self.rng.choice(WRONG))
        self.log.append(f"refused {what}")
        X, (_, y, s), classes = self.X[rows].copy(), self.batch(rows), self.classes
        s = np.ones(len(y)) if s is None else s.copy()
        if what in ("nan", "infinity"):
            X[-1, -1] = np.nan if what == "nan" else -np.inf
        elif what in ("narrow", "wide"):
            X = X[:, :-1] if what == "narrow" else np.c_[X, X[:, :1]]
        elif what == "label":
            y = np.append(y[:-1], ["other"]) if y.dtype.kind == "U" else np.append(y[:-1], [77])
        elif what in ("negative weight", "nan weight"):
            s[-1] = -1 if what == "negative weight" else np.nan
        elif what == "long y":
            y = np.append(y, y[:1])
        elif what == "empty":
            X, y, s = X[:0], y[:0], s[:0]
        elif what == "classes":
            classes = classes[:-1] if len(classes) > 2 else np.append(classes, classes[:1])[:1]
        elif what == "huge":
            X[0, 0] = 1e300
        X = self.rng.choice([np.asarray, sp.csr_array, sp.csc_array])(X) if len(X) else X
        if what == "damaged":
            X = sp.csr_array(self.X[rows] + 1)
            X.indices[-1] = self.X.shape[1] + 5
        elif what in ("complex", "strings"):
            X = self.X[rows].astype(complex if what == "complex" else "U5")
        first = not hasattr(self.model, "_fitted")
        if first and what in ("narrow", "wide", "classes"):
            return
        if what == "huge" and isinstance(self.blank, SparseBernoulliNB | SparseMultinomialNB):
            return
        before = self.state(self.model)
        try:
            self.model.partial_fit(X, y, classes=classes, sample_weight=s)
            self.fail(f"accepted: {what}")
        except (ValueError, TypeError):
            self.report.count("refused batches")
        if self.state(self.model) != before:
            self.fail(f"changed by a refused batch: {what}")

    def other(self, rows: np.ndarray) -> None:
        """Something else between two batches."""
        what = self.rng.choice(
            ["copy", "deepcopy", "pickle", "with_k", "to", "ask", "refit", "k", "clone", "merge"]
        )
        met = self.y[self.seen[self.positive(self.seen)]]
        ready = len(set(met)) == len(self.classes) and len(met) >= 3 * len(self.classes)
        if not hasattr(self.model, "_fitted") or (not ready and what in ("with_k", "ask", "refit")):
            return
        self.log.append(str(what))
        before, old = self.state(self.model), self.model
        if what in ("copy", "deepcopy", "pickle", "with_k", "to"):
            new = {
                "copy": copy.copy,
                "deepcopy": copy.deepcopy,
                "pickle": lambda model: pickle.loads(pickle.dumps(model)),
                "with_k": lambda model: model.with_k(1),
                "to": lambda model: model.to("cpu"),
            }[what](old)
            if self.state(new) != before:
                self.fail(f"{what} differs")
            if self.rng.random() < 0.5:  # go on with the new one
                self.model, self.kept = new, [*self.kept, (old, before)]
                if what == "with_k":
                    new.set_params(k=2)
            else:
                self.kept.append((new, before))
                if self.rng.random() < 0.5:
                    self.add(new, rows)
                    self.kept[-1] = (new, self.state(new))
        elif what == "ask":
            model = self.model
            _ = [model.predict(self.X[rows]), model.objective_, model.coef_, model.scores_]
        elif what == "refit":
            X, y, s = self.batch(self.seen)
            try:
                self.model.fit(X, y, sample_weight=s)
            except ValueError as error:
                self.fail("refit", error)
            return
        elif what == "k":
            self.model.set_params(k=int(self.rng.integers(1, self.X.shape[1] + 1))).set_params(k=2)
        elif what == "clone":
            if hasattr(clone(self.model), "_fitted"):
                self.fail("a clone is fitted")
        else:
            self.merge()
        if self.state(old) != before:
            self.fail(f"changed by {what}")

    def positive(self, rows: np.ndarray) -> np.ndarray:
        return np.ones(len(rows), bool) if self.weights is None else self.weights[rows] > 0

    def merge(self) -> None:
        """Statistics of the rows seen, in shards merged in any order, are those of the model."""
        shards = []
        for rows in np.array_split(self.rng.permutation(self.seen), self.rng.integers(1, 4)):
            if len(rows):
                X, y, s = self.batch(rows)
                part = self.model.statistics(X, y, classes=self.classes, sample_weight=s)
                shards.append(pickle.loads(pickle.dumps(part)) if self.rng.random() < 0.3 else part)
        total = shards.pop()
        for part in shards:
            before = bits(part)
            total.merge(part)
            if bits(part) != before:
                self.fail("a merge changes its argument")
        mine = self.model._fitted.statistics
        if total.count != mine.count or not np.allclose(total.total, mine.total, rtol=1e-9):
            self.fail("merged statistics differ")

    def compare(self) -> None:
        whole = clone(self.blank)
        X = self.X if self.kind < 0 else KINDS[self.kind](self.X)
        whole.fit(X, self.y, sample_weight=self.weights)
        found = self.model
        if not np.allclose(found.scores_, whole.scores_, rtol=1e-7, atol=1e-9):
            self.fail("scores", np.abs(found.scores_ - whole.scores_).max())
        sums = self.blank.__class__ in (SparseBernoulliNB, SparseMultinomialNB)
        sums = sums or (isinstance(self.blank, L2CenterClassifier) and self.blank.scale is None)
        if self.integer and sums and not np.array_equal(found.scores_, whole.scores_):
            self.fail("bits of the scores of integers")
        if abs(found.objective_ - whole.objective_) > 1e-7 * abs(whole.objective_):
            self.fail("objective", found.objective_, whole.objective_)
        if found.support_.tolist() == whole.support_.tolist():
            ours, theirs = (model.decision_function(self.X) for model in (found, whole))
            if not np.allclose(ours, theirs, rtol=1e-6, atol=1e-7 * np.abs(theirs).max()):
                self.fail("decisions", np.abs(ours - theirs).max())


def attack(rng: np.random.Generator, report: Report) -> None:
    stream = Stream(rng, report)
    for rows in stream.parts:
        for _ in range(rng.integers(0, 4)):
            if rng.random() < 0.5:
                stream.refused(rows)
            else:
                stream.other(rows)
        stream.log.append(f"batch of {len(rows)}")
        stream.add(stream.model, rows)
        stream.seen = np.concatenate([stream.seen, rows])
    report.count("streams")
    for model, state in stream.kept:
        if stream.state(model) != state:
            stream.fail("a model that was left behind changed")
    stream.compare()
