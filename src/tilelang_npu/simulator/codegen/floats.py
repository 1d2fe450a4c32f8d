"""Scalar arithmetic on floats, and constants: ``arith`` and ``math``. Every step rounds to the type of its result."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float64Type, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation

from tilelang_npu.ops.dtypes import DType
from tilelang_npu.simulator.codegen.emitter import Emitter, Value, bounds, element_of, op_name, pure, unsupported
from tilelang_npu.simulator.codegen.scalars import fitted, is_truth, truth, unsigned
from tilelang_npu.simulator.codegen.scope import Expr, Int


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


@pure("arith.divf", "arith.remf", "math.powf", "math.atan2", "math.copysign")
def _float_call(em: Emitter, op: Operation) -> Value:
    a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
    function = {"arith.divf": divide, "arith.remf": math.fmod, "math.powf": _power, "math.atan2": math.atan2,
                "math.copysign": math.copysign}[op_name(op)]
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
    return truth(em, f"float({em.constant(function, 'f')}({a.text}, {b.text}))", a, b)


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
    return truth(em, text, a, b)


@pure("arith.sitofp", "arith.uitofp")
def _to_float(em: Emitter, op: Operation) -> Value:
    value = em.integer(op.operands[0])
    if op_name(op) == "arith.uitofp":
        value = unsigned(em, value, op.operands[0].type)
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
_PACK_FLOAT = {"f16": "e", "bf16": "bf16", "f32": "f", "f64": "d"}


def reinterpret(value: float, source: str, target: str) -> Any:
    """The bits of a number read as another type of the same width (``struct`` codes; ``bf16`` is the front of ``f``)."""
    bits = struct.pack("<f", value)[2:] if source == "bf16" else struct.pack("<" + source, value)
    return struct.unpack("<f", b"\0\0" + bits)[0] if target == "bf16" else struct.unpack("<" + target, bits)[0]


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
    "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "absf": np.abs,
    "floor": np.floor, "ceil": np.ceil, "round": np.round,
    "roundeven": np.rint, "trunc": np.trunc, "erf": math.erf}


@pure(*(f"math.{name}" for name in _MATH))
def _math(em: Emitter, op: Operation) -> Value:
    value = em.expression(op.operands[0])
    function = em.constant(_MATH[op_name(op).removeprefix("math.")], "f")
    return _rounded(em, f"float({function}({value.text}))", op.results[0].type, value)


@pure("math.ctpop", "math.ctlz")
def _count_bits(em: Emitter, op: Operation) -> Value:
    kind = op.results[0].type
    assert isinstance(kind, IntegerType)
    value = unsigned(em, em.integer(op.operands[0]), kind)
    text = em.spelled(value)
    if op_name(op) == "math.ctpop":
        return em.named(f"({text}).bit_count()", em.scope_of(value), 0, kind.width.data)
    return em.named(f"{kind.width.data} - ({text}).bit_length()", em.scope_of(value), 0, kind.width.data)


@pure("math.absi")
def _absolute(em: Emitter, op: Operation) -> Value:
    value = em.integer(op.operands[0])
    return fitted(em, em.named(f"abs({em.spelled(value)})", em.scope_of(value), 0), op.results[0].type)
