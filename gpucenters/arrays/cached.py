"""Properties that are computed once for an instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801 (the name of the one in functools)
    """A property that is computed once for an instance, and kept in its ``__dict__``.

    As `functools.cached_property` is from Python 3.12 on. That of 3.11 locks the property of all
    instances: a process that is forked while another thread computes one would wait without end.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self._function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]
        return instance.__dict__.setdefault(self._name, self._function(instance))
