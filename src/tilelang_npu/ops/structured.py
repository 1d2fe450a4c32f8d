"""The entries of the vector operations that move, scan, sort or generate data (PIPE_V).

An entry with a HIVM op lists the element types that the verifier of this op accepts (AscendNPU-IR at 52f96a13). The other
entries are custom ops with the conventions of AscendC: offsets are in bytes, masks are bits (bit ``i % 8`` of byte ``i // 8``),
and sorts work on pairs (value, index).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.ops import rearrange
from tilelang_npu.ops.rounding import Array, conversion
from tilelang_npu.ops.spec import Contract, Refused, Shape, Structured, declare
from tilelang_npu.target.dtypes import DType, dtype

if TYPE_CHECKING:
    from tilelang_npu.diagnostic_codes import Code

class Facts(TypedDict, total=False):
    """The clauses of the entries whose meaning reads them, by name."""

    axis: int
    channels: int
    counter: bool
    dim: int
    element_lengths: Sequence[int]
    exhausted_suspension: bool
    index_mode: str
    k: int
    mode: str
    order: str
    pattern: str
    per_block: bool
    permutation: tuple[int, ...]
    repeat_times: int
    reverse: bool


Meaning = Callable[[Sequence[Array], Sequence[Any], Facts], None]
"""Writes the outputs, from the inputs (arrays and scalars, each entry knows which) and the clauses."""


def _types(*names: str) -> tuple[DType, ...]:
    return tuple(dtype(name) for name in names)


FLOAT = _types("f16", "f32")
INTEGERS = _types("i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64")
PLAIN = (*INTEGERS, *_types("f16", "bf16", "f32"))
MOVABLE = (*_types("i1"), *PLAIN)
COUNTABLE = _types("i16", "i32", "i64", "f16", "f32")
PATTERNS = {"P0101": (0, 2), "P1010": (1, 2),
            "P0001": (0, 4), "P0010": (1, 4), "P0100": (2, 4), "P1000": (3, 4), "P1111": (0, 1)}
"""The patterns of ``gather_mask``: the index of the first selected element, and the distance from one selected element to the
next."""
GROUP = 32
"""The number of elements that one instruction sorts; the number of sorted elements is rounded up to a multiple of it."""
RECORD = 8
"""The number of bytes of a record that the sorting instructions make: a score in the first bytes, an index in the last four."""


def entry(name: str, aliases: tuple[str, ...], inputs: tuple[str, ...], hivm: str, dtypes: tuple[DType, ...], cost: str,
          meaning: Meaning, contract: Contract, doc: str, **facts: Any) -> Structured:
    """Declares a :class:`~tilelang_npu.ops.spec.Structured` entry with these fields and returns it.

    ``facts`` are further fields of the class.
    """
    return declare(Structured(name=name, aliases=aliases, inputs=inputs, hivm=hivm, dtypes=dtypes, cost=cost, meaning=meaning,
                              contract=contract, doc=doc, **facts))


def _both(name: str) -> tuple[str, ...]:
    return (f"v{name}", f"npuir_{name}")


# --- contracts -----------------------------------------------------------------------------------------------------------


def _text(shape: Shape) -> str:
    return "x".join("?" if size is None else str(size) for size in shape.extents)


def _require(holds: bool, problem: str, advice: str, code: Code = "T111") -> None:
    if not holds:
        raise Refused(code, problem, advice)


def _agree(a: Shape, b: Shape) -> bool:
    return len(a.extents) == len(b.extents) and all(
        x is None or y is None or x == y for x, y in zip(a.extents, b.extents, strict=True))


def _alike(*shapes: Shape) -> None:
    kinds = {str(shape.dtype) for shape in shapes}
    _require(len(kinds) == 1, f"element types differ: {', '.join(sorted(kinds))}", "give all the same element type", "T110")


def _same(a: Shape, b: Shape, what: str) -> None:
    _require(_agree(a, b), f"{what} have shapes {_text(a)} and {_text(b)}", "give both the same shape")


def _axis(value: object, shape: Shape, what: str) -> int:
    rank = len(shape.extents)
    valid = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < rank
    _require(valid, f"{what} is {value!r}, but the shape has {rank} axes", f"{what} must be an integer from 0 to {rank - 1}")
    assert isinstance(value, int)
    return value


def _resized(source: Shape, axis: int, size: int | None) -> Shape:
    return Shape(source.dtype, (*source.extents[:axis], size, *source.extents[axis + 1:]))


def _check_gather(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(outs[0], ins[0])
    _require(str(ins[1].dtype) in ("int32", "int16"), f"the indices have elements of {ins[1].dtype}",
             "give the indices as int32 or int16", "T110")
    _same(outs[0], ins[1], "the destination and the indices")
    rank = len(ins[0].extents)
    _require(rank == len(outs[0].extents), f"the source has {rank} axes, the destination {len(outs[0].extents)}",
             "give both the same number of axes")
    for axis in range(rank - 1):
        a, b = ins[0].extents[axis], outs[0].extents[axis]
        _require(a is None or b is None or a == b, f"axis {axis} has {a} elements in the source and {b} in the destination",
                 "a gather works along the last axis: give all other axes the same size in both")


def _check_transpose(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(outs[0], ins[0])
    permutation, rank = facts["permutation"], len(ins[0].extents)
    assert isinstance(permutation, (list, tuple))
    _require(sorted(permutation) == list(range(rank)), f"{list(permutation)} is not a permutation of {rank} axes",
             f"list each of the axes 0 to {rank - 1} once")
    moved = sum(axis != place for place, axis in enumerate(permutation))
    _require(moved in (0, 2), f"the permutation {list(permutation)} moves {moved} axes",
             "one transpose swaps two axes; use several transposes")
    _require(moved == 2, f"the permutation {list(permutation)} moves no axis", "use T.copy")
    turned = Shape(ins[0].dtype, tuple(ins[0].extents[axis] for axis in permutation))
    _require(_agree(turned, outs[0]), f"the result has shape {_text(turned)}, the destination {_text(outs[0])}",
             "give the destination the shape of the result")


def _check_scan(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(outs[0], ins[0])
    _same(outs[0], ins[0], "source and destination")
    _axis(facts["dim"], ins[0], "dim")


def _check_indexed(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(outs[0], ins[0])
    _require(str(outs[1].dtype) == "int32", f"the indices have elements of {outs[1].dtype}", "give the indices as int32",
             "T110")
    wanted = _resized(ins[0], _axis(facts["dim"], ins[0], "dim"), 1)
    for out, what in zip(outs, ("values", "indices"), strict=True):
        _require(_agree(wanted, out), f"the result has shape {_text(wanted)}, the {what} {_text(out)}",
                 f"give the {what} the shape {_text(wanted)}")


def _check_arange(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    rank, given = len(outs[0].extents), facts.get("strides", len(outs[0].extents))
    _require(given == rank, f"{given} strides for a destination with {rank} axes", "give one stride per axis")


def _check_interleave(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(*outs, *ins)
    parts, whole = (ins, outs[0]) if len(outs) == 1 and len(ins) > 1 else (outs, ins[0])
    for part in parts[1:]:
        _same(parts[0], part, "the channels")
    last = parts[0].extents[-1]
    wanted = _resized(parts[0], len(parts[0].extents) - 1, None if last is None else 2 * last)
    _require(_agree(wanted, whole), f"channels of {_text(parts[0])} interleave to {_text(wanted)}, not {_text(whole)}",
             "give the interleaved buffer a last axis of twice the size of a channel's")
    _require(len(parts) == 2 or facts.get("index_mode", "ALL_CHANNELS") != "ALL_CHANNELS", f"there are {len(parts)} channels",
             "the hardware interleaves exactly two channels")


def _check_concat(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(*outs, *ins)
    axis = _axis(facts["dim"], outs[0], "dim")
    _require(all(len(part.extents) == len(outs[0].extents) for part in ins), "the inputs have different numbers of axes",
             "give all inputs as many axes as the destination")
    sizes = [part.extents[axis] for part in ins]
    total = None if any(size is None for size in sizes) else sum(size or 0 for size in sizes)
    for part in ins:
        wanted = _resized(part, axis, total)
        _require(_agree(wanted, outs[0]),
                 f"the concatenated inputs have shape {_text(wanted)}, the destination has {_text(outs[0])}",
                 f"inputs may differ only along axis {axis}, and the destination must have the sum of their sizes there")


def _check_pad(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(outs[0], ins[0])
    low, high = facts["low"], facts["high"]
    assert isinstance(low, list) and isinstance(high, list)
    rank = len(ins[0].extents)
    _require(len(low) == len(high) == rank == len(outs[0].extents),
             f"there are {len(low)} widths before and {len(high)} after; the source has {rank} axes, the destination "
             f"{len(outs[0].extents)}",
             "give one width before and one after for each axis, and both buffers the same number of axes")
    for axis, (before, have, after, want) in enumerate(zip(low, ins[0].extents, high, outs[0].extents, strict=True)):
        for width in (before, after):
            _require(width is None or width >= 0, f"a padding width of axis {axis} is {width}", "a width must be 0 or more",
                     "T145")
        if None not in (before, have, after, want):
            total = before + have + after
            _require(total == want, f"axis {axis}: {before} + {have} + {after} elements, but the destination has {want}",
                     f"give axis {axis} of the destination {total} elements: those of the source and the padding")
    _require(sum(a != 0 or b != 0 for a, b in zip(low, high, strict=True)) <= 1, "more than one axis is padded",
             "HIVM pads one axis at a time; pad each axis by a call of its own")


def _check_flip(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(outs[0], ins[0])
    _same(outs[0], ins[0], "source and destination")
    _axis(facts["axis"], ins[0], "axis")
    _require(facts["axis"] == len(ins[0].extents) - 1, f"axis {facts['axis']} is not the last axis",
             "the hardware reverses only the last axis")


def _check_sort_rows(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(outs[0], ins[0])
    _require(str(outs[1].dtype) == "int32", f"the destination of the indices has elements of {outs[1].dtype}",
             "give the indices as int32", "T110")
    for target in outs:
        _same(target, ins[0], "source and destination")
    _axis(facts["axis"], ins[0], "axis")
    _require(facts["axis"] == len(ins[0].extents) - 1, f"axis {facts['axis']} is not the last axis",
             "the hardware sorts only along the last axis; transpose the tile first")


def _known(*counts: int | None) -> bool:
    return all(count is not None for count in counts)


def _fits(need: int | None, have: Shape, what: str) -> None:
    count = have.count
    if need is not None and count is not None:
        _require(need <= count, f"{what} needs {need} elements, but has {count}",
                 "allocate a larger buffer, or process fewer elements")


def _check_offsets(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(outs[0], ins[0])
    _require(str(ins[1].dtype) in ("uint32", "int32"), f"the offsets have elements of {ins[1].dtype}",
             "give the byte offsets as uint32 or int32", "T110")


def _check_mask_pack(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(outs[0], ins[0])
    pattern = facts.get("pattern", "")
    if pattern:
        known = ", ".join(PATTERNS)
        _require(pattern in PATTERNS, f"pattern {pattern!r} does not exist", f"pattern must be one of {known}", "T145")
        count = ins[0].count
        _fits(None if count is None else count // PATTERNS[str(pattern)][1], outs[0], "the destination")
    else:
        _require(str(ins[1].dtype) in ("uint32", "int32"), f"the indices have elements of {ins[1].dtype}",
                 "give the indices as uint32 or int32", "T110")
        _fits(ins[1].count, outs[0], "the destination")


def _check_sort(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(outs[0], ins[0])
    real, total = facts.get("actual_num"), ins[0].count
    count = facts.get("k", total if total is None or not isinstance(real, int) else min(_groups(real), total))
    if isinstance(count, int):
        _fits(2 * count, outs[0], "the destination (pairs of value and index)")
        _require(total is None or count <= total, f"k is {count}, but the source has {total} elements",
                 "k must not be larger than the number of elements")
    if isinstance(real, int) and total is not None:
        _require(0 < real <= total, f"actual_num is {real}, but the source has {total} elements",
                 f"actual_num must be from 1 to {total}")


def _check_merge(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(*outs, *ins)
    _require(2 <= len(ins) <= 4, f"there are {len(ins)} lists to merge", "give 2 to 4 lists", "T145")
    counts = [part.count for part in ins]
    for part, count in zip(ins, counts, strict=True):
        _require(count is None or count % 2 == 0, f"a list has {_text(part)} elements, an odd number",
                 "a list must hold pairs of a value and an index")
    _fits(sum(count or 0 for count in counts) if _known(*counts) else None, outs[0], "the destination")


def _check_sort32(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(outs[0], ins[0])
    _require(str(ins[1].dtype) in ("uint32", "int32"), f"the indices have elements of {ins[1].dtype}",
             "give the indices as uint32 or int32", "T110")
    count, width = ins[0].count, 8 // ins[0].dtype.nbytes
    if count is not None:
        _require(count % 32 == 0, f"the source has {count} elements, not a multiple of 32",
                 "sort32 sorts groups of 32 elements: give it a multiple of 32")
        _fits(count, ins[1], "the buffer of indices")
        _fits(width * count, outs[0], "the destination (8 bytes per pair)")


def _check_queues(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _alike(*outs, *ins)
    lengths, repeats, width = facts["element_lengths"], facts["repeat_times"], RECORD // ins[0].dtype.nbytes
    assert isinstance(lengths, (list, tuple)) and isinstance(repeats, int)
    total = sum(lengths) * repeats
    if repeats > 1:
        _fits(total * width, ins[0], "the queues")
    else:
        for number, (length, queue) in enumerate(zip(lengths, ins, strict=True)):
            _fits(length * width, queue, f"queue {number}")
    _fits(total * width, outs[0], f"the destination ({RECORD} bytes per record)")


def _check_bits(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    count, room = ins[0].count, outs[0].count  # in elements of any type, because scripts store the bits in various types
    bits = None if room is None else room * outs[0].dtype.bits
    _require(count is None or bits is None or count <= bits, f"the mask has {bits} bits for {count} elements",
             "the mask needs one bit per element: a uint8 buffer with an eighth as many elements")
    if len(ins) > 1:
        _alike(*ins)
        _require(ins[1].count == count, f"the inputs have {count} and {ins[1].count} elements",
                 "give both inputs the same number of elements")


def _check_choice(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    _require(ins[0].dtype.bits == 8 or ins[0].dtype.is_integer, f"the mask has elements of {ins[0].dtype}",
             "the mask must hold bits in uint8 elements", "T110")
    _alike(outs[0], *ins[1:])
    count = outs[0].count
    mask = ins[0].count
    if count is not None and mask is not None:
        _require(mask * ins[0].dtype.bits >= count, f"the mask has {mask * ins[0].dtype.bits} bits for {count} elements",
                 "the mask needs one bit per element")
    for part in ins[1:]:
        _require(part.count is None or part.count == count, f"an input has {part.count} elements, the destination {count}",
                 "give the inputs and the destination the same number of elements")


def _check_packed(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    kinds = {str(ins[0].dtype), str(outs[0].dtype)}
    _require(kinds == {"float16", "int4"}, f"there is no conversion from {ins[0].dtype} to {outs[0].dtype}",
             "int4 is converted to and from float16: convert in two steps", "T110")
    _same(ins[0], outs[0], "the source and the destination")
    width = ins[0].extents[-1]
    _require(width is None or width % 2 == 0, f"the last axis has {width} elements, and a byte holds two elements of int4",
             "give the last axis an even size")


# --- meanings ------------------------------------------------------------------------------------------------------------


def _gather(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    rearrange.gather(outs[0], ins[0], ins[1], facts.get("axis", -1))


def _transpose(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    outs[0][...] = ins[0].transpose(facts["permutation"])


def _cumsum(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    rearrange.cumulate(outs[0], ins[0], "sum", facts["dim"], bool(facts.get("reverse")))


def _cummax(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    rearrange.cumulate(outs[0], ins[0], "max", facts["dim"], bool(facts.get("reverse")))


def _reduce_with_index(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    source, axis = ins[0], facts["dim"]
    find = np.argmax if facts["mode"].startswith("max") else np.argmin
    if facts["mode"].endswith("left"):
        places = find(source, axis=axis, keepdims=True)
    else:
        places = source.shape[axis] - 1 - find(np.flip(source, axis), axis=axis, keepdims=True)
    np.copyto(outs[0], np.take_along_axis(source, places, axis))
    np.copyto(outs[1], places, casting="unsafe")


def _arange(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    offset, *strides = ins
    rearrange.arange(outs[0], offset, strides)


def _interleave(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    outs[0][...] = np.stack(ins, -1).reshape(outs[0].shape)


def _deinterleave(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    first = 1 if facts.get("index_mode") == "CHANNEL_1" else 0
    for number, target in enumerate(outs):
        target[...] = ins[0][..., first + number::facts.get("channels", 2)]


def _concat(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    outs[0][...] = np.concatenate(ins, facts["dim"])


def _pad(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    source, value, *low = ins
    rearrange.pad(outs[0], source, low, value)


def _flip(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    outs[0][...] = np.flip(ins[0], facts["axis"])


def _sort_rows(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    rearrange.sort(outs[0], outs[1], ins[0], bool(facts.get("descending")), facts["axis"])


def _progression(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    first, step = ins
    wide = np.int64 if outs[0].dtype.kind in "iu" else np.float64
    outs[0].flat[:] = (wide(first) + np.arange(outs[0].size) * wide(step)).astype(outs[0].dtype)


def _gather_offsets(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    source, offsets, base = ins
    count = min(outs[0].size, offsets.size)
    width = source.dtype.itemsize
    places = rearrange.inside(offsets.reshape(-1)[:count].astype(np.int64) + int(base), source.nbytes, "byte offset")
    if (places % width).any():
        first = int(np.argmax(places % width != 0))
        msg = f"byte offset {places[first]}, at position {first}, is not a multiple of the element size, {width} bytes"
        raise rearrange.OutsideError(msg)
    outs[0].flat[:count] = source.reshape(-1)[places // width]


def _pack_int4(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    whole = conversion(dtype("f16"), dtype("i8"), facts.get("mode", "rint"))(ins[0])
    outs[0][...] = rearrange.pack_int4(np.clip(whole, -8, 7))


def _unpack_int4(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    outs[0][...] = rearrange.unpack_int4(ins[0])


def _gather_mask(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    pattern = facts.get("pattern", "")
    source = ins[0].reshape(-1)
    if pattern:
        first, step = PATTERNS[pattern]
        chosen = source[first::step]
    else:
        chosen = source[rearrange.inside(ins[1].reshape(-1), source.size)]
    outs[0].flat[:chosen.size] = chosen


def _order(values: Array) -> NDArray[np.intp]:
    """The positions of the elements in descending order, stably; NaN counts as the largest."""
    keys = np.where(np.isnan(values), np.inf, values.astype(np.float64))
    return np.argsort(-keys, kind="stable")


def _groups(count: int) -> int:
    """A number of elements, rounded up to whole groups."""
    return -(-count // GROUP) * GROUP


def _sort(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    source, real = ins
    values = source.reshape(-1).copy()
    if not 0 < int(real) <= values.size:
        msg = f"actual_num is {int(real)}, but must be from 1 to {values.size}, the number of elements of the source"
        raise rearrange.OutsideError(msg)
    if "k" not in facts:
        values = values[:_groups(int(real))]
    values[int(real):] = -np.inf
    if source.dtype == np.float32:  # float16 is converted to float32 first, and the source keeps its elements
        source.flat[:values.size] = values
    order = _order(values)
    pairs = np.empty(2 * order.size, outs[0].dtype)
    pairs[0::2], pairs[1::2] = values[order], order
    block = 32 // source.itemsize
    stored = min(-(-2 * facts["k"] // block) * block, outs[0].size) if "k" in facts else pairs.size
    outs[0].flat[:stored] = pairs[:stored]


def _merge_sort(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    pairs = np.concatenate([part.reshape(-1, 2) for part in ins])
    pairs = pairs[_order(pairs[:, 0])]
    outs[0].flat[:pairs.size] = pairs.reshape(-1)


def _sort32(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    source, indices = ins[0].reshape(-1), ins[1].reshape(-1)
    made = np.zeros((source.size, 8 // source.dtype.itemsize), source.dtype)
    for group in range(0, source.size, 32):
        order = group + _order(source[group:group + 32])
        made[group:group + 32, 0] = source[order]
        words = np.ascontiguousarray(made[group:group + 32]).view(np.uint32)
        words[:, 1] = indices[order].astype(np.uint32)
        made[group:group + 32] = words.view(source.dtype)
    outs[0].flat[:made.size] = made.reshape(-1)


def _merged(queues: Sequence[Array], suspends: bool) -> Array:
    """Returns the records of sorted queues in descending order of their scores.

    A merge compares only the first records that are left of the queues. A record that is larger than one before it in its
    queue comes directly after that one, so it is as if its score were the smallest up to it in the queue. Of equal scores, the
    one of the first queue comes first. With ``suspends``, the merge ends where a queue is exhausted.
    """
    scores = [np.where(np.isnan(queue[:, 0]), np.inf, queue[:, 0].astype(np.float64)) for queue in queues]
    order = np.argsort(-np.concatenate([np.minimum.accumulate(score) for score in scores]), kind="stable")
    if suspends:
        places = np.argsort(order)
        order = order[:1 + min(places[end - 1] for end in np.cumsum([len(queue) for queue in queues]))]
    return np.concatenate(queues)[order]


def _merge_queues(outs: Sequence[Array], ins: Sequence[Array], facts: Facts) -> None:
    lengths, width = facts["element_lengths"], RECORD // ins[0].itemsize
    records = [part.reshape(-1, width) for part in ins]
    step = sum(lengths)
    for repeat in range(facts["repeat_times"]):
        if facts["repeat_times"] > 1:
            records = np.split(ins[0].reshape(-1, width)[repeat * step:(repeat + 1) * step], np.cumsum(lengths)[:-1])
        made = _merged(records, facts["exhausted_suspension"])
        outs[0].flat[repeat * step * width:repeat * step * width + made.size] = made.reshape(-1)


_TESTS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


def _compare_bits(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    left, right = ins
    right = right.reshape(-1) if isinstance(right, np.ndarray) else left.dtype.type(right)
    bits = np.packbits(_TESTS[facts["mode"]](left.reshape(-1), right), bitorder="little")
    if outs[0].itemsize == 1:
        outs[0].flat[:bits.size] = bits.view(outs[0].dtype)
        return
    if not outs[0].flags.c_contiguous:
        msg = f"the mask has elements of {outs[0].itemsize} bytes that are not contiguous: such a mask must be contiguous"
        raise ValueError(msg)
    outs[0].reshape(-1).view(np.uint8)[:bits.size] = bits


def _select_bits(outs: Sequence[Array], ins: Sequence[Any], facts: Facts) -> None:
    mask, first, second = ins
    count = outs[0].size
    bits = np.unpackbits(np.ascontiguousarray(mask).reshape(-1).view(np.uint8), bitorder="little")[:count].astype(bool)
    other = second.reshape(-1) if isinstance(second, np.ndarray) else first.dtype.type(second)
    outs[0].flat[:] = np.where(bits, first.reshape(-1), other)


# --- entries -------------------------------------------------------------------------------------------------------------

GATHERABLE = _types("i8", "i16", "ui16", "i32", "ui32", "f16", "bf16", "f32")
entry("gather", _both("gather"), ("src", "indices"), "vgather", GATHERABLE, "gather", _gather, _check_gather,
      "Copies the elements at given indices of the last axis.", by_rows=True)
entry("transpose", (*_both("transpose"), "tile.transpose"), ("src",), "vtranspose", MOVABLE, "nchwconv", _transpose,
      _check_transpose, "Swaps two axes.")
entry("reduce_with_index", (), ("src",), "vreduce", (*INTEGERS, *FLOAT), "cmax", _reduce_with_index, _check_indexed,
      "The largest or the smallest element along an axis, and the index of this element.", outputs=("dst", "indices"))
entry("cumsum", _both("cumsum"), ("src",), "vcumsum", (*COUNTABLE, dtype("i8")), "add", _cumsum, _check_scan,
      "The sums of the elements along an axis up to each position. Takes log2(n) instructions, rounded up, for n elements "
      "along the axis, each on the whole tile: 7 for n = 128.", in_place=True)
entry("cummax", _both("cummax"), ("src",), "vcummax", (*COUNTABLE, dtype("i8")), "max", _cummax, _check_scan,
      "The largest of the elements along an axis up to each position. Takes log2(n) instructions, rounded up, for n elements "
      "along the axis, each on the whole tile: 7 for n = 128.", in_place=True)
entry("arange", _both("arange"), ("offset", "strides"), "varange", COUNTABLE, "dup", _arange, _check_arange,
      "Writes the offset plus the sum over all axes of index times stride.")
entry("interleave", _both("interleave"), ("srcs",), "vinterleave", MOVABLE, "gather", _interleave, _check_interleave,
      "Alternates the elements of two buffers along the last axis.", by_rows=True)
entry("deinterleave", _both("deinterleave"), ("src",), "vdeinterleave", PLAIN, "reducev2", _deinterleave, _check_interleave,
      "Separates the elements at even and at odd indices of the last axis.", outputs=("dsts",), by_rows=True)
entry("concat", _both("concat"), ("srcs",), "vconcat", MOVABLE, "copy", _concat, _check_concat,
      "Concatenates buffers along an axis.")
entry("pad", _both("pad"), ("src", "value"), "vpad", PLAIN, "copy", _pad, _check_pad,
      "Pads one axis with a value, before and after the source.")
entry("flip", _both("flip"), ("src",), "vflip", PLAIN, "gather", _flip, _check_flip, "Reverses the last axis.")
entry("vsort", ("npuir_sort",), ("src",), "vsort", FLOAT, "mrgsort4", _sort_rows, _check_sort_rows,
      "Sorts the elements along the last axis, and writes the positions that they had.", outputs=("dst", "indices"))
entry("arith_progression", ("tile.arith_progression", "tile.createvecindex", "tile.create_vec_index"),
      ("first", "step"), "custom",
      _types("i16", "ui16", "i32", "ui32", "f16", "f32"), "dup", _progression, _check_arange,
      "Writes first, first + step, first + 2 * step, ...")
WORDS = _types("i16", "ui16", "i32", "ui32", "f16", "bf16", "f32")
entry("gather_offsets", ("tile.gather",), ("src", "offsets", "base"), "custom", WORDS, "gather",
      _gather_offsets, _check_offsets, "Copies the elements at given byte offsets of the source.", partial=True)
entry("pack_int4", (), ("src",), "custom", _types("f16"), "conv", _pack_int4, _check_packed,
      "Rounds to integers from -8 to 7, and writes two of them into each byte.")
entry("unpack_int4", (), ("src",), "custom", _types("i4"), "conv", _unpack_int4, _check_packed,
      "Converts the two integers from -8 to 7 that are in each byte.")
entry("gather_mask", ("tile.gather_mask",), ("src", "indices"), "custom", WORDS, "reducev2", _gather_mask, _check_mask_pack,
      "Copies every second or fourth element, or the elements at given indices, without gaps.", partial=True)
entry("sort", ("tile.sort",), ("src", "actual_num"), "custom", FLOAT, "mrgsort4", _sort, _check_sort,
      "Sorts the first actual_num elements in descending order and writes pairs (value, index); -inf fills a float32 source and"
      " the result up to a multiple of 32 elements.", outputs=("dst", "src"), in_place=True, partial=True)
entry("topk", ("tile.topk",), ("src", "actual_num"), "custom", FLOAT, "mrgsort4", _sort, _check_sort,
      "Writes the k largest elements as pairs (value, index), rounded up to whole blocks of 32 bytes; sets the elements of a"
      " float32 source from actual_num on to -inf first.",
      outputs=("dst", "src"), in_place=True, partial=True)
entry("merge_sort", ("tile.merge_sort",), ("srcs",), "custom", FLOAT, "mrgsort4", _merge_sort, _check_merge,
      "Merges 2 to 4 sorted lists of pairs (value, index) into one sorted list.", partial=True)
# The rate of mrgsort4 is that of the instruction, which was measured (target/a2.py); nothing is published on a merge that is
# suspended, which is timed as a whole one.
entry("mrgsort", ("vmrgsort",), ("queues",), "custom", FLOAT, "mrgsort4", _merge_queues, _check_queues,
      "Merges up to four queues of 8-byte records (score, index), each in descending order of the scores, into one.",
      partial=True, source_alignment=RECORD)
entry("sort32", ("tile.sort32", "vsort32"), ("src", "indices"), "custom", FLOAT, "mrgsort4", _sort32, _check_sort32,
      "Sorts each group of 32 elements in descending order and writes pairs (value, index) of 8 bytes.", partial=True)
entry("compare_bits", ("tile.compare",), ("src0", "src1"), "custom", _types("i16", "i32", "f16", "f32"), "cmpv", _compare_bits,
      _check_bits, "Compares two elements; the result is one bit per pair of elements.", partial=True)
entry("select_bits", ("tile.select",), ("mask", "src0", "src1"), "custom", (*INTEGERS, *FLOAT, dtype("bf16")), "sel",
      _select_bits, _check_choice, "The first input where the mask's bit is set, else the second.", in_place=True)
__all__ = ["PATTERNS", "entry"]
