"""Parquet and Feather: tables of typed columns, which pyarrow reads in record batches."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from .columns import as_labels, find_column
from .data import Data, Options
from .errors import ReadError
from .lines import too_large
from .whole import joined

_VALUES = 2**22  # of a part of a file that is read whole


def arrow_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of a table: texts where it has a column of them, else numbers."""
    pa, name = _library(options), options.format
    with open(path, "rb"):  # where it cannot be opened, the system's own error
        pass
    try:
        parts = _Table(path, options).parts(rows)
        yield from joined(parts, path, options.limit()) if rows == sys.maxsize else parts
    except ReadError:
        raise
    except pa.ArrowMemoryError as error:
        raise too_large(path, options.limit()) from error
    except MemoryError:
        raise
    except Exception as error:
        what = " ".join(str(error).split())
        raise ReadError(path, f"is no table of the format {name}: {what}") from error


def _library(options: Options) -> Any:
    try:
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            f"{options.format} needs pyarrow: pip install 'gpucenters[tables]'."
        ) from error
    return pyarrow


class _Table:
    """A table whose columns are known once its schema is read.

    Parameters
    ----------
    path : str or path-like
        For errors.
    options : Options
    """

    def __init__(self, path: Any, options: Options) -> None:
        self.path = os.fspath(path)
        self.options = options

    def parts(self, rows: int) -> Iterator[Data]:
        """The rows, at most so many at a time."""
        batches = self._parquet if self.options.format == "parquet" else self._feather
        start = 0
        for batch in batches(rows):
            batch.validate(full=True)  # before any value is looked at
            for first in range(0, batch.num_rows, rows):
                part = batch.slice(first, rows)
                yield self._data(part, start)
                start += part.num_rows

    def _parquet(self, rows: int) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        limit, whole = self.options.limit(), rows == sys.maxsize
        with pq.ParquetFile(self.path) as file:
            self._choose(schema := file.schema_arrow)
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            sizes = [group.total_byte_size for group in groups]
        if (sum(sizes) if whole else max(sizes, default=0)) > limit:
            raise too_large(self.path, limit)
        # A string that is stored once, however often it is repeated, is held once.
        strings = [name for name in self.named if not pa.types.is_nested(schema.field(name).type)]
        with pq.ParquetFile(self.path, read_dictionary=strings) as file:
            step = max(1, min(rows, _VALUES // len(self.used)))
            yield from file.iter_batches(step, columns=[self.names[i] for i in self.used])

    def _feather(self, rows: int) -> Iterator[Any]:
        import pyarrow as pa

        with pa.memory_map(self.path) as file:
            self._choose(pa.ipc.open_file(file).schema)
            chosen = pa.ipc.IpcReadOptions(included_fields=self.used)
            reader = pa.ipc.open_file(file, options=chosen)
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)

    def _choose(self, schema: Any) -> None:
        """Find the columns of labels, of texts and of numbers."""
        import pyarrow as pa

        self.names = list(schema.names)
        self.label, self.text = (
            find_column(self.names, self.options, role, self._error) for role in ("label", "text")
        )
        self.named = [self.names[i] for i in (self.label, self.text) if i is not None]
        self.numbers: list[int] = []
        if self.text is None:
            index = (schema.pandas_metadata or {}).get("index_columns", [])
            left_out = {self.label} | {i for i, name in enumerate(self.names) if name in index}
            self.numbers = [i for i in range(len(self.names)) if i not in left_out]
            if not self.numbers:
                raise self._error("there is no column but that of the labels.")
            is_kind = pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean
            for i in self.numbers:
                kind = schema.field(i).type
                if not any(test(kind) for test in is_kind):
                    raise self._error(
                        f"the column {self.names[i]!r} holds {kind}, and no numbers. If it holds "
                        "the labels or texts, name it: label=... or text=..."
                    )
            twice = [name for name, times in Counter(self.names).items() if times > 1]
            if twice:
                raise self._error(f"there are two columns {twice[0]!r}.")
            kinds = [schema.field(i).type.to_pandas_dtype() for i in self.numbers]
            self.dtype = np.result_type(*kinds)
        chosen = {self.label, self.text, *self.numbers} - {None}
        self.used = sorted(i for i in chosen if i is not None)

    def _data(self, batch: Any, start: int) -> Data:
        column = dict(zip(self.used, batch.columns, strict=True))
        y = None
        if self.label is not None:
            name = f"the column {self.names[self.label]!r}"
            y = as_labels(_values(column[self.label]), name, self._error, start)
        if self.text is not None:
            texts = _values(column[self.text])
            for row, text in enumerate(texts, start + 1):
                if not isinstance(text, str):
                    what = "is missing" if text is None else "is no text"
                    raise self._error(f"row {row} of the column {self.names[self.text]!r} {what}.")
            return Data(texts, y)
        X = np.empty((batch.num_rows, len(self.numbers)), self.dtype)
        for j, i in enumerate(self.numbers):
            values = column[i]
            if values.null_count:
                row = start + 1 + int(np.flatnonzero(np.asarray(values.is_null()))[0])
                raise self._error(f"row {row} of the column {self.names[i]!r} is missing.")
            X[:, j] = values.to_numpy(zero_copy_only=False)
        return Data(X, y, np.asarray([self.names[i] for i in self.numbers]))

    def _error(self, what: str, at: int = 0) -> ReadError:
        return ReadError(self.path, what)


def _values(column: Any) -> list[Any]:
    """The values of a column, those of a dictionary shared."""
    if not hasattr(column, "dictionary"):
        return column.to_pylist()
    values = column.dictionary.to_pylist()
    return [None if code is None else values[code] for code in column.indices.to_pylist()]
