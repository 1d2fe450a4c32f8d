"""Vector ops that pick, pair or split elements: interleave, gather, gather by mask, wide products."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
    var_result_def,
)

from tilelang_npu.dialects.hivm.enums import DeinterleaveModeAttr
from tilelang_npu.dialects.hivm.structured import (
    MEMREF,
    TENSOR,
    TENSOR_OR_MEMREF,
    StructuredOp,
    destination_style,
    dtypes,
    element_types,
    fail,
    results_for,
    same_element_type,
    same_rank,
)
from tilelang_npu.dialects.hivm.vector import FP8, INS_OUTS, INTEGERS, NUMBER, RESULT, TEMP
from tilelang_npu.dialects.ir.declaration import operation

Operand = SSAValue | Operation
_NO_BOOL = dtypes(*INTEGERS, "f16", "bf16", "f32", *FP8)
_CHANNELS = 2
_ALL = "ALL_CHANNELS"


@operation(pipes=("V",), core="AIV",
           rules=(destination_style, same_element_type, same_rank, element_types((0,), (*_NO_BOOL, *dtypes("i1")))))
class VInterleaveOp(StructuredOp):
    """Alternate the elements of two buffers: the last axis is twice as long."""

    name = "hivm.hir.vinterleave"
    src = var_operand_def()
    dst = operand_def(TENSOR_OR_MEMREF)
    temp_buffer = opt_operand_def(MEMREF)
    interleave_channel_nums = prop_def(NUMBER, default_value=IntegerAttr(_CHANNELS, i64))
    result = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = INS_OUTS + " `interleave_channel_nums` `=` $interleave_channel_nums" + TEMP + RESULT

    def __init__(self, src: Sequence[Operand], dst: Operand, *, temp_buffer: Operand | None = None) -> None:
        """Make the op from two sources."""
        IRDLOperation.__init__(self, operands=[list(src), dst, temp_buffer], result_types=[results_for(dst)],
                               properties={"interleave_channel_nums": IntegerAttr(len(src), i64)})

    def verify_(self) -> None:
        if len(self.src) != _CHANNELS or len(self.src) != self.interleave_channel_nums.value.data:
            fail("Only support interleave two tensor2")


@operation(pipes=("V",), core="AIV", rules=(destination_style, same_element_type, same_rank, element_types((0,), _NO_BOOL)))
class VDeinterleaveOp(StructuredOp):
    """Split a buffer into its elements at even and at odd places, or take one of the two."""

    name = "hivm.hir.vdeinterleave"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = var_operand_def(TENSOR_OR_MEMREF)
    channel_num = opt_prop_def(NUMBER, default_value=IntegerAttr(_CHANNELS, i64))
    index_mode = opt_prop_def(DeinterleaveModeAttr, default_value=DeinterleaveModeAttr(_ALL))
    result = var_result_def(TENSOR)
    assembly_format = INS_OUTS + " (`channel_num` `=` $channel_num^)? (`index_mode` `=` $index_mode^)?" + RESULT

    def __init__(self, src: Operand, dst: Operand | Sequence[Operand], *, mode: str = _ALL) -> None:
        """Make the op; ``mode`` is ``ALL_CHANNELS`` (two destinations), ``CHANNEL_0`` or ``CHANNEL_1`` (one)."""
        outs = [dst] if isinstance(dst, (SSAValue, Operation)) else list(dst)
        IRDLOperation.__init__(self, operands=[src, outs], result_types=[results_for(*outs)],
                               properties={"index_mode": None if mode == _ALL else DeinterleaveModeAttr(mode)})

    def verify_(self) -> None:
        if self.index_mode.data == _ALL:
            if len(self.dst) != self.channel_num.value.data:
                fail("output num mismatch with channel num")
        elif len(self.dst) != 1:
            fail("output num for CHANNEL_0 CHANNEL_1 should be one")


@operation(pipes=("V",), core="AIV", rules=(destination_style, same_rank, element_types((0,), dtypes("i16"))))
class VMulextendedOp(StructuredOp):
    """Low and high half of the 32-bit products of i16 elements."""

    name = "hivm.hir.vmulextended"
    src = var_operand_def(TENSOR_OR_MEMREF)
    dst = var_operand_def(TENSOR_OR_MEMREF)
    temp_buffer = opt_operand_def(MEMREF)
    result = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = INS_OUTS + TEMP + RESULT

    def __init__(self, src: Sequence[Operand], dst: Sequence[Operand], *, temp_buffer: Operand | None = None) -> None:
        """Make the op; ``dst`` is the low and the high half."""
        IRDLOperation.__init__(self, operands=[list(src), list(dst), temp_buffer], result_types=[results_for(*dst)])


@operation(pipes=("V",), core="AIV", rules=(
    destination_style, same_rank,
    element_types((0,), dtypes("i1", "i8", "i16", "ui16", "i32", "ui32", "f16", "bf16", "f32", *FP8)),
    element_types((1,), dtypes("i16", "i32"))), reads={"src": "src", "indices": "src"})
class VGatherOp(StructuredOp):
    """Take the elements at given indices of an axis."""

    name = "hivm.hir.vgather"
    src = operand_def(TENSOR_OR_MEMREF)
    indices = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    temp_buffer = opt_operand_def(MEMREF)
    gather_axis = opt_prop_def(NUMBER)
    result = var_result_def(TENSOR)
    assembly_format = (
        "attr-dict `ins` `(` $src `:` type($src) `)` `indices` `(` $indices `:` type($indices) `)`"
        " `outs` `(` $dst `:` type($dst) `)`" + TEMP + " (`gather_axis` `=` $gather_axis^)?" + RESULT
    )

    def __init__(self, src: Operand, indices: Operand, dst: Operand, *, axis: int | None = None,
                 temp_buffer: Operand | None = None) -> None:
        """Make the op; without ``axis`` it gathers along the last one."""
        IRDLOperation.__init__(self, operands=[src, indices, dst, temp_buffer], result_types=[results_for(dst)],
                               properties={"gather_axis": None if axis is None else IntegerAttr(axis, i64)})


@operation(pipes=("V",), core="AIV", rules=(
    destination_style, same_rank, element_types((0,), dtypes("i16", "ui16", "i32", "ui32", "f16", "bf16", "f32")),
    element_types((1,), dtypes("i1"))), reads={"src": "src", "mask": "src"})
class VGatherMaskOp(StructuredOp):
    """Pack the elements whose mask is set; a second destination takes their number."""

    name = "hivm.hir.vgathermask"
    src = operand_def(TENSOR_OR_MEMREF)
    mask = operand_def(TENSOR_OR_MEMREF)
    dst = var_operand_def(TENSOR_OR_MEMREF)
    result = var_result_def(TENSOR)
    assembly_format = (
        "attr-dict `ins` `(` $src `:` type($src) `)` `mask` `(` $mask `:` type($mask) `)`"
        " `outs` `(` $dst `:` type($dst) `)`" + RESULT
    )

    def __init__(self, src: Operand, mask: Operand, dst: Sequence[Operand]) -> None:
        """Make the op; ``dst`` is the packed elements and their number."""
        IRDLOperation.__init__(self, operands=[src, mask, list(dst)], result_types=[results_for(*dst)])


OPERATIONS = (VInterleaveOp, VDeinterleaveOp, VMulextendedOp, VGatherOp, VGatherMaskOp)
