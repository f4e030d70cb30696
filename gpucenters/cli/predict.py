"""``gpucenters predict`` and ``select``."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from .models import parse_k
from .options import AsJson, DataOptions, DataPath, Device, ModelPath, option
from .output import say, show_facts, show_json
from .writers import COLUMN_FORMATS, RowWriter, check_files, opened, write_columns

if TYPE_CHECKING:
    from ..readers import Data
    from .features import Trained

_ROWS = 10_000  # of a batch


def predict(
    model: ModelPath,
    data: DataPath,
    *,
    output: Annotated[
        str, option("Text, .csv or .npy; - for stdout.", "--output", "-o", metavar="FILE")
    ] = "-",
    proba: Annotated[bool, option("With the probability of each class.", "--proba")] = False,
    decision: Annotated[bool, option("With decision values.", "--decision")] = False,
    reading: DataOptions,
    device: Device = "auto",
    report: Annotated[
        bool,
        option(
            "Where the data have labels: precision, recall and F1 of each class, the confusion "
            "matrix, and the log loss.",
            "--report",
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
    check_files([output], [model, data, reading.labels])
    from ..readers.data import counted
    from .features import Trained

    trained = Trained.load(model, device)
    method = "predict_proba" if proba else "decision_function" if decision else None
    if method and not hasattr(trained.predictor, method):
        last = (trained.classifier, *trained.second)[-1]
        raise ValueError(f"{type(last).__name__} has no {method}.")
    result = _Predictions(trained, data, method, reading.id, report=report)
    options = reading.completed(trained.reading, data)

    def read(rows: int = _ROWS) -> Iterator[Data]:
        of_stdin = "csv" if trained.vectorizer is None else "lines"
        width, wanted = trained.n_features, trained.wanted
        found = options.batches(data, rows, width, wanted, of_stdin=of_stdin)
        return found if output == "-" else _with_progress(found)

    if json and output == "-":
        show_json(result.collect(read()) | result.facts())
    elif output.endswith(".npy"):
        result.save(read(), output)
    elif data == output == "-":
        result.write_at_once(lambda: read(1))
    else:
        result.write(read(), output)
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
        self, trained: Trained, source: str, method: str | None, id: str | None, *, report: bool
    ) -> None:
        from .evaluation import Evaluation

        self.trained = trained
        self.source = source
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

    def of(self, batch: Data) -> tuple[Any, Any, list[str]]:
        """(classes, numbers or None, names of samples)."""
        import numpy as np

        model, X = self.trained.predictor, self.trained.features(batch, self.source)
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
        return predicted, numbers, batch.ids or []

    def write(self, batches: Iterator[Data], output: str) -> None:
        """Write lines, as they come."""
        with opened(output) as file:
            rows = self._begun(file, output)
            for batch in batches:
                self._write(batch, rows)

    def write_at_once(self, read: Callable[[], Iterator[Data]]) -> None:
        """Write the lines of what stdin has given before more of it is waited for."""
        with opened("-") as file:
            rows = self._begun(file, "-")

            def handle(batch: Data) -> None:
                self._write(batch, rows)
                file.flush()

            _hand_on(read, handle)

    def _begun(self, file: BinaryIO, output: str) -> RowWriter:
        rows = RowWriter(file, output)
        if self.method or output.endswith(".csv"):
            name = [] if self.id is None else [self.id or "id"]
            rows.write([*name, "class", *(self.head if self.method else [])])
        return rows

    def _write(self, batch: Data, rows: RowWriter) -> None:
        predicted, numbers, ids = self.of(batch)
        for i, label in enumerate(predicted.tolist()):
            values = [] if numbers is None else numbers[i].tolist()
            rows.write([*ids[i : i + 1], label, *values])

    def save(self, batches: Iterator[Data], output: str) -> None:
        """Write an array: the numbers where they were asked for, else the classes."""
        import numpy as np

        found = [(p if numbers is None else numbers) for p, numbers, _ in map(self.of, batches)]
        with opened(output) as file:
            np.save(file, np.concatenate(found), allow_pickle=False)

    def collect(self, batches: Iterator[Data]) -> dict[str, Any]:
        """All predictions, for JSON."""
        found = [self.of(batch) for batch in batches]
        result: dict[str, Any] = {"predictions": [x for p, _, _ in found for x in p.tolist()]}
        if self.id is not None:
            result["ids"] = [id for _, _, ids in found for id in ids]
        if self.method is not None:
            values = [row for _, numbers, _ in found for row in numbers.tolist()]
            result[self.method] = {"classes": self.head, "values": values}
        return result


def select(
    model: ModelPath,
    data: DataPath,
    *,
    output: Annotated[str, option(".npz, .npy, .csv or .tsv.", "--output", "-o", metavar="FILE")],
    k: Annotated[
        str | None,
        option("Fewer features than the model has.", "--k", "-k", metavar="N|10%|all"),
    ] = None,
    reading: DataOptions,
    json: AsJson = False,
) -> None:
    """Write the columns that a model has selected, with labels and names where there are some."""
    check_files([output], [model, data, reading.labels])
    from ..readers.data import counted
    from .features import Trained

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
    options = reading.completed(trained.reading, data)
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


def _hand_on(read: Callable[[], Iterator[Data]], handle: Callable[[Data], None]) -> None:
    """Read standard input row by row, and handle the rows that have come before a wait for more."""
    from ..readers.batching import joined

    held: list[Data] = []

    def flush() -> None:
        if held:
            (data,) = joined(held, "-", float("inf"))
            held.clear()
            handle(data)

    with _watched_stdin(flush):
        for row in read():
            held.append(row)
            if len(held) == _ROWS:
                flush()
        flush()
