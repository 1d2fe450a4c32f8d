"""Operations on scalars of a trace: they determine the result type, fold constants, and emit ``arith`` or ``math`` operations.

Loop variables, block ids and sizes have the type ``index``. Elements and parameters have their element type. A Python number
takes the type of the other operand (an integer that does not fit takes ``int32`` or ``int64``); a Python float with an integer
operand becomes ``float32``. The common type of two scalars is the wider type; of an integer and a float it is the float's type,
of ``float16`` and ``bfloat16`` ``float32``, and of ``index`` and another integer ``index``. ``/`` is a float division; ``//``
rounds toward minus infinity, and ``%`` has the sign of the divisor. Integers of an element type wrap on overflow.
"""

from __future__ import annotations

import math as host_math
import operator
from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.ir import Operation, SSAValue

from tilelang_npu.errors import TileError
from tilelang_npu.linear import ANY, Interval, Linear
from tilelang_npu.ops import DType
from tilelang_npu.traced.active_trace import BINARY
from tilelang_npu.traced.conversions import convert, number
from tilelang_npu.traced.emitter import Emitter
from tilelang_npu.traced.ir_types import scalar_type
from tilelang_npu.traced.kinds import BOOL, FLOAT32, INDEX, INT32, INT64, Kind
from tilelang_npu.traced.linear_forms import bounds_of, wrap
from tilelang_npu.traced.scalars import Expr, clip
from tilelang_npu.traced.symbols import Sym, larger, smaller

_OfTwo = Callable[[SSAValue, SSAValue], Operation]
_OfOne = Callable[[SSAValue], Operation]

_INTEGER: dict[str, _OfTwo] = {
    "add": arith.AddiOp, "sub": arith.SubiOp, "mul": arith.MuliOp, "and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp,
    "lshift": arith.ShLIOp,
}
_SIGNED: dict[str, _OfTwo] = {
    "min": arith.MinSIOp, "max": arith.MaxSIOp, "rshift": arith.ShRSIOp, "floordiv": arith.FloorDivSIOp,
    "truncdiv": arith.DivSIOp, "truncmod": arith.RemSIOp,
}
_UNSIGNED: dict[str, _OfTwo] = {
    "min": arith.MinUIOp, "max": arith.MaxUIOp, "rshift": arith.ShRUIOp, "floordiv": arith.DivUIOp,
    "truncdiv": arith.DivUIOp, "truncmod": arith.RemUIOp, "mod": arith.RemUIOp,
}
_FLOAT: dict[str, _OfTwo] = {
    "add": arith.AddfOp, "sub": arith.SubfOp, "mul": arith.MulfOp, "truediv": arith.DivfOp, "min": arith.MinimumfOp,
    "max": arith.MaximumfOp,
}
_MATH: dict[str, _OfOne] = {
    "exp": math_dialect.ExpOp, "exp2": math_dialect.Exp2Op, "log": math_dialect.LogOp, "log2": math_dialect.Log2Op,
    "sqrt": math_dialect.SqrtOp, "rsqrt": math_dialect.RsqrtOp, "sin": math_dialect.SinOp, "cos": math_dialect.CosOp,
    "tanh": math_dialect.TanhOp, "erf": math_dialect.ErfOp, "floor": math_dialect.FloorOp, "ceil": math_dialect.CeilOp,
    "round": math_dialect.RoundEvenOp, "trunc": math_dialect.TruncOp, "tan": math_dialect.TanOp,
    "asin": math_dialect.AsinOp, "acos": math_dialect.AcosOp, "atan": math_dialect.AtanOp, "sinh": math_dialect.SinhOp,
    "cosh": math_dialect.CoshOp, "asinh": math_dialect.AsinhOp, "acosh": math_dialect.AcoshOp,
    "atanh": math_dialect.AtanhOp, "log10": math_dialect.Log10Op, "log1p": math_dialect.Log1pOp,
}
_MATH_OF_TWO: dict[str, _OfTwo] = {"atan2": math_dialect.Atan2Op, "copysign": math_dialect.CopySignOp}
_BITS: dict[str, _OfOne] = {"popcount": math_dialect.CtPopOp, "clz": math_dialect.CountLeadingZerosOp}
_HOST: dict[str, Callable[[float, float], float]] = {
    "truncdiv": lambda a, b: int(a / b) if isinstance(a, float) else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "truncmod": host_math.fmod, "min": min, "max": max, **BINARY,
}
_BOUNDS: dict[str, Callable[[Interval, Interval], Interval]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "truncdiv": Interval.truncdiv, "truncmod": Interval.remainder, "min": Interval.least, "max": Interval.greatest,
    "and": operator.and_, "rshift": operator.rshift,
}


