"""The enum attributes of HIVM: ``#hivm.<mnemonic><case>`` (AscendNPU-IR master 52f96a13, HIVMAttrs.td).

The integers are those of the toolchain. ``atomic_kind`` leaves out CAS (7) and XCHG (8): their spellings are ``or`` and
``xor`` again, so no text can name them.
"""

from __future__ import annotations

from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr

__all__ = [
    "EVENT_IDS", "LIBRARY_EVENT", "LIBRARY_PIPES", "AddressSpaceAttr", "AlignKindAttr", "AtomicKindAttr", "AxisKindAttr",
    "CacheModifierAttr", "CompareModeAttr", "CoreTypeAttr", "CoreTypeMarkerAttr", "DCCIModeAttr", "DataCacheKindAttr",
    "DeinterleaveModeAttr", "DescaleModeAttr", "EventAttr", "EvictionPolicyAttr", "FixpipeDMAModeAttr",
    "FixpipeDualDstModeAttr", "FixpipePreQuantModeAttr", "FixpipePreReluModeAttr", "FixpipeSubBlockAttr", "FuncCoreTypeAttr",
    "InlineModeAttr", "IteratorTypeAttr", "MemoryEffectAttr", "ModuleCoreTypeAttr", "PadModeAttr", "PaddingOptionAttr",
    "PipeAttr", "ReduceOpAttr", "RoundModeAttr", "SimtMemScopeHintAttr", "SubBlockAttr", "SyncBlockInstrModeAttr",
    "SyncBlockModeAttr", "TypeFnAttr", "UnitFlagAttr", "UnsignedModeAttr", "VFModeAttr",
]


class AddressSpaceAttr(EnumAttr, name="hivm.address_space",
                       cases={"zero": 0, "gm": 1, "cbuf": 2, "ca": 3, "cb": 4, "cc": 5, "ub": 6, "ssbuf": 11}):
    """The memory of a buffer: gm, cbuf (L1), ca (L0A), cb (L0B), cc (L0C), ub."""


class PipeAttr(EnumAttr, name="hivm.pipe", prefix="PIPE_",
               cases={"PIPE_S": 0, "PIPE_V": 1, "PIPE_M": 2, "PIPE_MTE1": 3, "PIPE_MTE2": 4, "PIPE_MTE3": 5, "PIPE_ALL": 6,
                      "PIPE_MTE4": 7, "PIPE_MTE5": 8, "PIPE_V2": 9, "PIPE_FIX": 10, "VIRTUAL_PIPE_MTE2_L1A": 11,
                      "VIRTUAL_PIPE_MTE2_L1B": 12, "PIPE_NUM": 13, "PIPE_UNASSIGNED": 99}):
    """An in-order instruction queue of a core."""


EVENT_IDS = 8  # HIVMAttrs.td, HIVM_EVENT_ID
LIBRARY_EVENT = 7  # lib/Template/include/Utils.h, LIB_EVENT_ID0
"""The event that the toolchain's device library sets and waits for inside its functions."""
LIBRARY_PIPES = frozenset({
    ("FIX", "M"), ("M", "FIX"), ("MTE1", "M"), ("MTE2", "S"), ("MTE2", "V"), ("MTE3", "S"), ("S", "MTE2"), ("S", "MTE3"),
    ("S", "V"), ("V", "MTE2"), ("V", "MTE3"), ("V", "S")})
"""The pairs of pipes between which the device library uses that event (``lib/Template``)."""


class EventAttr(EnumAttr, name="hivm.event", prefix="EVENT_ID",
                cases={f"EVENT_ID{number}": number for number in range(EVENT_IDS)}):
    """One of the eight events between two pipes of a core."""


class FuncCoreTypeAttr(EnumAttr, name="hivm.func_core_type", cases="AIC AIV MIX AIC_OR_AIV", start=1):
    """The core a function runs on."""


class ModuleCoreTypeAttr(EnumAttr, name="hivm.module_core_type", cases="AIC AIV MIX", start=1):
    """The cores the functions of a module run on."""


