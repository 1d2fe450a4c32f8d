"""Scalar arithmetic: ``arith``, ``index`` and ``math`` on integers, floats and truth values.

Integers of the ``index`` type do not overflow here; narrower ones wrap, which costs nothing where bounds show they cannot.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float64Type, FloatAttr, IndexType, IntegerAttr, IntegerType, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu.ops.dtypes import DType
from tilelang_npu.simulator.codegen.emitter import Emitter, Value, bounds, element_of, op_name, pure, unsupported
from tilelang_npu.simulator.codegen.scope import Expr, Int, deeper
from tilelang_npu.simulator.codegen.views import Choice, View

Bounds = tuple["int | None", "int | None"]


def fitted(em: Emitter, value: Int, kind: Attribute) -> Int:
    """``value`` as an integer of that type: wrapped where it may not fit."""
    low, high = bounds(kind)
    if low is None or high is None or (value.at_least(low) and value.at_most(high)):
        return value
    if value.known:
        return Int((value.const - low) % (high - low + 1) + low)
    text = f"(({em.spelled(value)}) + {-low} & {high - low}) - {-low}"
    return em.named(text, em.scope_of(value), low, high)


def grouped(em: Emitter, value: Int) -> str:
    """An integer as an operand of a binding operator."""
    text = em.spelled(value)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def is_truth(kind: Attribute) -> bool:
    """Whether the type is i1."""
    return isinstance(kind, IntegerType) and kind.width.data == 1


def _operands(em: Emitter, op: Operation) -> tuple[Int, Int]:
    return em.integer(op.operands[0]), em.integer(op.operands[1])


@pure("arith.constant")
def _constant(em: Emitter, op: arith.ConstantOp) -> Value:
    value = op.value
    if isinstance(value, IntegerAttr):
        if is_truth(value.type):
            return Expr(str(bool(value.value.data)), em.launch, bool(value.value.data))
        return fitted(em, Int(value.value.data), value.type)
    if isinstance(value, FloatAttr):
        number = _rounder(element_of(value.type))(value.value.data)
        return Expr(_literal(number), em.launch, number)
    raise unsupported(op, "its value is neither an integer nor a float")


def _literal(number: float) -> str:
    return repr(number) if math.isfinite(number) else f"float('{number}')"


@pure("arith.addi")
def _add(em: Emitter, op: Operation) -> Value:
    a, b = _operands(em, op)
    return fitted(em, a + b, op.results[0].type)


@pure("arith.subi")
def _sub(em: Emitter, op: Operation) -> Value:
    a, b = _operands(em, op)
    return fitted(em, a - b, op.results[0].type)


@pure("arith.muli")
def _mul(em: Emitter, op: Operation) -> Value:
    a, b = _operands(em, op)
    return fitted(em, em.multiplied(a, b), op.results[0].type)


def truncated_quotient(a: int, b: int) -> int:
    """Division that rounds toward zero, as the hardware's."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _unsigned(em: Emitter, value: Int, kind: Attribute) -> Int:
    """The integer read as unsigned."""
    if value.at_least(0):
        return value
    width = kind.width.data if isinstance(kind, IntegerType) else 64
    return em.named(f"{em.name_of(value)} & {(1 << width) - 1}", em.scope_of(value), 0, (1 << width) - 1)


@pure("arith.divui", "arith.divsi", "arith.floordivsi", "arith.ceildivui", "arith.ceildivsi")
def _divide(em: Emitter, op: Operation) -> Value:
    return fitted(em, _quotient(em, op), op.results[0].type)


def _quotient(em: Emitter, op: Operation) -> Int:
    a, b = _operands(em, op)
    kind, name = op.results[0].type, op_name(op)
    if name.endswith("ui"):
        a, b = _unsigned(em, a, kind), _unsigned(em, b, kind)
    ceil = "ceil" in name
    signed = name == "arith.divsi" and not (a.at_least(0) and b.at_least(0))
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


@pure("arith.remui", "arith.remsi")
def _remainder(em: Emitter, op: Operation) -> Value:
    a, b = _operands(em, op)
    kind = op.results[0].type
    if op_name(op) == "arith.remui":
        a, b = _unsigned(em, a, kind), _unsigned(em, b, kind)
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


