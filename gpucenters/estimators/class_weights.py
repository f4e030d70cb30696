"""The parameter ``class_weight``: factors of the sample weights, one for each class."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from ..blocks.samples import check_weights


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
