"""Copies between memories, products of matrices, additions to global tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilelang_npu.interpreter.launch import NeedsCores
from tilelang_npu.interpreter.memory import (
    Buffer,
    Element,
    Memory,
    Region,
    Variable,
    fail,
    integer,
    memory_of,
    stored,
)
from tilelang_npu.interpreter.state import Core, current
from tilelang_npu.interpreter.table import known, tiles
from tilelang_npu.interpreter.values import (
    RANDOM,
    NeedsPoints,
    Scalar,
    finish,
    integral,
    limits,
    scalar,
    to_float,
    to_integer,
    truth,
)
from tilelang_npu.target.dtypes import DType

_CUBE = frozenset({"l1", "l0a", "l0b", "l0c"})


# --- conversions of tiles ------------------------------------------------------------------------------------------------


def cast_elements(values: Any, kind: DType, mode: str = "rint") -> Any:
    """Elements as the Vector core converts them: to a float by rounding, to an integer by saturating."""
    values = np.asarray(values)
    if values.dtype == kind.numpy and (mode == "rint" or values.dtype.kind in "iub"):
        return values
    if kind.is_bool:
        return values != 0
    whole = values.dtype.kind in "iub" or str(values.dtype) == "int4"
    if kind.is_float:
        if values.dtype == kind.numpy:
            return integral(values.astype(np.float32), mode).astype(kind.numpy)
        narrower = kind.numpy.itemsize < values.dtype.itemsize or whole
        return _directed(values, kind, mode) if mode != "rint" and narrower else to_float(values, kind)
    if not whole:
        return to_integer(values, kind, mode)
    if values.dtype == np.bool_:
        return values.astype(kind.numpy)
    low, high = limits(kind)
    return np.clip(values.astype(object) if values.dtype == np.uint64 else values.astype(np.int64), low, high).astype(kind.numpy)


def _directed(values: Any, kind: DType, mode: str) -> Any:
    """Numbers in a narrower float type by another rule than to nearest even."""
    exact = values.astype(np.float64)
    nearest = exact.astype(np.float32).astype(kind.numpy) if kind.bits < 32 else exact.astype(kind.numpy)
    back = nearest.astype(np.float64)
    down = np.where(back > exact, np.nextafter(nearest, kind.numpy.type(-np.inf)), nearest)
    up = np.where(back < exact, np.nextafter(nearest, kind.numpy.type(np.inf)), nearest)
    inexact = np.isfinite(exact) & (back != exact)
    chosen = {"floor": down, "ceil": up, "trunc": np.where(exact >= 0, down, up)}.get(mode)
    if mode == "odd":
        bits = np.asarray(down).view(f"u{kind.numpy.itemsize}")
        chosen = np.where(bits & 1 == 1, down, up)
    elif mode == "round":
        half = up.astype(np.float64) - exact == exact - down.astype(np.float64)
        chosen = np.where(half, np.where(exact >= 0, up, down), nearest)
    return np.where(inexact, chosen, nearest).astype(kind.numpy)


# --- the two sides of a copy ---------------------------------------------------------------------------------------------


def operand(value: Any, what: str) -> Memory | Element:
    """One side of a copy: a buffer, a slice, or the element where a tile starts."""
    if isinstance(value, Scalar) and value.origin is not None:
        value = value.origin
    if (isinstance(value, Memory) and not isinstance(value, Variable)) or isinstance(value, Element):
        return value
    raise fail(f"{what} must be a buffer, a slice or the start of a tile, not {value!r}", "write a buffer, A[i:j, :] or A[i, j]",
               "T110")


def origin(side: Memory | Element) -> Memory:
    """The tile of one element at the first element of a side."""
    if isinstance(side, Memory):
        return side
    rank = len(side.indices)
    return Region(side.buffer, side.start(), (1,) * rank, range(rank))


def right_aligned(memory: Memory, sizes: Sequence[int]) -> Memory:
    """The tile at the first element of ``memory`` whose last axes have ``sizes``, and whose other axes have one element."""
    rank, given = len(memory.offsets), list(sizes)
    while len(given) > rank and given[0] == 1:
        given.pop(0)
    if len(given) > rank:
        raise fail(f"{len(given)} sizes for {memory.describe()}", "give one size per axis", "T131")
    return Region(memory.buffer, memory.offsets, [1] * (rank - len(given)) + given, range(rank))


def squeezed(memory: Memory) -> Memory:
    """The tile without axes of one element; one stays where all have one."""
    kept = [axis for axis in memory.kept if memory.sizes[axis] != 1]
    kept = kept or list(memory.kept[-1:]) or [len(memory.sizes) - 1]
    return Region(memory.buffer, memory.offsets, memory.sizes, kept)


def _borrowed(start: Element, peer: Memory, transpose: bool) -> Memory:
    """The tile at ``start`` with the extents of the other side."""
    rank = len(start.indices)
    sizes = list(peer.sizes if len(peer.sizes) <= rank and not transpose else peer.extents)
    if transpose:
        sizes[-2:] = sizes[:-3:-1]
    return right_aligned(origin(start), sizes)


def both_sides(source: Memory | Element, target: Memory | Element, size: Any, *, transpose: bool = False
               ) -> tuple[Memory, Memory]:
    """Both sides as tiles of one shape, but that a load may name a larger buffer than it has elements for."""
    ascendc = current().dialect == "ascendc" and not transpose
    if size is not None:
        sizes = [integer(part) for part in size]
        a, b = (side if isinstance(side, Buffer) and [s for s in sizes if s != 1] == [s for s in side.extents if s != 1]
                else right_aligned(origin(side), sizes) for side in (source, target))
        return _matched(a, b, transpose)
    if isinstance(source, Element) and isinstance(target, Element):
        raise fail("neither side of the copy says how much", "give size=[...]", "T131")
    if isinstance(source, Element):
        assert isinstance(target, Memory)
        if ascendc and _fewer_axes(source, target):
            return right_aligned(origin(source), target.extents[-len(source.indices):]), target
        return _matched(_borrowed(source, target, transpose), target, transpose)
    if isinstance(target, Element):
        if ascendc and _fewer_axes(target, source):
            source = _corner(source, source.extents[-len(target.indices):])
        return _matched(source, _borrowed(target, source, transpose), transpose)
    cornered = _in_corner(source, target) if ascendc else None
    if cornered is not None:
        return cornered
    if not transpose and isinstance(source, Buffer) is not isinstance(target, Buffer) and source.ndim == target.ndim:
        whole, part = (source, target) if isinstance(source, Buffer) else (target, source)
        if all(b <= a for a, b in zip(whole.extents, part.extents, strict=True)) and (
                not ascendc or current().dialect == "npuir" or _is_dynamic(part)):
            shrunk = Region(whole.buffer, whole.offsets, part.extents, whole.kept)
            source, target = (shrunk, part) if whole is source else (part, shrunk)
    return _matched(source, target, transpose)


def _is_dynamic(part: Memory) -> bool:
    """A slice whose extents are known in the run alone shrinks the buffer beside it; the interpreter cannot tell which are."""
    return True


def _fewer_axes(start: Element, peer: Memory) -> bool:
    return start.buffer.space == "gm" != peer.space and len([s for s in peer.extents if s != 1]) > len(start.indices)


def _corner(memory: Memory, extents: Sequence[int]) -> Memory:
    dropped = memory.ndim - len(extents)
    sizes = list(memory.sizes)
    for axis, size in zip(memory.kept, [*(1,) * dropped, *extents], strict=True):
        sizes[axis] = size
    return Region(memory.buffer, memory.offsets, sizes, memory.kept[dropped:])


def _in_corner(source: Memory, target: Memory) -> tuple[Memory, Memory] | None:
    """A slice of a global tensor beside a whole on-chip buffer that has room for more: a load names the whole buffer, a store the
    corner that is written."""
    part, whole = (source, target) if source.space == "gm" else (target, source)
    if isinstance(part, Buffer) or not isinstance(whole, Buffer) or whole.space == "gm" or part.space != "gm":
        return None
    small, room = squeezed(part), squeezed(whole)
    if small.ndim > room.ndim or small.extents == room.extents:
        return None
    have = room.extents[room.ndim - small.ndim:]
    if not all(a <= b for a, b in zip(small.extents, have, strict=True)):
        return None
    return (small, room) if part is source else (_corner(room, small.extents), small)


def _matched(a: Memory, b: Memory, transpose: bool) -> tuple[Memory, Memory]:
    left = list(a.extents)
    if transpose:
        left[-2:] = left[:-3:-1]
    if left == list(b.extents):
        return a, b
    x, y = squeezed(a), squeezed(b)
    if not transpose and x.extents == y.extents:
        return x, y
    raise fail(f"source {a.describe()} and destination {b.describe()} have different shapes", "slice the larger side", "T131")


# --- copies --------------------------------------------------------------------------------------------------------------


@tiles("copy", "npuir_copy")
def copy(src: Any, dst: Any, *options: Any, coalesced_width: object = None, size: Any = None, pad_value: Any = None,
         enable_relu: bool = False, transpose: bool = False, disable_tma: object = None) -> None:
    """Move a tile; another element type is a conversion that rounds to nearest even."""
    names = ["enable_relu", "transpose", "pad_value"] if options and isinstance(options[0], bool) else ["width", "size"]
    if options and isinstance(options[0], (list, tuple)):
        names = ["size"]
    given = dict(zip(names, options, strict=False))
    transposed = bool(given.get("transpose", transpose))
    source, target = operand(src, "the source"), operand(dst, "the destination")
    a, b = both_sides(source, target, given.get("size", size), transpose=transposed)
    if (current().dialect == "ascendc" and a.space == "gm" and isinstance(b, Region) and b.space == "l1" and a.ndim == b.ndim
            and b.ndim == len(b.offsets) == 2 and not any(b.offsets)):
        b = b.buffer  # the front of a tile in L1: the rest arrives as padding
    move(a, b, pad=given.get("pad_value", pad_value), relu=bool(given.get("enable_relu", enable_relu)), transpose=transposed)


def move(a: Memory, b: Memory, *, pad: Any = None, relu: bool = False, transpose: bool = False) -> None:
    """Copy a tile: what lies beyond a global tensor arrives as ``pad`` (0 without it), and is not written."""
    core = current()
    kind = _core_of(a, b)
    if core.kind == "cube" and kind == "vector" and b.space == "ub" and a.space == "l0c" and core.launch.fifo:
        core.launch.queue(core).append(a.view().copy())
        return
    if not core.executes(kind):
        return
    shared = [side for side in (a, b) if side.space == "gm" or not side.buffer.own]
    if core.kind == "vector" and core.launch.fifo and a.space == "l0c":
        b.buffer.root.pending.append((core.launch.queue(core), b, lambda found: _converted(found, b, relu, transpose)))
        return
    if shared and not (core.launch.fifo and b.space == "l1" and a.space == "ub"):
        core.take_turn()
    if core.kind != "all" and b.space == "l1" and a.space == "ub":
        core.launch.channels.writes(core, b)
    core.launch.note(b)
    values = _loaded(a, b, pad)
    if a.kind == "int32" and b.kind == "float16" and core.scale is not None and {a.space, b.space} <= {"ub", "shared"}:
        values = to_float(values.astype(np.float32) * np.float32(core.scale), b.kind)
    values = _converted(values, b, relu, transpose)
    if b.space == "gm":
        core.launch.before_write(b)
        place, sizes = b.inside()
        if 0 not in sizes:
            place[...] = values[tuple(slice(0, size) for size in sizes)]
        return
    b.view()[...] = values


def _converted(values: Any, b: Memory, relu: bool, transpose: bool) -> Any:
    if transpose:
        values = values.swapaxes(-1, -2)
    if relu:
        values = np.maximum(values, values.dtype.type(0))
    return cast_elements(values, b.kind)


def _loaded(a: Memory, b: Memory, pad: Any) -> Any:
    """The elements that arrive, with the padding of what lies beyond a tensor and, where the destination is larger, of the rest."""
    if a.space != "gm":
        values = a.view()
        return values.copy() if np.shares_memory(values, b.buffer.array) else values
    found, sizes = a.inside()
    extents = (*(1,) * (b.ndim - a.ndim), *a.extents)
    wanted = b.extents if b.ndim == len(extents) and all(x <= y for x, y in zip(extents, b.extents, strict=True)) else a.extents
    if sizes == tuple(wanted):
        return found
    fill = 0 if pad is None else stored(pad, a.kind)
    values = np.full(tuple(wanted), fill, a.kind.numpy)
    if 0 not in sizes:
        place = (0,) * (values.ndim - len(sizes)) + tuple(slice(0, size) for size in sizes)
        values[place] = found
    return values


def _core_of(a: Memory, b: Memory) -> str:
    """Which core copies: the Vector core what begins or ends in UB, the Cube core the rest."""
    return "vector" if "ub" in (a.space, b.space) or not _CUBE & {a.space, b.space} else "cube"


@tiles("load_nd2nz", "npuir_load_nd2nz", "store_nz2nd", "npuir_store_nz2nd")
def load_nd2nz(src: Any, dst: Any, size: Any = None) -> None:
    """Move a matrix between a global tensor and the Cube core's memories."""
    move(*both_sides(operand(src, "the source"), operand(dst, "the destination"), size))