class CoreTypeAttr(EnumAttr, name="hivm.tcore_type", cases="CUBE VECTOR CUBE_OR_VECTOR CUBE_AND_VECTOR", start=1):
    """The core an op runs on."""


class CoreTypeMarkerAttr(EnumAttr, name="hivm.tcore_type_marker", cases="CUBE VECTOR CUBE_OR_VECTOR CUBE_AND_VECTOR", start=1):
    """The core an op runs on, as a mark on an op."""


class PadModeAttr(EnumAttr, name="hivm.padmode", cases="PadNull PadFirstElem PadValue"):
    """The value with which a load pads."""


class RoundModeAttr(EnumAttr, name="hivm.round_mode", cases="rint round floor ceil trunc odd truncwithoverflow"):
    """The rounding mode of a cast."""


class TypeFnAttr(EnumAttr, name="hivm.cast", cases="cast_signed cast_unsigned bitcast"):
    """Whether a cast treats integers as signed."""


class UnsignedModeAttr(EnumAttr, name="hivm.unsigned_mode", cases="si2si si2ui ui2si ui2ui"):
    """The signedness of the source and the destination of a cast."""


class CompareModeAttr(EnumAttr, name="hivm.compare_mode", cases="eq ne lt gt ge le"):
    """The relation that vcmp tests."""


class ReduceOpAttr(EnumAttr, name="hivm.reduce_op",
                   cases="none sum prod max min max_with_index_left max_with_index_right min_with_index_left "
                         "min_with_index_right max_with_index min_with_index any all xori ori andi"):
    """The operation with which vreduce combines elements."""


class AtomicKindAttr(EnumAttr, name="hivm.atomic_kind",
                     cases={"none": 0, "add": 1, "max": 2, "min": 3, "and": 4, "or": 5, "xor": 6, "umax": 9, "umin": 10}):
    """The operation of an atomic store or read-modify-write."""


class UnitFlagAttr(EnumAttr, name="hivm.unit_flag", cases="DISABLED RESERVED ENABLED_WITHOUT_UPDATE ENABLED_WITH_UPDATE"):
    """How M hands blocks of L0C over to FIX without an event."""


class SyncBlockModeAttr(EnumAttr, name="hivm.sync_block_mode",
                        cases="ALL_CUBE ALL_VECTOR ALL_SUB_VECTOR BARRIER_CUBE BARRIER_VECTOR ALL"):
    """The cores that take part in a block barrier."""


class SyncBlockInstrModeAttr(EnumAttr, name="hivm.sync_block_instr_mode",
                             cases="INTER_BLOCK_SYNCHRONIZATION INTER_SUBBLOCK_SYNCHRONIZATION INTRA_BLOCK_SYNCHRONIZATION"):
    """The cores between which a block flag synchronises."""


class FixpipePreQuantModeAttr(EnumAttr, name="hivm.fixpipe_pre_quant_mode",
                              cases={"NO_QUANT": 0, "F322F16": 1, "S322I8": 9, "QF322F32_PRE": 15, "F322BF16": 16}):
    """Conversion on the way out of L0C."""


class FixpipePreReluModeAttr(EnumAttr, name="hivm.fixpipe_pre_relu_mode", cases="NO_RELU NORMAL_RELU LEAKY_RELU P_RELU"):
    """Activation on the way out of L0C."""


class FixpipeDMAModeAttr(EnumAttr, name="hivm.dma_mode", cases="nz2nd nz2dn normal"):
    """Layout change on the way out of L0C; ``normal`` keeps NZ."""


class FixpipeDualDstModeAttr(EnumAttr, name="hivm.fixpipe_dual_dst_mode", cases="NO_DUAL ROW_SPLIT COLUMN_SPLIT"):
    """How fixpipe splits a tile over the two vector cores (950)."""


class FixpipeSubBlockAttr(EnumAttr, name="hivm.fixpipe_sub_block", cases="sub_block_0 sub_block_1"):
    """The vector core that fixpipe writes to (950)."""


