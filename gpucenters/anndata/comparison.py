"""Which groups of cells are compared with which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..statistics import Statistics


@dataclass(frozen=True)
class Comparison:
    """The groups that are compared, the cells of each, and what each is compared with.

    Attributes
    ----------
    labels : list of str
        The names of the classes, all different.
    codes : ndarray of shape (n_cells,)
        The class of each cell; -1 for cells that are left out.
    listed : list of int
        The classes for which features are ranked, in the order of their results.
    reference : int or None
        A class; None for all others.
    """

    labels: list[str]
    codes: np.ndarray
    listed: list[int]
    reference: int | None

    @property
    def named(self) -> list[int]:
        """The classes that the user names: those listed, and the reference."""
        return self.listed if self.reference is None else [*self.listed, self.reference]

    def pairs(self, statistics: Statistics) -> Iterator[tuple[int, Statistics]]:
        """(class, statistics of the reference and of the class) of each class that is listed."""
        if self.reference is None:
            for c, pair in enumerate(statistics.one_vs_rest()):
                if c in self.listed:
                    yield c, pair
            return
        for c in self.listed:
            pair = statistics.of_classes([self.reference, c])
            pair.classes = None
            yield c, pair


def compared(adata: Any, groupby: str, groups: Any, reference: Any) -> Comparison:
    """The comparison that a user asks for.

    Raises
    ------
    ValueError
        For columns and groups that are not there, that no file of scanpy's form can hold, or that
        leave nothing to compare.
    """
    names, of_cell = categories(adata, groupby)
    known = [str(name) for name in names]
    for name, text in zip(names, known, strict=True):
        if not text or "\0" in text:
            raise ValueError(
                f"the group {name!r} of {groupby!r} cannot be a field of a structured array, which "
                "scanpy's form needs: rename it by adata.obs[...].cat.rename_categories."
            )
    twice = [name for name in names if known.count(str(name)) > 1]
    if twice:
        raise ValueError(
            f"the groups {', '.join(map(repr, twice))} of {groupby!r} have one name as text: "
            "rename one of them."
        )
    if len(known) < 2:
        raise ValueError(
            f"{groupby!r} has {len(known)} group{'' if known else 's'}: {known}. There is nothing "
            "to compare it with."
        )
    listed, of = _listed(groups, known), None
    if not isinstance(reference, str) or reference != "rest":
        of = str(reference)
    for name in listed if of is None else [*listed, of]:
        if name not in known:
            raise ValueError(f"{name!r} is no group of {groupby!r}: these are {known[:20]}.")
    listed = [name for name in listed if name != of]
    if not listed:
        raise ValueError(f"the group {of!r} cannot be compared with itself: name other groups.")
    labels = [name for name in known if name in listed or name == of]
    others = [name for name in known if name not in labels]
    rest = [_new_name("rest", known)] if others and of is None else []
    code_of = {name: labels.index(name) for name in labels}
    code_of |= dict.fromkeys(others, len(labels) if rest else -1)
    codes = [labels.index(name) for name in listed]
    return Comparison(
        labels + rest,
        np.asarray([code_of[name] for name in known] + [-1])[of_cell],
        sorted(codes) if of is None else codes,
        None if of is None else labels.index(of),
    )


def categories(adata: Any, column: str) -> tuple[list[Any], np.ndarray]:
    """(categories that occur in a column of ``adata.obs``, number of each cell's, -1 for none)."""
    if column not in adata.obs:
        raise ValueError(
            f"there is no column {column!r} in adata.obs; there are {list(adata.obs)[:20]}."
        )
    found = pd.Series(pd.Categorical(adata.obs[column])).cat.remove_unused_categories().cat
    return found.categories.tolist(), found.codes.to_numpy()


def _new_name(name: str, known: list[str]) -> str:
    while name in known:
        name += "_"
    return name


def _listed(groups: Any, known: list[str]) -> list[str]:
    if isinstance(groups, str) and groups == "all":
        return known
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise ValueError(f"groups={groups!r} is not valid: use 'all' or a sequence of groups.")
    listed = list(dict.fromkeys(map(str, groups)))
    if not listed:
        raise ValueError("groups is empty: use 'all', or name one group at least.")
    return listed
