"""Binary trees over the classes, as lists of their splits."""

from __future__ import annotations

import numpy as np

Split = tuple[set[int], set[int]]


def random_tree(n_classes: int, random: np.random.RandomState) -> list[Split]:
    """A binary tree, each of the ``(2 K - 3)!!`` with the same probability.

    Class after class is put beside a node that is drawn from all nodes, 2 c - 1 of c classes.
    """
    splits: list[Split] = []
    for c in range(1, n_classes):
        nodes = [set(range(c)), *(side for split in splits for side in split)]
        beside = set(nodes[random.randint(len(nodes))])
        for side in (side for split in splits for side in split):
            if beside <= side:
                side.add(c)
        splits.append((beside, {c}))
    return splits


def tree_of_distances(squares: np.ndarray) -> list[Split]:
    """The tree whose splits are seeded by the two classes that are farthest apart.

    Each other class of a node goes with the nearer seed.

    Parameters
    ----------
    squares : ndarray of shape (K, K)
        Squared distances of the classes.
    """
    splits: list[Split] = []
    waiting = [np.arange(len(squares))]
    while waiting:
        node = waiting.pop()
        if len(node) == 1:
            continue
        among = squares[np.ix_(node, node)]
        among[np.tril_indices(len(node))] = -np.inf
        seeds = node[list(np.unravel_index(np.argmax(among), among.shape))]
        first = squares[node, seeds[0]] <= squares[node, seeds[1]]
        first[node == seeds[0]], first[node == seeds[1]] = True, False
        splits.append((set(node[first].tolist()), set(node[~first].tolist())))
        waiting += [node[first], node[~first]]
    return splits


def code_book(splits: list[Split], n_classes: int) -> np.ndarray:
    """The splits as codes of the classes, (K, K - 1): -1 and 1 for the sides, 0 for neither.

    The root is first, and every split before those below it. -1 is the side of the least class.
    """
    ordered = [sorted(map(sorted, split)) for split in splits]
    ordered.sort(key=lambda sides: (-sum(map(len, sides)), sides))
    codes = np.zeros((n_classes, len(ordered)))
    for column, (left, right) in zip(codes.T, ordered, strict=True):
        column[left], column[right] = -1.0, 1.0
    return codes
