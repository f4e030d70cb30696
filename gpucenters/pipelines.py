"""Models and pipelines with one as files: `save` and `load`, and the steps around a model.

Of the steps, options are JSON, and words and fitted arrays are arrays.
"""

from __future__ import annotations

import re
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from .arrays.backend import Backend, resolve_backend
from .arrays.namespace import is_array
from .estimators.base import Classifier
from .estimators.fitted import FittedModel
from .estimators.saving import pack_model, unpack_model
from .estimators.score_functions import LogRatioScaler
from .files.container import read, write
from .files.state import Packer, Unpacker
from .multiclass.copies import joint_model, pack_decomposition, unpack_decomposition
from .multiclass.decomposition import Decomposition
from .solvers.selection import warn
from .text import CountVectorizer as OwnCountVectorizer
from .text import TfidfVectorizer as OwnTfidfVectorizer

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


def save(model: Classifier | Decomposition | Pipeline, path: Any, *, full: bool = False) -> None:
    """Write a fitted model, or a pipeline with one, to one file.

    A model is also one of ``gpucenters.multiclass``, as its method ``save`` has it.

    Parameters
    ----------
    model : model of gpucenters, or Pipeline
        As the method ``save`` of models has it. A pipeline has, under any names, a CountVectorizer,
        TfidfVectorizer or HashingVectorizer for texts, the model, and as second stage any of
        LogRatioScaler, and StandardScaler, MaxAbsScaler, LogisticRegression and LinearSVC of
        scikit-learn. Its ``memory`` and ``verbose`` are not kept.
    path : str, path-like or binary file
    full : bool, default=False
        Whether to write what all features need. Without it, a CountVectorizer or a TfidfVectorizer
        with ``norm=None`` keeps the words of the support alone, which get the columns 0 to k - 1,
        so that the loaded model is one of k features. A norm needs all words, and so do Mahalanobis
        centers.

    Raises
    ------
    TypeError
        For other steps; for options of a step that a file cannot hold, such as functions; for a
        vectorizer that opens files (``input="filename"``).
    ValueError
        As the method ``save``; for a vectorizer that does not fit the model.

    Examples
    --------
    >>> import io
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from gpucenters import SparseBernoulliNB, load, save
    >>> texts = ["a fine film", "fine and moving", "a dull film", "dull and long"]
    >>> model = make_pipeline(CountVectorizer(), SparseBernoulliNB(k=2)).fit(texts, [1, 1, 0, 0])
    >>> file = io.BytesIO()
    >>> save(model, file)
    >>> _ = file.seek(0)
    >>> there = load(file)
    >>> there[:-1].get_feature_names_out().tolist(), there.predict(["moving but dull"]).tolist()
    (['dull', 'fine'], [0])
    """
    names, vectorizer, model, second = _divided(model)
    check_is_fitted(model)
    packer = Packer()
    if isinstance(model, Decomposition):
        document, columns = pack_decomposition(model, packer), None
        backend = FittedModel(joint_model(model)).backend
    else:
        # A column of a vectorizer without a norm depends on its own word alone: others may go.
        counts = isinstance(vectorizer, CountVectorizer)
        narrow = counts and not full and getattr(vectorizer, "norm", None) is None
        section, columns = pack_model(model, packer, full=full, narrow=narrow)
        document, backend = {"model": section}, FittedModel(model).backend
    if names is not None:
        steps: list[Any] = [None, *(pack_step(step, packer) for step in second)]
        if vectorizer is not None:
            steps.insert(0, pack_vectorizer(vectorizer, columns, model.n_features_in_, packer))
        document["steps"] = [*zip(names, steps, strict=True)]
    with backend.current():
        write(path, document, packer.arrays)


