"""The error for a file that cannot be read."""

from __future__ import annotations

from typing import Any


def counted(number: int, what: str) -> str:
    """A number of things: "1 row", "1,000 rows"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


class ReadError(ValueError):
    """A file that does not hold what its format says, with the place.

    Parameters
    ----------
    path : str or path-like
        "-" is shown as standard input.
    what : str
        A sentence.
    line, column : int, optional
        From 1. Columns count characters; bytes where the line is not text.

    Examples
    --------
    >>> from gpucenters.readers import ReadError
    >>> print(ReadError("reviews.tsv", "there is no tab.", 7, 12))
    reviews.tsv, line 7, column 12: there is no tab.
    """

    def __init__(
        self, path: Any, what: str, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(path, what, line, column)
        self.path, self.what, self.line, self.column = path, what, line, column

    def __str__(self) -> str:
        """The file, the place in it, and what is wrong there."""
        place = "standard input" if self.path == "-" else str(self.path)
        if self.line is not None:
            place += f", line {self.line}"
        if self.column is not None:
            place += f", column {self.column}"
        return f"{place}: {self.what}"
