"""The word vectorizers of scikit-learn, in a fraction of their time, with sorted rows; by name.

Where tokens are runs of word characters, PyArrow splits the texts and numbers the tokens, so that
Python meets a word once for each part of the texts. Everything else runs scikit-learn's own loop.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.feature_extraction import text

from .arrays.backend import HOST
from .arrays.schedule import run

__all__ = ["CountVectorizer", "TfidfVectorizer"]

_PART = 2**22  # characters of text that a thread works on in one go
_FILE = 2**16  # characters that a file is taken to have

# Patterns whose tokens are all runs of word characters from some length on.
_RUNS = re.compile(r"(?:\(\?u\))?(?:\\b)?(?:((?:\\w)*)\\w\+|\\w\{([1-9][0-9]*),\})(?:\\b)?")
_WORD = re.compile(r"\w+")
_ASCII = "".join(chr(i) if _WORD.match(chr(i)) else " " for i in range(128))


# The methods that turn a text into its n-grams.
_STEPS = ("build_analyzer", "build_preprocessor", "build_tokenizer", "_word_ngrams")


@dataclass(frozen=True)
class _Grams:
    """All n-grams of one length.

    Attributes
    ----------
    names : list of str
        Each n-gram once.
    tokens : array of int64 of shape (G, n)
        The numbers of their tokens.
    occurring : list of pairs of arrays of int64
        Of each part of the texts, for each n-gram in it: its first token among those of the part,
        and its own number.
    """

    names: list[str]
    tokens: np.ndarray
    occurring: list[tuple[np.ndarray, np.ndarray]]


class _ArrowCounts:
    """The loop over the texts, in place of that of scikit-learn's vectorizers."""

    def counts_by_arrow(self) -> bool:
        """Whether words are counted by PyArrow, and not by scikit-learn's loop."""
        return (
            _shortest_token(self) is not None
            and all(_is_inherited(self, name) for name in _STEPS)
            and find_spec("pyarrow") is not None
        )

    def _count_vocab(self: Any, raw_documents: Iterable, fixed_vocab: bool) -> tuple[dict, Any]:
        """The vocabulary, and the counts of its words in each text as CSR with sorted rows."""
        shortest = _shortest_token(self)
        if shortest is None or not self.counts_by_arrow():
            return super()._count_vocab(raw_documents, fixed_vocab)  # type: ignore[misc]
        self.build_analyzer()  # It warns of stop words that no text can hold.
        stop = self.get_stop_words() or ()

        def tokens(texts: list[Any]) -> tuple[list[str], np.ndarray, np.ndarray]:
            return _tokens([_spaced(t, self) for t in texts], shortest, stop)

        numbers: Any = defaultdict()
        numbers.default_factory = numbers.__len__
        ends, occurring = [], []
        for names, lengths, number in run(tokens, _parts(raw_documents), HOST):
            place = np.fromiter(map(numbers.__getitem__, names), np.int64, len(names))
            ends.append(np.cumsum(lengths))
            occurring.append((np.arange(len(number)), place[number]))
        words = _Grams(list(numbers), np.arange(len(numbers))[:, None], occurring)
        levels = list(_levels(words, ends, *self.ngram_range))
        if fixed_vocab:
            vocabulary = self.vocabulary_
            known = [[vocabulary.get(name, -1) for name in grams.names] for grams in levels]
            columns = [np.asarray(of_level, np.int64) for of_level in known]
        else:
            vocabulary, columns = _vocabulary(levels, words.names)
        if not vocabulary:
            raise ValueError("empty vocabulary; perhaps the documents only contain stop words")
        return vocabulary, _counts(levels, ends, columns, len(vocabulary), self.dtype)

    def _limit_features(
        self: Any, X: Any, vocabulary: dict, high: Any = None, low: Any = None, limit: Any = None
    ) -> Any:
        """The columns of words that few and many enough texts have; the vocabulary is cut too."""
        inherited = super()._limit_features  # type: ignore[misc]
        if not self.counts_by_arrow() or limit is not None or high is None or low is None:
            return inherited(X, vocabulary, high, low, limit)
        texts = np.bincount(X.indices, minlength=X.shape[1])
        kept = np.flatnonzero((texts >= low) & (texts <= high))
        if len(kept) == 0:
            return inherited(X, vocabulary, high, low, limit)  # raises
        if len(kept) == X.shape[1]:
            return X
        words = list(vocabulary)  # in the order of their columns
        vocabulary.clear()
        vocabulary.update((words[column], i) for i, column in enumerate(kept.tolist()))
        return X[:, kept]

    def _sort_features(self: Any, X: Any, vocabulary: dict) -> Any:
        """The columns in the order of their words, which `_count_vocab` gives them."""
        if not self.counts_by_arrow():
            return super()._sort_features(X, vocabulary)  # type: ignore[misc]
        vocabulary.update(zip(vocabulary, range(len(vocabulary)), strict=True))  # plain integers
        return X


