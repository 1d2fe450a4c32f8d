"""Executes operations of the Vector core that move, scan, sort or generate data, and AscendC instructions with repeats and
strides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tilelang_npu.interpreter.host_buffers import (
    POISON,
    HostBuffer,
    Reference,
    TileRef,
    integer,
    memory_of,
    origin_of,
    sizes_of,
    stored,
)
from tilelang_npu.interpreter.operation_table import tiles
from tilelang_npu.interpreter.running_core import fail
from tilelang_npu.interpreter.typed_scalars import Array, is_scalar
from tilelang_npu.interpreter.vectors import ELEMENTWISE, executes_here, leading

_BLOCK, _BLOCKS = 32, 8
"""The number of bytes of a block, and the number of blocks that an instruction processes per repeat (Ascend C reference)."""


def _whole(value: object) -> int:
    """Returns an integer, which the author possibly wrote as a float."""
    return int(value) if isinstance(value, float) else integer(value)


def _inside(places: Array, count: int, what: str) -> Array:
    found = places.astype(np.int64)
    if found.size and (found.min() < 0 or found.max() >= count):
        raise fail(f"{what} {found.min() if found.min() < 0 else found.max()} is not one of 0 to {count - 1}",
                   "the data select an element that does not exist", "T502")
    return found


def _move(sources: Sequence[object], targets: Sequence[object], compute: Callable[..., Array | tuple[Array, ...]],
          size: object = None,
          larger: Callable[[list[int]], list[int]] = lambda sizes: sizes) -> None:
    """Computes arrays from the sources' arrays, and writes them to the destinations.

    If the tiles have different numbers of axes, axes of size 1 are removed.

    Args:
        sources: the source tiles.
        targets: the destination tiles.
        compute: the function that computes the arrays.
        size: the sizes of the part of the sources that is used; None for the whole sources.
        larger: returns the sizes of the destinations, given ``size``; for operations whose results are larger.
    """
    given = None if size is None else sizes_of(size)
    memories = [memory_of(value) for value in (*sources, *targets)]
    if len({memory.ndim for memory in memories}) > 1:
        memories = [memory.squeezed() for memory in memories]
    inputs, outputs = memories[:len(sources)], memories[len(sources):]
    if given is not None:
        inputs = [memory.right_aligned(given) for memory in inputs]
        outputs = [memory.right_aligned(larger(list(given))) for memory in outputs]
    if executes_here(*inputs, *outputs[1:], writes=outputs[0]):
        made = compute(*[memory.view().copy() for memory in inputs])
        for memory, values in zip(outputs, made if isinstance(made, tuple) else (made,), strict=True):
            memory.view()[...] = values


@tiles("gather", "vgather", "npuir_gather")
def gather(src: object, dst: object, indices: object, size: object = None) -> None:
    """Writes the elements at the given indices of the last axis of ``src`` to ``dst``."""
    _move([src, indices], [dst], lambda rows, at: np.take_along_axis(rows, _inside(at, rows.shape[-1], "index"), -1), size)


@tiles("transpose", "vtranspose", "npuir_transpose")
def transpose(src: object, dst: object, permutation: Sequence[int] | None = None, size: object = None) -> None:
    """Writes ``src`` with its axes in the order ``permutation`` to ``dst``; without one, with its last two axes swapped."""
    _move([src], [dst], lambda values: values.swapaxes(-1, -2) if permutation is None else values.transpose(tuple(permutation)),
          size)


tiles("tile.transpose")(lambda dst, src: transpose(src, dst))


@tiles("cumsum", "vcumsum", "npuir_cumsum")
def cumsum(src: object, dst: object = None, dim: int = 0, reverse: bool = False) -> None:
    """Writes the cumulative sums along the axis ``dim`` to ``dst``; narrow floats are accumulated in float32."""
    def sums(values: Array) -> Array:
        carried = values.dtype if values.dtype.kind in "iu" or values.dtype.itemsize >= 4 else np.float32
        return np.add.accumulate(values.astype(carried), axis=dim, dtype=carried)

    _accumulate(src, dst, dim, reverse, sums)


@tiles("cummax", "vcummax", "npuir_cummax")
def cummax(src: object, dst: object = None, dim: int = 0, reverse: bool = False) -> None:
    """Writes the cumulative maxima along the axis ``dim`` to ``dst``."""
    _accumulate(src, dst, dim, reverse, lambda values: np.maximum.accumulate(values, axis=dim))


def _accumulate(src: object, dst: object, dim: int, reverse: bool, compute: Callable[[Array], Array]) -> None:
    _move([src], [src if dst is None else dst],
          lambda values: np.flip(compute(np.flip(values, dim)), dim) if reverse else compute(values))


@tiles("arange", "varange", "npuir_arange")
def arange(dst: object, strides: object, offset: object = 0) -> None:
    """Writes ``offset + i * strides[0] + j * strides[1] + ...`` to each element ``dst[i, j, ...]``."""
    target = memory_of(dst)
    if executes_here(writes=target):
        given = [_whole(part) for part in (strides if isinstance(strides, (list, tuple)) else [strides])]
        places = np.indices(target.extents, dtype=np.int64)
        target.view()[...] = sum((places[axis] * stride for axis, stride in enumerate(given)), start=np.int64(_whole(offset)))


@tiles("interleave", "vinterleave", "npuir_interleave")
def interleave(*operands: object, channel_nums: int = 2, size: object = None) -> None:
    """Writes the elements of two tiles alternately along the last axis of a third tile, which is the last operand."""
    _move(operands[:2], operands[2:], lambda a, b: np.stack([a, b], -1).reshape(*a.shape[:-1], -1), size,
          lambda sizes: [*sizes[:-1], 2 * sizes[-1]])


@tiles("deinterleave", "vdeinterleave", "npuir_deinterleave")
def deinterleave(src: object, *targets: object, channel_nums: int = 2, size: object = None,
                 index_mode: str = "ALL_CHANNELS") -> None:
    """Writes the elements at even and at odd indices of the last axis of ``src`` to two tiles, or one of the two parts to one
    tile."""
    first = 1 if index_mode == "CHANNEL_1" else 0
    _move([src], targets, lambda values: tuple(values[..., first + number::2] for number in range(len(targets))), size,
          lambda sizes: [*sizes[:-1], sizes[-1] // 2])


@tiles("concat", "vconcat", "npuir_concat")
def concat(*operands: object, dim: object = None, size: object = None) -> None:
    """Writes several tiles one after another along the axis ``dim`` of the destination."""
    *sources, target = operands if dim is not None else operands[:-1]
    axis = integer(operands[-1] if dim is None else dim) % memory_of(target).ndim
    _move(sources, [target], lambda *values: np.concatenate(values, axis), size,
          lambda sizes: [length * len(sources) if at == axis else length for at, length in enumerate(sizes)])


@tiles("pad", "vpad", "npuir_pad")
def pad(src: object, dst: object, pad_value: object, low: Sequence[object], high: Sequence[object],
        size: object = None) -> None:
    """Writes ``src`` to ``dst``, with padding before and after the elements of ``src`` along each axis.

    Args:
        src: the source tile.
        dst: the destination tile.
        pad_value: the value of the padding.
        low: for each axis, the number of elements of padding before ``src``.
        high: for each axis, the number of elements of padding after ``src``.
        size: the sizes of the part of ``src`` that is written; None for all of ``src``.
    """
    widths = [(_whole(before), _whole(after)) for before, after in zip(low, high, strict=True)]
    value = stored(pad_value, memory_of(dst).kind)
    _move([src], [dst], lambda values: np.pad(values, widths, constant_values=value), size,
          lambda sizes: [sum(width) + length for width, length in zip(widths, sizes, strict=True)])


@tiles("flip", "vflip", "npuir_flip")
def flip(src: object, dst: object, axis: int, size: object = None) -> None:
    """Writes ``src`` with the elements of its last axis in reverse order to ``dst``."""
    _move([src], [dst], lambda values: np.flip(values, axis), size)


@tiles("vsort", "npuir_sort")
def sort_rows(src: object, dst_value: object, dst_index: object, descending: bool = False, sort_axis: int = -1) -> None:
    """Writes the elements of ``src``, sorted along an axis, to ``dst_value``, and their positions to ``dst_index``."""
    def compute(values: Array) -> tuple[Array, Array]:
        wide = values.astype(np.float64)
        order = np.argsort(-wide if descending else wide, axis=sort_axis, kind="stable")
        return np.take_along_axis(values, order, sort_axis), order

    _move([src], [dst_value, dst_index], compute)


@tiles("tile.arith_progression", "tile.createvecindex", "tile.create_vec_index")
def arith_progression(buffer: object = None, first_value: object = None, diff_value: object = 1, count: object = None,
                      **other: object) -> None:
    """Writes ``first_value``, ``first_value + diff_value``, ... to a buffer in row-major order."""
    target = memory_of(other.get("dst", buffer))
    if executes_here(writes=target):
        first, step = (stored(value, target.kind) for value in (other.get("firstValue", first_value), diff_value))
        wide = np.float64 if target.kind.is_float else np.int64
        size = target.count if count is None else integer(count)
        made = (wide(first) + np.arange(size) * wide(step)).astype(target.kind.numpy)
        if count is None:
            target.view()[...] = made.reshape(target.extents)
        else:
            leading([target], count)[0].view()[...] = made


# --- gathers and sorts of Ascend C ---------------------------------------------------------------------------------------


def _elements(memory: TileRef) -> Array:
    """Returns the elements of a tile in row-major order."""
    return memory.view().reshape(-1)


def _put(memory: TileRef, values: Array) -> None:
    """Writes the first elements of a tile, in row-major order."""
    memory.view().flat[:values.size] = values.reshape(-1)


@tiles("tile.gather")
def gather_offsets(dst: object, src: object, src_offset: object, src_base_addr: object = 0) -> None:
    """Writes the elements of ``src`` at the given byte offsets to ``dst``."""
    target, source, offsets = memory_of(dst), memory_of(src), memory_of(src_offset)
    if executes_here(source, offsets, writes=target):
        width, values = source.kind.numpy.itemsize, _elements(source)
        places = _elements(offsets)[:target.count].astype(np.int64) + _whole(src_base_addr)
        if (places % width).any():
            raise fail("a byte offset is not a multiple of the element's size", "multiply the indices by the element's size",
                       "T502")
        _put(target, values[_inside(places // width, values.size, "offset")])


_PATTERNS = {"P0101": (0, 2), "P1010": (1, 2), "P0001": (0, 4), "P0010": (1, 4), "P0100": (2, 4), "P1000": (3, 4),
             "P1111": (0, 1)}


@tiles("tile.gather_mask")
def gather_mask(dst: object, src: object, src1Pattern: object) -> None:
    """Writes every second or fourth element of ``src``, or the elements at the given indices, to ``dst`` without gaps.

    If ``src1Pattern`` contains indices, they are converted to byte offsets in place, as the instruction does.
    """
    target, source = memory_of(dst), memory_of(src)
    indices = [] if isinstance(src1Pattern, str) else [memory_of(src1Pattern)]
    if executes_here(source, *indices, writes=target):
        values = _elements(source)
        if isinstance(src1Pattern, str):
            first, step = _PATTERNS[src1Pattern]
            _put(target, values[first::step].copy())
        for memory in indices:
            _put(target, values[_inside(_elements(memory), values.size, "index")])
            memory.view()[...] = memory.view() * source.kind.numpy.itemsize


def _descending(values: Array) -> Array:
    """Returns the indices of the elements from the largest to the smallest element.

    Equal elements keep their order, and NaN counts as the largest value.
    """
    keys = values.astype(np.float64)
    return np.argsort(np.where(np.isnan(keys), -np.inf, -keys), kind="stable")


def _sort(dst: object, src: object, actual_num: object, k: int | None) -> None:
    """Writes the values of ``src``, or the ``k`` largest ones, in descending order to ``dst``, as pairs of value and index."""
    target, source, real = memory_of(dst), memory_of(src), _whole(actual_num)
    if not executes_here(source, writes=target):
        return
    values = _elements(source).copy()
    if not 0 < real <= values.size:
        raise fail(f"actual_num is {real}, but the source has {values.size} elements",
                   "actual_num must be at most the number of elements of the source", "T502")
    values = values[:-(-real // 32) * 32] if k is None else values
    values[real:] = -np.inf
    if values.dtype == np.float32:  # float16 is sorted as float32, in a copy
        _put(source, values)
    order = _descending(values)
    pairs = np.stack([values[order], order.astype(source.kind.numpy)], 1).reshape(-1)
    block = _BLOCK // source.kind.numpy.itemsize
    _put(target, pairs if k is None else pairs[:min(-(-2 * k // block) * block, target.count)])


tiles("tile.sort")(lambda dst, src, actual_num: _sort(dst, src, actual_num, None))
tiles("tile.topk")(lambda dst, src, K, actual_num: _sort(dst, src, actual_num, integer(K)))


@tiles("tile.merge_sort")
def merge_sort(dst: object, *sources: object, **named: object) -> None:
    """Merges 2 to 4 lists of pairs of value and index into one list (``T.tile.merge_sort``).

    The lists are sorted by value, in descending order.
    """
    target, inputs = memory_of(dst), [memory_of(part) for part in (*sources, *named.values()) if part is not None]
    if executes_here(*inputs, writes=target):
        pairs = np.concatenate([_elements(source).reshape(-1, 2) for source in inputs])
        _put(target, pairs[_descending(pairs[:, 0])])


@tiles("tile.sort32")
def sort32(dst: object, src0: object, src1: object) -> None:
    """Sorts each group of 32 elements in descending order, and writes pairs of value and index of 8 bytes to ``dst``."""
    target, source, indices = memory_of(dst), memory_of(src0), memory_of(src1)
    if executes_here(source, indices, writes=target):
        values, places = _elements(source), _elements(indices)
        made = np.zeros((values.size, 8 // source.kind.numpy.itemsize), source.kind.numpy)
        for group in range(0, values.size, 32):
            order = group + _descending(values[group:group + 32])
            made[group:group + 32, 0] = values[order]
            made.view(np.uint32).reshape(-1, 2)[group:group + 32, 1] = places[order].astype(np.uint32)
        _put(target, made)


def _first(memory: TileRef, count: int) -> HostBuffer:
    """Returns the first elements of a tile as a flat buffer."""
    return leading([memory], count)[0]


@tiles("vsort32")
def sort_groups(src: object, indices: object, dst: object, repeat_times: int = 1) -> None:
    """Sorts groups of 32 scores and writes records of score and index (``T.vsort32``)."""
    source, places, target = memory_of(src), memory_of(indices), memory_of(dst)
    count = 32 * integer(repeat_times)
    sort32(_first(target, count * 8 // source.kind.numpy.itemsize), _first(source, count), _first(places, count))


@tiles("vmrgsort")
def merge_queues(src0: object, src1: object, src2: object, src3: object, dst: object, element_lengths: Sequence[int],
                 valid_bit: int = 15, repeat_times: int = 1, exhausted_suspension: bool = False) -> None:
    """Merges queues of records (``T.vmrgsort``): takes the largest of the queues' first records until a queue or all are empty.
    """
    queues, target = [memory_of(one) for one in (src0, src1, src2, src3)][:int(valid_bit).bit_length()], memory_of(dst)
    if not executes_here(*queues, writes=target):
        return
    width, total = 8 // target.kind.numpy.itemsize, sum(element_lengths[:len(queues)])
    made = target.flat()[:repeat_times * total * width].reshape(repeat_times, total, width)
    if exhausted_suspension:
        number, whole = POISON.get()
        made[...] = np.asarray(number if target.kind.is_float else whole).astype(target.kind.numpy)
    for repeat in range(repeat_times):
        left = [queue.flat()[repeat * total * width:][:length * width].reshape(length, width)
                for queue, length in zip(queues, element_lengths, strict=False) if length]
        for place in range(total):
            found = max(range(len(left)), key=lambda number: _rank(left[number][0, 0]))  # the first of equal ones
            made[repeat, place], left[found] = left[found][0], left[found][1:]
            if not len(left[found]):
                if exhausted_suspension:
                    break
                del left[found]


def _rank(score: np.generic) -> float:
    value = float(score)
    return np.inf if np.isnan(value) else value


@tiles("vextract_pairs")
def extract_pairs(src: object, values: object, indices: object) -> None:
    """Writes the scores of records to ``values``, and the bits of their indices to ``indices`` (``T.vextract_pairs``)."""
    source, scores, places = memory_of(src), memory_of(values), memory_of(indices)
    if executes_here(source, writes=scores):
        records = _elements(source).reshape(-1, 2)
        _put(scores, records[:, 0].copy())
        _put(places, np.ascontiguousarray(records[:, 1]).view(places.kind.numpy))


@tiles("tile.compare")
def compare_bits(dst: object, src0: object, src1: object, mode: str) -> None:
    """Writes one bit for each element that states whether the comparison is true; the lowest bit of a byte comes first."""
    target, left = memory_of(dst), memory_of(src0)
    tiles_read = [left] if is_scalar(src1) else [left, memory_of(src1)]
    if executes_here(*tiles_read, writes=target):
        other = np.asarray(stored(src1, left.kind)) if is_scalar(src1) else _elements(tiles_read[1])
        bits = np.packbits(np.asarray(ELEMENTWISE[str(mode).lower()](left.kind, _elements(left), other)), bitorder="little")
        if target.kind.numpy.itemsize == 1:
            _put(target, bits.view(target.kind.numpy))
        else:
            target.view().reshape(-1).view(np.uint8)[:bits.size] = bits


@tiles("tile.select")
def select_bits(dst: object, selMask: object, src0: object, src1: object, selMode: str) -> None:
    """Writes the element of ``src0`` where the bit of ``selMask`` is 1, otherwise the element or scalar ``src1``, to ``dst``.
    """
    target, mask, left = memory_of(dst), memory_of(selMask), memory_of(src0)
    others = [] if is_scalar(src1) else [memory_of(src1)]
    if executes_here(mask, left, *others, writes=target):
        other = _elements(others[0]) if others else np.asarray(stored(src1, left.kind))
        bits = np.unpackbits(np.ascontiguousarray(mask.view()).reshape(-1).view(np.uint8), bitorder="little")[:target.count]
        _put(target, np.where(bits.astype(bool), _elements(left), other).astype(target.kind.numpy))


def _row_expand(operation: str, by_blocks: bool, dst: object, src0: object, src1: object, tmp: object = None) -> None:
    """Executes an operation on each row of ``src0`` and an element of ``src1``, or with ``by_blocks`` a block of elements."""
    target, left, rows = memory_of(dst), memory_of(src0), memory_of(src1)
    if executes_here(left, rows, writes=target):
        values, factors, block = left.view(), rows.view(), _BLOCK // rows.kind.numpy.itemsize
        if by_blocks and factors.shape == (values.shape[0], block) and values.shape[1] % block == 0:
            factors = np.tile(factors, (1, values.shape[1] // block))
        else:
            factors = factors.reshape(values.shape[0], 1)
        target.view()[...] = ELEMENTWISE[operation](left.kind, values, factors)


for _name in ("mul", "mul_nd", "sub", "div", "mul_experiment", "sub_experiment", "div_experiment"):
    tiles(f"tile.row_expand_{_name}")(partial(_row_expand, _name[:3], _name.endswith("_experiment")))


# --- by repeats and strides ----------------------------------------------------------------------------------------------


def _places(repeats: int, repeat_stride: int, block_stride: int, width: int) -> Array:
    """Returns the indices of the elements of each repeat of an instruction, as a matrix with one row per repeat."""
    block = _BLOCK // width
    return np.array([[(repeat * repeat_stride + part * block_stride) * block + lane for part in range(_BLOCKS)
                      for lane in range(block)] for repeat in range(repeats)], np.int64).reshape(repeats, _BLOCKS * block)


def _by_repeats(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Returns a decorator that adds an AscendC instruction to the operation table under the given names.

    The first argument of the decorated function is the destination. Tiles are passed to it as one-dimensional arrays, numbers
    as integers.
    """
    def enter(function: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: object, **keywords: object) -> None:
            given = [memory_of(value) if isinstance(origin_of(value), Reference) else value
                     for value in (*arguments, *keywords.values())]
            memories = [value for value in given if isinstance(value, TileRef)]
            if executes_here(*memories[1:], writes=memories[0]):
                function(*[value.flat() if isinstance(value, TileRef) else value
                           if isinstance(value, (str, bool, float, list, tuple)) else integer(value) for value in given])

        tiles(*names)(call)
        return function

    return enter


