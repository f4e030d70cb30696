"""Binary problems at the nodes of a binary tree over the classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._docstrings import filled
from ..arrays.backend import Backend, backend_of
from ..arrays.linalg import one_blas_thread
from ..arrays.namespace import array_namespace, to_numpy
from ..arrays.typing import Array
from ..estimators.probabilities import log_softmax, softmax
from ..statistics import Statistics
from ._copies import has
from ._decomposition import Decomposition
from ._refitted import RefittedDichotomies
from ._trees import code_book, random_tree, tree_of_distances

_TREES = ("random", "centers")


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
        cache = self._joint._ready().cache
        if "code book" not in cache:
            cache["code book"] = self._draw(len(self.classes_), lambda: self._joint)
        return cache["code book"]

    def _set_code_book(self, code_book: np.ndarray) -> None:
        if self.tree == "random":
            self._code_book = code_book
        else:  # until the next batch
            self._joint._ready().cache["code book"] = code_book

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
            with self._joint._fitted.backend.current():
                factors = [model._per_score for model in self.estimators_]
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