def promote(left: Kind, right: Kind) -> Kind:
    """Returns the common type of two scalars of the given types (see the module's docstring)."""
    if left == right:
        return left
    if left.is_float != right.is_float:
        return left if left.is_float else right
    if left.is_float:
        return FLOAT32 if left.bits == right.bits else (left if left.bits > right.bits else right)
    if left is INDEX or right is INDEX:
        return INDEX
    if left.bits == right.bits:
        return left if left.is_signed else right
    return left if left.bits > right.bits else right


def pair(builder: Emitter, left: object, right: object) -> tuple[Expr, Expr]:
    """Returns both operands as scalars, converted to their common type."""
    a, b = number(builder, left), number(builder, right)
    if isinstance(a, Expr):
        kind = promote(a.kind, b.kind) if isinstance(b, Expr) else _adopted(b, a.kind)
    elif isinstance(b, Expr):
        kind = _adopted(a, b.kind)
    elif isinstance(a, bool) and isinstance(b, bool):
        kind = BOOL
    else:
        kind = FLOAT32 if isinstance(a, float) or isinstance(b, float) else INT32
    return convert(builder, a, kind), convert(builder, b, kind)


def _adopted(plain: int | float | bool, kind: Kind) -> Kind:
    """The common type of a Python number and a scalar of type ``kind``."""
    if isinstance(plain, float):
        return kind if kind.is_float else FLOAT32
    if isinstance(plain, bool) or kind.is_float or kind is INDEX:
        return kind
    assert isinstance(kind, DType)
    if kind.is_bool:
        return INT32
    for candidate in (kind, INT32, INT64):
        if Interval.at(plain).within(bounds_of(candidate)):
            return candidate
    return INT64


def binary(builder: Emitter, name: str, left: object, right: object) -> Expr:
    """Returns the result of a binary operation on two scalars, in their common type.

    Args:
        builder: emits the operations.
        name: ``add``, ``sub``, ``mul``, ``truediv``, ``floordiv``, ``mod``, ``pow``, ``and``, ``or``, ``xor``, ``lshift``,
            ``rshift``, ``min``, ``max``, ``truncdiv`` or ``truncmod`` (the last two round toward zero).
        left: the left operand.
        right: the right operand.

    Raises:
        TileError: T110, the operation is not defined for the common type; T146, an integer is divided by a constant zero.
    """
    if name == "pow":
        return power(builder, left, right)
    a, b = pair(builder, left, right)
    if a.kind.is_bool and name not in ("and", "or", "xor"):
        a, b = convert(builder, a, INT32), convert(builder, b, INT32)
    if name == "truediv" and not a.kind.is_float:
        a, b = convert(builder, a, FLOAT32), convert(builder, b, FLOAT32)
    if name in ("floordiv", "mod", "truediv", "truncdiv", "truncmod") and b.constant == 0 and not b.kind.is_float:
        raise TileError("division by zero", code="T146", help="check the divisor in the factory")
    return _float_binary(builder, name, a, b) if a.kind.is_float else _integer_binary(builder, name, a, b)


