"""``gpucenters path``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from .data import AsJson, DataOptions, DataPath, Missing, TextOptions, check_place, labelled
from .models import ModelOptions, make_model, parse_k
from .output import console, say, show_json
from .stages import Stages


def path(
    data: DataPath,
    *,
    model: ModelOptions,
    reading: DataOptions,
    text: TextOptions,
    ks: Annotated[
        str | None, typer.Option(metavar="N,10%,...,all", help="By default about 40 steps.")
    ] = None,
    cv: Annotated[int | None, typer.Option(min=2, help="Number of folds.  [default: 5]")] = None,
    n_splits: Annotated[
        int | None, typer.Option(min=1, help="Random splits in place of folds.")
    ] = None,
    test_size: Annotated[float, typer.Option(min=0, max=1, help="Of random splits.")] = 0.2,
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
    estimator = make_model(model)
    read = (data, reading.labels, test, test_labels)
    check_place(output, *read)
    check_place(plot, *read, output)
    axes = None if plot is None else _axes(plot)
    vectorizer = text.make()
    import numpy as np

    import gpucenters

    from .trained import aligned, filled, medians_of

    sizes = None if ks is None else [parse_k(part) for part in ks.split(",")]
    stages = Stages()
    with stages("reading"):
        found = labelled(reading.read(data), data)
        others = None
        if test is not None:
            width = None if found.is_text else found.X.shape[1]
            names = None if found.feature_names is None else found.feature_names.tolist()
            others = replace(reading, labels=test_labels).read(test, width, names)
            others = labelled(others, test)
    X, X_test = found.X, None if others is None else others.X
    if test is not None and others is not None and found.feature_names is not None:
        X_test = aligned(others, found.feature_names, np.arange(X.shape[1]), test)
    if reading.missing is Missing.MEDIAN:
        medians = medians_of(found, data)
        X, X_test = filled(X, medians), filled(X_test, medians)
    if found.is_text:
        with stages("vectorising"):
            X = vectorizer.fit_transform(X)
            X_test = None if X_test is None else vectorizer.transform(X_test)
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
            scoring=scoring.split(",") if "," in scoring else scoring,
        )
    if plot is not None:
        _plot(made, axes, plot)
    if output is not None:
        _write(made, output)
    if json:
        best = {"best_k": made.best_k, "best_k_1se": made.best_k_1se, "seconds": stages.seconds}
        scores = {"ks": made.ks, "mean": made.mean, "std": made.std}
        show_json({"model": made.estimator, "n_features": made.n_features} | best | scores)
    elif output != "-":
        console().out(str(made), highlight=False)
        say(stages)


def _write(made: Any, output: str) -> None:
    from .writers import opened

    with opened(output) as file:
        file.write((made.to_json() + "\n").encode())


def _axes(plot: str) -> Any:
    """Where to draw; raises before the work where no picture can be drawn."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise typer.BadParameter(
            "--plot needs matplotlib: pip install 'gpucenters[plot]'."
        ) from None
    figure = Figure()
    if _kind(plot) not in figure.canvas.get_supported_filetypes():
        raise typer.BadParameter(f"{plot!r} is no name of a picture: use .png, .svg or .pdf.")
    return figure.subplots()


def _plot(made: Any, axes: Any, plot: str) -> None:
    from .writers import opened

    made.plot(axes)
    with opened(plot) as file:
        axes.figure.savefig(file, format=_kind(plot), bbox_inches="tight")


def _kind(plot: str) -> str:
    return plot.rpartition(".")[2].lower()
