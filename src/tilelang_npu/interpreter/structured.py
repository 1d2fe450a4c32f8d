"""Operations of the Vector core that move, scan, sort or generate data, and AscendC instructions by repeats and strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilelang_npu.interpreter.host_buffers import TileRef, integer, memory_of, stored
from tilelang_npu.interpreter.operation_table import tiles
from tilelang_npu.interpreter.running_core import fail
from tilelang_npu.interpreter.typed_scalars import is_scalar
from tilelang_npu.interpreter.vectors import ELEMENTWISE, executes_here, leading

Array = Any
_BLOCK, _BLOCKS = 32, 8
"""Bytes of a block, and blocks of a repeat (Ascend C operator reference)."""


def _whole(value: Any) -> int:
    """An integer, which may be written as a float."""
    return int(value) if isinstance(value, float) else integer(value)


def _inside(places: Array, count: int, what: str) -> Array:
    found = places.astype(np.int64)
    if found.size and (found.min() < 0 or found.max() >= count):
        raise fail(f"{what} {found.min() if found.min() < 0 else found.max()} is not one of 0 to {count - 1}",
                   "the data select an element that does not exist", "T502")
    return found


def _alike(values: Sequence[Any], sizes: Sequence[Any]) -> list[TileRef]:
    """Operands with the same number of axes, without axes of one element where the numbers differ, cut to their sizes."""
    memories = [memory_of(value) for value in values]
    if len({memory.ndim for memory in memories}) > 1:
        memories = [memory.squeezed() for memory in memories]
    return [memory if size is None else memory.right_aligned(size) for memory, size in zip(memories, sizes, strict=True)]


def _move(sources: Sequence[Any], targets: Sequence[Any], compute: Callable[..., Any], size: Any = None,
          larger: Callable[[list[int]], list[int]] = lambda sizes: sizes) -> None:
    """Writes arrays computed from the sources' arrays; ``larger`` gives the destinations' sizes for the sources' ``size``."""
    given = None if size is None else [integer(part) for part in size]
    sizes = [given] * len(sources) + [None if given is None else larger(list(given))] * len(targets)
    memories = _alike([*sources, *targets], sizes)
    inputs, outputs = memories[:len(sources)], memories[len(sources):]
    if executes_here(*inputs, *outputs[1:], writes=outputs[0]):
        made = compute(*[memory.view().copy() for memory in inputs])
        for memory, values in zip(outputs, made if isinstance(made, tuple) else (made,), strict=True):
            memory.view()[...] = values


@tiles("gather", "vgather", "npuir_gather")
def gather(src: Any, dst: Any, indices: Any, size: Any = None) -> None:
    """The elements at given indices of the last axis."""
    _move([src, indices], [dst], lambda rows, at: np.take_along_axis(rows, _inside(at, rows.shape[-1], "index"), -1), size)


@tiles("transpose", "vtranspose", "npuir_transpose")
def transpose(src: Any, dst: Any, permutation: Sequence[int], size: Any = None) -> None:
    """The axes in another order."""
    _move([src], [dst], lambda values: values.transpose(tuple(permutation)), size)


@tiles("tile.transpose")
def tile_transpose(dst: Any, src: Any) -> None:
    """The transposed matrix."""
    _move([src], [dst], lambda values: values.T)


@tiles("cumsum", "vcumsum", "npuir_cumsum")
def cumsum(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False) -> None:
    """Cumulative sums along an axis; narrow floats are accumulated in float32."""
    def compute(values: Array) -> Array:
        carried = values.dtype if values.dtype.kind in "iu" or values.dtype.itemsize >= 4 else np.float32
        made = np.add.accumulate((np.flip(values, dim) if reverse else values).astype(carried), axis=dim, dtype=carried)
        return np.flip(made, dim) if reverse else made

    _move([src], [src if dst is None else dst], compute)


@tiles("arange", "varange", "npuir_arange")
def arange(dst: Any, strides: Any, offset: Any = 0) -> None:
    """``offset + i * strides[0] + j * strides[1] + ...``."""
    target = memory_of(dst)
    if executes_here(writes=target):
        given = [_whole(part) for part in (strides if isinstance(strides, (list, tuple)) else [strides])]
        places = np.indices(target.extents, dtype=np.int64)
        target.view()[...] = sum((places[axis] * stride for axis, stride in enumerate(given)), start=np.int64(_whole(offset)))


@tiles("interleave", "vinterleave", "npuir_interleave")
def interleave(*operands: Any, channel_nums: int = 2, size: Any = None) -> None:
    """The elements of two tiles alternately along the last axis of a third."""
    _move(operands[:2], operands[2:], lambda a, b: np.stack([a, b], -1).reshape(*a.shape[:-1], -1), size,
          lambda sizes: [*sizes[:-1], 2 * sizes[-1]])


