"""A stand-in for CuPy: put this folder on `sys.path` and import `cupy` and `cupyx`.

A package, so that pytest does not put the folder on the path on its own account: with that, the
stand-in would hide a CuPy that is installed, from every test of the run.
"""
