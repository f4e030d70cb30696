"""``gpucenters fit``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .data import (
    AsJson,
    DataOptions,
    DataPath,
    Missing,
    TextOptions,
    Vectorizer,
    check_files,
    check_place,
    count_words,
    labelled,
    warn_of_many_classes,
)
from .models import Choice, ModelOptions, kind_of
from .output import Stages, part_of_samples, progress_of, say, show_facts, show_json

if TYPE_CHECKING:
    from ..readers import Data
    from .evaluation import Evaluation
    from .trained import Trained

_SHOWN = 10  # best features
_GRID = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # of C of a second stage, the inverse of its ridge
_SHARE = 0.2  # of the samples, on which C is chosen


def fit(
    data: DataPath,
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="MODEL", help="The model file; - for stdout.")
    ],
    model: ModelOptions,
    reading: DataOptions,
    text: TextOptions,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Held-out data, for the accuracy.")
    ] = None,
    test_labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="Labels of --test in a file of their own.")
    ] = None,
    test_size: Annotated[
        float | None,
        typer.Option(
            callback=part_of_samples, help="Hold out this share of DATA, for the accuracy."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Of the choices of --test-size and --second-stage.")
    ] = 0,
    batch_rows: Annotated[
        int | None,
        typer.Option(
            min=1, help="Read texts so many at a time, for files larger than memory (hashing)."
        ),
    ] = None,
    second_stage: Annotated[
        SecondStage | None,
        typer.Option(
            help="Classify by ridge logistic regression on the selected features (of counts times "
            "their log ratios); one validation split chooses the ridge."
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Keep what partial_fit and every other k need.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Fit a model, and save it.

    DATA is text (label TAB text, CSV with named columns, or a folder for each class), a table
    (CSV, TSV, Parquet, Feather), .h5ad, svmlight, NumPy's .npz (X and y) or .npy with --labels, or
    SciPy's .npz; lines plain or compressed. With --test-size the model is fitted to the other
    samples, and that model is saved.
    """
    choice = Choice(model)
    check_place(output, data, reading.labels, test, test_labels)
    if test is not None and test_size is not None:
        raise typer.BadParameter("--test and --test-size exclude each other.")
    if batch_rows is not None and test_size is not None:
        raise typer.BadParameter("--batch-rows reads every row: use --test, not --test-size.")
    if test_labels is not None and test is None:
        raise typer.BadParameter("--test-labels are those of --test: name that file too.")
    if batch_rows is not None and second_stage is not None:
        raise typer.BadParameter("--second-stage needs all samples: leave --batch-rows out.")
    check_files(data, reading.labels, test, test_labels)

    def read_test(fitted: Data | None) -> Data | None:
        if test is None:
            return None
        return labelled(reading.read_beside(fitted, test, test_labels), test)

    fitting = _Fit(choice, text.make(), Stages(), read_test, second_stage)
    if batch_rows is None:
        trained, held_out = fitting.of_file(data, reading, test_size, seed)
    else:
        trained, held_out = fitting.of_batches(data, reading, batch_rows)
    facts = fitting.facts(trained)
    evaluation = None
    if held_out is not None:
        with fitting.stages("scoring"):
            evaluation = _score(trained, held_out, test or data)
        facts |= {"held_out": evaluation.samples} | evaluation.facts()
    with fitting.stages("saving"):
        _save(trained, output, full=full)
    if evaluation is not None:
        evaluation.warn()
    if json and output != "-":
        facts |= {} if evaluation is None else evaluation.report()
        show_json(facts | {"seconds": fitting.stages.seconds, "output": output})
    else:
        show_facts(facts | {"time": fitting.stages} | _saved(output), on_stderr=output == "-")
        if evaluation is not None:
            evaluation.show(on_stderr=output == "-")
    if text.vectorizer is Vectorizer.TFIDF and getattr(trained.vectorizer, "norm", None):
        say(
            "note: the norm of a text needs all of its words, so the file keeps every word and its "
            "idf. With --norm none it keeps the selected words alone."
        )


