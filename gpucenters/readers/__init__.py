"""Data files: texts, tables, sparse and dense matrices, with their labels."""

from ..text import make_vectorizer
from .data import Data, ReadError
from .reading import FORMATS, batches, fit_text, read

__all__ = ["FORMATS", "Data", "ReadError", "batches", "fit_text", "make_vectorizer", "read"]