def _float_binary(builder: Emitter, name: str, a: Expr, b: Expr) -> Expr:
    kind = a.kind
    if name in ("floordiv", "truncdiv"):
        return math(builder, "floor" if name == "floordiv" else "trunc", binary(builder, "truediv", a, b))
    if name in ("mod", "truncmod"):
        whole = binary(builder, "floordiv" if name == "mod" else "truncdiv", a, b)
        return binary(builder, "sub", a, binary(builder, "mul", whole, b))
    if name not in _FLOAT:
        raise TileError(f"operator {_symbol(name)} does not take {kind}", code="T110",
                        help="convert the operands to an integer type first (T.cast)")
    if a.constant is not None and b.constant is not None and (name != "truediv" or b.constant != 0):
        return builder.literal(_HOST[name](a.constant, b.constant), kind)
    return builder.pure(_FLOAT[name](a.ssa(builder), b.ssa(builder)), kind)


def _integer_binary(builder: Emitter, name: str, a: Expr, b: Expr) -> Expr:
    kind = a.kind
    if a.constant is not None and b.constant is not None:
        folded = _HOST[name](int(a.constant), int(b.constant))
        return builder.literal(wrap(int(folded), kind) if isinstance(kind, DType) else int(folded), kind)
    form = _form(builder, name, a, b)
    if form.known:
        return builder.literal(form.constant, kind)
    for kept, other, neutral in ((a, b, {"add": 0, "sub": 0, "mul": 1, "floordiv": 1, "truncdiv": 1, "lshift": 0, "rshift": 0}),
                                 (b, a, {"add": 0, "mul": 1})):
        if other.constant is not None and neutral.get(name) == other.constant:
            return kept
    bounds = clip(kind, _BOUNDS[name](a.bounds, b.bounds) if name in _BOUNDS else ANY)
    unsigned = (a.non_negative and b.non_negative) if kind.is_signed else True
    x, y = a.ssa(builder), b.ssa(builder)
    symbol = _symbolic(name, a, b)
    if name == "mod" and not unsigned:
        return _floor_remainder(builder, a, b, form, bounds)
    if name in _INTEGER:
        made = _INTEGER[name](x, y)
    else:
        table = _UNSIGNED if unsigned and not (name in ("min", "max") and kind.is_signed) else _SIGNED
        if name not in table:
            raise TileError(f"operator {_symbol(name)} does not take {kind}", code="T110",
                            help="convert the operands to another type first (T.cast)")
        made = table[name](x, y)
    return builder.pure(made, kind, form=form, bounds=bounds, symbol=symbol)


def _floor_remainder(builder: Emitter, a: Expr, b: Expr, form: Linear[int], bounds: Interval) -> Expr:
    """``a - floor(a / b) * b``, for operands that may be negative."""
    quotient = builder.pure(arith.FloorDivSIOp(a.ssa(builder), b.ssa(builder)), a.kind)
    product = builder.pure(arith.MuliOp(quotient.ssa(builder), b.ssa(builder)), a.kind)
    return builder.pure(arith.SubiOp(a.ssa(builder), product.ssa(builder)), a.kind, form=form, bounds=bounds,
                        symbol=_symbolic("mod", a, b))


def _form(builder: Emitter, name: str, a: Expr, b: Expr) -> Linear[int]:
    assert a.form is not None and b.form is not None
    if name == "add":
        return a.form + b.form
    if name == "sub":
        return a.form - b.form
    if name == "mul" and a.form.known:
        return b.form * a.form.constant
    if name == "mul" and b.form.known:
        return a.form * b.form.constant
    if name == "lshift" and b.form.known and 0 <= b.form.constant < 32:
        return a.form * (1 << b.form.constant)
    if name == "mod" and b.form.known and (divisor := b.form.constant) > 0:
        rest = a.form.remainder(divisor)
        # a typed integer may have wrapped, which preserves remainders of powers of two only
        if rest is not None and (a.kind is INDEX or divisor & (divisor - 1) == 0):
            return Linear(rest)
    return builder.atoms.of((name, a.form, b.form))