@tiles("store_fixpipe", "npuir_store_fixpipe")
def store_fixpipe(src: Any, dst: Any, size: Any = None, enable_nz2nd: bool = False, channel_split: bool = False,
                  pre_relu_mode: str = "") -> None:
    """Store a matrix from L0C to a global tensor."""
    move(*both_sides(operand(src, "the source"), operand(dst, "the destination"), size), relu=pre_relu_mode == "relu")


# --- products ------------------------------------------------------------------------------------------------------------


def _matrix(value: Any) -> Memory:
    found = operand(value, "an operand of the product")
    memory = origin(found)
    kept = list(memory.kept)
    while len(kept) > 2 and memory.sizes[kept[0]] == 1:
        kept.pop(0)
    if len(kept) != 2:
        raise fail(f"{memory.describe()} is not a matrix", "slice it to two axes", "T120")
    return Region(memory.buffer, memory.offsets, memory.sizes, kept)


def _cut(memory: Memory, rows: int, columns: int) -> Memory:
    sizes = list(memory.sizes)
    for axis, size in zip(memory.kept, (rows, columns), strict=True):
        sizes[axis] = size
    return Region(memory.buffer, memory.offsets, sizes, memory.kept)


def product(a: Any, b: Any, c: Any, init: Any, transpose_a: bool, transpose_b: bool, size: Any = None) -> None:
    """``c += a @ b``, or ``c = a @ b`` where ``init`` holds; float32 or int32 sums."""
    core = current()
    left, right, result = _matrix(a), _matrix(b), _matrix(c)
    launch = core.launch
    if launch.probing:
        for memory, role in ((left, "l1"), (right, "l1"), (result, "l0c")):
            if memory.space in ("shared", "fragment"):
                launch.roles[memory.buffer.root.key] = role
    if not core.executes("cube"):
        return
    if size is not None:
        m, k, n = (integer(part) for part in size)
        left, right = _cut(left, *((k, m) if transpose_a else (m, k))), _cut(right, *((n, k) if transpose_b else (k, n)))
        result = _cut(result, m, n)
    for memory in (left, right):
        _read(core, memory)
    if not launch.fifo:
        core.take_turn()
    launch.note(result)
    x, y, target = left.view(), right.view(), result.view()
    x, y = x.T if transpose_a else x, y.T if transpose_b else y
    if x.shape[1] != y.shape[0] or (x.shape[0], y.shape[1]) != target.shape:
        raise fail(f"a product of {x.shape} and {y.shape} into {target.shape}", "A is M x K, B is K x N, C is M x N", "T120")
    wide = np.int32 if x.dtype.kind in "iu" else np.float32
    # numbers of 8 bits have exact sums in float64, which NumPy multiplies faster than integers
    made = (x.astype(np.float64) @ y.astype(np.float64)) if wide is np.int32 else x.astype(wide) @ y.astype(wide)
    random = RANDOM.get()
    if random is not None and wide is np.float32:
        scale = np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64))
        noise = random.standard_normal(made.shape) * scale * (np.finfo(np.float32).eps / 2 * max(1.0, x.shape[1] ** 0.5))
        made = finish(x.astype(np.float64) @ y.astype(np.float64) + noise, result.kind)
    made = made.astype(np.int64).astype(np.int32) if wide is np.int32 else made.astype(result.kind.numpy)
    begins = bool(truth(init).single()) if not isinstance(init, bool) else init
    target[...] = made if begins else target + made


