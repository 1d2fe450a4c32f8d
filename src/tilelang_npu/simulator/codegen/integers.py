"""Evaluation of the scalar ops of ``arith`` on integers and truth values.

Values of type ``index`` are exact integers of any size; only large products and large loop-carried values wrap to 64 bits.
Values of other integer types wrap to their width; code for that is generated only where bounds do not exclude an overflow.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, UnrealizedConversionCastOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu.dialects.mlir.arith import IndexCastUIOp
from tilelang_npu.errors import TileError
from tilelang_npu.linear import Interval
from tilelang_npu.simulator.codegen.code_scopes import Int, ScalarExpr, deeper
from tilelang_npu.simulator.codegen.handlers import Value, pure, unsupported
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.strided_views import Choice, StridedView, alternatives, bounds


def wrapped(em: PythonEmitter, value: Int, kind: Attribute) -> Int:
    """Returns ``value`` wrapped to the range of the type ``kind``; ``value`` itself, if its bounds are in that range."""
    held = bounds(kind)
    if value.interval.within(held):
        return value
    if value.known:
        return Int(held.wrapped(value.constant))
    text = f"(({em.text_of(value)}) + {-held.low} & {held.high - held.low}) - {-held.low}"
    return em.define_integer(text, em.scope_of(value), held)


INDEX_BITS = 64
"""Width in bits of the type ``index`` on the scalar unit."""
_LARGE = 1 << 255
"""Products of type ``index`` are exact up to this magnitude; larger ones wrap to 64 bits."""
CARRIED = 1 << 64
"""Loop-carried values of type ``index`` are exact up to this magnitude; larger ones wrap to 64 bits.

The limit lets a sum grow by a step per iteration, but not a product, which would soon have thousands of digits."""


def wrapped_if_large(em: PythonEmitter, value: Int, kind: Attribute, most: int = _LARGE) -> Int:
    """Returns ``value`` wrapped to the range of a type; type ``index`` is wrapped only if the magnitude can exceed ``most``."""
    if not isinstance(kind, IndexType) or value.interval.within(Interval(-most, most)):
        return wrapped(em, value, kind)
    return wrapped(em, value, IntegerType(INDEX_BITS))


def grouped(em: PythonEmitter, value: Int) -> str:
    """Returns the expression of an integer, in parentheses unless it is a name or a literal without a sign."""
    text = em.text_of(value)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def is_truth(kind: Attribute) -> bool:
    """Whether the type is i1."""
    return isinstance(kind, IntegerType) and kind.width.data == 1


def _operands(em: PythonEmitter, op: Operation) -> tuple[Int, Int]:
    return em.integer(op.operands[0]), em.integer(op.operands[1])


def _exact_operands(em: PythonEmitter, op: Operation) -> tuple[Int, Int]:
    """Returns both operands for an operation whose result depends on all bits, with ``index`` values wrapped to 64 bits.

    Indices that are computed from int64 data can exceed 64 bits. Sizes without an upper bound are assumed not to overflow.
    """
    def held(value: SSAValue) -> Int:
        number = em.integer(value)
        indexes = isinstance(value.type, IndexType) and number.interval.closed
        return wrapped(em, number, IntegerType(INDEX_BITS)) if indexes else number

    return held(op.operands[0]), held(op.operands[1])


@pure(arith.AddiOp)
def _add(em: PythonEmitter, op: arith.AddiOp) -> Value:
    a, b = _operands(em, op)
    return wrapped(em, a + b, op.results[0].type)


@pure(arith.SubiOp)
def _sub(em: PythonEmitter, op: arith.SubiOp) -> Value:
    a, b = _operands(em, op)
    return wrapped(em, a - b, op.results[0].type)


@pure(arith.MuliOp)
def _mul(em: PythonEmitter, op: arith.MuliOp) -> Value:
    a, b = _operands(em, op)
    return wrapped_if_large(em, em.multiplied(a, b), op.results[0].type)


def truncated_quotient(a: int, b: int) -> int:
    """Returns the quotient rounded toward zero, as the hardware does."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def unsigned(em: PythonEmitter, value: Int, kind: Attribute) -> Int:
    """Returns the unsigned integer that has the bits of ``value`` in type ``kind``."""
    if value.at_least(0):
        return value
    held = Interval.of_bits(kind.width.data if isinstance(kind, IntegerType) else INDEX_BITS, signed=False)
    return em.define_integer(f"{em.name_of(value)} & {held.high}", em.scope_of(value), held)


