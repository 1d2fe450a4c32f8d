"""The enum attributes of HIVM: ``#hivm.<mnemonic><case>`` (AscendNPU-IR master 52f96a13, HIVMAttrs.td).

The integers are those of the toolchain. ``atomic_kind`` leaves out CAS (7) and XCHG (8): their spellings are ``or`` and
``xor`` again, so no text can name them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from xdsl.irdl import irdl_attr_definition

from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr


def _count(*words: str, start: int = 0) -> dict[str, int]:
    return {word: number for number, word in enumerate(words, start)}


@irdl_attr_definition
class AddressSpaceAttr(EnumAttr):
    """Where a buffer lives: gm, cbuf (L1), ca (L0A), cb (L0B), cc (L0C), ub."""

    name = "hivm.address_space"
    CASES: ClassVar[Mapping[str, int]] = {**_count("zero", "gm", "cbuf", "ca", "cb", "cc", "ub"), "ssbuf": 11}


@irdl_attr_definition
class PipeAttr(EnumAttr):
    """An in-order instruction queue of a core."""

    name = "hivm.pipe"
    CASES: ClassVar[Mapping[str, int]] = {
        **_count("PIPE_S", "PIPE_V", "PIPE_M", "PIPE_MTE1", "PIPE_MTE2", "PIPE_MTE3", "PIPE_ALL", "PIPE_MTE4",
                 "PIPE_MTE5", "PIPE_V2", "PIPE_FIX", "VIRTUAL_PIPE_MTE2_L1A", "VIRTUAL_PIPE_MTE2_L1B", "PIPE_NUM"),
        "PIPE_UNASSIGNED": 99,
    }
    PREFIX: ClassVar[str] = "PIPE_"


EVENT_IDS = 8  # HIVMAttrs.td, HIVM_EVENT_ID
LIBRARY_EVENT = 7  # lib/Template/include/Utils.h, LIB_EVENT_ID0
"""The event that the toolchain's library sets and waits for inside its functions."""
LIBRARY_PIPES = frozenset({
    ("FIX", "M"), ("M", "FIX"), ("MTE1", "M"), ("MTE2", "S"), ("MTE2", "V"), ("MTE3", "S"), ("S", "MTE2"), ("S", "MTE3"),
    ("S", "V"), ("V", "MTE2"), ("V", "MTE3"), ("V", "S")})
"""Between which pipes it does (``lib/Template``)."""


@irdl_attr_definition
class EventAttr(EnumAttr):
    """One of the eight events between two pipes of a core."""

    name = "hivm.event"
    CASES: ClassVar[Mapping[str, int]] = _count(*(f"EVENT_ID{number}" for number in range(EVENT_IDS)))
    PREFIX: ClassVar[str] = "EVENT_ID"


@irdl_attr_definition
class FuncCoreTypeAttr(EnumAttr):
    """The core a function runs on."""

    name = "hivm.func_core_type"
    CASES: ClassVar[Mapping[str, int]] = _count("AIC", "AIV", "MIX", "AIC_OR_AIV", start=1)


@irdl_attr_definition
class ModuleCoreTypeAttr(EnumAttr):
    """The cores the functions of a module run on."""

    name = "hivm.module_core_type"
    CASES: ClassVar[Mapping[str, int]] = _count("AIC", "AIV", "MIX", start=1)


@irdl_attr_definition
class CoreTypeAttr(EnumAttr):
    """The core an op runs on."""

    name = "hivm.tcore_type"
    CASES: ClassVar[Mapping[str, int]] = _count("CUBE", "VECTOR", "CUBE_OR_VECTOR", "CUBE_AND_VECTOR", start=1)


@irdl_attr_definition
class CoreTypeMarkerAttr(EnumAttr):
    """As tcore_type, for marks."""

    name = "hivm.tcore_type_marker"
    CASES: ClassVar[Mapping[str, int]] = _count("CUBE", "VECTOR", "CUBE_OR_VECTOR", "CUBE_AND_VECTOR", start=1)


@irdl_attr_definition
class PadModeAttr(EnumAttr):
    """What a load fills padding with."""

    name = "hivm.padmode"
    CASES: ClassVar[Mapping[str, int]] = _count("PadNull", "PadFirstElem", "PadValue")


@irdl_attr_definition
class RoundModeAttr(EnumAttr):
    """How a cast rounds."""

    name = "hivm.round_mode"
    CASES: ClassVar[Mapping[str, int]] = _count("rint", "round", "floor", "ceil", "trunc", "odd", "truncwithoverflow")


@irdl_attr_definition
class TypeFnAttr(EnumAttr):
    """Whether a cast reads integers as signed."""

    name = "hivm.cast"
    CASES: ClassVar[Mapping[str, int]] = _count("cast_signed", "cast_unsigned", "bitcast")


