"""Arrays of several libraries: namespaces, devices, CUDA, threads, memory budgets.

Also the few operations that the array API standard lacks. Only this folder and ``blocks`` know
that CuPy, scipy.sparse and array-api-compat exist.
"""
