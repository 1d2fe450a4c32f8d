"""Views of a buffer as flat memory, for operations of the ascendc dialect that take a number of elements.

In the ascendc dialect, a slice only determines the first element in memory: a count can exceed the slice and continue in the
rest of its buffer, whose rows follow each other in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilelang_npu.errors import TileError
from tilelang_npu.language.operands import element_count, is_dense, require_vector_memory, view
from tilelang_npu.traced.arithmetic import binary
from tilelang_npu.traced.buffers import Addressable, Buffer, Region
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent, extent

__all__ = ["elements_from", "flattened", "leading", "over_the_row"]


def flattened(builder: Builder, what: str, memory: Addressable, count: Extent) -> Addressable:
    """Returns a one-dimensional view of ``count`` consecutive elements of a buffer's memory.

    Args:
        builder: the trace.
        what: the name of the call, for messages.
        memory: the buffer or slice at whose first element the view begins.
        count: the number of elements.

    Raises:
        TileError: T111, the elements are not inside the buffer; T201, the buffer is not in UB.
    """
    require_vector_memory(what, "an operand", memory)
    return elements_from(builder, what, memory, count)


def elements_from(builder: Builder, what: str, memory: Addressable, count: Extent, after: Extent = 0) -> Addressable:
    """Returns a one-dimensional view of ``count`` consecutive elements in the memory of a buffer in UB or of a tensor.

    Args:
        builder: the trace.
        what: the name of the call, for messages.
        memory: the buffer, tensor or slice.
        count: the number of elements.
        after: the number of elements between the first element of ``memory`` and that of the view.

    Raises:
        TileError: T111, the elements are not inside the buffer; T190, the memory is a tensor with gaps, or has several axes of
            which one is known only at run time.
    """
    if memory.buffer.has_gaps and memory.buffer.ndim > 1:
        raise TileError(f"{what}: the elements of {memory.describe()} are not consecutive in memory", code="T190",
                        help="declare it with T.Tensor, or transfer one row at a time")
    if memory.buffer.ndim > 1 and not all(isinstance(size, int) for size in memory.buffer.sizes):
        raise TileError(f"{what}: {memory.buffer.describe()} has a size that is known only at run time", code="T190",
                        help="declare it with one axis, or with constant sizes")
    total = _total(memory)
    start = extent(builder, _start(builder, memory) + after)
    if memory.buffer.ndim == 1 and not isinstance(memory.buffer.sizes[0], int):
        return Region(memory.buffer, (start,), (count,), (0,))
    if isinstance(start, int) and isinstance(count, int) and start + count > total:
        raise TileError(f"{what}: {count} elements from element {start} of {memory.buffer.describe()}, which has {total} "
                        "elements", code="T111", help="use fewer elements, or allocate a larger buffer")
    root = memory.buffer
    if root.ndim == 1:
        return Region(root, (start,), (count,), (0,))
    seen = Buffer(root.label, root.element, (total,), root.space, view(builder, root.ssa(builder), (total,)), root.location)
    seen.base = root
    return Region(seen, (start,), (count,), (0,))


def over_the_row(builder: Builder, what: str, memory: Addressable) -> Addressable:
    """Returns a slice of one row as a view of flat memory if its length is not constant and can exceed the row.

    The ascendc dialect passes the address of the first element and the number of elements to an operation, so that such a slice
    continues in the next rows. Any other operand is returned unchanged.

    Raises:
        TileError: T201, the buffer is not in UB.
    """
    *outer, size = memory.sizes
    last = len(memory.sizes) - 1
    single = all(isinstance(one, int) and one == 1 for one in outer)
    if isinstance(size, int) or not outer or not single or last not in memory.kept:
        return memory
    start, room = memory.offsets[last], memory.buffer.sizes[last]
    end = size.bounds.high + (start if isinstance(start, int) else start.bounds.high)
    if not isinstance(room, int) or end <= room:
        return memory
    return flattened(builder, what, memory, size)


def leading(builder: Builder, what: str, operands: Sequence[Addressable], count: object) -> list[Addressable]:
    """Returns views of the first ``count`` elements of each operand.

    If ``count`` exceeds a buffer, the views are limited to the buffer, and a warning (T113) is issued: the hardware would
    access the memory beyond the buffer.

    Raises:
        TileError: T111, the count is not positive; T201, an operand is not in UB.
    """
    length = extent(builder, count)
    if isinstance(length, int) and length <= 0:
        raise TileError(f"{what}: count is {length}", code="T111", help="count must be a positive number of elements")
    if isinstance(length, int) and all(element_count(memory) == length for memory in operands):
        return list(operands)
    if isinstance(length, int):
        rows = [_rows(memory, length) for memory in operands]
        if None not in rows:
            return [row for row in rows if row is not None]
        length = _within(builder, what, operands, length)
    return [flattened(builder, what, memory, length) for memory in operands]


def _rows(memory: Addressable, count: int) -> Addressable | None:
    """The first rows of a dense matrix if they have exactly ``count`` elements, so that its memory keeps its shape; else None.
    """
    have = element_count(memory)
    if memory.ndim < 2 or have is None or count > have or not is_dense(memory) or not isinstance(memory.extents[0], int):
        return None
    row = have // memory.extents[0]
    if count % row:
        return None
    sizes = [count // row if axis == memory.kept[0] else size for axis, size in enumerate(memory.sizes)]
    return Region(memory.buffer, memory.offsets, sizes, memory.kept)


def _within(builder: Builder, what: str, operands: Sequence[Addressable], count: int) -> Extent:
    """The count, limited to the elements before the end of each buffer."""
    found: Extent = count
    short: list[str] = []
    for memory in operands:
        start = _start(builder, memory)
        require_vector_memory(what, "an operand", memory)
        rest = extent(builder, _total(memory) - start)
        if (rest if isinstance(rest, int) else rest.bounds.low) >= count:
            continue
        short.append(f"{memory.buffer.describe()} {f'has {rest}' if isinstance(rest, int) else 'may have fewer'}")
        both_known = isinstance(found, int) and isinstance(rest, int)
        found = min(found, rest) if both_known else extent(builder, binary(builder, "min", found, rest))
    if short:
        builder.remarks.append(TileError(
            f"{what}: count is {count}, and from the first element on {', '.join(short)}", code="T113",
            location=builder.location,
            help="the elements after the end are left out; the hardware would access the memory after the buffer"))
    return found


def _total(memory: Addressable) -> int:
    sizes = memory.buffer.sizes
    return math.prod(size for size in sizes if isinstance(size, int))


def _start(builder: Builder, memory: Addressable) -> Extent:
    """The index of the first element in the buffer's flat memory."""
    found: Extent = 0
    stride = 1
    for offset, size in zip(reversed(memory.offsets), reversed(memory.buffer.sizes), strict=True):
        found = extent(builder, found + offset * stride)
        stride = stride * size if isinstance(size, int) else stride
    return found
