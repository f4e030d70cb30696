"""The error of work that does not fit into memory in chunks of any size."""


class TooLargeError(MemoryError):
    """The result, or one row or column, does not fit into memory, so smaller chunks do not help."""
