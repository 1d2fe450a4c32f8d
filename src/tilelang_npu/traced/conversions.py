"""Converts operands to scalars, and scalars between types.

Stores to elements convert like casts. A float is converted to an integer by truncation; in a ``T.Parallel`` of the npuir
dialect it is rounded to nearest even, as by the vector casts of that dialect. A float is rounded to nearest even to a narrower
float type. Integers wrap, and a ``bool`` counts as 0 or 1. A number that is known when the kernel is compiled must be
representable in the target type (:mod:`~tilelang_npu.traced.numbers`). Only an explicit cast truncates such a number or wraps
an integer that has an element type.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect

from tilelang_npu.errors import TileError, is_array, shown
from tilelang_npu.linear import Interval
from tilelang_npu.ops import DType
from tilelang_npu.traced import numbers
from tilelang_npu.traced.active_trace import TracedValue
from tilelang_npu.traced.emitter import Emitter
from tilelang_npu.traced.ir_types import float_type, integer_type, scalar_type
from tilelang_npu.traced.kinds import BOOL, FLOAT32, INDEX, INT32, INT64, Kind
from tilelang_npu.traced.linear_forms import bounds_of
from tilelang_npu.traced.scalars import Expr, Place
from tilelang_npu.traced.symbols import Sym

Extent = int | Expr
"""The type of sizes and offsets: a Python integer, or a traced scalar of type ``index``."""


def bounds_of_index(stop: Extent, start: Extent = 0) -> Interval:
    """Returns the interval of the values of an index that counts from ``start`` to ``stop - 1``."""
    first, end = (Interval.at(size) if isinstance(size, int) else size.bounds for size in (start, stop))
    return Interval(first.low, end.high - 1)


def number(builder: Emitter, value: object) -> Expr | int | float | bool:
    """Returns an operand as a traced scalar or a Python number; an element of a buffer is loaded.

    Raises:
        TileError: T141, the operand is not a scalar.
    """
    if isinstance(value, (Expr, bool, int, float)):
        return value
    if isinstance(value, Place):
        return value.load()
    if isinstance(value, Sym):
        return builder.lift(value)
    if isinstance(value, np.generic):
        return number(builder, value.item())
    if isinstance(value, TracedValue):
        raise TileError(f"{value.describe()} is not a scalar", code="T141", help=value.repair_as_scalar())
    kind = "" if is_array(value) else f" ({type(value).__name__})"
    raise TileError(f"{shown(value)}{kind} is not a scalar", code="T141",
                    help="pass the array as an argument of the kernel, and index the kernel's parameter" if is_array(value) else
                    "a scalar is a number, an element of a buffer or a computed value")


def scalar(builder: Emitter, value: object) -> Expr:
    """Returns an operand as a traced scalar.

    A Python float gets the type ``float32``, an integer ``int32`` (``int64`` if it does not fit), and a Python bool ``bool``.
    """
    found = number(builder, value)
    if isinstance(found, Expr):
        return found
    if isinstance(found, bool):
        return builder.literal(found, BOOL)
    if isinstance(found, float):
        return constant(builder, found, FLOAT32)
    return constant(builder, found, INT32 if Interval.at(found).within(bounds_of(INT32)) else INT64)


def convert(builder: Emitter, value: object, kind: Kind, role: str = "the number") -> Expr:
    """Returns an operand converted to a scalar of type ``kind``.

    Args:
        builder: emits the conversion.
        value: the operand.
        kind: the type.
        role: the name of the operand in error messages.

    Raises:
        TileError: T110, the value is known when the kernel is compiled, and ``kind`` cannot represent it.
    """
    found = value if isinstance(value, Expr) else number(builder, value)
    if isinstance(found, Expr) and found.kind == kind:
        return found
    known = found.constant if isinstance(found, Expr) else found
    if known is not None:
        return constant(builder, known, kind, role)
    assert isinstance(found, Expr)
    return _emit(builder, found, kind)


def cast(builder: Emitter, value: object, kind: DType) -> Expr:
    """Returns an operand converted by an explicit cast of the author (``T.cast``).

    A float that is converted to an integer type loses its fraction. A traced integer wraps around if ``kind`` cannot represent
    it; a Python integer is then an error. The conversion to ``bool`` tests whether the value differs from 0.

    Raises:
        TileError: T110, the value is known when the kernel is compiled, and ``kind`` cannot represent it.
    """
    found = number(builder, value)
    known = found.constant if isinstance(found, Expr) else found
    if known is None:
        return convert(builder, found, kind)
    if kind.is_bool:
        return builder.literal(bool(known), kind)
    if isinstance(found, Expr) and isinstance(found.kind, DType) and not found.kind.is_float and not kind.is_float:
        return builder.literal(known, kind)
    return constant(builder, numbers.whole(known) if not kind.is_float else known, kind)


def constant(builder: Emitter, value: int | float | bool, kind: Kind, role: str = "the number") -> Expr:
    """Returns a number of the kernel's source as a constant scalar of type ``kind``.

    A number other than 0 that is rounded to 0 leads to a warning.

    Args:
        builder: receives the warning.
        value: the number.
        kind: the type.
        role: the name of the number in error messages.

    Raises:
        TileError: T110, the type cannot represent the number.
    """
    if not isinstance(kind, DType):
        if isinstance(value, float) and not value.is_integer():
            raise TileError(f"{role} is {value!r}, but it is computed with an index, and indices are integers", code="T110",
                            help="write a whole number; to compute in floats, cast the index: T.cast(i, \"float32\")")
        return builder.literal(value, kind)
    wrong = numbers.refusal(value, kind, role)
    if wrong is not None:
        raise wrong
    if numbers.vanishes(value, kind):
        builder.remark(TileError(f"{role} is {value!r}, which {kind} rounds to 0", code="T110", location=builder.location,
                                 help="compute in float32, which can represent smaller numbers"))
    return builder.literal(value, kind)


def _emit(builder: Emitter, value: Expr, kind: Kind) -> Expr:
    source = value.kind
    if isinstance(kind, DType) and kind.is_bool:
        zero = builder.literal(0.0 if source.is_float else 0, source).ssa(builder)
        if source.is_float:
            return builder.pure(arith.CmpfOp(value.ssa(builder), zero, "une"), BOOL)
        return builder.pure(arith.CmpiOp(value.ssa(builder), zero, "ne"), BOOL)
    if source.is_float:
        return _from_float(builder, value, kind)
    if kind.is_float:
        return _to_float(builder, value, kind)
    return _between_integers(builder, value, kind)


def _from_float(builder: Emitter, value: Expr, kind: Kind) -> Expr:
    source = value.kind
    if kind is INDEX:
        return convert(builder, _from_float(builder, value, INT64), INDEX)
    if kind.is_float:
        if source.bits == kind.bits:
            return convert(builder, convert(builder, value, FLOAT32), kind)
        made = arith.ExtFOp if kind.bits > source.bits else arith.TruncFOp
        return builder.pure(made(value.ssa(builder), float_type(kind)), kind)
    if builder.in_parallel and builder.dialect == "npuir":
        value = builder.pure(math_dialect.RoundEvenOp(value.ssa(builder)), source)
    operation = arith.FPToSIOp if kind.is_signed else arith.FPToUIOp
    return builder.pure(operation(value.ssa(builder), integer_type(kind)), kind)


def _to_float(builder: Emitter, value: Expr, kind: Kind) -> Expr:
    source = value.kind
    if source is INDEX:
        small = value.bounds.within(bounds_of(INT32))
        return _to_float(builder, convert(builder, value, INT32 if small else INT64), kind)
    operation = arith.SIToFPOp if source.is_signed and not source.is_bool else arith.UIToFPOp
    return builder.pure(operation(value.ssa(builder), float_type(kind)), kind)


def _between_integers(builder: Emitter, value: Expr, kind: Kind) -> Expr:
    source = value.kind
    bounds, form = value.bounds, value.form
    assert form is not None
    held = bounds_of(kind if isinstance(kind, DType) else INT64)
    if not bounds.within(held) and (isinstance(kind, DType) or bounds.closed):
        bounds, form = held, builder.atoms.of(("as", str(kind), form))
    if kind is INDEX and (not source.is_signed or source.is_bool) and source.bits < 64:
        return convert(builder, _between_integers(builder, value, INT64), INDEX)
    x = value.ssa(builder)
    if source is INDEX or kind is INDEX:
        return builder.pure(arith.IndexCastOp(x, scalar_type(kind)), kind, form=form, bounds=bounds, symbol=value.symbol)
    if kind.bits == source.bits:
        return Expr(kind, x, form=form, bounds=bounds)
    widened = arith.ExtSIOp if source.is_signed and not source.is_bool else arith.ExtUIOp
    converted = arith.TruncIOp if kind.bits < source.bits else widened
    return builder.pure(converted(x, integer_type(kind)), kind, form=form, bounds=bounds, symbol=value.symbol)


def extent(builder: Emitter, value: object) -> Extent:
    """Returns a size, an offset or an index as a Python integer if it is known, otherwise as a traced scalar of type ``index``.

    Raises:
        TileError: T110, the operand is not an integer; T141, the operand is not a scalar.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = number(builder, value)
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    if isinstance(found, Expr) and found.constant is not None and not found.kind.is_float and not found.kind.is_bool:
        return int(found.constant)
    if not isinstance(found, Expr) or found.kind.is_float or found.kind.is_bool:
        given = found.kind if isinstance(found, Expr) else repr(found)
        raise TileError(f"an index or a size must be an integer, not {given}", code="T110",
                        help="use // instead of / if both operands are integers, or T.cast(x, 'int32')")
    return convert(builder, found, INDEX)
