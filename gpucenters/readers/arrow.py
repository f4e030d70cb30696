"""Parquet and Feather: tables of typed columns, which pyarrow reads in record batches."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from .data import (
    NO_FEATURE,
    Data,
    Options,
    ReadError,
    as_labels,
    choose_columns,
    errors_of,
    missing_value,
)
from .lines import too_large

_VALUES = 2**22  # of a part of a file that is read whole


def arrow_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of a table: texts where it has a column of them, else numbers."""
    try:
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            f"{options.format} needs pyarrow: pip install 'gpucenters[tables]'."
        ) from error
    with errors_of(path, f"table of the format {options.format}"):
        try:
            yield from _ArrowTable(path, options).parts(rows)
        except pyarrow.ArrowMemoryError as error:
            raise too_large(path, options.limit()) from error


class _ArrowTable:
    """A table whose columns are known once its schema is read."""

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
            yield from file.iter_batches(step, columns=[schema.names[i] for i in self.used])

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

        names = list(schema.names)
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        known = [name for name in index if isinstance(name, str)]
        found = self.columns = choose_columns(names, self.options, self._error, known)
        named = (found.label, found.text, found.id)
        self.named = [names[i] for i in named if i is not None]
        is_kind = pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean
        kinds = [schema.field(i).type for i in found.numbers]
        for i, kind in zip(found.numbers, kinds, strict=True):
            if not any(test(kind) for test in is_kind):
                what = f"the column {names[i]!r} holds {kind}, and no numbers."
                raise self._error(f"{what} {NO_FEATURE}")
        self.dtype = np.result_type(np.bool_, *(kind.to_pandas_dtype() for kind in kinds))
        self.used = sorted({i for i in (*named, *found.numbers) if i is not None})

    def _data(self, batch: Any, start: int) -> Data:
        columns, values = self.columns, dict(zip(self.used, batch.columns, strict=True))
        y = ids = None
        if columns.label is not None:
            name = f"the column {columns.names[columns.label]!r}"
            found = _values(values[columns.label])
            y = as_labels(found, self.path, name, start, mask=self.options.masks_labels)
        if columns.id is not None:
            ids = [str(value) for value in _values(values[columns.id])]
        if columns.text is not None:
            texts = _values(values[columns.text])
            for row, text in enumerate(texts, start + 1):
                place = f"row {row} of the column {columns.names[columns.text]!r}"
                if text is None and self.options.missing != "drop":
                    raise self._error(missing_value(place))
                if not isinstance(text, str | None):
                    raise self._error(f"{place} is no text.")
            return Data(texts, y, None, ids)
        missing = any(values[i].null_count for i in columns.numbers)
        dtype = np.result_type(self.dtype, np.float16) if missing else self.dtype
        X = np.empty((batch.num_rows, len(columns.numbers)), dtype)
        for j, i in enumerate(columns.numbers):
            X[:, j] = values[i].to_numpy(zero_copy_only=False)
        return Data(X, y, columns.feature_names, ids)

    def _error(self, what: str, at: int = 0) -> ReadError:
        return ReadError(self.path, what)


def _values(column: Any) -> list[Any]:
    """The values of a column, those of a dictionary shared."""
    if not hasattr(column, "dictionary"):
        return column.to_pylist()
    values = column.dictionary.to_pylist()
    return [None if code is None else values[code] for code in column.indices.to_pylist()]
