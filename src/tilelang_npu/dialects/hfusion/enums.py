"""The enum attributes of HFusion: ``#hfusion.<mnemonic><case>`` (AscendNPU-IR master 52f96a13, HFusionEnums.td)."""

from __future__ import annotations

from tilelang_npu.dialects.hivm.enums import CacheModifierAttr as HivmCacheModifier
from tilelang_npu.dialects.hivm.enums import EvictionPolicyAttr as HivmEvictionPolicy
from tilelang_npu.dialects.hivm.enums import PaddingOptionAttr as HivmPaddingOption
from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr


class UnaryFnAttr(EnumAttr, attr_name="hfusion.unary_fn",
                  cases="relu sqrt rsqrt rec vnot tanh sin cos atan tan absi erf log2 log10 log1p exp2 expm1 ilogb asin "
                        "acos asinh acosh atanh sinh lgamma cosh nearbyint"):
    """The function that ``hfusion.elemwise_unary`` applies to each element."""


class BinaryFnAttr(EnumAttr, attr_name="hfusion.binary_fn",
                   cases="vor vand vxor minf maxf powf mod modui shli shrsi shrui ldexp ceildivsi ceildivui floordivsi "
                         "powi minnumf maxnumf atan2 divfhp copysign"):
    """The function that ``hfusion.elemwise_binary`` applies to each pair of elements."""


class CompareFnAttr(EnumAttr, attr_name="hfusion.compare_fn", cases="veq vne vle vlt vge vgt vule vult vuge vugt"):
    """The relation that ``hfusion.compare`` tests; ``vult``, ``vule``, ``vugt`` and ``vuge`` treat integers as unsigned."""


class TernaryFnAttr(EnumAttr, attr_name="hfusion.ternary_fn", cases="select fma"):
    """The function that ``hfusion.elemwise_ternary`` applies to each triple of elements."""


class TypeFnAttr(EnumAttr, attr_name="hfusion.type_fn", cases="cast_signed cast_unsigned bitcast"):
    """Whether a conversion treats integers as signed or as unsigned, or reinterprets the bits."""


class RoundModeAttr(EnumAttr, attr_name="hfusion.round_mode", cases="rint round floor ceil trunc odd truncwithoverflow"):
    """The rounding mode of a conversion."""


class UnsignedModeAttr(EnumAttr, attr_name="hfusion.unsigned_mode", cases="si2si si2ui ui2si ui2ui"):
    """The signedness of the source and the destination of a conversion."""


class AtomicKindAttr(EnumAttr, attr_name="hfusion.atomic_kind", cases="none add max min and or xor cas xchg umax umin"):
    """How an atomic op combines the old value with the new one."""


class ReduceWithIndexKindAttr(EnumAttr, attr_name="hfusion.reduce_with_index_kind", cases="min max minui maxui"):
    """Whether a reduction with index selects the smallest or the largest element, of signed or unsigned integers."""


class FusionKindAttr(EnumAttr, attr_name="hfusion.fusion_kind", start=1,
                     cases="PURE_ELEMWISE ANY_PB LAST_AXIS_PBR ANY_PBR SINGLE_CUBE SHALLOW_CV SHALLOW_VV MIX_CV MIX_C2 "
                           "UNKNOWN"):
    """The pattern of ops that a function fuses; the function attribute ``hfusion.fusion_kind``."""


class CacheModifierAttr(EnumAttr, attr_name="hfusion.cache_modifier", cases=HivmCacheModifier.CASES):
    """The cache levels that a load or store uses, in the words of PTX's cache operators."""


class EvictionPolicyAttr(EnumAttr, attr_name="hfusion.eviction_policy", cases=HivmEvictionPolicy.CASES):
    """Whether L2 should evict a line of the access first, last, or by the normal policy."""


class PaddingOptionAttr(EnumAttr, attr_name="hfusion.padding_option", cases=HivmPaddingOption.CASES):
    """The value that a load yields for an element that is out of bounds: zero or NaN."""


ENUMS: tuple[type[EnumAttr], ...] = (
    UnaryFnAttr, BinaryFnAttr, CompareFnAttr, TernaryFnAttr, TypeFnAttr, RoundModeAttr, UnsignedModeAttr, AtomicKindAttr,
    ReduceWithIndexKindAttr, FusionKindAttr, CacheModifierAttr, EvictionPolicyAttr, PaddingOptionAttr)
