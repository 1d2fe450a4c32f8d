"""Executes the functions of ``T`` on scalars (numbers, sizes and elements); some of them operate on tiles if called with a
destination.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tilelang_npu.interpreter.host_buffers import HostElement, is_tile
from tilelang_npu.interpreter.operation_table import OPERATIONS, known
from tilelang_npu.interpreter.running_core import current, fail
from tilelang_npu.interpreter.typed_scalars import (
    BOOL,
    INDEX,
    INT32,
    INT64,
    Operators,
    TypedScalar,
    Values,
    absolute,
    binary,
    cast,
    compare,
    erf,
    function,
    invert,
    is_literal,
    limits,
    power,
    scalar,
    select,
    truth,
)
from tilelang_npu.target.dtypes import dtype as element_type

FUNCTIONS: dict[str, Callable[..., Values]] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a), "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "erf": erf, "expm1": np.expm1, "reciprocal": lambda a: 1 / a}
"""The NumPy functions that compute the language's functions of one float, by name."""


def _either(name: str, count: int, meaning: Callable[..., object], tile: str = "") -> None:
    """Adds a function of scalars to the operation table.

    Args:
        name: the name of the function in ``T``.
        count: the number of the function's scalar arguments.
        meaning: computes the result of a call on scalars.
        tile: the name, without its prefix ``v``, of the operation on tiles that a call executes if an argument is a tile or
            if there is one more argument, the destination; empty for no such operation.
    """

    def call(*arguments: object, **keywords: object) -> object:
        on_tiles = len(arguments) > count or any(map(is_tile, arguments))
        if tile and (on_tiles or any(is_tile(one) for one in keywords.values())):
            return OPERATIONS[f"v{tile}"](*arguments, **keywords)
        return meaning(*arguments, *keywords.values())

    OPERATIONS[name] = call


for _name, _compute in FUNCTIONS.items():
    if _name not in ("reciprocal", "expm1"):
        _either(_name, 1, lambda value, compute=_compute: function(compute, value), {"log": "ln"}.get(_name, _name))
for _name, _compute in (("floor", np.floor), ("ceil", np.ceil), ("round", np.rint), ("nearbyint", np.rint),
                        ("trunc", np.trunc)):
    _either(_name, 1, lambda value, compute=_compute: int(compute(value)) if is_literal(value)
            else function(compute, value) if scalar(value).kind.is_float else value)
for _name in ("abs", "fabs"):
    _either(_name, 1, absolute, "abs")
_either("bitwise_not", 1, invert, "not")
for _name, _tile in (("min", "min"), ("max", "max"), ("bitwise_and", "and"), ("bitwise_or", "or"), ("bitwise_xor", "xor")):
    _either(_name, 2, lambda left, right, name=_tile: binary(name, left, right), _tile)
_either("pow", 2, power, "pow")
_either("sigmoid", 1, lambda value: binary("truediv", 1.0, binary("add", 1.0, function(np.exp, operator.neg(value)))),
        "sigmoid")
_either("isnan", 1, lambda value: math.isnan(value) if is_literal(value) else compare("ne", value, value), "isnan")
_either("isinf", 1, lambda value: compare("eq", absolute(value), math.inf), "isinf")
_either("clamp", 3, lambda value, low, high: binary("min", binary("max", value, low), high), "clamp")
OPERATIONS.update({
    **{name: partial(binary, tile) for name, tile in (
        ("floordiv", "floordiv"), ("truncdiv", "truncdiv"), ("truncmod", "truncmod"), ("floormod", "mod"))},
    "shift_left": lambda value, amount: binary("lshift", value, amount),
    "shift_right": lambda value, amount: binary("rshift", value, amount),
    "ceildiv": lambda left, right: binary("floordiv", binary("add", left, binary("sub", right, 1)), right),
    "align_up": lambda left, right: binary(
        "mul", binary("floordiv", binary("add", left, binary("sub", right, 1)), right), right),
    "exp10": lambda value: operator.pow(10.0, value) if is_literal(value) else function(
        np.exp, binary("mul", value, math.log(10.0))),
    "hypot": lambda left, right: function(
        np.sqrt, binary("add", binary("mul", left, left), binary("mul", right, right))),
    "atan2": lambda left, right: function(np.arctan2, left, right),
    "copysign": lambda left, right: function(np.copysign, left, right),
    "isfinite": lambda value: compare("lt", absolute(value), math.inf),
    "cast": lambda value, dtype: cast(value, element_type(dtype)),
    "Cast": lambda dtype, value: cast(value, element_type(dtype)),
    "And": lambda *operands: _logical("and", operands), "Or": lambda *operands: _logical("or", operands),
    "Not": lambda operand: TypedScalar(np.logical_not(truth(operand).value), BOOL),
    "any_of": lambda buffer: _folded(buffer, np.any), "all_of": lambda buffer: _folded(buffer, np.all),
    "max_value": lambda dtype: _limit(dtype, 1), "min_value": lambda dtype: _limit(dtype, 0),
    "popcount": lambda value: _count(value, lambda number, width: number.bit_count()),
    "clz": lambda value: _count(value, lambda number, width: width - number.bit_length())})


