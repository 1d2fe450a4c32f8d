"""Scalar arithmetic on integers and truth values: ``arith``.

Integers of the ``index`` type do not overflow here; narrower ones wrap, which costs nothing where bounds show they cannot.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, UnrealizedConversionCastOp
from xdsl.ir import Attribute, Operation

from tilelang_npu.dialects.arith import IndexCastUIOp
from tilelang_npu.errors import TileError
from tilelang_npu.simulator.codegen.element_types import bounds
from tilelang_npu.simulator.codegen.handlers import Value, pure, unsupported
from tilelang_npu.simulator.codegen.lines import Int, ScalarExpr, deeper
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.strided import Choice, StridedView


def fitted(em: PythonEmitter, value: Int, kind: Attribute) -> Int:
    """``value`` as an integer of that type: wrapped where it may not fit."""
    low, high = bounds(kind)
    if low is None or high is None or (value.at_least(low) and value.at_most(high)):
        return value
    if value.known:
        return Int((value.const - low) % (high - low + 1) + low)
    text = f"(({em.spelled(value)}) + {-low} & {high - low}) - {-low}"
    return em.named(text, em.scope_of(value), low, high)


INDEX_BITS = 64
"""Bits of ``index`` on the scalar unit."""
_LARGE = 1 << 255
"""Products of the index type are exact up to here; beyond it they are what the scalar unit keeps of them."""
CARRIED = 1 << 64
"""The same of what an iteration hands to the next: a sum may grow by a step each time, a product may not."""


def kept(em: PythonEmitter, value: Int, kind: Attribute, most: int = _LARGE) -> Int:
    """``value`` as an integer of that type; of the index type only where it may be beyond ``most``."""
    if not isinstance(kind, IndexType) or (value.at_least(-most) and value.at_most(most)):
        return fitted(em, value, kind)
    return fitted(em, value, IntegerType(INDEX_BITS))


def grouped(em: PythonEmitter, value: Int) -> str:
    """An integer as an operand of a binding operator."""
    text = em.spelled(value)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def is_truth(kind: Attribute) -> bool:
    """Whether the type is i1."""
    return isinstance(kind, IntegerType) and kind.width.data == 1


def _operands(em: PythonEmitter, op: Operation) -> tuple[Int, Int]:
    return em.integer(op.operands[0]), em.integer(op.operands[1])


@pure(arith.AddiOp)
def _add(em: PythonEmitter, op: arith.AddiOp) -> Value:
    a, b = _operands(em, op)
    return fitted(em, a + b, op.results[0].type)


@pure(arith.SubiOp)
def _sub(em: PythonEmitter, op: arith.SubiOp) -> Value:
    a, b = _operands(em, op)
    return fitted(em, a - b, op.results[0].type)


@pure(arith.MuliOp)
def _mul(em: PythonEmitter, op: arith.MuliOp) -> Value:
    a, b = _operands(em, op)
    return kept(em, em.multiplied(a, b), op.results[0].type)


def truncated_quotient(a: int, b: int) -> int:
    """Division that rounds toward zero, as the hardware's."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def unsigned(em: PythonEmitter, value: Int, kind: Attribute) -> Int:
    """The integer read as unsigned."""
    if value.at_least(0):
        return value
    width = kind.width.data if isinstance(kind, IntegerType) else 64
    return em.named(f"{em.name_of(value)} & {(1 << width) - 1}", em.scope_of(value), 0, (1 << width) - 1)


@pure(arith.DivUIOp, arith.DivSIOp, arith.FloorDivSIOp, arith.CeilDivUIOp, arith.CeilDivSIOp)
def _divide(em: PythonEmitter, op: Operation) -> Value:
    return fitted(em, _quotient(em, op), op.results[0].type)


