"""Classifiers of many classes from binary models, which one pass over the data solves together.

scikit-learn's `OneVsRestClassifier`, `OneVsOneClassifier` and `OutputCodeClassifier`, with its
names and parameters, and nested dichotomies. Around a model that class statistics determine, the
binary problems follow from the sums of each class, so that X is read once and never copied.
"""

from .nested_dichotomies import NestedDichotomiesClassifier
from .one_vs_one import OneVsOneClassifier
from .one_vs_rest import OneVsRestClassifier
from .output_code import OutputCodeClassifier

__all__ = [
    "NestedDichotomiesClassifier",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "OutputCodeClassifier",
]
