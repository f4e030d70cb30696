"""``gpucenters inspect``."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

from .options import AsJson, ModelPath, option
from .output import show_facts, show_json, show_table

if TYPE_CHECKING:
    from .features import Trained

_CLASSES = 6  # that have a column of a table


def inspect(
    model: ModelPath,
    *,
    top: Annotated[int, option("Number of features to show.", min=0)] = 20,
    json: AsJson = False,
) -> None:
    """Show what a model file holds, and its best features with their class centers."""
    from .features import Trained

    trained = Trained.load(model, "cpu")
    # Several binary models select features each for itself, and have no best ones in common.
    best = _best(trained, top) if trained.selects else []
    facts = _facts(trained)
    classes = trained.classifier.classes_.tolist()
    if json:
        show_json(facts | {"classes": classes, "top": best})
        return
    show_facts(facts)
    if best:
        _show_best(best, classes, facts["selected"], _what(trained.classifier))


def _facts(trained: Trained) -> dict[str, Any]:
    model = trained.classifier
    facts = {
        "model": type(model).__name__,
        "parameters": _changed(model, ("k", "device", "verbose", "estimator")) or "as by default",
        "classes": model.classes_.tolist(),
        "features": model.n_features_in_,
    }
    if trained.selects:
        facts["selected"] = len(model.support_)
        facts |= {"objective": model.objective_, "holds": _holds(model)}
    else:
        facts["binary_models"] = len(model.estimators_)
        facts["estimator"] = type(model.estimator).__name__
        parameters = _changed(model.estimator, ("device", "verbose"))
        facts["estimator_parameters"] = parameters or "as by default"
    vectorizer = trained.vectorizer
    if vectorizer is not None:
        facts["vectorizer"] = type(vectorizer).__name__
        facts["vectorizer_parameters"] = _changed(vectorizer, ("vocabulary",)) or "as by default"
    if trained.second:
        facts["second_stage"] = {
            type(step).__name__: _changed(step, ()) or "as by default" for step in trained.second
        }
    return facts


def _changed(estimator: Any, known: tuple[str, ...]) -> dict[str, str]:
    """The parameters that are not as by default, but for those that are shown elsewhere."""
    default = signature(type(estimator)).parameters
    return {
        name: str(value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in known and str(value) != str(default[name].default)
    }


def _holds(model: Any) -> str:
    from ..estimators.fitted import FittedModel
    from ..solvers.centers import SupportCenters

    if not hasattr(model, "with_k"):
        return "the coefficients"
    fitted = FittedModel(model)
    if isinstance(fitted.centers, SupportCenters):
        return "the selected features: fewer of them by k, no partial_fit"
    if fitted.state.statistics is None:
        return "all features: every k, no partial_fit"
    return "all features and the statistics: every k, and partial_fit"


def _best(trained: Trained, top: int) -> list[dict[str, Any]]:
    """The features of largest gain, with the center of each class."""
    from ..estimators.fitted import FittedModel

    model, names = trained.classifier, trained.names()
    support, gains = model.support_.tolist(), FittedModel(model).selection.gain
    classes, of_classes = model.classes_.tolist(), _of_classes(model)
    found = []
    for at in trained.ranking()[:top]:
        found.append(
            {
                "feature": str(names[at]),
                "column": support[at],
                "gain": float(gains[at]),
                "centers": dict(zip(classes, of_classes[:, at].tolist(), strict=True)),
            }
        )
    return found


def _what(model: Any) -> str:
    return "center" if hasattr(model, "centers_") else "weight"


def _of_classes(model: Any) -> Any:
    """The class centers of the support, or where a model has none, the coefficients: (K, k)."""
    import numpy as np

    if hasattr(model, "centers_"):
        return model.centers_
    coef = model.coef_[:, model.support_]
    return np.concatenate([-coef, coef]) if len(coef) == 1 else coef


def _show_best(best: list[dict[str, Any]], classes: list[Any], selected: int, what: str) -> None:
    """The table: the centers of all classes, or of many the two largest."""
    few = len(classes) <= _CLASSES
    of_classes = [f"{what} of {label}" for label in classes] if few else [f"{what} there"]
    head = {"": "right", "feature": "left", "gain": "right", "largest in": "left"}
    head |= dict.fromkeys(of_classes, "right")
    head |= {} if few else {"next in": "left", f"{what} of that": "right"}
    rows = []
    for number, each in enumerate(best, 1):
        values = each["centers"]
        first, second = sorted(classes, key=values.get, reverse=True)[:2]
        row = [number, each["feature"], f"{each['gain']:.4g}", first]
        shown = classes if few else [first]
        row += [f"{values[label]:.4g}" for label in shown]
        rows.append(row if few else [*row, second, f"{values[second]:.4g}"])
    show_table(f"Features by gain, {len(best):,} of {selected:,}", head, rows)
