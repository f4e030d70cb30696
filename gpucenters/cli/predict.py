"""``gpucenters predict``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .data import AsJson, DataOptions, DataPath, check_place
from .output import say, show_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..readers import Data
    from .trained import Trained

_ROWS = 10_000  # of a batch


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")],
    data: DataPath,
    *,
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="Text, .csv or .npy; - for stdout.", metavar="FILE"),
    ] = "-",
    proba: Annotated[bool, typer.Option("--proba", help="With the probability of each class.")] = (
        False
    ),
    decision: Annotated[bool, typer.Option("--decision", help="With decision values.")] = False,
    reading: DataOptions,
    device: Annotated[
        str, typer.Option("--device", "-d", metavar="auto|cpu|cuda|cuda:N", help="Where to work.")
    ] = "auto",
    json: AsJson = False,
) -> None:
    """Predict the classes of samples.

    The output has one line for each sample: its class. With --proba or --decision a header comes
    first, and the numbers of each class follow the class (for two classes one decision value,
    positive for the second class). With --id the name of the sample is in front. Where the data
    have labels, the accuracy goes to stderr. Columns are found by their names, in any order; others
    are left out, and those that the model has not selected may be absent.
    """
    if proba and decision:
        raise typer.BadParameter("--proba and --decision exclude each other.")
    if reading.id is not None and output.endswith(".npy"):
        raise typer.BadParameter("--id writes names beside classes, which .npy cannot hold.")
    if data == "-" and model == "-":
        raise typer.BadParameter("MODEL and DATA cannot both be stdin.")
    check_place(output, model, data, reading.labels)
    from ..readers.errors import counted
    from .trained import Trained

    trained = Trained.load(model, device)
    method = "predict_proba" if proba else "decision_function" if decision else None
    if method and not hasattr(trained.classifier, method):
        raise ValueError(f"{type(trained.classifier).__name__} has no {method}.")
    result = _Predictions(trained, method, reading.id)
    batches = reading.like(trained.reading, data).batches(
        data,
        _ROWS,
        trained.n_features,
        trained.wanted,
        of_stdin="csv" if trained.vectorizer is None else "lines",
    )
    if output != "-":
        batches = _with_progress(batches)
    if json and output == "-":
        show_json(result.collect(batches, data) | result.facts())
        return
    if output.endswith(".npy"):
        result.save(batches, data, output)
    else:
        result.write(batches, data, output)
    if json:
        show_json(result.facts() | {"output": output})
    elif result.labelled:
        say(f"accuracy {result.accuracy:.4f} of {counted(result.labelled, 'sample')}")


def _with_progress(batches: Iterator[Data]) -> Iterator[Data]:
    """The batches, with a count of their rows on a terminal."""
    from tqdm import tqdm

    with tqdm(unit=" rows", disable=None, leave=False) as bar:
        for batch in batches:
            yield batch
            bar.update(len(batch))


class _Predictions:
    """Predictions as they come, and how many of them are right."""

    def __init__(self, trained: Trained, method: str | None, id: str | None) -> None:
        self.trained = trained
        self.method = method
        self.id = id
        self.samples = self.right = self.labelled = 0

    @property
    def accuracy(self) -> float:
        return self.right / self.labelled

    @property
    def head(self) -> list[Any]:
        """The names of the numbers."""
        classes: list[Any] = self.trained.classifier.classes_.tolist()
        two = self.method == "decision_function" and len(classes) == 2
        return classes[1:] if two else classes

    def facts(self) -> dict[str, Any]:
        """Counts of what was predicted."""
        accuracy = {"accuracy": self.accuracy} if self.labelled else {}
        return {"samples": self.samples, "labelled": self.labelled} | accuracy

    def of(self, batches: Iterator[Data], source: str) -> Iterator[tuple[Any, Any, list[str]]]:
        """(classes, numbers or None, names of samples) of each batch."""
        import numpy as np

        from .trained import agreement

        model = self.trained.classifier
        for batch in batches:
            X = self.trained.features(batch, source)
            predicted = model.predict(X)
            self.samples += len(predicted)
            if batch.y is not None:
                there = ~np.ma.getmaskarray(batch.y)
                labels = np.ma.getdata(batch.y)[there]
                self.right += int(agreement(predicted[there], labels).sum())
                self.labelled += len(labels)
            numbers = None if self.method is None else getattr(model, self.method)(X)
            numbers = None if numbers is None else numbers.reshape(len(predicted), -1)
            yield predicted, numbers, batch.ids or []

    def write(self, batches: Iterator[Data], source: str, output: str) -> None:
        """Write lines, as they come."""
        from .writers import Rows, opened

        with opened(output) as file:
            rows = Rows(file, output)
            if self.method or output.endswith(".csv"):
                name = [] if self.id is None else [self.id or "id"]
                rows.write([*name, "class", *(self.head if self.method else [])])
            for predicted, numbers, ids in self.of(batches, source):
                for i, label in enumerate(predicted.tolist()):
                    values = [] if numbers is None else numbers[i].tolist()
                    rows.write([*ids[i : i + 1], label, *values])

    def save(self, batches: Iterator[Data], source: str, output: str) -> None:
        """Write an array: the numbers where they were asked for, else the classes."""
        import numpy as np

        from .writers import opened

        parts = [
            predicted if numbers is None else numbers
            for predicted, numbers, _ in self.of(batches, source)
        ]
        found = np.concatenate(parts) if parts else self.trained.classifier.classes_[:0]
        with opened(output) as file:
            np.save(file, found, allow_pickle=False)

    def collect(self, batches: Iterator[Data], source: str) -> dict[str, Any]:
        """All predictions, for JSON."""
        found = list(self.of(batches, source))
        result: dict[str, Any] = {"predictions": [x for p, _, _ in found for x in p.tolist()]}
        if self.id is not None:
            result["ids"] = [id for _, _, ids in found for id in ids]
        if self.method is not None:
            values = [row for _, numbers, _ in found for row in numbers.tolist()]
            result[self.method] = {"classes": self.head, "values": values}
        return result
