"""Operations that move, scan, sort or make data, atomic additions and debug output: one function for each name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from xdsl.ir import SSAValue

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.tile.calls import Fact
from tilelang_npu.errors import TileError
from tilelang_npu.language.atomic import add_to_global
from tilelang_npu.language.described import from_table
from tilelang_npu.language.elementwise import apply
from tilelang_npu.language.flat import flattened
from tilelang_npu.language.movement import bits_as
from tilelang_npu.language.operands import (
    as_memory,
    is_scalar,
    overlap,
    require_vector_memory,
    right_aligned,
    same_shape,
    scalar_operand,
    seen_as,
    sizes_argument,
    squeezed_axes,
    with_axes,
)
from tilelang_npu.ops import DType, Elementwise, Refused, Shape, Structured
from tilelang_npu.traced.buffers import Addressable, Buffer, Operand, Sizes, Tile
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import extent, number
from tilelang_npu.traced.symbols import Number


def _shape(memory: Addressable) -> Shape:
    return Shape(memory.dtype, tuple(size if isinstance(size, int) else None for size in memory.extents))


def call(what: str, name: str, outputs: Sequence[object], inputs: Sequence[object], facts: Mapping[str, Fact] | None = None,
         contract: Mapping[str, object] | None = None) -> None:
    """Check a call against its entry and emit it. Inputs are buffers, or values that are ready for the operation.

    Raises:
        TileError: as of :func:`checked`.
    """
    builder = Builder.running(what)
    outs, ins = checked(what, name, outputs, inputs, facts, contract)
    values = [value if isinstance(value, SSAValue) else value.ssa(builder) for value in ins]
    builder.tile_op(tile.CallOp(name, values, [value.ssa(builder) for value in outs], facts), what)


def checked(what: str, name: str, outputs: Sequence[object], inputs: Sequence[object], facts: Mapping[str, Fact] | None = None,
            contract: Mapping[str, object] | None = None) -> tuple[list[Addressable], list[Addressable | SSAValue]]:
    """Outputs and inputs of a call that its entry takes.

    Raises:
        TileError: T110 element types, T111 shapes, T112 operands that share elements, T145 arguments, T201 operands that
            are not in UB.
    """
    entry = ops.operation(name)
    assert isinstance(entry, Structured)
    outs = [as_memory(what, "the destination", value) for value in outputs]
    ins = [value if isinstance(value, SSAValue) else as_memory(what, "an input", value) for value in inputs]
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
        require_vector_memory(what, "input", source)
        for target in outs:
            how = overlap(source, target)
            if how == "partial" or (how == "same" and not entry.in_place):
                raise TileError(f"{what}: input {source.describe()} shares elements with the destination", code="T112",
                                notes=notes, help="write to another buffer")
    for place, target in enumerate(outs):
        require_vector_memory(what, "the destination", target)
        if any(overlap(target, other) in ("same", "partial") for other in outs[:place]):
            raise TileError(f"{what}: the destination {target.describe()} shares elements with another one", code="T112",
                            notes=notes, help="give each destination its own buffer")
    return outs, ins


def _index(builder: Builder, what: str, role: str, value: object) -> SSAValue:
    if isinstance(value, float):
        if not value.is_integer():
            raise TileError(f"{what}: {role} is {value}, which is no integer", code="T145", help="give a whole number")
        value = int(value)
    return builder.index(value)


def _alike(*memories: Addressable) -> list[Addressable]:
    """Operands with as many axes each: unit axes are dropped where the ranks differ."""
    if len({memory.ndim for memory in memories}) == 1:
        return list(memories)
    return [with_axes(memory, squeezed_axes(memory)) for memory in memories]


def _buffers(what: str, *values: object) -> list[Addressable]:
    return _alike(*(as_memory(what, "an operand", value) for value in values))


def _cut(what: str, memories: list[Addressable], size: object) -> list[Addressable]:
    """The memories with the extents ``size``, as they are where it is None."""
    if size is None:
        return memories
    sizes = sizes_argument(Builder.running(what), what, size)
    return [right_aligned(what, memory, sizes) for memory in memories]


def _with_axis(size: Sizes | None, axis: int, change: Callable[[Number], Number]) -> Sizes | None:
    """A ``size`` list with one of its extents changed; None stays None."""
    if not isinstance(size, (list, tuple)) or not size:
        return size
    sizes = list(size)
    sizes[axis] = change(sizes[axis])
    return sizes


def _axis(value: int, memory: Addressable) -> int:
    return value % memory.ndim if isinstance(value, int) and -memory.ndim <= value < 0 else value


# --- the npuir forms -----------------------------------------------------------------------------------------------------


def _gather(what: str) -> Callable[..., None]:
    def gather(src: Tile, dst: Tile, indices: Tile, size: Sizes | None = None) -> None:
        """Take elements of the last axis of ``src`` at ``indices``, int32 or int16, which has the shape of ``dst``; writes
        ``dst``. ``size`` is the part that counts.

        Example: ``NAME(table, out, indices)``
        """
        source, target, places = _cut(what, _buffers(what, src, dst, indices), size)
        call(what, "gather", [target], [source, places])

    return gather


def _transpose(what: str) -> Callable[..., None]:
    def transpose(src: Tile, dst: Tile, permutation: Sequence[int], size: Sizes | None = None) -> None:
        """Swap two axes: ``permutation`` lists the axes of ``src`` in the order that ``dst`` has them; writes ``dst``, of the
        permuted shape.

        Example: ``NAME(a, out, [1, 0])``
        """
        source, target = _cut(what, _buffers(what, src, dst), size)
        if not isinstance(permutation, (list, tuple)) or not all(type(axis) is int for axis in permutation):
            raise TileError(f"{what}: the permutation is {permutation!r}", code="T145",
                            help="a list of axes, such as [1, 0]")
        call(what, "transpose", [target], [source], {"permutation": list(permutation)})

    return transpose


def _cumsum(what: str) -> Callable[..., None]:
    def cumsum(src: Tile, dst: Tile | None = None, dim: int = 0, reverse: bool = False) -> None:
        """Write to each element of ``dst`` the sum of ``src`` up to it along ``dim``, from the end with ``reverse``; one
        shape. Without ``dst`` the result replaces ``src``.

        Example: ``NAME(a, out, dim=1)``
        """
        source, target = _buffers(what, src, src if dst is None else dst)
        facts: dict[str, Fact] = {"dim": _axis(dim, source)}
        call(what, "cumsum", [target], [source], {**facts, "reverse": True} if reverse else facts)

    return cumsum


def _arange(what: str) -> Callable[..., None]:
    def arange(dst: Tile, strides: Number | Sequence[Number], offset: Number = 0) -> None:
        """Write ``offset + i * strides[0] + j * strides[1] + ...`` to ``dst``, one stride for each of its axes.

        Example: ``NAME(out, [64, 1], 0)``
        """
        builder = Builder.running(what)
        given = list(strides) if isinstance(strides, (list, tuple)) else [strides]
        values = [_index(builder, what, "an argument", value) for value in (offset, *given)]
        call(what, "arange", [dst], values, contract={"strides": len(given)})

    return arange


def _interleave(what: str) -> Callable[..., None]:
    def interleave(*operands: Tile, channel_nums: int = 2, size: Sizes | None = None) -> None:
        """``NAME(src0, src1, dst)``: write the elements of two sources in turn along the last axis of ``dst``, which is twice
        as long.

        Example: ``NAME(a, b, out)``
        """
        _two(what, channel_nums)
        if len(operands) != 3:
            raise TileError(f"{what}: {len(operands)} buffers", code="T145", help="give two sources and then the destination")
        *sources, target = _buffers(what, *operands)
        (target,) = _cut(what, [target], _with_axis(size, -1, lambda last: last * 2))
        call(what, "interleave", [target], _cut(what, sources, size))

    return interleave


def _deinterleave(what: str) -> Callable[..., None]:
    def deinterleave(src: Tile, *targets: Tile, channel_nums: int = 2, size: Sizes | None = None,
                     index_mode: str = "ALL_CHANNELS") -> None:
        """``NAME(src, even, odd)``: write the even elements of the last axis to one destination and the odd ones to another,
        each half as long. With ``index_mode`` ``CHANNEL_0`` or ``CHANNEL_1`` there is one destination.

        Example: ``NAME(a, even, odd)``
        """
        _two(what, channel_nums)
        source, *places = _buffers(what, src, *targets)
        if index_mode not in ("ALL_CHANNELS", "CHANNEL_0", "CHANNEL_1") or len(places) != (2 if index_mode[0] == "A" else 1):
            raise TileError(f"{what}: {len(places)} destinations with index_mode {index_mode!r}", code="T145",
                            help="ALL_CHANNELS has two destinations, CHANNEL_0 and CHANNEL_1 have one")
        places = _cut(what, places, _with_axis(size, -1, lambda last: last // 2))
        call(what, "deinterleave", places, _cut(what, [source], size), {"index_mode": index_mode})

    return deinterleave


def _two(what: str, channels: int) -> None:
    if channels != 2:
        raise TileError(f"{what}: {channels} channels", code="T145", help="the hardware interleaves two channels")


def _concat(what: str) -> Callable[..., None]:
    def concat(*operands: Tile | int, dim: Any = None, size: Sizes | None = None) -> None:  # the axis may come last
        """``NAME(src0, src1, ..., dst, dim)``: write the sources behind one another along ``dim``; ``dst`` has the sum of
        their sizes there.

        Example: ``NAME(a, b, out, 0)``
        """
        values: list[Any] = list(operands)
        if dim is None and values:
            dim = values.pop()
        if len(values) < 2:
            raise TileError(f"{what}: {len(values)} buffers", code="T145",
                            help="give the sources, the destination and the axis")
        *sources, target = _buffers(what, *values)
        axis = _axis(dim, target)
        if size is not None and isinstance(axis, int) and 0 <= axis < target.ndim:
            sources, (target,) = _cut(what, sources, size), _cut(what, [target], _with_axis(
                size, axis, lambda extent: extent * len(sources)))
        call(what, "concat", [target], sources, {"dim": axis})

    return concat


def _pad(what: str) -> Callable[..., None]:
    def pad(src: Tile, dst: Tile, pad_value: Number, low: Sizes, high: Sizes, size: Sizes | None = None) -> None:
        """Write ``src`` to ``dst`` with ``low`` elements of ``pad_value`` before and ``high`` behind it, one number for each
        axis; ``dst`` is as much larger.

        Example: ``NAME(a, out, 0.0, [0, 2], [0, 6])``
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

    return pad


