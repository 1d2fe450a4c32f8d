"""The functions of ``T.tile`` that are given by repeats and strides: AscendC's own instructions, on flat memory.

Each checks what its constants reach; what run-time values reach is checked in the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from tilelang_npu.dialects.tile.calls import Fact
from tilelang_npu.errors import TileError
from tilelang_npu.language.described import from_table
from tilelang_npu.language.elementwise import apply
from tilelang_npu.language.flat import flattened, leading
from tilelang_npu.language.operands import as_memory, element_count, is_dense, scalar_operand
from tilelang_npu.language.reduction import reduce_flat
from tilelang_npu.language.structured import call, checked
from tilelang_npu.ops import Elementwise, operation
from tilelang_npu.ops.repeats import BLOCKS, ORDERS
from tilelang_npu.target import BLOCK
from tilelang_npu.traced.buffers import Addressable, Operand, Tile
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent, extent
from tilelang_npu.traced.symbols import Number

__all__ = ["function"]

_MOST_REPEATS = 255
"""What an instruction can count to."""


def _numbers(what: str, **given: object) -> dict[str, Extent]:
    """The scalars of a call by role: numbers where they are constant, else traced.

    Raises:
        TileError: T110, one is no integer; T145, a negative one, or more repeats than an instruction counts.
    """
    builder = Builder.running(what)
    found: dict[str, Extent] = {}
    for role, value in given.items():
        found[role] = extent(builder, value)
        known = found[role]
        limit = _MOST_REPEATS if role == "repeats" else None
        if isinstance(known, int) and (known < 0 or (limit is not None and known > limit)):
            raise TileError(f"{what}: {role} is {known}", code="T145",
                            help=f"it is 0 to {limit}" if limit is not None else "it is not negative")
    return found


def _reach(element_bytes: int, repeats: Extent, repeat_stride: Extent, block_stride: Extent,
           active: Extent | None = None) -> int | None:
    """How many elements from the first one a call touches; None where only run time knows."""
    per_block = BLOCK // element_bytes
    last = BLOCKS * per_block if active is None else active
    if not (isinstance(repeats, int) and isinstance(repeat_stride, int) and isinstance(block_stride, int)
            and isinstance(last, int)) or repeats < 1 or last < 1:
        return None
    block, lane = divmod(last - 1, per_block)
    return ((repeats - 1) * repeat_stride + block * block_stride) * per_block + lane + 1


def _times(count: Extent, *strides: Extent) -> int | None:
    """Elements up to the last of ``count`` that lie ``strides`` apart."""
    known = [stride for stride in strides if isinstance(stride, int)]
    if len(known) < len(strides) or not isinstance(count, int) or count < 1:
        return None
    return (count - 1) * math.prod(known) + 1


def _operand(builder: Builder, what: str, role: str, value: object, count: int | None) -> Addressable:
    """The flat memory that a call touches: as many elements, or the whole operand where only run time knows."""
    memory = as_memory(what, role, value)
    if count is not None and not (isinstance(value, Addressable) and memory.ndim == 1 and element_count(memory) == count):
        return flattened(builder, what, memory, count)
    if not is_dense(memory):
        raise TileError(f"{what}: {role} {memory.describe()} has gaps, and how far the call reaches is known at run time only",
                        code="T111", help="give it a whole buffer")
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


def _spread(what: str) -> Callable[..., None]:
    def brcb(dst: Tile, src: Tile, repeat_times: Number, dst_blk_stride: Number, dst_repeat_stride: Number) -> None:
        """Spread each element of ``src`` over a block of 32 bytes of ``dst``, 8 elements for each of ``repeat_times``; strides
        count blocks. Writes ``dst``.

        Example: ``NAME(out, a, 8, 1, 8)``
        """
        given = _numbers(what, repeats=repeat_times, block_stride=dst_blk_stride, repeat_stride=dst_repeat_stride)
        repeats, blocks, strides = given.values()
        read = repeats * BLOCKS if isinstance(repeats, int) else None
        _emit(what, "brcb", dst, [(src, read)], _reach(_bytes(what, dst), repeats, strides, blocks), given)

    return brcb


def _gather_blocks(what: str) -> Callable[..., None]:
    def gatherb(dst: Tile, src0: Operand, offset: Tile, repeat_time: Number, dst_blk_stride: Number,
                dst_rep_stride: Number) -> None:
        """Write to ``dst`` blocks of 32 bytes of ``src0`` at the byte offsets ``offset`` (uint32), 8 for each repeat; strides
        count blocks.

        Example: ``NAME(out, a, offsets, 4, 1, 8)``
        """
        given = _numbers(what, repeats=repeat_time, block_stride=dst_blk_stride, repeat_stride=dst_rep_stride)
        repeats, blocks, strides = given.values()
        read = repeats * BLOCKS if isinstance(repeats, int) else None
        _emit(what, "gatherb", dst, [(src0, None), (offset, read)], _reach(_bytes(what, dst), repeats, strides, blocks), given)

    return gatherb


def _whole(what: str) -> Callable[..., None]:
    kind = what[-3:]

    def wholereduce(dst: Tile, src: Tile, mask: Number, repeattimes: Number, dstrepstride: Number, srcblkstride: Number,
                    srcrepstride: Number, ReduceOrder: str = ORDERS[0]) -> None:
        """Write the extreme of the first ``mask`` elements of each repeat to ``dst``, beside it its place as bits (or as
        ``ReduceOrder`` says); source strides count blocks of 32 bytes, ``dstrepstride`` results.

        Example: ``NAME(out, a, 64, 8, 1, 1, 8)``
        """
        given = _numbers(what, mask=mask, repeats=repeattimes, result_stride=dstrepstride, block_stride=srcblkstride,
                         repeat_stride=srcrepstride)
        active, repeats, apart, blocks, strides = given.values()
        pairs = kind != "sum" and ReduceOrder != "ORDER_ONLY_VALUE"
        reached = _times(repeats, apart, 2 if pairs else 1)
        if pairs and reached is not None:
            reached += 1
        facts = {} if kind == "sum" else {"order": ReduceOrder}
        _emit(what, f"whole_reduce_{kind}", dst, [(src, _reach(_bytes(what, src), repeats, strides, blocks, active))], reached,
              given, facts)

    def wholereducesum(dst: Tile, src: Tile, mask: Number, repeattimes: Number, dstrepstride: Number, srcblkstride: Number,
                       srcrepstride: Number) -> None:
        """Write the sum of the first ``mask`` elements of each repeat to ``dst``; source strides count blocks of 32 bytes,
        ``dstrepstride`` results.

        Example: ``NAME(out, a, 64, 8, 1, 1, 8)``
        """
        wholereduce(dst, src, mask, repeattimes, dstrepstride, srcblkstride, srcrepstride)

    return wholereducesum if kind == "sum" else wholereduce


def _blocks(what: str) -> Callable[..., None]:
    kind = what[-3:]

    def block_reduce(dst: Tile, src: Tile, repeat: Number, mask: Number, dstPepStride: Number, srcBlkStride: Number,
                     srcRepStride: Number) -> None:
        """Fold each block of 32 bytes of ``src`` to one element of ``dst``, 8 for each repeat, of the first ``mask`` elements;
        source strides count blocks, ``dstPepStride`` 8 results. Writes ``dst``.

        Example: ``NAME(out, a, 4, 64, 1, 1, 8)``
        """
        given = _numbers(what, repeats=repeat, mask=mask, result_stride=dstPepStride, block_stride=srcBlkStride,
                         repeat_stride=srcRepStride)
        repeats, active, apart, blocks, strides = given.values()
        width = _bytes(what, src)
        reached = _times(repeats, apart, BLOCKS)
        if reached is not None and isinstance(active, int):
            reached += -(-active // (BLOCK // width)) - 1
        else:
            reached = None
        _emit(what, f"block_reduce_{kind}", dst, [(src, _reach(width, repeats, strides, blocks, active))], reached, given)

    return block_reduce


def _bilinear(what: str) -> Callable[..., None]:
    def bilinear_interpolation(dst: Tile, src0: Operand, src0_offset: Tile, src1: Operand, mask: Number, h_repeat: Number,
                               repeat_mode: bool, dst_blk_stride: Number, v_r_offset: Number, v_repeat: Number) -> None:
        """Write to ``dst`` sums of blocks of ``src0`` at the byte offsets ``src0_offset`` times the weights ``src1``, one for
        each block with ``repeat_mode``, else for each repeat: ``h_repeat`` of them to a sum, ``v_repeat`` sums.

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

    return bilinear_interpolation


