"""Patterns that lower calls of structured operations, debug output and cache operations to HIVM."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IndexType, MemRefType, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tilelang_npu.analysis.cores import CORE, core_of, core_type
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.remarks import Remark, Waits, set_remark
from tilelang_npu.ops import MemoryMove, dtype
from tilelang_npu.target import GM, name_of
from tilelang_npu.target.chip_data import OpCore
from tilelang_npu.transforms.infra.patterns import insert_for
from tilelang_npu.transforms.lower.core_attributes import write_core
from tilelang_npu.transforms.lower.views import materialise

if TYPE_CHECKING:
    from tilelang_npu.transforms.lower.lower_to_hivm import KernelLowering

Values = Sequence[SSAValue]
Facts = Mapping[str, Any]
_I32, _I64 = dtype("int32"), dtype("int64")


class LoweringPattern(RewritePattern):
    """The base class of the patterns that lower an operation of the tile dialect to HIVM.

    A pattern inserts operations into a new function, at the rewriter's insertion point, which is the end of the current block
    of the new function. The pattern must not erase the matched operation: the old function is erased as a whole afterwards.

    Attributes:
        lowering: the lowering of the kernel; it maps values and buffers of the old function to the new one.
    """

    def __init__(self, lowering: KernelLowering) -> None:
        self.lowering = lowering

    def lowered(self, op: Operation, value: SSAValue) -> SSAValue:
        """Returns the value of the new function for an operand: for a buffer or a slice a memref, otherwise the lowered scalar.
        """
        if isinstance(value.type, MemRefType):
            return materialise(self.lowering.emit, self.lowering.view(value), op)
        return self.lowering.values[value]

    def lowered_operands(self, op: tile.CallOp) -> tuple[Values, Values]:
        """Returns the lowered inputs and the lowered outputs of a call.

        Raises:
            TileError: T201, the operation moves data along a path that the chip does not have, or an operand is not in the
                memory at which the path begins or ends.
        """
        if isinstance(entry := op.entry(), MemoryMove):
            self._check_path(op, entry)
        return [self.lowered(op, value) for value in op.inputs], [self.lowered(op, value) for value in op.outputs]

    def _check_path(self, op: tile.CallOp, entry: MemoryMove) -> None:
        chip, view_of = self.lowering.chip, self.lowering.view
        if entry.path not in chip.paths:
            raise refuse(op, f"{entry.name} needs the path {entry.path}, which {chip.name} does not have", "T201",
                         help="compile for a chip that has it, or move the data with T.copy")
        path = entry.path_row
        for values, space in ((op.inputs, GM if entry.is_in_gm("inputs") else path.source),
                              (op.outputs, GM if entry.is_in_gm("outputs") else path.target)):
            for value in values:
                if isinstance(value.type, MemRefType) and (found := view_of(value).buffer.space) != space:
                    raise refuse(op, f"{view_of(value).buffer.label} is in {name_of(found)}, and {entry.name} moves data from "
                                 f"{name_of(path.source)} to {name_of(path.target)}", "T201", help="T.copy it there first")


class CallPattern(LoweringPattern):
    """The base class of the patterns that lower a call of a structured operation to an HIVM operation of a known class.

    Attributes:
        mnemonic: the name of the HIVM operation. The pattern matches calls of operations whose entry in the op table has this
            name.
    """

    mnemonic: ClassVar[str]

    @abstractmethod
    def build(self, inputs: Values, outputs: Values, facts: Facts) -> Operation:
        """Returns the HIVM operation for a call.

        Args:
            inputs: the lowered inputs.
            outputs: the lowered outputs.
            facts: the attributes of the call, as Python values by name.
        """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.CallOp, rewriter: PatternRewriter) -> None:
        if op.entry().hivm == self.mnemonic:
            inputs, outputs = self.lowered_operands(op)
            insert_for(op, self.build(inputs, outputs, op.facts()), rewriter)


class LowerGather(CallPattern):
    """Lowers a gather of elements along the last axis.

    ::

        tile.call "gather" ins(%x, %indices) outs(%y)
        -> hivm.hir.vgather ins(%x) indices(%indices) outs(%y)
    """

    mnemonic = "vgather"

    def build(self, inputs: Values, outputs: Values, facts: Facts) -> Operation:
        return hivm.VGatherOp(inputs[0], inputs[1], outputs[0])


class LowerTranspose(CallPattern):
    """Lowers a transposition of two axes.

    ::

        tile.call "transpose" ins(%x) outs(%y) {permutation = [1, 0]}
        -> hivm.hir.vtranspose ins(%x) outs(%y) permutation = [1, 0]
    """

    mnemonic = "vtranspose"

    def build(self, inputs: Values, outputs: Values, facts: Facts) -> Operation:
        return hivm.VTransposeOp(inputs[0], outputs[0], facts["permutation"])


class LowerIndexedReduction(CallPattern):
    """Lowers a reduction that returns the reduced values and their indices (argmax, argmin).

    ::

        tile.call "reduce_with_index" ins(%x) outs(%y, %index) {dim = 1, mode = "max_with_index_left"}
        -> hivm.hir.vreduce <max_with_index_left> ins(%x) outs(%y, %index) reduce_dims = [1]
    """

    mnemonic = "vreduce"

    def build(self, inputs: Values, outputs: Values, facts: Facts) -> Operation:
        return hivm.VReduceOp(inputs[0], outputs, facts["mode"], dims=[facts["dim"]])


class LowerCumulative(CallPattern):
    """The base of the patterns that lower a running sum or maximum along an axis.

    Attributes:
        op: the class of the operation in HIVM.
    """

    op: ClassVar[type[hivm.VCumsumOp | hivm.VCummaxOp]]

    def build(self, inputs: Values, outputs: Values, facts: Facts) -> Operation:
        return self.op(inputs[0], outputs[0], dims=[facts["dim"]], reverse=bool(facts.get("reverse")))


class LowerCumulativeSum(LowerCumulative):
    """Lowers a cumulative sum along an axis.

    ::

        tile.call "cumsum" ins(%x) outs(%y) {dim = 1}
        -> hivm.hir.vcumsum ins(%x) outs(%y) cum_dims = [1] reverse = false
    """

    mnemonic = "vcumsum"
    op = hivm.VCumsumOp


class LowerCumulativeMaximum(LowerCumulative):
    """Lowers a cumulative maximum along an axis.

    ::

        tile.call "cummax" ins(%x) outs(%y) {dim = 1}
        -> hivm.hir.vcummax ins(%x) outs(%y) cum_dims = [1] reverse = false
    """

    mnemonic = "vcummax"
    op = hivm.VCummaxOp


class LowerArange(CallPattern):
    """Lowers an arithmetic progression, which has an offset and a stride for each axis.

    ::

        tile.call "arange" ins(%offset, %stride) outs(%y)
        -> hivm.hir.varange offset[%offset] strides[%stride] outs(%y)
    """

    mnemonic = "varange"

    def build(self, inputs: Values, outputs: Values, facts: Facts) -> Operation:
        return hivm.VArangeOp(outputs[0], inputs[1:], offset=inputs[0])


class LowerInterleave(CallPattern):
    """Lowers an interleaving of channels along the last axis.

    ::

        tile.call "interleave" ins(%even, %odd) outs(%y)
        -> hivm.hir.vinterleave ins(%even, %odd) outs(%y) interleave_channel_nums = 2
    """

    mnemonic = "vinterleave"

    def build(self, inputs: Values, outputs: Values, facts: Facts) -> Operation:
        return hivm.VInterleaveOp(inputs, outputs[0])


class LowerDeinterleave(CallPattern):
    """Lowers a split of the last axis into channels.

    ::

        tile.call "deinterleave" ins(%x) outs(%even, %odd) {index_mode = "ALL_CHANNELS"}
        -> hivm.hir.vdeinterleave ins(%x) outs(%even, %odd) index_mode = <ALL_CHANNELS>
    """

    mnemonic = "vdeinterleave"

    def build(self, inputs: Values, outputs: Values, facts: Facts) -> Operation:
        return hivm.VDeinterleaveOp(inputs[0], outputs, mode=facts["index_mode"])


class LowerConcat(CallPattern):
    """Lowers a concatenation along an axis.

    ::

        tile.call "concat" ins(%a, %b) outs(%y) {dim = 0}
        -> hivm.hir.vconcat dim(0) ins(%a, %b) outs(%y)
    """

    mnemonic = "vconcat"

    def build(self, inputs: Values, outputs: Values, facts: Facts) -> Operation:
        return hivm.VConcatOp(inputs, outputs[0], facts["dim"])


class LowerPad(CallPattern):
    """Lowers a padding with a value; the operands are the widths before each axis, followed by the widths after each axis.

    ::

        tile.call "pad" ins(%x, %value, %before, %after) outs(%y)
        -> hivm.hir.vpad ins(%x) outs(%y) low[%before] high[%after] pad_value %value
    """

    mnemonic = "vpad"

    def build(self, inputs: Values, outputs: Values, facts: Facts) -> Operation:
        source, value, *width_values = inputs
        widths: list[int | SSAValue] = []
        for width in width_values:
            constant = self.lowering.emit.ranges.constant(width)
            widths.append(width if constant is None else constant)
        rank = len(widths) // 2
        return hivm.VPadOp(source, outputs[0], value, widths[:rank], widths[rank:])


class LowerFlip(CallPattern):
    """Lowers a reversal of an axis.

    ::

        tile.call "flip" ins(%x) outs(%y) {axis = 1}
        -> hivm.hir.vflip ins(%x) outs(%y) flip_axis = 1
    """

    mnemonic = "vflip"

    def build(self, inputs: Values, outputs: Values, facts: Facts) -> Operation:
        return hivm.VFlipOp(inputs[0], outputs[0], facts["axis"])


class LowerSort(CallPattern):
    """Lowers a sort along the last axis, which also writes the positions that the elements had.

    ::

        tile.call "vsort" ins(%x) outs(%y, %places) {axis = 1, descending = true}
        -> hivm.hir.vsort ins(%x) outs(%y, %places) descending = true sort_axis = 1
    """

    mnemonic = "vsort"

    def build(self, inputs: Values, outputs: Values, facts: Facts) -> Operation:
        return hivm.VSortOp(inputs[0], outputs, descending=bool(facts.get("descending")), axis=facts["axis"])


class LowerCallByBuilder(LoweringPattern):
    """Lowers a call of an operation whose entry in the op table has a function ``build``, which returns the HIVM operation.

    ::

        tile.call "spread" ins(%x) outs(%y) {step = 2}
        -> the op that the entry's ``build`` returns for %x, %y and {step = 2}
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.CallOp, rewriter: PatternRewriter) -> None:
        entry = op.entry()
        if entry.build is not None and not entry.is_custom:
            inputs, outputs = self.lowered_operands(op)
            insert_for(op, entry.build(inputs, outputs, op.facts()), rewriter)


