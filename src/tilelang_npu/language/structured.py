"""Operations that move, scan, sort or generate data, atomic additions and debug output.

Each function with the decorator ``_function`` is the implementation of the functions of ``T`` that the decorator names. Its
keyword ``what`` is the name under which the kernel has called it, for messages; :func:`function` passes it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from xdsl.ir import SSAValue

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.tile.calls import Fact
from tilelang_npu.errors import TileError, shown
from tilelang_npu.language import movement
from tilelang_npu.language.atomic_mode import UPDATES, require_updatable
from tilelang_npu.language.elementwise import apply
from tilelang_npu.language.flat_memory import elements_from, flattened
from tilelang_npu.language.operands import (
    as_memory,
    check_inside,
    element_count,
    is_scalar,
    overlap,
    place_of,
    require_vector_memory,
    resized,
    right_aligned,
    same_shape,
    scalar_operand,
    seen_as,
    sizes_argument,
    squeezed_axes,
    with_axes,
)
from tilelang_npu.language.scratch import use_scratch
from tilelang_npu.language.table_functions import bound, from_table, function_of
from tilelang_npu.ops import DType, Elementwise, PeerMove, Refused, Shape, Structured
from tilelang_npu.target import GM, name_of
from tilelang_npu.traced.buffers import Addressable, Buffer, Operand, Sizes, Tile
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import extent, number
from tilelang_npu.traced.symbols import Number

_BODIES: dict[str, Callable[..., None]] = {}
"""The implementation of each function, by its name without the prefixes ``v`` and ``npuir_``."""


def _function(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Enters the decorated function as the implementation of ``T.<name>`` for these names."""
    def enter(body: Callable[..., None]) -> Callable[..., None]:
        _BODIES.update(dict.fromkeys(names, body))
        return body

    return enter


def _shape(memory: Addressable) -> Shape:
    return Shape(memory.dtype, tuple(size if isinstance(size, int) else None for size in memory.extents))


def call(what: str, name: str, outputs: Sequence[object], inputs: Sequence[object], facts: Mapping[str, Fact] | None = None,
         contract: Mapping[str, object] | None = None) -> None:
    """Checks the operands of an operation against the operation's entry in the op table, and emits the operation.

    Args:
        what: the name of the call, for messages.
        name: the name of the operation in the op table.
        outputs: the destination buffers.
        inputs: the input buffers, and scalars as IR values.
        facts: the attributes of the operation.
        contract: further values that only the check needs.

    Raises:
        TileError: as :func:`checked`.
    """
    builder = Builder.running(what)
    outs, ins = checked(what, name, outputs, inputs, facts, contract)
    values = [value if isinstance(value, SSAValue) else value.ssa(builder) for value in ins]
    builder.tile_op(tile.CallOp(name, values, [value.ssa(builder) for value in outs], facts), what)


def checked(what: str, name: str, outputs: Sequence[object], inputs: Sequence[object], facts: Mapping[str, Fact] | None = None,
            contract: Mapping[str, object] | None = None) -> tuple[list[Addressable], list[Addressable | SSAValue]]:
    """Checks the operands of an operation against the operation's entry in the op table, and returns them as tiles.

    The arguments are those of :func:`call`.

    Returns:
        The destinations and the inputs.

    Raises:
        TileError: T110, an element type is not supported; T111, a shape does not fit; T112, operands share elements; T145, an
            attribute is wrong; T201, an operand is not in UB.
    """
    entry = ops.operation(name)
    assert isinstance(entry, Structured)
    packed = name in ("pack_int4", "unpack_int4")
    outs = [as_memory(what, "the destination", value, packed=packed) for value in outputs]
    ins = [value if isinstance(value, SSAValue) else as_memory(what, "an input", value, packed=packed) for value in inputs]
    buffers = [value for value in ins if isinstance(value, Addressable)]
    notes = [f"the destination is {value.describe()}" for value in outs] + [
        f"input {place} is {value.describe()}" for place, value in enumerate(buffers)]
    first = buffers[1] if entry.name == "select_bits" else buffers[0] if buffers else outs[0]
    if first.dtype not in entry.dtypes:
        raise TileError(f"{what}: {entry.name} does not work on {first.dtype}", code="T110", notes=notes,
                        help=f"it works on {', '.join(entry.dtypes)}: cast the input first")
    try:
        entry.contract([_shape(value) for value in outs], [_shape(value) for value in buffers],
                       {**(facts or {}), **(contract or {})})
    except Refused as broken:
        raise TileError(f"{what}: {broken.problem}", code=broken.code, notes=notes, help=broken.advice) from None
    for source in buffers:
        _require_memory(what, entry, "input", source)
        for target in outs:
            how = overlap(source, target)
            if not isinstance(entry, PeerMove) and (how == "partial" or (how == "same" and not entry.in_place)):
                raise TileError(f"{what}: input {source.describe()} shares elements with the destination", code="T112",
                                notes=notes, help="write to another buffer")
    for place, target in enumerate(outs):
        _require_memory(what, entry, "the destination", target)
        if any(overlap(target, other) in ("same", "partial") for other in outs[:place]):
            raise TileError(f"{what}: the destination {target.describe()} shares elements with another destination",
                            code="T112", notes=notes, help="give each destination its own buffer")
    return outs, ins


def _require_memory(what: str, entry: Structured, role: str, memory: Addressable) -> None:
    """Raises T201 where an operand is in another memory than UB, or than the end of the path that a move takes."""
    if not entry.is_in_gm("inputs" if role == "input" else "outputs"):
        require_vector_memory(what, role, memory)
    elif memory.buffer.space != GM:
        ends = [name_of(GM) if entry.is_in_gm("inputs") else "UB", name_of(GM) if entry.is_in_gm("outputs") else "UB"]
        raise TileError(f"{what}: {role} {memory.describe()} is in {name_of(memory.buffer.space)}, and {entry.name} moves data "
                        f"from {ends[0]} to {ends[1]}", code="T201",
                        help="pass a tensor parameter of the kernel, or a slice of it")


def _index(builder: Builder, what: str, role: str, value: object) -> SSAValue:
    if isinstance(value, float):
        if not value.is_integer():
            raise TileError(f"{what}: {role} is {value}, not an integer", code="T145", help="pass an integer")
        value = int(value)
    return builder.index(value)


def _alike(*memories: Addressable) -> list[Addressable]:
    """The operands with the same number of axes: axes of size 1 are removed where the numbers differ."""
    if len({memory.ndim for memory in memories}) == 1:
        return list(memories)
    return [with_axes(memory, squeezed_axes(memory)) for memory in memories]


def _buffers(what: str, *values: object) -> list[Addressable]:
    return _alike(*(as_memory(what, "an operand", value) for value in values))


def _cut(what: str, memories: list[Addressable], size: object) -> list[Addressable]:
    """The first elements of each memory with the shape ``size``; the memories themselves where it is None."""
    if size is None:
        return memories
    sizes = sizes_argument(Builder.running(what), what, size)
    return [right_aligned(what, memory, sizes) for memory in memories]


