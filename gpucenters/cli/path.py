"""``gpucenters path``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from .models import MODELS, Choice, ModelOptions, parse_k
from .options import (
    AsJson,
    DataOptions,
    DataPath,
    TestOptions,
    TextOptions,
    option,
    share_of_samples,
)
from .output import Stages, console, say, show_json
from .writers import Picture, check_files, opened

#: Scores of a positive class, which is 1 where none is named; the first are for two classes alone.
_OF_TWO = ("f1", "jaccard", "precision", "recall")
_OF_POSITIVE = ("average_precision", "neg_brier_score", "d2_brier_score")


@dataclass(frozen=True)
class _TestOptions(TestOptions):
    """Data in place of folds."""

    test: Annotated[str | None, option("Test data in place of folds.", metavar="FILE")] = None


def path(
    data: DataPath,
    *,
    model: ModelOptions,
    reading: DataOptions,
    text: TextOptions,
    ks: Annotated[str | None, option("By default about 40 steps.", metavar="N,10%,...,all")] = None,
    cv: Annotated[int | None, option("Number of folds.", min=2, show_default="5")] = None,
    n_splits: Annotated[int | None, option("Random splits in place of folds.", min=1)] = None,
    test_size: Annotated[float, share_of_samples("Of random splits.")] = 0.2,
    seed: Annotated[int, option("Of random splits.")] = 0,
    held_out: _TestOptions,
    scoring: Annotated[
        str, option("Scores, by their names in scikit-learn.", metavar="NAME,...")
    ] = "accuracy",
    pos_label: Annotated[
        str | None,
        option("The positive one of two, for f1, precision, recall.", metavar="CLASS"),
    ] = None,
    plot: Annotated[
        str | None, option("Draw the path: .png, .svg or .pdf.", metavar="FILE")
    ] = None,
    output: Annotated[
        str | None,
        option("Write the path as JSON; - for stdout.", "--output", "-o", metavar="FILE"),
    ] = None,
    json: AsJson = False,
) -> None:
    """Score every number of features.

    Words and idf of texts are those of all of DATA, not of each fold. The path of --output is read
    by SparsityPath.from_json in Python.
    """
    if model.estimator is not None and not MODELS[model.estimator].has_k:
        raise typer.BadParameter(
            f"the estimator {model.estimator} has one solution, not one for every number of "
            "features: name another one."
        )
    if (cv is not None) + (n_splits is not None) + (held_out.test is not None) > 1:
        raise typer.BadParameter("--cv, --n-splits and --test exclude each other.")
    scores = _scorings(scoring)
    sizes = None if ks is None else [parse_k(part) for part in ks.split(",")]
    choice, vectorizer = Choice(model), text.make()
    check_files([output, plot], [data, reading.labels, *held_out.files()])
    picture = None if plot is None else Picture(plot)
    import numpy as np

    import gpucenters

    from .evaluation import positions, warn_of_other_labels, warn_unless_above
    from .features import prepare

    stages = Stages()
    with stages("reading"):
        found = reading.read_labelled(data)
        others = held_out.read(reading, found)
    y: Any = found.y
    y_test: Any = None if others is None else others.y
    classes = np.unique(y)
    if y_test is not None:
        at = positions(y_test, classes)
        if np.all(at < 0):
            warn_of_other_labels(y_test, classes)
        if np.all(at >= 0):
            y_test = classes[at]
        elif "U" in (y.dtype.kind, y_test.dtype.kind):  # scikit-learn compares one type alone
            y_test = np.where(at < 0, y_test.astype(str), classes.astype(str)[at])
            y = y.astype(str)
    _check_positive(scores, pos_label, classes, data)
    if pos_label is not None:
        y = _as_one(y, pos_label, classes, data)
        y_test = None if y_test is None else _as_one(y_test, pos_label, classes, held_out.test)
    estimator, X, features = prepare(found, data, reading, vectorizer, choice, stages)
    X_test = None
    if others is not None:
        with stages("reading"):
            X_test = features.of(others, str(held_out.test))
    with stages("fitting and scoring"):
        made = gpucenters.sparsity_path(
            estimator,
            X,
            y,
            ks=sizes,
            cv=cv,
            n_splits=n_splits,
            test_size=test_size,
            random_state=seed,
            X_test=X_test,
            y_test=y_test,
            scoring=scores if len(scores) > 1 else scores[0],
        )
    labels = Counter((y if y_test is None else y_test).tolist())
    share = max(labels.values()) / labels.total()
    has_accuracy = "accuracy" in made.scorings
    if has_accuracy:
        warn_unless_above(made.scores_of("accuracy").mean(axis=1).max(), labels)
    if picture is not None:
        panels, figure = len(made.scorings), picture.figure
        figure.set_figheight(figure.get_figheight() * (panels + 1) / 2)
        made.plot(figure.subplots(panels))
        picture.write()
    if output is not None:
        with opened(output) as file:
            file.write((made.to_json() + "\n").encode())
    if json:
        best = {"best_k": made.best_k, "best_k_1se": made.best_k_1se, "seconds": stages.seconds}
        table = {"ks": made.ks, "mean": made.mean, "std": made.std}
        facts = {"model": made.estimator, "n_features": made.n_features}
        show_json(facts | {"largest_class_share": share} | best | table)
    elif output != "-":
        console().out(str(made), highlight=False)
        if has_accuracy:
            console().out(f"share of the largest class: {share:.3f}", highlight=False)
        say(stages)


def _scorings(names: str) -> list[str]:
    """The names of scores, each of which scikit-learn has."""
    from sklearn.metrics import get_scorer_names

    known, given = get_scorer_names(), names.split(",")
    for name in given:
        if name not in known or given.count(name) > 1:
            near = get_close_matches(name, known) or ["accuracy"]
            what = "is named twice" if name in known else "is no score of scikit-learn"
            raise typer.BadParameter(f"{name!r} {what}: use others, as {', '.join(near)}.")
    return given


def _check_positive(scores: list[str], label: str | None, classes: Any, source: str) -> None:
    """Raise for a positive class that is needed and not named, or named and not one of two."""
    shown = f"{', '.join(map(str, classes[:5]))}{', ...' if len(classes) > 5 else ''}"
    if label is not None:
        if len(classes) != 2 or label not in classes.astype(str):
            raise typer.BadParameter(
                f"--pos-label {label} is not one of two classes: {source} has {shown}."
            )
        return
    for score in scores:
        if score in _OF_TWO and len(classes) > 2:
            raise typer.BadParameter(
                f"{score} is for two classes, and {source} has {shown}: use {score}_macro or "
                f"{score}_weighted."
            )
        if score in (*_OF_TWO, *_OF_POSITIVE) and len(classes) == 2 and 1 not in classes.tolist():
            raise typer.BadParameter(
                f"{score} is that of a positive class: name it by --pos-label, one of {shown}."
            )


def _as_one(labels: Any, label: str, classes: Any, source: Any) -> Any:
    """1 for one of two classes, and 0 for the other."""
    import numpy as np

    from ..readers import ReadError

    labels = labels.astype(str)
    others = labels[~np.isin(labels, classes.astype(str))]
    if len(others):
        raise ReadError(source, f"the label {str(others[0])!r} is not among those of DATA.")
    return (labels == label).astype(np.int64)
