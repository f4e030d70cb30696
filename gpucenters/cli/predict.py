"""``gpucenters predict`` and ``select``."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .data import AsJson, DataOptions, DataPath, check_files, check_place
from .output import say, show_facts, show_json

if TYPE_CHECKING:
    from ..readers import Data
    from .trained import Trained
    from .writers import Rows

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
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Where the data have labels: precision, recall and F1 of each class, the "
            "confusion matrix, and the log loss.",
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Predict the classes of samples.

    The output has one line for each sample, its class; from stdin to stdout as the samples come.
    With --proba or --decision a header comes first, and the numbers of each class follow the class
    (for two classes one decision value, positive for the second class). With --id the name of the
    sample is in front. Where the data have labels, the accuracy goes to stderr, beside the share of
    the largest class, and so does what --report asks for. Columns are found by their names, in any
    order; others are left out, and those that the model has not selected may be absent.
    """
    if proba and decision:
        raise typer.BadParameter("--proba and --decision exclude each other.")
    if reading.id is not None and output.endswith(".npy"):
        raise typer.BadParameter("--id writes names beside classes, which .npy cannot hold.")
    if data == "-" and model == "-":
        raise typer.BadParameter("MODEL and DATA cannot both be stdin.")
    check_place(output, model, data, reading.labels)
    check_files(model, data, reading.labels)
    from ..readers.data import counted
    from .trained import Trained

    trained = Trained.load(model, device)
    method = "predict_proba" if proba else "decision_function" if decision else None
    if method and not hasattr(trained.predictor, method):
        last = (trained.classifier, *trained.second)[-1]
        raise ValueError(f"{type(last).__name__} has no {method}.")
    result = _Predictions(trained, method, reading.id, report=report)
    options = reading.like(trained.reading, data)

    def read(rows: int = _ROWS) -> Iterator[Data]:
        of_stdin = "csv" if trained.vectorizer is None else "lines"
        width, wanted = trained.n_features, trained.wanted
        found = options.batches(data, rows, width, wanted, of_stdin=of_stdin)
        return found if output == "-" else _with_progress(found)

    if json and output == "-":
        show_json(result.collect(read(), data) | result.facts())
    elif output.endswith(".npy"):
        result.save(read(), data, output)
    elif data == output == "-":
        result.write_on(lambda: read(1))
    else:
        result.write(read(), data, output)
    if json and output != "-":
        show_json(result.facts() | {"output": output})
    found = result.evaluation
    if not found.samples:
        if report:
            say(f"note: {data} holds no labels, and so there is nothing to report.")
        return
    found.warn()
    if report and not json:
        show_facts({"labelled": found.samples} | found.facts(), on_stderr=True)
        found.show(on_stderr=True)
    elif not json:
        say(
            f"accuracy {found.accuracy:.4f} of {counted(found.samples, 'sample')}; share of the "
            f"largest class {found.largest_share:.4f}"
        )


def _with_progress(batches: Iterator[Data]) -> Iterator[Data]:
    """The batches, with a count of their rows on a terminal."""
    from tqdm import tqdm

    with tqdm(unit=" rows", disable=None, leave=False) as bar:
        for batch in batches:
            yield batch
            bar.update(len(batch))


