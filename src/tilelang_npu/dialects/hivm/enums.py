"""The enum attributes of HIVM: ``#hivm.<mnemonic><case>`` (AscendNPU-IR master 52f96a13, HIVMAttrs.td).

The integers are those of the toolchain. ``atomic_kind`` leaves out CAS (7) and XCHG (8): AscendNPU-IR spells them ``or`` and
``xor``, like two other cases, so no text can name them.
"""

from __future__ import annotations

from typing import Literal

from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr
from tilelang_npu.target.chip_data import CoreKind, FunctionCore, Pipe, PipeName, Space

__all__ = [
    "CORE_OF_TYPE", "EVENT_IDS", "LIBRARY_EVENT", "LIBRARY_PIPES", "AddressSpaceAttr", "AlignKindAttr", "AtomicKindAttr",
    "AxisKindAttr", "CacheModifierAttr", "CompareModeAttr", "CoreType", "CoreTypeAttr", "CoreTypeMarkerAttr", "DCCIModeAttr",
    "DataCacheKindAttr",
    "DeinterleaveModeAttr", "DescaleModeAttr", "EventAttr", "EvictionPolicyAttr", "FixpipeDMAModeAttr",
    "FixpipeDualDstModeAttr", "FixpipePreQuantModeAttr", "FixpipePreReluModeAttr", "FixpipeSubBlockAttr", "FuncCoreTypeAttr",
    "InlineModeAttr", "IteratorTypeAttr", "MemoryEffectAttr", "ModuleCoreTypeAttr", "PadModeAttr", "PaddingOptionAttr",
    "PipeAttr", "ReduceOpAttr", "RoundModeAttr", "SimtMemScopeHintAttr", "SubBlockAttr", "SyncBlockInstrModeAttr",
    "SyncBlockModeAttr", "TypeFnAttr", "UnitFlagAttr", "UnsignedModeAttr", "VFModeAttr",
]


class AddressSpaceAttr(EnumAttr[Space], attr_name="hivm.address_space",
                       cases={"zero": 0, "gm": 1, "cbuf": 2, "ca": 3, "cb": 4, "cc": 5, "ub": 6, "ssbuf": 11}):
    """The memory of a buffer: gm, cbuf (L1), ca (L0A), cb (L0B), cc (L0C), ub."""


class PipeAttr(EnumAttr[PipeName], attr_name="hivm.pipe", prefix="PIPE_",
               cases={"PIPE_S": 0, "PIPE_V": 1, "PIPE_M": 2, "PIPE_MTE1": 3, "PIPE_MTE2": 4, "PIPE_MTE3": 5, "PIPE_ALL": 6,
                      "PIPE_MTE4": 7, "PIPE_MTE5": 8, "PIPE_V2": 9, "PIPE_FIX": 10, "VIRTUAL_PIPE_MTE2_L1A": 11,
                      "VIRTUAL_PIPE_MTE2_L1B": 12, "PIPE_NUM": 13, "PIPE_UNASSIGNED": 99}):
    """An in-order instruction queue of a core."""


EVENT_IDS = 8  # HIVMAttrs.td, HIVM_EVENT_ID
LIBRARY_EVENT = 7  # lib/Template/include/Utils.h, LIB_EVENT_ID0
"""The number of the event that the functions of the toolchain's device library set and wait for internally."""
LIBRARY_PIPES: frozenset[tuple[Pipe, Pipe]] = frozenset({
    ("FIX", "M"), ("M", "FIX"), ("MTE1", "M"), ("MTE2", "S"), ("MTE2", "V"), ("MTE3", "S"), ("S", "MTE2"), ("S", "MTE3"),
    ("S", "V"), ("V", "MTE2"), ("V", "MTE3"), ("V", "S")})
"""The pairs (setting pipe, waiting pipe) for which the device library uses ``LIBRARY_EVENT`` (``lib/Template``)."""


class EventAttr(EnumAttr, attr_name="hivm.event", prefix="EVENT_ID",
                cases={f"EVENT_ID{number}": number for number in range(EVENT_IDS)}):
    """One of the eight events of a pair of pipes of a core, by which one pipe waits for the other."""


CoreType = Literal["CUBE", "VECTOR", "CUBE_OR_VECTOR", "CUBE_AND_VECTOR"]
"""The kinds of cores that execute an op, as HIVM spells them."""
CORE_OF_TYPE: dict[CoreType, CoreKind] = {"CUBE": "AIC", "VECTOR": "AIV"}


class FuncCoreTypeAttr(EnumAttr[FunctionCore], attr_name="hivm.func_core_type", cases="AIC AIV MIX AIC_OR_AIV", start=1):
    """The kind of core that executes a function."""


