"""A model that was loaded, with the vectorizer of its texts and the steps behind it."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline

import gpucenters

from ..arrays.namespace import to_numpy
from ..readers.errors import counted

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
        if data.is_text != (self.vectorizer is not None):
            has, takes = ("texts", "numbers") if data.is_text else ("numbers", "texts")
            raise ValueError(f"{source} holds {has}, and the model takes {takes}.")
        if self.vectorizer is not None:
            return self.vectorizer.transform(data.X)
        # Names are compared here, and arrays have none for scikit-learn to compare.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        known = getattr(self.classifier, "feature_names_in_", None)
        given = data.feature_names
        if known is not None and given is not None and list(known) != list(given):
            at = next(
                (i for i, pair in enumerate(zip(known, given, strict=False)) if pair[0] != pair[1]),
                min(len(known), len(given)),
            )
            raise ValueError(
                f"{source} has {counted(len(given), 'column')} and the model {len(known)}: from "
                f"column {at + 1} on they are not the same, or not in the same order."
            )
        return data.X

    def ranking(self) -> list[int]:
        """Positions in the support of the selected features, best first."""
        selection = self.classifier._selection()
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
        return np.asarray([f"column {i}" for i in self.classifier.support_], dtype=object)
