"""Executes copies between memories, matrix products, atomic additions to global tensors, and reducers, whose elements are
complete after each update."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tilelang_npu.card_signals import have_polled
from tilelang_npu.interpreter.host_buffers import (
    CUBE_MEMORIES,
    HostBuffer,
    HostElement,
    HostSlice,
    TileRef,
    allocate,
    integer,
    memory_of,
    operand,
    require_scope,
    sizes_of,
    stored,
    valid_after,
)
from tilelang_npu.interpreter.launch import NeedsCores, running_launch
from tilelang_npu.interpreter.operation_table import known, tiles
from tilelang_npu.interpreter.running_core import Core, current, fail
from tilelang_npu.interpreter.typed_scalars import (
    RANDOM,
    Array,
    NeedsPoints,
    binary,
    cast,
    cast_elements,
    finish,
    limits,
    to_float,
    truth,
)
from tilelang_npu.target.dtypes import DType

_PLAIN = (bool, int, np.bool_)
_SCALE_LAYOUTS = {"MX_A_ND": (False, False), "MX_A_DN": (True, False), "MX_B_ND": (True, True), "MX_B_DN": (False, True)}
"""For each layout of scales in a tensor: whether the axis of groups is the first one, and whether the scales are of B."""


# --- the two sides of a copy ---------------------------------------------------------------------------------------------


def both_sides(src: object, dst: object, size: object, *, transpose: bool = False) -> tuple[TileRef, TileRef]:
    """Returns both operands of a copy as tiles of the same shape.

    In the ascendc dialect, a load from a global tensor may have a larger buffer as its destination, which is then padded.

    Args:
        src: the source: a buffer, a slice, or the element at which a tile starts.
        dst: the destination, likewise.
        size: the sizes of the copied tile; None if the operands determine them.
        transpose: whether the copy transposes the last two axes.

    Raises:
        TileError: T131, the shapes are different, or neither operand has a shape; T110, an operand is none of these.
    """
    source, target = operand(src), operand(dst)
    ascendc = current().dialect == "ascendc" and not transpose
    if ascendc and size is None:
        source, target = _continued(*_own_part(source, target))
    if size is not None:
        sizes = sizes_of(size)
        a, b = (side if isinstance(side, HostBuffer) and [s for s in sizes if s != 1] == [s for s in side.extents if s != 1]
                else memory_of(side).right_aligned(sizes) for side in (source, target))
        return _matched(a, b, transpose)
    if isinstance(source, HostElement):
        if isinstance(target, HostElement):
            raise fail("neither side of the copy has a shape", "give size=[...]", "T131")
        if ascendc and _fewer_axes(source, target):
            return memory_of(source).right_aligned(target.extents[-len(source.indices):]), target
        return _matched(_borrowed(source, target, transpose), target, transpose)
    if isinstance(target, HostElement):
        if ascendc and _fewer_axes(target, source):
            source = _corner(source, source.extents[-len(target.indices):])
        return _matched(source, _borrowed(target, source, transpose), transpose)
    cornered = _in_corner(source, target) if ascendc else None
    if cornered is not None:
        return cornered
    if not transpose and _is_whole_place(source) is not _is_whole_place(target) and source.ndim == target.ndim:
        whole, part = (source, target) if _is_whole_place(source) else (target, source)
        if all(b <= a for a, b in zip(whole.extents, part.extents, strict=True)):
            shrunk = whole.resized(part.extents)
            source, target = (shrunk, part) if whole is source else (part, shrunk)
    return _matched(source, target, transpose)


def _continued(source: TileRef | HostElement, target: TileRef | HostElement
               ) -> tuple[TileRef | HostElement, TileRef | HostElement]:
    """Returns the operands of a copy whose tile begins with a row of a matrix and continues in the next rows.

    The buffer on chip has one axis and is as long as several rows. Other operands are returned as they are.
    """
    first, buffer = (source, target) if source.buffer.space == "gm" else (target, source)
    tensor = first.buffer
    if not (isinstance(first, HostElement) and isinstance(buffer, HostBuffer) and buffer.space in ("ub", "shared", "fragment")
            and tensor.space == "gm" and tensor.array.ndim == 2 and buffer.array.ndim == 1):
        return source, target
    (length,), row = buffer.array.shape, tensor.array.shape[1]
    begin, column = first.start()
    if column or not row or length <= row or length % row:
        return source, target
    flat = tensor.seen(tensor.array.reshape(-1), tensor.element)
    part = HostSlice(flat, (int(begin) * row,), (length,), (0,))
    return (part, buffer) if first is source else (buffer, part)


def _own_part(source: TileRef | HostElement, target: TileRef | HostElement
              ) -> tuple[TileRef | HostElement, TileRef | HostElement]:
    """Returns the operands of a copy between a tile of each Vector core and a matrix of the Cube core that consists of them.

    A Vector core copies its tile to or from its rows or columns of the matrix. Other operands are returned as they are.
    """
    core = current()
    if not core.counted or not isinstance(source, HostBuffer) or not isinstance(target, HostBuffer):
        return source, target
    matrix, own = (source, target) if source.space == "l0c" else (target, source)
    if own.space != "ub" or matrix.space != ("l0c" if matrix is source else "l1") or matrix.ndim != own.ndim:
        return source, target
    sizes, parts = list(matrix.extents), list(own.extents)
    axes = [axis for axis in range(matrix.ndim) if sizes[axis] != parts[axis]]
    if len(axes) != 1 or axes[0] < matrix.ndim - 2 or sizes[axes[0]] != core.counted[-1] * parts[axes[0]]:
        return source, target
    offsets = [0] * matrix.ndim
    offsets[axes[0]] = core.sub_block * parts[axes[0]]
    part = HostSlice(matrix, offsets, parts, range(matrix.ndim))
    return (part, own) if matrix is source else (own, part)


def _is_whole_place(memory: TileRef) -> bool:
    """Whether an operand is a whole buffer, or all of one of the matrices of a buffer in L0C."""
    whole = memory.buffer.extents
    return isinstance(memory, HostBuffer) or (memory.space == "l0c" and all(
        memory.offsets[axis] == 0 and memory.sizes[axis] == whole[axis] for axis in memory.kept))


def _borrowed(start: HostElement, peer: TileRef, transpose: bool) -> TileRef:
    """Returns the tile that begins at the element ``start`` and has the shape of the other operand of a copy."""
    sizes = list(peer.sizes if len(peer.sizes) <= len(start.indices) and not transpose else peer.extents)
    if transpose:
        sizes[-2:] = sizes[:-3:-1]
    return memory_of(start).right_aligned(sizes)


def _fewer_axes(start: HostElement, peer: TileRef) -> bool:
    return start.buffer.space == "gm" != peer.space and len([s for s in peer.extents if s != 1]) > len(start.indices)


def _corner(memory: TileRef, extents: Sequence[int]) -> TileRef:
    """Returns the first elements of a tile, in a tile with the given sizes.

    Args:
        memory: the tile.
        extents: the sizes of the last axes. Only the first index of all other axes is used, and these axes are removed.
    """
    dropped = memory.ndim - len(extents)
    return memory.resized([*(1,) * dropped, *extents]).with_axes(memory.kept[dropped:])


def _in_corner(source: TileRef, target: TileRef) -> tuple[TileRef, TileRef] | None:
    """Returns the operands of a copy between a slice of a global tensor and a larger whole on-chip buffer.

    For a load, the destination is the whole buffer, which is padded. For a store, the source is the part of the buffer that is
    stored. Returns None for any other copy.
    """
    part, whole = (source, target) if source.space == "gm" else (target, source)
    if isinstance(part, HostBuffer) or not _is_whole_place(whole) or whole.space == "gm" or part.space != "gm":
        return None
    small, room = (part, whole) if part.ndim == whole.ndim else (part.squeezed(), whole.squeezed())
    fits = small.ndim <= room.ndim and small.extents != room.extents and all(
        a <= b for a, b in zip(small.extents, room.extents[room.ndim - small.ndim:], strict=True))
    if not fits:
        return None
    return (small, room) if part is source else (_corner(room, small.extents), small)


def _matched(a: TileRef, b: TileRef, transpose: bool) -> tuple[TileRef, TileRef]:
    left = [*a.extents[:-2], *a.extents[:-3:-1]] if transpose else list(a.extents)
    if left == list(b.extents):
        return a, b
    if not transpose and a.squeezed().extents == b.squeezed().extents:
        return a.squeezed(), b.squeezed()
    for one, other in ((a, b), (b, a)):
        axes = one.squeezed().extents
        if not transpose and one.space == "gm" and isinstance(other, HostBuffer) and math.prod(axes) == other.array.size:
            seen = other.seen(other.view().reshape(axes), other.kind)
            return (one.squeezed(), seen) if one is a else (seen, one.squeezed())
    raise fail(f"source {a.describe()} and destination {b.describe()} have different shapes", "slice the larger side", "T131")


# --- copies --------------------------------------------------------------------------------------------------------------


@tiles("copy", "npuir_copy")
def copy(src: object, dst: object, *options: object, coalesced_width: object = None, size: object = None,
         pad_value: object = None,
         enable_relu: bool = False, transpose: bool = False, disable_tma: object = None, unit_flag: object = None,
         real_k: object = None, real_n: object = None, stride: object = None, jump: object = None,
         src_layout: object = None) -> None:
    """Copies a tile (``T.copy``) and converts its elements to the type of the destination, rounding to nearest even.

    ``unit_flag`` has no effect, since the interpreter executes one statement after the other.
    """
    if src_layout is not None:
        _load_scales(src, dst, src_layout, pad_value)
        return
    if jump is not None:
        _copy_two_rows(operand(src), operand(dst), size, integer(jump))
        return
    if stride is not None:
        _copy_rows_apart(operand(src), operand(dst), integer(stride), pad_value)
        return
    names = ["enable_relu", "transpose", "pad_value"] if options and isinstance(options[0], bool) else ["width", "size"]
    given = dict(zip(["size"] if options and isinstance(options[0], (list, tuple)) else names, options, strict=False))
    transposed = bool(given.get("transpose", transpose))
    relu = bool(given.get("enable_relu", enable_relu))
    others = (given.get("size", size), given.get("pad_value", pad_value), real_k, real_n)
    if current().threads and all(option is None for option in others) and isinstance(
            first := operand(src), HostElement) and isinstance(last := operand(dst), HostElement):
        if relu or transposed:
            raise fail(f"T.copy between two elements has no {'transpose' if transposed else 'enable_relu'}",
                       "write the element's expression, as in B[i] = T.max(A[i], 0)", "T145")
        last.store(first.load())  # in a kernel for a GPU: B[i] = A[i]
        return
    a, b = both_sides(src, dst, given.get("size", size), transpose=transposed)
    if real_k is not None or real_n is not None:
        wanted = list(b.extents)
        for axis, part in ((1 if b.space == "l0a" else 0, real_k), (1, real_n)):
            wanted[axis] = wanted[axis] if part is None else integer(part)
        a, b = a.resized(wanted[::-1] if transposed else wanted), b.resized(wanted)
    if (current().dialect == "ascendc" and a.space == "gm" and isinstance(b, HostSlice) and b.space == "l1"
            and a.ndim == b.ndim == len(b.offsets) == 2 and not any(b.offsets)):
        b = b.buffer  # the load fills the whole matrix: the rest becomes padding
    move(a, b, pad=given.get("pad_value", pad_value), relu=relu, transpose=transposed)


def _copy_two_rows(source: TileRef | HostElement, target: TileRef | HostElement, size: object, jump: int) -> None:
    """Loads the two rows that begin at an element of a tensor and ``jump`` elements from it, the first in the tensor first."""
    tile = memory_of(target)
    if size is not None:
        tile = tile.right_aligned(sizes_of(size))
    tile = tile.squeezed()
    tensor = source.buffer
    begin = int(np.ravel_multi_index(source.start() if isinstance(source, HostElement) else source.offsets, tensor.array.shape))
    flat = tensor.seen(tensor.array.reshape(-1), tensor.element)
    for row, start in enumerate(sorted((begin, begin + jump))):
        offsets, sizes = list(tile.offsets), list(tile.sizes)
        offsets[tile.kept[0]] += row
        sizes[tile.kept[0]] = 1
        line = HostSlice(tile.buffer, offsets, sizes, tile.kept[1:])
        move(HostSlice(flat, (start,), line.extents, (0,)), line)


def _load_scales(src: object, dst: object, layout: object, pad_value: object) -> None:
    """Copies scales from a global tensor to L1 (``T.copy(..., src_layout=...)``)."""
    core, launch = current(), running_launch()
    groups_first, is_right = _SCALE_LAYOUTS[str(layout)]
    target, source = as_matrix(dst), operand(src)
    if isinstance(source, HostElement):
        groups, lines = target.extents if is_right else target.extents[::-1]
        rank, shape = len(source.indices), source.buffer.array.shape
        pairs = rank > 2 and shape[-1] == 2
        sizes = [lines, groups // 2 if pairs else groups]
        tile = memory_of(source).right_aligned([*(sizes[::-1] if groups_first else sizes), *([2] if pairs else [])])
        tile = tile.with_axes(range(rank - (3 if pairs else 2), rank))
    else:
        tile = _of_three_axes(memory_of(source))
    require_scope(target)
    if not core.executes("cube"):
        return
    core.take_turn()
    launch.before_write(target)
    array, _ = tile.inside()
    bytes_ = np.asarray(array).view(np.uint8)
    if groups_first:
        bytes_ = bytes_.swapaxes(0, 1)
    bytes_ = bytes_.reshape(len(bytes_), -1)
    made = np.full(target.extents[::-1] if is_right else target.extents,
                   0 if pad_value is None else int(stored(pad_value, DType("uint8"))), np.uint8)
    made[:bytes_.shape[0], :bytes_.shape[1]] = bytes_
    target.view().view(np.uint8)[...] = made.T if is_right else made


def _of_three_axes(memory: TileRef) -> TileRef:
    """Returns a tile without the leading axes of size 1 before its last three."""
    kept = list(memory.kept)
    while len(kept) > 3 and memory.sizes[kept[0]] == 1:
        kept.pop(0)
    return memory.with_axes(kept)


def _copy_rows_apart(source: TileRef | HostElement, target: TileRef | HostElement, stride: int, pad: object) -> None:
    """Copies a matrix on chip from or to rows of a flat global tensor that are ``stride`` elements apart."""
    loads = source.buffer.space == "gm"
    flat, matrix = (source, target) if loads else (target, source)
    place, tile = memory_of(flat), memory_of(matrix).squeezed()
    for row in range(tile.extents[0]):
        offsets, sizes = list(tile.offsets), list(tile.sizes)
        offsets[tile.kept[0]] += row
        sizes[tile.kept[0]] = 1
        line = HostSlice(tile.buffer, offsets, sizes, tile.kept[1:])
        there = HostSlice(place.buffer, (place.offsets[0] + row * stride,), line.extents, (0,))
        move(*((there, line) if loads else (line, there)), pad=pad)


tiles("async_copy")(lambda src, dst, **_: copy(src, dst))  # the copy has ended when the statement has


def move(a: TileRef, b: TileRef, *, pad: object = None, relu: bool = False, transpose: bool = False) -> None:
    """Copies a tile, on the core that executes the copy.

    Elements past the end of a global tensor are read as ``pad`` and are not written.

    Args:
        a: the source.
        b: the destination.
        pad: the value of elements past the end of a global tensor; None for 0.
        relu: whether negative elements become 0.
        transpose: whether the last two axes are swapped.
    """
    core, launch = current(), running_launch()
    crosses = launch.fifo and a.space == "l0c" and b.space == "ub"
    if crosses and core.kind == "cube":
        launch.queue(core).append(a.view().copy())
    require_scope(a, b)
    pad = a.buffer.safe_value if pad is None else pad
    if not core.executes(_core_of(a, b)):
        return
    if crosses:
        b.buffer.root.pending.append((launch.queue(core), b, lambda found: _converted(found, b, relu, transpose)))
        return
    filled = b.space == "l1" and a.space == "ub" and core.kind != "all"
    if not (launch.fifo and filled) and any(side.buffer.is_shared for side in (a, b)):
        core.take_turn()
    if filled:
        launch.channels.writes(core, b)
    valid = None if transpose else valid_after(b, a)
    if launch.mask_tails and a.space == "gm" and pad is None and b is b.buffer.root and a.ndim == b.ndim and not transpose:
        valid = tuple(max(size, 1) for size in a.inside()[1])
    launch.before_write(b, valid)
    polls = a.space == "gm" and bool(core.polls)
    if polls:
        core.before_read(a.inside()[0], a.buffer.label)
    values = _loaded(a, b, pad)
    if a.kind == "int32" and b.kind == "float16" and core.scale is not None and {a.space, b.space} <= {"ub", "shared"}:
        values = to_float(values.astype(np.float32) * np.float32(core.scale), b.kind)
    values = _converted(values, b, relu, transpose)
    place, sizes = b.inside() if b.space == "gm" else (b.view(), b.extents)
    if b.space == "gm":
        core.acts()
    if 0 not in sizes:
        values = values[tuple(slice(0, size) for size in sizes)]
        place[...] = values if core.atomic is None or b.space != "gm" else core.atomic(place, values).astype(place.dtype)
    if polls:
        have_polled(a.inside()[0], (core.kind, core.block, core.vector))


def _converted(values: Array, b: TileRef, relu: bool, transpose: bool) -> Array:
    values = values.swapaxes(-1, -2) if transpose else values
    return cast_elements(np.maximum(values, values.dtype.type(0)) if relu else values, b.kind)


def _loaded(a: TileRef, b: TileRef, pad: object) -> Array:
    """Returns the elements that a copy writes, in the shape of the destination.

    Elements past the end of a tensor, and elements after the source if the destination is larger, are padding.
    """
    if a.space != "gm":
        values = a.view()
        values = values.copy() if np.shares_memory(values, b.buffer.array) else values
        return values.reshape((*(1,) * (b.ndim - a.ndim), *a.extents)) if a.ndim < b.ndim else values
    found, sizes = a.inside()
    extents = (*(1,) * (b.ndim - a.ndim), *a.extents)
    larger = b.ndim == len(extents) and all(x <= y for x, y in zip(extents, b.extents, strict=True))
    wanted = b.extents if larger else a.extents
    if sizes == tuple(wanted):
        return found
    values = np.full(wanted, 0 if pad is None else stored(pad, a.kind), a.kind.numpy)
    if 0 not in sizes:
        values[(0,) * (values.ndim - len(sizes)) + tuple(slice(0, size) for size in sizes)] = found
    return values


def _core_of(a: TileRef, b: TileRef) -> str:
    """Returns the kind of core that executes a copy.

    This is the Vector core if an operand is in UB or if no operand is in a memory of the Cube core, otherwise the Cube core.
    """
    return "vector" if "ub" in (a.space, b.space) or not CUBE_MEMORIES & {a.space, b.space} else "cube"


@tiles("im2col", "c2d_im2col")
def im2col(img: object, col: object, nhw_step: object, c_step: object, kernel: int, stride: int, dilation: int, pad: int,
           eviction_policy: object = None, annotations: object = None) -> None:
    """Writes a tile of the matrix of a convolution's patches (``T.im2col``): for each output pixel and each element of the
    kernel the element of the image that they multiply, 0 outside of the image and of the matrix."""
    image, tile = memory_of(img), memory_of(col)
    if not current().executes(_core_of(image, tile)):
        return
    if tile.buffer.is_shared:
        current().take_turn()
    running_launch().before_write(tile)
    padded = np.pad(image.view(), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    across = dilation * (kernel - 1) + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, (across, across), (1, 2))[:, ::stride, ::stride]
    patches = windows[..., ::dilation, ::dilation].transpose(0, 1, 2, 4, 5, 3).reshape(-1, kernel * kernel * image.extents[3])
    rows, columns = tile.extents
    top, left = integer(nhw_step) * rows, integer(c_step) * columns
    found = patches[top : top + rows, left : left + columns]
    values = np.zeros((rows, columns), found.dtype)
    values[: found.shape[0], : found.shape[1]] = found
    tile.view()[...] = values


@tiles("tile.im2col")
def load_patches(dst: object, src: object, image: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int],
                 dilation: tuple[int, int], pad: tuple[int, int, int, int], m_start: object, k_start: object, m_extent: object,
                 k_extent: object) -> None:
    """Writes a part of the matrix of a convolution's patches to L0A (``T.tile.im2col``), pixel by pixel and 0 outside of the
    image and of the matrix."""
    target, source = memory_of(dst), memory_of(src)
    row, column, rows, columns = map(integer, (m_start, k_start, m_extent, k_extent))
    _check_patches(target, source, image, kernel, stride, dilation, pad)
    channels = source.extents[1]
    for name, value, unit, least in (("m_start", row, 16, 0), ("k_start", column, channels, 0), ("m_extent", rows, 1, 1),
                                     ("k_extent", columns, channels, 1)):
        if value < least or value % unit:
            raise fail(f"T.tile.im2col: {name} is {value}", f"{name} must be a multiple of {unit}, at least {least}",
                       "T502" if name.endswith("start") else "T145")
    if rows > target.extents[0] + -target.extents[0] % 16 or columns > target.extents[1] + -target.extents[1] % channels:
        raise fail(f"T.tile.im2col: {target.describe()} has no {rows} rows and {columns} columns", "load a smaller part",
                   "T131")
    require_scope(target)
    if not current().executes("cube"):
        return
    running_launch().before_write(target)
    padded = np.pad(source.view()[: image[0] * image[1]].reshape(*image, channels), (pad[2:], pad[:2], (0, 0)))
    over = [distance * (size - 1) + 1 for distance, size in zip(dilation, kernel, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, over, (0, 1))[:: stride[0], :: stride[1]]
    patches = windows[..., :: dilation[0], :: dilation[1]].transpose(0, 1, 3, 4, 2).reshape(-1, math.prod(kernel) * channels)
    found = patches[row:row + rows + -rows % 16, column:column + columns]
    part = target.view()[:rows + -rows % 16, :columns]
    part[...] = 0
    part[:len(found), :found.shape[1]] = found[:len(part)]


def _check_patches(target: TileRef, source: TileRef, image: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int],
                   dilation: tuple[int, int], pad: tuple[int, int, int, int]) -> None:
    """Checks the operands and the constants of ``T.tile.im2col``."""
    what = "T.tile.im2col"
    if source.space not in ("l1", "shared") or target.space != "l0a":
        raise fail(f"{what}: {source.describe()} is not in L1, or {target.describe()} not in L0A",
                   "allocate them with T.alloc_L1 and T.alloc_L0A", "T122")
    given: tuple[int, ...]
    for given, count, least in ((image, 2, 1), (kernel, 2, 1), (stride, 2, 1), (dilation, 2, 1), (pad, 4, 0)):
        if not isinstance(given, (list, tuple)) or len(given) != count or any(
                type(each) is not int or each < least for each in given):
            raise fail(f"{what}: {given!r} is not {count} integers of at least {least}",
                       "give (height, width), and (left, right, top, bottom) for the padding", "T150")
    padded = image[0] + pad[2] + pad[3], image[1] + pad[0] + pad[1]
    if any(distance * (size - 1) >= whole for distance, size, whole in zip(dilation, kernel, padded, strict=True)):
        raise fail(f"{what}: a kernel of {kernel} is larger than the padded image of {padded}", "pad more", "T150")
    if source.kind != target.kind:
        raise fail(f"{what}: the element types differ: {source.kind}, {target.kind}", "give both one element type", "T110")
    if source.ndim != 2 or source.extents[1] * source.kind.nbytes != 32 or source.extents[0] < math.prod(image):
        raise fail(f"{what}: {source.describe()} does not have {math.prod(image)} pixels of 32 bytes",
                   "load as many channels as have 32 bytes", "T111")
    if target.ndim != 2:
        raise fail(f"{what}: {target.describe()} is not a matrix", "pass a matrix in L0A", "T131")


@tiles("load_nd2nz", "npuir_load_nd2nz", "store_nz2nd", "npuir_store_nz2nd")
def load_nd2nz(src: object, dst: object, size: object = None) -> None:
    """Copies a matrix between a global tensor and a memory of the Cube core (``T.load_nd2nz`` and ``T.store_nz2nd``)."""
    move(*both_sides(src, dst, size))


@tiles("copy_pa")
def copy_pa(dst: object, kv: object, block_table: object, block_size: object, head_num: object, head_dim: object,
            kv_stride: object, max_block_num_per_batch: object, act_head_dim: object, copy_row_num: object,
            copy_row_num_align: object, b_idx: object, n2_idx: object, s2_idx: object, d_idx: object) -> None:
    """Copies rows of a sequence from the pages of a cache in GM, whose numbers a table has, to a matrix in L1."""
    core, launch, target, cache, table = current(), running_launch(), memory_of(dst), memory_of(kv), memory_of(block_table)
    size, across, columns, rows, start = map(integer, (block_size, head_dim, act_head_dim, copy_row_num, s2_idx))
    require_scope(target)
    if not core.executes("cube"):
        return
    if any(side.buffer.is_shared for side in (target, cache, table)):
        core.take_turn()
    launch.before_write(target)
    elements, numbers, matrix = cache.flat(), table.flat(), target.view().reshape(-1, columns)
    for row in range(rows):
        page, inside = divmod(start + row, size)
        entry = integer(b_idx) * integer(max_block_num_per_batch) + page
        number = int(numbers[entry]) if 0 <= entry < numbers.size else -1
        at = number * integer(kv_stride) + (integer(n2_idx) * size + inside) * across + integer(d_idx)
        if at < 0 or row >= len(matrix):
            raise fail(f"row {start + row} of the sequence is not in {cache.describe()}",
                       "its page, or the entry of the block table, does not exist", "T502")
        found = elements[at:at + columns]
        matrix[row, :found.size], matrix[row, found.size:] = found, 0


@tiles("store_fixpipe", "npuir_store_fixpipe")
def store_fixpipe(src: object, dst: object, size: object = None, enable_nz2nd: bool = False, channel_split: bool = False,
                  pre_relu_mode: str = "") -> None:
    """Copies a matrix from L0C to a global tensor (``T.store_fixpipe``)."""
    move(*both_sides(src, dst, size), relu=pre_relu_mode == "relu")


# --- products ------------------------------------------------------------------------------------------------------------


def as_matrix(value: object) -> TileRef:
    """Returns an operand of a product with its two axes; leading axes of size 1 are dropped."""
    memory = memory_of(value)
    kept = list(memory.kept)
    while len(kept) > 2 and memory.sizes[kept[0]] == 1:
        kept.pop(0)
    if len(kept) != 2:
        raise fail(f"{memory.describe()} is not a matrix", "slice the operand to two axes", "T120")
    return memory.with_axes(kept)


def product(a: object, b: object, c: object, init: object, transpose_a: bool, transpose_b: bool, size: object = None) -> None:
    """Executes ``c += a @ b``, or ``c = a @ b`` if ``init`` is true, with sums in float32 or int32.

    Args:
        a: the left matrix.
        b: the right matrix.
        c: the matrix of the sums.
        init: whether the old contents of ``c`` are ignored.
        transpose_a: whether ``a`` is transposed first.
        transpose_b: whether ``b`` is transposed first.
        size: the sizes M, K and N of the product; None if the matrices determine them.
    """
    multiplied(a, b, c, init, transpose_a, transpose_b, _sums, size=size)


def _sums(x: Array, y: Array, others: tuple[Array, ...]) -> Array:
    """Returns the product of two matrices in float32, or in int32 for integers."""
    random = RANDOM.get()
    if x.dtype.kind in "iu" or x.dtype == DType("int4").numpy:
        # sums of products of 8 bits are exact in float64, whose products are faster in NumPy
        return (x.astype(np.float64) @ y.astype(np.float64)).astype(np.int64).astype(np.int32)
    if random is None:
        return x.astype(np.float32) @ y.astype(np.float32)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    noise = random.standard_normal((x.shape[0], y.shape[1])) * (np.abs(wide_x) @ np.abs(wide_y))
    return finish(wide_x @ wide_y + noise * (np.finfo(np.float32).eps / 2 * x.shape[1] ** 0.5), DType("float32"))


def multiplied(a: object, b: object, c: object, init: object, transpose_a: bool, transpose_b: bool,
               compute: Callable[[Array, Array, tuple[Array, ...]], Array], others: Sequence[object] = (),
               size: object = None) -> None:
    """Executes ``c += compute(a, b, others)``, or ``c = ...`` if ``init`` is true, on the Cube core.

    Args:
        a, b, c, init, transpose_a, transpose_b, size: as for :func:`product`.
        compute: returns the product of the matrices [M, K] and [K, N]; it also gets the elements of ``others``.
        others: further matrices in L1.
    """
    core, launch = current(), running_launch()
    if core.threads and isinstance(c, HostBuffer):
        c.widen()
    left, right, result = as_matrix(a), as_matrix(b), as_matrix(c)
    more = [as_matrix(value) for value in others]
    if launch.probing:
        launch.roles.update({memory.buffer.root.key: role
                             for memory, role in (*((one, "l1") for one in (left, right, *more)), (result, "l0c"))
                             if memory.space in ("shared", "fragment")})
    require_scope(left)
    if not core.executes("cube"):
        return
    if size is not None:
        m, k, n = sizes_of(size)
        left = left.resized((k, m) if transpose_a else (m, k))
        right, result = right.resized((n, k) if transpose_b else (k, n)), result.resized((m, n))
    for memory in (left, right, *more):
        _receive(core, memory)
    if not launch.fifo:
        core.take_turn()
    launch.before_write(result)
    x, y, target = left.view(), right.view(), result.view()
    x, y = x.T if transpose_a else x, y.T if transpose_b else y
    if x.shape[1] != y.shape[0] or (x.shape[0], y.shape[1]) != target.shape:
        raise fail(f"the shapes of A {x.shape}, B {y.shape} and C {target.shape} do not fit a matrix product",
                   "A must be M x K, B must be K x N and C must be M x N", "T120")
    made = compute(x, y, tuple(one.view() for one in more)).astype(target.dtype)
    begins = bool(init) if isinstance(init, _PLAIN) else bool(truth(init).single())
    target[...] = made if begins else target + made


def _receive(core: Core, memory: TileRef) -> None:
    """Prepares the read of an operand of a product: waits for the tiles that another core sends to it.

    If nothing has written the operand yet, another core must write it, so the cores must be executed concurrently.
    """
    launch, root = running_launch(), memory.buffer.root
    unwritten = root not in launch.written and memory.space in ("shared", "l1")
    if core.kind != "all":
        if launch.channels.is_open(root.key):
            launch.channels.reads(core, memory)
    elif launch.probing and (unwritten or launch.channels.is_open(root.key)):
        launch.channels.open(root.key, core.site())
    elif unwritten:
        raise NeedsCores


_GPU = ("transpose_A", "transpose_B", "policy", "clear_accum")
"""The optional parameters of ``T.gemm`` in the order of TileLang for GPUs, which applies if the first optional argument is a
bool."""


def _product(parameters: Sequence[str], gpu: bool, A: object, B: object, C: object, *options: object, **keywords: object
             ) -> None:
    """Executes a matrix product.

    Args:
        parameters: the names of the operation's arguments after A, B and C, in order.
        gpu: whether the arguments can also be in the order of TileLang for GPUs.
        A, B, C: the matrices.
        options, keywords: the other arguments.
    """
    names = _GPU if gpu and options and isinstance(options[0], bool) else parameters
    given = {**keywords, **dict(zip(names, options, strict=False))}
    starts = [given.get(name, False) for name in ("initC", "clear_accum", "init")]
    condition = next((start for start in starts if not isinstance(start, _PLAIN)), any(starts))
    transposed = [bool(given.get(first)) or bool(given.get(second))
                  for first, second in (("a_transpose", "transpose_A"), ("b_transpose", "transpose_B"))]
    product(A, B, C, condition, transposed[0], transposed[1], given.get("size"))


tiles("gemm")(partial(_product, ("size", "initC", "a_transpose", "b_transpose"), True))
tiles("npuir_dot")(partial(_product, ("size", "initC", "a_transpose", "b_transpose"), False))


@tiles("gemm_v0")
def gemm_v0(A: object, B: object, C: object, transpose_A: bool = False, transpose_B: bool = False, init: object = False,
            kL0Size: int = 128, n_actual: object = None) -> None:
    """Executes a matrix product of which ``n_actual`` columns are computed if B is transposed (``T.gemm_v0``)."""
    size = None
    if n_actual is not None and transpose_B:
        size = _sizes(A, C, None, n_actual, transpose_a=bool(transpose_A))
    product(A, B, C, init, bool(transpose_A), bool(transpose_B), size)


@tiles("mma", "npu_gemm")
def mma(A: object, B: object, C: object, init: object = False, n_actual: object = None, unit_flag: object = None,
        k_actual: object = None) -> None:
    """Executes a matrix product of the first ``k_actual`` elements along k and the first ``n_actual`` columns (``T.mma``)."""
    product(A, B, C, init, transpose_a=False, transpose_b=False, size=_sizes(A, C, k_actual, n_actual, transpose_a=False))


@tiles("gemm_v0_fixp")
def gemm_v0_fixp(A: object, B: object, C: object, dst: object, k_actual: object = None, transpose_A: bool = False,
                 transpose_B: bool = False, init: object = False, n_actual: object = None) -> None:
    """Executes a matrix product in parts of as many columns as C has, and copies each part to ``dst`` (``T.gemm_v0_fixp``)."""
    right, part, result = as_matrix(B), as_matrix(C), as_matrix(dst)
    for first in range(0, result.extents[1], part.extents[1]):
        width = min(part.extents[1], result.extents[1] - first)
        across, slot = _columns(right, 0 if transpose_B else 1, first, width), _columns(part, 1, 0, width)
        size = _sizes(A, slot, k_actual, n_actual if transpose_B else None, transpose_a=bool(transpose_A))
        product(A, across, slot, init, bool(transpose_A), bool(transpose_B), size)
        stored_columns = size[2]
        move(_columns(slot, 1, 0, stored_columns), _columns(result, 1, first, stored_columns))


def _sizes(a: object, c: object, k: object, n: object, *, transpose_a: bool) -> list[int]:
    """Returns the sizes M, K and N of a product; ``k`` and ``n`` are the given ones, or None for those of the matrices."""
    rows, columns = as_matrix(c).extents
    depth = as_matrix(a).extents[0 if transpose_a else 1]
    return [rows, depth if k is None else integer(k), columns if n is None else integer(n)]


def _columns(matrix: TileRef, axis: int, first: int, count: int) -> TileRef:
    """Returns ``count`` rows (axis 0) or columns (axis 1) of a matrix, from the number ``first`` on."""
    offsets, sizes = list(matrix.offsets), list(matrix.sizes)
    offsets[matrix.kept[axis]] += first
    sizes[matrix.kept[axis]] = count
    return HostSlice(matrix.buffer, offsets, sizes, matrix.kept)


# --- atomic updates of global tensors ------------------------------------------------------------------------------------


@known(*(prefix + name for prefix in ("", "v", "npuir_") for name in ("atomic_add", "atomic_addx2", "atomic_addx4")),
       "tile.atomic_add")
def atomic_add(dst: object, src: object, size: object = None, *, memory_order: str | None = None) -> None:
    """Adds a tile to a tile of a global tensor, or a number to an element of a global tensor (``T.atomic_add``)."""
    _update(np.add, dst, src, size)


@known("atomic_max")
def atomic_max(dst: object, src: object, size: object = None, *, memory_order: str | None = None) -> None:
    """Replaces elements of a global tensor by those of a tile, or by a number, that are larger (``T.atomic_max``)."""
    _update(np.maximum, dst, src, size)


@known("atomic_min")
def atomic_min(dst: object, src: object, size: object = None, *, memory_order: str | None = None) -> None:
    """Replaces elements of a global tensor by those of a tile, or by a number, that are smaller (``T.atomic_min``)."""
    _update(np.minimum, dst, src, size)


def _update(combine: np.ufunc, dst: object, src: object, size: object) -> None:
    """Combines a tile with a tile of a global tensor, or a number with an element of a global tensor."""
    core, launch = current(), running_launch()
    if core.points is not None:
        raise NeedsPoints
    place = operand(dst)
    if isinstance(place, HostElement) and place.buffer.space == "gm" and size is None and not isinstance(src, TileRef):
        if core.touches(shared=True, writes=True):
            launch.before_write(memory_of(place))
            array, start = place.buffer.array, place.start()
            array[start] = combine(array[start], stored(src, place.kind))
        return
    source, target = operand(src), place
    if source.buffer.space == "gm" and target.buffer.space != "gm":  # older scripts pass (src, dst)
        source, target = target, source
    a, b = both_sides(source, target, size)
    if core.executes(_core_of(a, b)):
        core.take_turn()
        launch.before_write(b)
        tile, sizes = b.inside()
        if 0 not in sizes:
            new = cast_elements(a.view(), b.kind)[tuple(slice(0, part) for part in sizes)]
            tile[...] = combine(tile, new).astype(tile.dtype)


@tiles("set_atomic")
def set_atomic(kind: str, dtype: object = "float32") -> None:
    """Sets how copies of the core combine with the elements of a global tensor (``T.set_atomic``)."""
    current().atomic = {"add": np.add, "max": np.maximum, "min": np.minimum, "none": None}[kind]


tiles("set_atomic_add")(lambda dtype="float32": set_atomic("add", dtype))
tiles("set_atomic_none")(lambda dtype="float32": set_atomic("none", dtype))


# --- reducers ------------------------------------------------------------------------------------------------------------

_TILE_NAMES = {"sum": "add", "max": "max", "min": "min", "bitand": "and", "bitor": "or", "bitxor": "xor"}


@known("alloc_reducer")
def alloc_reducer(shape: object, dtype: object, op: str = "sum", replication: str | None = None) -> HostBuffer:
    """Allocates a reducer (``T.alloc_reducer``)."""
    made = allocate(shape, dtype, "fragment")
    made.operation = op
    return made


@tiles("reducer_init")
def reducer_init(reducer: HostBuffer, init: object = None) -> None:
    """Writes the initial value to every element of a reducer (``T.reducer_init``)."""
    current().call("fill", (reducer, _neutral(reducer.operation, reducer.kind) if init is None else init), {})


@known("reducer_update")
def reducer_update(target: HostElement, value: object) -> None:
    """Combines a value with an element of a reducer (``T.reducer_update``)."""
    target.store(binary(_TILE_NAMES[target.buffer.operation], target, cast(value, target.kind)))


@tiles("finalize_reducer")
def finalize_reducer(reducer: HostBuffer, dst: object = None, batch: int = 1, annotations: object = None) -> None:
    """Copies the elements of a reducer to the destination, if there is one (``T.finalize_reducer``)."""
    if dst is not None:
        move(reducer, memory_of(dst))


def _neutral(operation: str, kind: DType) -> float:
    if operation in ("max", "min"):
        low, high = (-np.inf, np.inf) if kind.is_float else limits(kind)
        return low if operation == "max" else high
    return (-1 if kind.is_signed else limits(kind)[1]) if operation == "bitand" else 0