def _logical(name: str, operands: tuple[object, ...]) -> object:
    result: object = truth(operands[0])
    for operand in operands[1:]:
        result = binary(name, result, truth(operand))
    return result


def _folded(buffer: object, fold: Callable[..., object]) -> TypedScalar:
    current().take_turn()
    return TypedScalar(np.bool_(fold(np.asarray(buffer) != 0)), BOOL)


def _limit(kind: object, end: int) -> float:
    found = element_type(kind)
    if not found.is_float:
        return limits(found)[end]
    info: Any = ml_dtypes.finfo  # has no types
    return float((info(found.numpy).min, info(found.numpy).max)[end])


def _count(value: object, count: Callable[[int, int], int]) -> TypedScalar:
    """Returns a number of bits of an integer, given a function of its bits (as a number without a sign) and its width."""
    found = scalar(value)
    found = cast(found, INT32) if found.kind is INDEX or is_literal(value) else found
    width = found.kind.bits
    made = np.vectorize(lambda number: count(int(number) & ((1 << width) - 1), width), otypes=[np.int32])(found.value)
    return TypedScalar(made[()], INT32)


@known("reinterpret")
def reinterpret(dtype: object, value: object) -> object:
    """Returns the bits of a scalar interpreted as another type of the same width (``T.reinterpret``).

    The arguments can be in either order.
    """
    if is_literal(dtype) or isinstance(dtype, Operators):
        dtype, value = value, dtype
    wanted, found = element_type(dtype), scalar(value)
    if found.kind is INDEX:
        found = cast(found, INT64 if wanted.bits == 64 else INT32)
    if found.kind.bits != wanted.bits:
        raise fail(f"T.reinterpret: the bits of a value of type {found.kind} cannot be read as {wanted}",
                   "both types must have the same width; T.cast converts the value", "T110")
    return TypedScalar(np.asarray(found.value).view(wanted.numpy)[()], wanted)


@known("if_then_else", "Select")
def select_scalar(condition: object, chosen: object, other: object) -> object:
    """Returns ``chosen`` if the condition is true, otherwise ``other`` (``T.if_then_else``); both are evaluated."""
    return (chosen if condition else other) if isinstance(condition, bool) else select(condition, chosen, other)


@known("assert_")
def assert_(condition: object, message: str = "") -> None:
    """Raises T148 if a condition on sizes is false (``T.assert_``)."""
    if not bool(condition):
        raise fail(f"the assertion does not hold: {message}", "check the sizes", "T148")


@known("evaluate")
def evaluate(value: object) -> None:
    """Does nothing: the expression was evaluated for the call (``T.evaluate``)."""


@known("meta_var")
def meta_var(value: object) -> object:
    """Returns the value itself (``T.meta_var``), or raises T145 for an element of a buffer."""
    if isinstance(value, HostElement):
        raise fail(f"T.meta_var of {value.describe()}: the name would refer to the element, not to its value",
                   "bind the element itself, which is read once, or bind its indices", "T145")
    return value


@known("device_assert")
def device_assert(condition: object, msg: str = "") -> None:
    """Raises T148 if a condition of the kernel is false (``T.device_assert``)."""
    if not bool(condition):
        raise fail(f"T.device_assert: {msg or 'the condition does not hold'}",
                   "look at the values that the condition uses", "T148")
