"""Operands as scalars, and conversions between scalar types.

Stores to elements and casts convert alike. A float becomes an integer without its fraction (in a ``T.Parallel`` of the npuir
dialect rounded to nearest even, as by its vector casts). Floats round to nearest even, integers wrap, a truth value counts as 0
or 1. A number that is known when the kernel is compiled must be a value of the type (:mod:`~tilelang_npu.traced.numbers`); only
a cast that the author writes drops its fraction and wraps a typed integer.
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
"""A size or an offset: a number, or an ``index`` scalar of the trace."""


def bounds_of_index(stop: Extent, start: Extent = 0) -> Interval:
    """The bounds of an index that counts from ``start`` to before ``stop``."""
    first, end = (Interval.at(size) if isinstance(size, int) else size.bounds for size in (start, stop))
    return Interval(first.low, end.high - 1)


def number(builder: Emitter, value: object) -> Expr | int | float | bool:
    """The scalar of ``value``: a traced one (an element is read) or a Python number.

    Raises:
        TileError: T141, it is not a scalar.
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
        raise TileError(f"{value.describe()} is not a scalar", code="T141",
                        help="loop over its elements with T.Parallel, or use a tile operation such as T.tile.add or T.vadd")
    kind = "" if is_array(value) else f" ({type(value).__name__})"
    raise TileError(f"{shown(value)}{kind} is not a scalar", code="T141",
                    help="an array of the host is an argument of the kernel, whose parameter it indexes" if is_array(value) else
                    "a scalar is a number, an element of a buffer or a computed value")


def scalar(builder: Emitter, value: object) -> Expr:
    """``value`` as a scalar of the trace; a Python number gets ``float32``, ``int32`` (``int64`` where needed) or ``bool``."""
    found = number(builder, value)
    if isinstance(found, Expr):
        return found
    if isinstance(found, bool):
        return builder.literal(found, BOOL)
    if isinstance(found, float):
        return constant(builder, found, FLOAT32)
    return constant(builder, found, INT32 if Interval.at(found).within(bounds_of(INT32)) else INT64)


def convert(builder: Emitter, value: object, kind: Kind, role: str = "the number") -> Expr:
    """``value`` as a scalar of type ``kind``; ``role`` is its name in messages.

    Raises:
        TileError: T110, a known number that the type does not have.
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
    """``value`` as the author converts it: fractions are dropped, typed integers wrap, and ``bool`` is whether it differs from
    0.

    Raises:
        TileError: T110, a known number that the type does not have.
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
    """A number of the source as a scalar of type ``kind``.

    Raises:
        TileError: T110, the type does not have it.
    """
    if not isinstance(kind, DType):
        if isinstance(value, float) and not value.is_integer():
            raise TileError(f"{role} is {value!r}, and an index is an integer", code="T110",
                            help="write a whole number, or T.cast the index to float32")
        return builder.literal(value, kind)
    wrong = numbers.refusal(value, kind, role)
    if wrong is not None:
        raise wrong
    if numbers.vanishes(value, kind):
        builder.remark(TileError(f"{role} is {value!r}, which {kind} rounds to 0", code="T110", location=builder.location,
                                 help="compute in float32, which has smaller numbers"))
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
    """A size, an offset or an index as a number or an ``index`` scalar.

    Raises:
        TileError: T110, it is not an integer.
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
        raise TileError(f"an index or a size is an integer, not {given}", code="T110",
                        help="use // instead of / where both sides are integers, or T.cast(x, 'int32')")
    return convert(builder, found, INDEX)
