"""The models by the names that the command line has for them, and their options."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import typer

from .. import _models

#: By the names that the command line has for them.
MODELS = {model.name: model for model in _models.MODELS if model.name}
Estimator = StrEnum("Estimator", [(name, name) for name in MODELS])  # type: ignore[misc]


def _option(help: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel="Model")


def _of_parameter(name: str, option: _models.Option) -> Any:
    if option.values is None:
        flag = name.replace("_", "-")
        return Annotated[bool | None, _option(option.help, f"--{flag}/--no-{flag}")]
    return Annotated[str | None, _option(option.help, metavar=option.values)]


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
    parameters: dict[str, str | bool] = field(
        default_factory=dict,
        metadata={name: _of_parameter(name, option) for name, option in _models.OPTIONS.items()},
    )
    device: Annotated[
        str, _option("Where to work.", "--device", "-d", metavar="auto|cpu|cuda|cuda:N")
    ] = "auto"
    memory_budget: Annotated[str | None, _option("Workspace at most.", metavar="500MB|2GB|...")] = (
        None
    )


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
    given = options.parameters
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
    made = _models.found(model.kind)(
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
