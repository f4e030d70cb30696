"""Parameters of the wrong type are refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_data import COUNTS, HALVES, NORMAL

from gpucenters import (
    L2CenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (L2CenterClassifier(priors={0.4: 0, 0.6: 1}), "priors"),
        (L2CenterClassifier(scale=np.asarray(["std"])), "scale"),
        (L2CenterClassifier(memory_budget="9" * 400 + "GB"), "memory_budget"),
    ],
    ids=["priors", "scale", "budget"],
)
def test_fit_names_a_parameter_of_the_wrong_type(model: Any, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        model.fit(NORMAL, HALVES)


@pytest.mark.parametrize("fit_prior", ["no", 1, None])
def test_bernoulli_fit_refuses_an_invalid_fit_prior(fit_prior: Any) -> None:
    with pytest.raises(ValueError, match=f"fit_prior={fit_prior!r}"):
        SparseBernoulliNB(fit_prior=fit_prior).fit(COUNTS, HALVES)


@pytest.mark.parametrize(
    "alpha", [10**400, np.True_, [1.0], "1"], ids=["huge", "bool", "list", "str"]
)
def test_multinomial_fit_refuses_an_invalid_alpha(alpha: Any) -> None:
    with pytest.raises(ValueError, match="alpha="):
        SparseMultinomialNB(alpha=alpha).fit(COUNTS, HALVES)
