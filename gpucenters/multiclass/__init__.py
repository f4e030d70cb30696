"""Classifiers of many classes from binary models, which one pass over the data solves together.

scikit-learn's `OneVsRestClassifier`, `OneVsOneClassifier` and `OutputCodeClassifier`, with its
names and parameters, and nested dichotomies. Around a model that class statistics determine, the
binary problems follow from the sums of each class, so that X is read once and never copied.
"""

from .codes import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from .nested_dichotomies import NestedDichotomiesClassifier

__all__ = [
    "NestedDichotomiesClassifier",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "OutputCodeClassifier",
]