@irdl_attr_definition
class UnsignedModeAttr(EnumAttr):
    """Signedness of the two sides of a cast."""

    name = "hivm.unsigned_mode"
    CASES: ClassVar[Mapping[str, int]] = _count("si2si", "si2ui", "ui2si", "ui2ui")


@irdl_attr_definition
class CompareModeAttr(EnumAttr):
    """The relation that vcmp tests."""

    name = "hivm.compare_mode"
    CASES: ClassVar[Mapping[str, int]] = _count("eq", "ne", "lt", "gt", "ge", "le")


@irdl_attr_definition
class ReduceOpAttr(EnumAttr):
    """What vreduce folds with."""

    name = "hivm.reduce_op"
    CASES: ClassVar[Mapping[str, int]] = _count(
        "none", "sum", "prod", "max", "min", "max_with_index_left", "max_with_index_right", "min_with_index_left",
        "min_with_index_right", "max_with_index", "min_with_index", "any", "all", "xori", "ori", "andi")


@irdl_attr_definition
class AtomicKindAttr(EnumAttr):
    """What an atomic store or read-modify-write does."""

    name = "hivm.atomic_kind"
    CASES: ClassVar[Mapping[str, int]] = {**_count("none", "add", "max", "min", "and", "or", "xor"), "umax": 9, "umin": 10}


@irdl_attr_definition
class UnitFlagAttr(EnumAttr):
    """How M and FIX hand over blocks of L0C without an event."""

    name = "hivm.unit_flag"
    CASES: ClassVar[Mapping[str, int]] = _count("DISABLED", "RESERVED", "ENABLED_WITHOUT_UPDATE", "ENABLED_WITH_UPDATE")


@irdl_attr_definition
class SyncBlockModeAttr(EnumAttr):
    """Which cores a block barrier joins."""

    name = "hivm.sync_block_mode"
    CASES: ClassVar[Mapping[str, int]] = _count(
        "ALL_CUBE", "ALL_VECTOR", "ALL_SUB_VECTOR", "BARRIER_CUBE", "BARRIER_VECTOR", "ALL")


@irdl_attr_definition
class SyncBlockInstrModeAttr(EnumAttr):
    """Which cores see a block flag."""

    name = "hivm.sync_block_instr_mode"
    CASES: ClassVar[Mapping[str, int]] = _count(
        "INTER_BLOCK_SYNCHRONIZATION", "INTER_SUBBLOCK_SYNCHRONIZATION", "INTRA_BLOCK_SYNCHRONIZATION")


@irdl_attr_definition
class FixpipePreQuantModeAttr(EnumAttr):
    """Conversion on the way out of L0C."""

    name = "hivm.fixpipe_pre_quant_mode"
    CASES: ClassVar[Mapping[str, int]] = {"NO_QUANT": 0, "F322F16": 1, "S322I8": 9, "QF322F32_PRE": 15, "F322BF16": 16}


@irdl_attr_definition
class FixpipePreReluModeAttr(EnumAttr):
    """Activation on the way out of L0C."""

    name = "hivm.fixpipe_pre_relu_mode"
    CASES: ClassVar[Mapping[str, int]] = _count("NO_RELU", "NORMAL_RELU", "LEAKY_RELU", "P_RELU")


@irdl_attr_definition
class FixpipeDMAModeAttr(EnumAttr):
    """Layout change on the way out of L0C; ``normal`` keeps NZ."""

    name = "hivm.dma_mode"
    CASES: ClassVar[Mapping[str, int]] = _count("nz2nd", "nz2dn", "normal")


@irdl_attr_definition
class FixpipeDualDstModeAttr(EnumAttr):
    """How fixpipe splits a tile over the two vector cores (950)."""

    name = "hivm.fixpipe_dual_dst_mode"
    CASES: ClassVar[Mapping[str, int]] = _count("NO_DUAL", "ROW_SPLIT", "COLUMN_SPLIT")


@irdl_attr_definition
class FixpipeSubBlockAttr(EnumAttr):
    """The vector core that fixpipe writes to (950)."""

    name = "hivm.fixpipe_sub_block"
    CASES: ClassVar[Mapping[str, int]] = _count("sub_block_0", "sub_block_1")


@irdl_attr_definition
class DeinterleaveModeAttr(EnumAttr):
    """Which channels vdeinterleave returns."""

    name = "hivm.deinterleave_mode"
    CASES: ClassVar[Mapping[str, int]] = {"CHANNEL_0": 0, "CHANNEL_1": 1, "ALL_CHANNELS": 999}


@irdl_attr_definition
class DescaleModeAttr(EnumAttr):
    """Whether a global matmul descales per channel or per tensor."""

    name = "hivm.descale_mode"
    CASES: ClassVar[Mapping[str, int]] = _count("DescaleNull", "DescalePerChannel", "DescalePerTensor")


