"""Functions of ``T.tile`` for AscendC instructions that address the flat memory of their operands by repeats and strides.

A repeat is 8 blocks of 32 bytes. Block ``b`` of repeat ``r`` begins at block ``r * repeat_stride + b * block_stride`` of the
operand. A call with constant arguments is checked against the sizes of its operands when the kernel is traced; other calls are
checked while the kernel runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from tilelang_npu.dialects.tile.calls import Fact
from tilelang_npu.errors import TileError
from tilelang_npu.language.elementwise import apply
from tilelang_npu.language.flat_memory import flattened, leading
from tilelang_npu.language.operands import as_memory, element_count, is_dense, scalar_operand
from tilelang_npu.language.reduction import reduce_flat
from tilelang_npu.language.scratch import use_scratch
from tilelang_npu.language.structured import call, checked
from tilelang_npu.language.table_functions import function_of
from tilelang_npu.ops import Elementwise, operation
from tilelang_npu.ops.repeats import BLOCKS, ORDERS
from tilelang_npu.target import BLOCK
from tilelang_npu.traced.buffers import Addressable, Operand, Tile
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent, extent
from tilelang_npu.traced.symbols import Number

__all__ = ["function"]

_MOST_REPEATS = 255
"""The largest number of repeats of one instruction."""


_BODIES: dict[str, Callable[..., None]] = {}
"""The implementation of each function, by its name in ``T.tile``."""


def _function(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Enters the decorated function as the implementation of ``T.tile.<name>`` for these names."""
    def enter(body: Callable[..., None]) -> Callable[..., None]:
        _BODIES.update(dict.fromkeys(names, body))
        return body

    return enter


def _numbers(what: str, **given: object) -> dict[str, Extent]:
    """The scalars of a call by role: integers where they are constant, else values of the trace.

    Raises:
        TileError: T110, a value is not an integer; T145, a value is negative, or an instruction cannot have this number of
            repeats.
    """
    builder = Builder.running(what)
    found: dict[str, Extent] = {}
    for role, value in given.items():
        found[role] = extent(builder, value)
        known = found[role]
        limit = _MOST_REPEATS if role == "repeats" else None
        if isinstance(known, int) and (known < 0 or (limit is not None and known > limit)):
            raise TileError(f"{what}: {role} is {known}", code="T145",
                            help=f"{role} must be 0 to {limit}" if limit is not None else f"{role} must not be negative")
    return found


def _reach(element_bytes: int, repeats: Extent, repeat_stride: Extent, block_stride: Extent,
           active: Extent | None = None) -> int | None:
    """The number of elements from the first one to the last one that a call accesses; None where it is not constant.

    ``active`` is the number of elements of a repeat that take part: all without it.
    """
    per_block = BLOCK // element_bytes
    last = BLOCKS * per_block if active is None else active
    if not (isinstance(repeats, int) and isinstance(repeat_stride, int) and isinstance(block_stride, int)
            and isinstance(last, int)) or repeats < 1 or last < 1:
        return None
    block, lane = divmod(last - 1, per_block)
    return ((repeats - 1) * repeat_stride + block * block_stride) * per_block + lane + 1


def _times(count: Extent, *strides: Extent) -> int | None:
    """The number of elements up to the last one of ``count`` elements at distance ``prod(strides)``; None where it is not
    constant.
    """
    known = [stride for stride in strides if isinstance(stride, int)]
    if len(known) < len(strides) or not isinstance(count, int) or count < 1:
        return None
    return (count - 1) * math.prod(known) + 1


def _operand(builder: Builder, what: str, role: str, value: object, count: int | None) -> Addressable:
    """The flat memory that a call accesses: the first ``count`` elements, or the whole operand where the count is not constant.
    """
    memory = as_memory(what, role, value)
    if count is not None and not (isinstance(value, Addressable) and memory.ndim == 1 and element_count(memory) == count):
        return flattened(builder, what, memory, count)
    if not is_dense(memory):
        raise TileError(f"{what}: {role} {memory.describe()} has gaps, and the number of elements that the call accesses is "
                        "not constant", code="T111", help="pass a whole buffer")
    return memory


def _emit(what: str, name: str, dst: Tile, sources: Sequence[tuple[object, int | None]], reached: int | None,
          scalars: Mapping[str, object], facts: Mapping[str, Fact] | None = None) -> None:
    builder = Builder.running(what)
    checked(what, name, [dst], [value for value, _ in sources], facts)
    target = _operand(builder, what, "the destination", dst, reached)
    inputs = [_operand(builder, what, "an input", value, count) for value, count in sources]
    call(what, name, [target], [*inputs, *(builder.index(value) for value in scalars.values())], facts)


