"""The enum attributes of HFusion: ``#hfusion.<mnemonic><case>`` (AscendNPU-IR master 52f96a13, HFusionEnums.td)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from xdsl.irdl import irdl_attr_definition

from tilelang_npu.dialects.hivm.enums import CacheModifierAttr as HivmCacheModifier
from tilelang_npu.dialects.hivm.enums import EvictionPolicyAttr as HivmEvictionPolicy
from tilelang_npu.dialects.hivm.enums import PaddingOptionAttr as HivmPaddingOption
from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr


def _count(words: str, start: int = 0) -> dict[str, int]:
    return {word: number for number, word in enumerate(words.split(), start)}


@irdl_attr_definition
class UnaryFnAttr(EnumAttr):
    """What ``elemwise_unary`` computes."""

    name = "hfusion.unary_fn"
    CASES: ClassVar[Mapping[str, int]] = _count(
        "relu sqrt rsqrt rec vnot tanh sin cos atan tan absi erf log2 log10 log1p exp2 expm1 ilogb asin acos asinh acosh atanh"
        " sinh lgamma cosh nearbyint")


@irdl_attr_definition
class BinaryFnAttr(EnumAttr):
    """What ``elemwise_binary`` computes."""

    name = "hfusion.binary_fn"
    CASES: ClassVar[Mapping[str, int]] = _count(
        "vor vand vxor minf maxf powf mod modui shli shrsi shrui ldexp ceildivsi ceildivui floordivsi powi minnumf maxnumf"
        " atan2 divfhp copysign")


@irdl_attr_definition
class CompareFnAttr(EnumAttr):
    """How ``compare`` compares; those with a ``u`` read integers as unsigned."""

    name = "hfusion.compare_fn"
    CASES: ClassVar[Mapping[str, int]] = _count("veq vne vle vlt vge vgt vule vult vuge vugt")


@irdl_attr_definition
class TernaryFnAttr(EnumAttr):
    """What ``elemwise_ternary`` computes."""

    name = "hfusion.ternary_fn"
    CASES: ClassVar[Mapping[str, int]] = _count("select fma")


@irdl_attr_definition
class TypeFnAttr(EnumAttr):
    """How a conversion reads integers."""

    name = "hfusion.type_fn"
    CASES: ClassVar[Mapping[str, int]] = _count("cast_signed cast_unsigned bitcast")


@irdl_attr_definition
class RoundModeAttr(EnumAttr):
    """How a conversion rounds."""

    name = "hfusion.round_mode"
    CASES: ClassVar[Mapping[str, int]] = _count("rint round floor ceil trunc odd truncwithoverflow")


@irdl_attr_definition
class UnsignedModeAttr(EnumAttr):
    """Which sides of a conversion are unsigned."""

    name = "hfusion.unsigned_mode"
    CASES: ClassVar[Mapping[str, int]] = _count("si2si si2ui ui2si ui2ui")


@irdl_attr_definition
class AtomicKindAttr(EnumAttr):
    """What a store or an exchange does with what is there."""

    name = "hfusion.atomic_kind"
    CASES: ClassVar[Mapping[str, int]] = _count("none add max min and or xor cas xchg umax umin")


@irdl_attr_definition
class ReduceWithIndexKindAttr(EnumAttr):
    """Which extreme a reduction with index looks for."""

    name = "hfusion.reduce_with_index_kind"
    CASES: ClassVar[Mapping[str, int]] = _count("min max minui maxui")


@irdl_attr_definition
class FusionKindAttr(EnumAttr):
    """What a function fuses; the function attribute ``hfusion.fusion_kind``."""

    name = "hfusion.fusion_kind"
    CASES: ClassVar[Mapping[str, int]] = _count(
        "PURE_ELEMWISE ANY_PB LAST_AXIS_PBR ANY_PBR SINGLE_CUBE SHALLOW_CV SHALLOW_VV MIX_CV MIX_C2 UNKNOWN", start=1)


@irdl_attr_definition
class CacheModifierAttr(EnumAttr):
    """Which caches an access goes through."""

    name = "hfusion.cache_modifier"
    CASES: ClassVar[Mapping[str, int]] = HivmCacheModifier.CASES


@irdl_attr_definition
class EvictionPolicyAttr(EnumAttr):
    """Which lines a cache gives up first."""

    name = "hfusion.eviction_policy"
    CASES: ClassVar[Mapping[str, int]] = HivmEvictionPolicy.CASES


@irdl_attr_definition
class PaddingOptionAttr(EnumAttr):
    """What stands for elements that are not there."""

    name = "hfusion.padding_option"
    CASES: ClassVar[Mapping[str, int]] = HivmPaddingOption.CASES


ENUMS: tuple[type[EnumAttr], ...] = (
    UnaryFnAttr, BinaryFnAttr, CompareFnAttr, TernaryFnAttr, TypeFnAttr, RoundModeAttr, UnsignedModeAttr, AtomicKindAttr,
    ReduceWithIndexKindAttr, FusionKindAttr, CacheModifierAttr, EvictionPolicyAttr, PaddingOptionAttr)
