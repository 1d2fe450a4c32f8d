"""Operations of the Vector core that move, scan, sort or make data, and Ascend C's instructions by repeats and strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilelang_npu.interpreter.memory import Memory, Region, fail, integer, memory_of, stored
from tilelang_npu.interpreter.movement import right_aligned, squeezed
from tilelang_npu.interpreter.table import tiles
from tilelang_npu.interpreter.values import is_scalar
from tilelang_npu.interpreter.vectors import ELEMENTWISE, _number, _place, is_here, leading

Array = Any
_BLOCK = 32
"""Bytes of a block; a repeat is eight blocks (Ascend C operator reference)."""
_BLOCKS = 8


def _alike(*values: Any) -> list[Memory]:
    """Operands with as many axes each: axes of one element are dropped where the ranks differ."""
    memories = [memory_of(_place(value)) for value in values]
    return memories if len({memory.ndim for memory in memories}) == 1 else [squeezed(memory) for memory in memories]


def _cut(memories: Sequence[Memory], size: Any) -> list[Memory]:
    return list(memories) if size is None else [right_aligned(memory, [integer(part) for part in size]) for memory in memories]


def _inside(places: Array, count: int, what: str) -> Array:
    found = places.astype(np.int64)
    if found.size and (found.min() < 0 or found.max() >= count):
        raise fail(f"{what} {found.min() if found.min() < 0 else found.max()} is not one of 0 to {count - 1}",
                   "data name an element that is not there", "T502")
    return found


@tiles("gather", "vgather", "npuir_gather")
def gather(src: Any, dst: Any, indices: Any, size: Any = None) -> None:
    """Elements of the last axis at given indices."""
    source, target, places = _cut(_alike(src, dst, indices), size)
    if is_here(source, places, writes=target):
        rows = source.view()
        target.view()[...] = np.take_along_axis(rows, _inside(places.view(), rows.shape[-1], "index"), -1)


@tiles("transpose", "vtranspose", "npuir_transpose")
def transpose(src: Any, dst: Any, permutation: Sequence[int], size: Any = None) -> None:
    """The axes in another order."""
    source, target = _cut(_alike(src, dst), size)
    if is_here(source, writes=target):
        target.view()[...] = source.view().transpose(tuple(permutation)).copy()


@tiles("tile.transpose")
def tile_transpose(dst: Any, src: Any) -> None:
    """The transposed matrix."""
    source, target = _alike(src, dst)
    if is_here(source, writes=target):
        target.view()[...] = source.view().T.copy()


@tiles("cumsum", "vcumsum", "npuir_cumsum")
def cumsum(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False) -> None:
    """Sums of the elements up to each place of an axis; narrow floats are carried in float32."""
    source, target = _alike(src, src if dst is None else dst)
    if not is_here(source, writes=target):
        return
    values = source.view()
    values = np.flip(values, dim) if reverse else values
    carried = np.float32 if source.kind.is_float and source.kind.bits < 32 else values.dtype
    made = np.add.accumulate(values.astype(carried), axis=dim, dtype=carried)
    target.view()[...] = (np.flip(made, dim) if reverse else made).astype(target.kind.numpy)


@tiles("arange", "varange", "npuir_arange")
def arange(dst: Any, strides: Any, offset: Any = 0) -> None:
    """``offset + i * strides[0] + j * strides[1] + ...``."""
    target = memory_of(dst)
    if is_here(writes=target):
        given = [integer_of(part) for part in (strides if isinstance(strides, (list, tuple)) else [strides])]
        places = np.indices(target.extents, dtype=np.int64)
        total = sum((places[axis] * stride for axis, stride in enumerate(given)), start=np.int64(integer_of(offset)))
        target.view()[...] = total.astype(target.kind.numpy)


def integer_of(value: Any) -> int:
    """A whole number, which may be written as a float."""
    return int(value) if isinstance(value, float) else integer(value)


@tiles("interleave", "vinterleave", "npuir_interleave")
def interleave(src0: Any, src1: Any, dst: Any, channel_nums: int = 2, size: Any = None) -> None:
    """The elements of two tiles in turn along the last axis."""
    a, b, target = _alike(src0, src1, dst)
    if size is not None:
        sizes = [integer(part) for part in size]
        a, b, target = *_cut([a, b], sizes), _cut([target], [*sizes[:-1], 2 * sizes[-1]])[0]
    if is_here(a, b, writes=target):
        x, y = a.view().copy(), b.view().copy()
        out = target.view()
        out[..., 0::2], out[..., 1::2] = x, y


@tiles("deinterleave", "vdeinterleave", "npuir_deinterleave")
def deinterleave(src: Any, *targets: Any, channel_nums: int = 2, size: Any = None, index_mode: str = "ALL_CHANNELS") -> None:
    """The even and the odd elements of the last axis."""
    source, *places = _alike(src, *targets)
    if size is not None:
        sizes = [integer(part) for part in size]
        source, places = _cut([source], sizes)[0], _cut(places, [*sizes[:-1], sizes[-1] // 2])
    if is_here(source, *places[1:], writes=places[0]):
        values, first = source.view().copy(), 1 if index_mode == "CHANNEL_1" else 0
        for number, place in enumerate(places):
            place.view()[...] = values[..., first + number::2]


@tiles("concat", "vconcat", "npuir_concat")
def concat(*operands: Any, dim: Any = None, size: Any = None) -> None:
    """Tiles one after another along an axis."""
    values = list(operands)
    if dim is None:
        dim = values.pop()
    *sources, target = _alike(*values)
    axis = integer(dim) % target.ndim
    if size is not None:
        sizes = [integer(part) for part in size]
        sources = _cut(sources, sizes)
        sizes[axis] *= len(sources)
        target = _cut([target], sizes)[0]
    if is_here(*sources, writes=target):
        target.view()[...] = np.concatenate([source.view() for source in sources], axis)


@tiles("pad", "vpad", "npuir_pad")
def pad(src: Any, dst: Any, pad_value: Any, low: Any, high: Any, size: Any = None) -> None:
    """A tile with a value before and after it along its axes."""
    source, target = _alike(src, dst)
    before, after = [integer_of(part) for part in low], [integer_of(part) for part in high]
    if size is not None:
        sizes = [integer(part) for part in size]
        source = _cut([source], sizes)[0]
        target = _cut([target], [a + b + c for a, b, c in zip(before, sizes, after, strict=False)])[0]
    if is_here(source, writes=target):
        values = source.view().copy()
        out = target.view()
        out[...] = stored(pad_value, target.kind)
        out[tuple(slice(start, start + length) for start, length in zip(before, values.shape, strict=True))] = values


@tiles("flip", "vflip", "npuir_flip")
def flip(src: Any, dst: Any, axis: int, size: Any = None) -> None:
    """The last axis reversed."""
    source, target = _cut(_alike(src, dst), size)
    if is_here(source, writes=target):
        target.view()[...] = np.flip(source.view(), axis).copy()


@tiles("tile.arith_progression")
def arith_progression(buffer: Any, first_value: Any, diff_value: Any, count: Any = None) -> None:
    """``first``, ``first + step``, ... in flat order."""
    target = memory_of(buffer)
    if not is_here(writes=target):
        return
    out = target.view().reshape(-1) if count is None else leading([target], count)[0]
    first, step = (stored(value, target.kind) for value in (first_value, diff_value))
    wide = np.float64 if target.kind.is_float else np.int64
    made = (wide(first) + np.arange(out.size) * wide(step)).astype(target.kind.numpy)
    if count is None:
        target.view()[...] = made.reshape(target.extents)
    else:
        out[...] = made


@tiles("tile.createvecindex")
def createvecindex(dst: Any, firstValue: Any) -> None:
    """``first``, ``first + 1``, ... in flat order."""
    arith_progression(dst, firstValue, 1)


# --- gathers and sorts of Ascend C ---------------------------------------------------------------------------------------


def _flat(memory: Memory) -> Array:
    """The elements in row-major order: a view where the tile is dense."""
    return memory.view().reshape(-1)


def _put(memory: Memory, values: Array) -> None:
    """Write the first elements of a tile, in row-major order."""
    memory.view().flat[:values.size] = values.reshape(-1)


@tiles("tile.gather")
def gather_offsets(dst: Any, src: Any, src_offset: Any, src_base_addr: Any = 0) -> None:
    """Elements at byte offsets."""
    target, source, offsets = memory_of(dst), memory_of(src), memory_of(src_offset)
    if not is_here(source, offsets, writes=target):
        return
    width = source.kind.numpy.itemsize
    count = min(target.count, offsets.count)
    places = _flat(offsets)[:count].astype(np.int64) + integer_of(src_base_addr)
    if (places % width).any():
        raise fail("a byte offset is no multiple of the element's size", "multiply indices by it", "T502")
    values = _flat(source)
    _put(target, values[_inside(places // width, values.size, "offset")])


_PATTERNS = {"P0101": (0, 2), "P1010": (1, 2), "P0001": (0, 4), "P0010": (1, 4), "P0100": (2, 4), "P1000": (3, 4),
             "P1111": (0, 1)}


@tiles("tile.gather_mask")
def gather_mask(dst: Any, src: Any, src1Pattern: Any) -> None:
    """Every second or fourth element, or those at indices, packed; the indices are byte offsets afterwards."""
    target, source = memory_of(dst), memory_of(src)
    if isinstance(src1Pattern, str):
        if is_here(source, writes=target):
            first, step = _PATTERNS[src1Pattern]
            _put(target, _flat(source)[first::step].copy())
        return
    indices = memory_of(src1Pattern)
    if is_here(source, indices, writes=target):
        values = _flat(source)
        _put(target, values[_inside(_flat(indices), values.size, "index")])
        indices.view()[...] = indices.view() * source.kind.numpy.itemsize


def _descending(values: Array) -> Array:
    """Places of the elements from the largest to the smallest; equal ones keep their order, NaN counts as largest."""
    keys = values.astype(np.float64)
    return np.argsort(np.where(np.isnan(keys), -np.inf, -keys), kind="stable")


def _sort(dst: Any, src: Any, actual_num: Any, k: int | None) -> None:
    target, source = memory_of(dst), memory_of(src)
    if not is_here(source, writes=target):
        return
    real = integer_of(actual_num)
    values = _flat(source).copy()
    if not 0 < real <= values.size:
        raise fail(f"actual_num is {real} of {values.size} elements", "it is at most the length of the source", "T502")
    if k is None:
        values = values[:-(-real // 32) * 32]
    values[real:] = -np.inf
    _put(source, values)
    order = _descending(values)
    pairs = np.stack([values[order], order.astype(source.kind.numpy)], 1).reshape(-1)
    if k is not None:
        block = _BLOCK // source.kind.numpy.itemsize
        pairs = pairs[:min(-(-2 * k // block) * block, target.count)]
    _put(target, pairs)


@tiles("tile.sort")
def sort(dst: Any, src: Any, actual_num: Any) -> None:
    """Pairs of value and index in descending order."""
    _sort(dst, src, actual_num, None)


@tiles("tile.topk")
def topk(dst: Any, src: Any, K: int, actual_num: Any) -> None:
    """The first pairs of a sort."""
    _sort(dst, src, actual_num, integer(K))


@tiles("tile.merge_sort")
def merge_sort(dst: Any, src0: Any, src1: Any, src2: Any = None, src3: Any = None) -> None:
    """2 to 4 sorted lists of pairs as one."""
    target, sources = memory_of(dst), [memory_of(part) for part in (src0, src1, src2, src3) if part is not None]
    if is_here(*sources, writes=target):
        pairs = np.concatenate([_flat(source).reshape(-1, 2) for source in sources])
        _put(target, pairs[_descending(pairs[:, 0])])


@tiles("tile.sort32")
def sort32(dst: Any, src0: Any, src1: Any) -> None:
    """Each 32 elements sorted, as pairs of 8 bytes with an index."""
    target, source, indices = memory_of(dst), memory_of(src0), memory_of(src1)
    if not is_here(source, indices, writes=target):
        return
    values, places = _flat(source), _flat(indices)
    made = np.zeros((values.size, 8 // source.kind.numpy.itemsize), source.kind.numpy)
    for group in range(0, values.size, 32):
        order = group + _descending(values[group:group + 32])
        made[group:group + 32, 0] = values[order]
        made.view(np.uint32).reshape(-1, 2)[group:group + 32, 1] = places[order].astype(np.uint32)
    _put(target, made)


@tiles("tile.compare")
def compare_bits(dst: Any, src0: Any, src1: Any, mode: str) -> None:
    """Comparison of two elements; the result is a bit each, the lowest bit of a byte first."""
    target, left = memory_of(dst), memory_of(src0)
    right = None if is_scalar(src1) else memory_of(src1)
    if not is_here(left, *([right] if right is not None else []), writes=target):
        return
    other = _number(src1, left.kind) if right is None else _flat(right)
    bits = np.packbits(ELEMENTWISE[str(mode).lower()](left.kind, _flat(left), other), bitorder="little")
    if target.kind.numpy.itemsize == 1:
        _put(target, bits.view(target.kind.numpy))
    else:
        target.view().reshape(-1).view(np.uint8)[:bits.size] = bits


@tiles("tile.select")
def select_bits(dst: Any, selMask: Any, src0: Any, src1: Any, selMode: str) -> None:
    """The first input where the mask's bit is set, else the second."""
    target, mask, left = memory_of(dst), memory_of(selMask), memory_of(src0)
    right = None if is_scalar(src1) else memory_of(src1)
    if not is_here(mask, left, *([right] if right is not None else []), writes=target):
        return
    bits = np.unpackbits(np.ascontiguousarray(mask.view()).reshape(-1).view(np.uint8), bitorder="little")[:target.count]
    other = _number(src1, left.kind) if right is None else _flat(right)
    _put(target, np.where(bits.astype(bool), _flat(left), other).astype(target.kind.numpy))


