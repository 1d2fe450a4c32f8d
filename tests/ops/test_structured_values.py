"""Operations that move, scan, sort or make data: values against NumPy and plain Python, for every element type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ops import reference, repeat_cases, surface
from ops.conftest import Batch
from ops.test_values import numbers
from tilelang_npu import ops
from tilelang_npu.ops import DType, dtype

Case = Callable[[Batch, np.random.Generator, DType], None]
CASES: dict[str, Case] = dict(repeat_cases.CASES)


def case(function: Case) -> Case:
    """Register the values of the operation that the function is named after."""
    CASES[function.__name__.removeprefix("_")] = function
    return function


def data(rng: np.random.Generator, element: DType, *shape: int) -> np.ndarray:
    return numbers(rng, "", 0, element, shape)


def empty(calls: Batch, element: DType, *shape: int) -> str:
    return calls.hold(np.zeros(shape, element.numpy))


@case
def _gather(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for shape, count, index in [((1, 65), 7, np.int32), ((5, 13), 33, np.int32), ((63,), 1, np.int32),
                                ((2, 3, 9), 5, np.int16)]:
        a, i = data(rng, element, *shape), rng.integers(0, shape[-1], (*shape[:-1], count)).astype(index)
        target = empty(calls, element, *i.shape)
        wanted = np.stack([row[places] for row, places in zip(a.reshape(-1, shape[-1]), i.reshape(-1, count), strict=True)])
        calls.call(f"T.vgather({calls.hold(a)}, {target}, {calls.hold(i)})", target, wanted.reshape(i.shape))


@case
def _transpose(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for shape, order in [((3, 7), [1, 0]), ((63, 5), [1, 0]), ((1, 5), [1, 0]), ((3, 5, 7), [0, 2, 1]), ((3, 5, 7), [1, 0, 2]),
                         ((3, 5, 7), [2, 1, 0])]:
        a = data(rng, element, *shape)
        made = np.empty([shape[axis] for axis in order], a.dtype)
        for place in np.ndindex(*made.shape):
            made[place] = a[tuple(place[order.index(axis)] for axis in range(len(shape)))]
        target = empty(calls, element, *made.shape)
        calls.call(f"T.vtranspose({calls.hold(a)}, {target}, {order})", target, made)
    a, target = data(rng, element, 9, 33), empty(calls, element, 33, 9)
    calls.call(f"T.tile.transpose({target}, {calls.hold(a)})", target, a.T.copy())


def running(values: np.ndarray, reverse: bool) -> list[Any]:
    """Running sums: integers wrap; floats are accumulated in float32, and each element of a narrow type is rounded."""
    carried = np.float32 if values.dtype.kind not in "iub" else values.dtype
    found, total = [], None
    with np.errstate(over="ignore"):
        for value in values[::-1] if reverse else values:
            total = carried.type(value) if total is None and carried is not np.float32 else (
                np.float32(value) if total is None else total + (np.float32(value) if carried is np.float32 else value))
            found.append(total)
    return found[::-1] if reverse else found


@case
def _reduce_with_index(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for shape in [(65,), (5, 33), (2, 3, 9)]:
        for axis in range(len(shape)):
            a = (rng.integers(0, 5, shape) + 1).astype(element.numpy)
            for extreme, side in (("max", "left"), ("max", "right"), ("min", "left"), ("min", "right")):
                best = getattr(a.astype(np.float64), extreme)(axis=axis, keepdims=True)
                hits = np.moveaxis(a == best.astype(a.dtype), axis, -1)
                lines = [np.flatnonzero(line)[0 if side == "left" else -1] for line in hits.reshape(-1, hits.shape[-1])]
                places = np.expand_dims(np.array(lines, np.int32).reshape(hits.shape[:-1]), axis)
                values, indices = calls.hold(best.astype(a.dtype) * 0), calls.hold(places * 0 - 1)
                calls.call(f"T.reduce_with_index({calls.hold(a)}, {values}, {indices}, {axis}, '{extreme}_with_index_{side}')",
                           values, best.astype(a.dtype))
                calls.also(indices, places)


@case
def _cummax(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for shape in [(65,), (1,), (5, 33), (2, 3, 9)]:
        for axis in range(len(shape)):
            a = data(rng, element, *shape)
            for reverse in (False, True):
                turned = np.flip(a, axis) if reverse else a
                wanted = np.maximum.accumulate(turned, axis)
                wanted = np.flip(wanted, axis) if reverse else wanted
                target = empty(calls, element, *shape)
                words = f"dim={axis}, reverse=True" if reverse else f"dim={axis}"
                calls.call(f"T.cummax({calls.hold(a)}, {target}, {words})", target, wanted)
    a = data(rng, element, 3, 17)
    place = calls.hold(a)
    calls.call(f"T.cummax({place}, dim=1)", place, np.maximum.accumulate(a, 1))


@case
def _cumsum(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for shape in [(65,), (1,), (5, 33), (2, 3, 9)]:
        for axis in range(len(shape)):
            a = data(rng, element, *shape)
            for reverse in (False, True):
                wanted = np.apply_along_axis(lambda line, r=reverse: np.array(running(line, r)), axis, a).astype(a.dtype)
                target = empty(calls, element, *shape)
                words = f"dim={axis}, reverse=True" if reverse else f"dim={axis}"
                calls.call(f"T.cumsum({calls.hold(a)}, {target}, {words})", target, wanted)
    a = data(rng, element, 3, 17)
    place = calls.hold(a)
    wanted = np.apply_along_axis(lambda line: np.array(running(line, False)), 1, a).astype(a.dtype)
    calls.call(f"T.cumsum({place}, dim=1)", place, wanted)


@case
def _arange(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for shape, strides, offset in [((65,), [3], 0), ((5, 13), [100, 1], -7), ((2, 3, 9), [0, -20, 2], 5), ((1,), [1], 4)]:
        wanted = np.zeros(shape)
        for place in np.ndindex(*shape):
            wanted[place] = offset + sum(i * s for i, s in zip(place, strides, strict=True))
        target = empty(calls, element, *shape)
        calls.call(f"T.arange({target}, {strides}, {offset})", target, wanted.astype(element.numpy))


@case
def _interleave(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for shape in [(65,), (1,), (5, 13), (2, 3, 9)]:
        a, b = data(rng, element, *shape), data(rng, element, *shape)
        wanted = np.zeros((*shape[:-1], 2 * shape[-1]), a.dtype)
        wanted[..., 0::2], wanted[..., 1::2] = a, b
        target = empty(calls, element, *wanted.shape)
        calls.call(f"T.interleave({calls.hold(a)}, {calls.hold(b)}, {target})", target, wanted)


@case
def _deinterleave(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for shape in [(66,), (2,), (5, 14), (2, 3, 10)]:
        a = data(rng, element, *shape)
        source, half = calls.hold(a), (*shape[:-1], shape[-1] // 2)
        even, odd, first, second = (empty(calls, element, *half) for _ in range(4))
        calls.call(f"T.deinterleave({source}, {even}, {odd})", even, a[..., 0::2].copy())
        calls.call(f"T.deinterleave({source}, {first}, index_mode='CHANNEL_0')", first, a[..., 0::2].copy())
        calls.call(f"T.deinterleave({source}, {second}, index_mode='CHANNEL_1')", second, a[..., 1::2].copy())
        calls.also(odd, a[..., 1::2].copy())


@case
def _concat(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for shapes, axis in [([(7,), (65,)], 0), ([(3, 9), (3, 4)], 1), ([(1, 9), (5, 9), (2, 9)], 0),
                         ([(2, 3, 5), (2, 4, 5)], -2)]:
        parts = [data(rng, element, *shape) for shape in shapes]
        wanted = np.concatenate(parts, axis)
        target = empty(calls, element, *wanted.shape)
        calls.call(f"T.concat({', '.join(map(calls.hold, parts))}, {target}, {axis})", target, wanted)


@case
def _pad(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for shape, low, high in [((65,), [3], [4]), ((5, 13), [0, 1], [0, 0]), ((5, 13), [2, 0], [3, 0]),
                             ((2, 3, 9), [0, 0, 0], [0, 4, 0])]:
        a = data(rng, element, *shape)
        value = a.reshape(-1)[0]
        wanted = np.full([b + s + e for b, s, e in zip(low, shape, high, strict=True)], value)
        wanted[tuple(slice(b, b + s) for b, s in zip(low, shape, strict=True))] = a
        target = empty(calls, element, *wanted.shape)
        calls.call(f"T.pad({calls.hold(a)}, {target}, {value.item()!r}, {low}, {high})", target, wanted)


@case
def _flip(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for shape in [(65,), (1,), (5, 13), (2, 3, 9)]:
        a, target = data(rng, element, *shape), empty(calls, element, *shape)
        axis = -1 if len(shape) == 2 else len(shape) - 1
        calls.call(f"T.flip({calls.hold(a)}, {target}, {axis})", target, a[..., ::-1].copy())


@case
def _vsort(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for shape in [(65,), (1,), (5, 13), (2, 3, 40)]:
        for descending in (False, True):
            a = rng.permuted(np.arange(np.prod(shape)) - 20.0).reshape(shape).astype(element.numpy)
            values, places = empty(calls, element, *shape), empty(calls, dtype("i32"), *shape)
            order = np.argsort(-a if descending else a, axis=-1)
            held = calls.hold(a)
            axis = len(shape) - 1 if descending else -1
            calls.call(f"T.vsort({held}, {values}, {places}, descending={descending}, sort_axis={axis})", values,
                       np.take_along_axis(a, order, -1))
            calls.also(places, order.astype(np.int32))


@case
def _arith_progression(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    first, step = (0.5, -0.25) if element.is_float else (np.iinfo(element.numpy).max - 5, 3)
    for count, held in [(65, 65), (7, 65), (1, 1)]:
        exact = [first + i * step for i in range(count)]
        start = np.ones(held, element.numpy)
        wanted = start.copy()
        wanted[:count] = exact if element.is_float else reference.wrapped(exact, start[:count])
        target = calls.hold(start)
        calls.call(f"T.tile.arith_progression({target}, {first}, {step}, {count})", target, wanted)
    target = empty(calls, element, 3, 13)
    other = empty(calls, element, 3, 13)
    calls.call(f"T.tile.create_vec_index({other}, first_value=5)", other, np.arange(5, 44).reshape(3, 13).astype(element.numpy))
    calls.call(f"T.tile.createvecindex({target}, 4)", target, np.arange(4, 43).reshape(3, 13).astype(element.numpy))


@case
def _gather_offsets(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    a = data(rng, element, 65)
    source = calls.hold(a)
    for kind, count, base, held in [(np.uint32, 33, 0, 33), (np.int32, 7, 2, 7), (np.uint32, 9, 1, 20), (np.uint32, 9, 0, 4)]:
        places = rng.integers(0, 65 - base, count)
        start = data(rng, element, held)
        wanted = start.copy()
        used = min(count, held)
        wanted[:used] = a[places[:used] + base]
        target, offsets = calls.hold(start), calls.hold((places * element.nbytes).astype(kind))
        calls.call(f"T.tile.gather({target}, {source}, {offsets}, {base * element.nbytes})", target, wanted)


@case
def _gather_mask(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    a = data(rng, element, 64)
    source = calls.hold(a)
    for pattern in ("P0101", "P1010", "P0001", "P0010", "P0100", "P1000", "P1111"):
        bits = [digit == "1" for digit in reversed(pattern[1:])]
        chosen = np.array([value for place, value in enumerate(a) if bits[place % len(bits)]], a.dtype)
        start = data(rng, element, 70)
        wanted = start.copy()
        wanted[:len(chosen)] = chosen
        target = calls.hold(start)
        calls.call(f"T.tile.gather_mask({target}, {source}, {pattern!r})", target, wanted)
    places, target = rng.integers(0, 64, 13).astype(np.uint32), empty(calls, element, 13)
    calls.call(f"T.tile.gather_mask({target}, {source}, {calls.hold(places)})", target, a[places])


def ordered(values: np.ndarray, indices: list[int] | np.ndarray) -> np.ndarray:
    """Pairs by value from the largest, equal ones in their order."""
    pairs = sorted(zip(values.tolist(), indices, strict=True), key=lambda pair: -pair[0])
    return np.array([part for pair in pairs for part in pair], values.dtype)


@case
def _sort(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for count, real in [(32, 32), (64, 64), (64, 33), (96, 1)]:
        a = rng.integers(-20, 20, count).astype(element.numpy)
        held = a.copy()
        used = -(-real // 32) * 32
        held[real:used] = -np.inf
        source, target = calls.hold(a), empty(calls, element, 2 * count)
        wanted = np.concatenate([ordered(held[:used], range(used)), np.zeros(2 * (count - used), element.numpy)])
        calls.call(f"T.tile.sort({target}, {source}, {real})", target, wanted)
        calls.also(source, held if element == "float32" else a)  # float16 is sorted as float32, in a copy


@case
def _topk(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for count, k, real in [(64, 8, 64), (64, 1, 50), (96, 33, 96), (32, 32, 32)]:
        a = rng.permutation(count).astype(element.numpy)
        held = a.copy()
        held[real:] = -np.inf
        target = empty(calls, element, 2 * k)
        source = calls.hold(a)
        calls.call(f"T.tile.topk({target}, {source}, {k}, {real})", target, ordered(held, range(count))[:2 * k])
        calls.also(source, held if element == "float32" else a)


@case
def _merge_sort(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for lengths in [(16, 16), (8, 32), (16, 8, 24), (8, 8, 16, 8)]:
        values = [np.sort(rng.permutation(1000)[:n])[::-1].astype(element.numpy) for n in lengths]
        lists = [np.stack([v, np.arange(len(v)).astype(v.dtype)], -1).reshape(-1) for v in values]
        every, indices = np.concatenate(values), np.concatenate([np.arange(n) for n in lengths])
        target = empty(calls, element, 2 * len(every))
        calls.call(f"T.tile.merge_sort({target}, {', '.join(map(calls.hold, lists))})", target, ordered(every, indices))


@case
def _sort32(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for count in (32, 96):
        a, indices = rng.integers(-9, 9, count).astype(element.numpy), rng.integers(0, 2**32, count).astype(np.uint32)
        made = np.zeros((count, 2), np.uint32)
        for group in range(0, count, 32):
            order = sorted(range(group, group + 32), key=lambda place: -float(a[place]))
            made[group:group + 32, 0] = a[order].view(f"u{element.nbytes}")
            made[group:group + 32, 1] = indices[order]
        target = empty(calls, element, made.nbytes // element.nbytes)
        calls.call(f"T.tile.sort32({target}, {calls.hold(a)}, {calls.hold(indices)})", target,
                   made.reshape(-1).view(element.numpy))


def records(scores: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Records of 8 bytes, a score in the first and the bits of an index in the last: (records, elements of one record)."""
    made = np.zeros((len(scores), 2), np.uint32)
    made[:, 0] = scores.view(f"u{scores.itemsize}")
    made[:, 1] = indices
    return made.view(scores.dtype).reshape(len(scores), -1)


