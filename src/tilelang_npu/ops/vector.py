"""The entries of the elementwise vector operations (PIPE_V).

Element types and scalar positions are those that AscendNPU-IR's verifier accepts (its ODS at 52f96a13). ``cost`` is a row of
the chip's rate table (see ``target``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelang_npu.ops.erf import erf as erf_of
from tilelang_npu.ops.rounding import Array, Operand
from tilelang_npu.ops.spec import Clause, Elementwise, declare
from tilelang_npu.target.dtypes import DType, dtype


def _types(*names: str) -> tuple[DType, ...]:
    return tuple(dtype(name) for name in names)


FLOAT = _types("f16", "f32")
INTEGER_ARITHMETIC = _types("i8", "i16", "i32", "i64")
ARITHMETIC = (*INTEGER_ARITHMETIC, *FLOAT)
SHIFTABLE = _types("i16", "i32", "i64")
INTEGERS = _types("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
BITS = (*_types("i1"), *INTEGERS, *_types("f16", "bf16", "f32"))
ORDERED = BITS
FP8 = _types("f8E4M3FN", "f8E5M2")
SIGNED = Clause(name="is_signed", kind="bool", default=True)


def _names(name: str, *extra: str) -> tuple[str, ...]:
    return (f"tile.{name}", f"v{name}", f"npuir_{name}", *extra)


def unary(name: str, hivm: str, dtypes: tuple[DType, ...], meaning: Callable[..., object], cost: str, doc: str,
          *aliases: str, **facts: Any) -> Elementwise:
    """Declares the elementwise entry ``dst = meaning(src)`` and returns it.

    Args:
        name: the canonical name, from which the aliases ``tile.<name>``, ``v<name>`` and ``npuir_<name>`` are made.
        hivm: the mnemonic of the HIVM op.
        dtypes: the element types of the input.
        meaning: the NumPy function.
        cost: the row of the chip's rate table.
        doc: one sentence for the documentation.
        aliases: further aliases.
        facts: further fields of :class:`~tilelang_npu.ops.spec.Elementwise`.
    """
    return declare(Elementwise(name=name, aliases=_names(name, *aliases), inputs=1, dtypes=dtypes, hivm=hivm,
                               meaning=meaning, cost=cost, doc=doc, **facts))


def binary(name: str, hivm: str, dtypes: tuple[DType, ...], meaning: Callable[..., object], cost: str, doc: str,
           *aliases: str, scalar: tuple[int, ...] = (1,), **facts: Any) -> Elementwise:
    """Declares the elementwise entry ``dst = meaning(src0, src1)`` and returns it.

    ``scalar`` lists the positions of the inputs that may be scalars. The other arguments are those of :func:`unary`.
    """
    return declare(Elementwise(name=name, aliases=_names(name, *aliases), inputs=2, dtypes=dtypes, hivm=hivm,
                               meaning=meaning, cost=cost, doc=doc, scalar=frozenset(scalar), **facts))


def _divide(a: Operand, b: Operand) -> Array:
    if not np.issubdtype(np.result_type(a, b), np.integer):
        quotient: Array = np.divide(a, b)
        return quotient
    with np.errstate(all="ignore"):
        floored = np.floor_divide(a, b)  # 0 where the divisor is 0
        upward = (floored * b != a) & ((np.less(a, 0)) != np.less(b, 0)) & np.not_equal(b, 0)
    found: Array = floored + upward
    return found


def _shift_right(a: Operand, b: Operand) -> Array:
    return np.right_shift(a, b)


def _relu(a: Operand) -> Array:
    return np.maximum(a, np.zeros((), np.result_type(a)))


def _exponent(a: Operand) -> Array:
    finite = np.isfinite(a) & (np.asarray(a) != 0)
    exponents = np.frexp(np.where(finite, a, 1))[1] - 1
    return np.where(finite, exponents, np.where(np.asarray(a) == 0, -np.inf, np.abs(a))).astype(np.result_type(a))


def _remainder_unsigned(a: Operand, b: Operand) -> Array:
    given = np.result_type(a)
    unsigned = given if given == np.bool_ else np.dtype(f"u{given.name}")
    found: Array = np.fmod(np.asarray(a).astype(unsigned), np.asarray(b).astype(unsigned)).astype(given)
    return found


def _power(a: Operand, b: Operand) -> Array:
    if not np.issubdtype(np.result_type(a), np.integer):
        powers: Array = np.power(a, b)
        return powers
    # An integer to a negative power is a truncated quotient: 0, except for the bases 1 and -1.
    positive = np.power(a, np.where(np.asarray(b) < 0, np.asarray(b) % 2, b))
    return np.where((np.asarray(b) < 0) & (np.abs(a) != 1), 0, positive).astype(np.result_type(a))


def _halves(a: Operand, b: Operand, wide: type[np.int64 | np.uint64]) -> tuple[Array, Array]:
    narrow = np.uint32 if wide is np.uint64 else np.int32
    product = np.asarray(a).astype(narrow).astype(wide) * np.asarray(b).astype(narrow).astype(wide)
    return product.astype(np.int32), (product >> wide(32)).astype(np.int32)


def _product_halves(a: Operand, b: Operand) -> tuple[Array, Array]:
    return _halves(a, b, np.int64)


def _product_halves_unsigned(a: Operand, b: Operand) -> tuple[Array, Array]:
    return _halves(a, b, np.uint64)


def _compare(mode: str) -> np.ufunc:
    return {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "gt": np.greater, "ge": np.greater_equal,
            "le": np.less_equal}[mode]


exp = unary("exp", "vexp", FLOAT, np.exp, "exp", "e to the power of each element.")
ln = unary("ln", "vln", FLOAT, np.log, "ln", "Natural logarithm.", "tile.log")
sqrt = unary("sqrt", "vsqrt", FLOAT, np.sqrt, "sqrt", "Square root.")
rsqrt = unary("rsqrt", "vrsqrt", FLOAT, lambda a: np.reciprocal(np.sqrt(a)), "rsqrt", "Reciprocal square root.")
reciprocal = unary("reciprocal", "vrec", FLOAT, np.reciprocal, "rec", "Reciprocal.", "vrec", "npuir_rec")
absolute = unary("abs", "vabs", ARITHMETIC, np.abs, "abs", "Absolute value.")
relu = unary("relu", "vrelu", _types("f16", "f32", "i32"), _relu, "relu", "The larger of the element and zero.")
bitwise_not = unary("bitwise_not", "vnot", BITS, np.invert, "not", "Bitwise complement.", "vnot", "npuir_not")

add = binary("add", "vadd", ARITHMETIC, np.add, "add", "Sum of two elements.", commutes=True)
sub = binary("sub", "vsub", ARITHMETIC, np.subtract, "sub", "The first element minus the second.", scalar=(0, 1))
mul = binary("mul", "vmul", ARITHMETIC, np.multiply, "mul", "Product of two elements.", commutes=True)
div = binary("div", "vdiv", ARITHMETIC, _divide, "div", "The first element divided by the second; integers truncate to zero.",
             scalar=(0, 1), floats=np.divide,
             clauses=(Clause(name="isSigned", kind="bool", default=True),
                      Clause(name="isHP", kind="bool", default=False)))
maximum = binary("max", "vmax", ORDERED, np.maximum, "max", "The larger of two elements.", clauses=(SIGNED,),
                 dialect_dtypes=FP8, commutes=True)
minimum = binary("min", "vmin", ORDERED, np.minimum, "min", "The smaller of two elements.", clauses=(SIGNED,),
                 dialect_dtypes=FP8, commutes=True)
bitwise_and = binary("bitwise_and", "vand", BITS, np.bitwise_and, "and", "Bitwise and.", "vand", "npuir_and", scalar=())
bitwise_or = binary("bitwise_or", "vor", BITS, np.bitwise_or, "or", "Bitwise or.", "vor", "npuir_or", scalar=())
bitwise_xor = binary("bitwise_xor", "vxor", (*_types("i1"), *INTEGERS), np.bitwise_xor, "xor", "Bitwise exclusive or.",
                     "vxor", "npuir_xor", scalar=(), broadcast=False)
shift_left = binary("bitwise_lshift", "vshl", SHIFTABLE, np.left_shift, "shift", "Shift left by a scalar.", "vshl",
                    "npuir_shl", shifts=True)
shift_right = binary("bitwise_rshift", "vshr", (*_types("i8"), *SHIFTABLE), _shift_right, "shift",
                     "Shift right by a scalar.", "vshr", "npuir_shr", shifts=True,
                     clauses=(Clause(name="round", kind="bool", default=True, separator=":", optional=True),
                              Clause(name="is_signed", kind="bool", default=True, separator=":")))
compare = declare(Elementwise(
    name="compare", aliases=("vcmp", "npuir_cmp"), inputs=2, dtypes=ORDERED, hivm="vcmp", meaning=_compare, cost="cmpv",
    result="bool", scalar=frozenset({1}), broadcast=False, in_place=False, dialect_dtypes=FP8,
    clauses=(Clause(name="compare_mode", kind="compare_mode", default="eq"),
             Clause(name="is_signed", kind="bool", default=True, separator=":")),
    doc="Compares two elements; the result is true or false."))
select = declare(Elementwise(
    name="select", aliases=("vselect", "npuir_select"), inputs=3, dtypes=ORDERED, hivm="vsel", meaning=np.where,
    cost="sel", scalar=frozenset({1, 2}), condition=True, dialect_dtypes=FP8,
    doc="The element of the second input where the mask is set, else that of the third."))
cast = declare(Elementwise(
    name="cast", aliases=("vcast", "npuir_cast"), inputs=1, dtypes=BITS, hivm="vcast", meaning=np.asarray, cost="conv",
    result="any", in_place=False,
    clauses=(Clause(name="round_mode", kind="round_mode", default="rint"),
             Clause(name="cast", kind="cast", default="cast_signed")),
    doc="Converts to the element type of the destination with a rounding mode."))

# The device library has no functions for the ops below: the toolchain rewrites each into the ops above. Their cost is that of
# the op that dominates the rewritten form.
COMPOSED: dict[str, Any] = {"broadcast": False, "temp_buffer": False}
ANY_TYPE: dict[str, Any] = {**COMPOSED, "any_dtype": True}

tanh = unary("tanh", "vtanh", FLOAT, np.tanh, "exp", "Hyperbolic tangent.", "npuir_vtanh", **ANY_TYPE)
sine = unary("sin", "vsin", FLOAT, np.sin, "mul", "Sine.", "npuir_vsin", **ANY_TYPE)
cosine = unary("cos", "vcos", FLOAT, np.cos, "mul", "Cosine.", "npuir_vcos", **ANY_TYPE)
tangent = unary("tan", "vtan", FLOAT, np.tan, "div", "Tangent.", **ANY_TYPE)
arctangent = unary("atan", "vatan", FLOAT, np.arctan, "div", "Arc tangent.", **ANY_TYPE)
erf = unary("erf", "verf", FLOAT, erf_of, "mul", "Error function.", "npuir_verf", **ANY_TYPE)
exp2 = unary("exp2", "vexp2", FLOAT, np.exp2, "exp", "2 to the power of each element.", **COMPOSED)
log2 = unary("log2", "vlog2", FLOAT, np.log2, "ln", "Logarithm to base 2.", **COMPOSED)
log10 = unary("log10", "vlog10", FLOAT, np.log10, "ln", "Logarithm to base 10.", **COMPOSED)
log1p = unary("log1p", "vlog1p", FLOAT, np.log1p, "ln", "Natural logarithm of one plus the element.", **COMPOSED)
expm1 = unary("expm1", "vexpm1", FLOAT, np.expm1, "exp", "e to the power of each element, minus one.", **COMPOSED)
ilogb = unary("ilogb", "vilogb", FLOAT, _exponent, "ln", "Exponent of the element as a binary floating-point number.",
              **COMPOSED)
isinf = unary("isinf", "visinf", FLOAT, np.isinf, "cmpv", "Whether the element is an infinity.", result="bool",
              in_place=False, temp_buffer=False, axes_clauses=False)
isnan = unary("isnan", "visnan", FLOAT, np.isnan, "cmpv", "Whether the element is not a number.", result="bool",
              in_place=False, temp_buffer=False, axes_clauses=False)
remainder = binary("mod", "vmod", _types("i1", "i8", "i16", "i32", "i64", "f16", "f32"), np.fmod, "div",
                   "Remainder of the division that truncates toward zero.", **COMPOSED)
remainder_unsigned = binary("modui", "vmodui", _types("i1", "i8", "i16", "i32", "i64"), _remainder_unsigned, "div",
                            "Remainder of the division of two elements that are read as unsigned.", **COMPOSED)
power = binary("pow", "vpow", _types("i8", "i16", "i32", "f16", "f32"), _power, "exp",
               "The first element to the power of the second.", scalar=(), broadcast=False)
scale = binary("ldexp", "vldexp", FLOAT, lambda a, b: np.multiply(a, np.exp2(np.asarray(b, np.float64))), "mul",
               "The first element times 2 to the power of the second.", scalar=(), **COMPOSED)
multiply_extended = binary("mulext", "vmulext", _types("i32"), _product_halves, "mul",
                           "Low and high half of the 64-bit product of two elements.", outputs=2, **COMPOSED)
multiply_extended_unsigned = binary("mulextui", "vmulextui", _types("i32"), _product_halves_unsigned, "mul",
                                    "Low and high half of the 64-bit product of two elements that are read as unsigned.",
                                    outputs=2, **COMPOSED)