def _divided(pipeline: Any) -> tuple[list[str] | None, Any, Any, list[Any]]:
    """(names of the steps, vectorizer or None, model, steps behind it); no names of a model alone.

    Any other pipeline is a TypeError.
    """
    if not isinstance(pipeline, Pipeline):
        return None, None, pipeline, []
    first, *steps = (step for _, step in pipeline.steps)
    vectorizer, steps = (first, steps) if type(first) in _NAMES else (None, [first, *steps])
    is_model = steps and isinstance(steps[0], Classifier | Decomposition)
    if not is_model or not all(type(step) in STEPS for step in steps[1:]):
        has = ", ".join(f"{name!r} ({type(step).__name__})" for name, step in pipeline.steps)
        raise TypeError(
            f"a model file holds a pipeline of a vectorizer (none, or {', '.join(VECTORIZERS)}), a "
            "model of gpucenters and steps behind it (none, or any of "
            f"{', '.join(kind.__name__ for kind in STEPS)}); this one has the steps {has}."
        )
    return [*pipeline.named_steps], vectorizer, steps[0], steps[1:]


def load(path: Any, device: str | None = None) -> Any:
    """The fitted model, or the pipeline with one, of a file that `save` wrote.

    Truncated and altered files are found by a checksum. It is no signature: whoever can change a
    file can change its checksum. No file runs code or opens another one, but one of a stranger may
    hold any model.

    Warns of a token pattern that may keep some texts at work for long, and names it.

    Parameters
    ----------
    path : str, path-like or binary file
    device : {None, "cpu", "cuda", "cuda:N", "auto"}, default=None
        Where the model is to live. None is the CUDA device where it lived when it was saved, if
        this machine has it, else the CPU. Another device becomes the ``device`` parameter of the
        model, as in its method ``to``.

    Returns
    -------
    model or Pipeline
        With the bits of the saved one.

    Raises
    ------
    ValueError
        For a file that is truncated, altered, written by a newer version, or no model file. It
        names the versions of the packages that wrote the file.
    DeviceUnavailableError
        Where ``device`` names a device that cannot be used.

    Examples
    --------
    >>> import io
    >>> from sklearn.datasets import load_iris
    >>> import gpucenters
    >>> X, y = load_iris(return_X_y=True)
    >>> file = io.BytesIO()
    >>> gpucenters.L2CenterClassifier(k=2).fit(X, y).save(file)
    >>> _ = file.seek(0)
    >>> gpucenters.load(file).support_
    array([2, 3])
    """
    backend = None if device is None else resolve_backend(device, None)
    return read(path, partial(_unpacked, backend, device))


def _unpacked(
    backend: Backend | None,
    device: str | None,
    document: dict[str, Any],
    arrays: list[np.ndarray],
) -> Any:
    """The model of a file, on a backend or (None) where it was saved."""
    section, steps = document.pop("model"), document.pop("steps", None)
    wrapper = document.pop("decomposition", None)
    if document:
        raise ValueError(f"this gpucenters does not know the sections {sorted(document)}.")
    model, unpacker = unpack_model(section, arrays, backend)
    if device is not None:
        model.device = device
    if wrapper is not None:
        model = unpack_decomposition(wrapper, model, unpacker)
    if steps is None:
        return model
    with unpacker.backend.current():
        return _pipeline(steps, model, unpacker)


def _pipeline(steps: list[Any], model: Any, unpacker: Unpacker) -> Pipeline:
    """The pipeline of a model: the steps of a file are (name, section), that of the model None."""
    width, made = model.n_features_in_, []
    for name, section in steps:
        if not isinstance(name, str):
            raise ValueError("its steps have no names.")
        if section is None:
            made.append((name, model))
        elif not made and section["class"] in VECTORIZERS:
            made.append((name, unpack_vectorizer(section, width, unpacker)))
        else:
            width = len(model.get_feature_names_out())
            made.append((name, unpack_step(section, width, unpacker)))
    pipeline = Pipeline(made)
    _divided(pipeline)
    return pipeline


# The steps around a model.


def pack_vectorizer(
    vectorizer: Any, columns: np.ndarray | None, n_features: int, packer: Packer
) -> dict[str, Any]:
    """A fitted vectorizer as JSON, with the words of these columns (ascending), or all."""
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
    """A fitted step of a type in `STEPS` as JSON."""
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
