"""Entries that many docstrings have: written once, and filled in when a module is imported."""

from __future__ import annotations

import inspect
import re
from typing import Any, TypeVar

_Documented = TypeVar("_Documented")

_PARAMETERS_OF_MODELS = """
k : int, float or "all", default="all"
    The number of features (int >= 1), a fraction of them (float in (0, 1]), or all.
alpha : float, default=1.0
    Additive smoothing, the same for every feature; below 1e-10 it counts as 1e-10.
fit_prior : bool, default=True
    Class priors as in the training data; else all equal.
class_prior : array of shape (n_classes,), default=None
    Class priors, in the order of ``classes_``.
priors : {"uniform", "empirical"} or array of shape (n_classes,), default="uniform"
    Class priors, in the order of ``classes_``; they shift the decision, not the centers.
class_weight : "balanced" or dict from labels to weights, default=None
    Factors of the sample weights of each class: given (1 for labels left out), or by which all
    classes weigh the same. They change gains, smoothing, and fitted priors.
device : {None, "cpu", "cuda", "cuda:N", "auto"}, default=None
    Where the work is done and the model lives. None follows X.
memory_budget : int or str, default=None
    Workspace beyond X and the model, in bytes or as "2GB". None is a quarter of what is free.
verbose : bool, default=False
    Print what was fitted.
n_jobs : int, default=None
    Fits that run at once, of estimators that class statistics do not determine.
"""

_ATTRIBUTES_OF_MODELS = """
classes_ : ndarray of shape (n_classes,)
    Sorted class labels, on the host.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features,)
    Only where X had string column names.
support_ : ndarray of shape (k,), int64
    Selected features, ascending, on the host.
ranking_ : ndarray of shape (k,), int64
    The same by descending score (ties: lower index first), on the host.
centers_ : array of shape (n_classes, k), float64
    Class centers on the support, in the units of X.
class_count_, class_log_prior_ : arrays of shape (n_classes,), float64
feature_importances_ : ndarray of shape (n_features,), float64
    ``scores_`` on the host.
coef_ : array of shape (1, n_features) or (n_classes, n_features), float64
    The decision is ``X @ coef_.T + intercept_``; zero outside the support.
intercept_ : array of shape (1,) or (n_classes,), float64
"""

_PARAMETERS_OF_FUNCTIONS = """
X : array or CSR/CSC matrix of shape (n, m)
    Of any library and any real type. Left as it is.
y : array of integers of shape (n,)
    Classes 0..K-1.
alpha : float, default=1.0
    Smoothing; below 1e-10 it counts as 1e-10.
n_classes : int, optional
    K; by default the largest code + 1.
sample_weight : array of shape (n,), optional
    Weights count as repetitions; 0 leaves a sample out.
device : {None, "cpu", "cuda", "cuda:N", "auto"}, optional
    Where to work; None follows X.
memory_budget : int or str, optional
    Workspace beyond X and the result, in bytes or as "2GB"; a quarter of what is free.
"""

_PARAMETERS_OF_METHODS = """
exposure : array of shape (n_samples,), optional
    What the counts of each sample are counted over, in place of what the parameter of this name
    says: in each call of a model or in none.
"""


def filled(documented: _Documented) -> _Documented:
    """A class or function whose docstring has the shared entries too.

    Those of the parameters of its signature that its section "Parameters" leaves out; and, of a
    class with a section "Attributes", those of the attributes that it leaves out. An entry of its
    own stands in place of the shared one. A method of the class without a docstring has that of
    the method that it overrides, with the entries of its further parameters.
    """
    if documented.__doc__ is None:  # python -OO
        return documented
    if not isinstance(documented, type):
        return _with_parameters(documented, documented.__doc__, _PARAMETERS_OF_FUNCTIONS)
    shared = _entries(_ATTRIBUTES_OF_MODELS)
    of_all = ("classes_", "n_features_in_", "feature_names_in_")
    names = [n for n in shared if n in of_all or hasattr(documented, n)]
    doc = _with_entries(inspect.cleandoc(documented.__doc__), "Attributes", names, shared)
    documented.__doc__ = doc
    _with_parameters(documented, doc, _PARAMETERS_OF_MODELS)
    for name, method in vars(documented).items():
        if inspect.isfunction(method) and method.__doc__ is None and name[0] != "_":
            overridden = getattr(super(documented, documented), name)
            _with_parameters(method, overridden.__doc__, _PARAMETERS_OF_METHODS)
    return documented


def _with_parameters(documented: Any, doc: str, shared: str) -> Any:
    """Give an object this docstring, with the shared entries of its parameters."""
    names = list(inspect.signature(documented).parameters)
    doc = _with_entries(inspect.cleandoc(doc), "Parameters", names, _entries(shared))
    documented.__doc__ = doc
    return documented


def _with_entries(doc: str, section: str, names: list[str], shared: dict[str, str]) -> str:
    """A docstring whose section has an entry for each name, and then those of other names."""
    title = f"\n{section}\n{'-' * len(section)}\n"
    before, found, rest = doc.partition(title)
    if not found:
        return doc
    own, blank, after = rest.partition("\n\n")
    entries = shared | _entries(own)
    chosen = [entries[name] for name in names if name in entries]
    chosen += [entry for name, entry in _entries(own).items() if name not in names]
    return before + title + "\n".join(dict.fromkeys(chosen)) + blank + after


def _entries(text: str) -> dict[str, str]:
    """The entries of a section by the names that they are of: one may be of several."""
    entries = re.split(r"\n(?=\S)", text.strip("\n"))
    return {name.strip(): entry for entry in entries for name in entry.split(" : ")[0].split(",")}