@pure(arith.DivUIOp, arith.DivSIOp, arith.FloorDivSIOp, arith.CeilDivUIOp, arith.CeilDivSIOp)
def _divide(em: PythonEmitter, op: Operation) -> Value:
    return wrapped(em, _quotient(em, op), op.results[0].type)


def _quotient(em: PythonEmitter, op: Operation) -> Int:
    a, b = _exact_operands(em, op)
    kind = op.results[0].type
    if isinstance(op, (arith.DivUIOp, arith.CeilDivUIOp)):
        a, b = unsigned(em, a, kind), unsigned(em, b, kind)
    ceil = isinstance(op, (arith.CeilDivSIOp, arith.CeilDivUIOp))
    signed = isinstance(op, arith.DivSIOp) and not (a.at_least(0) and b.at_least(0))
    if a.known and b.known and b.constant:
        if ceil:
            return Int(-(-a.constant // b.constant))
        return Int(truncated_quotient(a.constant, b.constant) if signed else a.constant // b.constant)
    if b == Int(1):
        return a
    divided = Interval.ceildiv if ceil else Interval.truncdiv if signed else Interval.__floordiv__
    known = divided(a.interval, b.interval)
    scope = deeper(em.scope_of(a), em.scope_of(b))
    safe = b.interval.holds("!=") is True
    if signed:
        helper = em.constant(truncated_quotient, "quotient")
        return em.define_integer(f"{helper}({em.text_of(a)}, {em.text_of(b)})", scope, known, safe=safe)
    if ceil:
        return em.define_integer(f"-(-{grouped(em, a)} // {em.name_of(b)})", scope, known, safe=safe)
    return em.define_integer(f"{grouped(em, a)} // {em.name_of(b)}", scope, known, safe=safe)


@pure(arith.RemUIOp, arith.RemSIOp)
def _remainder(em: PythonEmitter, op: Operation) -> Value:
    a, b = _exact_operands(em, op)
    kind = op.results[0].type
    if isinstance(op, arith.RemUIOp):
        a, b = unsigned(em, a, kind), unsigned(em, b, kind)
    scope = deeper(em.scope_of(a), em.scope_of(b))
    safe, left = b.at_least(1), a.interval.remainder(b.interval)
    if a.at_least(0) and b.at_least(0):
        if a.known and b.known and b.constant:
            return wrapped(em, Int(a.constant % b.constant), kind)
        if a.at_most(b.interval.low - 1):
            return wrapped(em, a, kind)
        return wrapped(em, em.define_integer(f"{grouped(em, a)} % {em.name_of(b)}", scope, left, safe=safe), kind)
    helper = em.constant(truncated_quotient, "quotient")
    x, y = em.name_of(a), em.name_of(b)
    return em.define_integer(f"{x} - {helper}({x}, {y}) * {y}", scope, left.meet(bounds(kind)), safe=safe)


@pure(arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp)
def _extreme(em: PythonEmitter, op: Operation) -> Value:
    a, b = _exact_operands(em, op)
    if isinstance(op, (arith.MinUIOp, arith.MaxUIOp)):
        a, b = unsigned(em, a, op.results[0].type), unsigned(em, b, op.results[0].type)
    smallest = isinstance(op, (arith.MinSIOp, arith.MinUIOp))
    for one, other in ((a, b), (b, a)):
        if one.at_most(other.interval.low):
            return wrapped(em, one if smallest else other, op.results[0].type)
    known = (Interval.least if smallest else Interval.greatest)(a.interval, b.interval)
    x, y = em.name_of(a), em.name_of(b)
    text = f"{x} if {x} {'<' if smallest else '>'} {y} else {y}"
    return wrapped(em, em.define_integer(text, deeper(em.scope_of(a), em.scope_of(b)), known), op.results[0].type)


@pure(arith.AndIOp, arith.OrIOp, arith.XOrIOp)
def _bitwise(em: PythonEmitter, op: Operation) -> Value:
    sign = "&" if isinstance(op, arith.AndIOp) else "|" if isinstance(op, arith.OrIOp) else "^"
    if is_truth(op.results[0].type):
        a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
        for one, other in ((a, b), (b, a)):
            if one.value is not None:
                if sign == "&":
                    return other if one.value else one
                if sign == "|":
                    return one if one.value else other
                return _negated(em, other) if one.value else other
        word = {"&": "and", "|": "or", "^": "!="}[sign]
        return define_truth(em, f"{a.text} {word} {b.text}", a, b)
    x, y = _operands(em, op)
    scope = deeper(em.scope_of(x), em.scope_of(y))
    known = bounds(op.results[0].type)
    if x.known and y.known:
        return Int({"&": x.constant & y.constant, "|": x.constant | y.constant, "^": x.constant ^ y.constant}[sign])
    if sign == "&":
        known = known.meet(x.interval & y.interval)
    return em.define_integer(f"{em.name_of(x)} {sign} {em.name_of(y)}", scope, known)


def define_truth(em: PythonEmitter, text: str, *parts: Value) -> ScalarExpr:
    """Returns the truth value or float that an expression computes.

    Args:
        em: the emitter.
        text: the expression.
        parts: the values that the expression uses; their innermost scope computes the expression.
    """
    scope = em.scope_of(*parts)
    return ScalarExpr(em.define(text, scope, "c"), scope)


def _negated(em: PythonEmitter, value: ScalarExpr) -> ScalarExpr:
    if value.value is not None:
        return ScalarExpr(str(not value.value), em.launch, not value.value)
    return define_truth(em, f"not {value.text}", value)


def check_shift(count: int, width: int) -> int:
    """Returns ``count``, the number of bits by which an integer of ``width`` bits is shifted, if it is valid.

    Raises:
        TileError: T509, ``count`` is negative, or not less than ``width``.
    """
    if 0 <= count < width:
        return count
    raise TileError(f"the result of shifting an integer of {width} bits by {count} is undefined", code="T509",
                    help=f"shift by 0 to {width - 1} bits, or select 0 where the amount is larger")


def _places(em: PythonEmitter, count: Int, kind: Attribute) -> tuple[Int, str, bool]:
    """Returns the amount of a shift, in bits.

    Returns:
        the integer; its expression, which contains a run-time check if the amount is possibly invalid; and whether the amount
        is known to be valid.
    """
    width = kind.width.data if isinstance(kind, IntegerType) else INDEX_BITS
    if count.known:
        check_shift(count.constant, width)
    sure = count.at_least(0) and count.at_most(width - 1)
    text = em.name_of(count)
    return count, text if sure else f"{em.constant(check_shift, 'check_shift')}({text}, {width})", sure


@pure(arith.ShLIOp)
def _shift_left(em: PythonEmitter, op: arith.ShLIOp) -> Value:
    a, b = _operands(em, op)
    kind = op.results[0].type
    b, places, sure = _places(em, b, kind)
    if b.known:
        return wrapped_if_large(em, a * (1 << b.constant), kind)
    known = a.interval * Interval(1, 1 << INDEX_BITS)
    scope = deeper(em.scope_of(a), em.scope_of(b))
    return wrapped_if_large(em, em.define_integer(f"{grouped(em, a)} << {places}", scope, known, safe=sure), kind)


@pure(arith.ShRSIOp, arith.ShRUIOp)
def _shift_right(em: PythonEmitter, op: Operation) -> Value:
    a, b = _exact_operands(em, op)
    kind = op.results[0].type
    b, places, sure = _places(em, b, kind)
    if isinstance(op, arith.ShRUIOp):
        a = unsigned(em, a, kind)
    scope = deeper(em.scope_of(a), em.scope_of(b))
    return wrapped(em, em.define_integer(f"{grouped(em, a)} >> {places}", scope, a.interval >> b.interval, safe=sure), kind)


_INTEGER_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")


@pure(arith.CmpiOp)
def _compare(em: PythonEmitter, op: arith.CmpiOp) -> Value:
    predicate = op.predicate.value.data
    sign = _INTEGER_PREDICATES[predicate]
    if is_truth(op.operands[0].type):
        a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
        return define_truth(em, f"{a.text} {sign} {b.text}", a, b)
    x, y = _exact_operands(em, op)
    if predicate >= 6:
        x, y = unsigned(em, x, op.operands[0].type), unsigned(em, y, op.operands[0].type)
    known = (x - y).interval.holds(sign)
    if known is not None:
        return ScalarExpr(str(known), em.launch, known)
    return define_truth(em, f"{em.name_of(x)} {sign} {em.name_of(y)}", x, y)


@pure(arith.IndexCastOp, IndexCastUIOp, arith.TruncIOp, arith.ExtSIOp, arith.ExtUIOp)
def _cast(em: PythonEmitter, op: Operation) -> Value:
    source, kind = op.operands[0], op.results[0].type
    if is_truth(source.type):
        value = em.integer(source)
        return -value if isinstance(op, (arith.ExtSIOp, arith.IndexCastOp)) else value
    value = em.integer(source)
    if is_truth(kind):
        return define_truth(em, f"{em.name_of(value)} & 1 != 0", value) if not value.known else ScalarExpr(
            str(bool(value.constant & 1)), em.launch, bool(value.constant & 1))
    if isinstance(op, (arith.ExtUIOp, IndexCastUIOp)):
        return wrapped(em, unsigned(em, value, source.type), kind)
    return wrapped(em, value, kind)


@pure(UnrealizedConversionCastOp)
def _resigned(em: PythonEmitter, op: UnrealizedConversionCastOp) -> Value:
    """Returns the operand as an integer of the same width and another signedness; the bits stay the same."""
    source, kind = op.operands[0].type, op.results[0].type
    if not (isinstance(source, IntegerType) and isinstance(kind, IntegerType) and source.width == kind.width):
        raise unsupported(op, f"it converts {source} to {kind}, and only the signedness of an integer can change")
    return em.value(op.operands[0]) if is_truth(kind) else wrapped(em, em.integer(op.operands[0]), kind)


@pure(arith.SelectOp)
def _select(em: PythonEmitter, op: arith.SelectOp) -> Value:
    condition = em.expression(op.cond)
    if condition.value is not None:
        return em.value(op.lhs if condition.value else op.rhs)
    kind = op.result.type
    if isinstance(kind, MemRefType):
        first, second = em.value(op.lhs), em.value(op.rhs)
        if not isinstance(first, (StridedView, Choice)) or not isinstance(second, (StridedView, Choice)):
            raise unsupported(op, "its operands must be memrefs in a device memory, not scalar storage (memref.alloca)")
        em.buffer_numbers.join((*alternatives(first), *alternatives(second)))
        return Choice(condition, first, second)
    if isinstance(kind, (IndexType, IntegerType)) and not is_truth(kind):
        x, y = em.integer(op.lhs), em.integer(op.rhs)
        text = f"{em.name_of(x)} if {condition.text} else {em.name_of(y)}"
        return em.define_integer(text, em.scope_of(condition, x, y), x.interval.join(y.interval))
    a, b = em.expression(op.lhs), em.expression(op.rhs)
    return define_truth(em, f"{a.text} if {condition.text} else {b.text}", condition, a, b)
