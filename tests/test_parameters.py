"""Parameters of the wrong type are refused by name."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from small_data import COUNTS, HALVES, KINDS, NORMAL

from gpucenters import (
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)
from gpucenters.solvers import bernoulli_nb, l2_centers

OTHERS = [MahalanobisCenterClassifier, SparseBernoulliNB, SparseMultinomialNB]


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


BEYOND = [10**400, -(10**400), Fraction(10**400, 3)]


@pytest.mark.parametrize("value", BEYOND, ids=["int", "negative", "Fraction"])
@pytest.mark.parametrize("kind", [*KINDS, *OTHERS])
def test_fit_names_a_parameter_with_a_number_beyond_float64(kind: Any, value: Any) -> None:
    for name in kind().get_params():
        values = [value]
        if name == "verbose" or (name == "k" and value == 10**400):
            continue  # any number of features above those of X means all
        if name in ("priors", "class_prior", "covariance"):
            values += [[value, 0.5], np.asarray([value, 0.5], dtype=object)]
        for given in values:
            with pytest.raises(ValueError, match=name):
                kind(**{name: given}).fit(COUNTS, HALVES)


def test_solvers_name_a_number_beyond_float64() -> None:
    for value in BEYOND:
        for name in ("alpha", "binarize"):
            with pytest.raises(ValueError, match=f"{name}="):
                bernoulli_nb(COUNTS, HALVES, **{name: value})
        with pytest.raises(ValueError, match="sample_weight"):
            l2_centers(COUNTS, HALVES, sample_weight=value)
    with pytest.raises(ValueError, match="n_classes="):
        l2_centers(COUNTS, HALVES, n_classes=10**400)


@pytest.mark.parametrize("kind", [*KINDS, *OTHERS])
def test_verbose_is_a_bool_or_a_whole_number(kind: Any, capsys: Any) -> None:
    for verbose in (-1, 0.5, "yes", None, [], np.asarray([1, 2])):
        with pytest.raises(ValueError, match=r"verbose=.* is not valid"):
            kind(verbose=verbose).fit(COUNTS, HALVES)
    assert capsys.readouterr().out == ""
    for verbose in (True, 2, np.True_, np.int8(1)):
        kind(verbose=verbose).fit(COUNTS, HALVES)
        assert "40 x 6" in capsys.readouterr().out


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
