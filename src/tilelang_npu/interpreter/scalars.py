"""Functions of scalars: arithmetic on numbers, sizes and elements. Some are, with a destination, operations on tiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tilelang_npu.interpreter.memory import Memory, Variable, fail
from tilelang_npu.interpreter.points import under
from tilelang_npu.interpreter.state import current
from tilelang_npu.interpreter.table import OPERATIONS, known
from tilelang_npu.interpreter.values import (
    BOOL,
    FLOAT32,
    INDEX,
    INT32,
    INT64,
    Scalar,
    absolute,
    binary,
    cast,
    compare,
    function,
    invert,
    is_literal,
    limits,
    meet,
    power,
    rounded,
    scalar,
    select,
    to_float,
    truth,
)
from tilelang_npu.target.dtypes import dtype


def _on_tiles(arguments: tuple[Any, ...], count: int) -> bool:
    """Whether a function of ``count`` scalars is called with a destination: then it is an operation on tiles."""
    return len(arguments) > count or any(isinstance(value, Memory) and not isinstance(value, Variable) for value in arguments)


def _of_one(name: str, meaning: Callable[[Any], Any], tile: str) -> None:
    def call(*arguments: Any, **keywords: Any) -> Any:
        if tile and (keywords or _on_tiles(arguments, 1)):
            return OPERATIONS[f"v{tile}"](*arguments, **keywords)
        return meaning(*arguments)

    OPERATIONS[name] = call


for _name in ("exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan",
              "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "floor", "ceil", "round", "trunc"):
    _has_tiles = _name in ("exp", "exp2", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "atan", "tanh", "erf")
    _of_one(_name, lambda value, name=_name: function(name, value),
            {"log": "ln"}.get(_name, _name if _has_tiles else ""))
_of_one("abs", absolute, "abs")
_of_one("bitwise_not", invert, "not")
OPERATIONS["fabs"], OPERATIONS["nearbyint"] = OPERATIONS["abs"], OPERATIONS["round"]


def _of_two(name: str, meaning: Callable[[Any, Any], Any], tile: str) -> None:
    def call(*arguments: Any, **keywords: Any) -> Any:
        if keywords or len(arguments) == 3:
            return OPERATIONS[f"v{tile}"](*arguments, **keywords)
        return meaning(*arguments)

    OPERATIONS[name] = call


for _name, _tile in (("min", "min"), ("max", "max"), ("bitwise_and", "and"), ("bitwise_or", "or"), ("bitwise_xor", "xor")):
    _of_two(_name, lambda left, right, name=_name.removeprefix("bitwise_"): binary(name, left, right), _tile)
_of_two("pow", power, "pow")

for _name in ("floordiv", "truncdiv", "truncmod"):
    OPERATIONS[_name] = lambda left, right, name=_name: binary(name, left, right)
OPERATIONS["floormod"] = lambda left, right: binary("mod", left, right)
OPERATIONS["shift_left"] = lambda value, amount: binary("lshift", value, amount)
OPERATIONS["shift_right"] = lambda value, amount: binary("rshift", value, amount)


@known("ceildiv")
def ceildiv(left: Any, right: Any) -> Any:
    """``left / right``, rounded up."""
    return binary("floordiv", binary("add", left, binary("sub", right, 1)), right)


@known("exp10")
def exp10(value: Any) -> Any:
    """10 to the power of the value."""
    return 10.0**value if is_literal(value) else function("exp", binary("mul", value, math.log(10.0)))


@known("hypot")
def hypot(left: Any, right: Any) -> Any:
    """``sqrt(left * left + right * right)``."""
    return function("sqrt", binary("add", binary("mul", left, left), binary("mul", right, right)))


@known("atan2", "copysign")
def atan2(left: Any, right: Any) -> Any:
    """Replaced below: one function for each name."""


def _float_of_two(name: str, meaning: Callable[..., Any]) -> None:
    def call(left: Any, right: Any) -> Any:
        if is_literal(left) and is_literal(right):
            return float(meaning(left, right))
        a, b, kind = meet(left, right)
        if not kind.is_float:
            a, b, kind = to_float(a, FLOAT32), to_float(b, FLOAT32), FLOAT32
        return Scalar(rounded(meaning, kind, a, b), kind)

    OPERATIONS[name] = call


_float_of_two("atan2", np.arctan2)
_float_of_two("copysign", np.copysign)


@known("isnan")
def isnan(*arguments: Any) -> Any:
    """Whether a scalar is not a number."""
    if len(arguments) == 2:
        return OPERATIONS["visnan"](*arguments)
    value, = arguments
    return math.isnan(value) if is_literal(value) else compare("ne", value, value)


@known("isinf")
def isinf(*arguments: Any) -> Any:
    """Whether a scalar is an infinity."""
    if len(arguments) == 2:
        return OPERATIONS["visinf"](*arguments)
    value, = arguments
    return math.isinf(value) if is_literal(value) else compare("eq", absolute(value), math.inf)


@known("isfinite")
def isfinite(value: Any) -> Any:
    """Whether a scalar is neither an infinity nor NaN."""
    return math.isfinite(value) if is_literal(value) else compare("lt", absolute(value), math.inf)


@known("sigmoid")
def sigmoid(*arguments: Any, **keywords: Any) -> Any:
    """``1 / (1 + exp(-value))``."""
    if keywords or _on_tiles(arguments, 1):
        return OPERATIONS["vsigmoid"](*arguments, **keywords)
    negative = -arguments[0]
    return binary("truediv", 1.0, binary("add", 1.0, function("exp", negative)))


@known("clamp")
def clamp(*arguments: Any, **keywords: Any) -> Any:
    """A scalar between two others."""
    if len(arguments) + len(keywords) == 4:
        return OPERATIONS["vclamp"](*arguments, **keywords)
    value, low, high = [*arguments, *keywords.values()]
    return binary("min", binary("max", value, low), high)


def _bits(value: Any) -> Scalar:
    found = scalar(value)
    return Scalar(found.value.astype(np.int32), INT32) if found.kind is INDEX or is_literal(value) else found


@known("popcount")
def popcount(value: Any) -> Any:
    """Number of bits of an integer that are set."""
    found = _bits(value)
    unsigned = np.asarray(found.value).view(f"u{found.value.dtype.itemsize}")
    return Scalar(np.bitwise_count(unsigned).astype(np.int32), INT32)


@known("clz")
def clz(value: Any) -> Any:
    """Number of zeros before the first set bit of an integer."""
    found = _bits(value)
    unsigned = np.asarray(found.value).view(f"u{found.value.dtype.itemsize}").astype(np.uint64)
    length = np.vectorize(lambda number: int(number).bit_length(), otypes=[np.int32])(unsigned)
    return Scalar((found.kind.bits - length).astype(np.int32), INT32)


@known("reinterpret")
def reinterpret(kind: Any, value: Any) -> Any:
    """The bits of a scalar read as another type of the same width."""
    wanted, found = dtype(kind), scalar(value)
    if found.kind is INDEX:
        found = cast(found, INT64 if wanted.bits == 64 else INT32)
    if found.kind.bits != wanted.bits:
        raise fail(f"T.reinterpret: a value of type {found.kind} has no bits to read as {wanted}",
                   "both types are equally wide; T.cast converts the value", "T110")
    return Scalar(np.asarray(found.value).view(wanted.numpy)[()], wanted)


@known("max_value")
def max_value(kind: Any) -> Any:
    """The largest finite value of a type."""
    found = dtype(kind)
    info: Any = ml_dtypes.finfo
    return float(info(found.numpy).max) if found.is_float else limits(found)[1]


@known("min_value")
def min_value(kind: Any) -> Any:
    """The least finite value of a type."""
    found = dtype(kind)
    info: Any = ml_dtypes.finfo
    return float(info(found.numpy).min) if found.is_float else limits(found)[0]


@known("cast")
def cast_to(value: Any, kind: Any) -> Any:
    """A scalar as another type."""
    return cast(value, dtype(kind))


OPERATIONS["Cast"] = lambda kind, value: cast_to(value, kind)


@known("if_then_else", "Select")
def select_scalar(condition: Any, chosen: Any, other: Any) -> Any:
    """``chosen`` where the condition holds, else ``other``; both are evaluated."""
    if isinstance(condition, bool):
        return chosen if condition else other
    return select(condition, chosen, other)


@known("And")
def all_hold(*operands: Any) -> Any:
    """Whether all conditions hold."""
    return _logical(operands, "and", True)


@known("Or")
def any_holds(*operands: Any) -> Any:
    """Whether any condition holds."""
    return _logical(operands, "or", False)


def _logical(operands: tuple[Any, ...], name: str, start: bool) -> Any:
    result: Any = start
    for operand in operands:
        result = truth(operand) if result is start else binary(name, truth(result), truth(operand))
    return result


@known("Not")
def holds_not(operand: Any) -> Any:
    """Whether the condition does not hold."""
    return Scalar(np.logical_not(truth(operand).value), BOOL)


@known("assert_")
def assert_(condition: Any, message: str = "") -> None:
    """A condition on sizes."""
    if not bool(condition):
        raise fail(f"the assertion does not hold{': ' if message else ''}{message}", "check the sizes", "T148")


@known("any_of")
def any_of(buffer: Any) -> Any:
    """Whether any element differs from zero."""
    current().take_turn()
    return Scalar(np.bool_((np.asarray(buffer) != 0).any()), BOOL)


@known("all_of")
def all_of(buffer: Any) -> Any:
    """Whether all elements differ from zero."""
    current().take_turn()
    return Scalar(np.bool_((np.asarray(buffer) != 0).all()), BOOL)


del under