class CountVectorizer(_ArrowCounts, text.CountVectorizer):
    """Counts of words: scikit-learn's CountVectorizer, in a fraction of its time.

    The same parameters, attributes, counts and errors, and rows that are sorted. It takes PyArrow
    where ``analyzer="word"``, the token pattern finds runs of word characters, as the default does,
    no tokenizer, preprocessor or ``strip_accents`` is given, and no method of these steps is
    overridden; else, and where PyArrow is not installed, scikit-learn's own loop. See
    `sklearn.feature_extraction.text.CountVectorizer`.

    Examples
    --------
    >>> from gpucenters.text import CountVectorizer
    >>> words = CountVectorizer()
    >>> words.fit_transform(["a good film", "good actors, good film"]).toarray()
    array([[0, 1, 1],
           [1, 1, 2]])
    >>> words.get_feature_names_out().tolist()
    ['actors', 'film', 'good']
    """


class TfidfVectorizer(_ArrowCounts, text.TfidfVectorizer):
    """Weighted counts of words: scikit-learn's TfidfVectorizer, in a fraction of its time.

    The same parameters, attributes and errors, the same weights up to rounding, and rows that are
    sorted. It counts words as `gpucenters.text.CountVectorizer` does. See
    `sklearn.feature_extraction.text.TfidfVectorizer`.

    Examples
    --------
    >>> from gpucenters.text import TfidfVectorizer
    >>> TfidfVectorizer().fit_transform(["good film", "bad film"]).toarray().round(2)
    array([[0.  , 0.58, 0.81],
           [0.81, 0.58, 0.  ]])
    """


def make_vectorizer(
    kind: str = "count",
    *,
    ngrams: tuple[int, int] = (1, 1),
    min_df: int | float = 1,
    token_pattern: str | None = None,
    norm: str | None = "l2",
    n_features: int = 2**20,
    binary: bool = False,
    analyzer: str = "word",
    stop_words: str | list[str] | None = None,
) -> Any:
    """A vectorizer that suits the models.

    Parameters
    ----------
    kind : {"count", "tfidf", "hashing"}, default="count"
        "hashing" counts without signs and without a norm, which naive Bayes could not take.
    ngrams : tuple of two int, default=(1, 1)
        The fewest and the most words, or characters, of an n-gram.
    min_df : int or float, default=1
        In how many texts a word must be; "hashing", which sees a text at a time, takes no other.
    token_pattern : str, optional
        A regular expression; by default scikit-learn's, words of two characters and more.
    norm : {"l2", "l1", None}, default="l2"
        Of "tfidf". With None a row's value depends on its own word alone, so that a model file
        needs the words of the support only.
    n_features : int, default=2**20
        Of "hashing".
    binary : bool, default=False
        Whether a word counts once in a text.
    analyzer : {"word", "char", "char_wb"}, default="word"
        Whether n-grams are of words, of characters, or of the characters of a word and the spaces
        around it.
    stop_words : "english" or list of str, optional
        Words that are left out: those that scikit-learn has, or these.

    Returns
    -------
    CountVectorizer or TfidfVectorizer of ``gpucenters.text``, or HashingVectorizer
    """
    options: dict[str, Any] = {"ngram_range": tuple(ngrams), "binary": binary}
    options |= {"analyzer": analyzer, "stop_words": stop_words}
    if token_pattern is not None:
        options["token_pattern"] = token_pattern
    if kind == "hashing":
        if min_df != 1:
            raise ValueError("hashing sees one text at a time and knows no min_df: leave it out.")
        options |= {"n_features": n_features, "alternate_sign": False, "norm": None}
        return text.HashingVectorizer(**options)
    if kind == "count":
        return CountVectorizer(min_df=min_df, **options)
    if kind == "tfidf":
        return TfidfVectorizer(min_df=min_df, norm=norm, **options)
    raise ValueError(f"vectorizer={kind!r} is not valid: use count, tfidf or hashing.")


def _is_inherited(vectorizer: Any, name: str) -> bool:
    """Whether a method is scikit-learn's, and of no subclass or object."""
    method = getattr(vectorizer, name)
    return getattr(method, "__func__", method) is getattr(text.CountVectorizer, name)


def _shortest_token(vectorizer: Any) -> int | None:
    """The length from which on all runs of word characters are tokens; None if others are."""
    own = ("tokenizer", "preprocessor", "strip_accents")
    if (
        vectorizer.analyzer != "word"
        or any(getattr(vectorizer, name) is not None for name in own)
        or not isinstance(vectorizer.token_pattern, str)
        or vectorizer.ngram_range[0] < 1
    ):
        return None
    found = _RUNS.fullmatch(vectorizer.token_pattern)
    if found is None:
        return None
    return int(found[2]) if found[2] else len(found[1]) // len(r"\w") + 1


def _parts(documents: Iterable[Any]) -> Iterator[list[Any]]:
    """The texts, some at a time."""
    part: list[Any] = []
    size = 0
    for document in documents:
        part.append(document)
        size += len(document) if isinstance(document, str | bytes) else _FILE
        if size >= _PART:
            yield part
            part, size = [], 0
    if part:
        yield part