def _flip(what: str) -> Callable[..., None]:
    def flip(src: Tile, dst: Tile, axis: int, size: Sizes | None = None) -> None:
        """Write ``src`` to ``dst`` with ``axis``, which is the last one, reversed; one shape.

        Example: ``NAME(a, out, 1)``
        """
        source, target = _cut(what, _buffers(what, src, dst), size)
        call(what, "flip", [target], [source], {"axis": _axis(axis, source)})

    return flip


# --- the ascendc forms: destination first --------------------------------------------------------------------------------


def _tile_transpose(what: str) -> Callable[..., None]:
    def transpose(dst: Tile, src: Tile) -> None:
        """Write the transposed matrix ``src`` to ``dst``; shapes ``(m, n)`` and ``(n, m)``.

        Example: ``NAME(out, a)``
        """
        source, target = _buffers(what, src, dst)
        call(what, "transpose", [target], [source], {"permutation": [1, 0] if source.ndim == 2 else [0]})

    return transpose


def _progression(what: str) -> Callable[..., None]:
    def arith_progression(buffer: Tile, first_value: Number, diff_value: Number, count: Number | None = None) -> None:
        """Write ``first_value``, ``first_value + diff_value``, ... to the first ``count`` elements of ``buffer`` (all without
        it).

        Example: ``NAME(out, 0, 2, 64)``
        """
        builder = Builder.running(what)
        target = as_memory(what, "the destination", buffer)
        if count is not None:
            target = flattened(builder, what, target, extent(builder, count))
        values = [scalar_operand(builder, what, role, value, target.dtype)
                  for role, value in (("the first value", first_value), ("the step", diff_value))]
        call(what, "arith_progression", [target], values)

    return arith_progression


