from __future__ import annotations

from cupyx.scipy.sparse._base import issparse, isspmatrix, sparray, spmatrix
from cupyx.scipy.sparse._construct import diags, eye, hstack, identity, random, vstack
from cupyx.scipy.sparse._coo import coo_array, coo_matrix, isspmatrix_coo
from cupyx.scipy.sparse._csr import (
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    isspmatrix_csc,
    isspmatrix_csr,
)
from scipy.sparse import SparseEfficiencyWarning, SparseWarning

__all__ = [
    "SparseEfficiencyWarning",
    "SparseWarning",
    "coo_array",
    "coo_matrix",
    "csc_array",
    "csc_matrix",
    "csr_array",
    "csr_matrix",
    "diags",
    "eye",
    "hstack",
    "identity",
    "issparse",
    "isspmatrix",
    "isspmatrix_coo",
    "isspmatrix_csc",
    "isspmatrix_csr",
    "random",
    "sparray",
    "spmatrix",
    "vstack",
]