def _take(array: Array, places: Array) -> Array:
    found: Array = array[_inside(places, array.size, "the instruction's element")]
    return found


def _give(array: Array, places: Array, values: Array) -> None:
    array[_inside(places, array.size, "the instruction's element").reshape(-1)] = np.asarray(values).reshape(-1)


def _total(values: Array, axis: int) -> Array:
    total: Array = values.astype(np.float32).sum(axis, dtype=np.float32).astype(values.dtype)
    return total


@_by_repeats("tile.brcb", "tile.brcb_experiment")
def brcb(dst: Array, src: Array, repeats: int, block_stride: int, repeat_stride: int) -> None:
    """Writes each of 8 elements per repeat to all elements of one block of the destination."""
    values, width = _take(src, np.arange(repeats * _BLOCKS)), dst.dtype.itemsize
    _give(dst, _places(repeats, repeat_stride, block_stride, width), np.repeat(values, _BLOCK // width))


@_by_repeats("tile.gatherb")
def gatherb(dst: Array, src: Array, offsets: Array, repeats: int, block_stride: int, repeat_stride: int) -> None:
    """Copies the blocks of ``src`` at the given byte offsets to ``dst``, 8 blocks per repeat."""
    width = src.dtype.itemsize
    starts = _take(offsets, np.arange(repeats * _BLOCKS)).astype(np.int64) // width
    _give(dst, _places(repeats, repeat_stride, block_stride, width), _take(src, starts[:, None] + np.arange(_BLOCK // width)))


def _reduce_repeats(find: Callable[..., Array] | None, dst: Array, src: Array, mask: int, repeats: int, result_stride: int,
                    block_stride: int, repeat_stride: int, order: str = "ORDER_VALUE_INDEX") -> None:
    """Reduces the first elements of each repeat; ``find`` returns the index of the wanted extreme, None means the sum."""
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


def _reduce_blocks(fold: Callable[..., Array], dst: Array, src: Array, repeats: int, mask: int, result_stride: int,
                   block_stride: int, repeat_stride: int) -> None:
    """Reduces each block of 32 bytes by ``fold``."""
    block, places = _BLOCK // src.dtype.itemsize, _places(repeats, repeat_stride, block_stride, src.dtype.itemsize)
    for part in range(-(-mask // block)):
        values = _take(src, places[:, part * block:min((part + 1) * block, mask)])
        _give(dst, np.arange(repeats) * _BLOCKS * result_stride + part, fold(values, 1))


for _name, _find, _fold in (("sum", None, _total), ("max", np.argmax, np.max), ("min", np.argmin, np.min)):
    _by_repeats(f"tile.wholereduce{_name}")(partial(_reduce_repeats, _find))
    _by_repeats(f"tile.block_reduce_{_name}")(partial(_reduce_blocks, _fold))


@_by_repeats("tile.reduce_sum_mask_experiment")
def reduce_sum_mask(dst: Array, src: Array, mask: int, repeats: int, repeat_stride: int) -> None:
    """Writes the sum of the first ``mask`` elements of all repeats to ``dst``."""
    dst[0] = _total(_take(src, _places(repeats, repeat_stride, 1, src.dtype.itemsize)[:, :mask]).reshape(1, -1), 1)[0]


@_by_repeats("tile.sum_experiment")
def sum_rows(dst: Array, src: Array, parameters: Sequence[object]) -> None:
    """Writes the sum of the first elements of each row to ``dst``."""
    rows, width, count = (integer(part) for part in parameters)
    if not count:
        return
    _give(dst, np.arange(rows), _total(_take(src, np.arange(rows)[:, None] * width + np.arange(count)), 1))


@_by_repeats("tile.gathermask_experiment")
def gathermask(dst: Array, src: Array, pattern: Array, counter: bool, mask: int, parameters: Sequence[object],
               reserved: int) -> None:
    """Writes the elements of ``src`` whose bit in the pattern is 1 to ``dst`` without gaps."""
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
def fill_bits(dst: Array, value: object, mask: Sequence[object], repeats: int, block_stride: int, repeat_stride: int) -> None:
    """Writes a value to those elements of each repeat whose bit in the mask is 1."""
    lanes = [lane for lane in range(256 // dst.dtype.itemsize) if integer(mask[0]) >> lane & 1]
    places = _places(repeats, repeat_stride, block_stride, dst.dtype.itemsize)[:, lanes]
    _give(dst, places, np.full(places.shape, value, dst.dtype))


@_by_repeats("tile.init_sort_buf")
def init_sort_buf(dst: Array, count: int, reserved: int) -> None:
    """Fills ``dst`` with pairs that are sorted after all others: the value -inf, and an index with all bits set."""
    pairs = np.array([0xFF800000, 0xFFFFFFFF] * (count // 64 * 32), np.uint32).view(dst.dtype)
    _give(dst, np.arange(pairs.size), pairs)


@_by_repeats("tile.bilinear_interpolation")
def bilinear(dst: Array, src: Array, offsets: Array, weights: Array, mask: int, across: int, per_block: bool, block_stride: int,
             down_stride: int, down: int) -> None:
    """Writes the sums of gathered blocks, each multiplied by a weight, to ``dst``; results are rounded after each step."""
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
