"""Computes the size of the scratch memory that the Vector core's library needs for an operation (docs/hivm.md#scratch).

All sizes are numbers of elements of the scratch buffer's type. A size ``alloc(x)`` in that document is the element count of
``x``; for a view of dynamic size, it is the element count of the buffer that ``x`` is a view of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu.analysis.locations import location_of
from tilelang_npu.analysis.view_chains import typed_root_of
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.errors import TileError
from tilelang_npu.target import BLOCK
from tilelang_npu.target.chip_data import REPEAT_BYTES


def _memref_type(value: SSAValue) -> MemRefType[Attribute]:
    kind = value.type
    if not isinstance(kind, MemRefType):
        raise TileError(f"scratch memory can only be added to an operation on memrefs, and this operation works on {kind}",
                        code="T602", location=location_of(value.owner) if isinstance(value.owner, Operation) else None,
                        help="bufferise the module first")
    return kind


def _element_bytes(value: SSAValue) -> int:
    kind = value.type
    return dtype_of(kind.element_type if isinstance(kind, (MemRefType, TensorType)) else kind).nbytes


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _element_count(value: SSAValue) -> int:
    """Returns the number of elements of a view, or of the view's buffer if the view's size is known only at run time."""
    shape = _memref_type(value).get_shape()
    if DYNAMIC_INDEX in shape:
        shape = _memref_type(typed_root_of(value)).get_shape()
    total = 1
    for size in shape:
        total *= size if size != DYNAMIC_INDEX else 1
    return total


def _static_shape(value: SSAValue) -> list[int]:
    """Returns the shape of a view, in which each size that is known only at run time is replaced by the size of the buffer.

    Such sizes are replaced only if the view and its buffer have equally many axes.
    """
    shape, whole = list(_memref_type(value).get_shape()), list(_memref_type(typed_root_of(value)).get_shape())
    if DYNAMIC_INDEX in shape:
        same = len(shape) == len(whole)
        return [w if s == DYNAMIC_INDEX and same else max(s, 1) for s, w in zip(shape, whole if same else shape, strict=True)]
    return shape


def _scratch_of_elementwise(op: hivm.ElementwiseOp) -> int:
    block = BLOCK // _element_bytes(op.outs()[0])
    mnemonic = op.ENTRY.hivm
    target = _static_shape(op.outs()[0])
    total = 0
    for source in op.ins():
        if isinstance(source.type, MemRefType):
            shape = _static_shape(source)
            if shape[-1] == 1 and target[-1] != 1:
                single = len(shape) == 1 or shape[-2] == 1
                total += block if single else block * _round_up(shape[-2], 8)
        elif mnemonic in ("vsub", "vdiv"):
            total += block
        elif mnemonic == "vsel":
            total += REPEAT_BYTES // (8 * _element_bytes(op.outs()[0]))
    if mnemonic == "vsel":
        total += REPEAT_BYTES // (8 * _element_bytes(op.outs()[0]))
    if mnemonic == "vxor":
        total += _element_count(op.ins()[0])
    if mnemonic == "vcast":
        total = _scratch_of_cast(op)
    return total


def _scratch_of_cast(op: hivm.ElementwiseOp) -> int:
    source, target = str(_memref_type(op.ins()[0]).element_type), str(_memref_type(op.outs()[0]).element_type)
    if source == "i1":
        return 96 // max(1, _element_bytes(op.outs()[0]))
    if (source, target) in (("i32", "i8"), ("i16", "i8")):
        return 2 * _element_count(op.ins()[0])
    return 0


def _scratch_of_broadcast(op: hivm.VBrcOp) -> int:
    source = op.ins()[0]
    if not isinstance(source.type, MemRefType):
        return 0
    shape, target = _static_shape(source), _static_shape(op.outs()[0])
    axes = [axis for axis, (s, t) in enumerate(zip(shape, target, strict=True)) if s != t]
    if len(target) == 1 or not axes:
        return 0
    block, axis = BLOCK // _element_bytes(source), axes[-1]
    if axis == len(target) - 1:
        rows, columns = target[-2], target[-1]
        if columns % block == 0:
            return 0 if rows % 8 == 0 and columns == block else _round_up(rows, 8) * block
        return _round_up(rows, 8) * _round_up(columns, block)
    if axis == 0 and target[-1] % block:
        rest = 1
        for size in target[1:]:
            rest *= size
        return target[0] * _round_up(rest, block)
    return 0


def _scratch_of_reduction(op: hivm.VReduceOp) -> int:
    source = op.ins()[0]
    return scratch_of_reduction(op.mode, _memref_type(source).element_type, _static_shape(source), _element_count(source),
                                tuple(op.reduce_dims.get_values()))


def scratch_of_reduction(mode: str, element: Attribute, shape: Sequence[int], total: int, dims: tuple[int, ...]) -> int:
    """Returns the size of the scratch buffer of a reduction, in elements of the reduced tile.

    Args:
        mode: the name of the reduction in HIVM, such as ``sum``.
        element: the element type.
        shape: the shape of the reduced tile.
        total: the number of its elements.
        dims: the axes that are reduced.
    """
    width = dtype_of(element).nbytes
    block, repeat = BLOCK // width, REPEAT_BYTES // width
    if "with_index" in mode:
        return block if dims == (len(shape) - 1,) else _round_up(total + -(-total // 2), block)
    if dims != (len(shape) - 1,):
        return max(total, _scratch_of_middle_axis(shape, block)) if len(shape) == 3 and dims == (1,) else total
    length, rows = shape[-1], total // max(1, shape[-1])
    if str(element) not in ("f16", "f32") or mode == "prod":
        times = 2 if mode == "xori" else 1
        return times * rows * repeat + rows * block if length > repeat else (times + 1) * total
    if len(shape) == 1:
        return repeat if length > repeat else 0
    if length < block:
        return total // 2 if length % 2 == 0 else 0
    if length <= repeat:
        return 0
    return rows * repeat if length <= 2 * repeat else total // 2


def _scratch_of_middle_axis(shape: Sequence[int], block: int) -> int:
    """Returns the scratch size of a reduction over the second of three axes, which halves this axis repeatedly."""
    planes, length, columns = shape
    main = 1 << (length.bit_length() - 1)
    steps = main.bit_length() - 1 + length - main
    half = main // 2
    return half * planes * _round_up(columns, block) if steps <= planes else max(length * columns, half * columns)


def _scratch_of_interleave(op: hivm.VInterleaveOp) -> int:
    block = BLOCK // _element_bytes(op.outs()[0])
    count = _element_count(op.ins()[0])
    return _round_up(count, 8) * block + _round_up(2 * count, block)


def _scratch_of_transpose(op: hivm.VTransposeOp) -> int:
    last = op.permutation.get_values()[-1] != len(op.permutation.get_values()) - 1
    return 512 if last and str(_memref_type(op.ins()[0]).element_type) in ("i64", "ui64") else 0


def _scratch_of_sort(op: hivm.VSortOp) -> int:
    length = _static_shape(op.src)[-1]
    narrow, indices, ascending = _element_bytes(op.src) == 2, len(op.dst) == 2, not op.descending.value.data
    parts = (8 if narrow else 4) if indices else (10 if narrow else 5)
    return 0 if length == 1 else (parts + ascending) * _round_up(length, 32)


_SCRATCH_RULES: dict[type[Operation], Callable[[Any], int]] = {
    hivm.VReduceOp: _scratch_of_reduction,
    hivm.VGatherOp: lambda op: _element_count(op.indices),
    hivm.VCumsumOp: lambda op: _element_count(op.ins()[0]),
    hivm.VCummaxOp: lambda op: _element_count(op.ins()[0]),
    hivm.VInterleaveOp: _scratch_of_interleave,
    hivm.VTransposeOp: _scratch_of_transpose,
    hivm.VSortOp: _scratch_of_sort,
}


def scratch_elements(op: Operation) -> int:
    """Returns the size of the scratch buffer that an operation needs, in elements of ``scratch_type``; 0 if it needs none.

    Raises:
        TileError: T602, the operation works on tensors, not on memrefs.
    """
    if isinstance(op, hivm.ElementwiseOp):
        return _scratch_of_elementwise(op) if op.ENTRY.temp_buffer else 0
    if isinstance(op, hivm.VBrcOp):
        return _scratch_of_broadcast(op) if op.core() == "AIV" else 0
    rule = _SCRATCH_RULES.get(type(op))
    return rule(op) if rule is not None else 0


def scratch_type(op: Operation) -> Attribute:
    """Returns the element type of the scratch buffer of an operation.

    It is the element type of the indices for a gather. It is that of the source for a reduction or a cast, unless the source is
    i1. It is that of the destination for all other operations.
    """
    assert isinstance(op, hivm.StructuredOp)
    if isinstance(op, hivm.VGatherOp):
        return _memref_type(op.indices).element_type
    if isinstance(op, hivm.VReduceOp) or (isinstance(op, hivm.ElementwiseOp) and op.ENTRY.hivm == "vcast"):
        kind = _memref_type(op.ins()[0]).element_type
        return kind if str(kind) != "i1" else _memref_type(op.outs()[0]).element_type
    return _memref_type(op.outs()[0]).element_type
