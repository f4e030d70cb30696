"""The ground floor: where an array lives, blocks of it, and what the standard lacks.

This is the only folder that knows that CuPy, scipy.sparse and array-api-compat exist.
"""