def _read(core: Core, memory: Memory) -> None:
    """Before a product reads a tile: where nothing has written it, another core will."""
    launch, root = core.launch, memory.buffer.root
    if core.kind == "all":
        if id(root) not in launch.written and memory.space in ("shared", "l1"):
            if launch.probing:
                launch.channels.open(root.key, core.site())
            else:
                raise NeedsCores
        elif launch.probing and launch.channels.is_open(root.key):
            launch.channels.open(root.key, core.site())
    elif launch.channels.is_open(root.key):
        launch.channels.reads(core, memory)


_TRUTH = (bool, int, np.bool_)


@tiles("gemm")
def gemm(A: Any, B: Any, C: Any, *options: Any, size: Any = None, initC: Any = False, a_transpose: bool = False,
         b_transpose: bool = False, transpose_A: bool = False, transpose_B: bool = False, policy: object = None,
         clear_accum: Any = False, init: Any = False, k_pack: int = 1, wg_wait: int = 0) -> None:
    """The product of two tiles, added to a third."""
    names = ("size", "initC", "a_transpose", "b_transpose")
    if options and isinstance(options[0], bool):
        names = ("transpose_A", "transpose_B", "policy", "clear_accum")
    given = dict(zip(names, options, strict=False))
    starts = [given.get("initC", initC), given.get("clear_accum", clear_accum), init]
    odd = [start for start in starts if not isinstance(start, _TRUTH)]
    product(A, B, C, odd[0] if odd else any(starts),
            bool(given.get("a_transpose", a_transpose)) or bool(given.get("transpose_A", transpose_A)),
            bool(given.get("b_transpose", b_transpose)) or bool(given.get("transpose_B", transpose_B)), given.get("size", size))