class LowerCallByEntry(LoweringPattern):
    """Lowers a call to the HIVM operation whose class was generated from the operation's entry in the op table.

    ::

        tile.call "spread" ins(%x) outs(%y) {step = 2}
        -> hivm.hir.spread ins(%x) outs(%y) {step = 2}
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.CallOp, rewriter: PatternRewriter) -> None:
        entry = op.entry()
        if entry.build is None and entry.hivm in hivm.STRUCTURED_CLASSES:
            inputs, outputs = self.lowered_operands(op)
            insert_for(op, hivm.structured_op(entry.hivm)(inputs, outputs, _attributes_of_call(op)), rewriter)


class LowerCustomCall(LoweringPattern):
    """Lowers a call of an operation that HIVM does not have to ``hivm.hir.custom``, which names the operation by a symbol.

    ::

        tile.call "sort" ins(%x, %n) outs(%y)
        -> hivm.hir.custom "sort" ins(%x, %n) outs(%y) {symbol = "sort"}
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.CallOp, rewriter: PatternRewriter) -> None:
        entry = op.entry()
        if entry.is_custom:
            inputs, outputs = self.lowered_operands(op)
            core = core_type(core_of(op))
            insert_for(op, hivm.CustomOp(entry.name, inputs, outputs, core=core, pipe=entry.pipe,
                                         symbol=entry.symbol or entry.name, vf_mode=self.lowering.vector_mode(core),
                                         attributes=_attributes_of_call(op)), rewriter)


