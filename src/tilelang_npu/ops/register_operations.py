"""The operations of ``T.vmi`` that compute each lane of a vector register from the same lane of their operands.

An entry lists the operands, the element types that the unit accepts, and the steps, each of which is one op of ``arith`` or
``math`` (:data:`MLIR`). The language functions, the lowering and the documentation read the entries; the interpreter has a
meaning of its own for each. Sources: TileLang's ``tilelang/ascend/language/vmi.py`` (names and arguments) and the instruction
reference ``docs/isa/vmi-isa`` of PTOAS (meaning and element types).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilelang_npu.ops.spec import Step, parse_steps
from tilelang_npu.target.dtypes import DType, dtype

Kind = Literal["register", "number"]
"""What an operand is: a vector register, or a number that all lanes share."""


def _types(*names: str) -> tuple[DType, ...]:
    return tuple(dtype(name) for name in names)


HALF_AND_SINGLE = _types("f16", "f32")
FLOATS = _types("f16", "bf16", "f32")
INTEGERS = _types("i8", "ui8", "i16", "ui16", "i32", "ui32")
ALL = (*INTEGERS, *FLOATS)

MLIR: dict[str, tuple[str, str, str]] = {
    "add": ("arith.addf", "arith.addi", "arith.addi"), "sub": ("arith.subf", "arith.subi", "arith.subi"),
    "mul": ("arith.mulf", "arith.muli", "arith.muli"), "div": ("arith.divf", "", ""),
    "max": ("arith.maximumf", "arith.maxsi", "arith.maxui"), "min": ("arith.minimumf", "arith.minsi", "arith.minui"),
    "and": ("", "arith.andi", "arith.andi"), "or": ("", "arith.ori", "arith.ori"), "xor": ("", "arith.xori", "arith.xori"),
    "shl": ("", "arith.shli", "arith.shli"), "shr": ("", "arith.shrui", "arith.shrui"),
    "abs": ("math.absf", "math.absi", ""), "neg": ("arith.negf", "", ""), "exp": ("math.exp", "", ""),
    "ln": ("math.log", "", ""), "sqrt": ("math.sqrt", "", ""), "fma": ("math.fma", "", ""),
}
"""For each step, the op on floats, on signed integers and on unsigned integers; empty where there is none."""


@dataclass(frozen=True, kw_only=True)
class RegisterOperation:
    """An operation on vector registers that computes lane by lane.

    Attributes:
        name: the name in ``T.vmi``.
        operands: the names of the operands, in the order of the call.
        numbers: the names of the operands that are numbers.
        elements: the element types of the registers.
        steps: the steps of the computation; the last one writes ``dst``.
        needs_mask: whether a call must state the mask.
        doc: one sentence for the documentation.
    """

    name: str
    operands: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    elements: tuple[DType, ...]
    steps: tuple[Step, ...]
    needs_mask: bool = False
    doc: str


def _entry(name: str, operands: str, elements: tuple[DType, ...], steps: str, doc: str, *, numbers: str = "",
           needs_mask: bool = False) -> RegisterOperation:
    return RegisterOperation(name=name, operands=tuple(operands.split()), numbers=tuple(numbers.split()), elements=elements,
                             steps=parse_steps(steps), needs_mask=needs_mask, doc=doc)


_ENTRIES = (
    _entry("vadd", "lhs rhs", ALL, "dst = add(lhs, rhs)", "The sum of two registers."),
    _entry("vsub", "lhs rhs", ALL, "dst = sub(lhs, rhs)", "The difference of two registers."),
    _entry("vmul", "lhs rhs", ALL, "dst = mul(lhs, rhs)", "The product of two registers."),
    _entry("vdiv", "lhs rhs", HALF_AND_SINGLE, "dst = div(lhs, rhs)", "The quotient of two registers."),
    _entry("vmax", "lhs rhs", ALL, "dst = max(lhs, rhs)", "The larger of two registers."),
    _entry("vmin", "lhs rhs", ALL, "dst = min(lhs, rhs)", "The smaller of two registers."),
    _entry("vand", "lhs rhs", INTEGERS, "dst = and(lhs, rhs)", "The bitwise and of two registers."),
    _entry("vor", "lhs rhs", INTEGERS, "dst = or(lhs, rhs)", "The bitwise or of two registers."),
    _entry("vxor", "lhs rhs", INTEGERS, "dst = xor(lhs, rhs)", "The bitwise exclusive or of two registers."),
    _entry("vshl", "lhs rhs", INTEGERS, "dst = shl(lhs, rhs)", "The first register shifted left by the second."),
    _entry("vshr", "lhs rhs", INTEGERS, "dst = shr(lhs, rhs)",
           "The first register shifted right by the second; zeros are shifted in."),
    _entry("vabs", "source", (*_types("i8", "i16", "i32"), *FLOATS), "dst = abs(source)", "The absolute value."),
    _entry("vneg", "source", (*_types("i8", "i16", "i32"), *FLOATS), "dst = neg(source)", "The negated value."),
    _entry("vrelu", "source", (*_types("i8", "i16", "i32"), *FLOATS), "dst = max(source, 0)",
           "The value, or 0 for a negative one."),
    _entry("vexp", "source", HALF_AND_SINGLE, "dst = exp(source)", "The exponential."),
    _entry("vln", "source", HALF_AND_SINGLE, "dst = ln(source)", "The natural logarithm."),
    _entry("vsqrt", "source", HALF_AND_SINGLE, "dst = sqrt(source)", "The square root."),
    _entry("vnot", "source", INTEGERS, "dst = xor(source, -1)", "The bitwise complement."),
    _entry("vadds", "source scalar", ALL, "dst = add(source, scalar)", "The sum with a number.", numbers="scalar",
           needs_mask=True),
    _entry("vmuls", "source scalar", ALL, "dst = mul(source, scalar)", "The product with a number.", numbers="scalar",
           needs_mask=True),
    _entry("vmaxs", "source scalar", ALL, "dst = max(source, scalar)", "The larger of a register and a number.",
           numbers="scalar", needs_mask=True),
    _entry("vmins", "source scalar", ALL, "dst = min(source, scalar)", "The smaller of a register and a number.",
           numbers="scalar", needs_mask=True),
    _entry("vshls", "source scalar", INTEGERS, "dst = shl(source, scalar)", "The register shifted left by a number.",
           numbers="scalar", needs_mask=True),
    _entry("vshrs", "source scalar", INTEGERS, "dst = shr(source, scalar)",
           "The register shifted right by a number; zeros are shifted in.", numbers="scalar", needs_mask=True),
    _entry("vexpdif", "x max_value", HALF_AND_SINGLE, "t = sub(x, max_value); dst = exp(t)",
           "The exponential of a difference, as softmax needs it.", needs_mask=True),
    _entry("vaxpy", "x acc alpha", HALF_AND_SINGLE, "dst = fma(x, alpha, acc)",
           "``alpha * x + acc`` with a number ``alpha``, rounded once.", numbers="alpha", needs_mask=True),
    _entry("vlrelu", "x slope", HALF_AND_SINGLE, "p = max(x, 0); m = min(x, 0); n = mul(m, slope); dst = add(p, n)",
           "The value, or ``slope`` times a negative one.", numbers="slope", needs_mask=True),
    _entry("vprelu", "x alpha", HALF_AND_SINGLE, "p = max(x, 0); m = min(x, 0); n = mul(m, alpha); dst = add(p, n)",
           "The value, or a negative one times the lane of ``alpha``.", needs_mask=True),
    _entry("vmula", "acc lhs rhs", ALL, "dst = fma(lhs, rhs, acc)", "``acc + lhs * rhs``, rounded once.", needs_mask=True),
)
REGISTER_OPERATIONS: dict[str, RegisterOperation] = {entry.name: entry for entry in _ENTRIES}
"""The entries, by name."""
