"""``gpucenters path``."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .data import (
    AsJson,
    DataOptions,
    DataPath,
    Missing,
    TextOptions,
    check_files,
    check_place,
    count_words,
    labelled,
)
from .models import MODELS, Choice, ModelOptions, kind_of, parse_k
from .output import Stages, console, part_of_samples, say, show_json
from .pictures import figure_of, write_figure

if TYPE_CHECKING:
    from ..readers import Data

#: Scores of a positive class, which is 1 where none is named; the first are for two classes alone.
_OF_TWO = ("f1", "jaccard", "precision", "recall")
_OF_POSITIVE = ("average_precision", "neg_brier_score", "d2_brier_score")


def path(
    data: DataPath,
    *,
    model: ModelOptions,
    reading: DataOptions,
    text: TextOptions,
    ks: Annotated[
        str | None, typer.Option(metavar="N,10%,...,all", help="By default about 40 steps.")
    ] = None,
    cv: Annotated[
        int | None, typer.Option(min=2, help="Number of folds.", show_default="5")
    ] = None,
    n_splits: Annotated[
        int | None, typer.Option(min=1, help="Random splits in place of folds.")
    ] = None,
    test_size: Annotated[
        float, typer.Option(callback=part_of_samples, help="Of random splits.")
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Of random splits.")] = 0,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Test data in place of folds.")
    ] = None,
    test_labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="Labels of --test in a file of their own.")
    ] = None,
    scoring: Annotated[
        str, typer.Option(metavar="NAME,...", help="Scores, by their names in scikit-learn.")
    ] = "accuracy",
    pos_label: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="The positive one of two, for f1, precision, recall."),
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the path: .png, .svg or .pdf.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the path as JSON; - for stdout."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Score every number of features.

    Words and idf of texts are those of all of DATA, not of each fold. The path of --output is read
    by SparsityPath.from_json in Python.
    """
    if model.estimator is not None and not MODELS[model.estimator.value].has_k:
        raise typer.BadParameter(
            f"the estimator {model.estimator.value} has one solution, not one for every number of "
            "features: name another one."
        )
    if (cv is not None) + (n_splits is not None) + (test is not None) > 1:
        raise typer.BadParameter("--cv, --n-splits and --test exclude each other.")
    if test_labels is not None and test is None:
        raise typer.BadParameter("--test-labels are those of --test: name that file too.")
    scores = _scorings(scoring)
    sizes = None if ks is None else [parse_k(part) for part in ks.split(",")]
    choice = Choice(model)
    read = (data, reading.labels, test, test_labels)
    check_place(output, *read)
    check_place(plot, *read, output)
    check_files(*read)
    figure = None if plot is None else figure_of(plot)
    vectorizer = text.make()
    import numpy as np

    import gpucenters

    from .evaluation import positions, warn_of_other_labels, warn_unless_above
    from .trained import aligned, filled, medians_of

    stages = Stages()
    with stages("reading"):
        found = labelled(reading.read(data), data)
        others = None
        if test is not None:
            others = labelled(reading.read_beside(found, test, test_labels), test)
    classes = np.unique(found.y)  # type: ignore[arg-type]
    if others is not None:
        at = positions(others.y, classes)  # type: ignore[arg-type]
        if np.all(at < 0):
            warn_of_other_labels(others.y, classes)  # type: ignore[arg-type]
        others = others if np.any(at < 0) else replace(others, y=classes[at])
    _check_positive(scores, pos_label, classes, data)
    if pos_label is not None:
        found = _as_one(found, pos_label, classes, data)
        others = None if others is None else _as_one(others, pos_label, classes, str(test))
    estimator = choice.model(kind_of(found))
    X, X_test = found.X, None if others is None else others.X
    if test is not None and others is not None and found.feature_names is not None:
        X_test = aligned(others, found.feature_names, np.arange(X.shape[1]), test)
    if reading.missing is Missing.MEDIAN:
        medians = medians_of(found, data, can_drop=reading.can_drop(data))
        X, X_test = filled(X, medians), filled(X_test, medians)
    if found.is_text:
        with stages("vectorising"):
            X = count_words(vectorizer, X, data)
            X_test = None if X_test is None else vectorizer.transform(X_test)
    choice.warn_of_spread(X)
    with stages("fitting and scoring"):
        made = gpucenters.sparsity_path(
            estimator,
            X,
            found.y,
            ks=sizes,
            cv=cv,
            n_splits=n_splits,
            test_size=test_size,
            random_state=seed,
            X_test=X_test,
            y_test=None if others is None else others.y,
            scoring=scores if len(scores) > 1 else scores[0],
        )
    scored: Any = (found if others is None else others).y
    labels = Counter(scored.tolist())
    share = max(labels.values()) / labels.total()
    has_accuracy = "accuracy" in made.scorings
    if has_accuracy:
        warn_unless_above(made.scores_of("accuracy").mean(axis=1).max(), labels)
    if plot is not None and figure is not None:
        panels = len(made.scorings)
        figure.set_figheight(figure.get_figheight() * (panels + 1) / 2)
        made.plot(figure.subplots(panels))
        write_figure(figure, plot)
    if output is not None:
        _write(made, output)
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


def _as_one(data: Data, label: str, classes: Any, source: str) -> Data:
    """The data with the label 1 for one of two classes, and 0 for the other."""
    import numpy as np

    assert data.y is not None
    labels = data.y.astype(str)
    other = labels[~np.isin(labels, classes.astype(str))]
    if len(other):
        raise ValueError(f"{source}: the label {str(other[0])!r} is not among those of DATA.")
    return replace(data, y=(labels == label).astype(np.int64))


def _write(made: Any, output: str) -> None:
    from .writers import opened

    with opened(output) as file:
        file.write((made.to_json() + "\n").encode())
