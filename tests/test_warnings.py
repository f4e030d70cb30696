"""Warnings name the line of the caller."""

from __future__ import annotations

import numpy as np
import pytest
from small_data import COUNTS, HALVES, NORMAL

from gpucenters import (
    L2CenterClassifier,
    SparseMultinomialNB,
)
from gpucenters.solvers import select


def test_warnings_name_the_file_of_the_caller() -> None:
    model = L2CenterClassifier().fit(NORMAL, HALVES)
    for call in (
        lambda: L2CenterClassifier(k=9).fit(NORMAL, HALVES),
        lambda: L2CenterClassifier(k=2).fit(0 * NORMAL, HALVES),
        lambda: SparseMultinomialNB(k=3).fit(0 * COUNTS + 1, HALVES),
        lambda: model.with_k(9),
        lambda: select(np.zeros(3), 2),
    ):
        with pytest.warns(UserWarning, match="k=") as seen:
            call()
        assert {w.filename for w in seen} == {__file__}
