"""Checks the operands of operations, and matches their shapes: axes of size 1, contiguous views, overlaps.

In all functions, the argument ``what`` is the name of the call in messages, such as ``T.copy``; ``role`` names the operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr, StridedLayoutAttr, UnrealizedConversionCastOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.errors import ARRAY_OF_THE_HOST, TileError, is_array, shown
from tilelang_npu.ops import DType
from tilelang_npu.target import core_of, name_of
from tilelang_npu.traced import ir_types
from tilelang_npu.traced.buffers import Addressable, Buffer, Element, Region, Variable, same_extent
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent, convert, extent, number
from tilelang_npu.traced.scalars import Expr


def place_of(value: object) -> Element | None:
    """Returns the buffer element that a value refers to, or None if it refers to none.

    The value is an element ``buf[i]``, or the value of a name to which such an element was assigned. Scalars of ``T.alloc_var``
    do not count.
    """
    if isinstance(value, Element):
        return None if isinstance(value.buffer, Variable) else value
    return value.origin if isinstance(value, Expr) and isinstance(value.origin, Element) else None


def as_memory(what: str, role: str, value: object, *, packed: bool = False) -> Addressable:
    """Returns an operand as a buffer or a slice; an element ``buf[i]`` becomes a slice of one element.

    Args:
        what: the name of the call, for messages.
        role: the operand, for messages.
        value: the argument of the call.
        packed: whether the call takes elements of 4 bits, two of which are in a byte, and exponents (float8_e8m0fnu).

    Raises:
        TileError: T110, the value is none of these, or has elements of these types, which the call does not take.
    """
    if isinstance(value, Addressable):
        if value.dtype.stored != value.dtype and not packed:
            advice = ("only copies, T.gemm and conversions to and from float16 take int4: convert it first"
                      if value.dtype == "int4" else f"only copies and products of scaled operands take {value.dtype}")
            raise TileError(f"{what}: {role} {value.describe()} has elements of {value.dtype}", code="T110", help=advice)
        return value
    place = place_of(value)
    if place is None:
        given = str(value) if isinstance(value, (Expr, Element)) else shown(value)
        raise TileError(f"{what}: {role} must be a buffer, not {given}", code="T110",
                        help=ARRAY_OF_THE_HOST
                        if is_array(value) else "allocate one with T.alloc_ub or T.alloc_shared, or slice one")
    rank = len(place.indices)
    return Region(place.buffer, place.indices, (1,) * rank, range(rank))


def require_vector_memory(what: str, role: str, memory: Addressable) -> None:
    """Checks that an operand of a vector operation is in UB, or in a memory that the compiler can still choose.

    Raises:
        TileError: T201, the operand is in another memory.
    """
    place = name_of(memory.buffer.space)
    if memory.buffer.space == "gm" or core_of(memory.buffer.space) == "AIC":
        if memory.buffer.space != "gm":
            advice = "copy it into a buffer in UB first (T.alloc_ub, T.copy), and work on that"
        elif role == "the destination":
            advice = (f"{what} writes {memory.name}: let it write a buffer in UB (T.alloc_ub, T.alloc_shared), and T.copy the "
                      f"buffer to {memory.name} after it")
        else:
            advice = f"{what} reads {memory.name}: T.copy it into a buffer in UB first (T.alloc_ub, T.alloc_shared)"
        raise TileError(f"{what}: {role} {memory.describe()} is in {place}, and vector work needs it in UB", code="T201",
                        help=advice)


def scalar_operand(builder: Builder, what: str, role: str, value: object, element: DType) -> SSAValue:
    """Returns the IR value of a scalar operand, converted to the element type of the operation's buffers.

    Raises:
        TileError: T110, the value is not a scalar, or the element type cannot represent the constant.
    """
    try:
        given = number(builder, value)
    except TileError as error:
        if error.code != "T141":
            raise
        raise TileError(f"{what}: {role} must be a buffer or a scalar, not {shown(value)}", code="T110",
                        help=ARRAY_OF_THE_HOST
                        if is_array(value) else "a scalar is a number, an element of a buffer or a computed value") from None
    found = convert(builder, given, element, f"{what}: {role}").ssa(builder)
    if element.is_integer and not element.is_signed:
        found = builder.discardable(UnrealizedConversionCastOp.get([found], [ir_types.element_type(element)])).results[0]
    return found


def is_scalar(value: object) -> bool:
    """Whether an operand is a scalar or a buffer element, and not a buffer or a slice."""
    return not isinstance(value, Addressable)


def squeezed_axes(memory: Addressable) -> tuple[int, ...]:
    """Returns the axes of a tile whose size is not the constant 1, as axes of the tile's buffer.

    If there is no such axis, returns the last axis of the tile.
    """
    sizes = memory.sizes
    found = tuple(axis for axis in memory.kept if not (isinstance(sizes[axis], int) and sizes[axis] == 1))
    return found or memory.kept[-1:] or (len(memory.sizes) - 1,)


def with_axes(memory: Addressable, kept: Sequence[int]) -> Addressable:
    """Returns the same tile with only some of its axes.

    Args:
        memory: the tile.
        kept: the numbers of the buffer's axes to keep; the tile must have size 1 along the others.
    """
    return memory if tuple(kept) == memory.kept else Region(memory.buffer, memory.offsets, memory.sizes, kept)


def resized(memory: Addressable, sizes: Sequence[Extent]) -> Addressable:
    """Returns the tile with the same first element and other sizes, one for each axis of the buffer."""
    old = memory.sizes
    if all(same_extent(a, b) for a, b in zip(old, sizes, strict=True)):
        return memory
    return Region(memory.buffer, memory.offsets, sizes, memory.kept)


def same_shape(left: Sequence[Extent], right: Sequence[Extent]) -> bool:
    """Whether two shapes are possibly equal: they have the same number of axes, and no pair of sizes is known to differ."""
    return len(left) == len(right) and all(same_extent(a, b) is not False for a, b in zip(left, right, strict=True))


def broadcasts(source: Sequence[Extent], target: Sequence[Extent]) -> bool:
    """Whether a tile of shape ``source`` can possibly be repeated along its axes of size 1 to the shape ``target``.

    Sizes that are not constant are assumed to match.
    """
    return len(source) == len(target) and all(
        (isinstance(a, int) and a == 1) or same_extent(a, b) is not False for a, b in zip(source, target, strict=True))


def is_dense(memory: Addressable) -> bool:
    """Whether the elements of a tile are known to be contiguous in memory."""
    full = not memory.buffer.has_gaps or memory.buffer.ndim == 1
    for axis in reversed(range(len(memory.buffer.offsets))):
        size, whole = memory.sizes[axis], memory.buffer.sizes[axis]
        if not full and not (isinstance(size, int) and size == 1):
            return False
        full = full and same_extent(size, whole) is True
    return True


def element_count(memory: Addressable) -> int | None:
    """Returns the number of elements of a tile; None if it is not constant."""
    count = 1
    for size in memory.extents:
        if not isinstance(size, int):
            return None
        count *= size
    return count


def seen_as(builder: Builder, memory: Addressable, shape: Sequence[Extent]) -> SSAValue:
    """Returns the IR value of a tile, viewed with another shape.

    The caller must have checked that the shapes differ only in axes of size 1, or that the tile is contiguous and both shapes
    have the same number of elements.
    """
    if len(memory.extents) == len(shape) and all(same_extent(a, b) for a, b in zip(memory.extents, shape, strict=True)):
        return memory.ssa(builder)
    squeezed = with_axes(memory, squeezed_axes(memory))
    wanted = [size for size in shape if not (isinstance(size, int) and size == 1)] or [1]
    units_only = same_shape(squeezed.extents, wanted)
    if units_only and len(wanted) == len(shape):
        return squeezed.ssa(builder)
    source = squeezed.ssa(builder) if units_only else memory.ssa(builder)
    return view(builder, source, shape)


def view(builder: Builder, source: SSAValue, shape: Sequence[Extent]) -> SSAValue:
    """Emits a ``tile.view`` operation that views a memref with another shape, and returns its result.

    Args:
        builder: the trace.
        source: the memref.
        shape: the new shape.
    """
    kind = source.type
    assert isinstance(kind, MemRefType)
    sizes = [size if isinstance(size, int) else -1 for size in shape]
    made = tile.ViewOp(source, _viewed(kind, sizes))
    return builder.discardable(made).results[0]


def bits_of(insert: Callable[[Operation], Operation], source: SSAValue, element: DType, shape: Sequence[int]) -> SSAValue:
    """Emits a view of the first bytes of a whole buffer as elements of another width, and returns the view.

    The caller must have checked that the buffer has enough bytes.

    Args:
        insert: inserts an operation into the IR and returns it.
        source: the memref of the buffer, which must be contiguous.
        element: the new element type.
        shape: the shape of the view.
    """
    kind = source.type
    assert isinstance(kind, MemRefType)
    width, have, count = dtype_of(kind.element_type).nbytes, math.prod(kind.get_shape()), math.prod(shape)
    line = source if len(kind.get_shape()) == 1 else insert(tile.ViewOp(source, _viewed(kind, [have]))).results[0]
    common = math.lcm(width, element.nbytes)
    nbytes = -(-count * element.nbytes // common) * common
    if nbytes < have * width:
        line = insert(tile.RegionOp(line, [0], [nbytes // width])).results[0]
    seen = MemRefType(ir_types.element_type(element), [nbytes // element.nbytes], memory_space=kind.memory_space)
    line = insert(tile.ViewOp(line, seen)).results[0]
    if count * element.nbytes < nbytes:
        line = insert(tile.RegionOp(line, [0], [count])).results[0]
    if len(shape) == 1:
        return line
    assert isinstance(line.type, MemRefType)
    return insert(tile.ViewOp(line, _viewed(line.type, list(shape)))).results[0]


def _viewed(kind: MemRefType[Attribute], sizes: list[int]) -> MemRefType[Attribute]:
    layout: StridedLayoutAttr | NoneAttr = NoneAttr()
    if isinstance(kind.layout, StridedLayoutAttr):
        old = [(size, stride) for size, stride in zip(kind.get_shape(), kind.get_strides() or [], strict=True) if size != 1]
        kept = [size for size in sizes if size != 1]
        if [size for size, _ in old] == kept:
            strides = iter(stride for _, stride in old)
            steps: list[int | None] = [1 if size == 1 else next(strides) for size in sizes]
        else:
            steps = [math.prod(sizes[axis + 1:]) for axis in range(len(sizes))]
        layout = StridedLayoutAttr(steps, kind.layout.get_offset())
    return MemRefType(kind.element_type, [DYNAMIC_INDEX if size < 0 else size for size in sizes], layout, kind.memory_space)


def overlap(left: Addressable, right: Addressable) -> str:
    """Returns how the elements of two tiles overlap.

    The result is ``same`` (the same elements), ``apart`` (no common element), ``partial`` (some common elements) or ``unknown``
    (offsets or sizes that are not constant).
    """
    if left.buffer.base is not right.buffer.base:
        return "apart"
    if left.buffer.ndim != right.buffer.ndim:
        return "unknown"  # one of them is a flat view of the other's memory
    verdict = "same"
    for a, b, x, y in zip(left.offsets, right.offsets, left.sizes, right.sizes, strict=True):
        same_place, same_size = same_extent(a, b), same_extent(x, y)
        if same_place and same_size:
            continue
        if isinstance(a, int) and isinstance(b, int) and isinstance(x, int) and isinstance(y, int):
            if a + x <= b or b + y <= a:
                return "apart"
            verdict = "partial" if verdict == "same" else verdict
        elif same_place:
            verdict = "partial" if verdict == "same" else verdict
        else:
            verdict = "unknown"
    return verdict


def sizes_argument(builder: Builder, what: str, size: object) -> list[Extent]:
    """Checks the argument ``size`` of a call, and returns it as a list of constant or traced sizes.

    Raises:
        TileError: T145, the argument is not a list.
    """
    if not isinstance(size, (list, tuple)) or not size:
        raise TileError(f"{what}: size must be a list of extents, not {size!r}", code="T145",
                        help="write size=[rows, columns]")
    return [extent(builder, item) for item in size]


def right_aligned(what: str, memory: Addressable, sizes: Sequence[Extent]) -> Addressable:
    """Returns the tile with the same first element, the given sizes along its last axes, and size 1 along its other axes.

    Args:
        what: the name of the call, for messages.
        memory: the buffer or slice that determines the first element.
        sizes: the sizes along the last axes of the buffer.

    Raises:
        TileError: T131, there are more sizes than axes; T130, a constant size goes past the end of a buffer on chip.
    """
    rank = len(memory.buffer.offsets)
    given = list(sizes)
    while len(given) > rank and isinstance(given[0], int) and given[0] == 1:
        given.pop(0)
    if len(given) > rank:
        raise TileError(f"{what}: {len(given)} sizes for {memory.describe()}", code="T131",
                        help="pass one size per axis, or fewer sizes for the last axes")
    found = [1] * (rank - len(given)) + given
    result = Region(memory.buffer, memory.offsets, found, range(rank))
    check_inside(what, result)
    return result


def check_inside(what: str, memory: Addressable) -> None:
    """Checks that a tile with constant bounds is inside its buffer on chip.

    Raises:
        TileError: T130, the tile is not inside its buffer.
    """
    buffer: Buffer = memory.buffer
    if buffer.space == "gm":
        return
    for axis, (offset, size, whole) in enumerate(zip(memory.offsets, memory.sizes, buffer.sizes, strict=True)):
        if isinstance(offset, int) and isinstance(size, int) and isinstance(whole, int) and offset + size > whole:
            raise TileError(f"{what}: elements {offset} to {offset + size - 1} are outside axis {axis} of {buffer.describe()}: "
                            f"valid are 0 to {whole - 1}", code="T130", help="start earlier, or move a smaller tile")
