"""Data files: texts, tables, sparse and dense matrices, with their labels."""

from .data import Data, ReadError
from .reading import FORMATS, batches, read
from .streaming import fit_text, make_vectorizer

__all__ = ["FORMATS", "Data", "ReadError", "batches", "fit_text", "make_vectorizer", "read"]