def _attributes_of_call(op: tile.CallOp) -> dict[str, Attribute]:
    """Returns the attributes of a call without its core, which the lowered op has in its own form."""
    return {name: value for name, value in op.attributes.items() if name != CORE}


class LowerPrint(LoweringPattern):
    """Lowers a print of a scalar or a buffer; an index is printed as i32.

    ::

        tile.print "x = " %x
        -> hivm.hir.debug {prefix = "x = "} %x
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.PrintOp, rewriter: PatternRewriter) -> None:
        value = self.lowered(op, op.value)
        if isinstance(value.type, IndexType):
            value = self.lowering.scalar(value, self.lowering.type_of(_I32))
        insert_for(op, hivm.DebugOp(value, prefix=op.prefix.data, hexadecimal=op.hexadecimal is not None), rewriter)


class LowerPrintf(LoweringPattern):
    """Lowers a formatted print to a custom op that either core can execute; an index is printed as i64.

    ::

        tile.printf "%d" (%n)
        -> hivm.hir.custom "printf" ins(%n) {format = "%d", symbol = "printf"}
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.PrintfOp, rewriter: PatternRewriter) -> None:
        lowering = self.lowering
        values = [lowering.values[value] for value in op.values]
        numbers = [lowering.scalar(value, lowering.type_of(_I64)) if isinstance(value.type, IndexType) else value
                   for value in values]
        insert_for(op, hivm.CustomOp("printf", numbers, [], core="CUBE_OR_VECTOR", pipe="S", symbol="printf",
                                     vf_mode=lowering.vector_mode("CUBE_OR_VECTOR"),
                                     attributes={"format": op.format}), rewriter)