@pure("arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui")
def _extreme(em: Emitter, op: Operation) -> Value:
    a, b = _operands(em, op)
    name = op_name(op)
    if name.endswith("ui"):
        a, b = _unsigned(em, a, op.results[0].type), _unsigned(em, b, op.results[0].type)
    smallest = "min" in name
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


_BITS = {"arith.andi": "&", "arith.ori": "|", "arith.xori": "^"}


@pure(*_BITS)
def _bitwise(em: Emitter, op: Operation) -> Value:
    name = op_name(op)
    if is_truth(op.results[0].type):
        a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
        for one, other in ((a, b), (b, a)):
            if one.value is not None:
                if name == "arith.andi":
                    return other if one.value else one
                if name == "arith.ori":
                    return one if one.value else other
                return _negated(em, other) if one.value else other
        word = {"arith.andi": "and", "arith.ori": "or", "arith.xori": "!="}[name]
        return _truth(em, f"{a.text} {word} {b.text}", a, b)
    x, y = _operands(em, op)
    scope = deeper(em.scope_of(x), em.scope_of(y))
    low, high = bounds(op.results[0].type)
    if x.known and y.known:
        return Int({"&": x.const & y.const, "|": x.const | y.const, "^": x.const ^ y.const}[_BITS[name]])
    if name == "arith.andi" and any(value.known and value.const >= 0 for value in (x, y)):
        low, high = 0, min(value.const for value in (x, y) if value.known and value.const >= 0)
    return em.named(f"{em.name_of(x)} {_BITS[name]} {em.name_of(y)}", scope, low, high)


def _truth(em: Emitter, text: str, *parts: Value) -> Expr:
    scope = em.scope_of(*parts)
    return Expr(em.define(text, scope, "c"), scope)


def _negated(em: Emitter, value: Expr) -> Expr:
    if value.value is not None:
        return Expr(str(not value.value), em.launch, not value.value)
    return _truth(em, f"not {value.text}", value)


@pure("arith.shli")
def _shift_left(em: Emitter, op: Operation) -> Value:
    a, b = _operands(em, op)
    kind = op.results[0].type
    if b.known:
        return fitted(em, a.scaled(1 << b.const), kind)
    low = 0 if a.at_least(0) else None
    shifted = em.named(f"{grouped(em, a)} << {em.name_of(b)}", deeper(em.scope_of(a), em.scope_of(b)), low)
    return fitted(em, shifted, kind)


@pure("arith.shrsi", "arith.shrui")
def _shift_right(em: Emitter, op: Operation) -> Value:
    a, b = _operands(em, op)
    if op_name(op) == "arith.shrui":
        a = _unsigned(em, a, op.results[0].type)
    low, high = a.low, a.high
    if b.known and low is not None and high is not None:
        low, high = low >> b.const, high >> b.const
    elif low is not None and high is not None:
        low, high = min(low, 0), max(high, 0)
    shifted = em.named(f"{grouped(em, a)} >> {em.name_of(b)}", deeper(em.scope_of(a), em.scope_of(b)), low, high)
    return fitted(em, shifted, op.results[0].type)


_INTEGER_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")


@pure("arith.cmpi")
def _compare(em: Emitter, op: arith.CmpiOp) -> Value:
    predicate = op.predicate.value.data
    sign = _INTEGER_PREDICATES[predicate]
    if is_truth(op.operands[0].type):
        a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
        return _truth(em, f"{a.text} {sign} {b.text}", a, b)
    x, y = _operands(em, op)
    if predicate >= 6:
        x, y = _unsigned(em, x, op.operands[0].type), _unsigned(em, y, op.operands[0].type)
    known = _decided(sign, x - y)
    if known is not None:
        return Expr(str(known), em.launch, known)
    return _truth(em, f"{em.name_of(x)} {sign} {em.name_of(y)}", x, y)


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


@pure("arith.index_cast", "arith.index_castui", "arith.trunci", "arith.extsi", "arith.extui", "index.casts", "index.castu")
def _cast(em: Emitter, op: Operation) -> Value:
    source, kind = op.operands[0], op.results[0].type
    name = op_name(op)
    if is_truth(source.type):
        value = em.integer(source)
        return value.scaled(-1) if name in ("arith.extsi", "arith.index_cast") else value
    value = em.integer(source)
    if is_truth(kind):
        return _truth(em, f"{em.name_of(value)} & 1 != 0", value) if not value.known else Expr(
            str(bool(value.const & 1)), em.launch, bool(value.const & 1))
    if name in ("arith.extui", "arith.index_castui", "index.castu"):
        return fitted(em, _unsigned(em, value, source.type), kind)
    return fitted(em, value, kind)


