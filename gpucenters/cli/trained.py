"""A model that was loaded, with the vectorizer of its texts and the steps behind it."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.pipeline import Pipeline, make_pipeline

import gpucenters

from ..arrays.namespace import to_numpy
from ..arrays.on_disk import is_on_disk
from ..estimators.fitted import FittedModel
from ..readers.data import counted

if TYPE_CHECKING:
    from ..readers import Data


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
        """The features of data.

        Parameters
        ----------
        data : Data
        source : str
            Its name, for errors.
        """
        source = "standard input" if source == "-" else source
        if data.is_text != (self.vectorizer is not None):
            has, takes = ("texts", "numbers") if data.is_text else ("numbers", "texts")
            raise ValueError(f"{source} holds {has}, and the model takes {takes}.")
        if self.vectorizer is not None:
            return self.vectorizer.transform(data.X)
        # Names are compared here, and arrays have none for scikit-learn to compare.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        known, X = getattr(self.classifier, "feature_names_in_", None), data.X
        if known is not None:
            X = aligned(data, known, self._needed(), source)
        medians = self.reading.get("medians")
        return X if medians is None else filled(X, medians)

    @property
    def reading(self) -> dict[str, Any]:
        """How the data of the model were read: see `DataOptions.like`."""
        known = getattr(self.classifier, "_reading", {})
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


def aligned(data: Data, known: Any, needed: np.ndarray, source: str) -> Any:
    """The columns of a model in its order, by their names; those that it does not need may be 0.

    Parameters
    ----------
    data : Data
    known : sequence of str
        The names of the columns.
    needed : ndarray of int
        Those that must be there.
    source : str
        The name of the data, for errors.
    """
    X, given = data.X, data.feature_names
    if given is None or list(known) == list(given):
        return X
    place = {name: i for i, name in enumerate(given.tolist())}
    names = [known[i] for i in needed.tolist()]
    absent = [name for name in names if name not in place]
    if absent:
        raise ValueError(
            f"{source} lacks {counted(len(absent), 'column')} of the {len(names):,} that the model "
            f"takes, the first of them {str(absent[0])!r}."
        )
    for whose, of in ((source, given.tolist()), ("the model", list(known))):
        times = Counter(of)
        if twice := [str(name) for name in names if times[name] > 1]:
            raise ValueError(f"{whose} has several columns {twice[0]!r}, which the model takes.")
    if is_on_disk(X):
        raise ValueError(f"{source} has other columns than the model, and is not in memory.")
    columns = np.asarray([place[name] for name in names])
    if scipy.sparse.issparse(X):
        ones = np.ones(len(columns), X.dtype)
        return X @ scipy.sparse.csr_array((ones, (columns, needed)), shape=(X.shape[1], len(known)))
    found = np.zeros((len(X), len(known)), X.dtype)
    found[:, needed] = X[:, columns]
    return found


def medians_of(data: Data, source: str, *, can_drop: bool) -> np.ndarray:
    """The medians of the features, (m,), without what is missing."""
    X = data.X
    if not isinstance(X, np.ndarray):
        raise ValueError(f"--missing median is for dense features, which {source} does not hold.")
    empty = np.isnan(X).all(axis=0)
    if empty.any():
        at = int(empty.argmax())
        name = at if data.feature_names is None else repr(str(data.feature_names[at]))
        how = " by --drop" if can_drop else ""
        raise ValueError(
            f"{source}: the column {name} has no value, and so no median: leave it out{how}."
        )
    return np.nanmedian(X, axis=0)


def filled(X: Any, medians: np.ndarray) -> Any:
    """Dense features with medians in place of NaN."""
    return np.where(np.isnan(X), medians, X) if isinstance(X, np.ndarray) else X
