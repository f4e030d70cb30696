"""``gpucenters fit``."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .models import Choice, ModelOptions
from .options import (
    AsJson,
    DataOptions,
    DataPath,
    TestOptions,
    TextOptions,
    option,
    share_of_samples,
    warn_of_many_classes,
)
from .output import Stages, progress_of, say, show_facts, show_json
from .writers import check_files

if TYPE_CHECKING:
    from ..readers import Data
    from .features import Trained

_SHOWN = 10  # best features
_GRID = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # of C of a second stage, the inverse of its ridge
_SHARE = 0.2  # of the samples, on which C is chosen


def fit(
    data: DataPath,
    *,
    output: Annotated[
        str, option("The model file; - for stdout.", "--output", "-o", metavar="MODEL")
    ],
    model: ModelOptions,
    reading: DataOptions,
    text: TextOptions,
    held_out: TestOptions,
    test_size: Annotated[
        float | None, share_of_samples("Hold out this share of DATA, for the accuracy.")
    ] = None,
    seed: Annotated[int, option("Of the choices of --test-size and --second-stage.")] = 0,
    batch_rows: Annotated[
        int | None,
        option("Read texts so many at a time, for files larger than memory (hashing).", min=1),
    ] = None,
    second_stage: Annotated[
        str | None,
        option(
            "Classify by ridge logistic regression on the selected features (of counts times "
            "their log ratios); one validation split chooses the ridge.",
            values="logistic",
        ),
    ] = None,
    full: Annotated[bool, option("Keep what partial_fit and every other k need.", "--full")] = (
        False
    ),
    json: AsJson = False,
) -> None:
    """Fit a model, and save it.

    DATA is text (label TAB text, CSV with named columns, or a folder for each class), a table
    (CSV, TSV, Parquet, Feather), .h5ad, svmlight, NumPy's .npz (X and y) or .npy with --labels, or
    SciPy's .npz; lines plain or compressed. With --test-size the model is fitted to the other
    samples, and that model is saved.
    """
    if held_out.test is not None and test_size is not None:
        raise typer.BadParameter("--test and --test-size exclude each other.")
    if batch_rows is not None and test_size is not None:
        raise typer.BadParameter("--batch-rows reads every row: use --test, not --test-size.")
    if batch_rows is not None and second_stage is not None:
        raise typer.BadParameter("--second-stage needs all samples: leave --batch-rows out.")
    choice, vectorizer, stages = Choice(model), text.make(), Stages()
    check_files([output], [data, reading.labels, *held_out.files()])
    from ..estimators.fitted import set_reading
    from .evaluation import Evaluation
    from .features import Trained, prepare

    if batch_rows is None:
        with stages("reading"):
            found = reading.read_labelled(data)
            others = held_out.read(reading, found)
            if test_size is not None:
                found, others = _split(found, data, test_size, seed)
        estimator, X, features = prepare(found, data, reading, vectorizer, choice, stages)
        with stages("fitting", spinner=False), progress_of(estimator):
            estimator.fit(X, found.y)
        medians = {} if features.medians is None else {"medians": features.medians}
        set_reading(estimator, reading.remembered(data) | medians)
        trained, samples = Trained(estimator, features.vectorizer), len(found)
        if second_stage is not None:
            with stages("second stage"):
                second = _second_stage(estimator, features.vectorizer, X, found.y, seed)
            trained = replace(trained, second=second)
        if features.names is not None:
            estimator.feature_names_in_ = features.names.astype(object)
    else:
        estimator = choice.model("texts")
        _check_batches(estimator, vectorizer, data)
        with stages("reading"):
            others = held_out.read(reading, None)
        trained, samples = _fit_batches(estimator, vectorizer, data, reading, batch_rows, stages)
    facts = _facts(trained, samples)
    evaluation = None
    if others is not None and others.y is not None:
        with stages("scoring"):
            predictor, X = trained.predictor, trained.features(others, held_out.test or data)
            proba = predictor.predict_proba(X) if hasattr(predictor, "predict_proba") else None
            evaluation = Evaluation(predictor.classes_)
            evaluation.add(others.y, predictor.predict(X), proba)
        facts |= {"held_out": evaluation.samples} | evaluation.facts()
    with stages("saving"):
        _save(trained, output, full=full)
    if evaluation is not None:
        evaluation.warn()
    if json and output != "-":
        facts |= {} if evaluation is None else evaluation.report()
        show_json(facts | {"seconds": stages.seconds, "output": output})
    else:
        show_facts(facts | {"time": stages} | _saved(output), on_stderr=output == "-")
        if evaluation is not None:
            evaluation.show(on_stderr=output == "-")
    if text.vectorizer == "tfidf" and getattr(trained.vectorizer, "norm", None):
        say(
            "note: the norm of a text needs all of its words, so the file keeps every word and its "
            "idf. With --norm none it keeps the selected words alone."
        )


def _check_batches(estimator: Any, vectorizer: Any, path: str) -> None:
    """Raise for what cannot be fitted in batches."""
    if not hasattr(estimator, "partial_fit"):
        raise typer.BadParameter(
            f"{type(estimator).__name__} needs all samples at once, and cannot be fitted "
            "in batches: leave --batch-rows out."
        )
    if estimator.class_weight is not None:
        raise typer.BadParameter("--class-weight needs all samples: leave --batch-rows out.")
    if hasattr(vectorizer, "get_feature_names_out"):
        raise typer.BadParameter(
            "--batch-rows needs --vectorizer hashing: a vocabulary is that of all texts."
        )
    if path == "-":
        raise typer.BadParameter("--batch-rows reads DATA twice, which stdin cannot be.")


def _fit_batches(
    estimator: Any, vectorizer: Any, path: str, reading: DataOptions, rows: int, stages: Stages
) -> tuple[Trained, int]:
    """(the model of a file of texts that is read in batches, twice; the number of texts)."""
    from tqdm import tqdm

    from ..estimators.fitted import set_reading
    from ..readers import fit_text
    from .features import Trained

    samples = 0
    with tqdm(unit=" rows", disable=None, leave=False) as bar:

        def progress(done: int, total: int | None) -> None:
            nonlocal samples
            samples, bar.total = done, total
            bar.set_description("labels" if total is None else "fitting")
            bar.update(done - bar.n)

        with stages("reading and fitting", spinner=False):
            options = reading.of_readers(path)
            pipeline = fit_text(
                path, estimator, vectorizer, rows=rows, progress=progress, **options
            )
    model = pipeline["classifier"]
    warn_of_many_classes(len(model.classes_), samples, path, is_text=True)
    set_reading(model, reading.remembered(path))
    return Trained(model, pipeline["vectorizer"]), samples


def _facts(trained: Trained, samples: int) -> dict[str, Any]:
    """What was fitted."""
    from ..estimators.fitted import FittedModel
    from .features import counter

    model, vectorizer = trained.classifier, trained.vectorizer
    fitted = FittedModel(model)
    weight = dict(zip(model.classes_.tolist(), fitted.centers.class_weight, strict=False))
    names = trained.names()
    facts = {
        "model": type(model).__name__,
        "samples": samples,
        "features": model.n_features_in_,
        "classes": weight,
        "selected": len(model.support_),
        "best_features": [names[at] for at in trained.ranking()[:_SHOWN]],
        "objective": model.objective_,
        "worked_on": str(fitted.backend),
    }
    if trained.second:
        facts["second_stage"] = ", ".join(map(str, trained.second))
    if vectorizer is not None:
        facts["words_by"] = counter(vectorizer)
    return facts


def _split(data: Data, source: str, test_size: float, seed: int) -> tuple[Data, Data]:
    """(the samples to fit, those to hold out), in the shares of the classes."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    from ..arrays.inputs import is_on_disk
    from ..readers.data import ReadError, counted

    if is_on_disk(data.X):
        what = "it does not fit into memory: name held-out data by --test, in place of --test-size."
        raise ReadError(source, what)
    try:
        parts = train_test_split(
            np.arange(len(data)), test_size=test_size, stratify=data.y, random_state=seed
        )
    except ValueError as error:
        raise ValueError(
            f"--test-size {test_size:g} of {counted(len(data), 'sample')} is no share with samples "
            "of every class on both sides: use another one, or name held-out data by --test."
        ) from error
    train, held_out = (data.rows(np.sort(index)) for index in parts)
    return train, held_out


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


def _second_stage(model: Any, vectorizer: Any, X: Any, y: Any, seed: int) -> tuple[Any, ...]:
    """The steps behind a model, fitted.

    C is that of best accuracy on one validation split, for which the model is fitted to the other
    samples alone; of equal ones the least.
    """
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedShuffleSplit
    from sklearn.pipeline import make_pipeline

    from ..arrays.inputs import is_on_disk

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