def _spaced(document: Any, vectorizer: Any) -> str:
    """The runs of word characters of a text, with spaces in between."""
    content = vectorizer.decode(document)
    if vectorizer.lowercase:
        content = content.lower()
    if isinstance(content, str) and content.isascii():
        return content.translate(_ASCII)
    return " ".join(_WORD.findall(content))


def _tokens(
    texts: list[str], shortest: int, stop: Collection[str]
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """(the different tokens, how many each text has, the number of each) of runs of words."""
    import pyarrow
    import pyarrow.compute

    runs = pyarrow.compute.ascii_split_whitespace(pyarrow.array(texts, pyarrow.large_string()))
    encoded = runs.flatten().dictionary_encode()
    names, number = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    is_token = np.asarray([len(n) >= shortest and n not in stop for n in names], dtype=bool)
    kept, offsets = is_token[number], runs.offsets.to_numpy()
    left_out = np.searchsorted(np.flatnonzero(~kept), offsets)  # before each text
    place = np.cumsum(is_token, dtype=number.dtype) - 1
    names = [name for name, taken in zip(names, is_token, strict=True) if taken]
    return names, np.diff(offsets) - np.diff(left_out), place[number[kept]]


def _levels(words: _Grams, ends: list[np.ndarray], fewest: int, most: int) -> Iterator[_Grams]:
    """The n-grams of each length from ``fewest`` to ``most``: none reaches from text to text."""
    import pyarrow

    grams, n_words = words, max(1, len(words.names))
    for length in range(1, most + 1):
        if length > 1:  # each of the length before, with the token behind it
            codes, found = [], [np.zeros(0, np.int64)]
            parts = zip(words.occurring, grams.occurring, ends, strict=True)
            for (_, token), (start, number), end in parts:
                last = start + length - 1
                inside = last < end[np.searchsorted(end, start, side="right")]
                pairs = number[inside] * n_words + token[last[inside]]
                encoded = pyarrow.array(pairs).dictionary_encode()  # faster than a sort
                codes.append((start[inside], encoded.indices.to_numpy()))
                found.append(encoded.dictionary.to_numpy())
            pairs, place = np.unique(np.concatenate(found), return_inverse=True)
            places = np.split(place, np.cumsum([len(part) for part in found[1:]]))
            heads, tails = np.divmod(pairs, n_words)
            names = [
                f"{grams.names[head]} {words.names[tail]}"
                for head, tail in zip(heads.tolist(), tails.tolist(), strict=True)
            ]
            occurring = [(s, of[code]) for of, (s, code) in zip(places, codes, strict=False)]
            grams = _Grams(names, np.c_[grams.tokens[heads], tails], occurring)
        if length >= fewest:
            yield grams


def _vocabulary(levels: list[_Grams], words: list[str]) -> tuple[dict[str, int], list[np.ndarray]]:
    """The columns of all n-grams in the order of their names: by name, and of each level.

    That is the order of their words: a space comes before all characters of words.
    """
    rank = np.empty(len(words), np.int64)
    rank[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
    most = levels[-1].tokens.shape[1]
    keys = [np.pad(rank[g.tokens] + 1, ((0, 0), (0, most - g.tokens.shape[1]))) for g in levels]
    names = [name for grams in levels for name in grams.names]
    order = np.lexsort(np.concatenate(keys).T[::-1])
    column = np.empty_like(order)
    column[order] = np.arange(len(order))
    ends = np.cumsum([len(grams.names) for grams in levels])
    vocabulary = dict(zip(map(names.__getitem__, order.tolist()), range(len(names)), strict=True))
    return vocabulary, np.split(column, ends[:-1])


def _counts(
    levels: list[_Grams], ends: list, columns: list[np.ndarray], width: int, dtype: Any
) -> Any:
    """CSR counts of the n-grams, the rows sorted; columns of -1 are left out."""

    def count(part: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        keys = []
        for column, grams in zip(columns, levels, strict=True):
            start, number = grams.occurring[part]
            key = np.searchsorted(ends[part], start, side="right") * max(1, width)
            keys.append((key + column[number])[column[number] >= 0])
        key = np.sort(np.concatenate(keys))
        first = np.flatnonzero(np.diff(key, prepend=-1))
        row, column = np.divmod(key[first], max(1, width))
        times = np.diff(first, append=len(key)).astype(dtype)
        return np.bincount(row, minlength=len(ends[part])), column.astype(np.int32), times

    nothing = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, dtype)
    found = [nothing, *run(count, range(len(ends)), HOST)]
    lengths, indices, counts = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    indptr = np.cumsum(lengths)
    kind = np.int64 if indptr[-1] > np.iinfo(np.int32).max else np.int32
    csr = type(text.CountVectorizer(vocabulary=["a"]).transform([]))  # as its version gives it
    parts = counts, indices.astype(kind, copy=False), indptr.astype(kind)
    return csr(parts, shape=(len(indptr) - 1, width))
