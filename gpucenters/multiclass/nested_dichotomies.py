"""Binary problems at the nodes of a binary tree over the classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._docstrings import filled
from ..arrays.backend import Backend, backend_of
from ..arrays.linalg import one_blas_thread
from ..arrays.namespace import array_namespace, to_numpy
from ..arrays.typing import Array
from ..estimators.fitted import FittedModel
from ..estimators.validation import accuracy, decode, encode, host_labels, raise_for_one_class
from ..solvers.decisions import log_softmax, softmax
from ..statistics import Statistics
from .copies import has
from .decomposition import Decomposition

Split = tuple[set[int], set[int]]
_TREES = ("random", "centers")


# Binary trees over the classes, as lists of their splits.


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


# Nested dichotomies of estimators that class statistics do not determine.


class RefittedDichotomies(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Binary models that are each fitted to the rows of their classes.

    What scikit-learn's classes are to the other decompositions.
    """

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit a copy of the estimator at each node."""
        params = self._routed("fit", fit_params)
        X = X.tocsr() if hasattr(X, "tocsr") else X  # rows are taken
        y = host_labels(y, type(self).__name__, _num_samples(X))
        classes, codes = encode(y)
        raise_for_one_class(type(self).__name__, classes)
        book = self._draw(len(classes), lambda: clone(self.estimator).fit(X, y, **params))
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit)(clone(self.estimator), X, sides[codes].astype(int), params)
            for sides in book.T
        )
        self._code_book, self.classes_ = book, classes
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    def predict(self, X: Any) -> Array:
        """The class of each sample."""
        codes, backend = self._predict_codes(X, "predict")
        return decode(codes, self.classes_, backend)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict`."""
        codes, _ = self._predict_codes(X, "score")
        return accuracy(codes, y, self.classes_, type(self).__name__, sample_weight)

    def _log_sides(self, X: Any) -> list[Array]:
        """Log probabilities of the two sides of each node: (n, 2)."""
        check_is_fitted(self)
        return [log_proba(model, X) for model in self.estimators_]


def _fit(model: Any, X: Any, sides: np.ndarray, params: dict[str, Any]) -> Any:
    """A model fitted to the rows of a node, whose sides are -1 and 1."""
    if np.all(sides):
        return model.fit(X, sides, **params)
    rows = np.flatnonzero(sides)
    parts = {
        name: _safe_indexing(value, rows) if np.ndim(value) and len(value) == len(sides) else value
        for name, value in params.items()
    }
    return model.fit(_safe_indexing(X, rows), sides[rows], **parts)


def log_proba(model: Any, X: Any) -> Array:
    """Log probabilities of the two classes of a model: (n, 2)."""
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_log_proba"):
            return model.predict_log_proba(X)
        return np.log(model.predict_proba(X))


