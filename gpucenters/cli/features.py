"""The features of data, for a model that is fitted and for one that was loaded."""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.sparsefuncs import mean_variance_axis

import gpucenters

from ..arrays import context
from ..arrays.inputs import is_on_disk
from ..arrays.namespace import is_sparse, to_numpy
from ..estimators.fitted import FittedModel, reading
from ..readers.data import ReadError, counted

if TYPE_CHECKING:
    from ..readers import Data
    from .models import Choice
    from .options import DataOptions
    from .output import Stages

_COUNTING = 8  # bytes for each character of a text while its words are counted
_SPREAD = 10  # times the median: where a scale helped l2 on 54 of 59 public sets
_PART = 2**22  # values of dense data that are looked at together


@dataclass(frozen=True)
class Features:
    """How samples become features.

    Attributes
    ----------
    vectorizer : vectorizer of scikit-learn, or None
        Of texts.
    names : ndarray of shape (n_features,), or None
        Of the columns of numbers.
    medians : ndarray of shape (n_features,), or None
        What stands for missing numbers.
    """

    vectorizer: Any = None
    names: np.ndarray | None = None
    medians: np.ndarray | None = None

    def of(self, data: Data, source: str, needed: np.ndarray | None = None) -> Any:
        """The features of data; of columns that are found by name, those that are needed."""
        if data.is_text != (self.vectorizer is not None):
            has, takes = ("texts", "numbers") if data.is_text else ("numbers", "texts")
            raise ReadError(source, f"it holds {has}, and the model takes {takes}.")
        if self.vectorizer is not None:
            return self.vectorizer.transform(data.X)
        X = data.X
        if self.names is not None:
            every = np.arange(len(self.names)) if needed is None else needed
            X = _aligned(data, self.names, every, source)
        return X if self.medians is None else _filled(X, self.medians)


def prepare(
    data: Data, source: str, reading: DataOptions, vectorizer: Any, choice: Choice, stages: Stages
) -> tuple[Any, Any, Features]:
    """(the model that suits data, their features, and how those of others are had)."""
    estimator = choice.model(_kind_of(data))
    X, medians = data.X, None
    if reading.missing == "median":
        medians = _medians_of(data, source, can_drop=reading.can_drop(source))
        X = _filled(X, medians)
    if data.is_text:
        with stages("vectorising", by=counter(vectorizer)):
            X = _count_words(vectorizer, X, source)
    if choice.is_plain_l2 and _spread(X) >= _SPREAD:
        warnings.warn(
            "the standard deviations of the features differ by orders of magnitude, and the "
            "features of the largest decide: give --scale pooled, or --scale none if that is "
            "right.",
            stacklevel=2,
        )
    return estimator, X, Features(vectorizer if data.is_text else None, data.feature_names, medians)


def counter(vectorizer: Any) -> str:
    """Whose loop turns texts into counts."""
    by_arrow = getattr(vectorizer, "counts_by_arrow", lambda: False)
    return "PyArrow" if by_arrow() else "scikit-learn"


