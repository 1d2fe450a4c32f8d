"""The entries of the vector operations that take repeats and strides, as AscendC's instructions do (PIPE_V).

A block is 32 bytes and a repeat is 8 blocks. Strides between blocks and between repeats are counted in blocks unless an entry
states otherwise, and buffers are accessed as one axis. The scalars are run-time values, so bounds are checked when a kernel
runs. Sources: the AscendC operator reference, sections Brcb, Gatherb, WholeReduceMax, BlockReduceMax, ReduceSum, GatherMask,
Duplicate, Sum and BilinearInterpolation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.ops.rounding import Array
from tilelang_npu.ops.spec import Contract, Refused, Shape
from tilelang_npu.ops.structured import Facts, Meaning, entry
from tilelang_npu.target import BLOCK
from tilelang_npu.target.dtypes import DType, dtype

BLOCKS = 8
"""Number of blocks of a repeat."""
ORDERS = ("ORDER_VALUE_INDEX", "ORDER_INDEX_VALUE", "ORDER_ONLY_VALUE")
"""The values of ``order``: which of value and index a reduction with index writes for each repeat, and in which order.

``ORDER_ONLY_INDEX`` is not modelled: the width of the index depends on the chip."""

FLOAT = tuple(dtype(name) for name in ("f16", "f32"))
HALF = FLOAT[:1]
SINGLE = FLOAT[1:]
WORDS = tuple(dtype(name) for name in ("i16", "ui16", "i32", "ui32", "f16", "bf16", "f32"))
WIDE = tuple(dtype(name) for name in ("i32", "ui32", "f32"))


def _check_alike(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    if outs[0].dtype != ins[0].dtype:
        raise Refused("T110", f"the input has elements of {ins[0].dtype}, the destination of {outs[0].dtype}",
                      "give both the same element type")


def _check_places(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _check_alike(outs, ins, facts)
    if str(ins[1].dtype) not in ("uint32", "int32"):
        raise Refused("T110", f"the offsets have elements of {ins[1].dtype}", "give the byte offsets as uint32 or int32")


def _check_order(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _check_alike(outs, ins, facts)
    if facts.get("order", ORDERS[0]) not in ORDERS:
        raise Refused("T145", f"order {facts.get('order')!r} does not exist", "order must be one of " + ", ".join(ORDERS))


def _check_bits(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _check_alike(outs, ins, facts)
    wanted = f"uint{ins[0].dtype.bits}"
    if str(ins[1].dtype) != wanted:
        raise Refused("T110", f"the pattern has elements of {ins[1].dtype}",
                      f"give the pattern as {wanted}: it holds one bit per element of the input")


def _check_weights(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _check_places(outs, ins, facts)
    _check_alike(outs, ins[2:], facts)


def _check_one(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    """Accepts all operands; the table checks the element type."""


def _places(repeats: int, repeat_stride: int, block_stride: int, element: np.dtype[np.generic]) -> NDArray[np.intp]:
    """The positions of the elements of each repeat, in the order of the instruction: one row per repeat."""
    per_block = BLOCK // element.itemsize
    blocks = np.arange(repeats)[:, None] * repeat_stride + np.arange(BLOCKS)[None, :] * block_stride
    return (blocks[:, :, None] * per_block + np.arange(per_block)).reshape(repeats, BLOCKS * per_block)


def _inside(what: str, places: NDArray[np.integer], array: Array) -> NDArray[np.integer]:
    if places.size and (places.min() < 0 or places.max() >= array.size):
        reached = places.max() if places.min() >= 0 else places.min()
        msg = f"repeats and strides reach element {reached} of {what}, which has {array.size} elements"
        raise IndexError(msg)
    return places


def _read(array: Array, places: NDArray[np.integer]) -> Array:
    found: Array = array.reshape(-1)[_inside("the input", places, array)]
    return found


def _write(array: Array, places: NDArray[np.integer], values: Array) -> None:
    array.flat[_inside("the destination", places, array).reshape(-1)] = values.reshape(-1)


def _masked(mask: int, per_repeat: int) -> int:
    if not 0 < mask <= per_repeat:
        msg = f"the mask is {mask}: it must be from 1 to {per_repeat}, the number of elements of a repeat"
        raise ValueError(msg)
    return mask


def _brcb(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    source, repeats, block_stride, repeat_stride = ins
    places = _places(repeats, repeat_stride, block_stride, source.dtype)
    values = _read(source, np.arange(repeats * BLOCKS))
    _write(outs[0], places, np.repeat(values, BLOCK // source.dtype.itemsize))


def _gatherb(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    source, offsets, repeats, block_stride, repeat_stride = ins
    starts = _read(offsets, np.arange(repeats * BLOCKS)).astype(np.int64)
    if (starts % BLOCK).any():
        msg = f"an offset is {starts[starts % BLOCK != 0][0]} bytes, which is not a multiple of {BLOCK} bytes"
        raise ValueError(msg)
    per_block = BLOCK // source.dtype.itemsize
    values = _read(source, starts[:, None] // source.dtype.itemsize + np.arange(per_block))
    _write(outs[0], _places(repeats, repeat_stride, block_stride, source.dtype), values)


def _extreme(find: Callable[..., NDArray[np.intp]]) -> Meaning:
    def run(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
        source, mask, repeats, result_stride, block_stride, repeat_stride = ins
        places = _places(repeats, repeat_stride, block_stride, source.dtype)
        groups = _read(source, places[:, :_masked(mask, places.shape[1])])
        found = find(groups.astype(np.float64), axis=1)
        values = np.take_along_axis(groups, found[:, None], 1)[:, 0]
        indices = found.astype(f"u{source.dtype.itemsize}").view(source.dtype)
        order = facts.get("order", ORDERS[0])
        if order == "ORDER_ONLY_VALUE":
            _write(outs[0], np.arange(repeats) * result_stride, values)
            return
        pair = (values, indices) if order == "ORDER_VALUE_INDEX" else (indices, values)
        for lane, part in enumerate(pair):
            _write(outs[0], np.arange(repeats) * 2 * result_stride + lane, part)

    return run


def _total(values: Array, axis: int) -> NDArray[np.float32]:
    found: NDArray[np.float32] = values.astype(np.float32).sum(axis, dtype=np.float32)
    return found


def _whole_sum(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    source, mask, repeats, result_stride, block_stride, repeat_stride = ins
    places = _places(repeats, repeat_stride, block_stride, source.dtype)
    totals = _total(_read(source, places[:, :_masked(mask, places.shape[1])]), 1)
    _write(outs[0], np.arange(repeats) * result_stride, totals.astype(source.dtype))


def _of_blocks(fold: Callable[[Array, int], Array]) -> Meaning:
    def run(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
        source, repeats, mask, result_stride, block_stride, repeat_stride = ins
        per_block = BLOCK // source.dtype.itemsize
        places = _places(repeats, repeat_stride, block_stride, source.dtype)
        active = _masked(mask, places.shape[1])
        for block in range(-(-active // per_block)):
            part = places[:, block * per_block:min((block + 1) * per_block, active)]
            _write(outs[0], np.arange(repeats) * BLOCKS * result_stride + block,
                   fold(_read(source, part), 1).astype(source.dtype))

    return run


def _sum_repeats(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    source, mask, repeats, repeat_stride = ins
    places = _places(repeats, repeat_stride, 1, source.dtype)
    values = _read(source, places[:, :_masked(mask, places.shape[1])])
    outs[0].flat[0] = _total(values.reshape(1, -1), 1).astype(source.dtype)[0]


def _sum_rows(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    source, rows, width, count = ins
    if count == 0:
        return
    if not 0 < count <= width or width * source.dtype.itemsize % BLOCK:
        msg = (f"count is {count} and width is {width}: count must be from 1 to width, and a row of {width} elements must be a "
               f"multiple of {BLOCK} bytes")
        raise ValueError(msg)
    values = _read(source, np.arange(rows)[:, None] * width + np.arange(count))
    _write(outs[0], np.arange(rows), _total(values, 1).astype(source.dtype))


def _gather_bits(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    source, pattern, mask, block_stride, repeats, repeat_stride, pattern_stride = ins
    per_block = BLOCK // source.dtype.itemsize
    count = mask if facts["counter"] else BLOCKS * per_block
    element = np.arange(count)
    block, lane = element // per_block, element % per_block
    bits = np.unpackbits(np.ascontiguousarray(pattern).reshape(-1).view(np.uint8), bitorder="little")
    chosen = []
    for repeat in range(repeats):
        flags = bits[_inside("the pattern", repeat * pattern_stride * BLOCK * 8 + element, bits)].astype(bool)
        values = _read(source, (repeat * repeat_stride + block * block_stride) * per_block + lane)
        chosen.append(values[flags])
    packed = np.concatenate(chosen) if chosen else source.reshape(-1)[:0]
    _write(outs[0], np.arange(packed.size), packed)


def _fill_bits(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    value, mask, repeats, block_stride, repeat_stride = ins
    places = _places(repeats, repeat_stride, block_stride, outs[0].dtype)
    lanes = [lane for lane in range(places.shape[1]) if (int(mask) >> lane) & 1]
    places = places[:, lanes]
    _write(outs[0], places, np.full(places.shape, value, outs[0].dtype))


def _sort_fill(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    count = ins[0] // 64 * 64
    values = np.tile(np.array([0xFF800000, 0xFFFFFFFF], np.uint32), count // 2).view(outs[0].dtype)
    _write(outs[0], np.arange(count), values)


def _bilinear(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    source, offsets, weights, mask, across, block_stride, down_stride, down = ins
    per_block = BLOCK // source.dtype.itemsize
    starts = _read(offsets, np.arange(down * across * BLOCKS)).astype(np.int64).reshape(down, across, BLOCKS)
    values = _read(source, starts[..., None] // source.dtype.itemsize + np.arange(per_block)).astype(np.float32)
    if facts["per_block"]:
        factors = _read(weights, np.arange(starts.size)).reshape(down, across, BLOCKS, 1)
    else:
        factors = _read(weights, np.arange(down * across)).reshape(down, across, 1, 1)
    products = (values * factors.astype(np.float32)).astype(source.dtype)
    total = np.zeros((down, BLOCKS, per_block), source.dtype)
    for step in range(across):
        total = (total.astype(np.float32) + products[:, step].astype(np.float32)).astype(source.dtype)
    lanes = (np.arange(BLOCKS)[:, None] * block_stride * per_block + np.arange(per_block)).reshape(-1)
    active = _masked(mask, BLOCKS * per_block)
    places = np.arange(down)[:, None] * down_stride + lanes[:active]
    _write(outs[0], places, total.reshape(down, -1)[:, :active])


_names = {"tile.reduce_sum_experiment", "tile.sub_experiment", "tile.abs_experiment", "tile.mins_experiment",
          "tile.exp_experiment"}


def _declare(name: str, aliases: tuple[str, ...], inputs: tuple[str, ...], hivm: str, dtypes: tuple[DType, ...], cost: str,
             meaning: Meaning, contract: Contract, doc: str, **facts: Any) -> None:
    entry(name, aliases, inputs, hivm, dtypes, cost, meaning, contract, doc, partial=True, **facts)
    _names.update(aliases)


_REPEATS = ("repeats", "block_stride", "repeat_stride")
_REDUCED = ("src", "mask", "repeats", "result_stride", "block_stride", "repeat_stride")
_declare("brcb", ("tile.brcb", "tile.brcb_experiment"), ("src", *_REPEATS), "custom", WORDS, "dup", _brcb, _check_alike,
         "Fills one block of the destination with each element of the input, 8 elements per repeat.")
_declare("gatherb", ("tile.gatherb",), ("src", "offsets", *_REPEATS), "custom", WORDS, "gather", _gatherb, _check_places,
         "Copies the blocks at given byte offsets of the input, 8 blocks per repeat.")
_declare("whole_reduce_max", ("tile.wholereducemax",), _REDUCED, "custom", FLOAT, "cmax", _extreme(np.argmax), _check_order,
         "The largest of the first ``mask`` elements of each repeat, and the bits of its position in the repeat.")
_declare("whole_reduce_min", ("tile.wholereducemin",), _REDUCED, "custom", FLOAT, "cmin", _extreme(np.argmin), _check_order,
         "The smallest of the first ``mask`` elements of each repeat, and the bits of its position in the repeat.")
_declare("whole_reduce_sum", ("tile.wholereducesum",), _REDUCED, "custom", FLOAT, "cadd", _whole_sum, _check_alike,
         "The sum of the first ``mask`` elements of each repeat.")
_BY_BLOCK = ("src", "repeats", "mask", "result_stride", "block_stride", "repeat_stride")
_declare("block_reduce_max", ("tile.block_reduce_max",), _BY_BLOCK, "custom", FLOAT, "cmax", _of_blocks(np.max), _check_alike,
         "The largest element of each block.")
_declare("block_reduce_min", ("tile.block_reduce_min",), _BY_BLOCK, "custom", FLOAT, "cmin", _of_blocks(np.min), _check_alike,
         "The smallest element of each block.")
_declare("block_reduce_sum", ("tile.block_reduce_sum",), _BY_BLOCK, "custom", FLOAT, "cadd", _of_blocks(_total), _check_alike,
         "The sum of each block.")
_declare("reduce_sum_repeats", ("tile.reduce_sum_mask_experiment",), ("src", "mask", "repeats", "repeat_stride"), "custom",
         FLOAT, "cadd", _sum_repeats, _check_alike, "The sum of the first ``mask`` elements of all repeats, as one element.")
_declare("sum_rows", ("tile.sum_experiment",), ("src", "rows", "width", "count"), "custom", FLOAT, "cadd", _sum_rows,
         _check_alike, "The sum of the first ``count`` elements of each row of ``width`` elements.")
_declare("gather_bits", ("tile.gathermask_experiment",),
         ("src", "pattern", "mask", "block_stride", "repeats", "repeat_stride", "pattern_stride"), "custom", WORDS, "reducev2",
         _gather_bits, _check_bits, "Copies the elements whose bit in a pattern is set, without gaps.")
_declare("fill_bits", ("tile.fill_experiment",), ("value", "mask", *_REPEATS), "custom", WIDE, "dup", _fill_bits, _check_one,
         "Writes a value to the elements of each repeat whose bit in a mask is set.", in_place=True)
_declare("init_sort_buf", ("tile.init_sort_buf",), ("num",), "custom", WIDE, "dup", _sort_fill, _check_one,
         "Writes pairs of -inf and an index with all bits set, which sort after all others, for whole groups of 64 elements.")
_declare("bilinear_interpolation", ("tile.bilinear_interpolation",),
         ("src", "offsets", "weights", "mask", "across", "block_stride", "down_stride", "down"), "custom", HALF, "mul",
         _bilinear, _check_weights, "Gathers blocks, multiplies each by a weight, and sums the products.")

NAMES = frozenset(_names)
"""The names of the ``T`` functions that take repeats and strides, or a number of elements, as arguments."""

__all__ = ["BLOCKS", "NAMES", "ORDERS"]
