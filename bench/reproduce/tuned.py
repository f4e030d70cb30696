"""Second stages whose ridge is chosen on the training part."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, StandardScaler
from sklearn.svm import LinearSVC

from gpucenters import LogRatioScaler

#: What a second stage reads of the counts of the selected words, and by what C is multiplied there.
INPUTS: dict[str, tuple[list[Any], float]] = {
    # (of unit variance each, of which few are rare: a stronger ridge.)
    "counts": ([StandardScaler(with_mean=False)], 0.01),
    "presence": ([Binarizer()], 1.0),
    "TF-IDF": ([TfidfTransformer(sublinear_tf=True)], 10.0),
    "log ratios": ([Binarizer(), LogRatioScaler()], 1.0),
    "log ratios, 1 + log(count)": (
        [TfidfTransformer(norm=None, use_idf=False, sublinear_tf=True), LogRatioScaler()],
        1.0,
    ),
}
GRID = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
#: Second stages, and by what C is multiplied (the squared hinge loss is steeper).
STAGES: dict[str, tuple[Any, float]] = {
    "logistic": (LogisticRegression(max_iter=300), 1.0),
    "SVM": (LinearSVC(dual=False, tol=1e-2, max_iter=300), 0.1),
}


def tuned(inputs: str, stage: str, X: Any, y: np.ndarray) -> GridSearchCV:
    """A fitted pipeline on counts; C is that of best accuracy on one validation split of 20%."""
    (steps, factor), (model, also) = INPUTS[inputs], STAGES[stage]
    grid = [C * factor * also for C in GRID]
    search = GridSearchCV(
        make_pipeline(*steps, model),
        {f"{type(model).__name__.lower()}__C": grid},
        cv=StratifiedShuffleSplit(1, test_size=0.2, random_state=0),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that has not converged is used as it is
        return search.fit(X, y)