def _symbolic(name: str, a: Expr, b: Expr) -> int | Sym | None:
    if a.symbol is None or b.symbol is None:
        return None
    if name in ("add", "sub", "mul", "floordiv", "mod"):
        made = BINARY[name](a.symbol, b.symbol)
        return made if isinstance(made, (int, Sym)) else None
    return {"min": smaller, "max": larger}[name](a.symbol, b.symbol) if name in ("min", "max") else None


def _symbol(name: str) -> str:
    return {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^",
            "lshift": "<<", "rshift": ">>"}.get(name, name)


def compare(builder: Emitter, name: str, left: object, right: object) -> Expr:
    """Returns the ``bool`` scalar of a comparison; ``name`` is ``lt``, ``le``, ``gt``, ``ge``, ``eq`` or ``ne``."""
    a, b = pair(builder, left, right)
    if a.constant is not None and b.constant is not None:
        outcome = {"lt": a.constant < b.constant, "le": a.constant <= b.constant, "gt": a.constant > b.constant,
                   "ge": a.constant >= b.constant, "eq": a.constant == b.constant, "ne": a.constant != b.constant}[name]
        return builder.literal(outcome, BOOL)
    if a.kind.is_float:
        predicate = "une" if name == "ne" else f"o{name}"
        return builder.pure(arith.CmpfOp(a.ssa(builder), b.ssa(builder), predicate), BOOL)
    sign = "" if name in ("eq", "ne") else ("s" if a.kind.is_signed else "u")
    return builder.pure(arith.CmpiOp(a.ssa(builder), b.ssa(builder), sign + name), BOOL)


def truth(builder: Emitter, value: object) -> Expr:
    """Returns the scalar as ``bool``: a ``bool`` scalar itself, otherwise whether the scalar differs from zero."""
    found = number(builder, value)
    known = found.constant if isinstance(found, Expr) else found
    return convert(builder, found, BOOL) if known is None else builder.literal(bool(known), BOOL)


def invert(builder: Emitter, value: object) -> Expr:
    """Returns ``~value``, the bitwise complement; for ``bool`` the negation.

    Raises:
        TileError: T110, the value is a float or a Python number.
    """
    a = number(builder, value)
    if not isinstance(a, Expr) or a.kind.is_float:
        raise TileError(f"operator ~ does not take {a.kind if isinstance(a, Expr) else a}", code="T110",
                        help="convert the operand to an integer type first (T.cast)")
    return binary(builder, "xor", a, True if a.kind.is_bool else builder.literal(-1, a.kind))


def logical_not(builder: Emitter, value: object) -> Expr:
    """Returns ``not value`` as a ``bool`` scalar."""
    return binary(builder, "xor", truth(builder, value), True)


def negate(builder: Emitter, value: object) -> Expr:
    """Returns ``-value``; for an integer, the operation ``0 - value`` is emitted."""
    a = number(builder, value)
    if isinstance(a, Expr) and a.kind.is_float:
        if a.constant is not None:
            return builder.literal(-a.constant, a.kind)
        return builder.pure(arith.NegfOp(a.ssa(builder)), a.kind)
    return binary(builder, "sub", 0, a)


def power(builder: Emitter, left: object, right: object) -> Expr:
    """Returns ``left ** right``.

    A constant integral exponent from 0 to 8 becomes a product in the type of ``left``, and 0.5 or -0.5 a (reciprocal) square
    root. For other exponents, both operands are converted to a float type.
    """
    exponent = right.constant if isinstance(right, Expr) else right
    if isinstance(exponent, (int, float)) and exponent == int(exponent) and 0 <= exponent <= 8:
        base = number(builder, left)
        if exponent == 0:
            return binary(builder, "add", binary(builder, "mul", base, 0), 1)
        result = base if isinstance(base, Expr) else convert(builder, base, FLOAT32)
        for _ in range(int(exponent) - 1):
            result = binary(builder, "mul", result, base)
        return result
    if isinstance(exponent, float) and abs(exponent) == 0.5:
        return math(builder, "sqrt" if exponent > 0 else "rsqrt", left)
    a, b = pair(builder, left, right)
    if not a.kind.is_float:
        a, b = convert(builder, a, FLOAT32), convert(builder, b, FLOAT32)
    return builder.pure(math_dialect.PowFOp(a.ssa(builder), b.ssa(builder)), a.kind)