def _vector_index(what: str) -> Callable[..., None]:
    make = _progression(what)

    def createvecindex(dst: Tile, firstValue: Number) -> None:
        """Write ``firstValue``, ``firstValue + 1``, ... to ``dst``.

        Example: ``NAME(out, 0)``
        """
        make(dst, firstValue, 1)

    return createvecindex


def _gather_offsets(what: str) -> Callable[..., None]:
    def gather(dst: Tile, src: Tile, src_offset: Tile, src_base_addr: Number = 0) -> None:
        """Write to ``dst`` the elements of ``src`` at the byte offsets ``src_offset`` (uint32 or int32) behind byte
        ``src_base_addr``.

        Example: ``NAME(out, a, offsets)``
        """
        builder = Builder.running(what)
        call(what, "gather_offsets", [dst], [src, src_offset, _index(builder, what, "the base", src_base_addr)])

    return gather


def _gather_mask(what: str) -> Callable[..., None]:
    def gather_mask(dst: Tile, src: Tile, src1Pattern: Tile | str) -> None:
        """Write to ``dst`` the elements of ``src`` that a pattern selects (``"P0101"``: every second one), packed, or those at
        indices; the indices are byte offsets afterwards.

        Example: ``NAME(out, a, "P0101")``
        """
        if isinstance(src1Pattern, str):
            call(what, "gather_mask", [dst], [src], {"pattern": src1Pattern})
        else:
            call(what, "gather_mask", [dst], [src, src1Pattern])
            indices, scale = as_memory(what, "the indices", src1Pattern), ops.operation("mul")
            assert isinstance(scale, Elementwise)
            offsets = bits_as(what, indices, "int32")
            apply(what, scale, [offsets, as_memory(what, "the input", src).dtype.nbytes], offsets)

    return gather_mask