class _Fit:
    """One fit, stage by stage."""

    def __init__(
        self,
        choice: Choice,
        vectorizer: Any,
        stages: Stages,
        read_test: Callable[[Data | None], Data | None],
        second_stage: SecondStage | None = None,
    ) -> None:
        self.choice = choice
        self.vectorizer = vectorizer
        self.stages = stages
        self.read_test = read_test  # before the fit, so that no work is lost on a wrong file
        self.second_stage = second_stage
        self.samples = 0

    def of_file(
        self, path: str, reading: DataOptions, test_size: float | None, seed: int
    ) -> tuple[Trained, Data | None]:
        """The model of a file, and what is held out."""
        from ..arrays.on_disk import is_on_disk
        from .trained import Trained, filled, medians_of

        with self.stages("reading"):
            found = labelled(reading.read(path), path)
            held_out = self.read_test(found)
            if test_size is not None:
                if is_on_disk(found.X):
                    raise ValueError(
                        f"{path} does not fit into memory: name held-out data by --test, in place "
                        "of --test-size."
                    )
                found, held_out = _split(found, test_size, seed)
        estimator = self.choice.model(kind_of(found))
        self.samples, X = len(found), found.X
        known: dict[str, Any] = reading.kept(path)
        if reading.missing is Missing.MEDIAN:
            known["medians"] = medians_of(found, path, can_drop=reading.can_drop(path))
            X = filled(X, known["medians"])
        if found.is_text:
            with self.stages(f"vectorising by {_counter(self.vectorizer)}"):
                X = count_words(self.vectorizer, X, path)
        self.choice.warn_of_spread(X)
        with self.stages("fitting", spinner=False), progress_of(estimator):
            estimator.fit(X, found.y)
        estimator._reading = known
        vectorizer, second = self.vectorizer if found.is_text else None, ()
        if self.second_stage is not None:
            with self.stages("second stage"):
                second = fitted_stage(estimator, vectorizer, X, found.y, seed)
        if found.feature_names is not None:
            estimator.feature_names_in_ = found.feature_names.astype(object)
        return Trained(estimator, vectorizer, second), held_out

    def of_batches(self, path: str, reading: DataOptions, rows: int) -> tuple[Trained, Data | None]:
        """The model of a file of texts that is read in batches, twice."""
        from tqdm import tqdm

        from ..readers import fit_text
        from .trained import Trained

        estimator = self.choice.model("texts")
        if not hasattr(estimator, "partial_fit"):
            raise typer.BadParameter(
                f"{type(estimator).__name__} needs all samples at once, and cannot be fitted "
                "in batches: leave --batch-rows out."
            )
        if estimator.class_weight is not None:
            raise typer.BadParameter("--class-weight needs all samples: leave --batch-rows out.")
        if hasattr(self.vectorizer, "get_feature_names_out"):
            raise typer.BadParameter(
                "--batch-rows needs --vectorizer hashing: a vocabulary is that of all texts."
            )
        if path == "-":
            raise typer.BadParameter("--batch-rows reads DATA twice, which stdin cannot be.")
        with self.stages("reading"):
            held_out = self.read_test(None)
        with tqdm(unit=" rows", disable=None, leave=False) as bar:

            def progress(done: int, total: int | None) -> None:
                bar.set_description("labels" if total is None else "fitting")
                bar.total, self.samples = total, done
                bar.update(done - bar.n)

            with self.stages("reading and fitting", spinner=False):
                options = reading.resolved(path)
                pipeline = fit_text(
                    path, estimator, self.vectorizer, rows=rows, progress=progress, **options
                )
        model = pipeline["classifier"]
        warn_of_many_classes(len(model.classes_), self.samples, path, is_text=True)
        model._reading = reading.kept(path)
        return Trained(model, pipeline["vectorizer"]), held_out

    def facts(self, trained: Trained) -> dict[str, Any]:
        """What was fitted."""
        model = trained.classifier
        from ..estimators.fitted import FittedModel

        fitted = FittedModel(model)
        weight = dict(zip(model.classes_.tolist(), fitted.centers.class_weight, strict=False))
        names = trained.names()
        best = [names[at] for at in trained.ranking()[:_SHOWN]]
        return (
            {
                "model": type(model).__name__,
                "samples": self.samples,
                "features": model.n_features_in_,
                "classes": weight,
                "selected": len(model.support_),
                "best_features": best,
                "objective": model.objective_,
                "worked_on": str(fitted.backend),
            }
            | _stages(trained)
            | ({} if trained.vectorizer is None else {"words_by": _counter(trained.vectorizer)})
        )


def _stages(trained: Trained) -> dict[str, Any]:
    return {"second_stage": ", ".join(map(str, trained.second))} if trained.second else {}