class LowerDump(LoweringPattern):
    """Lowers a dump of a buffer to ``hivm.hir.custom`` between barriers of all pipes, as in AscendC's DumpTensor.

    ::

        tile.dump %x desc 3 count 16 as [4, 4]
        -> pipe_barrier; hivm.hir.custom "dump_tensor" ins(%x) {desc = 3, count = 16, shape = [4, 4]}; pipe_barrier

    The operation runs on the core to which the buffer's memory belongs; either core can dump a global tensor.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.DumpOp, rewriter: PatternRewriter) -> None:
        """Replaces the dump by a custom operation between two barriers.

        Raises:
            TileError: T190, the operand is a slice of a buffer in L1 or L0C, which cannot be dumped.
        """
        lowering, view, core = self.lowering, self.lowering.view(op.value), core_of(op)
        memory = name_of(view.buffer.space)
        if view.buffer.fractal and not view.covers:
            raise refuse(op, f"a slice of {view.buffer.label} cannot be printed, because the buffer is in {memory}", "T190",
                         help="print the whole buffer")
        shape = [size if isinstance(size, int) else -1 for size in view.shape]
        attributes = {"desc": op.desc, "count": op.count, "shape": op.shape, "held": DenseArrayBase.from_list(i64, shape),
                      "place": StringAttr(memory)}
        source = materialise(lowering.emit, view, op)
        self._insert_barrier(op, core, rewriter)
        insert_for(op, hivm.CustomOp("dump_tensor", [source], [], core=core_type(core), pipe="S", symbol="dump_tensor",
                                     vf_mode=lowering.vector_mode(core_type(core)), attributes=attributes), rewriter)
        self._insert_barrier(op, core, rewriter)

    def _insert_barrier(self, op: tile.DumpOp, core: OpCore, rewriter: PatternRewriter) -> None:
        barrier = insert_for(op, hivm.PipeBarrierOp("ALL"), rewriter)
        set_remark(barrier, Remark("lower-to-hivm", facts=Waits(source="ALL", target="ALL"),
                                   text="T.dump_tensor waits for all earlier operations, and all later operations wait for "
                                        "T.dump_tensor"))
        if core != "either":
            write_core(barrier, core, self.lowering.chip)


class LowerSignal(LoweringPattern):
    """Lowers a signal between cards, or a wait for other cards, to a custom op of the scalar unit of the Vector core.

    ::

        tile.signal "shmem_signal_op" 1 (%word, %n, %card)
        -> hivm.hir.custom "shmem_signal_op" ins(%word, %n, %card) {how = 1, symbol = "shmem_signal_op"}
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.SignalOp, rewriter: PatternRewriter) -> None:
        lowering = self.lowering
        values = [self.lowered(op, value) for value in op.values]
        values = [lowering.scalar(value, lowering.type_of(_I64)) if isinstance(value.type, IndexType) else value
                  for value in values]
        insert_for(op, hivm.CustomOp(op.fn.data, values, [], core="VECTOR", pipe="S", symbol=op.fn.data,
                                     vf_mode=lowering.vector_mode("VECTOR"), attributes={"how": op.how}), rewriter)


