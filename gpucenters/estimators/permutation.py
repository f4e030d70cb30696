"""How sure a selection is: p-values from gains under permuted labels, and the permutations."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..arrays.backend import resolve_backend
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.inputs import check_input
from ..solvers.permutation import PermutationCounts, count_permutations
from ..solvers.selection import ranking_key, warn
from .base import check_center_classifier, read_only
from .cross_validation import check_groups
from .mahalanobis import MahalanobisCenterClassifier
from .validation import check_X, encode_against, host_labels


@dataclass(frozen=True)
class PermutationGains:
    """Gains compared with those under permuted labels: the result of `permutation_gains`.

    Attributes
    ----------
    scores : ndarray of shape (n_features,), float64
        Observed gain of each feature.
    ranking : ndarray of shape (n_features,), int64
        Features by descending score (ties: lower index first).
    pvalues : ndarray of shape (n_features,), float64
        Of each feature on its own.
    pvalues_fwer : ndarray of shape (n_features,), float64
        Adjusted for all features (Westfall & Young, maximum of the gains, step-down): to take the
        features below alpha makes one error or more with a probability of at most alpha.
    qvalues : ndarray of shape (n_features,), float64
        ``pvalues`` adjusted by Benjamini & Hochberg: to take the features up to q makes a false
        discovery rate of at most q, if the features are independent or positively dependent.
    false_discoveries : ndarray of shape (n_features,), float64
        Mean number, over the permuted label vectors and the observed one, of features whose gain
        reaches the score of the feature (SAM).
    n_permutations : int
        How many label vectors were compared.
    exact : bool
        Whether these are all distinct label vectors, the observed one among them: N in place of
        P + 1 below.
    feature_names : ndarray of shape (n_features,), or None
        Only where X had string column names.
    """

    scores: np.ndarray
    ranking: np.ndarray = field(repr=False)
    pvalues: np.ndarray
    pvalues_fwer: np.ndarray
    qvalues: np.ndarray
    false_discoveries: np.ndarray = field(repr=False)
    n_permutations: int
    exact: bool
    feature_names: np.ndarray | None = field(default=None, repr=False)

    def k_at(self, fdr: float = 0.05, method: str = "permutation") -> int:
        """The largest number of features whose estimated false discovery rate is at most ``fdr``.

        Parameters
        ----------
        fdr : float, default=0.05
            Above 0 and at most 1.
        method : {"permutation", "bh"}, default="permutation"
            "permutation": the estimate of SAM for the first k features of ``ranking``, the mean
            number of gains that reach the k-th score, divided by k. The mean is over P permuted
            label vectors and the observed one, so the estimate is at least 1 / (P + 1); and it
            counts all features as if they were null, so it is too large rather than too small.
            "bh": ``qvalues``. A p-value is at least 1 / (P + 1), so that fewer than
            n_features / (fdr (P + 1)) features can never pass.

        Returns
        -------
        int
            0 where no number of features is that sure. Features with equal scores count together.

        Warns
        -----
        UserWarning
            Where too few permutations alone may be the reason that nothing passes.
        """
        if isinstance(fdr, bool) or not isinstance(fdr, numbers.Real) or not 0 < float(fdr) <= 1:
            raise ValueError(f"fdr={fdr!r} is not valid: use a number above 0 and at most 1.")
        m, least = len(self.scores), 1.0 / (self.n_permutations + (not self.exact))
        if method == "bh":
            passed = int(np.count_nonzero(self.qvalues <= fdr))
            needed = m * least / fdr
            if passed == 0 and needed > 1:
                who = "no number of features can pass"
                if needed <= m:
                    who = f"{math.ceil(needed)} of {m} features or more can pass, and no fewer"
                warn(
                    f"no feature passes at fdr={fdr:g}: p-values of {self.n_permutations} "
                    f"permutations are at least {least:.3g}, so that by Benjamini-Hochberg {who}. "
                    "Use more permutations, or method='permutation'."
                )
            return passed
        if method != "permutation":
            raise ValueError(f"method={method!r} is not valid: use 'permutation' or 'bh'.")
        if least > fdr:
            warn(
                f"no feature can pass at fdr={fdr:g}: the estimates of {self.n_permutations} "
                f"permutations are at least {least:.3g}. Use more permutations."
            )
        keys = ranking_key(self.scores)[self.ranking]
        count = np.searchsorted(-keys, -keys, side="right")  # features that reach each score
        good = count[self.false_discoveries[self.ranking] <= fdr * count]
        return int(good.max(initial=0))

    @classmethod
    def _of(
        cls, found: PermutationCounts, permutations: LabelPermutations, names: np.ndarray | None
    ) -> PermutationGains:
        """P-values from counts; the observed labels are one vector more."""
        order: Any = found.order
        tries, place = permutations.count + 1, np.argsort(order)
        pvalues = ((found.own + 1) / tries)[place]
        return cls(
            scores=read_only(found.gain),
            ranking=read_only(order),
            pvalues=read_only(pvalues),
            pvalues_fwer=read_only(np.maximum.accumulate((found.largest + 1) / tries)[place]),
            qvalues=read_only(benjamini_hochberg(pvalues)),
            false_discoveries=read_only(((found.reached + found.itself) / tries)[place]),
            n_permutations=permutations.count + permutations.exact,
            exact=permutations.exact,
            feature_names=names,
        )


def permutation_gains(
    estimator: Any,
    X: Any,
    y: Any,
    n_permutations: int = 1000,
    groups: Any = None,
    random_state: Any = None,
    verbose: bool = False,
    *,
    permute: str = "within",
) -> PermutationGains:
    """P-values of all features: their gains against those under permuted labels.

    The gain of a feature is compared with the gains that it has when the labels are shuffled: equal
    to refitting on each shuffled ``y``, but the labels of many permutations go through X together.
    Where there are at most ``n_permutations`` distinct label vectors, all of them are taken, and
    the p-values are exact.

    Parameters
    ----------
    estimator : classifier of this package
        Fitted or not; it stays as it is, and k does not matter. `MahalanobisCenterClassifier` is
        refused.
    X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Class labels.
    n_permutations : int, default=1000
        P.
    groups : array of shape (n_samples,), optional
        The group of each sample: a block, batch, donor or subject.
    random_state : int, RandomState or None, default=None
    verbose : bool, default=False
        Show progress.
    permute : {"within", "groups"}, default="within"
        What is exchangeable where there are ``groups``. "within": the labels of the samples of a
        group, which are permuted within it alone. "groups": whole groups, of any sizes, within each
        of which all labels are equal; their labels are exchanged, and the samples stay where they
        are. With few groups there are few label vectors: all of them are taken.

    Returns
    -------
    PermutationGains

    Raises
    ------
    TypeError
        For a model whose features change with the labels, or of another package.
    ValueError
        As ``estimator.fit`` raises, for lengths that differ, for missing groups, for "within" where
        all labels of each group are equal, for "groups" where those of some group are not, and for
        a ``class_weight``.

    Notes
    -----
    The p-value of a feature is ``(1 + b) / (1 + P)``, where b is the number of permutations in
    which its gain is the observed one or more: the observed labels count as one vector more. Where
    all N distinct label vectors are taken, b counts the N - 1 others, and the p-value is ``(1 + b)
    / N``. Gains that are equal in exact arithmetic count as equal: a permuted gain may be less by
    2^-38 of the observed one, and by a bound on the rounding of the sums that both are made of. Its
    formula is in ``solvers/README.md``; it makes p-values larger, never smaller.

    The hypothesis is that the labels are exchangeable given the features: of all samples, of those
    within each group, or of whole groups. Samples of one donor that share a label are not
    exchangeable with those of another: to permute all labels finds what tells the donors apart.

    A p-value says how surprising a gain is if the feature has nothing to do with the classes. It
    does not say how well a classifier predicts, nor whether a feature tells anything beyond the
    others: correlated features are all significant together. ``pvalues`` of the k best of many
    features are not significance of these: for what was selected, read ``pvalues_fwer`` or
    ``qvalues``, which are adjusted for the search over all features. All of them refer to the data
    on which the features were chosen. A model that is fitted to the selected features must be
    judged on other samples.

    ``k_at(method="permutation")`` compares the gains of all features with each other, and so needs
    gains of one unit: use ``scale="std"`` or "pooled" where features differ in scale. P-values of
    single features do not need it, and ``pvalues_fwer`` are valid without it, but have less power.

    For `SparseMultinomialNB` the gain is h_i(p) at fixed p, the shares of the classes in all counts
    (under the same labels), as ``scores_`` has it for ``k="all"``: the p of other k depends on the
    selected features. The scale "std" does not depend on the labels, and is that of the data; so is
    what `SparseGaussianNB` adds to variances. `SparsePoissonNB` is taken with ``scale=None``, or
    with ``exposure=None``: row totals and a dispersion together are not.
    `ShrunkenCentroidClassifier` needs its ``offset`` as a number, since a median changes with the
    labels.

    References
    ----------
    .. [1] P. Westfall and S. Young, "Resampling-Based Multiple Testing", Wiley, 1993.
    .. [2] V. Tusher, R. Tibshirani and G. Chu, "Significance analysis of microarrays applied to the
       ionizing radiation response", PNAS 98, 2001.
    .. [3] Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", J. R. Statist. Soc.
       B 57, 1995.
    .. [4] B. Phipson and G. Smyth, "Permutation p-values should never be zero", Statist. Appl.
       Genet. Molec. Biol. 9, 2010.
    .. [5] A. Winkler et al., "Multi-level block permutation", NeuroImage 123, 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import L2CenterClassifier, permutation_gains
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = permutation_gains(L2CenterClassifier(scale="std"), X, y, 199, random_state=0)
    >>> found.k_at(fdr=0.01)
    25
    >>> (found.pvalues_fwer > 0.05).nonzero()[0]
    array([ 9, 11, 14, 18, 19])
    """
    check_center_classifier(estimator, "permutation_gains")
    check_input(X, "X", "permutation_gains")
    count = n_permutations
    if isinstance(count, bool) or not isinstance(count, numbers.Integral) or count < 1:
        raise ValueError(f"n_permutations={n_permutations!r} is not valid: use an int >= 1.")
    if isinstance(estimator, MahalanobisCenterClassifier):
        raise TypeError(
            "permutation_gains does not take MahalanobisCenterClassifier: its features are formed "
            "with the covariance within the classes, so that they change with the labels. Use "
            "L2CenterClassifier(scale='pooled')."
        )
    if estimator.class_weight is not None:
        raise ValueError(
            "permutation_gains counts each sample once: use class_weight=None. Gains under "
            "permuted labels say whether a feature differs between classes, whatever these weigh."
        )
    model = clone(estimator).set_params(k="all", verbose=False).fit(X, y)
    checked = check_X(model, X, reset=False)
    n = checked.shape[0]
    codes = encode_against(host_labels(y, "permutation_gains", n), model.classes_)
    codes = codes.astype(np.min_scalar_type(len(model.classes_) - 1))
    permutations = LabelPermutations.of(codes, groups, permute, int(count), random_state)

    def task(ctx: Context) -> PermutationCounts:
        block, samples = model._enter(checked, codes, model.classes_, None, ctx)
        gain = model._null_gain(block, ctx)
        return count_permutations(gain, block, samples, permutations, ctx)

    backend, budget = resolve_backend(model.device, checked), model.memory_budget
    found = run_with_oom_retry(task, backend, budget, verbose=verbose)
    return PermutationGains._of(found, permutations, getattr(model, "feature_names_in_", None))


def benjamini_hochberg(pvalues: np.ndarray) -> np.ndarray:
    """The q-values of p-values."""
    m = len(pvalues)
    order = np.argsort(pvalues, kind="stable")
    share = pvalues[order] * m / np.arange(1, m + 1)
    q = np.empty(m)
    q[order] = np.minimum(np.minimum.accumulate(share[::-1])[::-1], 1.0)
    return q


class LabelPermutations:
    """Permutations of class codes within groups: at random, or all distinct ones if few.

    Codes and groups are integers, (n,). With ``members``, (N,), what is permuted are the labels of
    n groups of samples: it has the group of each of the N samples.

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
        self._codes, self._groups, self._members = codes, groups, members
        self._by_group = np.argsort(groups, kind="stable")
        self._in_groups = np.split(codes[self._by_group], np.cumsum(np.bincount(groups))[:-1])
        self.exact = self._few_are_distinct(count)
        # A seed of its own for each, so that they do not depend on how many are made at a time.
        random = check_random_state(random_state)
        if self.exact:
            every = np.stack(list(self._every()))
            self._all = every[np.any(every != codes, axis=1)]
        else:
            self._seeds = random.randint(2**31 - 1, size=(count, 2))
        self.count = len(self._all if self.exact else self._seeds)

    @classmethod
    def of(
        cls, codes: np.ndarray, groups: Any, permute: str, count: int, random_state: Any
    ) -> Self:
        """The permutations that the parameters of `permutation_gains` ask for."""
        if permute not in ("within", "groups"):
            raise ValueError(f"permute={permute!r} is not valid: use 'within' or 'groups'.")
        if groups is None:
            if permute == "groups":
                raise ValueError("permute='groups' needs groups: the group of each sample.")
            return cls(codes, np.zeros(len(codes), dtype=np.intp), count, random_state)
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
            return cls(of_groups, one, count, random_state, members)
        if constant.all():
            raise ValueError(
                "the labels cannot be permuted: within each of the groups all of them are equal. "
                "Use permute='groups' to exchange the labels of whole groups."
            )
        return cls(codes, members, count, random_state)

    def _few_are_distinct(self, most: int) -> bool:
        """Whether there are at most so many distinct label vectors."""
        sizes = [np.bincount(codes).tolist() for codes in self._in_groups]
        logs = (math.lgamma(sum(s) + 1) - sum(math.lgamma(x + 1) for x in s) for s in sizes)
        if sum(logs) > math.log(most) + 1:  # too large a number to be formed
            return False
        found = 1
        for of_classes in sizes:
            left = sum(of_classes)
            for size in of_classes:
                found *= math.comb(left, size)
                left -= size
        return found <= most

    def _every(self) -> Iterator[np.ndarray]:
        """All distinct label vectors."""
        for parts in itertools.product(*(list(_orders(np.sort(p))) for p in self._in_groups)):
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
        if self.exact:
            return np.ascontiguousarray(self._all[numbers].T)
        found = np.empty((len(self._codes), len(numbers)), dtype=self._codes.dtype)
        for column, seed in enumerate(self._seeds[numbers]):
            random = np.random.default_rng(seed)
            if len(self._in_groups) == 1:
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