@tiles("deinterleave", "vdeinterleave", "npuir_deinterleave")
def deinterleave(src: Any, *targets: Any, channel_nums: int = 2, size: Any = None, index_mode: str = "ALL_CHANNELS") -> None:
    """The elements at even and at odd indices of the last axis."""
    first = 1 if index_mode == "CHANNEL_1" else 0
    _move([src], targets, lambda values: tuple(values[..., first + number::2] for number in range(len(targets))), size,
          lambda sizes: [*sizes[:-1], sizes[-1] // 2])


@tiles("concat", "vconcat", "npuir_concat")
def concat(*operands: Any, dim: Any = None, size: Any = None) -> None:
    """Tiles one after another along an axis."""
    *sources, target = operands if dim is not None else operands[:-1]
    axis = integer(operands[-1] if dim is None else dim) % memory_of(target).ndim
    _move(sources, [target], lambda *values: np.concatenate(values, axis), size,
          lambda sizes: [length * len(sources) if at == axis else length for at, length in enumerate(sizes)])


@tiles("pad", "vpad", "npuir_pad")
def pad(src: Any, dst: Any, pad_value: Any, low: Any, high: Any, size: Any = None) -> None:
    """A tile with a value before and after it along its axes."""
    widths = [(_whole(before), _whole(after)) for before, after in zip(low, high, strict=True)]
    value = stored(pad_value, memory_of(dst).kind)
    _move([src], [dst], lambda values: np.pad(values, widths, constant_values=value), size,
          lambda sizes: [sum(width) + length for width, length in zip(widths, sizes, strict=True)])


@tiles("flip", "vflip", "npuir_flip")
def flip(src: Any, dst: Any, axis: int, size: Any = None) -> None:
    """The last axis in reverse order."""
    _move([src], [dst], lambda values: np.flip(values, axis), size)


@tiles("tile.arith_progression", "tile.createvecindex")
def arith_progression(buffer: Any = None, first_value: Any = None, diff_value: Any = 1, count: Any = None,
                      **other: Any) -> None:
    """``first``, ``first + step``, ... in row-major order."""
    target = memory_of(other.get("dst", buffer))
    if executes_here(writes=target):
        first, step = (stored(value, target.kind) for value in (other.get("firstValue", first_value), diff_value))
        wide = np.float64 if target.kind.is_float else np.int64
        size = target.count if count is None else integer(count)
        made = (wide(first) + np.arange(size) * wide(step)).astype(target.kind.numpy)
        if count is None:
            target.view()[...] = made.reshape(target.extents)
        else:
            leading([target], count)[0][...] = made


# --- gathers and sorts of Ascend C ---------------------------------------------------------------------------------------


def _elements(memory: TileRef) -> Array:
    """The elements of a tile in row-major order."""
    return memory.view().reshape(-1)


def _put(memory: TileRef, values: Array) -> None:
    """Writes the first elements of a tile, in row-major order."""
    memory.view().flat[:values.size] = values.reshape(-1)


@tiles("tile.gather")
def gather_offsets(dst: Any, src: Any, src_offset: Any, src_base_addr: Any = 0) -> None:
    """The elements at byte offsets."""
    target, source, offsets = memory_of(dst), memory_of(src), memory_of(src_offset)
    if executes_here(source, offsets, writes=target):
        width, values = source.kind.numpy.itemsize, _elements(source)
        places = _elements(offsets)[:target.count].astype(np.int64) + _whole(src_base_addr)
        if (places % width).any():
            raise fail("a byte offset is not a multiple of the element's size", "multiply indices by it", "T502")
        _put(target, values[_inside(places // width, values.size, "offset")])


_PATTERNS = {"P0101": (0, 2), "P1010": (1, 2), "P0001": (0, 4), "P0010": (1, 4), "P0100": (2, 4), "P1000": (3, 4),
             "P1111": (0, 1)}


@tiles("tile.gather_mask")
def gather_mask(dst: Any, src: Any, src1Pattern: Any) -> None:
    """Every second or fourth element, or those at indices, without gaps; indices become byte offsets."""
    target, source = memory_of(dst), memory_of(src)
    indices = None if isinstance(src1Pattern, str) else memory_of(src1Pattern)
    if executes_here(source, *([] if indices is None else [indices]), writes=target):
        values = _elements(source)
        if indices is None:
            first, step = _PATTERNS[src1Pattern]
            _put(target, values[first::step].copy())
        else:
            _put(target, values[_inside(_elements(indices), values.size, "index")])
            indices.view()[...] = indices.view() * source.kind.numpy.itemsize


def _descending(values: Array) -> Array:
    """The indices of the elements from the largest to the smallest; equal ones keep their order, NaN is the largest."""
    keys = values.astype(np.float64)
    return np.argsort(np.where(np.isnan(keys), -np.inf, -keys), kind="stable")


def _sort(dst: Any, src: Any, actual_num: Any, k: int | None) -> None:
    target, source, real = memory_of(dst), memory_of(src), _whole(actual_num)
    if not executes_here(source, writes=target):
        return
    values = _elements(source).copy()
    if not 0 < real <= values.size:
        raise fail(f"actual_num is {real} of {values.size} elements", "it is at most the length of the source", "T502")
    values = values[:-(-real // 32) * 32] if k is None else values
    values[real:] = -np.inf
    _put(source, values)
    order = _descending(values)
    pairs = np.stack([values[order], order.astype(source.kind.numpy)], 1).reshape(-1)
    block = _BLOCK // source.kind.numpy.itemsize
    _put(target, pairs if k is None else pairs[:min(-(-2 * k // block) * block, target.count)])


@tiles("tile.sort")
def sort(dst: Any, src: Any, actual_num: Any) -> None:
    """Pairs of value and index in descending order."""
    _sort(dst, src, actual_num, None)


@tiles("tile.topk")
def topk(dst: Any, src: Any, K: int, actual_num: Any) -> None:
    """The first pairs of a sort."""
    _sort(dst, src, actual_num, integer(K))


@tiles("tile.merge_sort")
def merge_sort(dst: Any, *sources: Any, **named: Any) -> None:
    """2 to 4 sorted lists of pairs merged into one."""
    target, inputs = memory_of(dst), [memory_of(part) for part in (*sources, *named.values()) if part is not None]
    if executes_here(*inputs, writes=target):
        pairs = np.concatenate([_elements(source).reshape(-1, 2) for source in inputs])
        _put(target, pairs[_descending(pairs[:, 0])])


@tiles("tile.sort32")
def sort32(dst: Any, src0: Any, src1: Any) -> None:
    """Each 32 elements sorted, as pairs of 8 bytes with an index."""
    target, source, indices = memory_of(dst), memory_of(src0), memory_of(src1)
    if executes_here(source, indices, writes=target):
        values, places = _elements(source), _elements(indices)
        made = np.zeros((values.size, 8 // source.kind.numpy.itemsize), source.kind.numpy)
        for group in range(0, values.size, 32):
            order = group + _descending(values[group:group + 32])
            made[group:group + 32, 0] = values[order]
            made.view(np.uint32).reshape(-1, 2)[group:group + 32, 1] = places[order].astype(np.uint32)
        _put(target, made)


@tiles("tile.compare")
def compare_bits(dst: Any, src0: Any, src1: Any, mode: str) -> None:
    """A comparison with one bit for each element, the lowest bit of a byte first."""
    target, left = memory_of(dst), memory_of(src0)
    tiles_read = [left] if is_scalar(src1) else [left, memory_of(src1)]
    if executes_here(*tiles_read, writes=target):
        other = np.asarray(stored(src1, left.kind)) if is_scalar(src1) else _elements(tiles_read[1])
        bits = np.packbits(ELEMENTWISE[str(mode).lower()](left.kind, _elements(left), other), bitorder="little")
        if target.kind.numpy.itemsize == 1:
            _put(target, bits.view(target.kind.numpy))
        else:
            target.view().reshape(-1).view(np.uint8)[:bits.size] = bits


@tiles("tile.select")
def select_bits(dst: Any, selMask: Any, src0: Any, src1: Any, selMode: str) -> None:
    """The first input where the mask's bit is set, else the second."""
    target, mask, left = memory_of(dst), memory_of(selMask), memory_of(src0)
    others = [] if is_scalar(src1) else [memory_of(src1)]
    if executes_here(mask, left, *others, writes=target):
        other = _elements(others[0]) if others else np.asarray(stored(src1, left.kind))
        bits = np.unpackbits(np.ascontiguousarray(mask.view()).reshape(-1).view(np.uint8), bitorder="little")[:target.count]
        _put(target, np.where(bits.astype(bool), _elements(left), other).astype(target.kind.numpy))


def _enter_row_expand(name: str, operation: str) -> None:
    def row_expand(dst: Any, src0: Any, src1: Any, tmp: Any = None) -> None:
        target, left, rows = memory_of(dst), memory_of(src0), memory_of(src1)
        if executes_here(left, rows, writes=target):
            values, factors, block = left.view(), rows.view(), _BLOCK // rows.kind.numpy.itemsize
            if name.endswith("_experiment") and factors.shape == (values.shape[0], block) and values.shape[1] % block == 0:
                factors = np.tile(factors, (1, values.shape[1] // block))
            else:
                factors = factors.reshape(values.shape[0], 1)
            target.view()[...] = ELEMENTWISE[operation](left.kind, values, factors)

    tiles(f"tile.row_expand_{name}")(row_expand)


for _name in ("mul", "mul_experiment", "sub_experiment", "div_experiment"):
    _enter_row_expand(_name, _name[:3])


# --- by repeats and strides ----------------------------------------------------------------------------------------------


def _places(repeats: int, repeat_stride: int, block_stride: int, width: int) -> Array:
    """The indices of the elements of each repeat, one row for a repeat, in the order of the instruction."""
    block = _BLOCK // width
    return np.array([[(repeat * repeat_stride + part * block_stride) * block + lane for part in range(_BLOCKS)
                      for lane in range(block)] for repeat in range(repeats)], np.int64).reshape(repeats, _BLOCKS * block)


def _by_repeats(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Enters an instruction whose first argument is its destination; it gets flat arrays and integers."""
    def enter(function: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any, **keywords: Any) -> None:
            given = [memory_of(value) if hasattr(value, "buffer") or getattr(value, "origin", None) is not None else value
                     for value in (*arguments, *keywords.values())]
            memories = [value for value in given if isinstance(value, TileRef)]
            if executes_here(*memories[1:], writes=memories[0]):
                function(*[value.flat() if isinstance(value, TileRef) else value
                           if isinstance(value, (str, bool, float, list, tuple)) else integer(value) for value in given])

        tiles(*names)(call)
        return function

    return enter


def _take(array: Array, places: Array) -> Array:
    return array[_inside(places, array.size, "the instruction's element")]


def _give(array: Array, places: Array, values: Array) -> None:
    array[_inside(places, array.size, "the instruction's element").reshape(-1)] = np.asarray(values).reshape(-1)


def _total(values: Array, axis: int) -> Array:
    return values.astype(np.float32).sum(axis, dtype=np.float32).astype(values.dtype)


@_by_repeats("tile.brcb", "tile.brcb_experiment")
def brcb(dst: Array, src: Array, repeats: int, block_stride: int, repeat_stride: int) -> None:
    """Each element repeated over a block, 8 elements for each repeat."""
    values, width = _take(src, np.arange(repeats * _BLOCKS)), dst.dtype.itemsize
    _give(dst, _places(repeats, repeat_stride, block_stride, width), np.repeat(values, _BLOCK // width))


@_by_repeats("tile.gatherb")
def gatherb(dst: Array, src: Array, offsets: Array, repeats: int, block_stride: int, repeat_stride: int) -> None:
    """Blocks at byte offsets, 8 for each repeat."""
    width = src.dtype.itemsize
    starts = _take(offsets, np.arange(repeats * _BLOCKS)).astype(np.int64) // width
    _give(dst, _places(repeats, repeat_stride, block_stride, width), _take(src, starts[:, None] + np.arange(_BLOCK // width)))


def _enter_whole(name: str, find: Callable[..., Any] | None) -> None:
    """The extreme of the first elements of each repeat or, without ``find``, their sum."""
    def whole(dst: Array, src: Array, mask: int, repeats: int, result_stride: int, block_stride: int, repeat_stride: int,
              order: str = "ORDER_VALUE_INDEX") -> None:
        groups = _take(src, _places(repeats, repeat_stride, block_stride, src.dtype.itemsize)[:, :mask])
        at = np.arange(repeats) * result_stride
        if find is None:
            _give(dst, at, _total(groups, 1))
            return
        found = find(groups.astype(np.float64), axis=1)
        values, indices = groups[np.arange(repeats), found], found.astype(f"u{src.dtype.itemsize}").view(src.dtype)
        if order == "ORDER_ONLY_VALUE":
            _give(dst, at, values)
        else:
            _give(dst, 2 * at, values if order == "ORDER_VALUE_INDEX" else indices)
            _give(dst, 2 * at + 1, indices if order == "ORDER_VALUE_INDEX" else values)

    _by_repeats(f"tile.wholereduce{name}")(whole)


def _enter_blocks(name: str, fold: Callable[..., Any]) -> None:
    """The reduction of each block."""
    def of_blocks(dst: Array, src: Array, repeats: int, mask: int, result_stride: int, block_stride: int, repeat_stride: int
                  ) -> None:
        block, places = _BLOCK // src.dtype.itemsize, _places(repeats, repeat_stride, block_stride, src.dtype.itemsize)
        for part in range(-(-mask // block)):
            values = _take(src, places[:, part * block:min((part + 1) * block, mask)])
            _give(dst, np.arange(repeats) * _BLOCKS * result_stride + part, fold(values, 1))

    _by_repeats(f"tile.block_reduce_{name}")(of_blocks)


_enter_whole("sum", None)
for _name, _find, _fold in (("max", np.argmax, np.max), ("min", np.argmin, np.min)):
    _enter_whole(_name, _find)
    _enter_blocks(_name, _fold)
_enter_blocks("sum", _total)


@_by_repeats("tile.reduce_sum_mask_experiment")
def reduce_sum_mask(dst: Array, src: Array, mask: int, repeats: int, repeat_stride: int) -> None:
    """The sum of the first elements of all repeats."""
    dst[0] = _total(_take(src, _places(repeats, repeat_stride, 1, src.dtype.itemsize)[:, :mask]).reshape(1, -1), 1)[0]


@_by_repeats("tile.sum_experiment")
def sum_rows(dst: Array, src: Array, parameters: Sequence[Any]) -> None:
    """The sum of the first elements of each row."""
    rows, width, count = (integer(part) for part in parameters)
    _give(dst, np.arange(rows), _total(_take(src, np.arange(rows)[:, None] * width + np.arange(count)), 1))


@_by_repeats("tile.gathermask_experiment")
def gathermask(dst: Array, src: Array, pattern: Array, counter: bool, mask: int, parameters: Sequence[Any],
               reserved: int) -> None:
    """The elements whose bit in a pattern is set, without gaps."""
    block_stride, repeats, repeat_stride, pattern_stride = (integer(part) for part in parameters)
    block = _BLOCK // src.dtype.itemsize
    element = np.arange(mask if counter else _BLOCKS * block)
    bits = np.unpackbits(np.ascontiguousarray(pattern).view(np.uint8), bitorder="little")
    chosen = [src[:0]]
    for repeat in range(repeats):
        held = _take(bits, repeat * pattern_stride * _BLOCK * 8 + element).astype(bool)
        chosen.append(_take(src, (repeat * repeat_stride + element // block * block_stride) * block + element % block)[held])
    packed = np.concatenate(chosen)
    _give(dst, np.arange(packed.size), packed)


@_by_repeats("tile.fill_experiment")
def fill_bits(dst: Array, value: Any, mask: Sequence[Any], repeats: int, block_stride: int, repeat_stride: int) -> None:
    """A value in the elements of each repeat whose bit in a mask is set."""
    lanes = [lane for lane in range(256 // dst.dtype.itemsize) if integer(mask[0]) >> lane & 1]
    places = _places(repeats, repeat_stride, block_stride, dst.dtype.itemsize)[:, lanes]
    _give(dst, places, np.full(places.shape, value, dst.dtype))


@_by_repeats("tile.init_sort_buf")
def init_sort_buf(dst: Array, count: int, reserved: int) -> None:
    """Pairs that sort after all others: -inf, and an index with all bits set."""
    pairs = np.array([0xFF800000, 0xFFFFFFFF] * (count // 64 * 32), np.uint32).view(dst.dtype)
    _give(dst, np.arange(pairs.size), pairs)


@_by_repeats("tile.bilinear_interpolation")
def bilinear(dst: Array, src: Array, offsets: Array, weights: Array, mask: int, across: int, per_block: bool, block_stride: int,
             down_stride: int, down: int) -> None:
    """Sums of gathered blocks times weights, rounded after each step."""
    block = _BLOCK // src.dtype.itemsize
    lanes = (np.arange(_BLOCKS)[:, None] * block_stride * block + np.arange(block)).reshape(-1)[:mask]
    for row in range(down):
        total = np.zeros((_BLOCKS, block), src.dtype)
        for number in range(row * across, (row + 1) * across):
            starts = _take(offsets, number * _BLOCKS + np.arange(_BLOCKS)).astype(np.int64) // src.dtype.itemsize
            values = _take(src, starts[:, None] + np.arange(block)).astype(np.float32)
            factor = _take(weights, number * _BLOCKS + np.arange(_BLOCKS))[:, None] if per_block else weights[number]
            product = (values * np.asarray(factor).astype(np.float32)).astype(src.dtype)
            total = (total.astype(np.float32) + product.astype(np.float32)).astype(src.dtype)
        _give(dst, row * down_stride + lanes, total.reshape(-1)[:mask])