class ModuleCoreTypeAttr(EnumAttr, attr_name="hivm.module_core_type", cases="AIC AIV MIX", start=1):
    """The kinds of cores that execute the functions of a module."""


class CoreTypeAttr(EnumAttr[CoreType], attr_name="hivm.tcore_type",
                   cases="CUBE VECTOR CUBE_OR_VECTOR CUBE_AND_VECTOR", start=1):
    """The kind of core that executes an op, as a property of the op."""


class CoreTypeMarkerAttr(EnumAttr, attr_name="hivm.tcore_type_marker",
                         cases="CUBE VECTOR CUBE_OR_VECTOR CUBE_AND_VECTOR", start=1):
    """The kind of core that executes an op, as an attribute that a pass attaches to the op."""


class PadModeAttr(EnumAttr, attr_name="hivm.padmode", cases="PadNull PadFirstElem PadValue"):
    """Whether a load or a copy pads, and if so with the first element or with a given value."""


class RoundModeAttr(EnumAttr, attr_name="hivm.round_mode", cases="rint round floor ceil trunc odd truncwithoverflow"):
    """The rounding mode of a cast."""


class TypeFnAttr(EnumAttr, attr_name="hivm.cast", cases="cast_signed cast_unsigned bitcast"):
    """Whether a cast treats integers as signed or as unsigned, or reinterprets the bits."""


class UnsignedModeAttr(EnumAttr, attr_name="hivm.unsigned_mode", cases="si2si si2ui ui2si ui2ui"):
    """The signedness of the source and the destination of a cast."""


class CompareModeAttr(EnumAttr, attr_name="hivm.compare_mode", cases="eq ne lt gt ge le"):
    """The relation that vcmp tests."""


class ReduceOpAttr(EnumAttr, attr_name="hivm.reduce_op",
                   cases="none sum prod max min max_with_index_left max_with_index_right min_with_index_left "
                         "min_with_index_right max_with_index min_with_index any all xori ori andi"):
    """The operation with which vreduce combines elements."""


class AtomicKindAttr(EnumAttr, attr_name="hivm.atomic_kind",
                     cases={"none": 0, "add": 1, "max": 2, "min": 3, "and": 4, "or": 5, "xor": 6, "umax": 9, "umin": 10}):
    """The operation of an atomic store or read-modify-write."""


class UnitFlagAttr(EnumAttr, attr_name="hivm.unit_flag", cases="DISABLED RESERVED ENABLED_WITHOUT_UPDATE ENABLED_WITH_UPDATE"):
    """The mode in which pipe M passes blocks of L0C to pipe FIX by unit flags, without an event."""


class SyncBlockModeAttr(EnumAttr, attr_name="hivm.sync_block_mode",
                        cases="ALL_CUBE ALL_VECTOR ALL_SUB_VECTOR BARRIER_CUBE BARRIER_VECTOR ALL"):
    """The cores that take part in a ``sync_block`` barrier."""


class SyncBlockInstrModeAttr(EnumAttr, attr_name="hivm.sync_block_instr_mode",
                             cases="INTER_BLOCK_SYNCHRONIZATION INTER_SUBBLOCK_SYNCHRONIZATION INTRA_BLOCK_SYNCHRONIZATION"):
    """Which cores a flag between cores synchronises: those of all blocks, the Vector cores of a block, or those of a block."""


class FixpipePreQuantModeAttr(EnumAttr, attr_name="hivm.fixpipe_pre_quant_mode",
                              cases={"NO_QUANT": 0, "F322F16": 1, "S322I8": 9, "QF322F32_PRE": 15, "F322BF16": 16}):
    """The type conversion that fixpipe applies to elements of L0C, from the first to the second type in the word."""


class FixpipePreReluModeAttr(EnumAttr, attr_name="hivm.fixpipe_pre_relu_mode", cases="NO_RELU NORMAL_RELU LEAKY_RELU P_RELU"):
    """The activation function that fixpipe applies to elements of L0C."""


class FixpipeDMAModeAttr(EnumAttr, attr_name="hivm.dma_mode", cases="nz2nd nz2dn normal"):
    """The layout in which fixpipe writes a matrix: rows (``nz2nd``), columns (``nz2dn``), or fractal blocks (``normal``)."""


class FixpipeDualDstModeAttr(EnumAttr, attr_name="hivm.fixpipe_dual_dst_mode", cases="NO_DUAL ROW_SPLIT COLUMN_SPLIT"):
    """How fixpipe splits a tile over the Vector cores of a block (950)."""


class FixpipeSubBlockAttr(EnumAttr, attr_name="hivm.fixpipe_sub_block",
                          cases=" ".join(f"sub_block_{core}" for core in range(8))):
    """The Vector core of a block to whose UB fixpipe writes (950).

    AscendNPU-IR has only the first two cases. The verifier of fixpipe rejects a Vector core that the chip does not have.
    """