@irdl_attr_definition
class AlignKindAttr(EnumAttr):
    """What is known about an alignment."""

    name = "hivm.align_kind"
    CASES: ClassVar[Mapping[str, int]] = _count("align", "unaligned", "unknown")


@irdl_attr_definition
class AxisKindAttr(EnumAttr):
    """Where an axis stands."""

    name = "hivm.axis_kind"
    CASES: ClassVar[Mapping[str, int]] = _count("first", "middle", "last")


@irdl_attr_definition
class IteratorTypeAttr(EnumAttr):
    """What an op does along an axis."""

    name = "hivm.iterator_type"
    CASES: ClassVar[Mapping[str, int]] = {
        **_count("parallel", "broadcast", "transpose", "reduction", "interleave", "deinterleave", "inverse", "pad",
                 "concat", "gather", "cumulative"),
        "opaque": 99,
    }


@irdl_attr_definition
class DCCIModeAttr(EnumAttr):
    """How much of the data cache dcci touches."""

    name = "hivm.DCCIMode"
    CASES: ClassVar[Mapping[str, int]] = _count("single_cache_line", "all_cache_lines")


@irdl_attr_definition
class DataCacheKindAttr(EnumAttr):
    """Which data cache dcci touches."""

    name = "hivm.DataCacheKind"
    CASES: ClassVar[Mapping[str, int]] = _count("all", "ub", "out", "atomic")


@irdl_attr_definition
class EvictionPolicyAttr(EnumAttr):
    """How long L2 should keep a line."""

    name = "hivm.eviction_policy"
    CASES: ClassVar[Mapping[str, int]] = _count("EvictNormal", "EvictFirst", "EvictLast", start=1)


@irdl_attr_definition
class CacheModifierAttr(EnumAttr):
    """Which caches an access goes through."""

    name = "hivm.cache_modifier"
    CASES: ClassVar[Mapping[str, int]] = _count("none", "ca", "cg", "wb", "cs", "wt", "cv", start=1)


@irdl_attr_definition
class PaddingOptionAttr(EnumAttr):
    """What an out-of-bounds element reads as."""

    name = "hivm.padding_option"
    CASES: ClassVar[Mapping[str, int]] = _count("zero", "nan", start=1)


@irdl_attr_definition
class VFModeAttr(EnumAttr):
    """How a vector function runs (950)."""

    name = "hivm.vf_mode"
    CASES: ClassVar[Mapping[str, int]] = _count("SIMD", "SIMT", "MIX")


@irdl_attr_definition
class InlineModeAttr(EnumAttr):
    """Whether a custom op's function is inlined."""

    name = "hivm.inline_mode"
    CASES: ClassVar[Mapping[str, int]] = _count("always_inline", "no_inline")


@irdl_attr_definition
class MemoryEffectAttr(EnumAttr):
    """What a SIMT function does to an argument."""

    name = "hivm.memory_effect"
    CASES: ClassVar[Mapping[str, int]] = _count("read", "write", "read_write")


@irdl_attr_definition
class SubBlockAttr(EnumAttr):
    """Mapping of a loop over the vector cores of a block."""

    name = "hivm.sub_block"
    CASES: ClassVar[Mapping[str, int]] = _count("x")


@irdl_attr_definition
class SimtMemScopeHintAttr(EnumAttr):
    """Memory of a SIMT function's argument."""

    name = "hivm.simt_mem_scope_hint"
    CASES: ClassVar[Mapping[str, int]] = AddressSpaceAttr.CASES


ENUMS: tuple[type[EnumAttr], ...] = (
    AddressSpaceAttr, PipeAttr, EventAttr, FuncCoreTypeAttr, ModuleCoreTypeAttr, CoreTypeAttr, CoreTypeMarkerAttr,
    PadModeAttr, RoundModeAttr, TypeFnAttr, UnsignedModeAttr, CompareModeAttr, ReduceOpAttr, AtomicKindAttr,
    UnitFlagAttr, SyncBlockModeAttr, SyncBlockInstrModeAttr, FixpipePreQuantModeAttr, FixpipePreReluModeAttr,
    FixpipeDMAModeAttr, FixpipeDualDstModeAttr, FixpipeSubBlockAttr, DeinterleaveModeAttr, DescaleModeAttr,
    AlignKindAttr, AxisKindAttr, IteratorTypeAttr, DCCIModeAttr, DataCacheKindAttr, EvictionPolicyAttr,
    CacheModifierAttr, PaddingOptionAttr, VFModeAttr, InlineModeAttr, MemoryEffectAttr, SubBlockAttr,
    SimtMemScopeHintAttr,
)