class _Predictions:
    """Predictions as they come, and how many of them are right."""

    def __init__(
        self, trained: Trained, method: str | None, id: str | None, *, report: bool
    ) -> None:
        from .evaluation import Evaluation

        self.trained = trained
        self.method = method
        self.id = id
        self.report = report
        self.evaluation = Evaluation(trained.classifier.classes_)
        self.samples = 0

    @property
    def head(self) -> list[Any]:
        """The names of the numbers."""
        classes: list[Any] = self.trained.predictor.classes_.tolist()
        two = self.method == "decision_function" and len(classes) == 2
        return classes[1:] if two else classes

    def facts(self) -> dict[str, Any]:
        """Counts of what was predicted."""
        found, of = {"samples": self.samples, "labelled": self.evaluation.samples}, self.evaluation
        found |= of.facts() if of.samples else {}
        return found | (of.report() if of.samples and self.report else {})

    def of(self, batches: Iterator[Data], source: str) -> Iterator[tuple[Any, Any, list[str]]]:
        """(classes, numbers or None, names of samples) of each batch."""
        import numpy as np

        model = self.trained.predictor
        for batch in batches:
            X = self.trained.features(batch, source)
            predicted = model.predict(X)
            numbers = None if self.method is None else getattr(model, self.method)(X)
            if batch.y is not None:
                probability = numbers if self.method == "predict_proba" else None
                if self.report and probability is None and hasattr(model, "predict_proba"):
                    probability = model.predict_proba(X)
                known = ~np.ma.getmaskarray(batch.y)
                probability = None if probability is None else probability[known]
                self.evaluation.add(np.ma.getdata(batch.y)[known], predicted[known], probability)
            self.samples += len(predicted)
            numbers = None if numbers is None else numbers.reshape(len(predicted), -1)
            yield predicted, numbers, batch.ids or []

    def write(self, batches: Iterator[Data], source: str, output: str) -> None:
        """Write lines, as they come."""
        from .writers import Rows, opened

        with opened(output) as file:
            rows = self._begun(Rows(file, output), output)
            self._add(batches, source, rows)

    def write_on(self, read: Callable[[], Iterator[Data]]) -> None:
        """Write the lines of what stdin has given before more of it is waited for."""
        from .writers import Rows, opened

        with opened("-") as file:
            rows = self._begun(Rows(file, "-"), "-")

            def handle(batch: Data) -> None:
                self._add(iter([batch]), "-", rows)
                file.flush()

            _hand_on(read, handle, _ROWS)

    def _begun(self, rows: Rows, output: str) -> Rows:
        if self.method or output.endswith(".csv"):
            name = [] if self.id is None else [self.id or "id"]
            rows.write([*name, "class", *(self.head if self.method else [])])
        return rows

    def _add(self, batches: Iterator[Data], source: str, rows: Rows) -> None:
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
        found = np.concatenate(parts) if parts else self.trained.predictor.classes_[:0]
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


def select(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")],
    data: DataPath,
    *,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help=".npz, .npy, .csv or .tsv."),
    ],
    k: Annotated[
        str | None,
        typer.Option("--k", "-k", metavar="N|10%|all", help="Fewer features than the model has."),
    ] = None,
    reading: DataOptions,
    json: AsJson = False,
) -> None:
    """Write the columns that a model has selected, with labels and names where there are some."""
    check_place(output, model, data, reading.labels)
    check_files(model, data, reading.labels)
    from ..readers.data import counted
    from .models import parse_k
    from .trained import Trained
    from .writers import COLUMN_FORMATS, write_columns

    if output.rpartition(".")[2] not in COLUMN_FORMATS:
        raise typer.BadParameter(
            f"{output!r} is no name for columns: use .npz, .npy, .csv or .tsv."
        )
    chosen_k = None if k is None else parse_k(k)
    trained = Trained.load(model, "cpu")
    if not trained.selects:
        raise ValueError(
            f"{model}: the binary models of {type(trained.classifier).__name__} select features "
            "each for itself, so there are no columns of the whole model to write."
        )
    if chosen_k is not None:
        trained = trained.with_k(chosen_k)
    options = reading.like(trained.reading, data)
    found = options.read(data, trained.n_features, trained.wanted)
    columns = trained.classifier.transform(trained.features(found, data))
    names = [str(name) for name in trained.names()]
    write_columns(output, columns, found.y, names)
    if json:
        shape = {"samples": columns.shape[0], "features": columns.shape[1]}
        show_json(shape | {"names": names, "output": output})
    else:
        samples, features = map(counted, columns.shape, ("sample", "feature"))
        say(f"{samples} x {features} in {output}")


class _Watched(io.RawIOBase):
    """A raw stream that tells before each read that it may have to wait."""

    def __init__(self, raw: Any, before: Callable[[], None]) -> None:
        self._raw = raw
        self._before = before

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._before()
        return self._raw.readinto(buffer)


@contextmanager
def _watched_stdin(before: Callable[[], None]) -> Iterator[None]:
    stdin = sys.stdin
    raw = getattr(stdin.buffer, "raw", stdin.buffer)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(_Watched(raw, before), 2**16))
    try:
        yield
    finally:
        sys.stdin = stdin


def _hand_on(read: Callable[[], Iterator[Data]], handle: Callable[[Data], None], most: int) -> None:
    """Read standard input, and handle what has come before more is waited for.

    Parameters
    ----------
    read : callable
        Gives the rows of standard input one by one.
    handle : callable
        Called with the rows that have come, at least one.
    most : int
        Rows that are handled together at most.
    """
    from ..readers.steps import joined

    held: list[Data] = []

    def flush() -> None:
        if held:
            (data,) = joined(held, "-", float("inf"))
            held.clear()
            handle(data)

    with _watched_stdin(flush):
        for row in read():
            held.append(row)
            if len(held) == most:
                flush()
        flush()
