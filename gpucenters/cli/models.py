"""The model of a command: its options, and which one suits the data where none is named."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import _models
from .output import say

if TYPE_CHECKING:
    from ..readers import Data

#: By the names that the command line has for them.
MODELS = {model.name: model for model in _models.MODELS if model.name}
Estimator = StrEnum("Estimator", [(name, name) for name in MODELS])  # type: ignore[misc]
#: What suits each kind of data: docs/guide/models.md has the accuracies on public sets.
SUITED: dict[str, tuple[str, dict[str, str]]] = {
    "texts": ("poisson", {}),
    "counts": ("poisson", {}),
    "measurements": ("l2", {"scale": "pooled", "priors": "empirical"}),
}
_SPREAD = 10  # times the median: where a scale helped l2 on 54 of 59 public sets
_PART = 2**22  # values of dense data that are looked at together


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
    from ..arrays.context import resolve_budget
    from ..estimators.fitted import check_parameters

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
        check_parameters(made)
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


class Choice:
    """Models for the options of a command, of which the data choose one.

    Parameters
    ----------
    options : ModelOptions

    Raises
    ------
    typer.BadParameter
        As `make_model`, and for options that no model takes which data could choose.
    """

    def __init__(self, options: ModelOptions) -> None:
        self.options = options
        if options.estimator is not None:
            self._models = {"": make_model(options)}
            return
        self._models, faults = {}, []
        for kind, (name, defaults) in SUITED.items():
            given = defaults | options.parameters
            try:
                self._models[kind] = make_model(
                    replace(options, estimator=Estimator(name), parameters=given)
                )
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

    def warn_of_spread(self, X: Any) -> None:
        """Warn where l2 is named, without a scale, for features of very different spreads."""
        is_plain = self.options.estimator == "l2" and "scale" not in self.options.parameters
        if is_plain and spread(X) >= _SPREAD:
            warnings.warn(
                "the standard deviations of the features differ by orders of magnitude, and the "
                "features of the largest decide: give --scale pooled, or --scale none if that is "
                "right.",
                stacklevel=2,
            )


def kind_of(data: Data) -> str:
    """The kind of data: counts are non-negative whole numbers of which half or more are zero.

    Of data on disk the first rows tell.
    """
    if data.is_text:
        return "texts"
    import numpy as np

    from ..arrays.namespace import is_sparse
    from ..arrays.on_disk import is_on_disk

    X, rows = data.X, max(1, _PART // max(1, data.X.shape[1]))
    if is_on_disk(X):
        X = X[:rows]
    values, rows = (X.data, _PART) if is_sparse(X) else (X, rows)
    nonzero = 0
    for start in range(0, len(values), rows):
        part = values[start : start + rows]
        if not np.all((part >= 0) & (part == np.floor(part))):
            return "measurements"
        nonzero += int(np.count_nonzero(part))
    return "counts" if 2 * nonzero <= math.prod(X.shape) else "measurements"


def spread(X: Any) -> float:
    """The largest standard deviation of a feature, divided by the median of all that vary."""
    import numpy as np
    from sklearn.utils.sparsefuncs import mean_variance_axis

    from ..arrays.namespace import is_sparse
    from ..arrays.on_disk import is_on_disk

    if is_on_disk(X):
        return 1.0  # another pass over it would take as long as the fit
    if is_sparse(X):
        variance = mean_variance_axis(X, axis=0)[1]
    else:
        columns = max(1, _PART // len(X))
        parts = range(0, X.shape[1], columns)
        with np.errstate(over="ignore", invalid="ignore"):  # the fit names such features
            variance = np.concatenate(
                [np.var(X[:, i : i + columns], axis=0, dtype=np.float64) for i in parts]
            )
    varying = np.sqrt(variance[variance > 0])
    return float(varying.max() / np.median(varying)) if len(varying) else 1.0
