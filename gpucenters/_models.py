"""The models, each declared once.

Model files, the command line with its checks, the pages of the reference, and the tests read these
tables. Nothing is imported before it is asked for: ``gpucenters --help`` starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

#: The classifiers of many classes from binary models, as paths inside this package.
DECOMPOSITIONS = (
    "multiclass.codes.OneVsOneClassifier",
    "multiclass.codes.OneVsRestClassifier",
    "multiclass.codes.OutputCodeClassifier",
    "multiclass.nested_dichotomies.NestedDichotomiesClassifier",
)


class Option(NamedTuple):
    """A parameter of models on the command line; of a switch, ``values`` is None."""

    help: str
    values: str | None


class Model(NamedTuple):
    """A model.

    Attributes
    ----------
    kind : str
        Its class, as a path inside this package, which `found` takes.
    holds : tuple of str
        The dataclasses, by their paths, that a fitted one holds besides those of all models.
    name : str
        On the command line; "" where it has none.
    options : tuple of str
        Its parameters that are not those of all models, in `OPTIONS`.
    max_features : int or None
        Up to which ``gpucenters check`` fits it.
    has_k : bool
        Whether the number of features is chosen beforehand.
    has_gains : bool
        Whether each feature has a gain of its own, which permuted labels change.
    """

    kind: str
    holds: tuple[str, ...] = ()
    name: str = ""
    options: tuple[str, ...] = ()
    max_features: int | None = None
    has_k: bool = True
    has_gains: bool = True

    @property
    def class_name(self) -> str:
        """The name of its class, by which model files know it: it must stay."""
        return self.kind.rpartition(".")[2]


_BAYES = ("alpha", "fit_prior", "class_prior", "class_weight")

MODELS = (
    Model(
        "estimators.centers.L2CenterClassifier",
        holds=("solvers.l2.L2Centers",),
        name="l2",
        options=("scale", "priors"),
    ),
    Model(
        "estimators.centers.L1CenterClassifier",
        holds=("solvers.l1.L1Centers",),
        name="l1",
        options=("scale",),
    ),
    Model(
        "estimators.mahalanobis.MahalanobisCenterClassifier",
        holds=("solvers.mahalanobis.MahalanobisCenters", "solvers.covariance.Shrinkage"),
        name="mahalanobis",
        options=("covariance", "shrinkage", "priors"),
        max_features=200,
        has_gains=False,
    ),
    Model(
        "estimators.naive_bayes.SparseBernoulliNB",
        holds=("solvers.bernoulli.BernoulliCenters", "blocks.transforms.Binarized"),
        name="bernoulli",
        options=(*_BAYES, "binarize"),
    ),
    Model(
        "estimators.naive_bayes.SparseMultinomialNB",
        holds=(
            "solvers.multinomial.MultinomialCenters",
            "solvers.multinomial.MultinomialSelection",
            "blocks.transforms.NotNegative",
        ),
        name="multinomial",
        options=(*_BAYES, "tol"),
    ),
    Model(
        "estimators.poisson.SparsePoissonNB",
        holds=("solvers.poisson.PoissonCenters", "blocks.transforms.NotNegative"),
        name="poisson",
        options=(*_BAYES, "exposure", "scale"),
    ),
    Model(
        "estimators.gaussian.SparseGaussianNB",
        holds=("solvers.gaussian.GaussianCenters",),
        name="gaussian",
        options=("pooling", "var_smoothing", "ddof", "priors", "class_weight"),
    ),
    Model(
        "estimators.shrunken.ShrunkenCentroidClassifier",
        holds=("solvers.shrunken.ShrunkenCenters",),
        name="shrunken",
        options=("threshold", "offset", "priors", "class_weight"),
    ),
    Model(
        "estimators.gmeb.GMEBClassifier",
        holds=("solvers.gmeb.hyperplanes.Hyperplanes",),
        name="gmeb",
        options=("r_plus", "r_minus", "threshold", "tol", "max_iter", "class_weight"),
        max_features=100,
        has_k=False,
        has_gains=False,
    ),
    Model("estimators.gmeb.GMEBClassifierCV", has_k=False, has_gains=False),
)

OPTIONS = {
    "scale": Option(
        "Divide features by a standard deviation; Poisson: by the dispersion.",
        "std|pooled|dispersion|none",
    ),
    "priors": Option("Class priors of centers.", "uniform|empirical|P,P,..."),
    "covariance": Option("Of Mahalanobis centers.", "pooled|total"),
    "shrinkage": Option("Of the covariance.", "auto|ledoit-wolf|none|NUMBER"),
    "alpha": Option("Additive smoothing of naive Bayes.", "NUMBER"),
    "fit_prior": Option("Class priors as in the data, or all equal.", None),
    "class_prior": Option("Class priors of naive Bayes.", "P,P,..."),
    "class_weight": Option("Weights by which all classes weigh the same.", "balanced"),
    "binarize": Option("Values above it count as 1.", "NUMBER|none"),
    "tol": Option("Relative tolerance of the solution.", "NUMBER"),
    "exposure": Option("What Poisson counts are counted over.", "total|none"),
    "pooling": Option("Of Gaussian variances over the classes.", "0...1"),
    "var_smoothing": Option("Added to Gaussian variances, of the largest.", "NUMBER"),
    "ddof": Option("Degrees of freedom less in Gaussian variances.", "0|1"),
    "threshold": Option(
        "Shrinkage of centroids; GMEB: weights below it are not selected.", "NUMBER"
    ),
    "offset": Option("Added to deviations of shrunken centroids.", "median|NUMBER"),
    "r_plus": Option(
        "GMEB: most second moment of the decision in the second class (for text 100 or more).",
        "NUMBER",
    ),
    "r_minus": Option("GMEB: the same in the first class; as --r-plus.", "NUMBER"),
    "max_iter": Option("GMEB: most rounds.", "N"),
}


def found(path: str) -> Any:
    """The class or function at a path inside this package, as "estimators.gmeb.GMEBClassifier"."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(f".{module}", __package__), name)
