"""Whether a model that was fitted on a device is the one that was fitted on the CPU."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import clone

import gpucenters

from ..._models import found
from ...arrays.namespace import to_numpy
from ...estimators.fitted import FittedModel
from ..models import MODELS
from .device import Outcome, on_device

_CLOSE = 1e-8  # relative to the largest number
_CLOSE_PROBABILITY = 1e-6  # of log-likelihoods that may be large numbers
_SMALL_BUDGET = "64MB"


class Shape(NamedTuple):
    """Data by name: ``make`` gives X, a host array without negative values, and labels.

    No value is subnormal in float32: CUDA takes such values for zero in most operations.
    """

    name: str
    make: Callable[[], tuple[np.ndarray, np.ndarray]]


def _words() -> tuple[np.ndarray, np.ndarray]:
    """Counts of words after Zipf's law, of two classes: sums are exact, and gains tie."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1_000)
    rate = 8.0 / np.arange(1, 8_001)
    rates = np.stack([rate, rate * rng.choice([0.3, 1.0, 3.0], rate.size, p=[0.1, 0.8, 0.1])])
    return rng.poisson(rates[y]).astype(np.float32), y


def _genes() -> tuple[np.ndarray, np.ndarray]:
    """Few samples of many features, no value zero."""
    rng = np.random.default_rng(1)
    X = rng.lognormal(3, 1, (90, 10_000)).astype(np.float32)
    y = np.arange(90) % 2
    X[y == 1, :20] *= 2.5
    return X, y


def _cells() -> tuple[np.ndarray, np.ndarray]:
    """Eight classes, float64, most values zero."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 8, 1_500)
    X = rng.gamma(2.0, 1.0, (1_500, 1_000)) * (rng.random((1_500, 1_000)) < 0.15)
    X[:, :40] *= 1 + (y[:, None] == np.arange(40) % 8)
    return np.log1p(X), y


def _table() -> tuple[np.ndarray, np.ndarray]:
    """Many samples of few features, of unequal classes; whole numbers with their int type."""
    rng = np.random.default_rng(3)
    y = rng.choice(5, 20_000, p=[0.5, 0.3, 0.15, 0.04, 0.01])
    return rng.poisson(5 + (y[:, None] == np.arange(25) % 5), (20_000, 25)).astype(np.int32), y


def _tiny() -> tuple[np.ndarray, np.ndarray]:
    """The least that can be fitted, with a constant feature and one of zeros."""
    return np.asarray([[1.0, 5.0, 0.0], [2.0, 5.0, 0.0], [4.0, 5.0, 0.0]]), np.asarray([0, 1, 1])


FIRST = (Shape("words", _words), Shape("genes", _genes))
MORE = (Shape("cells", _cells), Shape("table", _table), Shape("tiny", _tiny))
CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "dense": np.asarray,
    "CSR": scipy.sparse.csr_array,
    "CSC": scipy.sparse.csc_array,
}


def check_model(name: str, shape: Shape, device: str) -> Outcome:
    """Fit a model to data in all containers on the device, and compare it with that of the CPU.

    On CUDA the data go up from the host, and are there already. Where the device is the CPU, it
    works with one thread and little memory the second time.
    """
    known = MODELS[name]
    X, y = shape.make()
    X = X[:, : known.max_features]
    model = found(known.kind)()
    outcome = Outcome(note=", ".join(CONTAINERS))
    for container, make in CONTAINERS.items():
        data = make(X)
        expected = clone(model).set_params(device="cpu").fit(data, y)
        for how, fitted, there in _fitted(model, data, y, device):
            case = Case(expected, fitted, data, there)
            outcome.differences += [f"{container}, {how}: {d}" for d in case.differences(y)]
    return outcome


def _fitted(model: Any, X: Any, y: np.ndarray, device: str) -> Iterator[tuple[str, Any, Any]]:
    """(how it was fitted, the model, X where it takes it) of each way to work on the device."""
    if device == "cpu":
        with _one_thread():
            again = clone(model).set_params(device="cpu", memory_budget=_SMALL_BUDGET)
            yield "one thread", again.fit(X, y), X
    else:
        yield "from the host", clone(model).set_params(device=device).fit(X, y), X
        there = on_device(X, device)
        yield "on the device", clone(model).fit(there, y), there


@contextmanager
def _one_thread() -> Iterator[None]:
    """Work on one thread."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


