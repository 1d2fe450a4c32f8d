"""Evaluation of the constants and the scalar float ops of ``arith`` and ``math``; each op rounds to the type of its result."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from functools import partial

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import math as mlir_math
from xdsl.dialects.builtin import Float64Type, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation

from tilelang_npu.dialects.mlir.arith import RemfOp
from tilelang_npu.linear import NATURAL, Interval
from tilelang_npu.simulator.codegen.code_scopes import Int, ScalarExpr
from tilelang_npu.simulator.codegen.handlers import Value, pure, unsupported
from tilelang_npu.simulator.codegen.integers import INDEX_BITS, define_truth, is_truth, unsigned, wrapped
from tilelang_npu.simulator.codegen.per_block_scalars import array_rounder
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.strided_views import bounds, element_of
from tilelang_npu.target.dtypes import DType


@pure(arith.ConstantOp)
def _constant(em: PythonEmitter, op: arith.ConstantOp) -> Value:
    value = op.value
    if isinstance(value, IntegerAttr):
        if is_truth(value.type):
            return ScalarExpr(str(bool(value.value.data)), em.launch, bool(value.value.data))
        return wrapped(em, Int(value.value.data), value.type)
    if isinstance(value, FloatAttr):
        number = _rounder(element_of(value.type))(value.value.data)
        return ScalarExpr(_literal(number), em.launch, number)
    raise unsupported(op, "its value is neither an integer nor a float")


def _literal(number: float) -> str:
    return repr(number) if math.isfinite(number) else f"float('{number}')"


def round_f32(value: float) -> float:
    """Returns ``value`` rounded to the nearest f32 number."""
    return ctypes.c_float(value).value


def _rounder(element: DType) -> Callable[[float], float]:
    if element == "float32":
        return round_f32
    if element == "float64":
        return float
    kind = element.numpy.type
    return lambda value: float(kind(value))


def _rounded(em: PythonEmitter, text: str, kind: Attribute, *parts: Value) -> ScalarExpr:
    scope = em.scope_of(*parts)
    if em.is_per_block():
        return ScalarExpr(em.define(f"{em.constant(array_rounder(kind), 'round')}({text})", scope, "f"), scope)
    if isinstance(kind, Float64Type):
        return ScalarExpr(em.define(text, scope, "f"), scope)
    element = element_of(kind)
    rounder = round_f32 if element == "float32" else _ROUNDERS.setdefault(element, _rounder(element))
    return ScalarExpr(em.define(f"{em.constant(rounder, 'round')}({text})", scope, "f"), scope)


_ROUNDERS: dict[DType, Callable[[float], float]] = {}


def divide(a: float, b: float) -> float:
    """Returns ``a / b``; for a divisor of zero the result of IEEE 754, an infinity with its sign, or NaN."""
    if b:
        return a / b
    return math.nan if not a or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _float_binary(sign: str, em: PythonEmitter, op: Operation) -> Value:
    a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
    return _rounded(em, f"({a.text}) {sign} ({b.text})", op.results[0].type, a, b)


pure(arith.AddfOp)(partial(_float_binary, "+"))
pure(arith.SubfOp)(partial(_float_binary, "-"))
pure(arith.MulfOp)(partial(_float_binary, "*"))


def _float_call(function: Callable[..., object], em: PythonEmitter, op: Operation) -> Value:
    a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
    return _rounded(em, f"{em.constant(function, 'f')}({a.text}, {b.text})", op.results[0].type, a, b)


def _power(a: float, b: float) -> float:
    return float(np.power(np.float64(a), np.float64(b)))


pure(arith.DivfOp)(partial(_float_call, divide))
pure(RemfOp)(partial(_float_call, math.fmod))
pure(mlir_math.PowFOp)(partial(_float_call, _power))
pure(mlir_math.Atan2Op)(partial(_float_call, math.atan2))
pure(mlir_math.CopySignOp)(partial(_float_call, math.copysign))


@pure(arith.NegfOp)
def _negate(em: PythonEmitter, op: arith.NegfOp) -> Value:
    a = em.expression(op.operands[0])
    return ScalarExpr(em.define(f"-({a.text})", a.scope, "f"), a.scope)


def _float_extreme(function: Callable[..., object], em: PythonEmitter, op: Operation) -> Value:
    a, b = em.expression(op.operands[0]), em.expression(op.operands[1])
    text = f"{em.constant(function, 'f')}({a.text}, {b.text})"
    return define_truth(em, text if em.is_per_block() else f"float({text})", a, b)


pure(arith.MaximumfOp)(partial(_float_extreme, np.maximum))
pure(arith.MaxnumfOp)(partial(_float_extreme, np.fmax))
pure(arith.MinimumfOp)(partial(_float_extreme, np.minimum))
pure(arith.MinnumfOp)(partial(_float_extreme, np.fmin))


@pure(arith.CmpfOp)
def _float_compare(em: PythonEmitter, op: arith.CmpfOp) -> Value:
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
    return define_truth(em, text, a, b)


@pure(arith.SIToFPOp, arith.UIToFPOp)
def _to_float(em: PythonEmitter, op: Operation) -> Value:
    value = em.integer(op.operands[0])
    if isinstance(op, arith.UIToFPOp):
        value = unsigned(em, value, op.operands[0].type)
    return _rounded(em, f"float({em.text_of(value)})", op.results[0].type, value)


def saturated(value: float, low: int, high: int) -> int:
    """Returns ``value`` rounded toward zero and clamped to the range from ``low`` to ``high``; 0 for NaN."""
    if value != value:
        return 0
    return high if value >= high else low if value <= low else int(value)


@pure(arith.FPToSIOp, arith.FPToUIOp)
def _to_integer(em: PythonEmitter, op: Operation) -> Value:
    value = em.expression(op.operands[0])
    kind = op.results[0].type
    width = kind.width.data if isinstance(kind, IntegerType) else INDEX_BITS
    held = Interval.of_bits(width, signed=isinstance(op, arith.FPToSIOp))
    helper = em.constant(saturated, "saturated")
    return wrapped(em, em.define_integer(f"{helper}({value.text}, {held.low}, {held.high})", value.scope, held), kind)


@pure(arith.ExtFOp)
def _widen(em: PythonEmitter, op: arith.ExtFOp) -> Value:
    return em.expression(op.operands[0])


@pure(arith.TruncFOp)
def _narrow(em: PythonEmitter, op: arith.TruncFOp) -> Value:
    value = em.expression(op.operands[0])
    return _rounded(em, value.text, op.results[0].type, value)


_PACK = {16: "h", 32: "i", 64: "q"}
_PACK_FLOAT = {"f16": "e", "bf16": "bf16", "f32": "f", "f64": "d"}


def reinterpret(value: float, source: str, target: str) -> float:
    """Returns the number whose bits, as ``target``, are those of ``value`` as ``source``.

    Args:
        value: the number.
        source, target: types of equal width, as codes of the module ``struct``, or ``bf16``.
    """
    bits = struct.pack("<f", value)[2:] if source == "bf16" else struct.pack("<" + source, value)
    number: float
    (number,) = struct.unpack("<f", b"\0\0" + bits) if target == "bf16" else struct.unpack("<" + target, bits)
    return number


@pure(arith.BitcastOp)
def _bitcast(em: PythonEmitter, op: arith.BitcastOp) -> Value:
    source, target = op.operands[0].type, op.results[0].type
    helper = em.constant(reinterpret, "reinterpret")
    value = em.expression(op.operands[0])
    if isinstance(target, IntegerType):
        code = _PACK_FLOAT.get(str(source))
        if code is None:
            raise unsupported(op, f"it casts from {source}, whose bits are not modelled")
        text = f"{helper}({value.text}, '{code}', '{_PACK[target.width.data]}')"
        return em.define_integer(text, value.scope, bounds(target))
    code = _PACK_FLOAT.get(str(target))
    if code is None or not isinstance(source, IntegerType):
        raise unsupported(op, f"it casts from {source} to {target}, and only casts between integers and floats are modelled")
    text = f"{helper}({value.text}, '{_PACK[source.width.data]}', '{code}')"
    return ScalarExpr(em.define(text, value.scope, "f"), value.scope)


_MATH: dict[type[Operation], Callable[..., object]] = {
    mlir_math.ExpOp: np.exp, mlir_math.Exp2Op: np.exp2, mlir_math.LogOp: np.log, mlir_math.Log2Op: np.log2,
    mlir_math.Log10Op: np.log10, mlir_math.Log1pOp: np.log1p, mlir_math.SqrtOp: np.sqrt,
    mlir_math.RsqrtOp: lambda x: 1.0 / np.sqrt(np.float64(x)), mlir_math.SinOp: np.sin, mlir_math.CosOp: np.cos,
    mlir_math.TanOp: np.tan, mlir_math.TanhOp: np.tanh, mlir_math.AsinOp: np.arcsin, mlir_math.AcosOp: np.arccos,
    mlir_math.AtanOp: np.arctan, mlir_math.SinhOp: np.sinh, mlir_math.CoshOp: np.cosh, mlir_math.AsinhOp: np.arcsinh,
    mlir_math.AcoshOp: np.arccosh, mlir_math.AtanhOp: np.arctanh, mlir_math.AbsFOp: np.abs, mlir_math.FloorOp: np.floor,
    mlir_math.CeilOp: np.ceil, mlir_math.RoundOp: np.round, mlir_math.RoundEvenOp: np.rint, mlir_math.TruncOp: np.trunc,
    mlir_math.ErfOp: math.erf}


def _math(function: Callable[..., object], em: PythonEmitter, op: Operation) -> Value:
    value = em.expression(op.operands[0])
    return _rounded(em, f"float({em.constant(function, 'f')}({value.text}))", op.results[0].type, value)


for _kind, _function in _MATH.items():
    pure(_kind)(partial(_math, _function))


@pure(mlir_math.CtPopOp, mlir_math.CountLeadingZerosOp)
def _count_bits(em: PythonEmitter, op: Operation) -> Value:
    kind = op.results[0].type
    assert isinstance(kind, IntegerType)
    value = unsigned(em, em.integer(op.operands[0]), kind)
    text = em.text_of(value)
    if isinstance(op, mlir_math.CtPopOp):
        return em.define_integer(f"({text}).bit_count()", em.scope_of(value), Interval(0, kind.width.data))
    return em.define_integer(f"{kind.width.data} - ({text}).bit_length()", em.scope_of(value), Interval(0, kind.width.data))


@pure(mlir_math.AbsIOp)
def _absolute(em: PythonEmitter, op: mlir_math.AbsIOp) -> Value:
    value = em.integer(op.operands[0])
    return wrapped(em, em.define_integer(f"abs({em.text_of(value)})", em.scope_of(value), NATURAL), op.results[0].type)