@pure("arith.select")
def _select(em: Emitter, op: arith.SelectOp) -> Value:
    condition = em.expression(op.cond)
    if condition.value is not None:
        return em.value(op.lhs if condition.value else op.rhs)
    kind = op.result.type
    if isinstance(kind, MemRefType):
        first, second = em.value(op.lhs), em.value(op.rhs)
        if not isinstance(first, (View, Choice)) or not isinstance(second, (View, Choice)):
            raise unsupported(op, "it chooses among scalar storage")
        return Choice(condition, first, second)
    if isinstance(kind, (IndexType, IntegerType)) and not is_truth(kind):
        x, y = em.integer(op.lhs), em.integer(op.rhs)
        low = min(x.low, y.low) if x.low is not None and y.low is not None else None
        high = max(x.high, y.high) if x.high is not None and y.high is not None else None
        return em.named(f"{em.name_of(x)} if {condition.text} else {em.name_of(y)}", em.scope_of(condition, x, y), low, high)
    a, b = em.expression(op.lhs), em.expression(op.rhs)
    return _truth(em, f"{a.text} if {condition.text} else {b.text}", condition, a, b)


# -- floats ------------------------------------------------------------------------------------------------------------


def round_f32(value: float) -> float:
    """The nearest f32 number."""
    return ctypes.c_float(value).value


def _rounder(element: DType) -> Callable[[float], float]:
    if element == "float32":
        return round_f32
    if element == "float64":
        return float
    kind = element.numpy.type
    return lambda value: float(kind(value))


def _rounded(em: Emitter, text: str, kind: Attribute, *parts: Value) -> Expr:
    scope = em.scope_of(*parts)
    if isinstance(kind, Float64Type):
        return Expr(em.define(text, scope, "f"), scope)
    element = element_of(kind)
    rounder = round_f32 if element == "float32" else _ROUNDERS.setdefault(element, _rounder(element))
    return Expr(em.define(f"{em.constant(rounder, 'round')}({text})", scope, "f"), scope)


_ROUNDERS: dict[DType, Callable[[float], float]] = {}


def divide(a: float, b: float) -> float:
    """IEEE division."""
    if b:
        return a / b
    return math.nan if not a or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


@pure("arith.addf", "arith.subf", "arith.mulf")
def _float_binary(em: Emitter, op: Operation) -> Value:
    a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
    sign = {"arith.addf": "+", "arith.subf": "-", "arith.mulf": "*"}[op_name(op)]
    return _rounded(em, f"({a.text}) {sign} ({b.text})", op.results[0].type, a, b)


@pure("arith.divf", "arith.remf", "math.powf")
def _float_call(em: Emitter, op: Operation) -> Value:
    a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
    function = {"arith.divf": divide, "arith.remf": math.fmod, "math.powf": _power}[op_name(op)]
    return _rounded(em, f"{em.constant(function, 'f')}({a.text}, {b.text})", op.results[0].type, a, b)


def _power(a: float, b: float) -> float:
    return float(np.power(np.float64(a), np.float64(b)))


@pure("arith.negf")
def _negate(em: Emitter, op: Operation) -> Value:
    a = em.expression(op.operands[0])
    return Expr(em.define(f"-({a.text})", a.scope, "f"), a.scope)


@pure("arith.maximumf", "arith.maxnumf", "arith.minimumf", "arith.minnumf")
def _float_extreme(em: Emitter, op: Operation) -> Value:
    a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
    function = {"arith.maximumf": np.maximum, "arith.maxnumf": np.fmax, "arith.minimumf": np.minimum,
                "arith.minnumf": np.fmin}[op_name(op)]
    return _truth(em, f"float({em.constant(function, 'f')}({a.text}, {b.text}))", a, b)


