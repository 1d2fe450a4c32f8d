"""How many elements of scratch memory the Vector core's library wants for an operation (docs/hivm.md#scratch).

All figures are in elements of the scratch buffer's type. ``alloc(x)`` there is the element count of a whole buffer;
for a view of run-time size it is the count of the buffer behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.errors import TileError
from tilelang_npu.target import BLOCK
from tilelang_npu.transforms.ir.lifetimes import elements_of
from tilelang_npu.transforms.ir.locations import location_of

REPEAT = 256  # bytes


def _type(value: SSAValue) -> MemRefType[Attribute]:
    kind = value.type
    if not isinstance(kind, MemRefType):
        raise TileError(f"scratch is given to operations on buffers, and this one works on {kind}", code="T602",
                        location=location_of(value.owner) if isinstance(value.owner, Operation) else None,
                        help="bufferise the module first")
    return kind


def _width(value: SSAValue) -> int:
    kind = value.type
    return dtype_of(kind.element_type if isinstance(kind, (MemRefType, TensorType)) else kind).nbytes


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _count(value: SSAValue) -> int:
    """Elements of a view; of the buffer behind it where the view's size is known only at run time."""
    shape = _type(value).get_shape()
    if DYNAMIC_INDEX in shape:
        shape = _type(elements_of(value)).get_shape()
    total = 1
    for size in shape:
        total *= size if size != DYNAMIC_INDEX else 1
    return total


def _shape(value: SSAValue) -> list[int]:
    """The shape of a view, run-time sizes replaced by those of the buffer behind it where the ranks allow."""
    shape, whole = list(_type(value).get_shape()), list(_type(elements_of(value)).get_shape())
    if DYNAMIC_INDEX in shape:
        same = len(shape) == len(whole)
        return [w if s == DYNAMIC_INDEX and same else max(s, 1) for s, w in zip(shape, whole if same else shape, strict=True)]
    return shape


def _elementwise(op: hivm.ElementwiseOp) -> int:
    block = BLOCK // _width(op.outs()[0])
    mnemonic = op.ENTRY.hivm
    target = _shape(op.outs()[0])
    total = 0
    for source in op.ins():
        if isinstance(source.type, MemRefType):
            shape = _shape(source)
            if shape[-1] == 1 and target[-1] != 1:
                single = len(shape) == 1 or shape[-2] == 1
                total += block if single else block * _up(shape[-2], 8)
        elif mnemonic in ("vsub", "vdiv"):
            total += block
        elif mnemonic == "vsel":
            total += REPEAT // (8 * _width(op.outs()[0]))
    if mnemonic == "vsel":
        total += REPEAT // (8 * _width(op.outs()[0]))
    if mnemonic == "vxor":
        total += _count(op.ins()[0])
    if mnemonic == "vcast":
        total = _cast(op)
    return total


def _cast(op: hivm.ElementwiseOp) -> int:
    source, target = str(_type(op.ins()[0]).element_type), str(_type(op.outs()[0]).element_type)
    if source == "i1":
        return 96 // max(1, _width(op.outs()[0]))
    if (source, target) in (("i32", "i8"), ("i16", "i8")):
        return 2 * _count(op.ins()[0])
    return 0


def _broadcast(op: hivm.VBrcOp) -> int:
    source = op.ins()[0]
    if not isinstance(source.type, MemRefType):
        return 0
    shape, target = _shape(source), _shape(op.outs()[0])
    axes = [axis for axis, (s, t) in enumerate(zip(shape, target, strict=True)) if s != t]
    if len(target) == 1 or not axes:
        return 0
    block, axis = BLOCK // _width(source), axes[-1]
    if axis == len(target) - 1:
        rows, columns = target[-2], target[-1]
        if columns % block == 0:
            return 0 if rows % 8 == 0 and columns == block else _up(rows, 8) * block
        return _up(rows, 8) * _up(columns, block)
    if axis == 0 and target[-1] % block:
        rest = 1
        for size in target[1:]:
            rest *= size
        return target[0] * _up(rest, block)
    return 0


def _reduce(op: hivm.VReduceOp) -> int:
    source = op.ins()[0]
    shape, total, width = _shape(source), _count(source), _width(source)
    block, repeat = BLOCK // width, REPEAT // width
    dims = tuple(op.reduce_dims.get_values())
    kind = op.mode
    if "with_index" in kind:
        return block if dims == (len(shape) - 1,) else _up(total + -(-total // 2), block)
    if dims != (len(shape) - 1,):
        return max(total, _middle(shape, block)) if len(shape) == 3 and dims == (1,) else total
    length, rows = shape[-1], total // max(1, shape[-1])
    if str(_type(source).element_type) not in ("f16", "f32") or kind == "prod":
        times = 2 if kind == "xori" else 1
        return times * rows * repeat + rows * block if length > repeat else (times + 1) * total
    if len(shape) == 1:
        return repeat if length > repeat else 0
    if length < block:
        return total // 2 if length % 2 == 0 else 0
    if length <= repeat:
        return 0
    return rows * repeat if length <= 2 * repeat else total // 2


def _middle(shape: Sequence[int], block: int) -> int:
    """A reduction of the middle axis halves it step by step; how much it puts aside depends on how many planes there are."""
    planes, length, columns = shape
    main = 1 << (length.bit_length() - 1)
    steps = main.bit_length() - 1 + length - main
    half = main // 2
    return half * planes * _up(columns, block) if steps <= planes else max(length * columns, half * columns)


def _gather(op: hivm.VGatherOp) -> int:
    return _count(op.indices)


def _scan(op: hivm.VCumsumOp) -> int:
    return _count(op.ins()[0])


def _interleave(op: hivm.VInterleaveOp) -> int:
    block = BLOCK // _width(op.outs()[0])
    count = _count(op.ins()[0])
    return _up(count, 8) * block + _up(2 * count, block)


def _transpose(op: hivm.VTransposeOp) -> int:
    last = op.permutation.get_values()[-1] != len(op.permutation.get_values()) - 1
    return 512 if last and str(_type(op.ins()[0]).element_type) in ("i64", "ui64") else 0


_OTHERS: dict[type[Operation], Callable[[Any], int]] = {
    hivm.VReduceOp: _reduce, hivm.VGatherOp: _gather, hivm.VCumsumOp: _scan, hivm.VInterleaveOp: _interleave,
    hivm.VTransposeOp: _transpose,
}


def scratch_elements(op: Operation) -> int:
    """Elements of scratch that an operation needs; 0 if it needs none."""
    if isinstance(op, hivm.ElementwiseOp):
        return _elementwise(op) if op.ENTRY.temp_buffer else 0
    if isinstance(op, hivm.VBrcOp):
        return _broadcast(op) if op.core() == "AIV" else 0
    rule = _OTHERS.get(type(op))
    return rule(op) if rule is not None else 0


def scratch_type(op: Operation) -> Attribute:
    """The element type of an operation's scratch: that of its destination, for reductions and casts that of its source, for a
    gather that of its indices.
    """
    assert isinstance(op, hivm.StructuredOp)
    if isinstance(op, hivm.VGatherOp):
        return _type(op.indices).element_type
    if isinstance(op, hivm.VReduceOp) or (isinstance(op, hivm.ElementwiseOp) and op.ENTRY.hivm == "vcast"):
        kind = _type(op.ins()[0]).element_type
        return kind if str(kind) != "i1" else _type(op.outs()[0]).element_type
    return _type(op.outs()[0]).element_type
