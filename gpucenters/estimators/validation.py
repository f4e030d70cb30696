"""What users hand in, checked: X, y, classes and weights; and labels from codes."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ..arrays.backend import HOST, Backend, backend_of
from ..arrays.context import resolve_budget
from ..arrays.inputs import check_input, exact_values, first_missing, is_on_disk
from ..arrays.namespace import array_namespace, is_numpy, is_sparse, to_numpy
from ..arrays.typing import Array, SparseMatrix
from ..blocks.samples import check_weights
from ..blocks.validation import check_dense, checked_on_disk, checked_sparse

# Arrays of these kinds pass scikit-learn's checks as they are; in small fits the checks take long.
_PLAIN_KINDS = "biuf"

# Class labels of any type on the host: codes and back, checks, weights of classes, accuracy.


def host_labels(y: Any, caller: str, n_samples: int) -> np.ndarray:
    """Y as a NumPy array of shape (n_samples,); errors name ``caller``."""
    if y is None:
        raise ValueError(f"{caller} requires y to be passed, but the target y is None.")
    y = exact_values(y, "y")
    if not (type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in _PLAIN_KINDS):
        y = column_or_1d(y, warn=True)
    if y.shape[0] != n_samples:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: X has "
            f"{n_samples}, y has {y.shape[0]}."
        )
    return y


def encode(y: np.ndarray, name: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """(classes, codes): the sorted distinct labels, and the position of each label among them.

    ``numpy.unique`` sorts all labels: on a million strings that takes ten times as long as an l2
    fit. Small integers are counted, and strings looked up. Errors call the labels ``name``.
    """
    if y.dtype.kind == "T":  # scikit-learn does not know NumPy's new strings
        y = y.astype(object)
    if y.dtype.kind in "OUS":
        return _encode_strings(y, name)
    if y.dtype.kind in "iu" and y.size:
        low = y.min()
        span = int(y.max()) - int(low)
        if span <= 4 * y.size + 1024:
            return _count_integers(y, low, span)
    _refuse_missing(y, name)
    if y.dtype.kind == "f" and np.any(np.isinf(y)):
        row = int(np.isinf(y).argmax())
        raise ValueError(
            f"Input {name} contains infinity or a value too large for {y.dtype!r}. It is first in "
            f"row {row}."
        )
    classes, codes = np.unique(y, return_inverse=True)
    _check_targets(classes)
    return classes, codes


def _refuse_missing(y: np.ndarray, name: str) -> None:
    if missing := first_missing(y):
        row, what = missing
        raise ValueError(
            f"Input {name} contains {what}: a label is missing. It is first in row {row}."
        )


def _check_targets(classes: np.ndarray) -> None:
    # Repeated: labels that are all different look to it like the targets of a regression.
    check_classification_targets(np.tile(classes, 3))


def raise_for_one_class(caller: str, classes: np.ndarray) -> None:
    """Raise a ValueError where there are not at least two classes."""
    if len(classes) < 2:
        raise ValueError(
            f"{caller} needs samples of at least two classes, got {len(classes)} class: "
            f"{classes.tolist()}."
        )


def encode_against(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The position of each label among known, sorted classes (never the batch's own labels)."""
    found, codes = encode(y)
    at = positions(found, classes)
    if np.any(at < 0):
        raise ValueError(
            f"y contains labels that are not among classes: {found[at < 0].tolist()[:5]}."
        )
    return at[codes]


def accuracy(codes: Array, y: Any, classes: np.ndarray, caller: str, sample_weight: Any) -> float:
    """The weighted share of rows whose predicted code is that of their label.

    Labels that are not among the classes are misses.

    Raises
    ------
    TypeError, ValueError
        As scikit-learn's ``accuracy_score``: for labels that are missing, continuous or of another
        kind than the classes.
    """
    predicted = to_numpy(codes)
    found, code = encode(host_labels(y, caller, len(predicted)))
    kinds = [_KINDS.get(labels.dtype.kind, "labels of another kind") for labels in (found, classes)]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"Mix of label input types: y holds {kinds[0]}, but the model was fitted to {kinds[1]}."
        )
    right = predicted == positions(found, classes)[code]
    weights = check_weights(sample_weight, len(right))
    if weights is not None and not weights.any():
        raise ValueError("all sample weights are zero: there is nothing to average.")
    return float(np.average(right, weights=weights))


_KINDS = dict.fromkeys("OUS", "strings") | dict.fromkeys("biuf", "numbers") | {"M": "times"}