@pure("arith.cmpf")
def _float_compare(em: Emitter, op: arith.CmpfOp) -> Value:
    a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
    predicate = op.predicate.value.data
    ordered = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<="}
    unordered = {9: "<=", 10: "<", 11: ">=", 12: ">"}
    x, y = a.text, b.text
    texts = {0: "False", 15: "True", 6: f"{x} < {y} or {x} > {y}", 7: f"{x} == {x} and {y} == {y}",
             8: f"not ({x} < {y} or {x} > {y})", 13: f"{x} != {y}", 14: f"{x} != {x} or {y} != {y}"}
    if predicate in ordered:
        text = f"{x} {ordered[predicate]} {y}"
    elif predicate in unordered:
        text = f"not ({x} {unordered[predicate]} {y})"
    else:
        text = texts[predicate]
    return _truth(em, text, a, b)


@pure("arith.sitofp", "arith.uitofp")
def _to_float(em: Emitter, op: Operation) -> Value:
    value = em.integer(op.operands[0])
    if op_name(op) == "arith.uitofp":
        value = _unsigned(em, value, op.operands[0].type)
    return _rounded(em, f"float({em.spelled(value)})", op.results[0].type, value)


def saturated(value: float, low: int, high: int) -> int:
    """The integer toward zero, kept between bounds; zero for NaN."""
    if value != value:
        return 0
    return high if value >= high else low if value <= low else int(value)


@pure("arith.fptosi", "arith.fptoui")
def _to_integer(em: Emitter, op: Operation) -> Value:
    value = em.expression(op.operands[0])
    low, high = bounds(op.results[0].type)
    if low is None or high is None:
        low, high = -(1 << 63), (1 << 63) - 1
    helper = em.constant(saturated, "saturated")
    return em.named(f"{helper}({value.text}, {low}, {high})", value.scope, low, high)


@pure("arith.extf", "arith.truncf")
def _change_width(em: Emitter, op: Operation) -> Value:
    value = em.expression(op.operands[0])
    return value if op_name(op) == "arith.extf" else _rounded(em, value.text, op.results[0].type, value)


_PACK = {16: "h", 32: "i", 64: "q"}
_PACK_FLOAT = {"f16": "e", "f32": "f", "f64": "d"}


def reinterpret(value: float, source: str, target: str) -> Any:
    """The bits of a number read as another type of the same width (``struct`` codes)."""
    return struct.unpack(target, struct.pack(source, value))[0]


@pure("arith.bitcast")
def _bitcast(em: Emitter, op: Operation) -> Value:
    source, target = op.operands[0].type, op.results[0].type
    helper = em.constant(reinterpret, "reinterpret")
    value = em.expression(op.operands[0])
    if isinstance(target, IntegerType):
        code = _PACK_FLOAT.get(str(source))
        if code is None:
            raise unsupported(op, f"from {source}")
        text = f"{helper}({value.text}, '{code}', '{_PACK[target.width.data]}')"
        return em.named(text, value.scope, *bounds(target))
    code = _PACK_FLOAT.get(str(target))
    if code is None or not isinstance(source, IntegerType):
        raise unsupported(op, f"from {source} to {target}")
    text = f"{helper}({value.text}, '{_PACK[source.width.data]}', '{code}')"
    return Expr(em.define(text, value.scope, "f"), value.scope)


_MATH: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1.0 / np.sqrt(np.float64(x)), "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "tanh": np.tanh, "atan": np.arctan, "absf": np.abs, "floor": np.floor, "ceil": np.ceil, "round": np.round,
    "roundeven": np.rint, "trunc": np.trunc, "erf": math.erf}


@pure(*(f"math.{name}" for name in _MATH))
def _math(em: Emitter, op: Operation) -> Value:
    value = em.expression(op.operands[0])
    function = em.constant(_MATH[op_name(op).removeprefix("math.")], "f")
    return _rounded(em, f"float({function}({value.text}))", op.results[0].type, value)


@pure("math.absi")
def _absolute(em: Emitter, op: Operation) -> Value:
    value = em.integer(op.operands[0])
    return fitted(em, em.named(f"abs({em.spelled(value)})", em.scope_of(value), 0), op.results[0].type)


def scalar_text(em: Emitter, ssa: SSAValue) -> str:
    """A scalar operand of a vector op as a Python expression."""
    return em.expression(ssa).text
