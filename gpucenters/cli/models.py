"""The model of a command: its options, and which one suits the data where none is named."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import typer

from .. import _models
from .options import device_option, option
from .output import say

#: By the names that the command line has for them.
MODELS = {model.name: model for model in _models.MODELS if model.name}
#: What suits each kind of data: docs/guide/models.md has the accuracies on public sets.
SUITED: dict[str, tuple[str, dict[str, str]]] = {
    "texts": ("poisson", {}),
    "counts": ("poisson", {}),
    "measurements": ("l2", {"scale": "pooled", "priors": "empirical"}),
}


_of_model = partial(option, panel="Model")


def _of_parameter(name: str, parameter: _models.Option) -> Any:
    if parameter.values is None:
        flag = name.replace("_", "-")
        return Annotated[bool | None, _of_model(parameter.help, f"--{flag}/--no-{flag}")]
    return Annotated[str | None, _of_model(parameter.help, metavar=parameter.values)]


@dataclass(frozen=True)
class ModelOptions:
    """Which model, and its parameters."""

    estimator: Annotated[
        str | None,
        _of_model(
            "The model. By default poisson for texts and counts (whole numbers from 0, mostly 0), "
            "and l2 --scale pooled --priors empirical for measurements.",
            "--estimator",
            "-e",
            values="|".join(MODELS),
        ),
    ] = None
    k: Annotated[
        str,
        _of_model("Number of features, a share of them, or all.", "--k", "-k", metavar="N|10%|all"),
    ] = "all"
    parameters: dict[str, str | bool] = field(
        default_factory=dict,
        metadata={name: _of_parameter(name, each) for name, each in _models.OPTIONS.items()},
    )
    device: Annotated[str, device_option(panel="Model")] = "auto"
    memory_budget: Annotated[
        str | None, _of_model("Workspace at most.", metavar="500MB|2GB|...")
    ] = None


def make_model(name: str, given: dict[str, str | bool], options: ModelOptions) -> Any:
    """The model of a name with the given parameters, not fitted.

    Raises a ``typer.BadParameter`` for an option that it does not take, and for a value that is
    wrong for any data.
    """
    from ..arrays.backend import HOST
    from ..arrays.context import resolve_budget
    from ..estimators.fitted import check_parameters

    model = MODELS[name]
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
        check_parameters(made)
        resolve_budget(options.memory_budget, HOST)
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(str(error)) from error
    return made


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")


def parse_k(text: str) -> int | float | str:
    """The parameter ``k`` that a text means: "100", "10%", "0.1" or "all".

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


class Choice:
    """Models for the options of a command, of which the data choose one.

    Raises as `make_model`, and for options that no model takes which data could choose.
    """

    def __init__(self, options: ModelOptions) -> None:
        self.options = options
        #: Whether l2 is named, without a scale: features of large spread decide.
        self.is_plain_l2 = options.estimator == "l2" and "scale" not in options.parameters
        suited = SUITED if options.estimator is None else {"": (options.estimator, {})}
        self._models, faults = {}, []
        for kind, (name, defaults) in suited.items():
            try:
                self._models[kind] = make_model(name, {**defaults, **options.parameters}, options)
            except typer.BadParameter as error:
                faults.append(error)
        if not self._models:
            raise faults[-1]

    def model(self, kind: str) -> Any:
        """The model for a kind of data, not fitted; says which one was chosen, and why."""
        if self.options.estimator is not None:
            return self._models[""]
        why = f"suits {kind}"
        if kind not in self._models:
            kind, why = next(iter(self._models)), "takes the given options"
        name, defaults = SUITED[kind]
        flags = [f"--{key} {self.options.parameters.get(key, of)}" for key, of in defaults.items()]
        say(f"model: {' '.join(['-e', name, *flags])}, which {why}. Another -e overrides it.")
        return self._models[kind]
