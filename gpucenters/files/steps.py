"""The steps of a pipeline around its model: options as JSON, words and fitted arrays as arrays."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from ..arrays.namespace import is_array
from ..estimators.log_ratios import LogRatioScaler
from ..solvers.selection import warn
from ..text import CountVectorizer as OwnCountVectorizer
from ..text import TfidfVectorizer as OwnTfidfVectorizer
from .state import Packer, Unpacker

#: The vectorizers that a file may hold, by the names that it has for them.
VECTORIZERS: dict[str, Any] = {
    kind.__name__: kind for kind in (CountVectorizer, HashingVectorizer, TfidfVectorizer)
} | {f"gpucenters.{kind.__name__}": kind for kind in (OwnCountVectorizer, OwnTfidfVectorizer)}
_NAMES = {kind: name for name, kind in VECTORIZERS.items()}

# Patterns that match in one way at most: alternatives of single characters, the last one repeated.
_SET = r"\[(?:\^|(?!\^))(?:\\.|[^\\])(?:\\.|[^\\\]])*\]"
_CHARACTER = rf"(?:\\[bBdDsSwW]|\\[^0-9A-Za-z]|{_SET}|[^\\|?*+()\[\]{{}}])(?:\{{\d{{1,2}}\}})?"
_ALTERNATIVE = rf"(?:{_CHARACTER})*(?:(?:[?*+]|\{{\d*,\d*\}})[?+]?(?:\\b)?)?"
_SIMPLE = re.compile(rf"(?:\(\?[aiLmsu]+\))?{_ALTERNATIVE}(?:\|{_ALTERNATIVE}){{0,9}}", re.DOTALL)
_LINEAR = {"classes_": ("class",), "coef_": ("decision", "feature"), "intercept_": ("decision",)}

#: The steps that a file may hold: the arrays of each, with their axes.
STEPS: dict[Any, dict[str, tuple[str, ...]]] = {
    LinearSVC: _LINEAR,
    LogRatioScaler: {"classes_": ("class",), "log_ratios_": ("decision", "feature")},
    LogisticRegression: _LINEAR,
    MaxAbsScaler: dict.fromkeys(("scale_", "max_abs_"), ("feature",)),
    StandardScaler: dict.fromkeys(("scale_", "mean_", "var_"), ("feature",)),
}
_KINDS = {kind.__name__: kind for kind in STEPS}
_OTHERS = (
    *("n_features_in_", "feature_names_in_", "_sklearn_output_config"),
    *("n_iter_", "n_samples_seen_"),
)


def is_vectorizer(step: Any) -> bool:
    """Whether a file may hold a step as a vectorizer."""
    return type(step) in _NAMES


def reads_words_alone(vectorizer: Any) -> bool:
    """Whether a column of its output depends on its own word alone, so that others may go."""
    if isinstance(vectorizer, HashingVectorizer):
        return False
    return getattr(vectorizer, "norm", None) is None


def pack_vectorizer(
    vectorizer: Any, columns: np.ndarray | None, n_features: int, packer: Packer
) -> dict[str, Any]:
    """A fitted vectorizer as JSON.

    Parameters
    ----------
    vectorizer : CountVectorizer, HashingVectorizer or TfidfVectorizer
    columns : ndarray of int64, optional
        The words to keep, ascending; by default all.
    n_features : int
        How many columns the model was fitted to.
    packer : Packer
    """
    name = _NAMES[type(vectorizer)]
    _require_content(vectorizer)
    params = vectorizer.get_params(deep=False) | {"dtype": _numeric(vectorizer.dtype).str}
    given = params.pop("vocabulary", None) is not None
    packed = {n: packer.pack(v, f"{n} of the {name}") for n, v in params.items()}
    section: dict[str, Any] = {"class": name, "params": packed}
    if isinstance(vectorizer, HashingVectorizer):
        _require_width(vectorizer.n_features, n_features, name)
        return section
    words = _words(vectorizer)
    _require_width(len(words), n_features, name)
    weighs = isinstance(vectorizer, TfidfVectorizer) and vectorizer.use_idf
    idf = vectorizer.idf_ if weighs else None
    if columns is not None:
        words, idf, given = words[columns], None if idf is None else idf[columns], True
    section["words"] = packer.pack(_joined(words), "words")
    section["idf"] = packer.pack(idf, "idf_")
    return section | {"vocabulary given": given}


def unpack_vectorizer(section: dict[str, Any], n_features: int, unpacker: Unpacker) -> Any:
    """The vectorizer that was packed, for a model of so many columns."""
    name = section["class"]
    if name not in VECTORIZERS:
        raise ValueError(f"this gpucenters does not know the vectorizer {name!r}.")
    params = {n: unpacker.unpack(v) for n, v in section["params"].items()}
    vectorizer = VECTORIZERS[name](**params | {"dtype": _numeric(params["dtype"]).type})
    vectorizer._validate_params()
    _require_content(vectorizer)
    if vectorizer.analyzer == "word":
        _check_pattern(vectorizer.token_pattern)
    if isinstance(vectorizer, HashingVectorizer):
        _require_width(vectorizer.n_features, n_features, name)
        return vectorizer
    words, idf = _split(*unpacker.unpack(section["words"])), unpacker.unpack(section["idf"])
    vocabulary = {word: i for i, word in enumerate(words)}
    _require_width(len(vocabulary), n_features, name)
    if section["vocabulary given"]:
        vectorizer.vocabulary = words
    if isinstance(vectorizer, TfidfVectorizer):
        _set_idf(vectorizer, idf, n_features)
    vectorizer.fixed_vocabulary_ = section["vocabulary given"]
    vectorizer.vocabulary_ = vocabulary
    return vectorizer


def _numeric(dtype: Any) -> np.dtype:
    if np.dtype(dtype).kind not in "biuf":
        raise ValueError(f"the dtype of a vectorizer must be that of real numbers, not {dtype!r}.")
    return np.dtype(dtype)


def _require_content(vectorizer: Any) -> None:
    """Raise for a vectorizer that opens files, which a text of anybody could name."""
    if vectorizer.input != "content":
        raise TypeError(
            f"a model file holds vectorizers of texts, input='content', not {vectorizer.input!r}."
        )


def _check_pattern(pattern: str) -> None:
    """Warn of a pattern that some texts could keep at work for hours."""
    re.compile(pattern)
    if not _SIMPLE.fullmatch(pattern):
        warn(
            f"the token pattern {pattern!r} of the model file has groups, or repeats more than its "
            "last character: it may take very long on some texts. Where a stranger made the file, "
            "make sure that it does not, or leave the file alone."
        )


def _require_width(width: int, n_features: int, name: str) -> None:
    if width != n_features:
        raise ValueError(
            f"the {name} gives {width:,} columns, and the model was fitted to {n_features:,}."
        )


def _set_idf(vectorizer: TfidfVectorizer, idf: np.ndarray | None, n_features: int) -> None:
    """Give a vectorizer its weights; without any, ones, by which scikit-learn multiplies."""
    use_idf = vectorizer.use_idf
    if use_idf is not (idf is not None):
        raise ValueError("its idf_ does not fit the rest.")
    idf = np.ones(n_features, vectorizer.dtype) if idf is None else idf
    if idf.shape != (n_features,) or idf.dtype.kind != "f":
        raise ValueError("its idf_ does not fit the rest.")
    vectorizer.use_idf = True  # else scikit-learn takes no weights, and is not ready without
    vectorizer.idf_ = idf
    vectorizer.use_idf = use_idf


def _words(vectorizer: CountVectorizer) -> np.ndarray:
    """The words by their columns; scikit-learn's method sorts them, a second for a million."""
    if not hasattr(vectorizer, "vocabulary_"):
        vectorizer.get_feature_names_out()  # takes a vocabulary that was given, or raises
    vocabulary = vectorizer.vocabulary_
    words = np.empty(len(vocabulary), dtype=object)
    words[np.fromiter(vocabulary.values(), np.int64, len(vocabulary))] = list(vocabulary)
    return words


