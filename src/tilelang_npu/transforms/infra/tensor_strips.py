"""Strips: the parts of a tensor in GM that an operation on the whole tensor processes one after the other.

A strip has as many of the last axes' elements as fit in ``STRIP`` bytes. There is a loop for each axis along which the strip is
shorter than the tensor. The last strip of a loop is shorter where the strip's size does not divide the tensor's size.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.infra.patterns import insert_for

STRIP = 16 << 10
"""The most bytes of a strip; transfers of this size have full bandwidth."""


def strip_sizes(shape: Sequence[int], nbytes: int) -> list[int]:
    """Returns the sizes of a strip.

    Args:
        shape: the shape of the tensor, with -1 for a dynamic size. Along such an axis the strip has as many elements as there
            is room for.
        nbytes: the bytes of an element.
    """
    room, sizes = STRIP // nbytes, [1] * len(shape)
    for axis in reversed(range(len(shape))):
        sizes[axis] = room if shape[axis] < 0 else min(shape[axis], room)
        if sizes[axis] != shape[axis]:
            break
        room = max(1, room // sizes[axis])
    return sizes


def insert_strip_loops(
    source: Operation, tensor: SSAValue, strip: Sequence[int], rewriter: PatternRewriter
) -> tuple[list[int | SSAValue], list[int | SSAValue]]:
    """Inserts the loops over the strips of a tensor, and moves the insertion point into the innermost loop.

    Args:
        source: the operation whose location the loops get.
        tensor: the tensor.
        strip: the sizes of a strip.
        rewriter: the rewriter.

    Returns:
        The offset and the size of the strip along each axis of the tensor. A size that is not constant is at most that of
        ``strip``.
    """
    shape = tile.shape_of(tensor)
    offsets: list[int | SSAValue] = [0] * len(shape)
    sizes: list[int | SSAValue] = list(strip)
    ends = {axis: insert_size(source, tensor, axis, rewriter) for axis, size in enumerate(shape) if size != strip[axis]}
    for axis, end in ends.items():
        step = strip[axis]
        start = offsets[axis] = insert_loop(source, end, step, rewriter)
        if shape[axis] < 0 or shape[axis] % step:
            rest = insert_for(source, arith.SubiOp(end, start), rewriter).result
            sizes[axis] = insert_for(source, arith.MinSIOp(rest, _insert_index(source, step, rewriter)), rewriter).result
    return offsets, sizes


def insert_size(source: Operation, buffer: SSAValue, axis: int, rewriter: PatternRewriter) -> SSAValue:
    """Inserts the size of a buffer along an axis, with the location of ``source``."""
    size = tile.shape_of(buffer)[axis]
    if size >= 0:
        return _insert_index(source, size, rewriter)
    operands = [buffer, _insert_index(source, axis, rewriter)]
    return insert_for(source, memref.DimOp.create(operands=operands, result_types=[IndexType()]), rewriter).results[0]


def insert_loop(source: Operation, end: SSAValue, step: int, rewriter: PatternRewriter) -> SSAValue:
    """Inserts a loop from 0 to ``end`` with the location of ``source``, and moves the insertion point into it.

    Returns:
        The induction variable.
    """
    body, last = Block(arg_types=[IndexType()]), scf.YieldOp()
    last.location = source.location
    body.add_op(last)
    start, step_value = _insert_index(source, 0, rewriter), _insert_index(source, step, rewriter)
    insert_for(source, scf.ForOp(start, end, step_value, [], Region(body)), rewriter)
    rewriter.insertion_point = InsertPoint.before(last)
    return body.args[0]


def _insert_index(source: Operation, value: int, rewriter: PatternRewriter) -> SSAValue:
    """Inserts a constant of type index."""
    return insert_for(source, arith.ConstantOp(IntegerAttr(value, IndexType())), rewriter).result


__all__ = ["STRIP", "insert_loop", "insert_size", "insert_strip_loops", "strip_sizes"]