def _sort(what: str) -> Callable[..., None]:
    def sort(dst: Tile, src: Tile, actual_num: Number) -> None:
        """Sort the first ``actual_num`` elements in descending order: ``dst`` gets pairs of value and index, and is twice as
        long as ``src``. The index is a number of the same element type, in float16 exact up to 2048; ``T.deinterleave`` parts
        values and indices. ``src`` is written too: -inf from ``actual_num`` to a multiple of 32.

        Example: ``NAME(pairs, a, 64)``
        """
        builder = Builder.running(what)
        call(what, "sort", [dst, src], [src, _index(builder, what, "actual_num", actual_num)],
             contract={"actual_num": actual_num})

    return sort


def _topk(what: str) -> Callable[..., None]:
    def topk(dst: Tile, src: Tile, K: int, actual_num: Number) -> None:
        """Write the first ``K`` pairs of a sort of ``src`` to ``dst``, up to whole blocks of 32 bytes. A pair is as of
        ``T.tile.sort``; ``src`` is written too: -inf from ``actual_num`` on.

        Example: ``NAME(pairs, a, 8, 64)``
        """
        builder = Builder.running(what)
        if not isinstance(K, int) or K <= 0:
            raise TileError(f"{what}: k is {K!r}", code="T145", help="k is a positive constant")
        call(what, "topk", [dst, src], [src, _index(builder, what, "actual_num", actual_num)], {"k": K},
             contract={"actual_num": actual_num})

    return topk


def _merge_sort(what: str) -> Callable[..., None]:
    def merge_sort(dst: Tile, src0: Operand, src1: Operand, src2: Operand | None = None, src3: Operand | None = None) -> None:
        """Merge 2 to 4 sorted lists of pairs, as ``T.tile.sort`` makes them; writes ``dst``, as long as all of them.

        Example: ``NAME(pairs, left, right)``
        """
        call(what, "merge_sort", [dst], [source for source in (src0, src1, src2, src3) if source is not None])

    return merge_sort


def _sort32(what: str) -> Callable[..., None]:
    def sort32(dst: Tile, src0: Operand, src1: Operand) -> None:
        """Sort each 32 elements of ``src0`` in descending order; writes pairs of 8 bytes with the indices ``src1`` (uint32) to
        ``dst``.

        Example: ``NAME(pairs, a, indices)``
        """
        call(what, "sort32", [dst], [src0, src1])

    return sort32