def merged(queues: list[np.ndarray], suspends: bool = False) -> np.ndarray:
    """The largest first record, again and again, until one queue or all are empty."""
    left, found = [list(queue) for queue in queues if len(queue)], []
    while left:
        chosen = max(left, key=lambda queue: float(queue[0][0]))
        found.append(chosen.pop(0))
        if not chosen:
            left.remove(chosen)
            if suspends:
                break
    return np.array(found)


@case
def _mrgsort(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    width = 8 // element.nbytes

    def queue(count: int, descending: bool = True) -> np.ndarray:
        scores = rng.integers(-9, 10, count).astype(element.numpy)
        return records(np.sort(scores)[::-1].copy() if descending else scores, rng.integers(0, 2**32, count).astype(np.uint32))

    for lengths in [(16, 16, 0, 0), (7, 33, 5, 0), (8, 0, 1, 31), (65, 9, 20, 3), (0, 0, 5, 0), (1, 1, 1, 1)]:
        queues = [queue(max(1, count)) for count in lengths]
        taking_part = [part[:count] for part, count in zip(queues, lengths, strict=True)]
        held = ", ".join(calls.hold(part.reshape(-1)) for part in queues)
        valid = {2: 3, 3: 7, 4: 15}[max(2, 4 - lengths[::-1].index(next(count for count in lengths[::-1] if count)))]
        wanted, target = merged(taking_part), empty(calls, element, sum(lengths) * width)
        calls.call(f"T.vmrgsort({held}, {target}, {lengths}, valid_bit={valid})", target, wanted.reshape(-1))
    unsorted = [queue(11, False), queue(6, False)]  # a merge that compares first records only
    held, target = [calls.hold(part.reshape(-1)) for part in unsorted], empty(calls, element, 17 * width)
    calls.call(f"T.vmrgsort({held[0]}, {held[1]}, {held[0]}, {held[0]}, {target}, (11, 6, 0, 0), 3)", target,
               merged(unsorted).reshape(-1))
    for repeats, count in [(2, 8), (3, 5)]:
        queues = [queue(count) for _ in range(4 * repeats)]
        place, target = calls.hold(np.concatenate(queues).reshape(-1)), empty(calls, element, 4 * repeats * count * width)
        parts = ", ".join(f"{place}[{number * count * width}:{4 * repeats * count * width}]" for number in range(4))
        wanted = np.concatenate([merged(queues[4 * number:4 * number + 4]) for number in range(repeats)])
        calls.call(f"T.vmrgsort({parts}, {target}, ({', '.join([str(count)] * 4)}), repeat_times={repeats})", target,
                   wanted.reshape(-1))


def packed(bits: np.ndarray) -> np.ndarray:
    """Bit ``i`` of byte ``i / 8``."""
    made = np.zeros(-(-bits.size // 8), np.uint8)
    for place, bit in enumerate(bits.reshape(-1)):
        made[place // 8] |= int(bit) << place % 8
    return made


@case
def _compare_bits(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for count in (64, 256):
        a, b = (rng.integers(0, 4, count).astype(element.numpy) for _ in range(2))
        left, right = calls.hold(a), calls.hold(b)
        for mode, test in {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "GT": np.greater, "GE": np.greater_equal,
                           "LE": np.less_equal}.items():
            target, with_number = (calls.hold(np.zeros(count // 8, np.uint8)) for _ in range(2))
            calls.call(f"T.tile.compare({target}, {left}, {right}, {mode!r})", target, packed(test(a, b)))
            calls.call(f"T.tile.compare({with_number}, {left}, 2, {mode!r})", with_number, packed(test(a, 2)))


@case
def _select_bits(calls: Batch, rng: np.random.Generator, element: DType) -> None:
    for count in (64, 256):
        a, b, bits = data(rng, element, count), data(rng, element, count), rng.integers(0, 2, count).astype(bool)
        mask, left, right = calls.hold(packed(bits)), calls.hold(a), calls.hold(b)
        for mode in ("VSEL_CMPMASK_SPR", "VSEL_TENSOR_TENSOR_MODE"):
            target = empty(calls, element, count)
            calls.call(f"T.tile.select({target}, {mask}, {left}, {right}, {mode!r})", target, np.where(bits, a, b))
        target, number = empty(calls, element, count), b[0].item()
        calls.call(f"T.tile.select({target}, {mask}, {left}, {number!r}, 'VSEL_TENSOR_SCALAR_MODE')", target,
                   np.where(bits, a, b[0]))


def test_every_structured_operation_has_values() -> None:
    missing = {op.name for op in ops.operations().values()
               if isinstance(op, ops.Structured) and not isinstance(op, ops.PeerMove)} - set(CASES)
    missing -= {"pack_int4", "unpack_int4"}  # tests/language/test_int4.py: NumPy has no arrays of packed elements
    assert not missing, f"add to tests/ops/test_structured_values.py what {', '.join(sorted(missing))} computes"


@pytest.mark.parametrize(("entry", "element"), [
    pytest.param(entry, element, id=f"{entry.name}-{element}")
    for entry in ops.operations().values() if entry.name in CASES for element in entry.dtypes])
def test_values(batch: Callable[[str], Batch], rng: np.random.Generator, entry: ops.Structured, element: DType) -> None:
    if entry.name not in CASES:
        pytest.skip("counted by the test above")
    calls = batch(surface.dialect_of(surface.main_names(entry)[0]))
    CASES[entry.name](calls, rng, dtype(element))
    calls.run()


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_sort_of_specials(batch: Callable[[str], Batch], kind: str) -> None:
    """NaN is larger than infinity; equal elements keep their order."""
    values = np.tile(np.array([1, np.nan, -np.inf, np.inf, 0.0, -0.0, 1, np.inf], kind), 4)
    keys = [np.inf if np.isnan(v) else float(v) for v in values]
    order = sorted(range(32), key=lambda place: -keys[place])
    calls = batch("ascendc")
    target = calls.hold(np.zeros(64, kind))
    wanted = np.array([part for place in order for part in (values[place], place)], kind)
    calls.call(f"T.tile.sort({target}, {calls.hold(values)}, 32)", target, wanted)
    calls.run()


@pytest.mark.parametrize("kind", ["float16", "float32"])
@pytest.mark.parametrize("name", ["mul", "mul_nd", "sub", "div", "mul_experiment", "sub_experiment", "div_experiment"])
def test_row_expand(batch: Callable[[str], Batch], rng: np.random.Generator, name: str, kind: str) -> None:
    """One element per row, from a vector, a row or a column."""
    calls = batch("ascendc")
    a, rows = data(rng, dtype(kind), 5, 33), data(rng, dtype(kind), 5) + np.asarray(9, kind)
    wanted = reference.ELEMENTWISE[name[:3]](a, np.repeat(rows[:, None], 33, 1))
    for shape in ((5,), (1, 5), (5, 1)):
        target = calls.hold(a)
        calls.call(f"T.tile.row_expand_{name}({target}, {calls.hold(a)}, {calls.hold(rows.reshape(shape))})", target, wanted)
    calls.run()


@pytest.mark.parametrize("element", [kind for kind in surface.ALL_TYPES if str(kind) in (
    "float16", "bfloat16", "float32", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")], ids=str)
def test_fill_and_broadcast(batch: Callable[[str], Batch], rng: np.random.Generator, element: DType) -> None:
    """Numbers, and unit axes that repeat, over shapes that do not divide."""
    calls = batch("npuir")
    number = data(rng, element, 1)[0]
    for shape in [(1,), (65,), (3, 63), (2, 3, 9)]:
        target, cleared = calls.hold(np.ones(shape, element.numpy)), calls.hold(np.ones(shape, element.numpy))
        calls.call(f"T.fill({target}, {number.item()!r})", target, np.full(shape, number))
        calls.call(f"T.clear({cleared})", cleared, np.zeros(shape, element.numpy))
    for unit in [(3, 1), (1, 63), (1, 1)]:
        part, target = data(rng, element, *unit), calls.hold(np.zeros((3, 63), element.numpy))
        calls.call(f"T.vbrc({calls.hold(part)}, {target})", target, np.broadcast_to(part, (3, 63)).copy())
    for count, axis in [(63, 0), (3, 1)]:
        line, target = data(rng, element, count), calls.hold(np.zeros((3, 63), element.numpy))
        wanted = np.broadcast_to(line if axis == 0 else line[:, None], (3, 63)).copy()
        calls.call(f"T.tile.broadcast({target}, {calls.hold(line)})", target, wanted)
    part, whole = slice(1, 3), np.ones((5, 33), element.numpy)
    wanted = whole.copy()
    wanted[part, 8:21] = number
    target = calls.hold(whole)
    calls.call(f"T.fill({target}[1:3, 8:21], {number.item()!r})", target, wanted)
    calls.run()
