"""References for operations with repeats and strides, as plain loops; a case for each operation and element type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ops.conftest import Batch
from tilelang_npu.ops import DType

Case = Callable[[Batch, np.random.Generator, DType], None]
CASES: dict[str, Case] = {}
STRIDES = [(8, 3, 1, 8), (13, 2, 1, 4), (40, 2, 2, 1), (64, 1, 1, 8)]
"""Mask, repeats, stride between blocks, stride between repeats."""


def case(function: Case) -> Case:
    CASES[function.__name__.removeprefix("_")] = function
    return function


def per_block(array: np.ndarray) -> int:
    return 32 // array.itemsize


def numbers(rng: np.random.Generator, element: DType, count: int) -> np.ndarray:
    if element.is_float:
        return np.asarray(rng.permutation(2 * count)[:count] / 16 - count / 16, np.float32).astype(element.numpy)
    return rng.integers(0, 100, count).astype(element.numpy)


def groups(a: np.ndarray, mask: int, repeats: int, block_stride: int, repeat_stride: int) -> np.ndarray:
    """The first ``mask`` elements of each repeat."""
    n = per_block(a)
    blocks = [[a[(r * repeat_stride + b * block_stride) * n:][:n] for b in range(8)] for r in range(repeats)]
    return np.stack([np.concatenate(row)[:mask] for row in blocks])


@case
def _brcb(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for repeats, block_stride, repeat_stride in [(1, 1, 8), (3, 1, 8), (2, 2, 1), (2, 3, 24)]:
        a = numbers(rng, element, 8 * repeats)
        n, held = per_block(a), np.zeros(64 * per_block(a), a.dtype)
        wanted = held.copy()
        for repeat in range(repeats):
            for block in range(8):
                start = (repeat * repeat_stride + block * block_stride) * n
                wanted[start:start + n] = a[repeat * 8 + block]
        for name in ("brcb", "brcb_experiment"):
            target = calls.hold(held)
            calls.call(f"T.tile.{name}({target}, {calls.hold(a)}, {repeats}, {block_stride}, {repeat_stride})", target, wanted)


@case
def _gatherb(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for block_stride, repeat_stride in [(1, 8), (2, 16), (2, 1)]:
        n = 32 // element.nbytes
        a, held = numbers(rng, element, 40 * n), np.zeros(32 * n, element.numpy)
        i, wanted = (32 * rng.integers(0, 40, 16)).astype(np.uint32), held.copy()
        for repeat in range(2):
            for block in range(8):
                start, source = (repeat * repeat_stride + block * block_stride) * n, int(i[repeat * 8 + block]) // 32 * n
                wanted[start:start + n] = a[source:source + n]
        target = calls.hold(held)
        calls.call(f"T.tile.gatherb({target}, {calls.hold(a)}, {calls.hold(i)}, 2, {block_stride}, {repeat_stride})", target,
                   wanted)


def _extremes(calls: Batch, rng: np.random.Generator, element: DType, which: str) -> None:
    for mask, repeats, block_stride, repeat_stride in STRIDES:
        a = numbers(rng, element, 40 * 32 // element.nbytes)
        taken = groups(a, mask, repeats, block_stride, repeat_stride)
        best, place = getattr(taken, which)(1), getattr(taken, f"arg{which}")(1)
        bits = place.astype(f"u{a.itemsize}").view(a.dtype)
        orders = {"ORDER_VALUE_INDEX": [best, bits], "ORDER_INDEX_VALUE": [bits, best], "ORDER_ONLY_VALUE": [best]}
        for order, columns in orders.items():
            wanted = np.zeros(64, a.dtype)
            wanted.reshape(-1, 2 * len(columns))[:repeats, :len(columns)] = np.stack(columns, 1)
            target = calls.hold(np.zeros(64, a.dtype))
            calls.call(f"T.tile.wholereduce{which}({target}, {calls.hold(a)}, {mask}, {repeats}, 2, {block_stride}, "
                       f"{repeat_stride}, {order!r})", target, wanted)


@case
def _whole_reduce_max(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    _extremes(calls, rng, element, "max")


@case
def _whole_reduce_min(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    _extremes(calls, rng, element, "min")


@case
def _whole_reduce_sum(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for mask, repeats, block_stride, repeat_stride in STRIDES:
        a = rng.integers(-8, 9, 40 * 32 // element.nbytes).astype(element.numpy)
        wanted = np.zeros(8, a.dtype)
        wanted[:2 * repeats:2] = groups(a, mask, repeats, block_stride, repeat_stride).astype(np.float64).sum(1)
        target = calls.hold(np.zeros(8, a.dtype))
        calls.call(f"T.tile.wholereducesum({target}, {calls.hold(a)}, {mask}, {repeats}, 2, {block_stride}, {repeat_stride})",
                   target, wanted)


@case
def _reduce_sum_repeats(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for mask, repeats, _, repeat_stride in STRIDES:
        a = rng.integers(-8, 9, 40 * 32 // element.nbytes).astype(element.numpy)
        wanted = np.zeros(8, a.dtype)
        wanted[0] = groups(a, mask, repeats, 1, repeat_stride).astype(np.float64).sum()
        target = calls.hold(np.zeros(8, a.dtype))
        calls.call(f"T.tile.reduce_sum_mask_experiment({target}, {calls.hold(a)}, {mask}, {repeats}, {repeat_stride})", target,
                   wanted)


def _by_block(calls: Batch, rng: np.random.Generator, element: DType, which: str) -> None:
    for mask, repeats, block_stride, repeat_stride in STRIDES:
        a = rng.integers(-8, 9, 40 * 32 // element.nbytes).astype(element.numpy)
        taken, n = groups(a, mask, repeats, block_stride, repeat_stride).astype(np.float64), per_block(a)
        wanted = np.zeros(64, a.dtype)
        for repeat in range(repeats):
            for number, start in enumerate(range(0, mask, n)):
                wanted[repeat * 16 + number] = getattr(taken[repeat, start:start + n], which)()
        target = calls.hold(np.zeros(64, a.dtype))
        calls.call(f"T.tile.block_reduce_{which}({target}, {calls.hold(a)}, {repeats}, {mask}, 2, {block_stride}, "
                   f"{repeat_stride})", target, wanted)


@case
def _block_reduce_max(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    _by_block(calls, rng, element, "max")


@case
def _block_reduce_min(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    _by_block(calls, rng, element, "min")


@case
def _block_reduce_sum(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    _by_block(calls, rng, element, "sum")


@case
def _sum_rows(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for rows, width, count in [(3, 16, 16), (5, 32, 13), (1, 16, 1)]:
        a = rng.integers(-8, 9, (rows, width)).astype(element.numpy)
        wanted = np.zeros(16, a.dtype)
        wanted[:rows] = a[:, :count].astype(np.float64).sum(1)
        target = calls.hold(np.zeros(16, a.dtype))
        calls.call(f"T.tile.sum_experiment({target}, {calls.hold(a)}, [{rows}, {width}, {count}])", target, wanted)


@case
def _gather_bits(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    n = 32 // element.nbytes
    a, m = numbers(rng, element, 24 * n), rng.integers(0, 1 << element.bits, 16).astype(f"uint{element.bits}")
    flags = np.unpackbits(m.view(np.uint8), bitorder="little").astype(bool)
    for counter, mask, count in [(True, 37, 37), (False, 0, 8 * n)]:
        packed = np.concatenate([a[r * 8 * n:][:count][flags[:count]] for r in range(2)])
        wanted = np.zeros(24 * n, a.dtype)
        wanted[:packed.size] = packed
        target = calls.hold(np.zeros(24 * n, a.dtype))
        calls.call(f"T.tile.gathermask_experiment({target}, {calls.hold(a)}, {calls.hold(m)}, {counter}, {mask}, "
                   "[1, 2, 8, 0], 0)", target, wanted)


@case
def _fill_bits(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    wanted = np.ones((2, 64), element.numpy)
    wanted[:, [0, 2, 63]] = 7
    target = calls.hold(np.ones(128, element.numpy))
    calls.call(f"T.tile.fill_experiment({target}, 7, [0x8000000000000005], 2, 1, 8)", target, wanted.reshape(-1))


@case
def _init_sort_buf(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    wanted = np.ones(192, element.numpy)
    wanted.view(np.uint32)[:128:2], wanted.view(np.uint32)[1:128:2] = 0xFF800000, 0xFFFFFFFF
    target = calls.hold(np.ones(192, element.numpy))
    calls.call(f"T.tile.init_sort_buf({target}, 128, 0)", target, wanted)


@case
def _bilinear_interpolation(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    a, b = (rng.standard_normal(count).astype(np.float16) for count in (64 * 16, 48))
    i = (32 * rng.integers(0, 64, 48)).astype(np.uint32)
    for each in (False, True):
        total = np.zeros((2, 8, 16), np.float32)
        for down, across, block in np.ndindex(2, 3, 8):
            place = (down * 3 + across) * 8 + block
            weight = np.float32(b[place if each else down * 3 + across])
            term = (a[int(i[place]) // 2:][:16].astype(np.float32) * weight).astype(np.float16)
            total[down, block] = (total[down, block] + term).astype(np.float16)
        wanted = np.zeros((2, 256), np.float16)
        wanted[:, :100] = total.reshape(2, 128)[:, :100]
        target = calls.hold(np.zeros(512, np.float16))
        calls.call(f"T.tile.bilinear_interpolation({target}, {calls.hold(a)}, {calls.hold(i)}, {calls.hold(b)}, 100, 3, "
                   f"{each}, 1, 256, 2)", target, wanted.reshape(-1))
