"""Whether the first row of a table names its columns: told where it can be, else refused."""

from __future__ import annotations

from .columns import Error
from .data import Options

_SEPARATORS = ";\t|,"
_ROLES = {"label", "text"}
_TRUTH = {"true": 1.0, "false": 0.0}


def is_header(first: list[str], options: Options, error: Error) -> bool:
    """Whether the first row holds the names of the columns.

    Parameters
    ----------
    first : list of str
        Its fields.
    options : Options
    error : callable
    """
    _check_separator(first, options, error)
    if options.header is not None:
        return options.header
    given = {options.label, options.text, options.id, *options.drop, *(options.features or ())}
    roles, bare = _ROLES & set(first), options.format == "tsv" and given == {None}
    if bare and len(first) == 2 and len(roles) == 1:
        shown = " and ".join(map(repr, first))
        raise error(
            f"this line holds {shown[:100]}: say header=True where these are names of columns, "
            "and header=False where they are a label and a text.",
            0,
        )
    if roles or any(name in given and as_number(name) is None for name in first):
        return True
    if bare and len(first) <= 2:
        return False
    names = [name for name in first if name.strip()]
    numbers = [name for name in names if as_number(name, options.decimal) is not None]
    if len(numbers) + 1 >= len(names) and numbers and not _counts(numbers):
        raise error(
            f"this line holds numbers, as {numbers[0][:50]!r}, where the names of the columns are "
            "expected. Where it is a sample, say header=False: the columns are named 1, 2, and so "
            "on. Where it holds names, say header=True.",
            first.index(numbers[0]),
        )
    return True


def _counts(names: list[str]) -> bool:
    """Whether names count from 0 or 1, as those of tables that had none."""
    return len(names) > 2 and any(
        names == [str(i) for i in range(start, start + len(names))] for start in (0, 1)
    )


def _check_separator(first: list[str], options: Options, error: Error) -> None:
    """Raise where the fields are separated by something else."""
    other = next((c for c in _SEPARATORS if c in first[0]), None)
    if options.sep is None and len(first) == 1 and other is not None:
        expected = "tab" if options.format == "tsv" else "comma"
        what = f"there is no {expected} in this line, but {other!r}: name the separator,"
        raise error(f"{what} sep={other!r}.", 0)


def as_number(value: str, decimal: str = ".") -> float | None:
    """The number that a cell holds, or None."""
    value = value.strip()
    if decimal != ".":
        if "." in value:  # of thousands, it may be
            return None
        value = value.replace(decimal, ".")
    try:
        return None if "_" in value else float(value)
    except ValueError:
        return _TRUTH.get(value.lower())