def _quotient(em: PythonEmitter, op: Operation) -> Int:
    a, b = _operands(em, op)
    kind = op.results[0].type
    if isinstance(op, (arith.DivUIOp, arith.CeilDivUIOp)):
        a, b = unsigned(em, a, kind), unsigned(em, b, kind)
    ceil = isinstance(op, (arith.CeilDivSIOp, arith.CeilDivUIOp))
    signed = isinstance(op, arith.DivSIOp) and not (a.at_least(0) and b.at_least(0))
    if a.known and b.known and b.const:
        if ceil:
            return Int(-(-a.const // b.const))
        return Int(truncated_quotient(a.const, b.const) if signed else a.const // b.const)
    if b == Int(1):
        return a
    low = high = None
    if b.at_least(1) and a.low is not None and a.high is not None:
        low, high = (min(a.low, 0), max(a.high, 0))
        if b.known:
            low, high = (-(-a.low // b.const), -(-a.high // b.const)) if ceil else (a.low // b.const, a.high // b.const)
            if signed:
                low, high = truncated_quotient(a.low, b.const), truncated_quotient(a.high, b.const)
    elif a.at_least(0) and b.at_least(0):
        low = 0
    scope = deeper(em.scope_of(a), em.scope_of(b))
    safe = b.at_least(1) or b.at_most(-1)
    if signed:
        helper = em.constant(truncated_quotient, "quotient")
        return em.named(f"{helper}({em.spelled(a)}, {em.spelled(b)})", scope, low, high, safe=safe)
    if ceil:
        return em.named(f"-(-{grouped(em, a)} // {em.name_of(b)})", scope, low, high, safe=safe)
    return em.named(f"{grouped(em, a)} // {em.name_of(b)}", scope, low, high, safe=safe)


@pure(arith.RemUIOp, arith.RemSIOp)
def _remainder(em: PythonEmitter, op: Operation) -> Value:
    a, b = _operands(em, op)
    kind = op.results[0].type
    if isinstance(op, arith.RemUIOp):
        a, b = unsigned(em, a, kind), unsigned(em, b, kind)
    scope = deeper(em.scope_of(a), em.scope_of(b))
    safe = b.at_least(1)
    if a.at_least(0) and b.at_least(0):
        if a.known and b.known and b.const:
            return fitted(em, Int(a.const % b.const), kind)
        if b.low is not None and a.at_most(b.low - 1):
            return fitted(em, a, kind)
        high = b.high - 1 if b.high is not None else a.high
        return fitted(em, em.named(f"{grouped(em, a)} % {em.name_of(b)}", scope, 0, high, safe=safe), kind)
    helper = em.constant(truncated_quotient, "quotient")
    x, y = em.name_of(a), em.name_of(b)
    return em.named(f"{x} - {helper}({x}, {y}) * {y}", scope, *bounds(kind), safe=safe)


@pure(arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp)
def _extreme(em: PythonEmitter, op: Operation) -> Value:
    a, b = _operands(em, op)
    if isinstance(op, (arith.MinUIOp, arith.MaxUIOp)):
        a, b = unsigned(em, a, op.results[0].type), unsigned(em, b, op.results[0].type)
    smallest = isinstance(op, (arith.MinSIOp, arith.MinUIOp))
    for one, other in ((a, b), (b, a)):
        if one.high is not None and other.low is not None and one.high <= other.low:
            return fitted(em, one if smallest else other, op.results[0].type)
    pick = min if smallest else max
    lows, highs = (a.low, b.low), (a.high, b.high)
    low = _bound(pick, lows, keep=not smallest)
    high = _bound(pick, highs, keep=smallest)
    x, y = em.name_of(a), em.name_of(b)
    text = f"{x} if {x} {'<' if smallest else '>'} {y} else {y}"
    return fitted(em, em.named(text, deeper(em.scope_of(a), em.scope_of(b)), low, high), op.results[0].type)


def _bound(pick: Callable[..., int], values: tuple[int | None, int | None], *, keep: bool) -> int | None:
    """A bound of min or max; ``keep`` where one known bound is enough."""
    known = [value for value in values if value is not None]
    if len(known) == 2:
        return pick(*known)
    return known[0] if known and keep else None


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
        return truth(em, f"{a.text} {word} {b.text}", a, b)
    x, y = _operands(em, op)
    scope = deeper(em.scope_of(x), em.scope_of(y))
    low, high = bounds(op.results[0].type)
    if x.known and y.known:
        return Int({"&": x.const & y.const, "|": x.const | y.const, "^": x.const ^ y.const}[sign])
    if sign == "&" and any(value.known and value.const >= 0 for value in (x, y)):
        low, high = 0, min(value.const for value in (x, y) if value.known and value.const >= 0)
    return em.named(f"{em.name_of(x)} {sign} {em.name_of(y)}", scope, low, high)


def truth(em: PythonEmitter, text: str, *parts: Value) -> ScalarExpr:
    """A truth value (or a float) computed by an expression."""
    scope = em.scope_of(*parts)
    return ScalarExpr(em.define(text, scope, "c"), scope)


def _negated(em: PythonEmitter, value: ScalarExpr) -> ScalarExpr:
    if value.value is not None:
        return ScalarExpr(str(not value.value), em.launch, not value.value)
    return truth(em, f"not {value.text}", value)


def counted(count: int, width: int) -> int:
    """The number of places of a shift.

    Raises:
        TileError: T509, there are not so many bits.
    """
    if 0 <= count < width:
        return count
    raise TileError(f"a shift of {width} bits by {count} has no value", code="T509",
                    help=f"shift by 0 to {width - 1}, or select 0 where it is more")


def _places(em: PythonEmitter, count: Int, kind: Attribute) -> tuple[Int, str, bool]:
    """By how much is shifted: the number, the text that makes sure of it, and whether it needs no looking at."""
    width = kind.width.data if isinstance(kind, IntegerType) else INDEX_BITS
    if count.known:
        counted(count.const, width)
    sure = count.at_least(0) and count.at_most(width - 1)
    return count, em.name_of(count) if sure else f"{em.constant(counted, 'counted')}({em.name_of(count)}, {width})", sure


@pure(arith.ShLIOp)
def _shift_left(em: PythonEmitter, op: arith.ShLIOp) -> Value:
    a, b = _operands(em, op)
    kind = op.results[0].type
    b, places, sure = _places(em, b, kind)
    if b.known:
        return kept(em, a.scaled(1 << b.const), kind)
    low = 0 if a.at_least(0) else None
    high = a.high << INDEX_BITS if a.high is not None and a.high >= 0 else None
    scope = deeper(em.scope_of(a), em.scope_of(b))
    return kept(em, em.named(f"{grouped(em, a)} << {places}", scope, low, high, safe=sure), kind)


@pure(arith.ShRSIOp, arith.ShRUIOp)
def _shift_right(em: PythonEmitter, op: Operation) -> Value:
    a, b = _operands(em, op)
    kind = op.results[0].type
    b, places, sure = _places(em, b, kind)
    if isinstance(op, arith.ShRUIOp):
        a = unsigned(em, a, kind)
    low, high = a.low, a.high
    if b.known and low is not None and high is not None:
        low, high = low >> b.const, high >> b.const
    elif low is not None and high is not None:
        low, high = min(low, 0), max(high, 0)
    scope = deeper(em.scope_of(a), em.scope_of(b))
    return fitted(em, em.named(f"{grouped(em, a)} >> {places}", scope, low, high, safe=sure), kind)


_INTEGER_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")


@pure(arith.CmpiOp)
def _compare(em: PythonEmitter, op: arith.CmpiOp) -> Value:
    predicate = op.predicate.value.data
    sign = _INTEGER_PREDICATES[predicate]
    if is_truth(op.operands[0].type):
        a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
        return truth(em, f"{a.text} {sign} {b.text}", a, b)
    x, y = _operands(em, op)
    if predicate >= 6:
        x, y = unsigned(em, x, op.operands[0].type), unsigned(em, y, op.operands[0].type)
    known = _decided(sign, x - y)
    if known is not None:
        return ScalarExpr(str(known), em.launch, known)
    return truth(em, f"{em.name_of(x)} {sign} {em.name_of(y)}", x, y)


def _decided(sign: str, difference: Int) -> bool | None:
    """Whether ``difference sign 0`` is known."""
    low, high = difference.low, difference.high
    if low is None or high is None:
        return None
    truths: dict[str, tuple[bool, bool]] = {
        "<": (high < 0, low >= 0), "<=": (high <= 0, low > 0), ">": (low > 0, high <= 0), ">=": (low >= 0, high < 0),
        "==": (low == high == 0, low > 0 or high < 0), "!=": (low > 0 or high < 0, low == high == 0)}
    true, false = truths[sign]
    return True if true else False if false else None


@pure(arith.IndexCastOp, IndexCastUIOp, arith.TruncIOp, arith.ExtSIOp, arith.ExtUIOp)
def _cast(em: PythonEmitter, op: Operation) -> Value:
    source, kind = op.operands[0], op.results[0].type
    if is_truth(source.type):
        value = em.integer(source)
        return value.scaled(-1) if isinstance(op, (arith.ExtSIOp, arith.IndexCastOp)) else value
    value = em.integer(source)
    if is_truth(kind):
        return truth(em, f"{em.name_of(value)} & 1 != 0", value) if not value.known else ScalarExpr(
            str(bool(value.const & 1)), em.launch, bool(value.const & 1))
    if isinstance(op, (arith.ExtUIOp, IndexCastUIOp)):
        return fitted(em, unsigned(em, value, source.type), kind)
    return fitted(em, value, kind)


@pure(UnrealizedConversionCastOp)
def _resigned(em: PythonEmitter, op: UnrealizedConversionCastOp) -> Value:
    """The same bits read with a sign or without one."""
    source, kind = op.operands[0].type, op.results[0].type
    if not (isinstance(source, IntegerType) and isinstance(kind, IntegerType) and source.width == kind.width):
        raise unsupported(op, f"it makes {kind} of {source}")
    return em.value(op.operands[0]) if is_truth(kind) else fitted(em, em.integer(op.operands[0]), kind)


@pure(arith.SelectOp)
def _select(em: PythonEmitter, op: arith.SelectOp) -> Value:
    condition = em.expression(op.cond)
    if condition.value is not None:
        return em.value(op.lhs if condition.value else op.rhs)
    kind = op.result.type
    if isinstance(kind, MemRefType):
        first, second = em.value(op.lhs), em.value(op.rhs)
        if not isinstance(first, (StridedView, Choice)) or not isinstance(second, (StridedView, Choice)):
            raise unsupported(op, "it chooses among scalar storage")
        return Choice(condition, first, second)
    if isinstance(kind, (IndexType, IntegerType)) and not is_truth(kind):
        x, y = em.integer(op.lhs), em.integer(op.rhs)
        low = min(x.low, y.low) if x.low is not None and y.low is not None else None
        high = max(x.high, y.high) if x.high is not None and y.high is not None else None
        return em.named(f"{em.name_of(x)} if {condition.text} else {em.name_of(y)}", em.scope_of(condition, x, y), low, high)
    a, b = em.expression(op.lhs), em.expression(op.rhs)
    return truth(em, f"{a.text} if {condition.text} else {b.text}", condition, a, b)
