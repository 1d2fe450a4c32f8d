"""Vector ops that change the shape or the order of data: broadcast, reduce, transpose, scan, sort, pad, gather, interleave.

PIPE_V of the Vector core executes all of them, except a broadcast into L1, which PIPE_MTE2 of the Cube core executes.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, IntegerType, ShapedType, i64
from xdsl.dialects.utils.dynamic_index_list import DynamicIndexList, split_dynamic_index_list
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    var_operand_def,
    var_result_def,
)

from tilelang_npu.dialects.hivm.attributes import boolean, integers, space_of
from tilelang_npu.dialects.hivm.enums import DeinterleaveModeAttr, ReduceOpAttr
from tilelang_npu.dialects.hivm.traits import (
    BOOL,
    FP8,
    I64_ARRAY,
    NO_AXES,
    NUMBER,
    axes,
    compatible,
    element_types,
    reject_unknown_fp8,
    same_element_type,
    same_rank,
    same_shape,
    shaped_types,
    temp_buffer_rank_one,
)
from tilelang_npu.dialects.ir.declaration import Operand, fail, group, operation
from tilelang_npu.dialects.ir.destination_style import (
    MEMREF,
    TENSOR,
    TENSOR_OR_MEMREF,
    StructuredOp,
    destination_style,
    results_for,
    shape_of,
)
from tilelang_npu.dialects.ir.mlir_dtypes import dtypes, element_type
from tilelang_npu.target.chip_data import OpCore, PipeName

__all__ = [
    "WITH_INDEX", "VArangeOp", "VBrcOp", "VConcatOp", "VCummaxOp", "VCumminOp", "VCumprodOp", "VCumsumOp", "VDeinterleaveOp",
    "VFlipOp", "VGatherMaskOp", "VGatherOp", "VInterleaveOp", "VMulextendedOp", "VPadOp", "VReduceOp", "VSortOp",
    "VTransposeOp",
]

FP8_NAMES = ("f8E4M3FN", "f8E5M2")
INTEGERS = ("i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64")
EVERY = dtypes("i1", *INTEGERS, "f16", "bf16", "f32", *FP8_NAMES)
_NO_BOOL = EVERY[1:]
_CHANNELS = 2
_ALL = "ALL_CHANNELS"

TEMP = " " + group("temp_buffer?", "temp_buffer")
RESULT = " (`->` type($result)^)?"
INS_OUTS = f"attr-dict {group('ins', 'src')} {group('outs', 'dst')}"


@operation(pipes=("V",), core="AIV", rules=(destination_style, same_element_type, element_types((0,), EVERY)))
class VBrcOp(StructuredOp):
    """Fills a buffer with a scalar, or repeats a source buffer along the axes on which the source has size 1."""

    name = "hivm.hir.vbrc"
    src = operand_def()
    dst = operand_def(TENSOR_OR_MEMREF)
    temp_buffer = opt_operand_def(MEMREF)
    broadcast_dims = prop_def(I64_ARRAY, default_value=NO_AXES)
    result = var_result_def(TENSOR)
    assembly_format = INS_OUTS + TEMP + " (`broadcast_dims` `=` $broadcast_dims^)?" + RESULT

    def __init__(self, src: Operand, dst: Operand, *, dims: Sequence[int] = (), temp_buffer: Operand | None = None) -> None:
        """Builds the op; ``dims`` are the axes to repeat along and must be empty for a scalar source."""
        IRDLOperation.__init__(self, operands=[src, dst, temp_buffer], result_types=[results_for(dst)],
                               properties={"broadcast_dims": integers(dims)})

    def pipes(self) -> tuple[PipeName, ...]:
        """Returns ``MTE2`` for a destination in L1, else ``V``."""
        return ("MTE2",) if space_of(self.dst.type) == "cbuf" else ("V",)

    def core(self) -> OpCore:
        """Returns ``AIC`` for a destination in L1, else ``AIV``."""
        return "AIC" if space_of(self.dst.type) == "cbuf" else "AIV"

    def verify_(self) -> None:
        reject_unknown_fp8(self, self.src.type)
        temp_buffer_rank_one(self)
        dims = axes(self, "broadcast_dims")
        if not isinstance(self.src.type, ShapedType):
            if dims:
                fail("broadcast dims must be empty for scalar src")
            return
        shape = self.src.type.get_shape()
        if not dims:
            fail("have empty broadcast dims array")
        if len(dims) > len(shape):
            fail("have too many indices in the broadcast dims array")
        for dim in dims:
            if not 0 <= dim < len(shape):
                fail(f"have invalid index '{dim}' inside broadcast dims array")
            if shape[dim] != 1:
                fail(f"invalid source vector shape, 'SrcVecDim[{dim}]' != 1")


WITH_INDEX = ("max_with_index_left", "max_with_index_right", "min_with_index_left", "min_with_index_right")
"""The reduction modes that also return the index of the largest or smallest element."""


@operation(pipes=("V",), core="AIV",
           rules=(destination_style, element_types((0, 1), dtypes("i1", *INTEGERS, "f16", "f32"))), reads=("src", "indices"))
class VReduceOp(StructuredOp):
    """Reduces axes of a buffer to size 1 by a sum, a maximum or another operation, without removing the axes."""

    name = "hivm.hir.vreduce"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = var_operand_def(TENSOR_OR_MEMREF)
    temp_buffer = opt_operand_def(MEMREF)
    arith = prop_def(ReduceOpAttr)
    unsigned_src = prop_def(BOOL, default_value=boolean(False))
    tie_break_left = prop_def(BOOL, default_value=boolean(True))
    reduce_dims = prop_def(I64_ARRAY)
    indices = opt_operand_def(TENSOR_OR_MEMREF)
    result = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "attr-dict $arith `ins` `(` $src `:` type($src) `)` (`indices` `(` $indices^ `:` type($indices) `)`)?"
        " `outs` `(` $dst `:` type($dst) `)`" + TEMP + " (`unsigned_src` `=` $unsigned_src^)?"
        " (`tie_break_left` `=` $tie_break_left^)? `reduce_dims` `=` $reduce_dims" + RESULT
    )

    def __init__(self, src: Operand, dst: Operand | Sequence[Operand], mode: str, *, dims: Sequence[int],
                 temp_buffer: Operand | None = None, indices: Operand | None = None, unsigned: bool = False,
                 tie_break_left: bool = True) -> None:
        """Builds the op.

        Args:
            src: the buffer to reduce.
            dst: the destination; a mode in ``WITH_INDEX`` has two destinations, values and i32 indices.
            mode: ``sum``, ``prod``, ``max``, ``min``, ``any``, ``all``, ``xori``, ``ori``, ``andi``, or a mode in
                ``WITH_INDEX``.
            dims: the axes to reduce.
            temp_buffer: a temporary buffer with one dimension.
            indices: the indices of the source elements, if these are not their positions along the axis.
            unsigned: whether integers are unsigned.
            tie_break_left: whether the first of several equal largest or smallest elements is selected.
        """
        outs = [dst] if isinstance(dst, (SSAValue, Operation)) else list(dst)
        IRDLOperation.__init__(
            self, operands=[src, outs, temp_buffer, indices], result_types=[results_for(*outs)],
            properties={"arith": ReduceOpAttr(mode), "unsigned_src": boolean(unsigned),
                        "tie_break_left": boolean(tie_break_left), "reduce_dims": integers(dims)})

    @property
    def mode(self) -> str:
        """The operation of the reduction, such as ``sum`` or ``max_with_index_left``."""
        return self.arith.data

    @property
    def dims(self) -> tuple[int, ...]:
        """The axes that the op reduces."""
        return axes(self, "reduce_dims")

    def verify_(self) -> None:
        temp_buffer_rank_one(self)
        if element_type(self.src.type) in FP8:
            fail("fp8 is not supported.")
        if not self.dst:
            fail("should have exactly 1 destination operand")
        self._verify_dims()
        if self.mode in WITH_INDEX:
            self._verify_index()
            return
        if len(self.dst) != 1:
            fail("should have exactly 1 destination operand")
        if self.mode in ("xori", "ori", "andi") and not isinstance(element_type(self.src.type), IntegerType):
            fail("elemtype should be an integer")

    def _verify_dims(self) -> None:
        source, target, dims = shape_of(self.src), shape_of(self.dst[0]), self.dims
        if not dims:
            fail("have empty reduce dims array")
        if len(dims) > len(source):
            fail("have too many indices in the reduce dims array")
        for dim in dims:
            if not 0 <= dim < len(target):
                fail(f"have invalid index '{dim}' inside reduce dims array")
            if target[dim] != 1:
                fail(f"invalid dst vector shape, 'DstVecDim[{dim}]' != 1")
        if len(source) != len(target):
            fail("have src and dst with different ranks")
        for dim, sizes in enumerate(zip(source, target, strict=True)):
            if dim not in dims and not compatible(sizes):
                fail(f"have dim at index {dim} different between src and dst")

    def _verify_index(self) -> None:
        if len(self.dst) != 2:
            fail("with index should have exactly 2 destination operands")
        if len(self.dims) > 1:
            fail("with index should have exactly 1 reduce dimension")
        if not same_shape(*shaped_types(self.dst)):
            fail("dst index shape should be compatible with dst value")
        found = element_type(self.dst[1].type)
        if not (isinstance(found, IntegerType) and found.width.data == 32):
            fail("invalid dst index elemtype")


@operation(pipes=("V",), core="AIV", rules=(destination_style, element_types((0,), EVERY)))
class VTransposeOp(StructuredOp):
    """Swaps two axes of a buffer; in a buffer with four axes also two pairs of axes."""

    name = "hivm.hir.vtranspose"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    temp_buffer = opt_operand_def(MEMREF)
    permutation = prop_def(I64_ARRAY, default_value=NO_AXES)
    disable_align = prop_def(BOOL, default_value=boolean(False))
    result = var_result_def(TENSOR)
    assembly_format = INS_OUTS + TEMP + " (`permutation` `=` $permutation^)? (`disable_align` `=` $disable_align^)?" + RESULT

    def __init__(self, src: Operand, dst: Operand, permutation: Sequence[int], *, temp_buffer: Operand | None = None,
                 disable_align: bool = False) -> None:
        """Builds the op; axis ``i`` of the destination is axis ``permutation[i]`` of the source."""
        IRDLOperation.__init__(self, operands=[src, dst, temp_buffer], result_types=[results_for(dst)],
                               properties={"permutation": integers(permutation), "disable_align": boolean(disable_align)})

    def verify_(self) -> None:
        reject_unknown_fp8(self, self.src.type)
        permutation = axes(self, "permutation")
        source, target = shape_of(self.src), shape_of(self.dst)
        if not permutation:
            fail("Permutation array should not be empty.")
        if len(permutation) != len(source):
            fail("Permutation size should be equal to src rank")
        for axis in permutation:
            if not 0 <= axis < len(source):
                fail(f"have invalid index '{axis}' inside permutation array")
        moved = sum(axis != permutation[axis] for axis in permutation)
        if moved != 2:
            swaps = _swaps(permutation)
            if len(source) != 4:
                fail("Vtranspose only support two axes transpose")
            if swaps != 2:
                fail("Vtranspose supports only swapping two axes; for rank-4, also allows permutations equivalent to two "
                     f"swaps (got moved={moved}, swaps={swaps})")
        if element_type(self.src.type) != element_type(self.dst.type):
            fail("ElementType of src and dst are not the same")
        if len(source) != len(target):
            fail("Rank of src and dst are not the same")
        moving = [place for place, axis in enumerate(permutation) if place != axis]
        if self.disable_align == boolean(True) and moving[:2] != [len(source) - 2, len(source) - 1]:
            fail("Disabled allign mode supports only last 2 axes transpose")


def _swaps(permutation: tuple[int, ...]) -> int:
    """The number of swaps of two axes that make up a permutation."""
    seen: set[int] = set()
    swaps = 0
    for start in permutation:
        length, place = 0, start
        while place not in seen:
            seen.add(place)
            place = permutation[place]
            length += 1
        swaps += max(0, length - 1)
    return swaps


@operation(pipes=("V",), core="AIV",
           rules=(destination_style, element_types((0,), dtypes("i16", "i32", "f16", "f32", "i64"))),
           reads=("offset", "strides"))
class VArangeOp(StructuredOp):
    """Fills a buffer with ``offset + sum(stride[i] * index[i])``."""

    name = "hivm.hir.varange"
    dst = operand_def(TENSOR_OR_MEMREF)
    offset = opt_operand_def(IndexType())
    strides = var_operand_def(IndexType())
    result = opt_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = ("attr-dict (`offset` `[` $offset^ `]`)? `strides` `[` $strides `]` `outs` `(` $dst `:` type($dst) `)`"
                       + RESULT)

    def __init__(self, dst: Operand, strides: Sequence[Operand], *, offset: Operand | None = None) -> None:
        """Builds the op; ``offset`` and ``strides``, one stride per axis, are index values."""
        IRDLOperation.__init__(self, operands=[dst, offset, list(strides)], result_types=[results_for(dst)])

    def verify_(self) -> None:
        if not self.strides:
            fail("stride array should not be empty")
        if len(shape_of(self.dst)) != len(self.strides):
            fail("stride array size should match the rank of dst")


@operation(pipes=("V",), core="AIV",
           rules=(destination_style, same_element_type, element_types((0, 1), dtypes(*INTEGERS, "f16", "f32", "bf16"))))
class VFlipOp(StructuredOp):
    """Reverses the order of the elements along one axis."""

    name = "hivm.hir.vflip"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    flip_axis = prop_def(NUMBER)
    result = var_result_def(TENSOR)
    assembly_format = INS_OUTS + " `flip_axis` `=` $flip_axis" + RESULT

    def __init__(self, src: Operand, dst: Operand, axis: int) -> None:
        IRDLOperation.__init__(self, operands=[src, dst], result_types=[results_for(dst)],
                               properties={"flip_axis": IntegerAttr(axis, i64)})


@operation(pipes=("V",), core="AIV", rules=(destination_style, same_rank), reads=("src", "pad_value", "low", "high"))
class VPadOp(StructuredOp):
    """Pads data with a value on both sides of each axis."""

    name = "hivm.hir.vpad"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    pad_value = operand_def()
    low = var_operand_def(IndexType())
    high = var_operand_def(IndexType())
    static_low = prop_def(I64_ARRAY)
    static_high = prop_def(I64_ARRAY)
    result = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (DynamicIndexList,)
    assembly_format = (
        INS_OUTS + " `low` `` custom<DynamicIndexList>($low, $static_low) `high` ``"
        " custom<DynamicIndexList>($high, $static_high) `pad_value` $pad_value `:` type($pad_value)" + RESULT
    )

    def __init__(self, src: Operand, dst: Operand, pad_value: Operand, low: Sequence[int | SSAValue],
                 high: Sequence[int | SSAValue]) -> None:
        """Builds the op; ``low`` and ``high`` give, per axis, the numbers of elements to add before and after the source."""
        static_low, dynamic_low = split_dynamic_index_list(low, DYNAMIC_INDEX)
        static_high, dynamic_high = split_dynamic_index_list(high, DYNAMIC_INDEX)
        IRDLOperation.__init__(
            self, operands=[src, dst, pad_value, dynamic_low, dynamic_high], result_types=[results_for(dst)],
            properties={"static_low": integers(static_low), "static_high": integers(static_high)})


@operation(pipes=("V",), core="AIV", rules=(destination_style, same_element_type))
class VConcatOp(StructuredOp):
    """Concatenates buffers along an axis."""

    name = "hivm.hir.vconcat"
    dim = prop_def(NUMBER)
    src = var_operand_def()
    dst = operand_def(TENSOR_OR_MEMREF)
    result = var_result_def(TENSOR)
    assembly_format = "`dim` `(` $dim `)` " + INS_OUTS + RESULT

    def __init__(self, src: Sequence[Operand], dst: Operand, dim: int) -> None:
        IRDLOperation.__init__(self, operands=[list(src), dst], result_types=[results_for(dst)],
                               properties={"dim": IntegerAttr(dim, i64)})


_SCANNABLE = element_types((0,), dtypes("i1", "i8", "i16", "i32", "i64", "f16", "f32", "bf16"))


class _ScanOp(StructuredOp):
    """Base of the scans along one axis (cumulative sum, product, maximum, minimum), in ascending or in descending order."""

    src = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    temp_buffer = opt_operand_def(MEMREF)
    cum_dims = prop_def(I64_ARRAY)
    result = var_result_def(TENSOR)
    assembly_format = INS_OUTS + TEMP + " `cum_dims` `=` $cum_dims `reverse` `=` $reverse" + RESULT

    def __init__(self, src: Operand, dst: Operand, *, dims: Sequence[int], reverse: bool = False,
                 temp_buffer: Operand | None = None, **facts: bool) -> None:
        """Builds the op.

        Args:
            src: the source.
            dst: the destination.
            dims: a list of the one axis of the scan.
            reverse: whether the scan begins at the last element of the axis.
            temp_buffer: a temporary buffer.
            facts: further boolean properties, such as ``propagate_nan``.
        """
        properties: dict[str, Attribute] = {"cum_dims": integers(dims), "reverse": boolean(reverse)}
        properties |= {name: boolean(value) for name, value in facts.items()}
        IRDLOperation.__init__(self, operands=[src, dst, temp_buffer], result_types=[results_for(dst)], properties=properties)

    def verify_(self) -> None:
        dims = axes(self, "cum_dims")
        if any(first >= second for first, second in zip(dims, dims[1:], strict=False)):
            fail("attribute 'cum_dims' failed to satisfy constraint: i64 dense array attribute should be in increasing order")
        source, target = shape_of(self.src), shape_of(self.dst)
        if not dims:
            fail("have empty cum dims array")
        if len(dims) > len(source):
            fail("have too many indices in the cum dims array")
        for dim in dims:
            if not 0 <= dim < len(target):
                fail(f"have invalid index '{dim}' inside cum dims array")
        if len(dims) > 1:
            fail("have more than one cumulative dims")


@operation(pipes=("V",), core="AIV", rules=(destination_style, _SCANNABLE))
class VCumsumOp(_ScanOp):
    """Writes, along one axis, the sum of all elements up to and including each position.

    The destination may have a wider element type than the source.
    """

    name = "hivm.hir.vcumsum"
    reverse = opt_prop_def(BOOL, default_value=boolean(False))


@operation(pipes=("V",), core="AIV", rules=(destination_style, same_element_type, _SCANNABLE))
class VCumprodOp(_ScanOp):
    """Writes, along one axis, the product of all elements up to and including each position."""

    name = "hivm.hir.vcumprod"
    reverse = opt_prop_def(BOOL, default_value=boolean(False))


@operation(pipes=("V",), core="AIV", rules=(destination_style, same_element_type, _SCANNABLE))
class VCummaxOp(_ScanOp):
    """Writes, along one axis, the largest of all elements up to and including each position."""

    name = "hivm.hir.vcummax"
    reverse = prop_def(BOOL)
    propagate_nan = prop_def(BOOL, default_value=boolean(True))


@operation(pipes=("V",), core="AIV", rules=(destination_style, same_element_type, _SCANNABLE))
class VCumminOp(_ScanOp):
    """Writes, along one axis, the smallest of all elements up to and including each position."""

    name = "hivm.hir.vcummin"
    reverse = prop_def(BOOL)
    propagate_nan = prop_def(BOOL, default_value=boolean(True))


@operation(pipes=("V",), core="AIV",
           rules=(destination_style, element_types((0, 1), dtypes("f16", "f32", "i8", "i16", "i32", "i64"))))
class VSortOp(StructuredOp):
    """Sorts along the last axis; writes the original positions of the sorted elements to a second destination, if any."""

    name = "hivm.hir.vsort"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = var_operand_def(TENSOR_OR_MEMREF)
    temp_buffer = opt_operand_def(MEMREF)
    descending = opt_prop_def(BOOL, default_value=boolean(False))
    sort_axis = prop_def(NUMBER, default_value=IntegerAttr(-1, i64))
    result = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = INS_OUTS + " `descending` `=` $descending `sort_axis` `=` $sort_axis" + TEMP + RESULT

    def __init__(self, src: Operand, dst: Operand | Sequence[Operand], *, descending: bool = False, axis: int = -1,
                 temp_buffer: Operand | None = None) -> None:
        """Builds the op; ``dst`` is the destination of the values, or those of the values and of their original positions."""
        outs = [dst] if isinstance(dst, (SSAValue, Operation)) else list(dst)
        IRDLOperation.__init__(
            self, operands=[src, outs, temp_buffer], result_types=[results_for(*outs)],
            properties={"descending": boolean(descending), "sort_axis": IntegerAttr(axis, i64)})

    def verify_(self) -> None:
        temp_buffer_rank_one(self)
        if self.sort_axis.value.data not in (-1, len(shape_of(self.src)) - 1):
            fail("Currently only tail axis sorting is supported")


@operation(pipes=("V",), core="AIV",
           rules=(destination_style, same_element_type, same_rank, element_types((0,), (*_NO_BOOL, *dtypes("i1")))))
class VInterleaveOp(StructuredOp):
    """Alternates the elements of two buffers along the last axis, which is twice as long in the destination."""

    name = "hivm.hir.vinterleave"
    src = var_operand_def()
    dst = operand_def(TENSOR_OR_MEMREF)
    temp_buffer = opt_operand_def(MEMREF)
    interleave_channel_nums = prop_def(NUMBER, default_value=IntegerAttr(_CHANNELS, i64))
    result = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = INS_OUTS + " `interleave_channel_nums` `=` $interleave_channel_nums" + TEMP + RESULT

    def __init__(self, src: Sequence[Operand], dst: Operand, *, temp_buffer: Operand | None = None) -> None:
        """Builds the op; ``src`` must be two buffers."""
        IRDLOperation.__init__(self, operands=[list(src), dst, temp_buffer], result_types=[results_for(dst)],
                               properties={"interleave_channel_nums": IntegerAttr(len(src), i64)})

    def verify_(self) -> None:
        if len(self.src) != _CHANNELS or len(self.src) != self.interleave_channel_nums.value.data:
            fail("Only support interleave two tensor2")


@operation(pipes=("V",), core="AIV", rules=(destination_style, same_element_type, same_rank, element_types((0,), _NO_BOOL)))
class VDeinterleaveOp(StructuredOp):
    """Splits a buffer along the last axis into the elements at even and at odd positions, or extracts one of these parts."""

    name = "hivm.hir.vdeinterleave"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = var_operand_def(TENSOR_OR_MEMREF)
    channel_num = opt_prop_def(NUMBER, default_value=IntegerAttr(_CHANNELS, i64))
    index_mode = opt_prop_def(DeinterleaveModeAttr, default_value=DeinterleaveModeAttr(_ALL))
    result = var_result_def(TENSOR)
    assembly_format = INS_OUTS + " (`channel_num` `=` $channel_num^)? (`index_mode` `=` $index_mode^)?" + RESULT

    def __init__(self, src: Operand, dst: Operand | Sequence[Operand], *, mode: str = _ALL) -> None:
        """Builds the op.

        Args:
            src: the source.
            dst: two destinations for ``ALL_CHANNELS``, else one.
            mode: ``ALL_CHANNELS``, ``CHANNEL_0`` (even positions) or ``CHANNEL_1`` (odd positions).
        """
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
    """Writes the low and the high halves of the 32-bit products of i16 elements to two destinations."""

    name = "hivm.hir.vmulextended"
    src = var_operand_def(TENSOR_OR_MEMREF)
    dst = var_operand_def(TENSOR_OR_MEMREF)
    temp_buffer = opt_operand_def(MEMREF)
    result = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = INS_OUTS + TEMP + RESULT

    def __init__(self, src: Sequence[Operand], dst: Sequence[Operand], *, temp_buffer: Operand | None = None) -> None:
        """Builds the op; ``dst`` is the destinations of the low and of the high halves."""
        IRDLOperation.__init__(self, operands=[list(src), list(dst), temp_buffer], result_types=[results_for(*dst)])


@operation(pipes=("V",), core="AIV", rules=(
    destination_style, same_rank,
    element_types((0,), dtypes("i1", "i8", "i16", "ui16", "i32", "ui32", "f16", "bf16", "f32", *FP8_NAMES)),
    element_types((1,), dtypes("i16", "i32"))), reads={"src": "src", "indices": "src"})
class VGatherOp(StructuredOp):
    """Gathers the elements at given indices of an axis."""

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
        """Builds the op; without ``axis`` the op gathers along the last axis."""
        IRDLOperation.__init__(self, operands=[src, indices, dst, temp_buffer], result_types=[results_for(dst)],
                               properties={"gather_axis": None if axis is None else IntegerAttr(axis, i64)})


@operation(pipes=("V",), core="AIV", rules=(
    destination_style, same_rank, element_types((0,), dtypes("i16", "ui16", "i32", "ui32", "f16", "bf16", "f32")),
    element_types((1,), dtypes("i1"))), reads={"src": "src", "mask": "src"})
class VGatherMaskOp(StructuredOp):
    """Writes the elements whose mask is set without gaps, and writes their number to a second destination."""

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
        """Builds the op; ``dst`` is the destinations of the elements and of their number."""
        IRDLOperation.__init__(self, operands=[src, mask, list(dst)], result_types=[results_for(*dst)])


OPERATIONS: tuple[type[Operation], ...] = (
    VBrcOp, VReduceOp, VTransposeOp, VArangeOp, VFlipOp, VPadOp, VConcatOp, VCumsumOp, VCumprodOp, VCummaxOp, VCumminOp,
    VSortOp, VInterleaveOp, VDeinterleaveOp, VMulextendedOp, VGatherOp, VGatherMaskOp)