class Case(NamedTuple):
    """A model beside the one that it should be, and X on the host and where the model takes it."""

    expected: Any
    found: Any
    X: Any
    there: Any

    def differences(self, y: np.ndarray) -> list[str]:
        """What differs, for several k; and after batches, and through a file."""
        m = self.X.shape[1]
        found = []
        if not hasattr(self.expected, "with_k"):
            return self.of_this_k() + self.through_a_file()
        for k in sorted({1, min(3, m), max(1, m // 10), m}):
            of_k = Case(self.expected.with_k(k), self.found.with_k(k), self.X, self.there)
            found += [f"k={k}: {d}" for d in of_k.of_this_k()]
        return found + self.through_a_file() + self.in_batches(y)

    def of_this_k(self) -> list[str]:
        expected, found = self.expected, self.found
        differences = self.of_support()
        if differences:
            return differences
        differences += compare("objective", expected.objective_, found.objective_)
        if FittedModel(expected).centers.nested:
            differences += compare("scores", expected.scores_, found.scores_)
        if not np.array_equal(expected.support_, found.support_):
            return differences  # features of equal gain took the place of each other
        differences += self.of_predictions()
        if hasattr(expected, "get_support"):
            columns = _dense(expected.transform(self.X)), _dense(found.transform(self.there))
            if not np.array_equal(*columns):
                differences.append("transform gives other columns")
        return differences

    def of_support(self) -> list[str]:
        """Other features, unless their gains are equal up to rounding."""
        expected, found = self.expected, self.found
        other = np.setxor1d(expected.support_, found.support_)
        if not other.size:
            return []
        if FittedModel(expected).centers.nested:
            gain = to_numpy(expected.scores_)
            apart = np.ptp(gain[other]) / max(gain.max(), np.finfo(float).tiny)
        else:
            apart = abs(expected.objective_ / found.objective_ - 1)
        if apart <= _CLOSE:
            return []
        return [
            f"{other.size // 2} of {len(expected.support_)} selected features are others, whose "
            f"gains are {apart:.1e} apart"
        ]

    def of_predictions(self) -> list[str]:
        """Other classes where the decision is not a tie, and other numbers."""
        values = self.expected.decision_function(self.X)
        differences = compare("decision values", values, self.found.decision_function(self.there))
        ordered = np.sort(values, axis=1) if values.ndim == 2 else None
        margin = np.abs(values) if ordered is None else ordered[:, -1] - ordered[:, -2]
        classes = self.expected.predict(self.X), to_numpy(self.found.predict(self.there))
        is_clear = margin > _CLOSE * np.abs(values).max()
        wrong = int(((classes[0] != classes[1]) & is_clear).sum())
        if wrong:
            differences.append(f"{wrong:,} of {len(margin):,} predictions are others")
        if hasattr(self.expected, "predict_proba"):
            proba = self.expected.predict_proba(self.X), self.found.predict_proba(self.there)
            differences += compare("probabilities", *proba, close=_CLOSE_PROBABILITY)
        return differences

    def through_a_file(self) -> list[str]:
        """The model of the device, saved and loaded on the CPU."""
        file = io.BytesIO()
        self.found.save(file)
        file.seek(0)
        loaded = gpucenters.load(file, device="cpu")
        values = loaded.decision_function(self.X), self.expected.decision_function(self.X)
        return [f"saved and loaded on the CPU: {d}" for d in compare("decision values", *values)]

    def in_batches(self, y: np.ndarray) -> list[str]:
        """The model of the device, fitted in two batches."""
        if not hasattr(self.found, "partial_fit") or not hasattr(self.there, "shape"):
            return []
        model, half = clone(self.found), self.X.shape[0] // 2
        if self.there.__class__.__name__.startswith("csc"):
            return []  # their rows cannot be cut out
        for rows in (slice(0, half), slice(half, None)):
            model.partial_fit(self.there[rows], y[rows], classes=np.unique(y))
        found = compare("objective", self.expected.objective_, model.objective_)
        return [f"fitted in two batches: {d}" for d in found]


def _dense(X: Any) -> np.ndarray:
    return to_numpy(X.toarray() if hasattr(X, "toarray") else X)


def compare(what: str, expected: Any, found: Any, close: float = _CLOSE) -> list[str]:
    """A sentence where numbers differ by more than rounding."""
    expected, found = (np.asarray(to_numpy(x), dtype=float) for x in (expected, found))
    if expected.shape != found.shape:
        return [f"{what} have the shape {found.shape} in place of {expected.shape}"]
    is_same = (expected == found) | (np.isnan(expected) & np.isnan(found))
    finite = np.isfinite(expected)
    size = np.abs(expected[finite]).max(initial=np.finfo(float).tiny)
    with np.errstate(invalid="ignore"):
        apart = np.where(is_same, 0.0, np.abs(expected - found)) / size
    worst = float(np.max(apart, initial=0.0))
    return [] if worst <= close else [f"{what} are {worst:.1e} apart, relative to the largest"]
