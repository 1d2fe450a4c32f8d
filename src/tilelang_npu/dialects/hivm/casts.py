"""The casts that the toolchain's verifier of ``vcast`` accepts (AscendNPU-IR 52f96a13, docs/hivm.md#casts).

A cast is a triple of source type, target type and rounding mode. Some casts are one instruction on every chip. For the others
the toolchain emits a sequence of instructions; which of these exist depends on whether the vector unit is memory-based (910B,
910_93) or register-based (310B, 950).
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

_FLOAT_NAMES: dict[type[Attribute], str] = {
    Float16Type: "half", BFloat16Type: "bfloat16_t", Float32Type: "float", Float64Type: "double",
    Float8E4M3FNType: "float8_e4m3_t", Float8E5M2Type: "float8_e5m2_t",
}
_SHORT = {"f16": "half", "bf16": "bfloat16_t", "f32": "float", "f8e4m3": "float8_e4m3_t", "f8e5m2": "float8_e5m2_t",
          "i1": "bool"}
_ALL_FIVE = "rint round floor ceil trunc"

# "source -> targets : modes", one line per group.
_HARDWARE = f"""
bf16 -> f32 : rint round
bf16 -> i32 : {_ALL_FIVE}
f16 -> f32 : rint round floor trunc
f16 -> i16 i32 i4 i8 u8 : {_ALL_FIVE}
f32 -> bf16 f32 i16 i32 i64 : {_ALL_FIVE}
f32 -> f16 : {_ALL_FIVE} odd
i16 -> f16 : {_ALL_FIVE}
i16 -> f32 : rint trunc
i32 -> f32 : {_ALL_FIVE}
i32 -> i16 i64 : rint
i4 -> f16 : rint
i64 -> f32 : {_ALL_FIVE}
i64 -> i32 : rint
i8 -> f16 : rint trunc
u8 -> f16 : rint
"""
_SOFT = f"""
f32 -> i8 : {_ALL_FIVE}
i4 -> i8 : rint
i8 i16 i32 -> i1 : rint
i1 -> i8 f32 f16 i32 i16 u16 u32 bf16 : rint
i1 -> f32 f16 bf16 : trunc
f16 -> f16 : ceil floor
bf16 -> bf16 : ceil floor
i16 -> i32 : rint
i8 -> i32 i16 : rint
i32 -> i8 i16 : truncwithoverflow
i16 -> i8 : truncwithoverflow
i64 -> i32 : truncwithoverflow
"""
_SOFT_REGISTER_BASED = """
f32 -> i1 : trunc rint
bf16 f16 i64 -> i1 : rint
f32 -> i16 i32 : truncwithoverflow
f32 -> f8e5m2 f8e4m3 : rint
f8e5m2 f8e4m3 -> f32 : rint
i1 -> i64 : rint
i8 -> bf16 : rint
i8 -> f32 : trunc
i8 -> f16 i16 : round
i32 -> i64 : round
i32 -> i8 i16 : trunc
i16 -> i8 : trunc
i64 -> i16 i8 : rint
i64 -> f16 : trunc
u32 -> f32 bf16 : rint
u8 -> u16 u32 : rint
u16 -> u8 : truncwithoverflow
u32 -> u64 : rint
"""


def _long(short: str) -> str:
    if short in _SHORT:
        return _SHORT[short]
    return f"{'uint' if short[0] == 'u' else 'int'}{short[1:]}_t"


def _names(table: str) -> frozenset[str]:
    """The toolchain's names of the casts in a table."""
    names = set()
    for line in table.strip().splitlines():
        types, modes = line.split(":")
        sources, targets = types.split("->")
        names |= {f"{_long(source)}_to_{_long(target)}_{mode}mode"
                  for source in sources.split() for target in targets.split() for mode in modes.split()}
    return frozenset(names)


MEMORY_BASED = _names(_HARDWARE) | _names(_SOFT)
REGISTER_BASED = MEMORY_BASED | _names(_SOFT_REGISTER_BASED)


def _type_name(type_: Attribute, *, unsigned: bool) -> str:
    if isinstance(type_, IntegerType):
        width = type_.width.data
        if width == 1:
            return "bool"
        return f"{'u' if unsigned or type_.signedness.data is Signedness.UNSIGNED else ''}int{width}_t"
    return _FLOAT_NAMES.get(type(type_), str(type_))


def cast_name(source: Attribute, target: Attribute, mode: str, *, unsigned: bool) -> str:
    """Returns the toolchain's name of a cast between element types, such as ``float_to_half_rintmode``.

    Args:
        source: the element type of the input.
        target: the element type of the result.
        mode: the rounding mode.
        unsigned: whether signless integers are treated as unsigned.
    """
    return f"{_type_name(source, unsigned=unsigned)}_to_{_type_name(target, unsigned=unsigned)}_{mode}mode"


def is_supported_cast(name: str, *, register_based: bool) -> bool:
    """Whether the toolchain supports the cast with a name that :func:`cast_name` returned.

    ``register_based`` states whether the vector unit of the chip is register-based; otherwise it is memory-based.
    """
    return name in (REGISTER_BASED if register_based else MEMORY_BASED)
