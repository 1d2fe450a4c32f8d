"""Lowering of structured calls: the HIVM op of the entry, or a custom op whose symbol is the entry's name; debug output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import DenseArrayBase, IndexType, MemRefType, StringAttr, i64
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.remarks import Remark, Waits, set_remark
from tilelang_npu.dialects.tile.calls import Fact
from tilelang_npu.ops import dtype
from tilelang_npu.target import name_of
from tilelang_npu.transforms.ir.cores import CORE, core_of, core_type
from tilelang_npu.transforms.ir.locations import refuse
from tilelang_npu.transforms.lower.said import say_core
from tilelang_npu.transforms.lower.views import materialise

if TYPE_CHECKING:
    from tilelang_npu.transforms.lower.lower_to_hivm import KernelLowering

Values = list[SSAValue]
_I32, _I64 = dtype("int32"), dtype("int64")


def _pad(lowering: KernelLowering, ins: Values, outs: Values, facts: dict[str, Fact]) -> Operation:
    source, value, *widths = ins
    known: list[int | SSAValue] = []
    for width in widths:
        constant = lowering.emit.ranges.constant(width)
        known.append(width if constant is None else constant)
    rank = len(known) // 2
    return hivm.VPadOp(source, outs[0], value, known[:rank], known[rank:])


def _arange(lowering: KernelLowering, ins: Values, outs: Values, facts: dict[str, Fact]) -> Operation:
    return hivm.VArangeOp(outs[0], ins[1:], offset=ins[0])


_Builder = Callable[["KernelLowering", Values, Values, dict[str, Any]], Operation]
_BUILDERS: dict[str, _Builder] = {
    "vgather": lambda low, ins, outs, facts: hivm.VGatherOp(ins[0], ins[1], outs[0]),
    "vtranspose": lambda low, ins, outs, facts: hivm.VTransposeOp(ins[0], outs[0], facts["permutation"]),
    "vreduce": lambda low, ins, outs, facts: hivm.VReduceOp(ins[0], outs, facts["mode"], dims=[facts["dim"]]),
    "vcumsum": lambda low, ins, outs, facts: hivm.VCumsumOp(ins[0], outs[0], dims=[facts["dim"]],
                                                            reverse=bool(facts.get("reverse"))),
    "varange": _arange,
    "vinterleave": lambda low, ins, outs, facts: hivm.VInterleaveOp(ins, outs[0]),
    "vdeinterleave": lambda low, ins, outs, facts: hivm.VDeinterleaveOp(ins[0], outs, mode=facts["index_mode"]),
    "vconcat": lambda low, ins, outs, facts: hivm.VConcatOp(ins, outs[0], facts["dim"]),
    "vpad": _pad,
    "vflip": lambda low, ins, outs, facts: hivm.VFlipOp(ins[0], outs[0], facts["axis"]),
}


def lower_call(lowering: KernelLowering, op: tile.CallOp) -> None:
    """One HIVM op."""
    emit, entry, facts = lowering.emit, op.entry(), op.facts()

    def lowered(value: SSAValue) -> SSAValue:
        if isinstance(value.type, MemRefType):
            return materialise(emit, lowering.view(value), op)
        return lowering.values[value]

    ins, outs = [lowered(value) for value in op.inputs], [lowered(value) for value in op.outputs]
    if entry.hivm != "custom":
        emit.insert(_BUILDERS[entry.hivm](lowering, ins, outs, facts))
        return
    emit.insert(hivm.CustomOp(entry.name, ins, outs, core=core_type(core_of(op)), pipe=entry.pipe,
                              symbol=entry.name, attributes={n: a for n, a in op.attributes.items() if n != CORE}))


def lower_print(lowering: KernelLowering, op: tile.PrintOp) -> None:
    """``hivm.hir.debug`` of a scalar or a buffer."""
    value = op.value
    if isinstance(value.type, MemRefType):
        place = materialise(lowering.emit, lowering.view(value), op)
    else:
        place = lowering.values[value]
        if isinstance(place.type, IndexType):
            place = lowering.scalar(place, lowering.type_of(_I32))
    made = hivm.DebugOp(place, prefix=op.prefix.data, hexadecimal=op.hexadecimal is not None)
    lowering.emit.insert(made)


def lower_printf(lowering: KernelLowering, op: tile.PrintfOp) -> None:
    """A custom op with the format, for whichever core comes by."""
    lowering.emit.insert(hivm.CustomOp("printf", _numbers(lowering, op.values), [], core="CUBE_OR_VECTOR", pipe="S",
                                       symbol="printf", attributes={"format": op.format}))


def _numbers(lowering: KernelLowering, values: Sequence[SSAValue]) -> Values:
    found = [lowering.values[value] for value in values]
    return [lowering.scalar(value, lowering.type_of(_I64)) if isinstance(value.type, IndexType) else value for value in found]


def lower_dump(lowering: KernelLowering, op: tile.DumpOp) -> None:
    """A custom op of the core that has the memory; of whichever comes by for global tensors. AscendC's DumpTensor has a barrier
    of all pipes on either side of what it moves."""
    view = lowering.view(op.value)
    if view.buffer.fractal and not view.covers:
        raise refuse(op, f"a part of {view.buffer.label} in {name_of(view.buffer.space)} cannot be printed", "T190",
                     help="print the whole buffer")
    core = core_of(op)
    shape = [size if isinstance(size, int) else -1 for size in view.shape]
    facts = {"desc": op.desc, "count": op.count, "shape": op.shape, "held": DenseArrayBase.from_list(i64, shape),
             "place": StringAttr(name_of(view.buffer.space))}
    source = materialise(lowering.emit, view, op)
    made = [hivm.PipeBarrierOp("ALL"),
            hivm.CustomOp("dump_tensor", [source], [], core=core_type(core), pipe="S", symbol="dump_tensor", attributes=facts),
            hivm.PipeBarrierOp("ALL")]
    for each in made:
        lowering.emit.insert(each)
        if isinstance(each, hivm.PipeBarrierOp):
            set_remark(each, Remark("lower-to-hivm", text="T.dump_tensor waits for all that is before and behind it",
                                facts=Waits(source="ALL", target="ALL")))
        if core != "either" and isinstance(each, hivm.PipeBarrierOp):
            say_core(each, core, lowering.chip)


def lower_cache(lowering: KernelLowering, op: hivm.DCCIOp) -> None:
    """The same op on the tensor's memref."""
    assert op.ptr is not None
    place = materialise(lowering.emit, lowering.view(op.ptr), op)
    lowering.emit.insert(hivm.DCCIOp(op.mode.data, op.dataCacheKind.data, place))


__all__ = ["lower_cache", "lower_call", "lower_dump", "lower_print", "lower_printf"]