def _sort_buffer(what: str) -> Callable[..., None]:
    def init_sort_buf(buffer: Tile, num: Number, rsv: Number) -> None:
        """Write ``num`` elements of pairs that sort behind all others to ``buffer``: -inf, and an index with all bits set.
        ``num`` is a multiple of 64, ``rsv`` is 0.

        Example: ``NAME(pairs, 128, 0)``
        """
        given = _numbers(what, num=num)
        count = given["num"]
        if not isinstance(rsv, int) or rsv != 0:
            raise TileError(f"{what}: rsv is {rsv}", code="T145", help="nothing uses it: pass 0")
        if isinstance(count, int) and (count <= 0 or count % 64):
            raise TileError(f"{what}: {count} elements", code="T111", help="it fills whole groups of 64 elements")
        _emit(what, "init_sort_buf", buffer, [], count if isinstance(count, int) else None, given)

    return init_sort_buf


def _fill(what: str) -> Callable[..., None]:
    def fill_experiment(dst: Tile, value: Number, mask: Sequence[int], repeatTimes: Number, dstBlockStride: Number,
                        dstRepeatStride: Number) -> None:
        """Write ``value`` to the lanes of each repeat of ``dst`` whose bit in ``mask[0]`` is set; strides count blocks of 32
        bytes.

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

    return fill_experiment


def _gather_bits(what: str) -> Callable[..., None]:
    def gathermask_experiment(dst: Tile, src0: Operand, src1Pattern: Tile, reduceMode: bool, mask: Number,
                              GatherMaskParams: Sequence[Number], rsvdCnt: Number) -> None:
        """Write the elements of ``src0`` whose bit in ``src1Pattern`` is set to ``dst``, packed. ``GatherMaskParams`` are
        block stride, repeats, repeat stride and the pattern's stride; ``mask`` elements count with ``reduceMode``.
        ``rsvdCnt`` is 0.

        Example: ``NAME(out, a, pattern, True, 64, [1, 1, 8, 8], 0)``
        """
        if not isinstance(rsvdCnt, int) or rsvdCnt != 0:
            raise TileError(f"{what}: rsvdCnt is {rsvdCnt}", code="T145", help="nothing uses it: pass 0")
        blocks, repeats, strides, pattern_stride = GatherMaskParams
        given = _numbers(what, mask=mask, block_stride=blocks, repeats=repeats, repeat_stride=strides,
                         pattern_stride=pattern_stride)
        _emit(what, "gather_bits", dst, [(src0, None), (src1Pattern, None)], None, given, {"counter": bool(reduceMode)})

    return gathermask_experiment


def _sum_repeats(what: str) -> Callable[..., None]:
    def reduce_sum_mask_experiment(dst: Tile, src: Tile, mask: Number, repeatTime: Number, srcRepStride: Number) -> None:
        """Write the sum of the first ``mask`` elements of all repeats of ``src`` to the first element of ``dst``; the stride
        counts blocks of 32 bytes.

        Example: ``NAME(out, a, 64, 4, 8)``
        """
        given = _numbers(what, mask=mask, repeats=repeatTime, repeat_stride=srcRepStride)
        active, repeats, strides = given.values()
        _emit(what, "reduce_sum_repeats", dst, [(src, _reach(_bytes(what, src), repeats, strides, 1, active))], 1, given)

    return reduce_sum_mask_experiment


def _sum_rows(what: str) -> Callable[..., None]:
    def sum_experiment(dst: Tile, src: Tile, sumParams: Sequence[Number]) -> None:
        """Write the sum of each row of ``src`` to ``dst``; ``sumParams`` are the number of rows, their width and how many
        elements of each count.

        Example: ``NAME(out, a, [4, 64, 64])``
        """
        rows, width, count = sumParams
        given = _numbers(what, rows=rows, width=width, count=count)
        rows, width, count = given.values()
        read = _times(rows, width)
        if read is not None:
            read = read + count - 1 if isinstance(count, int) else None
        _emit(what, "sum_rows", dst, [(src, read)], rows if isinstance(rows, int) else None, given)

    return sum_experiment


def _sum(what: str) -> Callable[..., None]:
    def reduce_sum_experiment(dst: Tile, src: Tile, count: Number) -> None:
        """Write the sum of the first ``count`` elements of ``src`` to the first element of ``dst``.

        Example: ``NAME(out, a, 64)``
        """
        reduce_flat(what, "sum", src, dst, count)

    return reduce_sum_experiment


def _counted(what: str) -> Callable[..., None]:
    """``sub``, ``abs`` and ``min`` of the first elements."""
    name = what.rsplit(".", 1)[-1].removesuffix("_experiment")
    entry = operation({"mins": "min"}.get(name, name))
    assert isinstance(entry, Elementwise)

    def run(dst: Tile, operands: Sequence[object], count: object) -> None:
        builder = Builder.running(what)
        memories = [as_memory(what, "an operand", value) for value in (dst, *operands) if isinstance(value, Addressable)]
        parts = iter(leading(builder, what, memories, count))
        target = next(parts)
        apply(what, entry, [next(parts) if isinstance(value, Addressable) else value for value in operands], target)

    if entry.inputs == 1:
        def of_one(dst: Tile, src: Tile, count: Number) -> None:
            """Compute the first ``count`` elements of ``src``; writes ``dst``.

            Example: ``NAME(out, a, 64)``
            """
            run(dst, [src], count)

        return of_one

    if name == "mins":
        def of_scalar(dst: Tile, src: Tile, scalarValue: Number, count: Number) -> None:
            """Write the smaller of ``scalarValue`` and each of the first ``count`` elements of ``src`` to ``dst``.

            Example: ``NAME(out, a, 1.0, 64)``
            """
            run(dst, [src, scalarValue], count)

        return of_scalar

    def of_two(dst: Tile, src0: Operand, src1: Operand, count: Number) -> None:
        """Compute the first ``count`` elements of ``src0`` with those of ``src1``; writes ``dst``.

        Example: ``NAME(out, a, b, 64)``
        """
        run(dst, [src0, src1], count)

    return of_two


_FUNCTIONS: dict[str, Callable[[str], Callable[..., None]]] = {
    "brcb": _spread, "brcb_experiment": _spread, "gatherb": _gather_blocks,
    "wholereducemax": _whole, "wholereducemin": _whole, "wholereducesum": _whole,
    "block_reduce_max": _blocks, "block_reduce_min": _blocks, "block_reduce_sum": _blocks,
    "bilinear_interpolation": _bilinear, "init_sort_buf": _sort_buffer, "fill_experiment": _fill,
    "gathermask_experiment": _gather_bits, "reduce_sum_mask_experiment": _sum_repeats, "sum_experiment": _sum_rows,
    "reduce_sum_experiment": _sum, "sub_experiment": _counted, "abs_experiment": _counted, "mins_experiment": _counted,
}


@cache
def function(name: str) -> Callable[..., None]:
    """The language function of a name with ``tile.`` in front.

    Raises:
        KeyError: there is none.
    """
    made = _FUNCTIONS[name.removeprefix("tile.")](f"T.{name}")
    made.__name__, made.__qualname__ = name.rsplit(".", 1)[-1], f"T.{name}"
    made.__doc__ = from_table(name, name, made.__doc__ or "")
    return made