def _bytes(what: str, value: object) -> int:
    return max(1, as_memory(what, "an operand", value).dtype.nbytes)


@_function("brcb", "brcb_experiment")
def _spread(dst: Tile, src: Tile, repeat_times: Number, dst_blk_stride: Number, dst_repeat_stride: Number, *,
        what: str) -> None:
    """Fill one block of 32 bytes of ``dst`` with each element of ``src``: 8 elements and 8 blocks in each repeat.

    ``repeat_times`` is the number of repeats. The strides are distances in blocks: ``dst_blk_stride`` between the blocks of a
    repeat, ``dst_repeat_stride`` between repeats. Writes ``dst``.

    Example: ``NAME(out, a, 8, 1, 8)``
    """
    given = _numbers(what, repeats=repeat_times, block_stride=dst_blk_stride, repeat_stride=dst_repeat_stride)
    repeats, blocks, strides = given.values()
    read = repeats * BLOCKS if isinstance(repeats, int) else None
    _emit(what, "brcb", dst, [(src, read)], _reach(_bytes(what, dst), repeats, strides, blocks), given)


@_function("gatherb")
def _gather_blocks(dst: Tile, src0: Operand, offset: Tile, repeat_time: Number, dst_blk_stride: Number, dst_rep_stride: Number,
                   *, what: str) -> None:
    """Write to ``dst`` the blocks of 32 bytes of ``src0`` at the byte offsets in ``offset`` (uint32): 8 blocks in each repeat.

    ``repeat_time`` is the number of repeats. The strides are distances in blocks: ``dst_blk_stride`` between the blocks of a
    repeat, ``dst_rep_stride`` between repeats.

    Example: ``NAME(out, a, offsets, 4, 1, 8)``
    """
    given = _numbers(what, repeats=repeat_time, block_stride=dst_blk_stride, repeat_stride=dst_rep_stride)
    repeats, blocks, strides = given.values()
    read = repeats * BLOCKS if isinstance(repeats, int) else None
    _emit(what, "gatherb", dst, [(src0, None), (offset, read)], _reach(_bytes(what, dst), repeats, strides, blocks), given)


def _reduce_repeats(what: str, dst: Tile, src: Tile, mask: Number, repeattimes: Number, dstrepstride: Number,
                    srcblkstride: Number, srcrepstride: Number, order: str | None) -> None:
    """Reduces each repeat; with ``order`` to an extreme and, unless it is the value alone, its index."""
    given = _numbers(what, mask=mask, repeats=repeattimes, result_stride=dstrepstride, block_stride=srcblkstride,
                     repeat_stride=srcrepstride)
    active, repeats, result_stride, blocks, strides = given.values()
    pairs = order is not None and order != "ORDER_ONLY_VALUE"
    reached = _times(repeats, result_stride, 2 if pairs else 1)
    if pairs and reached is not None:
        reached += 1
    _emit(what, f"whole_reduce_{what[-3:]}", dst, [(src, _reach(_bytes(what, src), repeats, strides, blocks, active))], reached,
          given, {} if order is None else {"order": order})


@_function("wholereducemax", "wholereducemin")
def _extreme_of_repeats(dst: Tile, src: Tile, mask: Number, repeattimes: Number, dstrepstride: Number, srcblkstride: Number,
                        srcrepstride: Number, ReduceOrder: str = ORDERS[0], *, what: str) -> None:
    """Write the largest (``wholereducemax``) or smallest (``wholereducemin``) of the first ``mask`` elements of each repeat of
    ``src``, and its index in the repeat, to ``dst``.

    The index is an integer as wide as the elements, whose bits are stored. ``ReduceOrder`` is ``"ORDER_VALUE_INDEX"``,
    ``"ORDER_INDEX_VALUE"`` or ``"ORDER_ONLY_VALUE"``. ``repeattimes`` is the number of repeats. ``srcblkstride`` and
    ``srcrepstride`` are distances in blocks of 32 bytes, ``dstrepstride`` is the distance of results in results.

    Example: ``NAME(out, a, 64, 8, 1, 1, 8)``
    """
    _reduce_repeats(what, dst, src, mask, repeattimes, dstrepstride, srcblkstride, srcrepstride, ReduceOrder)