def _with_axis(size: Sizes | None, axis: int, change: Callable[[Number], Number]) -> Sizes | None:
    """A ``size`` list with one number changed; None stays None."""
    if not isinstance(size, (list, tuple)) or not size:
        return size
    sizes = list(size)
    sizes[axis] = change(sizes[axis])
    return sizes


def _axis(value: int, memory: Addressable) -> int:
    return value % memory.ndim if isinstance(value, int) and -memory.ndim <= value < 0 else value


# --- npuir: destinations last --------------------------------------------------------------------------------------------


@_function("gather")
def _gather(src: Tile, dst: Tile, indices: Tile, size: Sizes | None = None, *, what: str) -> None:
    """Write ``src[..., indices]`` to ``dst``: each index selects an element along the last axis of ``src``.

    ``indices`` must be int32 or int16 and have the shape of ``dst``. ``size`` is the shape of the part that is computed.

    Example: ``NAME(table, out, indices)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, ``dst`` shares elements with an
            input; T502, while the kernel runs, an index is outside ``src``.
    """
    source, target, places = _cut(what, _buffers(what, src, dst, indices), size)
    call(what, "gather", [target], [source, places])


@_function("transpose")
def _transpose(src: Tile, dst: Tile, permutation: Sequence[int] | None = None, size: Sizes | None = None, *, what: str) -> None:
    """Write ``src`` to ``dst`` with two of its axes swapped.

    ``permutation[i]`` is the axis of ``src`` that becomes axis ``i`` of ``dst``; without it, the last two axes are swapped.
    ``size`` is the shape of the part that is computed.

    Example: ``NAME(a, out, [1, 0])``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit, or more than two axes change; T112, the
            destination shares elements with an input; T145, not a permutation.
    """
    source, target = _cut(what, _buffers(what, src, dst), size)
    if permutation is None and source.ndim >= 2:
        permutation = [*range(source.ndim - 2), source.ndim - 1, source.ndim - 2]
    if not isinstance(permutation, (list, tuple)) or not all(type(axis) is int for axis in permutation):
        raise TileError(f"{what}: the permutation is {permutation!r}", code="T145",
                        help="the permutation must be a list of axes, such as [1, 0]")
    call(what, "transpose", [target], [source], {"permutation": list(permutation)})


@_function("cumsum")
def _cumsum(src: Tile, dst: Tile | None = None, dim: int = 0, reverse: bool = False, *, what: str) -> None:
    """Write the cumulative sum of ``src`` along the axis ``dim`` to ``dst``; with ``reverse``, the sum starts at the last
    element.

    ``dst`` must have the shape of ``src``; without ``dst``, the result replaces ``src``. An axis of n elements takes log2(n)
    vector instructions, rounded up, one after another, each on the whole tile: 7 for 128 elements. A scan of 16 x 128 elements
    of float32 (R = 32) takes 7 * (22.5 + 32) = 382 cycles on Ascend910B2.

    Example: ``NAME(a, out, dim=1)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the operands overlap partly.
    """
    source, target = _buffers(what, src, src if dst is None else dst)
    facts: dict[str, Fact] = {"dim": _axis(dim, source)}
    call(what, "cumsum", [target], [source], {**facts, "reverse": True} if reverse else facts)


@_function("cummax")
def _cummax(src: Tile, dst: Tile | None = None, dim: int = 0, reverse: bool = False, *, what: str) -> None:
    """Write the cumulative maximum of ``src`` along the axis ``dim`` to ``dst``; with ``reverse``, it starts at the last
    element.

    ``dst`` must have the shape of ``src``; without ``dst``, the result replaces ``src``. From a NaN on, the result is NaN. An
    axis of n elements takes log2(n) vector instructions, rounded up, one after another, each on the whole tile.

    Example: ``NAME(a, out, dim=1)``

    Raises:
        TileError: as ``T.cumsum``.
    """
    source, target = _buffers(what, src, src if dst is None else dst)
    facts: dict[str, Fact] = {"dim": _axis(dim, source)}
    call(what, "cummax", [target], [source], {**facts, "reverse": True} if reverse else facts)


@_function("arange")
def _arange(dst: Tile, strides: Number | Sequence[Number], offset: Number = 0, *, what: str) -> None:
    """Write ``offset + i * strides[0] + j * strides[1] + ...`` to element ``[i, j, ...]`` of ``dst``.

    ``strides`` must have one integer for each axis of ``dst``.

    Example: ``NAME(out, [64, 1], 0)``

    Raises:
        TileError: T110, an element type is not supported; T111, the number of strides is wrong; T145, an argument is not an
            integer.
    """
    builder = Builder.running(what)
    given = list(strides) if isinstance(strides, (list, tuple)) else [strides]
    values = [_index(builder, what, "an argument", value) for value in (offset, *given)]
    call(what, "arange", [dst], values, contract={"strides": len(given)})


@_function("interleave")
def _interleave(*operands: Tile, channel_nums: int = 2, size: Sizes | None = None, what: str) -> None:
    """``NAME(src0, src1, dst)``: write the elements of two sources alternately along the last axis of ``dst``.

    The last axis of ``dst`` must be twice as long as those of the sources. ``channel_nums`` must be 2. ``size`` is the shape of
    the part of each source that is used.

    Example: ``NAME(a, b, out)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input; T145, the number of buffers or channels is wrong.
    """
    _two(what, channel_nums)
    if len(operands) != 3:
        raise TileError(f"{what}: {len(operands)} buffers", code="T145", help="pass two sources, then the destination")
    *sources, target = _buffers(what, *operands)
    (target,) = _cut(what, [target], _with_axis(size, -1, lambda last: last * 2))
    call(what, "interleave", [target], _cut(what, sources, size))