class LowerScratch(LoweringPattern):
    """Lowers the author's scratch memory of an operation to a custom op that has it as a temporary buffer.

    ::

        tile.scratch %tmp
        -> hivm.hir.custom "scratch" tmps(%tmp) {symbol = "scratch"}

    The device function does nothing: it marks the library's use of the bytes.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.ScratchOp, rewriter: PatternRewriter) -> None:
        core = core_type(core_of(op))
        insert_for(op, hivm.CustomOp("scratch", temp_buffers=[self.lowered(op, op.temp_buffer)], core=core, pipe="V",
                                     symbol="scratch", vf_mode=self.lowering.vector_mode(core), no_side_effect=True), rewriter)


class LowerPatchLoad(LoweringPattern):
    """Lowers a load of patches of an image to L0A to a custom op, since HIVM has no op for it.

    ::

        tile.load_patches %image to %left at (%m, %k) [8, 8, 3, 3, ...]
        -> hivm.hir.custom "load_l0a_patches" ins(%image, %m, %k) outs(%left) {geometry = [8, 8, 3, 3, ...]}
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.PatchLoadOp, rewriter: PatternRewriter) -> None:
        lowering = self.lowering
        target = lowering.view(op.target)
        lowering.loaded_columns[target.buffer.value].append(target.shape[-1])
        starts = [lowering.scalar(self.lowered(op, value), lowering.type_of(_I64)) for value in (op.row, op.column)]
        insert_for(op, hivm.CustomOp(hivm.LOAD_PATCHES, [self.lowered(op, op.source), *starts], [self.lowered(op, op.target)],
                                     core="CUBE", pipe="MTE1", symbol=hivm.LOAD_PATCHES,
                                     attributes={"geometry": op.geometry}), rewriter)


class LowerCacheOperation(LoweringPattern):
    """Lowers a cache operation on a tensor to the same operation on the memref of the tensor.

    ::

        hivm.hir.dcci <mode> <kind> %X (the argument of the kernel in the tile dialect)
        -> hivm.hir.dcci <mode> <kind> %X (the memref of the lowered function)
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: hivm.DCCIOp, rewriter: PatternRewriter) -> None:
        assert op.ptr is not None
        insert_for(op, hivm.DCCIOp(op.mode.data, op.dataCacheKind.data, self.lowered(op, op.ptr)), rewriter)


PATTERNS: dict[type[Operation], tuple[type[LoweringPattern], ...]] = {
    tile.CallOp: (LowerCallByBuilder, LowerGather, LowerTranspose, LowerIndexedReduction, LowerCumulativeSum,
                  LowerCumulativeMaximum, LowerArange,
                  LowerInterleave, LowerDeinterleave, LowerConcat, LowerPad, LowerFlip, LowerSort, LowerCallByEntry,
                  LowerCustomCall),
    tile.PrintOp: (LowerPrint,),
    tile.PrintfOp: (LowerPrintf,),
    tile.DumpOp: (LowerDump,),
    tile.ScratchOp: (LowerScratch,),
    tile.SignalOp: (LowerSignal,),
    tile.PatchLoadOp: (LowerPatchLoad,),
    hivm.DCCIOp: (LowerCacheOperation,),
}
"""For each class of operations, the patterns that lower it, in the order in which they are tried."""


def lower_by_pattern(lowering: KernelLowering, op: Operation) -> None:
    """Lowers an operation with the first matching pattern of ``PATTERNS``; the operation's class must be a key of ``PATTERNS``.

    Raises:
        TileError: T290, no pattern lowers the operation.
    """
    rewriter = PatternRewriter(lowering.emit.point)
    patterns: list[RewritePattern] = [pattern(lowering) for pattern in PATTERNS[type(op)]]
    GreedyRewritePatternApplier(patterns, dce_enabled=False).match_and_rewrite(op, rewriter)
    if not rewriter.has_done_action:
        raise refuse(op, f"{op.name} has no lowering to HIVM", "T290")


__all__ = ["PATTERNS", "CallPattern", "LowerCacheOperation", "LowerCallByBuilder", "LowerCallByEntry", "LowerCustomCall",
           "LowerDump", "LowerPatchLoad", "LowerPrint", "LowerPrintf", "LowerScratch", "LoweringPattern", "lower_by_pattern"]