def math(builder: Emitter, name: str, value: object) -> Expr:
    """Returns the result of a mathematical function of one scalar (``exp``, ``sqrt``, ``abs``, ...).

    An integer operand is converted to ``float32``, except for ``abs`` and for ``floor``, ``ceil``, ``round`` and ``trunc``,
    which return an integer unchanged.
    """
    a = number(builder, value)
    if not isinstance(a, Expr):
        a = convert(builder, float(a), FLOAT32)
    if name == "abs":
        if a.kind.is_float:
            return builder.pure(math_dialect.AbsFOp(a.ssa(builder)), a.kind)
        if not a.kind.is_signed or a.non_negative:
            return a
        return builder.pure(math_dialect.AbsIOp(a.ssa(builder)), a.kind)
    if not a.kind.is_float:
        if name in ("floor", "ceil", "round", "trunc"):
            return a
        a = convert(builder, a, FLOAT32)
    return builder.pure(_MATH[name](a.ssa(builder)), a.kind)


def math_of_two(builder: Emitter, name: str, left: object, right: object) -> Expr:
    """Returns ``atan2`` or ``copysign`` of two scalars; integer operands are converted to ``float32``."""
    a, b = (part if part.kind.is_float else convert(builder, part, FLOAT32) for part in pair(builder, left, right))
    return builder.pure(_MATH_OF_TWO[name](a.ssa(builder), b.ssa(builder)), a.kind)


def count_bits(builder: Emitter, name: str, value: object) -> Expr:
    """Returns the number of one bits (``popcount``) or of leading zero bits (``clz``) of an integer, as ``int32``.

    Raises:
        TileError: T110, the value is a float or a ``bool``.
    """
    a = number(builder, value)
    if not isinstance(a, Expr) or a.kind is INDEX:
        a = convert(builder, a, INT32)
    if a.kind.is_float or a.kind.is_bool:
        raise TileError(f"T.{name} does not take {a.kind}", code="T110", help="pass an integer, whose bits it counts")
    made = builder.pure(_BITS[name](a.ssa(builder)), a.kind, bounds=Interval(0, a.kind.bits))
    return convert(builder, made, INT32)


def bits_as(builder: Emitter, value: object, kind: DType) -> Expr:
    """Returns the bits of a scalar interpreted as the type ``kind``.

    Raises:
        TileError: T110, the two types have different widths, or one of them is ``bool``.
    """
    a = number(builder, value)
    if not isinstance(a, Expr):
        a = convert(builder, a, FLOAT32 if isinstance(a, float) else INT32)
    if a.kind is INDEX:
        a = convert(builder, a, INT64 if kind.bits == 64 else INT32)
    if a.kind.bits != kind.bits or kind.is_bool or a.kind.is_bool:
        raise TileError(f"T.reinterpret: the bits of a value of type {a.kind} cannot be read as {kind}", code="T110",
                        help="both types must have the same width, and must not be bool; T.cast converts the value")
    if a.kind == kind:
        return a
    if not a.kind.is_float and not kind.is_float:
        form = builder.atoms.of(("as", str(kind), a.form)) if a.form is not None else None
        return builder.scalar(a.ssa(builder), kind, form, bounds_of(kind))
    return builder.pure(arith.BitcastOp(a.ssa(builder), scalar_type(kind)), kind)


def select(builder: Emitter, condition: object, chosen: object, other: object) -> Expr:
    """Returns ``chosen`` if the condition is true, otherwise ``other``, in their common type; both are computed in any case."""
    a, b = pair(builder, chosen, other)
    test = truth(builder, condition)
    if test.constant is not None:
        return a if test.constant else b
    made = arith.SelectOp(test.ssa(builder), a.ssa(builder), b.ssa(builder))
    return builder.pure(made, a.kind, bounds=a.bounds.join(b.bounds))