@_function("wholereducesum")
def _sum_of_repeats(dst: Tile, src: Tile, mask: Number, repeattimes: Number, dstrepstride: Number, srcblkstride: Number,
                    srcrepstride: Number, *, what: str) -> None:
    """Write the sum of the first ``mask`` elements of each repeat of ``src`` to ``dst``.

    ``repeattimes`` is the number of repeats. ``srcblkstride`` and ``srcrepstride`` are distances in blocks of 32 bytes,
    ``dstrepstride`` is the distance of results in results.

    Example: ``NAME(out, a, 64, 8, 1, 1, 8)``
    """
    _reduce_repeats(what, dst, src, mask, repeattimes, dstrepstride, srcblkstride, srcrepstride, None)


@_function("block_reduce_max", "block_reduce_min", "block_reduce_sum")
def _reduce_blocks(dst: Tile, src: Tile, repeat: Number, mask: Number, dstPepStride: Number, srcBlkStride: Number,
                   srcRepStride: Number, *, what: str) -> None:
    """Reduce each block of 32 bytes of ``src`` to one element of ``dst``: 8 results in each repeat.

    Only the first ``mask`` elements of a repeat are reduced. ``repeat`` is the number of repeats. ``srcBlkStride`` and
    ``srcRepStride`` are distances in blocks, ``dstPepStride`` is the distance of a repeat's results in units of 8 results.
    Writes ``dst``.

    Example: ``NAME(out, a, 4, 64, 1, 1, 8)``
    """
    given = _numbers(what, repeats=repeat, mask=mask, result_stride=dstPepStride, block_stride=srcBlkStride,
                     repeat_stride=srcRepStride)
    repeats, active, result_stride, blocks, strides = given.values()
    width = _bytes(what, src)
    reached = _times(repeats, result_stride, BLOCKS)
    if reached is not None:
        reached = reached + -(-active // (BLOCK // width)) - 1 if isinstance(active, int) else None
    _emit(what, f"block_reduce_{what[-3:]}", dst, [(src, _reach(width, repeats, strides, blocks, active))], reached, given)


@_function("bilinear_interpolation")
def _bilinear(dst: Tile, src0: Operand, src0_offset: Tile, src1: Operand, mask: Number, h_repeat: Number, repeat_mode: bool,
              dst_blk_stride: Number, v_r_offset: Number, v_repeat: Number, *, tmp: Tile | None = None, what: str) -> None:
    """Write ``v_repeat`` weighted sums to ``dst``, each of ``h_repeat`` repeats of ``src0``.

    A repeat consists of the 8 blocks of ``src0`` at the next 8 byte offsets in ``src0_offset``, multiplied by the next weight
    in ``src1``; with ``repeat_mode``, each of the 8 blocks is multiplied by a separate weight. The first ``mask`` elements of
    each sum are written. ``v_r_offset`` is the distance of sums in ``dst`` in elements, ``dst_blk_stride`` the distance of the
    blocks of a sum in blocks. ``tmp`` is scratch memory in UB; its contents are undefined after the call.

    Example: ``NAME(out, a, offsets, weights, 128, 2, False, 1, 128, 4)``
    """
    given = _numbers(what, mask=mask, across=h_repeat, block_stride=dst_blk_stride, down_stride=v_r_offset, down=v_repeat)
    active, across, blocks, apart, down = given.values()
    rounds = across * down if isinstance(across, int) and isinstance(down, int) else None
    places = None if rounds is None else rounds * BLOCKS
    first, last = _reach(2, 1, 0, blocks, active), _times(down, apart)
    reached = None if first is None or last is None else first + last - 1
    _emit(what, "bilinear_interpolation", dst,
          [(src0, None), (src0_offset, places), (src1, places if repeat_mode else rounds)], reached, given,
          {"per_block": bool(repeat_mode)})
    use_scratch(what, tmp, dst, src0, src0_offset, src1)


@_function("init_sort_buf")
def _sort_buffer(buffer: Tile, num: Number, rsv: Number, *, what: str) -> None:
    """Fill the first ``num`` elements of ``buffer`` with pairs that sort after all others: the value -inf, and an index with
    all bits set.

    ``num`` must be a multiple of 64, and ``rsv`` must be 0.

    Example: ``NAME(pairs, 128, 0)``
    """
    given = _numbers(what, num=num)
    count = given["num"]
    if not isinstance(rsv, int) or rsv != 0:
        raise TileError(f"{what}: rsv is {rsv}", code="T145", help="rsv must be 0: the argument is not used")
    if isinstance(count, int) and (count <= 0 or count % 64):
        raise TileError(f"{what}: num is {count}", code="T111", help="num must be a positive multiple of 64 elements")
    _emit(what, "init_sort_buf", buffer, [], count if isinstance(count, int) else None, given)


@_function("fill_experiment")
def _fill(dst: Tile, value: Number, mask: Sequence[int], repeatTimes: Number, dstBlockStride: Number, dstRepeatStride: Number,
          *, what: str) -> None:
    """Write ``value`` to the elements of each repeat of ``dst`` whose bit in ``mask[0]`` is set.

    ``repeatTimes`` is the number of repeats. The strides are distances in blocks of 32 bytes.

    Example: ``NAME(out, 0.0, [255, 0], 4, 1, 8)``
    """
    builder = Builder.running(what)
    given = _numbers(what, mask=mask[0], repeats=repeatTimes, block_stride=dstBlockStride, repeat_stride=dstRepeatStride)
    lanes, repeats, blocks, strides = given.values()
    active = lanes.bit_length() if isinstance(lanes, int) else None
    reached = None if active is None else _reach(_bytes(what, dst), repeats, strides, blocks, active)
    checked(what, "fill_bits", [dst], [])
    target = _operand(builder, what, "the destination", dst, reached)
    scalar = scalar_operand(builder, what, "the value", value, target.dtype)
    call(what, "fill_bits", [target], [scalar, *(builder.index(number) for number in given.values())])


@_function("gathermask_experiment")
def _gather_bits(dst: Tile, src0: Operand, src1Pattern: Tile, reduceMode: bool, mask: Number, GatherMaskParams:
                 Sequence[Number], rsvdCnt: Number, *, what: str) -> None:
    """Write the elements of ``src0`` whose bit in ``src1Pattern`` is set to the beginning of ``dst``, without gaps.

    ``GatherMaskParams`` is a list of four numbers: the block stride of ``src0``, the number of repeats, the repeat stride of
    ``src0`` and the repeat stride of ``src1Pattern``. Strides are distances in blocks. With ``reduceMode``, only the first
    ``mask`` elements of a repeat are considered, else all elements. ``rsvdCnt`` must be 0.

    Example: ``NAME(out, a, pattern, True, 64, [1, 1, 8, 8], 0)``
    """
    if not isinstance(rsvdCnt, int) or rsvdCnt != 0:
        raise TileError(f"{what}: rsvdCnt is {rsvdCnt}", code="T145", help="rsvdCnt must be 0: the argument is not used")
    blocks, repeats, strides, pattern_stride = GatherMaskParams
    given = _numbers(what, mask=mask, block_stride=blocks, repeats=repeats, repeat_stride=strides,
                     pattern_stride=pattern_stride)
    _emit(what, "gather_bits", dst, [(src0, None), (src1Pattern, None)], None, given, {"counter": bool(reduceMode)})


@_function("reduce_sum_mask_experiment")
def _sum_repeats(dst: Tile, src: Tile, mask: Number, repeatTime: Number, srcRepStride: Number, *, tmp: Tile | None = None,
                 what: str) -> None:
    """Write the sum of the first ``mask`` elements of all repeats of ``src`` to the first element of ``dst``.

    ``repeatTime`` is the number of repeats, ``srcRepStride`` the distance of repeats in blocks of 32 bytes.
    ``tmp`` is scratch memory in UB; its contents are undefined after the call.

    Example: ``NAME(out, a, 64, 4, 8)``
    """
    given = _numbers(what, mask=mask, repeats=repeatTime, repeat_stride=srcRepStride)
    active, repeats, strides = given.values()
    _emit(what, "reduce_sum_repeats", dst, [(src, _reach(_bytes(what, src), repeats, strides, 1, active))], 1, given)
    use_scratch(what, tmp, dst, src)


@_function("sum_experiment")
def _sum_rows(dst: Tile, src: Tile, sumParams: Sequence[Number], *, what: str) -> None:
    """Write the sum of each row of ``src`` to ``dst``.

    ``sumParams`` is a list: the number of rows, the distance between rows in elements, and the number of elements of each row
    that are added. If this number is 0, nothing is written.

    Example: ``NAME(out, a, [4, 64, 64])``
    """
    rows, width, count = sumParams
    given = _numbers(what, rows=rows, width=width, count=count)
    rows, width, count = given.values()
    read = _times(rows, width)
    if read is not None:
        read = read + count - 1 if isinstance(count, int) else None
    _emit(what, "sum_rows", dst, [(src, read)], rows if isinstance(rows, int) else None, given)


@_function("reduce_sum_experiment")
def _sum(dst: Tile, src: Tile, count: Number, *, tmp: Tile | None = None, what: str) -> None:
    """Write the sum of the first ``count`` elements of ``src`` to the first element of ``dst``.

    ``tmp`` is scratch memory in UB; its contents are undefined after the call.

    Example: ``NAME(out, a, 64)``
    """
    reduce_flat(what, "sum", src, dst, count)
    use_scratch(what, tmp, dst, src)


def _apply_to_first(what: str, name: str, dst: Tile, operands: Sequence[object], count: object) -> None:
    """The elementwise operation ``name`` on the first ``count`` elements of the flat memory of its operands."""
    entry = operation(name)
    assert isinstance(entry, Elementwise)
    memories = [as_memory(what, "an operand", value) for value in (dst, *operands) if isinstance(value, Addressable)]
    parts = iter(leading(Builder.running(what), what, memories, count))
    target = next(parts)
    apply(what, entry, [next(parts) if isinstance(value, Addressable) else value for value in operands], target)


@_function("abs_experiment")
def _abs(dst: Tile, src: Tile, count: Number, *, what: str) -> None:
    """Write the absolute values of the first ``count`` elements of ``src`` to ``dst``.

    Example: ``NAME(out, a, 64)``
    """
    _apply_to_first(what, "abs", dst, [src], count)


@_function("mins_experiment")
def _mins(dst: Tile, src: Tile, scalarValue: Number, count: Number, *, what: str) -> None:
    """Write the smaller of ``scalarValue`` and each of the first ``count`` elements of ``src`` to ``dst``.

    Example: ``NAME(out, a, 1.0, 64)``
    """
    _apply_to_first(what, "min", dst, [src, scalarValue], count)


@_function("sub_experiment")
def _sub(dst: Tile, src0: Operand, src1: Operand, count: Number, *, what: str) -> None:
    """Write the differences of the first ``count`` elements of ``src0`` and ``src1`` to ``dst``.

    Example: ``NAME(out, a, b, 64)``
    """
    _apply_to_first(what, "sub", dst, [src0, src1], count)


@_function("exp_experiment")
def _exp(dst: Tile, src: Tile, *, what: str) -> None:
    """Write the exponentials of the elements of ``src`` to ``dst``, by one instruction with a repeat per row.

    ``dst`` and ``src`` have equal shapes: at most 255 rows of at most 64 elements of float32 or 128 of float16. Consecutive
    rows are a multiple of 32 bytes apart, at most 255 * 32 bytes.

    Example: ``NAME(out[:, 0:64], a[:, 0:64])``
    """
    for role, value in (("the destination", dst), ("the input", src)):
        _check_row_repeats(what, role, as_memory(what, role, value))
    entry = operation("exp")
    assert isinstance(entry, Elementwise)
    apply(what, entry, [src], dst)


def _check_row_repeats(what: str, role: str, memory: Addressable) -> None:
    """Checks that one instruction can access a slice, with a repeat per row.

    Raises:
        TileError: T111, the slice has other than two axes, or a size of the call; its rows are longer than a repeat, or not a
            multiple of 32 bytes apart. T145, an instruction cannot have this number of repeats, or this distance of repeats.
    """
    rows, columns = memory.extents if memory.ndim == 2 else (None, None)
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise TileError(f"{what}: {role} {memory.describe()} must have two axes of constant size", code="T111",
                        help="pass a buffer with two axes, or a slice of one, such as a[:, 0:64]")
    below = [size for size in memory.buffer.sizes[memory.kept[0] + 1:] if isinstance(size, int)]  # on chip, all are constant
    pitch, width = math.prod(below), memory.dtype.nbytes
    stride, rest = divmod(pitch * width, BLOCK)
    if columns * width > BLOCKS * BLOCK or rest:
        raise TileError(f"{what}: {role} {memory.describe()} has rows of {columns * width} bytes, {pitch * width} bytes apart",
                        code="T111", help=f"a row has at most {BLOCKS * BLOCK} bytes, and rows are a multiple of {BLOCK} bytes "
                                          "apart")
    for name, number in (("repeat_time", rows), ("repeat stride", stride)):
        if number > _MOST_REPEATS:
            raise TileError(f"{what}: {name}={number} must fit uint8_t", code="T145",
                            notes=[f"{role} is {memory.describe()}"],
                            help=f"an instruction has at most {_MOST_REPEATS} repeats, at most {_MOST_REPEATS} blocks of"
                                 f" {BLOCK} bytes apart: pass fewer rows, or use T.tile.exp")


@cache
def function(name: str) -> Callable[..., None]:
    """Returns the function ``T.<name>`` of this module, where ``name`` begins with ``tile.``.

    Raises:
        KeyError: there is no such function.
    """
    return function_of(name, _BODIES[name.removeprefix("tile.")])