def _enter_row_expand(name: str, operation: str) -> None:
    def row_expand(dst: Any, src0: Any, src1: Any, tmp: Any = None) -> None:
        target, left, rows = memory_of(dst), memory_of(src0), memory_of(src1)
        if not is_here(left, rows, writes=target):
            return
        values, factors = left.view(), rows.view()
        block = _BLOCK // rows.kind.numpy.itemsize
        if (name.endswith("_experiment") and factors.shape == (values.shape[0], block) and values.shape[1] % block == 0):
            factors = np.tile(factors, (1, values.shape[1] // block))
        else:
            factors = factors.reshape(values.shape[0], 1)
        target.view()[...] = ELEMENTWISE[operation](left.kind, values, factors)

    tiles(name)(row_expand)


for _name, _operation in (("tile.row_expand_mul", "mul"), ("tile.row_expand_mul_experiment", "mul"),
                          ("tile.row_expand_sub_experiment", "sub"), ("tile.row_expand_div_experiment", "div")):
    _enter_row_expand(_name, _operation)


# --- by repeats and strides ----------------------------------------------------------------------------------------------


def _from_first(memory: Memory) -> Array:
    """Flat memory of the buffer from the tile's first element on."""
    array = memory.buffer.array
    return array.reshape(-1)[int(np.ravel_multi_index(memory.offsets, array.shape)):]


def _places(repeats: int, repeat_stride: int, block_stride: int, width: int) -> Array:
    """Places of the elements of each repeat: a row a repeat, in the order the instruction takes them."""
    block = _BLOCK // width
    return np.array([[(repeat * repeat_stride + part * block_stride) * block + lane for part in range(_BLOCKS)
                      for lane in range(block)] for repeat in range(repeats)], np.int64).reshape(repeats, _BLOCKS * block)


def _by_repeats(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An instruction whose first argument is its destination: it gets flat arrays, and integers."""

    def enter(function: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any, **keywords: Any) -> None:
            given = [*arguments, *keywords.values()]
            memories = [memory_of(_place(value)) for value in given if not is_scalar(value) and hasattr(_place(value), "buffer")]
            if not is_here(*memories[1:], writes=memories[0]):
                return
            values = [_from_first(memory_of(_place(value))) if not is_scalar(value) and hasattr(_place(value), "buffer")
                      else value if isinstance(value, (str, bool, float)) or value is None or isinstance(value, (list, tuple))
                      else integer(value) for value in given]
            function(*values)

        tiles(*names)(call)
        return function

    return enter


def _take(array: Array, places: Array) -> Array:
    return array[_inside(places, array.size, "the instruction's element")]


def _give(array: Array, places: Array, values: Array) -> None:
    array[_inside(places, array.size, "the instruction's element").reshape(-1)] = np.asarray(values).reshape(-1)


@_by_repeats("tile.brcb", "tile.brcb_experiment")
def brcb(dst: Array, src: Array, repeats: int, block_stride: int, repeat_stride: int) -> None:
    """Each element spread over a block, 8 elements a repeat."""
    width = dst.dtype.itemsize
    values = _take(src, np.arange(repeats * _BLOCKS))
    _give(dst, _places(repeats, repeat_stride, block_stride, width), np.repeat(values, _BLOCK // width))


@_by_repeats("tile.gatherb")
def gatherb(dst: Array, src: Array, offsets: Array, repeats: int, block_stride: int, repeat_stride: int) -> None:
    """Blocks at byte offsets, 8 a repeat."""
    width = src.dtype.itemsize
    starts = _take(offsets, np.arange(repeats * _BLOCKS)).astype(np.int64) // width
    _give(dst, _places(repeats, repeat_stride, block_stride, width), _take(src, starts[:, None] + np.arange(_BLOCK // width)))


def _enter_whole(name: str, find: Callable[..., Any]) -> None:
    def whole(dst: Array, src: Array, mask: int, repeats: int, result_stride: int, block_stride: int, repeat_stride: int,
              order: str = "ORDER_VALUE_INDEX") -> None:
        groups = _take(src, _places(repeats, repeat_stride, block_stride, src.dtype.itemsize)[:, :mask])
        found = find(groups.astype(np.float64), axis=1)
        values = groups[np.arange(repeats), found]
        if order == "ORDER_ONLY_VALUE":
            _give(dst, np.arange(repeats) * result_stride, values)
            return
        indices = found.astype(f"u{src.dtype.itemsize}").view(src.dtype)
        pair = (values, indices) if order == "ORDER_VALUE_INDEX" else (indices, values)
        for lane, part in enumerate(pair):
            _give(dst, np.arange(repeats) * 2 * result_stride + lane, part)

    _by_repeats(name)(whole)


_enter_whole("tile.wholereducemax", np.argmax)
_enter_whole("tile.wholereducemin", np.argmin)


def _total(values: Array, axis: int) -> Array:
    return values.astype(np.float32).sum(axis, dtype=np.float32)


@_by_repeats("tile.wholereducesum")
def wholereducesum(dst: Array, src: Array, mask: int, repeats: int, result_stride: int, block_stride: int, repeat_stride: int
                   ) -> None:
    """The sum of the first elements of each repeat."""
    groups = _take(src, _places(repeats, repeat_stride, block_stride, src.dtype.itemsize)[:, :mask])
    _give(dst, np.arange(repeats) * result_stride, _total(groups, 1).astype(dst.dtype))


def _enter_blocks(name: str, fold: Callable[..., Any]) -> None:
    def of_blocks(dst: Array, src: Array, repeats: int, mask: int, result_stride: int, block_stride: int, repeat_stride: int
                  ) -> None:
        block = _BLOCK // src.dtype.itemsize
        places = _places(repeats, repeat_stride, block_stride, src.dtype.itemsize)
        for part in range(-(-mask // block)):
            values = _take(src, places[:, part * block:min((part + 1) * block, mask)])
            _give(dst, np.arange(repeats) * _BLOCKS * result_stride + part, fold(values, 1).astype(dst.dtype))

    _by_repeats(name)(of_blocks)


_enter_blocks("tile.block_reduce_max", np.max)
_enter_blocks("tile.block_reduce_min", np.min)
_enter_blocks("tile.block_reduce_sum", _total)


@_by_repeats("tile.reduce_sum_mask_experiment")
def reduce_sum_mask(dst: Array, src: Array, mask: int, repeats: int, repeat_stride: int) -> None:
    """The sum of the first elements of all repeats."""
    values = _take(src, _places(repeats, repeat_stride, 1, src.dtype.itemsize)[:, :mask])
    dst[0] = _total(values.reshape(1, -1), 1).astype(dst.dtype)[0]


@_by_repeats("tile.sum_experiment")
def sum_rows(dst: Array, src: Array, parameters: Sequence[Any]) -> None:
    """The sum of the first elements of each row."""
    rows, width, count = (integer(part) for part in parameters)
    values = _take(src, np.arange(rows)[:, None] * width + np.arange(count))
    _give(dst, np.arange(rows), _total(values, 1).astype(dst.dtype))


@_by_repeats("tile.gathermask_experiment")
def gathermask(dst: Array, src: Array, pattern: Array, counter: bool, mask: int, parameters: Sequence[Any], reserved: int) -> None:
    """The elements whose bit in a pattern is set, packed."""
    block_stride, repeats, repeat_stride, pattern_stride = (integer(part) for part in parameters)
    block = _BLOCK // src.dtype.itemsize
    element = np.arange(mask if counter else _BLOCKS * block)
    bits = np.unpackbits(np.ascontiguousarray(pattern).view(np.uint8), bitorder="little")
    chosen = []
    for repeat in range(repeats):
        held = _take(bits, repeat * pattern_stride * _BLOCK * 8 + element).astype(bool)
        places = (repeat * repeat_stride + element // block * block_stride) * block + element % block
        chosen.append(_take(src, places)[held])
    packed = np.concatenate(chosen) if chosen else src[:0]
    _give(dst, np.arange(packed.size), packed)


@_by_repeats("tile.fill_experiment")
def fill_bits(dst: Array, value: Any, mask: Sequence[Any], repeats: int, block_stride: int, repeat_stride: int) -> None:
    """A value in the lanes of each repeat whose bit in a mask is set."""
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
        for step in range(across):
            number = row * across + step
            starts = _take(offsets, number * _BLOCKS + np.arange(_BLOCKS)).astype(np.int64) // src.dtype.itemsize
            values = _take(src, starts[:, None] + np.arange(block)).astype(np.float32)
            factor = _take(weights, number * _BLOCKS + np.arange(_BLOCKS))[:, None] if per_block else weights[number]
            product = (values * np.asarray(factor).astype(np.float32)).astype(src.dtype)
            total = (total.astype(np.float32) + product.astype(np.float32)).astype(src.dtype)
        _give(dst, row * down_stride + lanes, total.reshape(-1)[:mask])


del Region