class DeinterleaveModeAttr(EnumAttr, attr_name="hivm.deinterleave_mode",
                           cases={"CHANNEL_0": 0, "CHANNEL_1": 1, "ALL_CHANNELS": 999}):
    """The channels that vdeinterleave returns."""


class DescaleModeAttr(EnumAttr, attr_name="hivm.descale_mode", cases="DescaleNull DescalePerChannel DescalePerTensor"):
    """Whether a matmul on GM operands multiplies the product by one factor per channel, one per tensor, or none."""


class AlignKindAttr(EnumAttr, attr_name="hivm.align_kind", cases="align unaligned unknown"):
    """Whether an access is aligned, not aligned, or of unknown alignment."""


class AxisKindAttr(EnumAttr, attr_name="hivm.axis_kind", cases="first middle last"):
    """Whether an axis is the first, the last, or another axis."""


class IteratorTypeAttr(EnumAttr, attr_name="hivm.iterator_type",
                       cases={"parallel": 0, "broadcast": 1, "transpose": 2, "reduction": 3, "interleave": 4,
                              "deinterleave": 5, "inverse": 6, "pad": 7, "concat": 8, "gather": 9, "cumulative": 10,
                              "opaque": 99}):
    """How an op uses an axis of its operands: in parallel, as the axis of a reduction, as that of a broadcast, and so on."""


class DCCIModeAttr(EnumAttr, attr_name="hivm.DCCIMode", cases="single_cache_line all_cache_lines"):
    """Whether ``dcci`` cleans and invalidates one line of the data cache or all lines."""


class DataCacheKindAttr(EnumAttr, attr_name="hivm.DataCacheKind", cases="all ub out atomic"):
    """The data cache that ``dcci`` cleans and invalidates."""


class EvictionPolicyAttr(EnumAttr, attr_name="hivm.eviction_policy", cases="EvictNormal EvictFirst EvictLast", start=1):
    """Whether L2 should evict a line of the access first, last, or by the normal policy."""


class CacheModifierAttr(EnumAttr, attr_name="hivm.cache_modifier", cases="none ca cg wb cs wt cv", start=1):
    """The cache levels that a load or store uses, in the words of PTX's cache operators."""


class PaddingOptionAttr(EnumAttr, attr_name="hivm.padding_option", cases="zero nan", start=1):
    """The value that a load yields for an element that is out of bounds: zero or NaN."""


class VFModeAttr(EnumAttr, attr_name="hivm.vf_mode", cases="SIMD SIMT MIX"):
    """Whether a vector function of a 950 runs in SIMD mode, in SIMT mode, or in both."""


class InlineModeAttr(EnumAttr, attr_name="hivm.inline_mode", cases="always_inline no_inline"):
    """Whether the device function of a custom op is always or never inlined."""


class MemoryEffectAttr(EnumAttr, attr_name="hivm.memory_effect", cases="read write read_write"):
    """Whether a SIMT function reads or writes an argument."""


class SubBlockAttr(EnumAttr, attr_name="hivm.sub_block", cases="x"):
    """Maps the iterations of a loop to the Vector cores of a block."""


class SimtMemScopeHintAttr(EnumAttr, attr_name="hivm.simt_mem_scope_hint", cases=AddressSpaceAttr.CASES):
    """The memory that holds an argument of a SIMT function, as a hint."""


ENUMS: tuple[type[EnumAttr[FunctionCore] | EnumAttr[CoreType] | EnumAttr[PipeName] | EnumAttr[Space] | EnumAttr], ...] = (
    AddressSpaceAttr, PipeAttr, EventAttr, FuncCoreTypeAttr, ModuleCoreTypeAttr, CoreTypeAttr, CoreTypeMarkerAttr,
    PadModeAttr, RoundModeAttr, TypeFnAttr, UnsignedModeAttr, CompareModeAttr, ReduceOpAttr, AtomicKindAttr,
    UnitFlagAttr, SyncBlockModeAttr, SyncBlockInstrModeAttr, FixpipePreQuantModeAttr, FixpipePreReluModeAttr,
    FixpipeDMAModeAttr, FixpipeDualDstModeAttr, FixpipeSubBlockAttr, DeinterleaveModeAttr, DescaleModeAttr,
    AlignKindAttr, AxisKindAttr, IteratorTypeAttr, DCCIModeAttr, DataCacheKindAttr, EvictionPolicyAttr,
    CacheModifierAttr, PaddingOptionAttr, VFModeAttr, InlineModeAttr, MemoryEffectAttr, SubBlockAttr,
    SimtMemScopeHintAttr,
)
