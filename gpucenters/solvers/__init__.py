"""The mathematics: pure functions and frozen dataclasses, written once against the array API.

Arrays and integer class codes go in, `Centers` come out; no scikit-learn is needed.
"""

from .bernoulli import BernoulliCenters, bernoulli_nb
from .centers import Centers, SparseCenters
from .gaussian import GaussianCenters, gaussian_nb
from .gmeb.hyperplanes import gmeb_certificate, gmeb_hyperplanes
from .gmeb.problem import worst_case_l1, worst_case_l1_dual
from .l1 import L1Centers, l1_centers
from .l2 import L2Centers, l2_centers
from .multinomial import MultinomialCenters, MultinomialSelection, multinomial_nb
from .poisson import PoissonCenters, poisson_nb
from .selection import (
    Selection,
    UninformativeFeaturesWarning,
    ranking_key,
    resolve_k,
    select,
)
from .shrunken import ShrunkenCenters, shrunken_centroids

__all__ = [
    "BernoulliCenters",
    "Centers",
    "GaussianCenters",
    "L1Centers",
    "L2Centers",
    "MultinomialCenters",
    "MultinomialSelection",
    "PoissonCenters",
    "Selection",
    "ShrunkenCenters",
    "SparseCenters",
    "UninformativeFeaturesWarning",
    "bernoulli_nb",
    "gaussian_nb",
    "gmeb_certificate",
    "gmeb_hyperplanes",
    "l1_centers",
    "l2_centers",
    "multinomial_nb",
    "poisson_nb",
    "ranking_key",
    "resolve_k",
    "select",
    "shrunken_centroids",
    "worst_case_l1",
    "worst_case_l1_dual",
]