def _compare(what: str) -> Callable[..., None]:
    def compare(dst: Tile, src0: Operand, src1: Operand, mode: str) -> None:
        """Compare two elements, or one with a scalar, by ``mode`` (``EQ NE LT LE GT GE``); writes a bit for each to ``dst``,
        which has as many bits: uint8 and an eighth of the elements.

        Example: ``NAME(mask, a, b, "LT")``
        """
        builder = Builder.running(what)
        word = str(mode).lower()
        if word not in ("eq", "ne", "lt", "le", "gt", "ge"):
            raise TileError(f"{what}: there is no comparison {mode!r}", code="T145", help="one of EQ, NE, LT, LE, GT, GE")
        left = as_memory(what, "the first input", src0)
        right = scalar_operand(builder, what, "the second input", src1, left.dtype) if is_scalar(src1) else src1
        call(what, "compare_bits", [dst], [left, right], {"mode": word})

    return compare


def _select(what: str) -> Callable[..., None]:
    def select(dst: Tile, selMask: Tile, src0: Operand, src1: Operand, selMode: str) -> None:
        """Write ``src0`` to ``dst`` where the bit of ``selMask`` is set, else ``src1``. ``selMode`` is ``VSEL_CMPMASK_SPR`` or
        ``VSEL_TENSOR_TENSOR_MODE`` with two buffers, ``VSEL_TENSOR_SCALAR_MODE`` where ``src1`` is a scalar.

        Example: ``NAME(out, mask, a, b, "VSEL_CMPMASK_SPR")``
        """
        builder = Builder.running(what)
        modes = ("VSEL_CMPMASK_SPR", "VSEL_TENSOR_SCALAR_MODE", "VSEL_TENSOR_TENSOR_MODE")
        if selMode not in modes:
            raise TileError(f"{what}: there is no mode {selMode!r}", code="T145", help="one of " + ", ".join(modes))
        if is_scalar(src1) != (selMode == "VSEL_TENSOR_SCALAR_MODE"):
            raise TileError(f"{what}: {selMode} with {'a scalar' if is_scalar(src1) else 'a buffer'} as second input",
                            code="T145", help="VSEL_TENSOR_SCALAR_MODE takes a scalar, the others a buffer")
        left = as_memory(what, "the first input", src0)
        right = scalar_operand(builder, what, "the second input", src1, left.dtype) if is_scalar(src1) else src1
        call(what, "select_bits", [dst], [selMask, left, right])

    return select


def _row_expand(what: str) -> Callable[..., None]:
    operation = next(part for part in ("mul", "sub", "div") if part in what)

    def row_expand(dst: Tile, src0: Operand, src1: Operand, tmp: Tile | None = None) -> None:
        """Compute ``src0`` with the one element of ``src1`` for each of its rows; writes ``dst``, of the shape ``(m, n)`` of
        ``src0``. ``src1`` is ``(m, 1)`` or ``(m,)``, or 32 bytes a row under a name with ``_experiment``. ``tmp`` is not
        needed.

        Example: ``NAME(out, a, rows)``
        """
        builder = Builder.running(what)
        entry = ops.operation(operation)
        assert isinstance(entry, Elementwise)
        left, rows = as_memory(what, "the first input", src0), as_memory(what, "the second input", src1)
        block = 32 // rows.dtype.nbytes
        columns = left.extents[-1]
        if (what.endswith("_experiment") and left.ndim == 2 and same_shape(rows.extents, (left.extents[0], block))
                and isinstance(columns, int) and columns % block == 0):
            target = as_memory(what, "the destination", dst)
            for start in range(0, columns, block):  # every 32 bytes of a row meet the row's one block
                part = (slice(None), slice(start, start + block))
                apply(what, entry, [left[part], rows], target[part])
            return
        wanted = (left.extents[0], 1)
        squeezed = with_axes(rows, squeezed_axes(rows)).extents
        if left.ndim != 2 or not (same_shape(squeezed, wanted[:1]) or same_shape(rows.extents, wanted)):
            raise TileError(f"{what}: {rows.describe()} has no element per row of {left.describe()}", code="T111",
                            help="the second input has one element per row of the first, or (_experiment) 32 bytes")
        count = left.extents[0]
        if not isinstance(count, int):
            raise TileError(f"{what}: {left.describe()} has rows that only run time counts", code="T190",
                            help="work on a constant number of rows")
        column = Buffer(rows.name, rows.dtype, (count, 1), rows.buffer.space, seen_as(builder, rows, wanted))
        apply(what, entry, [left, column], dst)

    return row_expand


