"""The models by the names that the command line has for them, and their options."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import typer

import gpucenters


class Model(NamedTuple):
    """A model, and the options that it takes besides those that all take."""

    class_name: str
    options: tuple[str, ...]
    max_features: int | None = None  # up to which `check` fits it
    has_k: bool = True  # whether the number of features is chosen beforehand


_BAYES = ("alpha", "fit_prior", "class_prior", "class_weight")

#: One line for each model; an option is a field of `ModelOptions` and a parameter of the class.
MODELS = {
    "l2": Model("L2CenterClassifier", ("scale", "priors")),
    "l1": Model("L1CenterClassifier", ("scale",)),
    "mahalanobis": Model(
        "MahalanobisCenterClassifier", ("covariance", "shrinkage", "priors"), max_features=200
    ),
    "bernoulli": Model("SparseBernoulliNB", (*_BAYES, "binarize")),
    "multinomial": Model("SparseMultinomialNB", (*_BAYES, "tol")),
    "poisson": Model("SparsePoissonNB", (*_BAYES, "exposure", "scale")),
    "gaussian": Model(
        "SparseGaussianNB", ("pooling", "var_smoothing", "ddof", "priors", "class_weight")
    ),
    "shrunken": Model(
        "ShrunkenCentroidClassifier", ("threshold", "offset", "priors", "class_weight")
    ),
    "gmeb": Model(
        "GMEBClassifier",
        ("r_plus", "r_minus", "threshold", "tol", "max_iter", "class_weight"),
        max_features=100,
        has_k=False,
    ),
}
Estimator = StrEnum("Estimator", [(name, name) for name in MODELS])  # type: ignore[misc]


def _option(help: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel="Model")


@dataclass(frozen=True)
class ModelOptions:
    """Which model, and its parameters."""

    estimator: Annotated[
        Estimator | None,
        _option(
            "The model. By default poisson for texts and counts (whole numbers from 0, mostly 0), "
            "and l2 --scale pooled --priors empirical for measurements.",
            "--estimator",
            "-e",
        ),
    ] = None
    k: Annotated[
        str,
        _option("Number of features, a share of them, or all.", "--k", "-k", metavar="N|10%|all"),
    ] = "all"
    scale: Annotated[
        str | None,
        _option(
            "Divide features by a standard deviation; Poisson: by the dispersion.",
            metavar="std|pooled|dispersion|none",
        ),
    ] = None
    priors: Annotated[
        str | None, _option("Class priors of centers.", metavar="uniform|empirical|P,P,...")
    ] = None
    covariance: Annotated[
        str | None, _option("Of Mahalanobis centers.", metavar="pooled|total")
    ] = None
    shrinkage: Annotated[
        str | None, _option("Of the covariance.", metavar="auto|ledoit-wolf|none|NUMBER")
    ] = None
    alpha: Annotated[
        str | None, _option("Additive smoothing of naive Bayes.", metavar="NUMBER")
    ] = None
    fit_prior: Annotated[
        bool | None,
        _option("Class priors as in the data, or all equal.", "--fit-prior/--no-fit-prior"),
    ] = None
    class_prior: Annotated[
        str | None, _option("Class priors of naive Bayes.", metavar="P,P,...")
    ] = None
    class_weight: Annotated[
        str | None, _option("Weights by which all classes weigh the same.", metavar="balanced")
    ] = None
    binarize: Annotated[
        str | None, _option("Values above it count as 1.", metavar="NUMBER|none")
    ] = None
    tol: Annotated[str | None, _option("Relative tolerance of the solution.", metavar="NUMBER")] = (
        None
    )
    exposure: Annotated[
        str | None, _option("What Poisson counts are counted over.", metavar="total|none")
    ] = None
    pooling: Annotated[
        str | None, _option("Of Gaussian variances over the classes.", metavar="0...1")
    ] = None
    var_smoothing: Annotated[
        str | None, _option("Added to Gaussian variances, of the largest.", metavar="NUMBER")
    ] = None
    ddof: Annotated[
        str | None, _option("Degrees of freedom less in Gaussian variances.", metavar="0|1")
    ] = None
    threshold: Annotated[
        str | None,
        _option(
            "Shrinkage of centroids; GMEB: weights below it are not selected.", metavar="NUMBER"
        ),
    ] = None
    offset: Annotated[
        str | None, _option("Added to deviations of shrunken centroids.", metavar="median|NUMBER")
    ] = None
    r_plus: Annotated[
        str | None,
        _option(
            "GMEB: most second moment of the decision in the second class (for text 100 or more).",
            metavar="NUMBER",
        ),
    ] = None
    r_minus: Annotated[
        str | None, _option("GMEB: the same in the first class; as --r-plus.", metavar="NUMBER")
    ] = None
    max_iter: Annotated[str | None, _option("GMEB: most rounds.", metavar="N")] = None
    device: Annotated[
        str, _option("Where to work.", "--device", "-d", metavar="auto|cpu|cuda|cuda:N")
    ] = "auto"
    memory_budget: Annotated[str | None, _option("Workspace at most.", metavar="500MB|2GB|...")] = (
        None
    )


_OF_ALL = ("estimator", "k", "device", "memory_budget")


def make_model(options: ModelOptions) -> Any:
    """The model that the options name and describe, not fitted.

    Parameters
    ----------
    options : ModelOptions
        With an estimator.

    Raises
    ------
    typer.BadParameter
        For an option that the model does not take, and for a value that is wrong for any data.
    """
    from ..arrays.backend import HOST
    from ..arrays.budget import resolve_budget

    assert options.estimator is not None
    name = options.estimator.value
    model = MODELS[name]
    given = {
        field.name: getattr(options, field.name)
        for field in fields(options)
        if field.name not in _OF_ALL and getattr(options, field.name) is not None
    }
    foreign = [option for option in given if option not in model.options]
    if foreign:
        refused, takes = (", ".join(map(_flag, each)) for each in (foreign, model.options))
        others = [other for other, of in MODELS.items() if set(foreign) <= set(of.options)]
        raise typer.BadParameter(
            f"the estimator {name} does not take {refused}. It takes {takes}."
            + (f" Estimators that do: {', '.join(others)}." if others else "")
        )
    chosen = {"k": parse_k(options.k)} if model.has_k else {}
    if not model.has_k and options.k != "all":
        raise typer.BadParameter(
            f"the estimator {name} finds the number of features: leave --k out."
        )
    made = getattr(gpucenters, model.class_name)(
        **chosen,
        device=options.device,
        memory_budget=options.memory_budget,
        **{option: parse_value(value) for option, value in given.items()},
    )
    try:
        made._check_parameters()
        resolve_budget(options.memory_budget, HOST)
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(str(error)) from error
    return made


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")


def parse_k(text: str) -> int | float | str:
    """The parameter ``k`` that a text means: "100", "10%", "0.1" or "all".

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> from gpucenters.cli.models import parse_k
    >>> parse_k("1000"), parse_k("10%"), parse_k("0.1"), parse_k("all")
    (1000, 0.1, 0.1, 'all')
    """
    from ..solvers.selection import check_k

    text = text.strip()
    k: int | float | str = text
    try:
        if text.endswith("%"):
            k = float(text[:-1]) / 100
        elif text != "all":
            k = int(text) if text.isdigit() else float(text)
        check_k(k)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no number of features: use 100, 10% or all."
        ) from None
    return k


def parse_value(text: str | bool) -> Any:
    """The parameter that a text means: a word, a number, numbers with commas, or none.

    Parameters
    ----------
    text : str or bool

    Examples
    --------
    >>> from gpucenters.cli.models import parse_value
    >>> parse_value("std"), parse_value("0.5"), parse_value("0.3,0.7"), parse_value("none")
    ('std', 0.5, [0.3, 0.7], None)
    """
    if isinstance(text, bool):
        return text
    if text == "none":
        return None
    try:
        numbers = [int(part) if part.strip().isdigit() else float(part) for part in text.split(",")]
    except ValueError:
        return text
    return numbers if "," in text else numbers[0]
