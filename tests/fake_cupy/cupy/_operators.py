"""The operators of `cupy.ndarray`: each is a call of the ufunc of that name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "divmod": "divmod",
    "matmul": "matmul",
}
_NO_IN_PLACE = ("divmod", "matmul")
_COMPARE = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_UNARY = {"neg": "negative", "pos": "positive", "invert": "invert", "abs": "absolute"}


def _ufunc(name: str) -> Callable[..., Any]:
    import cupy

    return getattr(cupy, name)


def _yields(left: Any, right: Any) -> bool:
    """Whether the right operand (a sparse matrix, say) computes instead."""
    mine, other = left.__array_priority__, getattr(right, "__array_priority__", 0)
    return other > mine and hasattr(right, "__rmatmul__")


def _binary(operator: str, name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if _yields(self, other):
            return getattr(other, f"__r{operator}__")(self)
        return _ufunc(name)(self, other)

    return method


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: _ufunc(name)(other, self)


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: _ufunc(name)(self, other, out=self)


def _compare(name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: _ufunc(name)(self, other)


def _unary(name: str) -> Callable[[Any], Any]:
    return lambda self: _ufunc(name)(self)


class Operators:
    __slots__ = ()
    # Comparison makes an array, so there is nothing to hash by.
    __hash__ = None  # type: ignore[assignment]


for _operator, _name in _BINARY.items():
    setattr(Operators, f"__{_operator}__", _binary(_operator, _name))
    setattr(Operators, f"__r{_operator}__", _reflected(_name))
    if _operator not in _NO_IN_PLACE:
        setattr(Operators, f"__i{_operator}__", _in_place(_name))
for _operator, _name in _COMPARE.items():
    setattr(Operators, f"__{_operator}__", _compare(_name))
for _operator, _name in _UNARY.items():
    setattr(Operators, f"__{_operator}__", _unary(_name))