# --- atomic additions and debug output -----------------------------------------------------------------------------------


def _atomic_add(what: str) -> Callable[..., None]:
    def atomic_add(dst: Tile, src: Tile, size: Sizes | None = None, *, memory_order: str | None = None) -> None:
        """Add the tile ``src`` to the global tensor ``dst``, whichever other blocks do so; writes ``dst``. ``size`` is the
        part that counts, ``memory_order`` at most ``"relaxed"``.

        Example: ``NAME(C[row, 0], tile)``
        """
        if memory_order not in (None, "relaxed"):
            raise TileError(f"{what}: memory_order={memory_order!r} is not supported", code="T190",
                            help="an addition on its way to global memory orders nothing else: leave it out, or order blocks"
                                 " with T.sync_all()")
        add_to_global(what, dst, src, size)

    return atomic_add


def _print(what: str) -> Callable[..., None]:
    def print_(obj: Operand, msg: str = "", hex: bool = False) -> None:  # noqa: A002  (the language's name)
        """Print a buffer, a slice or a scalar when the run comes by, behind the text ``msg``; integers in base 16 with
        ``hex``.

        Example: ``NAME(a, msg="a")``
        """
        builder = Builder.running(what)
        if isinstance(obj, str):
            raise TileError(f"{what} of a text alone is not supported", code="T190",
                            help="T.printf(text, ...) writes one; T.print takes a value, and msg=...")
        given = obj if isinstance(obj, Addressable) else number(builder, obj)
        if isinstance(given, (int, float)):
            given = builder.literal(given, DType("float32" if isinstance(given, float) else "int32"))
        value = given.ssa(builder)
        builder.tile_op(tile.PrintOp(value, msg or "", hexadecimal=bool(hex)), what)

    return print_


_FUNCTIONS: dict[str, Callable[[str], Callable[..., None]]] = {
    "gather": _gather, "transpose": _transpose, "cumsum": _cumsum, "arange": _arange, "interleave": _interleave,
    "deinterleave": _deinterleave, "concat": _concat, "pad": _pad, "flip": _flip, "atomic_add": _atomic_add,
    "atomic_addx4": _atomic_add, "atomic_addx2": _atomic_add, "print": _print,
    "tile.transpose": _tile_transpose, "tile.arith_progression": _progression, "tile.createvecindex": _vector_index,
    "tile.gather": _gather_offsets, "tile.gather_mask": _gather_mask, "tile.sort": _sort, "tile.topk": _topk,
    "tile.merge_sort": _merge_sort, "tile.sort32": _sort32, "tile.compare": _compare, "tile.select": _select,
    "tile.atomic_add": _atomic_add,
    "tile.row_expand_mul": _row_expand, "tile.row_expand_mul_experiment": _row_expand,
    "tile.row_expand_sub_experiment": _row_expand, "tile.row_expand_div_experiment": _row_expand,
}

_ENTRIES = {"tile.compare": "compare_bits", "tile.select": "select_bits"}
"""Entries of names that are others' too."""


@cache
def function(name: str) -> Callable[..., None]:
    """The language function of a name (``vgather``, ``npuir_gather``, ``tile.gather``).

    Raises:
        KeyError: there is none.
    """
    base = name
    if name not in _FUNCTIONS:
        base = name.removeprefix("npuir_") if name.startswith("npuir_") else name.removeprefix("v")
    made = _FUNCTIONS[base](f"T.{name}")
    made.__name__, made.__qualname__ = name.rsplit(".", 1)[-1], f"T.{name}"
    made.__doc__ = from_table(name, _ENTRIES.get(name, name), made.__doc__ or "")
    return made


__all__ = ["call", "checked", "function"]