class DeinterleaveModeAttr(EnumAttr, name="hivm.deinterleave_mode",
                           cases={"CHANNEL_0": 0, "CHANNEL_1": 1, "ALL_CHANNELS": 999}):
    """The channels that vdeinterleave returns."""


class DescaleModeAttr(EnumAttr, name="hivm.descale_mode", cases="DescaleNull DescalePerChannel DescalePerTensor"):
    """Whether a global matmul descales per channel or per tensor."""


class AlignKindAttr(EnumAttr, name="hivm.align_kind", cases="align unaligned unknown"):
    """Whether an access is aligned, where that is known."""


class AxisKindAttr(EnumAttr, name="hivm.axis_kind", cases="first middle last"):
    """The position of an axis among the axes."""


class IteratorTypeAttr(EnumAttr, name="hivm.iterator_type",
                       cases={"parallel": 0, "broadcast": 1, "transpose": 2, "reduction": 3, "interleave": 4,
                              "deinterleave": 5, "inverse": 6, "pad": 7, "concat": 8, "gather": 9, "cumulative": 10,
                              "opaque": 99}):
    """How an op uses an axis."""


class DCCIModeAttr(EnumAttr, name="hivm.DCCIMode", cases="single_cache_line all_cache_lines"):
    """Whether dcci works on one line of the data cache or on all."""


class DataCacheKindAttr(EnumAttr, name="hivm.DataCacheKind", cases="all ub out atomic"):
    """The data cache that dcci works on."""


class EvictionPolicyAttr(EnumAttr, name="hivm.eviction_policy", cases="EvictNormal EvictFirst EvictLast", start=1):
    """How long L2 should keep a line."""


class CacheModifierAttr(EnumAttr, name="hivm.cache_modifier", cases="none ca cg wb cs wt cv", start=1):
    """The caches that an access goes through."""


class PaddingOptionAttr(EnumAttr, name="hivm.padding_option", cases="zero nan", start=1):
    """The value of an element that is out of bounds."""


class VFModeAttr(EnumAttr, name="hivm.vf_mode", cases="SIMD SIMT MIX"):
    """How a vector function runs (950)."""


class InlineModeAttr(EnumAttr, name="hivm.inline_mode", cases="always_inline no_inline"):
    """Whether a custom op's function is inlined."""


class MemoryEffectAttr(EnumAttr, name="hivm.memory_effect", cases="read write read_write"):
    """Whether a SIMT function reads or writes an argument."""


class SubBlockAttr(EnumAttr, name="hivm.sub_block", cases="x"):
    """Mapping of a loop over the vector cores of a block."""


class SimtMemScopeHintAttr(EnumAttr, name="hivm.simt_mem_scope_hint", cases=AddressSpaceAttr.CASES):
    """Memory of a SIMT function's argument."""


ENUMS: tuple[type[EnumAttr], ...] = (
    AddressSpaceAttr, PipeAttr, EventAttr, FuncCoreTypeAttr, ModuleCoreTypeAttr, CoreTypeAttr, CoreTypeMarkerAttr,
    PadModeAttr, RoundModeAttr, TypeFnAttr, UnsignedModeAttr, CompareModeAttr, ReduceOpAttr, AtomicKindAttr,
    UnitFlagAttr, SyncBlockModeAttr, SyncBlockInstrModeAttr, FixpipePreQuantModeAttr, FixpipePreReluModeAttr,
    FixpipeDMAModeAttr, FixpipeDualDstModeAttr, FixpipeSubBlockAttr, DeinterleaveModeAttr, DescaleModeAttr,
    AlignKindAttr, AxisKindAttr, IteratorTypeAttr, DCCIModeAttr, DataCacheKindAttr, EvictionPolicyAttr,
    CacheModifierAttr, PaddingOptionAttr, VFModeAttr, InlineModeAttr, MemoryEffectAttr, SubBlockAttr,
    SimtMemScopeHintAttr,
)