def _joined(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(UTF-8 of all words, the end of each): strings of NumPy have the width of the longest."""
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    ends = np.cumsum([len(word) for word in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def _split(content: np.ndarray, ends: np.ndarray) -> list[str]:
    starts = np.concatenate([[0], ends[:-1]])
    if np.any(starts > ends) or ends[-1] != len(content):
        raise ValueError("its words do not fit the rest.")
    raw, spans = content.tobytes(), zip(starts.tolist(), ends.tolist(), strict=True)
    return [raw[start:end].decode("utf-8", "surrogatepass") for start, end in spans]


def pack_step(step: Any, packer: Packer) -> dict[str, Any]:
    """A fitted step as JSON.

    Parameters
    ----------
    step : estimator of a type in `STEPS`
    packer : Packer
    """
    check_is_fitted(step)
    kind = type(step)
    default = {n: p.default for n, p in signature(kind).parameters.items()}
    # Another version may lack an option: those that were not given are left to their defaults.
    params = {
        n: packer.pack(v, f"{n} of the {kind.__name__}")
        for n, v in step.get_params(deep=False).items()
        if type(v) is not type(default[n]) or v != default[n]
    }
    known = {n: vars(step)[n] for n in (*STEPS[kind], *_OTHERS) if n in vars(step)}
    attributes = {
        n: packer.place(v)
        if is_array(v) and not isinstance(v, np.ndarray)
        else packer.pack(v, f"{n} of the {kind.__name__}")
        for n, v in known.items()
    }
    return {"class": kind.__name__, "params": params, "attributes": attributes}


def unpack_step(section: dict[str, Any], n_features: int, unpacker: Unpacker) -> Any:
    """The step that was packed, for so many columns."""
    if section["class"] not in _KINDS:
        raise ValueError(f"this gpucenters does not know the step {section['class']!r}.")
    kind = _KINDS[section["class"]]
    step = kind(**{n: unpacker.unpack(v) for n, v in section["params"].items()})
    step._validate_params()
    for name in (*STEPS[kind], *_OTHERS):
        if name in section["attributes"]:
            setattr(step, name, unpacker.unpack(section["attributes"][name]))
    sizes = {"feature": n_features}
    if "classes_" in STEPS[kind]:
        n_classes = len(step.classes_)
        sizes |= {"class": n_classes, "decision": 1 if n_classes == 2 else n_classes}
    fits = step.n_features_in_ == n_features and sizes.get("class", 2) > 1
    for name, axes in STEPS[kind].items():
        value = getattr(step, name)
        if not isinstance(value, float | None):  # of what an option leaves out
            fits = fits and value.shape == tuple(sizes[axis] for axis in axes)
    if not fits:
        raise ValueError(f"its {section['class']} does not fit the rest.")
    return step
