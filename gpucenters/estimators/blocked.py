"""Gains and p-values within blocks: what donors, batches or sites differ in counts for nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..arrays.backend import HOST, resolve_backend
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.namespace import to_numpy
from ..solvers.blocked import Blocked
from ..solvers.selection import ranking_key
from ..statistics.base import Statistics
from .base import read_only
from .counts import LikelihoodRatioTests


@dataclass(frozen=True)
class BlockGains:
    """Gains within blocks, and p-values: the result of `block_gains`.

    Attributes
    ----------
    groups : list
        The groups that are compared, in the order in which they were named first.
    scores : ndarray of shape (n_features,), float64
        The gain of each feature.
    ranking : ndarray of shape (n_features,), int64
        Features by descending score (ties: lower index first).
    pvalues : ndarray of shape (n_features,), float64
        Of likelihood-ratio tests within blocks, each feature on its own; 1 where nothing is tested.
    degrees : ndarray of shape (n_features,), float64
        Their degrees of freedom: how many parameters the groups have beyond one for each block.
    centers : ndarray of shape (n_groups, n_features), float64
        Centers of the groups, standardised to the same blocks: weighted means of those of each
        block that has all groups. NaN where there is none.
    """

    groups: list[Any]
    scores: np.ndarray
    ranking: np.ndarray = field(repr=False)
    pvalues: np.ndarray
    degrees: np.ndarray = field(repr=False)
    centers: np.ndarray = field(repr=False)

    @classmethod
    def _of(cls, found: Blocked, groups: list[Any]) -> BlockGains:
        ranking = np.argsort(-to_numpy(ranking_key(found.gain)), kind="stable")
        values = found.gain, ranking, found.pvalues, found.degrees, found.centers
        return cls(groups, *map(read_only, values))


def block_gains(
    estimator: Any, statistics: Statistics, groups: Sequence[Any], blocks: Sequence[Any]
) -> BlockGains:
    """Gains and p-values of features between groups of samples, within blocks.

    Samples of one donor, batch or site differ from those of another, which a model that knows no
    blocks takes for a difference between groups, wherever these are unequal shares of the blocks.
    Here each block has its own parameters, and groups are compared within it: the gain of a feature
    is the sum over the blocks of what parameters for each group add to the log-likelihood.

    Parameters
    ----------
    estimator : `SparseGaussianNB`, `SparsePoissonNB` or `SparseBernoulliNB`
        Stays as it is; k does not matter. Gaussian means need ``pooling=1`` and ``ddof=0``: one
        variance for all groups and blocks, so that a block may be as small as it is.
    statistics : Statistics
        Of K classes, the samples of a group in a block each, from ``estimator.statistics``: of one
        pass over X, of merged shards, or of a stream. Classes without samples are left out.
    groups, blocks : sequences of length K
        The group and the block of each class.

    Returns
    -------
    BlockGains

    Raises
    ------
    TypeError
        For models of which there are no gains within blocks.
    ValueError
        For lengths that differ, statistics that the model does not take, parameters that have no
        gains within blocks, and where no block has two groups. Each block is of one group then
        (patients, say, who are cases or controls), and blocks are the units: their labels are
        permuted as wholes by ``permutation_gains(estimator, X, y, groups=blocks)``.

    See Also
    --------
    permutation_gains : P-values from permuted labels, within groups of samples.

    Notes
    -----
    A difference between groups counts whatever its sign in each block: ``centers`` has the mean
    one. What varies from block to block at random beyond the means of blocks (the response of each
    donor, say) is a difference within blocks too, and is significant with enough samples. The
    p-values of counts are asymptotic, and wrong where a feature has few counts in a block; blocks
    without any are not counted as degrees of freedom. The formulas are in
    ``gpucenters/solvers/README.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters import SparseGaussianNB, block_gains
    >>> donor, treated = np.repeat([0, 1], 4), np.asarray([0, 0, 0, 1, 0, 1, 1, 1])
    >>> X = np.stack([5.0 * donor + [0, 1, 0, 1, 0, 1, 0, 1], treated + 0.1 * (donor % 2)], axis=1)
    >>> model = SparseGaussianNB(pooling=1)
    >>> statistics = model.statistics(X, 2 * donor + treated)
    >>> found = block_gains(model, statistics, groups=[0, 1, 0, 1], blocks=[0, 0, 1, 1])
    >>> found.pvalues.round(3)
    array([0.444, 0.   ])
    """
    model = block_model(estimator)
    model._check_statistics(statistics, "block_gains")
    statistics = statistics.to(resolve_backend(model.device, statistics.total))
    known, layout = _layout(statistics, groups, blocks)

    def solve(ctx: Context) -> Blocked:
        backend, m = statistics.backend, statistics.shape[1]
        sums = model._within_blocks(backend, len(known), m)
        for block in layout:
            sums.add(block.of(statistics), ctx)
        return sums.solve(ctx)

    if all(len(block.groups) < 2 for block in layout):
        raise ValueError(
            f"no block has samples of two of the groups {known[:9]}, so that nothing can be "
            "compared within blocks: each block is of one group, and the blocks are the units. For "
            "p-values permute the labels of whole blocks, by permutation_gains(estimator, X, y, "
            "groups=blocks)."
        )
    found = run_with_oom_retry(solve, statistics.backend, model.memory_budget)
    return BlockGains._of(found, known)


def rest_block_gains(
    estimator: Any,
    statistics: Statistics,
    groups: Sequence[Any],
    blocks: Sequence[Any],
    some: Sequence[Any],
) -> Iterator[BlockGains]:
    """`block_gains` of some groups, each against all others together: (others, group).

    The blocks are gone through once, whatever the number of groups. A group that no block has
    beside others has gains of 0.
    """
    model = block_model(estimator)
    model._check_statistics(statistics, "block_gains")
    statistics = statistics.to(resolve_backend(model.device, statistics.total))
    known, layout = _layout(statistics, groups, blocks)

    def solve(ctx: Context) -> list[Blocked]:
        backend, m = statistics.backend, statistics.shape[1]
        sums = {known.index(name): model._within_blocks(backend, 2, m) for name in some}
        for block in layout:
            part = block.of(statistics)
            whole = part.merge_classes([0] * len(block.groups))
            pairs = part.one_vs_rest() if len(block.groups) > 1 else iter([part])
            of_group = dict(zip(block.groups, pairs, strict=True))
            for code, each in sums.items():
                each.add(of_group.get(code, whole), ctx)
        return [each.solve(ctx) for each in sums.values()]

    found = run_with_oom_retry(solve, statistics.backend, model.memory_budget)
    for name, each in zip(some, found, strict=True):
        yield BlockGains._of(each, [None, name])


def block_model(estimator: Any) -> LikelihoodRatioTests:
    """A copy of an estimator of which there are gains within blocks; raises for others."""
    if not isinstance(estimator, LikelihoodRatioTests):
        raise TypeError(
            "there are gains within blocks of SparseGaussianNB(pooling=1), SparsePoissonNB and "
            f"SparseBernoulliNB, whose likelihoods say what they are; got "
            f"{type(estimator).__name__}."
        )
    model = clone(estimator)
    model._check_parameters()
    model._within_blocks(HOST, 2, 1)
    return model


class _Block(NamedTuple):
    """The classes of a block that have samples: their numbers, and the groups that they are of."""

    classes: list[int]
    groups: list[int]

    def of(self, statistics: Statistics) -> Statistics:
        """The statistics of the groups of this block, in their order."""
        part = statistics.of_classes(self.classes)
        part.classes = None
        return part


def _layout(
    statistics: Statistics, groups: Sequence[Any], blocks: Sequence[Any]
) -> tuple[list[Any], list[_Block]]:
    """(the groups, the blocks) that have samples; each block has its groups in their order."""
    number: dict[Any, int] = {}
    found: dict[Any, _Block] = {}
    for name, labels in (("groups", groups), ("blocks", blocks)):
        if len(labels) != statistics.shape[0]:
            raise ValueError(
                f"{name} has {len(labels)} entries, but the statistics are of "
                f"{statistics.shape[0]} classes: one for each."
            )
    some = [c for c, count in enumerate(statistics.count) if count]
    codes = {c: number.setdefault(groups[c], len(number)) for c in some}
    for c in sorted(some, key=codes.__getitem__):
        block = found.setdefault(blocks[c], _Block([], []))
        if codes[c] in block.groups:
            raise ValueError(
                f"classes {block.classes[-1]} and {c} are both of group {groups[c]!r} in block "
                f"{blocks[c]!r}: unite them by statistics.merge_classes."
            )
        block.classes.append(c)
        block.groups.append(codes[c])
    return list(number), list(found.values())
