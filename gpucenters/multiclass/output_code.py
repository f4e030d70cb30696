"""Binary problems that the bits of random codes of the classes make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import multiclass
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_random_state

from .._docstrings import filled
from ..arrays.backend import Backend
from ..arrays.namespace import is_numpy
from ..arrays.typing import Array
from ..statistics import Statistics
from ._decomposition import Decomposition


@filled
class OutputCodeClassifier(Decomposition, multiclass.OutputCodeClassifier):
    """One binary model for each bit of random codes of the classes.

    `sklearn.multiclass.OutputCodeClassifier`, in one pass over X for a model that class statistics
    determine (every classifier of this package but l1 centers and GMEB): the sums of both sides of
    a bit follow from those of each class. Other estimators, and models with a ``class_weight``,
    which is of each binary problem, are fitted to X once for each bit, by scikit-learn. A sample
    has the class whose code is nearest to its scores.

    Parameters
    ----------
    estimator : estimator
        The binary model.
    code_size : float, default=1.5
        Bits of a code for each class: ``int(n_classes * code_size)`` binary models.
    random_state : int, RandomState instance or None, default=None
        Draws the codes, the same as scikit-learn's.

    Attributes
    ----------
    estimators_ : list of estimators
        The binary models, with labels -1 and 1. Of a bit that all classes share, a classifier whose
        score is the bit.
    code_book_ : ndarray of shape (n_classes, n_bits), float64
        The codes: -1 and 1.

    Notes
    -----
    On what is equal to separate fits to the bit: see `OneVsRestClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from gpucenters import L2CenterClassifier
    >>> from gpucenters.multiclass import OutputCodeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OutputCodeClassifier(L2CenterClassifier(scale="std"), code_size=2, random_state=10)
    >>> round(model.fit(X, y).score(X, y), 2)
    0.97
    """

    def __init__(
        self,
        estimator: Any,
        *,
        code_size: float = 1.5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(estimator, code_size=code_size, random_state=random_state, n_jobs=n_jobs)

    def _attributes(self, classes: np.ndarray) -> dict[str, Any]:
        bits = int(len(classes) * self.code_size)
        if bits == 0:
            raise ValueError(
                f"code_size={self.code_size} gives codes without a bit for {len(classes)} classes: "
                "use a larger one."
            )
        random = check_random_state(self.random_state).uniform(size=(len(classes), bits))
        return {"code_book_": np.where(random > 0.5, 1.0, -1.0)}

    def _problems(self, statistics: Statistics) -> Iterator[Statistics | int]:
        for bits in self.code_book_.T.astype(int):
            labels, sides = np.unique(bits, return_inverse=True)
            if len(labels) == 1:
                yield int(labels[0])
            else:
                yield statistics.merge_classes(sides.tolist(), labels)

    def _predict_codes(self, X: Any, method: str) -> tuple[Array, Backend]:
        scores, backend = self._scores(X, method)
        here = self._joint._fitted.backend
        with here.current():
            if is_numpy(here.xp):  # scikit-learn's own function, for its rounding
                return pairwise_distances_argmin(scores, self.code_book_), backend
            # Codes of -1 and 1 have one norm, so that the nearest has the largest product.
            return here.xp.argmax(scores @ here.asarray(self.code_book_.T), axis=1), backend
