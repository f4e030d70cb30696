"""Vectorizers by name."""

from __future__ import annotations

from typing import Any

from sklearn.feature_extraction.text import HashingVectorizer

from ..text import CountVectorizer, TfidfVectorizer


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
        return hashing_vectorizer(n_features=n_features, **options)
    if kind == "count":
        return CountVectorizer(min_df=min_df, **options)
    if kind == "tfidf":
        return TfidfVectorizer(min_df=min_df, norm=norm, **options)
    raise ValueError(f"vectorizer={kind!r} is not valid: use count, tfidf or hashing.")


def hashing_vectorizer(**options: Any) -> HashingVectorizer:
    """A vectorizer that counts, without a vocabulary."""
    return HashingVectorizer(alternate_sign=False, norm=None, **options)