@_function("deinterleave")
def _deinterleave(src: Tile, *targets: Tile, channel_nums: int = 2, size: Sizes | None = None, index_mode: str = "ALL_CHANNELS",
                  what: str) -> None:
    """``NAME(src, even, odd)``: write the elements at even indices of the last axis to one buffer, those at odd indices to
    another.

    The last axis of each destination must be half as long as that of ``src``. With ``index_mode`` ``"CHANNEL_0"`` (even) or
    ``"CHANNEL_1"`` (odd), there is only one destination. ``channel_nums`` must be 2. ``size`` is the shape of the part of
    ``src`` that is used.

    Example: ``NAME(a, even, odd)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input; T145, the number of buffers or channels is wrong.
    """
    _two(what, channel_nums)
    source, *places = _buffers(what, src, *targets)
    if index_mode not in ("ALL_CHANNELS", "CHANNEL_0", "CHANNEL_1") or len(places) != (2 if index_mode[0] == "A" else 1):
        raise TileError(f"{what}: {len(places)} destinations with index_mode {index_mode!r}", code="T145",
                        help="ALL_CHANNELS must have two destinations, CHANNEL_0 and CHANNEL_1 one")
    places = _cut(what, places, _with_axis(size, -1, lambda last: last // 2))
    call(what, "deinterleave", places, _cut(what, [source], size), {"index_mode": index_mode})


def _two(what: str, channels: int) -> None:
    if channels != 2:
        raise TileError(f"{what}: {channels} channels", code="T145", help="the hardware interleaves two channels")


@_function("concat")
def _concat(*operands: Tile | int, dim: Any = None, size: Sizes | None = None, what: str) -> None:  # dim may come last
    """``NAME(src0, src1, ..., dst, dim)``: write the sources to ``dst`` one after another along the axis ``dim``.

    Along ``dim``, the size of ``dst`` must be the sum of the sizes of the sources; all other sizes must be equal. ``size`` is
    the shape of the part of each source that is used.

    Example: ``NAME(a, b, out, 0)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input; T145, there are fewer than two buffers.
    """
    values: list[Any] = list(operands)
    if dim is None and values:
        dim = values.pop()
    if len(values) < 2:
        raise TileError(f"{what} needs at least one source and a destination, but gets {len(values)} "
                        f"buffer{'' if len(values) == 1 else 's'}", code="T145",
                        help="pass the sources, then the destination and the axis")
    *sources, target = _buffers(what, *values)
    axis = _axis(dim, target)
    if size is not None and isinstance(axis, int) and 0 <= axis < target.ndim:
        sources, (target,) = _cut(what, sources, size), _cut(what, [target], _with_axis(
            size, axis, lambda extent: extent * len(sources)))
    call(what, "concat", [target], sources, {"dim": axis})


@_function("pad")
def _pad(src: Tile, dst: Tile, pad_value: Number, low: Sizes, high: Sizes, size: Sizes | None = None, *, what: str) -> None:
    """Write ``src`` to ``dst`` with ``pad_value`` before and after it along each axis.

    Along axis ``i``, ``dst`` gets ``low[i]`` elements ``pad_value``, then the elements of ``src``, then ``high[i]`` elements
    ``pad_value``. ``size`` is the shape of the part of ``src`` that is used.

    Example: ``NAME(a, out, 0.0, [0, 2], [0, 6])``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit; T112, the destination shares elements
            with an input.
    """
    builder = Builder.running(what)
    source, target = _buffers(what, src, dst)
    widths = [*low, *high]
    if size is not None:
        (source,) = _cut(what, [source], size)
        grown = [sum(parts, start=0) for parts in zip(low, size, high, strict=False)]
        (target,) = _cut(what, [target], grown)
    value = scalar_operand(builder, what, "the pad value", pad_value, source.dtype)
    known = [extent(builder, int(width) if isinstance(width, float) else width) for width in widths]
    numbers = [width if isinstance(width, int) else None for width in known]
    indices = [_index(builder, what, "a width", width) for width in widths]
    call(what, "pad", [target], [source, value, *indices],
         contract={"low": numbers[:len(low)], "high": numbers[len(low):]})


@_function("flip")
def _flip(src: Tile, dst: Tile, axis: int, size: Sizes | None = None, *, what: str) -> None:
    """Write ``src`` to ``dst`` with the elements along the last axis in reverse order.

    ``axis`` must be the last axis, and ``dst`` must have the shape of ``src``.

    Example: ``NAME(a, out, 1)``

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes do not fit, or ``axis`` is not the last axis; T112,
            the destination shares elements with an input.
    """
    source, target = _cut(what, _buffers(what, src, dst), size)
    call(what, "flip", [target], [source], {"axis": _axis(axis, source)})


@_function("vsort", "npuir_sort")
def _sort_rows(src: Tile, dst_value: Tile, dst_index: Tile, descending: bool = False, sort_axis: int = -1, *, what: str,
               ) -> None:
    """Write the elements of ``src`` to ``dst_value``, sorted along the last axis, and the positions that they had along this
    axis to ``dst_index``.

    ``src`` and ``dst_value`` are float32 or float16, ``dst_index`` is int32; all have the same shape. Of equal elements, the
    one with the smaller position comes first here; the hardware promises no order of equal elements.

    Example: ``NAME(scores, values, places, descending=True)``

    Args:
        src: the elements.
        dst_value: the destination of the sorted elements.
        dst_index: the destination of their positions.
        descending: whether the largest element comes first; otherwise the smallest.
        sort_axis: the last axis, as its number or as -1.

    Raises:
        TileError: T110, an element type is not supported; T111, the shapes differ, or ``sort_axis`` is not the last axis; T112,
            a destination shares elements with another operand; T145, ``descending`` is not True or False; T201, an operand is
            not in UB.
    """
    if not isinstance(descending, (bool, int)):
        raise TileError(f"{what}: descending is {shown(descending)}", code="T145", help="descending must be True or False")
    source, values, places = _buffers(what, src, dst_value, dst_index)
    facts: dict[str, Fact] = {"axis": _axis(sort_axis, source)}
    call(what, "vsort", [values, places], [source], {**facts, "descending": True} if descending else facts)


# --- ascendc: destinations first -----------------------------------------------------------------------------------------


@_function("tile.transpose")
def _tile_transpose(dst: Tile, src: Tile, *, what: str) -> None:
    """Write the transpose of the matrix ``src`` (m, n) to ``dst`` (n, m).

    Example: ``NAME(out, a)``
    """
    source, target = _buffers(what, src, dst)
    call(what, "transpose", [target], [source], {"permutation": [1, 0] if source.ndim == 2 else [0]})


@_function("tile.arith_progression")
def _progression(buffer: Tile, first_value: Number, diff_value: Number, count: Number | None = None, *, what: str) -> None:
    """Write ``first_value``, ``first_value + diff_value``, ``first_value + 2 * diff_value``, ... to ``buffer`` in row-major
    order.

    ``count`` is the number of elements to write; without it, all elements of ``buffer`` are written.

    Example: ``NAME(out, 0, 2, 64)``
    """
    builder = Builder.running(what)
    target = as_memory(what, "the destination", buffer)
    if count is not None:
        target = flattened(builder, what, target, extent(builder, count))
    values = [scalar_operand(builder, what, role, value, target.dtype)
              for role, value in (("the first value", first_value), ("the step", diff_value))]
    call(what, "arith_progression", [target], values)


@_function("tile.createvecindex")
def _vector_index(dst: Tile, firstValue: Number, *, what: str) -> None:
    """Write ``firstValue``, ``firstValue + 1``, ``firstValue + 2``, ... to ``dst`` in row-major order.

    Example: ``NAME(out, 0)``
    """
    _progression(dst, firstValue, 1, what=what)


@_function("tile.create_vec_index")
def _vector_index_by_name(dst: Tile, first_value: Number, *, what: str) -> None:
    """Write ``first_value``, ``first_value + 1``, ``first_value + 2``, ... to ``dst`` in row-major order.

    Example: ``NAME(out, first_value=0)``
    """
    _progression(dst, first_value, 1, what=what)


@_function("tile.gather")
def _gather_offsets(dst: Tile, src: Tile, src_offset: Tile, src_base_addr: Number = 0, *, tmp: Tile | None = None,
                    what: str) -> None:
    """Write to ``dst`` the elements of ``src`` at the byte offsets ``src_base_addr + src_offset``.

    ``src_offset`` must be uint32 or int32, with multiples of the size of an element in bytes, and as long as ``dst``.
    ``tmp`` is scratch memory in UB; its contents are undefined after the call.

    Example: ``NAME(out, a, offsets)``
    """
    builder = Builder.running(what)
    call(what, "gather_offsets", [dst], [src, src_offset, _index(builder, what, "the base", src_base_addr)])
    use_scratch(what, tmp, dst, src, src_offset)


@_function("tile.gather_mask")
def _gather_mask(dst: Tile, src: Tile, src1Pattern: Tile | str, *, tmp: Tile | None = None, what: str) -> None:
    """Write the elements of ``src`` that a pattern or indices select to the beginning of ``dst``, without gaps.

    ``src1Pattern`` is a pattern: ``"P0101"`` (elements 0, 2, 4, ...), ``"P1010"`` (1, 3, 5, ...), ``"P0001"``, ``"P0010"``,
    ``"P0100"`` or ``"P1000"`` (every fourth element from element 0, 1, 2 or 3 on), or ``"P1111"`` (all elements). It can also
    be a buffer of indices, in which the call replaces each index by a byte offset. ``tmp`` is scratch memory in UB; its
    contents are undefined after the call.

    Example: ``NAME(out, a, "P0101")``
    """
    if isinstance(src1Pattern, str):
        call(what, "gather_mask", [dst], [src], {"pattern": src1Pattern})
    else:
        call(what, "gather_mask", [dst], [src, src1Pattern])
        indices, scale = as_memory(what, "the indices", src1Pattern), ops.operation("mul")
        assert isinstance(scale, Elementwise)
        offsets = movement.bits_as(what, indices, "int32")
        apply(what, scale, [offsets, as_memory(what, "the input", src).dtype.nbytes], offsets)
    use_scratch(what, tmp, dst, src, src1Pattern)


@_function("tile.sort")
def _sort(dst: Tile, src: Tile, actual_num: Number, *, tmp: Tile | None = None, what: str) -> None:
    """Sort the first ``actual_num`` elements of ``src`` in descending order, and write pairs of value and index to ``dst``.

    ``dst`` must be twice as long as ``src``; it gets value, index, value, index, ... An index has the element type of the
    values; in float16 it is exact up to 2048. ``T.deinterleave`` separates values and indices. A float32 ``src`` is also
    written: elements from ``actual_num`` up to the next multiple of 32 become -inf. ``tmp`` is scratch memory in UB; its
    contents are undefined after the call.

    Example: ``NAME(pairs, a, 64)``
    """
    builder = Builder.running(what)
    call(what, "sort", [dst, src], [src, _index(builder, what, "actual_num", actual_num)],
         contract={"actual_num": actual_num})
    use_scratch(what, tmp, dst, src)


@_function("tile.topk")
def _topk(dst: Tile, src: Tile, K: int, actual_num: Number, *, tmp: Tile | None = None, what: str) -> None:
    """Write the ``K`` largest of the first ``actual_num`` elements of ``src``, as pairs of value and index, to ``dst``.

    The pairs are in descending order, as ``T.tile.sort`` writes them, and their number is rounded up to whole blocks of 32
    bytes. A float32 ``src`` is also written: elements from ``actual_num`` on become -inf. ``tmp`` is scratch memory in UB; its
    contents are undefined after the call.

    Example: ``NAME(pairs, a, 8, 64)``
    """
    builder = Builder.running(what)
    if not isinstance(K, int) or K <= 0:
        raise TileError(f"{what}: K is {K!r}", code="T145", help="K must be a positive constant")
    call(what, "topk", [dst, src], [src, _index(builder, what, "actual_num", actual_num)], {"k": K},
         contract={"actual_num": actual_num})
    use_scratch(what, tmp, dst, src)


@_function("tile.merge_sort")
def _merge_sort(dst: Tile, src0: Operand, src1: Operand, src2: Operand | None = None, src3: Operand | None = None, *,
                tmp: Tile | None = None, what: str) -> None:
    """Merge 2 to 4 lists of pairs, each sorted by ``T.tile.sort``, into one sorted list, and write it to ``dst``.

    ``dst`` must be as long as the sum of the lengths of the lists. ``tmp`` is scratch memory in UB; its contents are undefined
    after the call.

    Example: ``NAME(pairs, left, right)``
    """
    sources = [source for source in (src0, src1, src2, src3) if source is not None]
    call(what, "merge_sort", [dst], sources)
    use_scratch(what, tmp, dst, *sources)


@_function("tile.sort32")
def _sort32(dst: Tile, src0: Operand, src1: Operand, *, what: str) -> None:
    """Sort each group of 32 elements of ``src0`` in descending order, and write pairs of value and index to ``dst``.

    A pair has 8 bytes: the value, and the index of the element, which is taken from ``src1`` (uint32).

    Example: ``NAME(pairs, a, indices)``
    """
    call(what, "sort32", [dst], [src0, src1])


@dataclass(frozen=True)
class _RecordOperand:
    """An operand of an operation on records: the first ``count`` elements of a tile with one axis besides axes of size 1.

    Attributes:
        role: what the operand is to the call, for messages.
        memory: the tile.
        count: the number of elements.
        align: the number of bytes of which the address must be a multiple.
    """

    role: str
    memory: Addressable
    count: int
    align: int

    def cut(self, what: str) -> Addressable:
        """Returns the elements, or raises T111 where the tile has more axes or fewer elements."""
        memory = with_axes(self.memory, squeezed_axes(self.memory))
        if memory.ndim > 1:
            raise TileError(f"{what}: {self.role} {self.memory.describe()} has {memory.ndim} axes", code="T111",
                            help="pass a buffer with one axis, or a slice of one row")
        have = memory.extents[0]
        if isinstance(have, int) and have < self.count:
            raise TileError(f"{what}: {self.role} {self.memory.describe()} has {have} elements, and {self.count} are needed",
                            code="T111", help="pass a longer buffer, or sort fewer elements")
        return resized(memory, [self.count if axis in memory.kept else size for axis, size in enumerate(memory.sizes)])

    def require_alignment(self, what: str) -> None:
        """Raises T510 where the tile is known to begin at an address that is not aligned."""
        offset = self.memory.offsets[-1]
        if isinstance(offset, int) and offset * self.memory.dtype.nbytes % self.align:
            raise TileError(f"{what}: {self.role} {self.memory.describe()} begins at element {offset} of its row", code="T510",
                            help=f"let the slice begin at a multiple of {self.align} bytes")


def _call_on_records(what: str, name: str, target: _RecordOperand, sources: Sequence[_RecordOperand],
                     facts: Mapping[str, Fact] | None = None) -> None:
    """Checks the operands of an operation on records, and emits the operation on exactly the elements that it accesses.

    Raises:
        TileError: as :func:`checked`; T510, an operand does not begin at an aligned address.
    """
    entry = ops.operation(name)
    assert isinstance(entry, Structured)
    operands = (target, *sources)
    for one in operands:
        _require_memory(what, entry, one.role, one.memory)
    lines = [one.cut(what) for one in operands]
    checked(what, name, lines[:1], lines[1:], facts)
    for one in operands:
        one.require_alignment(what)
    call(what, name, lines[:1], lines[1:], facts)


def _record_width(what: str, name: str, target: Addressable, *scores: Addressable) -> int:
    """Returns the number of elements of a record of 8 bytes, or raises T110 for element types that have no records."""
    entry = ops.operation(name)
    for memory in (*scores, target):
        if memory.dtype not in entry.dtypes or memory.dtype != target.dtype:
            raise TileError(f"{what}: {memory.describe()} has elements of {memory.dtype}, the destination of {target.dtype}",
                            code="T110", help=f"give scores and records one element type of {', '.join(entry.dtypes)}")
    return 8 // target.dtype.nbytes


def _constant(what: str, role: str, value: object, low: int, high: int) -> int:
    """Returns an argument that must be an integer constant from ``low`` to ``high``, or raises T145."""
    if type(value) is not int or not low <= value <= high:
        raise TileError(f"{what}: {role} is {shown(value)}", code="T145", help=f"pass a constant from {low} to {high}")
    return value


@_function("vsort32")
def _sort_groups(src: Tile, indices: Tile, dst: Tile, repeat_times: int = 1, *, what: str) -> None:
    """Sort ``repeat_times`` groups of 32 scores, each in descending order, and write records of score and index to ``dst``.

    The groups are the first ``32 * repeat_times`` elements of ``src``; their indices, int32 or uint32, are the elements of
    ``indices`` at the same positions. A record has 8 bytes: the score, and the bits of the index in the last 4 bytes. ``dst``
    has the element type of ``src``; float32 records have 2 elements, float16 records have 4, of which the second is reserved.
    The groups are not merged (``T.vmrgsort``). Each operand has one axis and begins at a multiple of 32 bytes. Upstream takes
    float32 only.

    Example: ``NAME(scores, indices, records, repeat_times=2)``

    Raises:
        TileError: T110, an element type is not supported; T111, an operand has too few elements or several axes; T112, ``dst``
            shares elements with an input; T145, ``repeat_times`` is not a constant from 1 to 255; T201, an operand is not in
            UB; T510, a slice does not begin at a multiple of 32 bytes.
    """
    count = 32 * _constant(what, "repeat_times", repeat_times, 1, 255)
    source, places, target = (as_memory(what, role, value) for role, value in (
        ("the source", src), ("the buffer of indices", indices), ("the destination", dst)))
    width = _record_width(what, "sort32", target, source)
    if str(places.dtype) not in ("int32", "uint32"):
        raise TileError(f"{what}: the indices {places.describe()} have elements of {places.dtype}", code="T110",
                        help="give the indices as int32 or uint32")
    _call_on_records(what, "sort32", _RecordOperand("the destination", target, width * count, 32), [
        _RecordOperand("the source", source, count, 32), _RecordOperand("the buffer of indices", places, count, 32)])


_QUEUES = {3: 2, 7: 3, 15: 4}
"""The number of queues that take part in a merge, by ``valid_bit``."""


@_function("vmrgsort")
def _merge_queues(src0: Tile, src1: Tile, src2: Tile, src3: Tile, dst: Tile, element_lengths: Sequence[int],
                  valid_bit: int = 15, repeat_times: int = 1, exhausted_suspension: bool = False, *, what: str) -> None:
    """Merge 2 to 4 queues of records, each in descending order of its scores (``T.vsort32``), and write the result to ``dst``.

    ``element_lengths`` are four constants from 0 to 4095: how many records of 8 bytes each queue has. ``valid_bit`` is 3, 7 or
    15: the first 2, 3 or 4 queues take part. Of equal scores, the one of the first queue comes first. A queue of length 0 has
    no part. ``dst`` needs room for all records, and shares no element with a queue.

    With ``repeat_times`` of 2 to 255, that many merges follow one another in memory: the four queues have equal lengths and lie
    one after another in one buffer, each group of queues after the one before, and so do the results in ``dst``.

    With ``exhausted_suspension`` the merge ends when a queue is exhausted. The elements of ``dst`` after the records that were
    merged until then are undefined.

    Example: ``NAME(a, b, a, a, out, (32, 32, 0, 0), valid_bit=3)``

    Raises:
        TileError: T110, an element type is not supported; T111, an operand has too few elements or several axes, or the queues
            of repeated merges are not adjacent; T112, ``dst`` shares elements with a queue; T145, another argument is none of
            these; T201, an operand is not in UB; T510, ``dst`` does not begin at a multiple of 32 bytes, or a queue does not
            begin at a multiple of 8 bytes.
    """
    if not isinstance(element_lengths, (list, tuple)) or len(element_lengths) != 4:
        raise TileError(f"{what}: element_lengths is {shown(element_lengths)}", code="T145",
                        help="pass the number of records of each of the four queues")
    lengths = [_constant(what, f"element_lengths[{place}]", length, 0, 4095) for place, length in enumerate(element_lengths)]
    repeats = _constant(what, "repeat_times", repeat_times, 1, 255)
    if type(valid_bit) is not int or valid_bit not in _QUEUES:
        raise TileError(f"{what}: valid_bit is {shown(valid_bit)}", code="T145",
                        help="pass 3, 7 or 15, with which the first 2, 3 or 4 queues take part")
    if repeats > 1 and (valid_bit != 15 or exhausted_suspension or len(set(lengths)) != 1):
        raise TileError(f"{what}: a merge that is repeated {repeats} times needs four queues of equal length and no suspension",
                        code="T145", help="pass valid_bit=15 and four equal lengths, or merge once per call")
    target, *places = (as_memory(what, role, value) for role, value in (
        ("the destination", dst), ("queue 0", src0), ("queue 1", src1), ("queue 2", src2), ("queue 3", src3)))
    width = _record_width(what, "mrgsort", target, *places)
    if repeats > 1:
        _require_adjacent(what, places, lengths[0] * width)
        lines = [_RecordOperand("queue 0", places[0], 4 * repeats * lengths[0] * width, 8)]
    else:
        taking_part = [place for place in range(_QUEUES[valid_bit]) if lengths[place]]
        lines = [_RecordOperand(f"queue {place}", places[place], lengths[place] * width, 8) for place in taking_part]
        lengths = [lengths[place] for place in taking_part]
    if sum(lengths):
        _call_on_records(what, "mrgsort", _RecordOperand("the destination", target, repeats * sum(lengths) * width, 32), lines,
                         {"element_lengths": lengths, "repeat_times": repeats,
                          "exhausted_suspension": bool(exhausted_suspension)})


def _require_adjacent(what: str, queues: Sequence[Addressable], step: int) -> None:
    """Raises T111 where queues are known not to begin ``step`` elements apart in one buffer."""
    first = queues[0]
    for place, queue in enumerate(queues):
        known = queue.buffer is not first.buffer or all(isinstance(one, int) for one in (*queue.offsets, *first.offsets))
        if known and (queue.buffer is not first.buffer or [*queue.offsets] != [
                *first.offsets[:-1], first.offsets[-1] + place * step]):
            raise TileError(f"{what}: queue {place}, {queue.describe()}, does not begin {place * step} elements after queue 0",
                            code="T111", help="in repeated merges, the queues lie one after another in one buffer")


@_function("vextract_pairs")
def _extract_pairs(src: Tile, values: Tile, indices: Tile, *, what: str) -> None:
    """Write the scores of records of 8 bytes (``T.vsort32``) to ``values``, and the bits of their indices to ``indices``.

    ``src`` and ``values`` are float32, ``indices`` is int32 or uint32; ``src`` has twice as many elements as each of the
    others. Indices are not converted. Each operand has one axis.

    Example: ``NAME(records, values, indices)``

    Raises:
        TileError: T110, an element type is not supported; T111, the numbers of elements do not fit; T112, the operands share
            elements; T201, an operand is not in UB.
    """
    memories = [as_memory(what, role, value) for role, value in (
        ("the source", src), ("the destination of the values", values), ("the destination of the indices", indices))]
    for memory, kinds in zip(memories, (("float32",), ("float32",), ("int32", "uint32")), strict=True):
        if str(memory.dtype) not in kinds:
            raise TileError(f"{what}: {memory.describe()} has elements of {memory.dtype}", code="T110",
                            help="pass float32 records, float32 values and int32 indices")
    source, scores, places = (with_axes(memory, squeezed_axes(memory)) for memory in memories)
    call(what, "deinterleave", [scores, movement.bits_as(what, places, "float32")], [source], {"index_mode": "ALL_CHANNELS"})


@_function("tile.compare")
def _compare(dst: Tile, src0: Operand, src1: Operand, mode: str, *, what: str) -> None:
    """Compare the elements of ``src0`` with those of ``src1`` or with a scalar, and write one bit for each element to ``dst``.

    ``mode`` is ``"EQ"``, ``"NE"``, ``"LT"``, ``"LE"``, ``"GT"`` or ``"GE"``. ``dst`` must be uint8 and have an eighth of the
    number of elements. The bit of the first element is the lowest bit of the first byte.

    Example: ``NAME(mask, a, b, "LT")``
    """
    builder = Builder.running(what)
    word = str(mode).lower()
    if word not in ("eq", "ne", "lt", "le", "gt", "ge"):
        raise TileError(f"{what}: there is no comparison {mode!r}", code="T145",
                        help="the comparisons are EQ, NE, LT, LE, GT, GE")
    left = as_memory(what, "the first input", src0)
    right = scalar_operand(builder, what, "the second input", src1, left.dtype) if is_scalar(src1) else src1
    call(what, "compare_bits", [dst], [left, right], {"mode": word})


@_function("tile.select")
def _select(dst: Tile, selMask: Tile, src0: Operand, src1: Operand, selMode: str, *, tmp: Tile | None = None,
            what: str) -> None:
    """Write ``src0`` to ``dst`` where the bit of ``selMask`` is set, and ``src1`` elsewhere.

    ``selMask`` must have one bit for each element, as ``T.tile.compare`` writes it. ``selMode`` must be
    ``"VSEL_TENSOR_SCALAR_MODE"`` if ``src1`` is a scalar, else ``"VSEL_CMPMASK_SPR"`` or ``"VSEL_TENSOR_TENSOR_MODE"``.
    ``tmp`` is scratch memory in UB; its contents are undefined after the call.

    Example: ``NAME(out, mask, a, b, "VSEL_CMPMASK_SPR")``
    """
    builder = Builder.running(what)
    modes = ("VSEL_CMPMASK_SPR", "VSEL_TENSOR_SCALAR_MODE", "VSEL_TENSOR_TENSOR_MODE")
    if selMode not in modes:
        raise TileError(f"{what}: there is no mode {selMode!r}", code="T145", help="the modes are " + ", ".join(modes))
    if is_scalar(src1) != (selMode == "VSEL_TENSOR_SCALAR_MODE"):
        raise TileError(f"{what}: {selMode} with {'a scalar' if is_scalar(src1) else 'a buffer'} as second input",
                        code="T145", help="VSEL_TENSOR_SCALAR_MODE takes a scalar, the other modes take a buffer")
    left = as_memory(what, "the first input", src0)
    right = scalar_operand(builder, what, "the second input", src1, left.dtype) if is_scalar(src1) else src1
    call(what, "select_bits", [dst], [selMask, left, right])
    use_scratch(what, tmp, dst, selMask, src0, src1)


@_function("tile.row_expand_mul", "tile.row_expand_mul_nd", "tile.row_expand_sub", "tile.row_expand_div",
           "tile.row_expand_mul_experiment", "tile.row_expand_sub_experiment", "tile.row_expand_div_experiment")
def _row_expand(dst: Tile, src0: Operand, src1: Operand, tmp: Tile | None = None, *, what: str) -> None:
    """Multiply each row of ``src0`` by one element of ``src1``, or subtract the element, or divide by it; write the result to
    ``dst``.

    The function's name says which operation it is. ``dst`` and ``src0`` must have the shape (m, n), and ``src1`` the shape (m,
    1) or (m,). In the functions with ``_experiment``, ``src1`` can also have 32 bytes for each row, which are applied to every
    32 bytes of the row. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

    Example: ``NAME(out, a, rows)``
    """
    builder = Builder.running(what)
    entry = ops.operation(next(part for part in ("mul", "sub", "div") if part in what))
    assert isinstance(entry, Elementwise)
    left, rows = as_memory(what, "the first input", src0), as_memory(what, "the second input", src1)
    block = 32 // rows.dtype.nbytes
    columns = left.extents[-1]
    if (what.endswith("_experiment") and left.ndim == 2 and same_shape(rows.extents, (left.extents[0], block))
            and isinstance(columns, int) and columns % block == 0):
        target = as_memory(what, "the destination", dst)
        for start in range(0, columns, block):
            part = (slice(None), slice(start, start + block))
            apply(what, entry, [left[part], rows], target[part])
        use_scratch(what, tmp, dst, src0, src1, flat=False)
        return
    wanted = (left.extents[0], 1)
    squeezed = with_axes(rows, squeezed_axes(rows)).extents
    if left.ndim != 2 or not (same_shape(squeezed, wanted[:1]) or same_shape(rows.extents, wanted)):
        raise TileError(f"{what}: {rows.describe()} does not have one element for each row of {left.describe()}", code="T111",
                        help="the second input must have one element for each row of the first input; for a function whose "
                             "name ends in _experiment, 32 bytes for each row are possible too")
    count = left.extents[0]
    if not isinstance(count, int):
        raise TileError(f"{what}: {left.describe()} has a number of rows that is not constant", code="T190",
                        help="work on a constant number of rows")
    column = Buffer(rows.name, rows.dtype, (count, 1), rows.buffer.space, seen_as(builder, rows, wanted))
    apply(what, entry, [left, column], dst)
    use_scratch(what, tmp, dst, src0, src1, flat=False)


# --- atomic additions and debug output -----------------------------------------------------------------------------------


@_function("atomic_add", "atomic_addx4", "atomic_addx2", "tile.atomic_add")
def _atomic_add(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None, what: str) -> None:
    """Add the tile ``src`` in UB or L0C to a tile of the global tensor ``dst``; each element is updated atomically.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``. In ``T.Parallel``, or if ``dst`` is an element and ``src`` a
    number, one element is added. ``memory_order`` must be ``"relaxed"`` or None.

    Example: ``NAME(C[row, 0], tile)``

    Raises:
        TileError: T110, there is no atomic addition of the element type; T131, the shapes differ; T132, both or none of the
            operands are in GM; T190, another ``memory_order``.
    """
    _update(what, "add", dst, src, size, memory_order)


@_function("atomic_max")
def _atomic_max(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None, what: str) -> None:
    """Write to a tile of the global tensor ``dst`` the larger value of each of its elements and that of the tile ``src``.

    ``src`` is in UB or L0C. Each element is updated atomically. Operands are as for ``T.atomic_add``.

    Example: ``NAME(C[row, 0], tile)``

    Raises:
        TileError: as ``T.atomic_add``.
    """
    _update(what, "max", dst, src, size, memory_order)


@_function("atomic_min")
def _atomic_min(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None, what: str) -> None:
    """Write to a tile of the global tensor ``dst`` the smaller value of each of its elements and that of the tile ``src``.

    ``src`` is in UB or L0C. Each element is updated atomically. Operands are as for ``T.atomic_add``.

    Example: ``NAME(C[row, 0], tile)``

    Raises:
        TileError: as ``T.atomic_add``.
    """
    _update(what, "min", dst, src, size, memory_order)


def _update(what: str, kind: str, dst: Tile, src: Tile, size: Sizes | None, memory_order: str | None) -> None:
    """Emits an atomic update of a tile or an element of a global tensor.

    Args:
        what: the name of the call, for messages.
        kind: the operation: one of ``atomic_mode.UPDATES``.
        dst, src, size, memory_order: the arguments of the call.

    Raises:
        TileError: as ``T.atomic_add``.
    """
    if memory_order not in (None, "relaxed"):
        raise TileError(f"{what}: memory_order={memory_order!r} is not supported", code="T190",
                        help=f"remove memory_order: an atomic {UPDATES[kind]} orders no other access; T.sync_all() orders the"
                             " accesses of blocks")
    builder = Builder.running(what)
    place = place_of(dst)
    if place is not None and place.buffer.space == "gm" and size is None and not isinstance(src, Addressable):
        require_updatable(what, kind, place.buffer.element)
        if kind == "add" and builder.repeats > 1 and not builder.in_parallel:
            raise TileError(f"{what}: {builder.repeats} threads of a GPU would each add to {place.describe()}", code="T190",
                            help="let one thread add, under `if T.get_thread_binding() == 0:`, or add a multiple of the value")
        place.store(src, atomic=kind)
        return
    source, target = movement.operand(what, "source", src), movement.operand(what, "destination", dst)
    if source.buffer.space == "gm" and target.buffer.space != "gm":  # older scripts pass (src, dst)
        source, target = target, source
    if target.buffer.space != "gm" or source.buffer.space == "gm":
        does = "adds a buffer on the chip to" if kind == "add" else "combines a buffer on the chip with"
        raise TileError(f"{what} {does} a global tensor", code="T132",
                        help="the destination must be a tensor parameter of the kernel, and the source a buffer on the chip")
    a, b = movement.extents(builder, what, source, target, size)
    require_updatable(what, kind, b.dtype)
    check_inside(what, a)
    builder.tile_op(tile.CopyOp(a.ssa(builder), b.ssa(builder), atomic=kind), what, by_point=True)


@_function("print")
def _print(obj: Operand, msg: str = "", hex: bool = False, *, what: str) -> None:  # noqa: A002  (the language's name)
    """Print the text ``msg``, and then the elements of a buffer or slice, or a scalar, when the statement is executed.

    With ``hex``, integers are printed in base 16.

    Example: ``NAME(a, msg="a")``
    """
    builder = Builder.running(what)
    if isinstance(obj, str):
        raise TileError(f"{what} of a text without a value is not supported", code="T190",
                        help="T.printf(text, ...) prints a text; T.print takes a value, and msg=...")
    given = obj if isinstance(obj, Addressable) else number(builder, obj)
    if isinstance(given, (int, float)):
        given = builder.literal(given, DType("float32" if isinstance(given, float) else "int32"))
    value = given.ssa(builder)
    builder.tile_op(tile.PrintOp(value, msg or "", hexadecimal=bool(hex)), what)


# --- transfers between the cards of a pod ----------------------------------------------------------------------------------


@_function("shmem_put_nbi")
def _put(dst: Tile, src: Tile, nelems: Number, newPe: Number, *, what: str) -> None:
    """Write ``nelems`` elements of the tensor ``src`` of this card to the tensor ``dst`` of the card ``newPe``.

    The elements are consecutive in memory and begin at the first element of each operand: a tensor, a slice, or an element
    ``A[i, j]``. ``dst`` is on the symmetric heap (``import shmem``); on the other card, the elements are written to the same
    place of the heap. The data pass through a buffer in UB that the compiler allocates. The call does not wait until the data
    have arrived, and tells the other card nothing: see docs/pods.md.

    Example: ``NAME(B, A, 1024, (rank + 1) % ranks)``

    Raises:
        TileError: T110, the element types differ, or are not supported; T111, there are not so many elements; T145, ``nelems``
            is negative; T201, an operand is not a tensor. While the kernel runs: T430, ``dst`` is not on the symmetric heap;
            T431, there is no such card; T502, an access is outside of a tensor.
    """
    _peer_move(what, "shmem_put_nbi", dst, src, nelems, newPe)


@_function("shmem_get_nbi")
def _get(dst: Tile, src: Tile, nelems: Number, newPe: Number, *, what: str) -> None:
    """Write ``nelems`` elements of the tensor ``src`` of the card ``newPe`` to the tensor ``dst`` of this card.

    Operands are as for ``T.shmem_put_nbi``; here ``src`` is on the symmetric heap.

    Example: ``NAME(B, A, 1024, (rank + 1) % ranks)``

    Raises:
        TileError: as ``T.shmem_put_nbi``, with T430 for ``src``.
    """
    _peer_move(what, "shmem_get_nbi", dst, src, nelems, newPe)


@_function("shmem_ub_put_nbi")
def _ub_put(ub: Tile, dst: Tile, nelems: Number, newPe: Number, strelem: Number = 0, *, what: str) -> None:
    """Write ``nelems`` elements of the buffer ``ub`` in UB to the tensor ``dst`` of the card ``newPe``.

    The elements are consecutive in memory. They begin at the first element of ``ub``, and in ``dst`` ``strelem`` elements after
    its first one. ``dst`` is on the symmetric heap, as for ``T.shmem_put_nbi``. ``ub`` can be written again when pipe MTE3 has
    finished the call. If the whole buffer ``ub`` has fewer than ``nelems`` elements, all of them are written, with a warning
    (T113): the hardware would write the memory after the buffer too.

    Example: ``NAME(tile, B, 1024, (rank + 1) % ranks, 2048)``

    Raises:
        TileError: T110, the element types differ, or are not supported; T111, there are not so many elements; T145, ``nelems``
            or ``strelem`` is negative; T201, ``ub`` is not in UB, or ``dst`` is not a tensor. While the kernel runs: as
            ``T.shmem_put_nbi``.
    """
    _peer_move(what, "shmem_ub_put_nbi", dst, ub, nelems, newPe, strelem)


@_function("shmem_ub_atomic_add_nbi")
def _ub_add(ub: Tile, dst: Tile, nelems: Number, newPe: Number, strelem: Number = 0, *, what: str) -> None:
    """Add ``nelems`` elements of the buffer ``ub`` in UB to the tensor ``dst`` of the card ``newPe``.

    Each sum is written to ``dst``. Operands are as for ``T.shmem_ub_put_nbi``. Cards may add to the same elements at the same
    time; the order of the additions is not determined.

    Example: ``NAME(tile, B, 1024, (rank + 1) % ranks)``

    Raises:
        TileError: as ``T.shmem_ub_put_nbi``.
    """
    _peer_move(what, "shmem_ub_atomic_add_nbi", dst, ub, nelems, newPe, strelem)


@_function("shmem_ub_get_nbi")
def _ub_get(dst: Tile, src: Tile, nelems: Number, newPe: Number, *, what: str) -> None:
    """Write ``nelems`` elements of the tensor ``src`` of the card ``newPe`` to the buffer ``dst`` in UB.

    The elements are consecutive in memory and begin at the first element of each operand. ``src`` is on the symmetric heap, as
    for ``T.shmem_get_nbi``.

    Example: ``NAME(tile, A, 1024, (rank + 1) % ranks)``

    Raises:
        TileError: as ``T.shmem_ub_put_nbi``, with T430 for ``src``.
    """
    _peer_move(what, "shmem_ub_get_nbi", dst, src, nelems, newPe)


def _peer_move(what: str, name: str, target: object, source: object, count: object, rank: object, start: object = 0) -> None:
    """Emits a transfer of ``count`` consecutive elements, which begin ``start`` elements after the first one of ``target``."""
    builder = Builder.running(what)
    builder.require_kernel(what)
    length, first = extent(builder, count), extent(builder, start)
    for role, given in (("the number of elements", length), ("strelem", first)):
        if isinstance(given, int) and given < 0:
            raise TileError(f"{what}: {role} is {given}", code="T145", help="pass an integer that is not negative")
    ends = as_memory(what, "the destination", target), as_memory(what, "the source", source)
    entry = ops.operation(name)
    assert isinstance(entry, Structured)
    for role, memory in zip(("the destination", "input"), ends, strict=True):
        _require_memory(what, entry, role, memory)
    source_count = element_count(ends[1])
    if name == "shmem_ub_put_nbi" and isinstance(length, int) and isinstance(ends[1], Buffer) and source_count is not None \
            and source_count < length:
        builder.remark(TileError(
            f"{what}: the number of elements is {length}, and {ends[1].describe()} has {source_count}; the elements after the "
            "end are left out", code="T113", location=builder.location,
            help="the hardware would read the memory after the buffer, and write it to the other card"))
        length = source_count
    if not (isinstance(length, int) and length == 0):
        lines = [elements_from(builder, what, memory, length, after) for memory, after in zip(ends, (first, 0), strict=True)]
        call(what, name, lines[:1], [lines[1], _index(builder, what, "the rank", rank)])


# --- operations whose functions are made from their entries ---------------------------------------------------------------


def signature_of(name: str, entry: Structured) -> inspect.Signature:
    """Returns the signature of the function of ``T`` that is made from an op table entry.

    Its parameters are the buffers, then the integer operands, then the attributes. In ``T.tile``, the destinations come before
    the input buffers, in other functions after them.

    Args:
        name: the function's name after ``T.``.
        entry: the operation's entry in the op table.
    """
    buffers = entry.inputs[:len(entry.inputs) - len(entry.scalars)]
    tiles = [*entry.outputs, *buffers] if name.startswith("tile.") else [*buffers, *entry.outputs]
    required, kind = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [*(inspect.Parameter(one, kind, annotation="Tile") for one in tiles),
                  *(inspect.Parameter(one, kind, annotation="Number") for one in entry.scalars)]
    # Python wants parameters without a default first.
    for one, default in sorted(entry.attributes.items(), key=lambda pair: not isinstance(pair[1], type)):
        parameters.append(inspect.Parameter(one, kind, annotation=_kind_of(default).__name__,
                                            default=required if isinstance(default, type) else default))
    return inspect.Signature(parameters, return_annotation="None")


def _kind_of(default: object) -> type:
    """The type of an attribute by its default, or the type itself where a required attribute has one instead of a default."""
    return default if isinstance(default, type) else type(default)


def _from_entry(name: str, entry: Structured) -> Callable[..., None]:
    """A function whose parameters follow from the entry."""
    signature = signature_of(name, entry)
    buffers = entry.inputs[:len(entry.inputs) - len(entry.scalars)]

    def body(*arguments: object, what: str, **keywords: object) -> None:
        given, builder = bound(what, signature, arguments, keywords), Builder.running(what)
        facts = {one: _fact(what, one, given[one], _kind_of(default)) for one, default in entry.attributes.items()}
        numbers = [_index(builder, what, one, given[one]) for one in entry.scalars]
        call(what, entry.name, [given[one] for one in entry.outputs], [*(given[one] for one in buffers), *numbers], facts)

    shown = [f"{one}=..." if parameter.annotation not in ("Tile", "Number") else one for one, parameter in
             signature.parameters.items() if parameter.default is inspect.Parameter.empty]
    example = ", ".join(shown)
    made = function_of(name, body, from_table(name, entry.name, f"{entry.doc}\n\nExample: ``NAME({example})``"))
    made.__signature__ = signature  # type: ignore[attr-defined]  # read by help() and by messages
    return made


def _fact(what: str, name: str, value: object, kind: type) -> Fact:
    """The value of an attribute of a call, checked.

    Raises:
        TileError: T145, it has another type.
    """
    if kind is list and isinstance(value, (list, tuple)) and all(type(item) is int for item in value):
        return list(value)
    if type(value) is kind and isinstance(value, int | bool | str):
        return value
    words = {int: "an integer", bool: "True or False", str: "a text", list: "a list of integers"}[kind]
    raise TileError(f"{what}: {name} is {value!r}", code="T145",
                    help=f"{name} must be {words} that is known when the kernel is compiled")


_ENTRIES = {"tile.compare": "compare_bits", "tile.select": "select_bits"}
"""The entry of a function whose name belongs to another entry of the op table."""


@cache
def function(name: str) -> Callable[..., None]:
    """Returns the function ``T.<name>`` for a name such as ``vgather``, ``npuir_gather`` or ``tile.gather``.

    The function is an implementation in this module, or is made from the operation's entry in the op table.

    Raises:
        KeyError: there is no such function.
    """
    base = name
    if name not in _BODIES:
        base = name.removeprefix("npuir_") if name.startswith("npuir_") else name.removeprefix("v")
    body = _BODIES.get(base)
    if body is None:
        entry = ops.operation(name)
        if not isinstance(entry, Structured):
            raise KeyError(name)
        return _from_entry(name, entry)
    return function_of(name, body, from_table(name, _ENTRIES.get(name, name), body.__doc__ or ""))


__all__ = ["call", "checked", "function", "signature_of"]