def _kind_of(data: Data) -> str:
    """The kind of data: counts are non-negative whole numbers of which half or more are zero.

    Of data on disk the first rows tell.
    """
    if data.is_text:
        return "texts"
    X, rows = data.X, max(1, _PART // max(1, data.X.shape[1]))
    if is_on_disk(X):
        X = X[:rows]
    values, rows = (X.data, _PART) if is_sparse(X) else (X, rows)
    nonzero = 0
    for start in range(0, len(values), rows):
        part = values[start : start + rows]
        if not np.all((part >= 0) & (part == np.floor(part))):
            return "measurements"
        nonzero += int(np.count_nonzero(part))
    return "counts" if 2 * nonzero <= math.prod(X.shape) else "measurements"


def _spread(X: Any) -> float:
    """The largest standard deviation of a feature, divided by the median of all that vary."""
    if is_on_disk(X):
        return 1.0  # another pass over it would take as long as the fit
    if is_sparse(X):
        variance = mean_variance_axis(X, axis=0)[1]
    else:
        columns = max(1, _PART // len(X))
        parts = range(0, X.shape[1], columns)
        with np.errstate(over="ignore", invalid="ignore"):  # the fit names such features
            variance = np.concatenate(
                [np.var(X[:, i : i + columns], axis=0, dtype=np.float64) for i in parts]
            )
    varying = np.sqrt(variance[variance > 0])
    return float(varying.max() / np.median(varying)) if len(varying) else 1.0


def _medians_of(data: Data, source: str, *, can_drop: bool) -> np.ndarray:
    """The medians of the features, (m,), without what is missing."""
    X = data.X
    if not isinstance(X, np.ndarray):
        raise ReadError(source, "--missing median is for dense features, which are not in it.")
    empty = np.isnan(X).all(axis=0)
    if empty.any():
        at = int(empty.argmax())
        name = at if data.feature_names is None else repr(str(data.feature_names[at]))
        how = " by --drop" if can_drop else ""
        what = f"the column {name} has no value, and so no median: leave it out{how}."
        raise ReadError(source, what)
    return np.nanmedian(X, axis=0)


def _filled(X: Any, medians: np.ndarray) -> Any:
    """Dense features with medians in place of NaN."""
    return np.where(np.isnan(X), medians, X) if isinstance(X, np.ndarray) else X


def _count_words(vectorizer: Any, texts: list[str], source: str) -> Any:
    """The features of the texts that a vectorizer is fitted to.

    Where the memory that is free would most likely not do, Linux ends what takes more, so that an
    error comes before. Other systems swap, and do not say what is free.
    """
    size, free = sum(map(len, texts)), context.free_memory()
    if _COUNTING * size > free and sys.platform == "linux":
        raise ReadError(
            source,
            f"there are {size / 1e6:,.0f} million characters, whose words take about "
            f"{_COUNTING * size / 1e9:.1f} GB to count, and {free / 1e9:.1f} GB are free: read it "
            "in parts by --vectorizer hashing --batch-rows 10000.",
        )
    return vectorizer.fit_transform(texts)


def _aligned(data: Data, known: Any, needed: np.ndarray, source: str) -> Any:
    """The columns of a model in its order, by their names; those that it does not need may be 0."""
    X, given = data.X, data.feature_names
    if given is None or list(known) == list(given):
        return X
    place = {name: i for i, name in enumerate(given.tolist())}
    names = [known[i] for i in needed.tolist()]
    absent = [name for name in names if name not in place]
    if absent:
        what = f"{counted(len(absent), 'column')} of the {len(names):,} that the model takes"
        raise ReadError(source, f"it lacks {what}, the first of them {str(absent[0])!r}.")
    for whose, of in (("the data have", given.tolist()), ("the model has", list(known))):
        times = Counter(of)
        if twice := [str(name) for name in names if times[name] > 1]:
            what = f"{whose} several columns {twice[0]!r}, which the model takes."
            raise ReadError(source, what)
    if is_on_disk(X):
        raise ReadError(source, "its columns are not those of the model, and not in memory.")
    columns = np.asarray([place[name] for name in names])
    if scipy.sparse.issparse(X):
        ones = np.ones(len(columns), X.dtype)
        return X @ scipy.sparse.csr_array((ones, (columns, needed)), shape=(X.shape[1], len(known)))
    found = np.zeros((len(X), len(known)), X.dtype)
    found[:, needed] = X[:, columns]
    return found


@dataclass(frozen=True)
class Trained:
    """A fitted model.

    Attributes
    ----------
    classifier : estimator
        A model of this package.
    vectorizer : vectorizer of scikit-learn, or None
    second : tuple of estimators of scikit-learn
        What predicts from the features that the model selects, where it does not predict itself.
    """

    classifier: Any
    vectorizer: Any = None
    second: tuple[Any, ...] = ()

    @classmethod
    def load(cls, path: str, device: str | None = None) -> Trained:
        """The model of a file, or of stdin where the path is "-"."""
        found = gpucenters.load(sys.stdin.buffer if path == "-" else path, device)
        if not isinstance(found, Pipeline):
            return cls(found)
        steps = [step for _, step in found.steps]
        vectorizer = steps.pop(0) if hasattr(steps[0], "build_analyzer") else None
        return cls(steps[0], vectorizer, tuple(steps[1:]))

    @property
    def predictor(self) -> Any:
        """What predicts from features: the model, alone or with the steps behind it."""
        return make_pipeline(self.classifier, *self.second) if self.second else self.classifier

    @property
    def n_features(self) -> int | None:
        """The number of columns that data must have; None for texts."""
        return None if self.vectorizer is not None else self.classifier.n_features_in_

    @property
    def selects(self) -> bool:
        """Whether the model selects features; a decomposition has binary models that do."""
        return hasattr(self.classifier, "support_")

    def with_k(self, k: int | float | str) -> Trained:
        """The model at another k, without steps that were fitted to this one."""
        return replace(self, classifier=self.classifier.with_k(k), second=())

    def features(self, data: Data, source: str) -> Any:
        """The features of data; the source is their name, for errors."""
        # Names are compared here, and arrays have none for scikit-learn to compare.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        known = getattr(self.classifier, "feature_names_in_", None)
        made = Features(self.vectorizer, known, self.reading.get("medians"))
        return made.of(data, source, self._needed())

    @property
    def reading(self) -> dict[str, Any]:
        """How the data of the model were read: see `DataOptions.completed`."""
        known = reading(self.classifier)
        return known if self.vectorizer is None else known | {"text": known.get("text") or "text"}

    @property
    def wanted(self) -> list[str] | None:
        """The names of the features that predictions depend on, where the model knows them."""
        known = getattr(self.classifier, "feature_names_in_", None)
        return None if known is None else known[self._needed()].tolist()

    def _needed(self) -> np.ndarray:
        """The features that predictions depend on."""
        model = self.classifier
        if hasattr(model, "get_support"):
            centers = FittedModel(model).centers
            if not getattr(centers, "kept", centers).reads_all_features:
                return to_numpy(model.support_)
        return np.arange(model.n_features_in_)

    def ranking(self) -> list[int]:
        """Positions in the support of the selected features, best first."""
        selection = FittedModel(self.classifier).selection
        return np.searchsorted(to_numpy(selection.support), to_numpy(selection.ranking)).tolist()

    def names(self) -> np.ndarray:
        """Names of the selected features, in the order of the support."""
        if hasattr(self.vectorizer, "get_feature_names_out"):
            words = self.vectorizer.get_feature_names_out()
            return np.asarray(self.classifier.get_feature_names_out(words), dtype=object)
        if hasattr(self.classifier, "feature_names_in_") or not hasattr(
            self.classifier, "get_support"
        ):
            return np.asarray(self.classifier.get_feature_names_out(), dtype=object)
        first = int(self.reading.get("zero_based", True) is not True)  # as the file counts
        columns = self.classifier.support_ + first
        return np.asarray([f"column {i}" for i in columns], dtype=object)