def positions(found: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Where each label is among sorted classes; -1 if it is not."""
    if found.dtype != classes.dtype and {found.dtype.kind, classes.dtype.kind} <= set("biuf"):
        # NumPy would compare them as float64; numbers of Python are compared as they are.
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        return np.asarray([code_of.get(label, -1) for label in found.tolist()], dtype=np.intp)
    try:
        at = np.searchsorted(classes, found)
        known = classes[np.minimum(at, len(classes) - 1)] == found
    except TypeError:
        return np.full(len(found), -1)
    return np.where(known, at, -1)


def as_classes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels in the type of the classes, for comparisons by others, where they are among these."""
    found, codes = encode(y)
    at = positions(found, classes)
    return y if np.any(at < 0) else classes[at[codes]]


def decode(codes: Array, classes: np.ndarray, backend: Backend) -> Array:
    """Labels of class codes, on ``backend`` if they are numbers; strings are NumPy's alone."""
    if classes.dtype.kind in "iufb" and classes.dtype.itemsize <= 8:
        try:
            with backend.current():
                return backend.xp.take(backend.asarray(classes), backend.move(codes))
        except (TypeError, ValueError, NotImplementedError):
            pass  # a type that this library does not have, or cannot index
    return classes[to_numpy(codes)]


def _count_integers(y: np.ndarray, low: np.integer, span: int) -> tuple[np.ndarray, np.ndarray]:
    """`encode` for integers low..low + span."""
    # The difference may overflow the type of the labels, but is right modulo its width.
    kind = "u1" if span < 256 else f"u{y.dtype.itemsize}"
    offset = np.subtract(y, low, out=np.empty(y.shape, kind), casting="unsafe")
    if span < _COMPARED_CLASSES:  # without the wide copy that a count makes
        present = np.asarray([np.any(offset == value) for value in range(span + 1)])
    else:
        offset = offset.astype(np.int64)
        present = np.bincount(offset) > 0
    found = np.flatnonzero(present)
    classes = (found + int(low)).astype(y.dtype) if int(low) < 0 else found.astype(y.dtype) + low
    # Labels without gaps are their own codes.
    return classes, offset if present.all() else (np.cumsum(present) - 1)[offset]


_COMPARED_CLASSES = 8  # classes that are found one by one, each by one comparison with all of y


def _encode_strings(y: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """`encode` for strings. Other objects are no labels, as in scikit-learn."""
    few = set(y[:1000].tolist())
    if len(few) <= _COMPARED_CLASSES and all(isinstance(label, str) for label in few):
        classes = np.asarray(sorted(few), dtype=y.dtype)
        codes = np.full(y.shape[0], len(classes), dtype=np.intp)
        for code, label in enumerate(classes):
            codes[y == label] = code
        if not np.any(codes == len(classes)):
            _check_targets(classes)
            return classes, codes
    values = y.tolist()
    try:
        classes = np.asarray(sorted(set(values)), dtype=y.dtype)
    except TypeError as error:
        _refuse_missing(y, name)
        raise TypeError(
            f"{name} holds labels that cannot be compared with each other (mixed types): use "
            "labels of one type."
        ) from error
    if len(classes) and not isinstance(classes[0], str | bytes):
        _refuse_missing(y, name)
        raise ValueError(
            f"Unknown label type: unknown. {name} is an array of Python objects that are no "
            f"strings, such as {values[0]!r} ({type(values[0]).__name__}): make it an array of "
            "numbers, as with astype(int), or of strings, with astype(str)."
        )
    _check_targets(classes)
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    return classes, np.fromiter(map(code_of.__getitem__, values), dtype=np.intp, count=len(values))


# The parameter ``class_weight``: factors of the sample weights, one for each class.


def check_class_weight(class_weight: Any) -> None:
    """Raise a ValueError unless it is None, "balanced" or a dict of weights."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, dict):
        raise ValueError(
            f"class_weight={class_weight!r} is not valid: use None, 'balanced' or a dict from "
            "labels to weights."
        )
    for label, weight in class_weight.items():
        if not isinstance(weight, numbers.Real) or not 0 <= float(weight) < math.inf:
            raise ValueError(
                f"class_weight of {label!r} is {weight!r}: use a finite number that is not "
                "negative."
            )


def with_class_weight(
    class_weight: Any, classes: np.ndarray, codes: np.ndarray, sample_weight: Any
) -> Any:
    """Sample weights, each times the factor of its class; as they are without ``class_weight``."""
    if class_weight is None:
        return sample_weight
    given = check_weights(sample_weight, len(codes))
    if isinstance(class_weight, str):
        factor = balanced(np.bincount(codes, weights=given, minlength=len(classes)))
    else:
        factor = _of_labels(class_weight, classes.tolist())
    weight = factor[codes] if given is None else given * factor[codes]
    return check_weights(weight, len(codes), "sample_weight times class_weight")


def balanced(weight: np.ndarray) -> np.ndarray:
    """Factors by which classes of these weights weigh the same, and together what they weigh."""
    present = weight > 0
    factor = np.ones(len(weight))
    factor[present] = weight.sum() / (np.count_nonzero(present) * weight[present])
    return factor


def _of_labels(class_weight: dict, labels: list) -> np.ndarray:
    """The factors that a dict has, as scikit-learn reads it."""
    left_out = [label for label in labels if label not in class_weight]
    if left_out and len(labels) - len(left_out) != len(class_weight):
        known = [repr(label) for label in class_weight if label not in labels]
        raise ValueError(
            f"class_weight has {', '.join(known[:5])}, which y does not hold, and lacks the "
            f"classes {left_out[:5]}, which it holds."
        )
    return np.asarray([float(class_weight.get(label, 1.0)) for label in labels])


def check_X(estimator: Any, X: Any, *, reset: bool, in_parts: bool = False) -> Array | SparseMatrix:
    """X as an array or a CSR/CSC matrix in its own library and type; names and width checked.

    Finiteness is not checked here: it shows in the sums and scores, which read X anyway. Where it
    is read ``in_parts`` alone, X may be on disk, and stays there.
    """
    checked = check_container(X, estimator, in_parts=in_parts)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return checked


def check_container(X: Any, estimator: Any, *, in_parts: bool = False) -> Array | SparseMatrix:
    """X as an array or a CSR/CSC matrix, for an estimator or a function of that name."""
    name = estimator if isinstance(estimator, str) else type(estimator).__name__
    if in_parts and is_on_disk(X):
        return checked_on_disk(X, name, resolve_budget(estimator.memory_budget, HOST))
    check_input(X, "X", name)
    with backend_of(X).current():
        if is_sparse(X):
            return checked_sparse(X)
        plain = type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in _PLAIN_KINDS
        if plain or not is_numpy(array_namespace(X)):
            check_dense(X)
            return X
    checked = check_array(
        X,
        accept_sparse=("csr", "csc"),  # a data frame may have sparse columns
        dtype=None,
        ensure_all_finite=False,
        estimator=estimator,
        input_name="X",
    )
    if is_sparse(checked):
        return checked_sparse(checked)
    check_dense(checked)
    return checked


def validated(
    estimator: Any, X: Any, *, in_parts: bool = False
) -> tuple[Array | SparseMatrix, dict[str, Any]]:
    """X as `check_X` returns it, and the attributes that a fit to it sets (names and width).

    The estimator is not changed: a fit sets all its attributes in one assignment at its end.
    """
    other = object.__new__(type(estimator))
    other.__dict__.update(estimator.__dict__)
    checked = check_X(other, X, reset=True, in_parts=in_parts)
    names = ("n_features_in_", "feature_names_in_")
    return checked, {name: vars(other)[name] for name in names if name in vars(other)}


def check_backend(estimator: Any, X: Any, method: str, name: str | None = None) -> None:
    """Raise unless X lives where the model does, or the model was told to move the work.

    The error names the model, or what holds it.
    """
    there = estimator._fitted.backend
    if estimator.device is None:
        name = name or type(estimator).__name__
        require_backend(X, there, name, method, "Move X, or move the model with to(device).")


def require_backend(X: Any, there: Backend, name: str, method: str, advice: str) -> None:
    """Raise, with the advice, unless X lives where the model of that name does."""
    here = backend_of(X)
    if here != there:
        raise ValueError(
            f"Inputs passed to {name}.{method}() must use the same namespace and the same device "
            f"as those passed to fit(): the model lives in {there}, X in {here}. {advice}"
        )


def snapshot(parameter: Any) -> Any:
    """A parameter as it is now: the user may go on with their array."""
    plain = parameter is None or np.isscalar(parameter)
    return parameter if plain else np.array(to_numpy(parameter))


def output_backend(X: Any) -> Backend:
    """Where outputs for X belong: beside X."""
    backend = backend_of(X)
    return HOST if is_numpy(backend.xp) else backend