@tiles("npuir_dot")
def npuir_dot(A: Any, B: Any, C: Any, size: Any = None, initC: Any = False, a_transpose: bool = False,
              b_transpose: bool = False) -> None:
    """The product of two tiles, added to a third."""
    product(A, B, C, initC, bool(a_transpose), bool(b_transpose), size)


@tiles("gemm_v0")
def gemm_v0(A: Any, B: Any, C: Any, transpose_A: bool = False, transpose_B: bool = False, init: Any = False) -> None:
    """The product of two tiles, added to a third."""
    product(A, B, C, init, bool(transpose_A), bool(transpose_B))


@tiles("mma", "npu_gemm")
def mma(A: Any, B: Any, C: Any, init: Any = False) -> None:
    """The product of two tiles in L0A and L0B, added to one in L0C."""
    product(A, B, C, init, transpose_a=False, transpose_b=False)


# --- additions to global tensors -----------------------------------------------------------------------------------------


@known(*(prefix + name for prefix in ("", "v", "npuir_") for name in ("atomic_add", "atomic_addx2", "atomic_addx4")),
       "tile.atomic_add")
def atomic_add(dst: Any, src: Any, size: Any = None, *, memory_order: str | None = None) -> None:
    """Add a tile to a global tensor, or a number to an element of it."""
    core = current()
    place = dst.origin if isinstance(dst, Scalar) else dst
    if isinstance(place, Element) and place.buffer.space == "gm" and size is None and not isinstance(src, Memory):
        if not core.touches(place.buffer, writes=True):
            return
        core.launch.before_write(memory_of(place))
        value = stored(src, place.kind)
        if core.points is not None and (np.ndim(value) or any(isinstance(index, Scalar) for index in place.indices)):
            raise NeedsPoints
        place.buffer.array[place.start()] += value
        return
    if core.points is not None:
        raise NeedsPoints
    source, target = operand(src, "the source"), operand(dst, "the destination")
    if source.buffer.space == "gm" and target.buffer.space != "gm":
        source, target = target, source
    a, b = both_sides(source, target, size)
    if not core.executes(_core_of(a, b)):
        return
    core.take_turn()
    core.launch.before_write(b)
    tile, sizes = b.inside()
    if 0 not in sizes:
        added = cast_elements(a.view(), b.kind)[tuple(slice(0, part) for part in sizes)]
        tile[...] = (tile + added).astype(tile.dtype)


del scalar
