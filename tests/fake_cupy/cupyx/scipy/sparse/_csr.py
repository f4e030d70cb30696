"""The classes over `Compressed`: by rows and by columns, as matrices and as arrays."""

from __future__ import annotations

from typing import Any

from cupyx.scipy.sparse._base import sparray, spmatrix
from cupyx.scipy.sparse._compressed import Compressed


class csr_matrix(spmatrix, Compressed):
    format = "csr"
    _major = 0


class csr_array(Compressed, sparray):
    format = "csr"
    _major = 0


class csc_matrix(spmatrix, Compressed):
    format = "csc"
    _major = 1


class csc_array(Compressed, sparray):
    format = "csc"
    _major = 1


def isspmatrix_csr(x: Any) -> bool:
    return isinstance(x, csr_matrix)


def isspmatrix_csc(x: Any) -> bool:
    return isinstance(x, csc_matrix)
