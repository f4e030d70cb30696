"""Label vectors that are as likely as the observed one where features tell nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .cross_validation import check_groups


def permuted_labels(
    codes: np.ndarray, groups: Any, permute: str, count: int, random_state: Any
) -> PermutedLabels:
    """The permutations that the parameters of `permutation_gains` ask for."""
    if permute not in ("within", "groups"):
        raise ValueError(f"permute={permute!r} is not valid: use 'within' or 'groups'.")
    if groups is None:
        if permute == "groups":
            raise ValueError("permute='groups' needs groups: the group of each sample.")
        return PermutedLabels(codes, np.zeros(len(codes), dtype=np.intp), count, random_state)
    found = check_groups(groups, len(codes))
    names, first, members = np.unique(found, return_index=True, return_inverse=True)
    of_groups = codes[first]
    constant = codes == of_groups[members]
    if permute == "groups":
        if not constant.all():
            row = int(np.argmin(constant))
            raise ValueError(
                "permute='groups' exchanges the labels of whole groups, but those of group "
                f"{found[row]} are not all equal: rows {first[members[row]]} and {row} differ. "
                "Use permute='within'."
            )
        one = np.zeros(len(names), dtype=np.intp)
        return PermutedLabels(of_groups, one, count, random_state, members)
    if constant.all():
        raise ValueError(
            "the labels cannot be permuted: within each of the groups all of them are equal. "
            "Use permute='groups' to exchange the labels of whole groups."
        )
    return PermutedLabels(codes, members, count, random_state)


class PermutedLabels:
    """Permutations of class codes within groups: at random, or all distinct ones if few.

    Parameters
    ----------
    codes : ndarray of integers of shape (n,)
    groups : ndarray of integers of shape (n,)
    count : int
        How many at most.
    random_state : int, RandomState or None
    members : ndarray of integers of shape (N,), optional
        What is permuted are labels of n groups of samples: the group of each of the N samples.

    Attributes
    ----------
    exact : bool
        Whether all distinct ones are taken. The given one is left out: it is known to be one.
    count : int
        How many are taken.
    """

    def __init__(
        self,
        codes: np.ndarray,
        groups: np.ndarray,
        count: int,
        random_state: Any,
        members: np.ndarray | None = None,
    ) -> None:
        self._codes, self._members = codes, members
        self._by_group = np.argsort(groups, kind="stable")
        self._groups = groups
        sizes = np.bincount(groups)
        self._cuts = list(itertools.pairwise([0, *np.cumsum(sizes).tolist()]))
        distinct = self._distinct(count)
        self.exact = distinct is not None
        self.count = count if distinct is None else distinct - 1
        # A seed of its own for each, so that they do not depend on how many are made at a time.
        random = check_random_state(random_state)
        self._seeds = None if self.exact else random.randint(2**31 - 1, size=(count, 2))
        self._all = None
        if self.exact:
            every = np.stack(list(self._every()))
            self._all = every[np.any(every != codes, axis=1)]

    def _distinct(self, most: int) -> int | None:
        """How many distinct label vectors there are; None for more than ``most``."""
        sizes = [np.bincount(self._codes[self._by_group[a:b]]).tolist() for a, b in self._cuts]
        logs = (math.lgamma(sum(s) + 1) - sum(math.lgamma(x + 1) for x in s) for s in sizes)
        if sum(logs) > math.log(most) + 1:  # too large a number to be formed
            return None
        found = 1
        for of_classes in sizes:
            left = sum(of_classes)
            for size in of_classes:
                found *= math.comb(left, size)
                left -= size
        return found if found <= most else None

    def _every(self) -> Iterator[np.ndarray]:
        """All distinct label vectors."""
        in_groups = [self._codes[self._by_group[a:b]] for a, b in self._cuts]
        for parts in itertools.product(*(list(_orders(np.sort(p))) for p in in_groups)):
            found = np.empty_like(self._codes)
            found[self._by_group] = np.concatenate(parts)
            yield found

    def batches(self, most: int) -> list[np.ndarray]:
        """The numbers of all permutations, at most so many at a time.

        Those of a batch have as many samples in each class as each other.
        """
        every, kinds = np.arange(self.count), [np.arange(self.count)]
        if self._members is not None:
            members, k = np.bincount(self._members), int(self._codes.max()) + 1
            sizes = [np.bincount(c, members, k) for c in self._of_groups(every).T]
            _, kind = np.unique(np.asarray(sizes), axis=0, return_inverse=True)
            kind = kind.reshape(-1)  # NumPy 2.0 gives it the shape of the rows
            kinds = [every[kind == i] for i in range(kind.max() + 1)]
        return [kind[a : a + most] for kind in kinds for a in range(0, len(kind), most)]

    def codes(self, numbers: np.ndarray) -> np.ndarray:
        """The class codes of some permutations, a column each: (N, p)."""
        found = self._of_groups(numbers)
        return found if self._members is None else found[self._members]

    def _of_groups(self, numbers: np.ndarray) -> np.ndarray:
        if self._all is not None:
            return np.ascontiguousarray(self._all[numbers].T)
        assert self._seeds is not None
        found = np.empty((len(self._codes), len(numbers)), dtype=self._codes.dtype)
        for column, seed in enumerate(self._seeds[numbers]):
            random = np.random.default_rng(seed)
            if len(self._cuts) == 1:
                found[:, column] = random.permutation(self._codes)
                continue
            shuffled = np.lexsort((random.random(len(self._codes)), self._groups))
            found[self._by_group, column] = self._codes[shuffled]
        return found


def _orders(values: np.ndarray) -> Iterator[np.ndarray]:
    """All distinct orders of ascending values, in lexicographic order."""
    values = values.copy()
    while True:
        yield values.copy()
        rises = np.flatnonzero(values[:-1] < values[1:])
        if not len(rises):
            return
        at = rises[-1]
        other = np.flatnonzero(values > values[at])[-1]
        values[[at, other]] = values[[other, at]]
        values[at + 1 :] = values[at + 1 :][::-1]