@filled
class NestedDichotomiesClassifier(Decomposition, RefittedDichotomies):
    """One binary model at each node of a binary tree over the classes.

    The tree splits the classes in two, each part in two, and so on down to single classes. The
    model of a node tells its two sides apart, from the samples of their classes alone. The
    probability of a class is the product of those of the sides on its path, so that the
    probabilities of all classes sum to 1 by themselves [1]_. K classes take K - 1 models (Remark 2
    of [2]_).

    One pass over X for a model that class statistics determine (every classifier of this package
    but l1 centers and GMEB). Other estimators with ``predict_proba``, and models with a
    ``class_weight``, which is of each binary problem, are fitted to a part of X for each node.

    Parameters
    ----------
    estimator : estimator
        The binary model.
    tree : {"random", "centers"}, default="random"
        "random" draws one of all trees, each with the same probability. "centers" puts the two
        classes whose centers are farthest apart on two sides, and each other class with the nearer
        one [3]_. The centers are those of the joint model with the parameters of ``estimator``, in
        units of its ``scale_``, on its support.
    random_state : int, RandomState instance or None, default=None
        Draws the random tree.

    Attributes
    ----------
    estimators_ : list of n_classes - 1 estimators
        The binary models, with labels -1 and 1; that of the root is first.
    code_book_ : ndarray of shape (n_classes, n_classes - 1), float64
        The side of each class at each node, -1 or 1; 0 where the class is not below the node.

    Notes
    -----
    On what is equal to separate fits to the bit: see `OneVsRestClassifier`.

    References
    ----------
    .. [1] E. Frank and S. Kramer, "Ensembles of nested dichotomies for multi-class problems",
       ICML 2004.
    .. [2] G. Calafiore and G. Fracastoro, "Sparse l1 and l2 Center Classifiers", IEEE Trans. Neural
       Networks and Learning Systems 33(3), 2022.
    .. [3] M. Duarte-Villasenor, J. Carrasco-Ochoa, J. Martinez-Trinidad and M. Flores-Garrido,
       "Nested dichotomies based on clustering", CIARP 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from gpucenters import L2CenterClassifier
    >>> from gpucenters.multiclass import NestedDichotomiesClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = NestedDichotomiesClassifier(L2CenterClassifier(k=4, scale="std"), tree="centers")
    >>> model.fit(X, y).code_book_
    array([[-1., -1.],
           [-1.,  1.],
           [ 1.,  0.]])
    >>> round(model.score(X, y), 2)
    0.94
    """

    def __init__(
        self,
        estimator: Any,
        *,
        tree: str = "random",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.tree = tree
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _validate_params(self) -> None:
        if not isinstance(self.tree, str) or self.tree not in _TREES:
            raise ValueError(
                f"tree={self.tree!r} is not valid: use {' or '.join(map(repr, _TREES))}."
            )
        if not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"NestedDichotomiesClassifier multiplies probabilities, and "
                f"{type(self.estimator).__name__} has no predict_proba: calibrate it first, with "
                "sklearn.calibration.CalibratedClassifierCV."
            )

    # --- the tree ------------------------------------------------------------------------------

    def _draw(self, n_classes: int, joint: Callable[[], Any]) -> np.ndarray:
        """The codes of the sides; ``joint`` gives the fitted model of all classes."""
        if self.tree == "random":
            splits = random_tree(n_classes, check_random_state(self.random_state))
        else:
            splits = tree_of_distances(_squared_distances(joint()))
        return code_book(splits, n_classes)

    def _attributes(self, classes: np.ndarray) -> dict[str, Any]:
        # Centers are not known before the last batch.
        if self.tree == "centers":
            return {}
        return {"_code_book": self._draw(len(classes), lambda: None)}

    @property
    def code_book_(self) -> np.ndarray:
        """The side of each class at each node."""
        if "_code_book" in vars(self) or not self._is_shared():
            return self._code_book
        cache = FittedModel(self._joint).state.cache
        if "code book" not in cache:
            cache["code book"] = self._draw(len(self.classes_), lambda: self._joint)
        return cache["code book"]

    _sides = (-1.0, 0.0, 1.0)

    def _check_code_book(self, book: np.ndarray, n_classes: int) -> bool:
        both = np.any(book < 0, axis=0) & np.any(book > 0, axis=0)
        fits = super()._check_code_book(book, n_classes) and book.shape[1] == n_classes - 1
        return fits and bool(np.all(both))

    def _set_code_book(self, code_book: np.ndarray) -> None:
        if self.tree == "random":
            self._code_book = code_book
        else:  # until the next batch
            FittedModel(self._joint).state.cache["code book"] = code_book

    def _problems(self, statistics: Statistics) -> Iterator[Statistics]:
        for sides in self.code_book_.T.astype(int):
            members = np.flatnonzero(sides)
            part = statistics.of_classes(members.tolist())
            yield part.merge_classes(((sides[members] + 1) // 2).tolist(), np.asarray([-1, 1]))

    # --- predicting ----------------------------------------------------------------------------

    def _log_probabilities(self, X: Any, method: str) -> tuple[Array, Backend]:
        """Log probabilities of the classes, (n, K), and the backend where outputs belong."""
        check_is_fitted(self)
        if self._is_shared():
            scores, backend = self._scores(X, method)
            with FittedModel(self._joint).backend.current():
                factors = [FittedModel(model).per_score for model in self.estimators_]
                sides = [log_softmax(scores[:, i : i + 1], f) for i, f in enumerate(factors)]
        else:
            sides = self._log_sides(X)
            backend = backend_of(sides[0])
        with backend_of(sides[0]).current():
            xp = array_namespace(sides[0])
            by_class = []
            for code in self.code_book_.astype(int).tolist():
                path = [
                    side[:, (c + 1) // 2] for side, c in zip(sides, code, strict=True) if c != 0
                ]
                by_class.append(sum(path[1:], start=path[0]))
            return xp.permute_dims(xp.stack(by_class), (1, 0)), backend

    def _predict_codes(self, X: Any, method: str) -> tuple[Array, Backend]:
        found, backend = self._log_probabilities(X, method)
        with backend_of(found).current():
            return array_namespace(found).argmax(found, axis=1), backend

    @has("predict_proba")
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of class probabilities: sums along the paths.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes), float64
        """
        found, backend = self._log_probabilities(X, "predict_log_proba")
        return backend.move(found)

    @has("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities: products along the paths.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes), float64
        """
        found, backend = self._log_probabilities(X, "predict_proba")
        with backend_of(found).current():
            return backend.move(softmax(found, 1.0))  # which never contradicts `predict`

    @has("predict_proba")
    def decision_function(self, X: Any) -> Array:
        """Log probabilities; for two classes that of ``classes_[1]`` less the other.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes), float64
        """
        found, backend = self._log_probabilities(X, "decision_function")
        return backend.move(found[:, 1] - found[:, 0] if found.shape[1] == 2 else found)


def _squared_distances(model: Any) -> np.ndarray:
    """Squared distances of the centers of a fitted model, in units of its scale: (K, K)."""
    if not hasattr(model, "centers_"):
        raise TypeError(
            f"tree='centers' needs an estimator with centers_, and {type(model).__name__} has "
            "none: use tree='random'."
        )
    centers, scale = model.centers_, getattr(model, "scale_", None)
    backend = backend_of(centers)
    with backend.current(), one_blas_thread(backend):
        xp = backend.xp
        if scale is not None:
            centers = centers / xp.take(scale, backend.asarray(model.support_))
        centers = centers - xp.mean(centers, axis=0)
        products = to_numpy(centers @ xp.matrix_transpose(centers))
    norms = np.diag(products)
    return norms[:, None] + norms - 2 * products
