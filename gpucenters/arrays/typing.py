"""Names for types that cannot be imported without importing their libraries."""

from typing import Any, TypeAlias

#: An array of any library that follows the array API standard.
Array: TypeAlias = Any
#: A namespace of the array API standard, always the one that array-api-compat gives.
Namespace: TypeAlias = Any
#: What a library calls a device: "cpu" for NumPy, ``cupy.cuda.Device`` for CuPy.
Device: TypeAlias = Any
#: A SciPy or cupyx sparse matrix or array.
SparseMatrix: TypeAlias = Any