def _counter(vectorizer: Any) -> str:
    """Whose loop turns texts into counts."""
    by_arrow = getattr(vectorizer, "counts_by_arrow", lambda: False)
    return "PyArrow" if by_arrow() else "scikit-learn"


def _split(data: Data, test_size: float, seed: int) -> tuple[Data, Data]:
    """(the samples to fit, those to hold out), in the shares of the classes."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    from ..readers.data import counted

    assert data.y is not None
    try:
        parts = train_test_split(
            np.arange(len(data)), test_size=test_size, stratify=data.y, random_state=seed
        )
    except ValueError as error:
        raise ValueError(
            f"--test-size {test_size:g} of {counted(len(data), 'sample')} is no share with samples "
            "of every class on both sides: use another one, or name held-out data by --test."
        ) from error

    def rows(index: Any) -> Any:
        return [data.X[i] for i in index] if data.is_text else data.X[index]

    train, held_out = (replace(data, X=rows(np.sort(i)), y=data.y[np.sort(i)]) for i in parts)
    return train, held_out


def _score(trained: Trained, data: Data, source: str) -> Evaluation:
    from .evaluation import Evaluation

    model, X = trained.predictor, trained.features(data, source)
    probability = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    found = Evaluation(model.classes_)
    assert data.y is not None
    found.add(data.y, model.predict(X), probability)
    return found


def _saved(output: str) -> dict[str, Any]:
    if output == "-":
        return {}
    size = os.path.getsize(output)
    return {
        "saved": f"{output} ({size / 1e6:,.2f} MB)"
        if size >= 1e6
        else f"{output} ({size / 1e3:.1f} kB)"
    }


def _save(trained: Trained, output: str, *, full: bool) -> None:
    from sklearn.pipeline import Pipeline

    import gpucenters

    steps = [("vectorizer", trained.vectorizer)] if trained.vectorizer is not None else []
    steps += [("classifier", trained.classifier)]
    steps += [(type(step).__name__.lower(), step) for step in trained.second]
    model: Any = Pipeline(steps) if len(steps) > 1 else trained.classifier
    gpucenters.save(model, sys.stdout.buffer if output == "-" else output, full=full)


class SecondStage(StrEnum):
    """What classifies."""

    LOGISTIC = "logistic"


def fitted_stage(model: Any, vectorizer: Any, X: Any, y: Any, seed: int) -> tuple[Any, ...]:
    """The steps behind a model, fitted.

    C is that of best accuracy on one validation split, for which the model is fitted to the other
    samples alone; of equal ones the least.

    Parameters
    ----------
    model : estimator
        Fitted to X and y.
    vectorizer : vectorizer of scikit-learn, or None
        What X comes from, where the data are texts.
    X : array or sparse matrix of shape (n_samples, n_features)
        On the host.
    y : ndarray of shape (n_samples,)
    seed : int
        Of the validation split.
    """
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedShuffleSplit
    from sklearn.pipeline import make_pipeline

    from ..arrays.on_disk import is_on_disk

    if is_on_disk(X):
        raise ValueError("the data do not fit into memory: leave --second-stage out.")
    try:
        split = StratifiedShuffleSplit(1, test_size=_SHARE, random_state=seed).split(y, y)
        train, held_out = next(split)
    except ValueError as error:
        raise ValueError(
            f"--second-stage chooses its ridge on {_SHARE:.0%} of the samples, and these are too "
            f"few: {error}"
        ) from error
    before = _scaler(model, vectorizer, X)
    stages = {C: make_pipeline(*before, LogisticRegression(C=C, max_iter=1000)) for C in _GRID}
    selector = clone(model).fit(X[train], y[train])
    A, B = selector.transform(X[train]), selector.transform(X[held_out])
    accuracy = {C: s.fit(A, y[train]).score(B, y[held_out]) for C, s in stages.items()}
    best = stages[max(accuracy, key=accuracy.__getitem__)].fit(model.transform(X), y)
    return tuple(step for _, step in best.steps)


def _scaler(model: Any, vectorizer: Any, X: Any) -> list[Any]:
    """The step in front: log ratios for counts of words, none for TF-IDF, deviations for others."""
    from scipy.sparse import issparse
    from sklearn.preprocessing import StandardScaler

    from .. import LogRatioScaler

    if hasattr(vectorizer, "idf_"):
        return []
    selects = hasattr(model, "get_support")  # features of X themselves, not functions of them
    if vectorizer is not None and selects:
        return [LogRatioScaler()]
    return [StandardScaler(with_mean=not (issparse(X) and selects))]
