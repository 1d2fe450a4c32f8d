"""``T.copy``, ``T.reshape``, ``T.view`` and ``T.vbitcast``: copies between memories, and views of a buffer with another shape
or element type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import MemRefType, UnitAttr
from xdsl.ir import Operation

from tilelang_npu.dialects import tile
from tilelang_npu.errors import ARRAY_OF_THE_HOST, TileError, is_array, shown
from tilelang_npu.language.dequantise import is_dequantised, scaled
from tilelang_npu.language.elements import ElementType, Extents, element_type, sizes_of
from tilelang_npu.language.operands import (
    as_memory,
    bits_of,
    check_inside,
    element_count,
    is_dense,
    overlap,
    place_of,
    right_aligned,
    same_shape,
    scalar_operand,
    sizes_argument,
    squeezed_axes,
    view,
    with_axes,
)
from tilelang_npu.language.scale_loads import load_scales
from tilelang_npu.language.scratch import use_scratch
from tilelang_npu.language.unit_flag_argument import unit_flag_mode
from tilelang_npu.ops import DType
from tilelang_npu.traced import arithmetic, ir_types
from tilelang_npu.traced.buffers import Addressable, Buffer, Element, Region, Sizes, Tile, same_extent, shape_text
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent, extent
from tilelang_npu.traced.symbols import Number, Sym, polynomial

WHAT = "T.copy"


def copy(src: Tile, dst: Tile, *options: object, coalesced_width: object = None, size: Sizes | None = None,
         pad_value: object = None, enable_relu: bool = False, transpose: bool = False, disable_tma: object = None,
         tmp: Tile | None = None, unit_flag: int | None = None, real_k: Number | None = None, real_n: Number | None = None,
         stride: Number | None = None, jump: Number | None = None, src_layout: str | None = None) -> None:
    """Copy the tile ``src`` to ``dst``, and convert its elements to the element type of ``dst``.

    An operand is a whole buffer or tensor, a slice ``A[i:j, k:l]``, or an element ``A[i, j]``, which is the first element of a
    tile. The shape of such a tile is that of the other operand, along the last axes of ``A``. Both tiles must have the same
    shape, apart from axes of size 1; only a whole buffer on chip can be larger than the slice that is the other operand (see
    below). In ascendc, a buffer in UB can have fewer axes than the tile of a global tensor, each of which is several of its
    axes: (8, 16) for (2, 4, 16). ``dst`` is written. A conversion rounds to nearest even.

    A tile can extend beyond the end of a global tensor, but must not start before its first element. Elements beyond the end
    are read as ``pad_value`` and are not written.

    If one operand is a whole buffer on chip and the other a smaller slice, the dialects differ. In npuir, the copy has the size
    of the slice and uses the first elements of the buffer along each axis, and the rest of ``dst`` keeps its contents; the
    slice is of a global tensor or of a buffer. In ascendc, the slice must be of a global tensor; the copy fills the first
    elements along each axis, and the rest of a loaded buffer becomes ``pad_value``; the same holds for a load into a slice that
    starts at the first element of a matrix in L1. A buffer with one axis that is as long as several rows of a matrix is copied
    from or to all of them in ascendc, if the tile starts with a row (T116). If a matrix in L1 or L0C has twice the rows or
    columns of a buffer in UB, a Vector core copies the buffer to or from its half in ascendc. In npuir, ``T.copy`` can be in
    the body of ``T.Parallel``, which executes it in each iteration. In a kernel for a GPU (``threads=``), ``T.copy(A[i],
    B[j])`` copies one element, as ``B[j] = A[i]`` does.

    Example: ``T.copy(A[row, 0], a)``

    Args:
        src: the tile that is read, in GM or on chip.
        dst: the tile that is written. If both are in GM, the tile is copied through UB.
        options: further positional arguments: a list is ``size``; a bool is ``enable_relu``, which ``transpose`` and
            ``pad_value`` can follow; in npuir, an integer is ``coalesced_width``, which ``size`` can follow.
        size: the shape of the tile, one number for each of the last axes; both operands then give only the first element.
        pad_value: the value of elements beyond the end of the global tensor ``src``; by default that of
            ``T.annotate_safe_value``, or 0.
        enable_relu: whether negative elements become 0.
        transpose: whether the last two axes are swapped.
        coalesced_width, disable_tma: have no effect.
        tmp: scratch memory in UB of the caller, whose contents are undefined after the call.
        unit_flag: for a copy from L0C to GM, L1 or UB: ``0b11`` to take the blocks of L0C that a ``T.mma`` with a unit flag
            passes on, without an event between the two, and to give them back. 0 or None for no unit flags.
        real_k: for a load from L1 to L0A or L0B: how many elements along k are loaded. L0A and L0B then have the layout that
            ``T.mma(k_actual=real_k)`` multiplies. The number need not be constant.
        real_n: for a load from L1 to L0B: how many columns are loaded, for ``T.mma(n_actual=real_n)``.
        stride: the distance between rows of a tile in a flat global tensor, in elements. The tensor must have one axis, and the
            tile at least two; the operand then gives the first element. The number need not be constant.
        jump: for a load of a tile of two rows: the distance in the tensor, in elements, from the element ``src`` to the first
            element of the other row. It may be negative and need not be constant. The row that is first in the tensor becomes
            the first row of the tile. Row ends of the tensor do not matter.
        src_layout: for a load of scales (``T.alloc_L1_scale_a``, ``T.alloc_L1_scale_b``) from a global tensor: how the tensor
            has them, ``MX_A_ND``, ``MX_A_DN``, ``MX_B_ND`` or ``MX_B_DN``; see ``T.gemm_mx``. Of the other arguments, only
            ``pad_value`` is possible then.

    Raises:
        TileError: T131, the shapes differ, or neither operand has a shape; T112, the operands share
            elements; T130, a tile is not inside its buffer on chip; T231, ``pad_value`` is given and the source
            is on chip, or ``enable_relu`` or ``transpose`` is given and both operands are in GM, or ``unit_flag``, ``real_k``,
            ``real_n``, ``stride``, ``jump`` or ``src_layout`` is given for a copy between other memories; T110, with
            ``src_layout``, the elements are no scales; T145, an argument has no such value;
            S307, while the kernel runs, a pipe waits for blocks of L0C that the other pipe does not pass on.
    """
    builder = Builder.running(WHAT)
    builder.require_kernel(WHAT)
    names = ["enable_relu", "transpose", "pad_value"] if options and isinstance(options[0], bool) else ["width", "size"]
    if options and isinstance(options[0], (list, tuple)):
        names = ["size"]
    if len(options) > len(names):
        raise TileError(f"{WHAT} takes at most {2 + len(names)} positional arguments here, not {2 + len(options)}", code="T145",
                        help="name the further arguments")
    given = dict(zip(names, options, strict=False))
    region, width, pad_value = given.get("size", size), given.get("width"), given.get("pad_value", pad_value)
    flags = {"enable_relu": given.get("enable_relu", enable_relu), "transpose": given.get("transpose", transpose)}
    if width is not None and (builder.dialect == "ascendc" or isinstance(width, bool) or not isinstance(width, int)):
        raise TileError(f"{WHAT}: the third argument is {width!r}", code="T145",
                        help="it is enable_relu (True or False), a coalesced_width or a list of sizes; name the others, as in"
                             " pad_value=0.0")
    for name, flag in flags.items():
        if not isinstance(flag, (bool, int)):
            raise TileError(f"{WHAT}: {name} is {flag!r}", code="T145", help=f"{name} must be True or False")
    relu, transposed = bool(flags["enable_relu"]), bool(flags["transpose"])

    flag = unit_flag_mode(WHAT, unit_flag)
    source, target = operand(WHAT, "source", src), operand(WHAT, "destination", dst)
    if builder.threads and isinstance(source, Element) and isinstance(target, Element) and not any(
            value is not None for value in (region, pad_value, stride, jump, flag, real_k, real_n, src_layout)):
        if relu or transposed:
            raise TileError(f"{WHAT} between two elements has no {'transpose' if transposed else 'enable_relu'}", code="T145",
                            help="write the element's expression, as in B[i] = T.max(A[i], 0)")
        target.store(source.load())  # as TileLang does: B[i] = A[i]
        return
    use_scratch(WHAT, tmp, src, dst, flat=False)
    if src_layout is not None:
        others = (width, region, stride, jump, flag, real_k, real_n)
        if relu or transposed or any(value is not None for value in others):
            raise TileError(f"{WHAT}: src_layout is given with another argument than pad_value", code="T145",
                            help="remove the other arguments")
        load_scales(builder, WHAT, source, target, src_layout, pad_value)
        return
    if jump is not None:
        if width is not None or stride is not None or relu or transposed or pad_value is not None or flag is not None:
            raise TileError(f"{WHAT}: jump is given with coalesced_width, stride, enable_relu, transpose, pad_value or "
                            "unit_flag", code="T145", help="give jump and size alone")
        _load_two_rows(builder, source, target, region, jump)
        return
    if stride is not None:
        source, target = _with_rows_apart(builder, source, target, stride)
    if builder.dialect == "ascendc" and region is None and not transposed:
        source, target = _continued(builder, *_own_part(builder, *_unfolded(builder, source, target)))
    a, b = extents(builder, WHAT, source, target, region, transpose=transposed, corner=builder.dialect == "ascendc")
    if real_k is not None or real_n is not None:
        a, b = _part_for_product(builder, a, b, real_k, real_n, transpose=transposed)
    if flag is not None and a.buffer.space != "cc":
        raise TileError(f"{WHAT}: unit_flag is given, and the source {a.describe()} is not in L0C", code="T231",
                        help="remove unit_flag: unit flags pass blocks of L0C from a product to the copy that stores them")
    if a.buffer.space == b.buffer.space == "gm" and (relu or transposed):
        raise TileError(f"{WHAT} from global {a.name} to global {b.name} goes through UB, which has no "
                        f"{'transpose' if transposed else 'enable_relu'}", code="T231",
                        help="copy the tile to a buffer in UB, use "
                             f"{'T.transpose' if transposed else 'T.tile.relu or T.vrelu'} there, and copy the result to GM")
    check_inside(WHAT, a)
    check_inside(WHAT, b)
    if builder.dialect == "ascendc" and a.buffer.space == "gm" and _is_front(b) and a.ndim == b.ndim:
        b = b.buffer  # the load fills the whole matrix: the rest becomes padding
    if not transposed and overlap(a, b) in ("same", "partial"):
        raise TileError(f"{WHAT}: source {a.describe()} and destination {b.describe()} share elements", code="T112",
                        help="copy to another buffer")
    pad_value = a.buffer.safe_value if pad_value is None else pad_value
    if pad_value is not None and a.buffer.space != "gm":
        raise TileError(f"{WHAT}: pad_value is for elements past the end of a global tensor, and {a.describe()} is on the chip",
                        code="T231", help="remove pad_value, or fill the destination first")
    if a.dtype.stored != a.dtype or b.dtype.stored != b.dtype:
        _require_plain_bytes(a, b, transposed or relu or pad_value is not None)
    pad = None if pad_value is None else scalar_operand(builder, WHAT, "pad_value", pad_value, a.dtype)
    if {a.buffer.space, b.buffer.space} <= {"ub", "shared"} and is_dequantised(builder, a, b):
        scaled(builder, WHAT, a, b, "rint")
        return
    loaded, stored = a.ssa(builder), b.ssa(builder)
    if a.ndim < b.ndim:
        loaded = view(builder, loaded, [*(1,) * (b.ndim - a.ndim), *a.extents])
    if isinstance(target, Region) and isinstance(stored.owner, tile.RegionOp):
        stored.owner.attributes[tile.SLICE] = UnitAttr()
    builder.tile_op(tile.CopyOp(loaded, stored, pad, transpose=transposed, relu=relu, unit_flag=flag), WHAT,
                    by_point=builder.dialect == "npuir")


def _own_part(builder: Builder, source: Addressable | Element, target: Addressable | Element,
              ) -> tuple[Addressable | Element, Addressable | Element]:
    """Returns the operands of a copy between a tile of each Vector core and a tile of the Cube core that consists of them.

    If a matrix in L1 or L0C has as many rows, or as many columns, as the tiles in UB of all Vector cores together, a Vector
    core copies its tile to or from its part of the matrix. Other operands are returned as they are.
    """
    matrix, own = (source, target) if source.buffer.space == "cc" else (target, source)
    if builder.vector_core is None or not isinstance(matrix, Buffer) or not isinstance(own, Buffer):
        return source, target
    if own.space != "ub" or matrix.space != ("cc" if matrix is source else "cbuf") or matrix.ndim != own.ndim:
        return source, target
    index, cores = builder.vector_core
    axes = [axis for axis, (whole, part) in enumerate(zip(matrix.sizes, own.sizes, strict=True)) if whole != part]
    if len(axes) != 1:
        return source, target
    (axis,), size = axes, own.sizes[axes[0]]
    if not isinstance(size, int) or matrix.sizes[axis] != cores * size or axis < matrix.ndim - 2:
        return source, target
    offsets: list[Extent] = [0] * matrix.ndim
    offsets[axis] = extent(builder, index * size)
    part = Region(matrix, offsets, own.sizes, tuple(range(matrix.ndim)))
    return (part, own) if matrix is source else (own, part)


def _unfolded(builder: Builder, source: Addressable | Element, target: Addressable | Element,
              ) -> tuple[Addressable | Element, Addressable | Element]:
    """Returns the operands of a copy with a view of the buffer on chip that has the axes of the tile of a global tensor.

    So a tile (2, 4, 16) of a tensor can be copied to and from a buffer (8, 16) in UB. Other operands are returned as they are.
    """
    for tensor, buffer in ((source, target), (target, source)):
        if not isinstance(tensor, Addressable) or tensor.buffer.space != "gm" or not isinstance(buffer, Buffer):
            continue
        axes = [size for size in tensor.extents if not (isinstance(size, int) and size == 1)]
        rows = [size for size in buffer.extents if not (isinstance(size, int) and size == 1)]
        if buffer.space in ("ub", "shared", "fragment") and len(axes) > len(rows) > 0 and _folds(axes, rows):
            seen = _reshaped(builder, WHAT, buffer, axes, buffer.label)
            return (source, seen) if tensor is source else (seen, target)
    return source, target


def _continued(builder: Builder, source: Addressable | Element, target: Addressable | Element,
               ) -> tuple[Addressable | Element, Addressable | Element]:
    """Returns the operands of a copy between rows of a matrix and a buffer with one axis that is as long as several rows.

    The tile begins with the first element of a row, and its rows follow one another in memory, so it is a part of the tensor
    seen with one axis. Other operands are returned as they are.

    TileLang-Ascend copied such a tile until March 2026; since then its generated code copies one row, and fills the rest of a
    loaded buffer with zeros (``compute_valid_extent`` in ``src/op/ascend.cc``). Therefore a warning (T116) is issued.
    """
    first, buffer = (source, target) if source.buffer.space == "gm" else (target, source)
    tensor = first.buffer
    if not (isinstance(first, Element) and isinstance(buffer, Buffer) and buffer.space in ("ub", "shared", "fragment")
            and tensor.space == "gm" and tensor.ndim == 2 and buffer.ndim == 1 and not tensor.has_gaps):
        return source, target
    rows, row = tensor.dimensions
    (length,) = buffer.sizes
    column = first.indices[1]
    if not (isinstance(rows, int) and isinstance(row, int) and isinstance(length, int) and isinstance(column, int)
            and column == 0 and length > row and length % row == 0):
        return source, target
    builder.remark(TileError(
        f"{WHAT}: {buffer.describe()} is as long as {length // row} rows of {tensor.describe()}, and the copy continues in the "
        "next rows", code="T116", location=builder.location,
        help="give the buffer the shape of the rows; TileLang-Ascend since March 2026 copies one row and pads the buffer"))
    flat = _reshaped(builder, WHAT, tensor, [rows * row], tensor.name)
    part = Region(flat, (extent(builder, first.indices[0] * row),), (length,), (0,))
    return (part, buffer) if first is source else (buffer, part)


def _folds(axes: Sequence[Extent], rows: Sequence[Extent]) -> bool:
    """Whether products of neighbouring sizes in ``axes`` are the sizes in ``rows``; all must be constants."""
    left = list(axes)
    for row in rows:
        size = 1
        while left and isinstance(left[0], int) and isinstance(row, int) and size < row:
            first = left.pop(0)
            assert isinstance(first, int)
            size *= first
        if size != row:
            return False
    return not left


def _require_plain_bytes(a: Addressable, b: Addressable, changes: bool) -> None:
    """Checks that a copy of elements of 4 bits, two of which are in a byte, or of exponents changes nothing of them.

    Args:
        a, b: source and destination.
        changes: whether the copy transposes, pads or has a ReLU.

    Raises:
        TileError: T110, the other side has another element type; T190, the copy changes elements.
    """
    special = a.dtype if a.dtype.stored != a.dtype else b.dtype
    if a.dtype != b.dtype:
        raise TileError(f"{WHAT}: source {a.describe()} and destination {b.describe()}: a copy does not convert {special}",
                        code="T110", help="copy to a buffer of the same type" + (
                            ", and convert it with T.tile.cast" if special == "int4" else ""))
    if changes:
        raise TileError(f"{WHAT}: a copy of {special} with transpose, enable_relu or pad_value", code="T190",
                        help="convert the tile to float16 with T.tile.cast first" if special == "int4" else "remove it")


def _part_for_product(builder: Builder, a: Addressable, b: Addressable, k: object, n: object, *, transpose: bool,
                      ) -> tuple[Addressable, Addressable]:
    """Returns the operands of a load to L0A or L0B, cut to the part that a product multiplies.

    Args:
        builder: the trace.
        a: the source in L1.
        b: the destination: m by k in L0A, k by n in L0B.
        k, n: the arguments ``real_k`` and ``real_n``; None for all elements of an axis.
        transpose: whether the load swaps the axes.

    Raises:
        TileError: T231, the copy is no such load; T131, a number is larger than the axis; T145, it is not positive.
    """
    name = "real_k" if k is not None else "real_n"
    if b.buffer.space not in ("ca", "cb") or b.ndim != 2:
        raise TileError(f"{WHAT}: {name} is given, and the destination {b.describe()} is not a matrix in L0A or L0B",
                        code="T231", help=f"remove {name}, or slice both operands to the size that is copied")
    if n is not None and b.buffer.space == "ca":
        raise TileError(f"{WHAT}: real_n is given, and the destination {b.describe()} is in L0A, which has rows m and columns "
                        "k", code="T231", help="give real_n to the load to L0B")
    wanted = list(b.extents)
    for label, axis, value in (("real_k", 1 if b.buffer.space == "ca" else 0, k), ("real_n", 1, n)):
        if value is None:
            continue
        size, have = extent(builder, value), wanted[axis]
        if isinstance(size, int) and size <= 0:
            raise TileError(f"{WHAT}: {label} is {size}", code="T145", help=f"{label} must be at least 1")
        if isinstance(size, int) and isinstance(have, int) and size > have:
            raise TileError(f"{WHAT}: {label} is {size}, and {b.describe()} has only {have}", code="T131",
                            help=f"give {label} at most the size of the tile, or load a larger tile")
        wanted[axis] = size
    return _with_extents(a, wanted[::-1] if transpose else wanted), _with_extents(b, wanted)


def _with_rows_apart(builder: Builder, source: Addressable | Element, target: Addressable | Element, stride: object,
                     ) -> tuple[Addressable | Element, Addressable | Element]:
    """Returns the operands of a copy between a tile on chip and rows of a flat global tensor, ``stride`` elements apart.

    The global tensor is seen as a matrix whose row ``i`` begins at element ``i * stride``, and whose rows overlap.

    Raises:
        TileError: T231, no operand or both are in GM, or the tensor has several axes; T131, the tile on chip is not a matrix;
            T145, the stride is not positive.
    """
    flat, tile_on_chip = (source, target) if source.buffer.space == "gm" else (target, source)
    whole = flat.buffer
    argument = whole.value.owner.source if isinstance(whole.value.owner, tile.TensorOp) else whole.value
    if whole.space != "gm" or tile_on_chip.buffer.space == "gm" or whole.ndim != 1 or isinstance(argument.owner, Operation):
        raise TileError(f"{WHAT}: stride is given, and neither operand is a flat global tensor, with one axis", code="T231",
                        help="pass the flat tensor as a parameter of its own" if whole.ndim == 1 and whole.space == "gm" else
                        "remove stride: the rows of a tensor with several axes are as far apart as its shape says")
    matrix = None if isinstance(tile_on_chip, Element) else with_axes(tile_on_chip, squeezed_axes(tile_on_chip))
    if matrix is None or matrix.ndim != 2:
        raise TileError(f"{WHAT}: stride is given, and {tile_on_chip.describe()} is not a matrix", code="T131",
                        help="remove stride for a single row, or pass a buffer or a slice with two axes")
    apart, total = extent(builder, stride), whole.extents[0]
    if isinstance(apart, int) and apart <= 0:
        raise TileError(f"{WHAT}: stride is {apart}", code="T145", help="stride must be at least 1")
    first = flat.indices[0] if isinstance(flat, Element) else flat.offsets[0]
    rows = extent(builder, (total - first + (apart - 1)) // apart)
    sizes, strides = ([value if isinstance(value, int) else value.ssa(builder) for value in parts]
                      for parts in ((rows, total), (apart, 1)))
    made = builder.discardable(tile.StridedTensorOp(argument, sizes, strides)).results[0]
    # a Buffer takes symbols as sizes; these may be expressions of them, which its operands only compare and multiply
    seen = Buffer(whole.name, whole.dtype, (rows, total), "gm", made, whole.location)  # type: ignore[arg-type]  # see above
    seen.has_gaps = True
    part = Region(seen, (0, first), matrix.extents, (0, 1))
    return (part, matrix) if flat is source else (matrix, part)


def _load_two_rows(builder: Builder, source: Addressable | Element, target: Addressable | Element, size: object, jump: object,
                   ) -> None:
    """Emits the loads of a tile of two rows, which are ``jump`` elements apart in a global tensor, in ascending order.

    Raises:
        TileError: T231, the source is no element of a tensor in GM, or the destination is there too; T131, the tile has not
            two rows; T145, ``jump`` is no integer.
    """
    if not isinstance(source, Element) or source.buffer.space != "gm" or target.buffer.space == "gm":
        raise TileError(f"{WHAT}: jump is given, and the source {source.describe()} is no element of a global tensor",
                        code="T231", help="write T.copy(A[row, 0], tile, jump=distance), with a tile on chip")
    if isinstance(target, Element) and size is None:
        raise TileError(f"{WHAT}: jump is given, and neither operand has a shape", code="T131", help="pass size=[2, columns]")
    tile_on_chip = _sized(WHAT, target, sizes_argument(builder, WHAT, size)) if size is not None else target
    assert isinstance(tile_on_chip, Addressable)
    rows = with_axes(tile_on_chip, [axis for axis in tile_on_chip.kept if axis == tile_on_chip.kept[-1]
                                    or not same_extent(tile_on_chip.sizes[axis], 1)])
    if rows.ndim != 2 or not same_extent(rows.extents[0], 2):
        raise TileError(f"{WHAT}: jump is given, and {tile_on_chip.describe()} has not two rows", code="T131",
                        help="pass a tile of two rows, or use one copy for each row")
    if isinstance(jump, (bool, float)):
        raise TileError(f"{WHAT}: jump is {jump!r}", code="T145", help="jump is a number of elements, an integer")
    check_inside(WHAT, rows)
    tensor, distance = source.buffer, extent(builder, jump)
    first: Extent = 0
    for index, dimension in zip(source.indices, tensor.sizes, strict=True):
        first = extent(builder, first * dimension + index)
    flat = tensor if tensor.ndim == 1 else _reshaped(builder, WHAT, tensor, [math.prod(tensor.dimensions)], tensor.name)
    for row, name, fold in ((0, "min", min), (1, "max", max)):
        apart = fold(distance, 0) if isinstance(distance, int) else arithmetic.binary(builder, name, distance, 0)
        offsets, sizes = list(rows.offsets), list(rows.sizes)
        offsets[rows.kept[0]], sizes[rows.kept[0]] = extent(builder, offsets[rows.kept[0]] + row), 1
        line = Region(rows.buffer, offsets, sizes, rows.kept[1:])
        part = Region(flat, (extent(builder, first + apart),), line.extents, (0,))
        builder.tile_op(tile.CopyOp(part.ssa(builder), line.ssa(builder)), WHAT)


def _with_extents(memory: Addressable, wanted: Sequence[Extent]) -> Addressable:
    sizes = list(memory.sizes)
    for axis, size in zip(memory.kept, wanted, strict=True):
        sizes[axis] = size
    found = Region(memory.buffer, memory.offsets, sizes, memory.kept)
    check_inside(WHAT, found)
    return found


def _is_front(memory: Addressable) -> bool:
    """Whether a slice starts at the first element of a matrix in L1."""
    buffer = memory.buffer
    at_front = all(isinstance(offset, int) and offset == 0 for offset in memory.offsets)
    return buffer.space == "cbuf" and isinstance(memory, Region) and at_front and memory.ndim == len(memory.offsets) == 2


def operand(what: str, role: str, value: object) -> Addressable | Element:
    """Checks an operand of a copy, and returns it: a buffer, a slice, or the first element of a tile.

    Args:
        what: the name of the call, for messages.
        role: ``source`` or ``destination``, for messages.
        value: the argument of the call.

    Raises:
        TileError: T110, the value is none of these.
    """
    if isinstance(value, Addressable):
        return value
    place = place_of(value)
    if place is None:
        raise TileError(f"{what}: the {role} must be a buffer, a slice or the start of a tile, not {shown(value)}", code="T110",
                        help=ARRAY_OF_THE_HOST if is_array(value) else "write a buffer, A[i:j, :] or A[i, j]")
    return place


def extents(builder: Builder, what: str, source: Addressable | Element, target: Addressable | Element, size: object, *,
            transpose: bool = False, corner: bool = False) -> tuple[Addressable, Addressable]:
    """Returns the two operands of a copy as tiles of the same shape, apart from a transposition and from loads with padding.

    Args:
        builder: the trace.
        what: the name of the call, for messages.
        source, target: the operands.
        size: the argument ``size`` of the call; None without one.
        transpose: whether the copy swaps the last two axes.
        corner: whether a slice of a global tensor can be smaller than the buffer on the other side, or have fewer axes
            (ascendc dialect).

    Raises:
        TileError: T131, the shapes differ, or neither operand has a shape; T130, a tile is not inside its buffer.
    """
    if size is not None:
        for side in (source, target):
            if isinstance(side, Region):
                raise TileError(f"{what}: size is given, and the slice {side.describe()} has a size already", code="T131",
                                help="pass the first element of the tile, A[i, j], in place of the slice; or remove size")
        sizes = sizes_argument(builder, what, size)
        a, b = (_sized(what, side, sizes) for side in (source, target))
        return _squeezed(what, a, b, transpose)
    if isinstance(source, Element) and isinstance(target, Element):
        raise TileError(f"{what} between {source.describe()} and {target.describe()}: neither side has a shape", code="T131",
                        help="pass size=[...], or a buffer or a slice as one of the operands")
    cornered = corner and not transpose
    if isinstance(source, Element):
        assert isinstance(target, Addressable)
        if cornered and _fewer_axes(source, target):
            return right_aligned(what, _origin(source), target.extents[-len(source.indices):]), target
        return _squeezed(what, _borrowed(what, source, target, transpose), target, transpose)
    if isinstance(target, Element):
        if cornered and _fewer_axes(target, source):
            source = _corner(source, source.extents[-len(target.indices):])
        return _squeezed(what, source, _borrowed(what, target, source, transpose), transpose)
    if cornered:
        found = _in_corner(source, target)
        if found is not None:
            return found
    return _paired(what, builder, source, target, transpose)


def _sized(what: str, side: Addressable | Element, sizes: list[Extent]) -> Addressable:
    """The tile of shape ``sizes`` at an operand's first element. A whole buffer with the same sizes, apart from axes of size 1,
    is the buffer itself: its unit axes may be at other positions.
    """
    constant = isinstance(side, Buffer) and all(isinstance(size, int) for size in (*sizes, *side.extents))
    if constant and isinstance(side, Buffer) and [s for s in sizes if s != 1] == [s for s in side.extents if s != 1]:
        return side
    return right_aligned(what, _origin(side), sizes)


def _origin(side: Addressable | Element) -> Addressable:
    if isinstance(side, Addressable):
        return side
    rank = len(side.indices)
    return Region(side.buffer, side.indices, (1,) * rank, range(rank))


def _borrowed(what: str, start: Element, peer: Addressable, transpose: bool) -> Addressable:
    """The tile at ``start`` with the shape of the other operand ``peer``, along the last axes.

    An axis of ``peer`` that an index has removed counts with size 1: ``copy(tile[:, 0], A[i, j])`` writes a column of ``A``.
    """
    rank = len(start.indices)
    sizes = list(peer.sizes if len(peer.sizes) <= rank and not transpose else peer.extents)
    if transpose:
        sizes[-2:] = sizes[:-3:-1]
    while len(sizes) > rank and isinstance(sizes[0], int) and sizes[0] == 1:
        sizes.pop(0)
    if len(sizes) > rank:
        raise TileError(f"{what}: {start.name} {shape_text(start.buffer.extents)} has {rank} axes; the tile of "
                        f"{peer.describe()} has {len(sizes)}", code="T131",
                        help="drop an axis of the tile, or slice it: buffer[0, :, :]")
    return right_aligned(what, _origin(start), sizes)


def _paired(what: str, builder: Builder, a: Addressable, b: Addressable, transpose: bool) -> tuple[Addressable, Addressable]:
    """Two operands that both have a shape. A whole buffer, or a whole matrix in L0C, takes the sizes of a slice with as many
    axes.
    """
    if not transpose and _is_whole_place(a) is not _is_whole_place(b) and a.ndim == b.ndim:
        whole, part = (a, b) if _is_whole_place(a) else (b, a)
        shrunk = _shrunk(builder, whole, part)
        if shrunk is not None:
            return (shrunk, part) if whole is a else (part, shrunk)
    return _squeezed(what, a, b, transpose)


def _is_whole_place(memory: Addressable) -> bool:
    """Whether an operand is a whole buffer, or all of one of the matrices of a buffer in L0C, as in ``c[slot, :, :]``."""
    if isinstance(memory, Buffer):
        return True
    whole = memory.buffer.sizes
    return memory.buffer.space == "cc" and all(
        same_extent(memory.offsets[axis], 0) is True and same_extent(memory.sizes[axis], whole[axis]) is True
        for axis in memory.kept)


def _fewer_axes(start: Element, peer: Addressable) -> bool:
    """Whether a global tensor has fewer axes than the tile on chip that it is copied to or from, without its axes of size 1."""
    needed = [size for size in peer.extents if not (isinstance(size, int) and size == 1)]
    return start.buffer.space == "gm" != peer.buffer.space and len(needed) > len(start.indices)


def _in_corner(source: Addressable, target: Addressable) -> tuple[Addressable, Addressable] | None:
    """The operands of a copy between a constant slice of a global tensor and a larger whole buffer on chip; None for other
    copies.

    A load names the whole buffer, whose rest is padded. A store names the part of the buffer that is stored.
    """
    part, whole = (source, target) if source.buffer.space == "gm" else (target, source)
    if isinstance(part, Buffer) or not _is_whole_place(whole) or whole.buffer.space == "gm" or part.buffer.space != "gm":
        return None
    small, room = part, whole
    if part.ndim != whole.ndim:
        small, room = with_axes(part, squeezed_axes(part)), with_axes(whole, squeezed_axes(whole))
    if small.ndim > room.ndim or same_shape(small.extents, room.extents):
        return None
    have = room.extents[room.ndim - small.ndim:]
    if not all(isinstance(a, int) and isinstance(b, int) and a <= b for a, b in zip(small.extents, have, strict=True)):
        return None
    return (small, room) if part is source else (_corner(room, small.extents), small)


def _corner(memory: Addressable, extents: Sequence[Extent]) -> Addressable:
    """The first elements of a tile: its last axes have ``extents``, and its other axes are removed at their first index."""
    dropped = memory.ndim - len(extents)
    sizes = list(memory.sizes)
    for axis, size in zip(memory.kept, [*(1,) * dropped, *extents], strict=True):
        sizes[axis] = size
    return Region(memory.buffer, memory.offsets, sizes, memory.kept[dropped:])


def _shrunk(builder: Builder, whole: Addressable, part: Addressable) -> Addressable | None:
    """The first elements of a whole buffer, with the sizes of a slice; None where it does not shrink. Constant sizes shrink in
    the npuir dialect only.
    """
    sizes = list(whole.sizes)
    changed = False
    for axis, other in zip(whole.kept, part.extents, strict=True):
        mine = sizes[axis]
        constant = isinstance(mine, int) and isinstance(other, int)
        if constant and (other > mine or (other < mine and builder.dialect == "ascendc")):
            return None
        changed = changed or same_extent(mine, other) is not True
        sizes[axis] = other
    return Region(whole.buffer, whole.offsets, sizes, whole.kept) if changed else whole


def _squeezed(what: str, a: Addressable, b: Addressable, transpose: bool) -> tuple[Addressable, Addressable]:
    """Both operands with equal shapes; axes of constant size 1 are removed where the shapes differ."""
    left = list(a.extents)
    if transpose:
        left[-2:] = left[:-3:-1]
    if same_shape(left, b.extents):
        return a, b
    x, y = with_axes(a, squeezed_axes(a)), with_axes(b, squeezed_axes(b))
    if not transpose and same_shape(x.extents, y.extents):
        return x, y
    raise TileError(f"{what}: source {a.describe()} and destination {b.describe()} have different shapes", code="T131",
                    help="slice the larger side, or pass the first element of the tile, as in A[i, j]")


def reshape(src: Tile, shape: Extents | Tile | None = None, dst: Tile | None = None
            ) -> Any:  # a buffer, or with a destination none
    """Return the buffer ``src`` with another shape, or copy it into ``dst``, which has another shape.

    ``T.reshape(src, shape)`` returns a buffer that shares the memory of ``src``. ``T.reshape(src, dst)`` copies the elements in
    row-major order to ``dst`` and returns None. Both shapes must have the same number of elements, and ``src`` and ``dst`` the
    same element type.

    Example: ``T.reshape(a, (64, 32))``

    Args:
        src: a buffer, or a slice without gaps between its rows.
        shape: the new shape, or the buffer ``dst``. The sizes must be positive constants; those of a whole global tensor can be
            known at run time only, if the numbers of elements are equal whatever these sizes are.
        dst: the buffer that is written.

    Raises:
        TileError: T111, the numbers of elements differ, or possibly differ, ``src`` has gaps, or a size is not constant;
            T110, ``src`` is not a buffer, or the element types differ; T145, both ``shape`` and ``dst`` are given, or neither.
    """
    builder = Builder.running("T.reshape")
    if (shape is None) is (dst is None):
        raise TileError("T.reshape takes a buffer, and a shape or a destination", code="T145",
                        help="write T.reshape(buffer, shape) or T.reshape(src, dst)")
    other = shape if dst is None else dst
    if not isinstance(other, Addressable):
        return _reshaped(builder, "T.reshape", src, sizes_of(other), None)
    if not isinstance(src, Addressable):
        raise TileError(f"T.reshape: the source must be a buffer, not {shown(src)}", code="T110",
                        help="write T.reshape(buffer, shape) or T.reshape(src, dst)")
    if src.dtype != other.dtype:
        raise TileError(f"T.reshape: source {src.describe()} and destination {other.describe()} differ in type", code="T110",
                        help="convert first (T.tile.cast or T.vcast)")
    if overlap(src, other) == "same":  # nothing to copy
        return None
    seen = _reshaped(builder, "T.reshape", src, other.extents, other.name)
    builder.tile_op(tile.CopyOp(seen.ssa(builder), other.ssa(builder)), "T.reshape")
    return None


def view_of(src: object, shape: Extents | None = None, dtype: ElementType | None = None) -> Buffer:
    """``T.view``: return a buffer that shares the memory of ``src``, with another shape or element type.

    Without ``shape``, the shape is unchanged; without ``dtype``, the element type is unchanged. Bits are reinterpreted, not
    converted. If the new element type has another width, ``src`` must be a whole buffer in UB, and ``shape`` must have the same
    number of bytes. A whole global tensor can be viewed with sizes that are known at run time only, if the numbers of elements
    are equal whatever these sizes are.

    Example: ``T.view(a, (64, 32), "int16")``

    Raises:
        TileError: T110, the element type has another width, and ``src`` is not a whole buffer in UB; T111, the shape has
            another number of elements or bytes, or ``src`` has gaps between its rows; or a size is known at run time only, and
            ``src`` is not a whole tensor or the numbers of elements are possibly different.
    """
    builder = Builder.running("T.view")
    if isinstance(src, Addressable) and shape is not None and dtype is not None and _is_whole(src):
        element = element_type(dtype, "T.view")
        if element.nbytes != src.dtype.nbytes:
            return _other_width(builder, src, element, sizes_of(shape))
    sizes = src.extents if shape is None and isinstance(src, Addressable) else sizes_of(shape)
    seen = _reshaped(builder, "T.view", src, sizes, None)
    return seen if dtype is None or element_type(dtype, "T.view") == seen.dtype else bits_as("T.view", seen, dtype)


def _is_whole(memory: Addressable) -> bool:
    """Whether an operand is a whole buffer that is in UB, or that may be placed there."""
    whole = not isinstance(memory, Region) or memory.covers()
    return memory.buffer.space in ("ub", "shared", "fragment") and whole and isinstance(memory, (Buffer, Region))


def _other_width(builder: Builder, src: Addressable, element: DType, shape: Sequence[object]) -> Buffer:
    """A whole buffer's bytes as elements of another width."""
    sizes = [size for size in shape if isinstance(size, int) and size > 0]
    count = element_count(src)
    have, wanted = None if count is None else count * src.dtype.nbytes, math.prod(sizes) * element.nbytes
    if len(sizes) != len(shape) or have != wanted:
        raise TileError(f"T.view: {src.describe()} has {have} bytes; {shape_text(shape)} of {element} has {wanted}",
                        code="T111", help="pass a shape with the same number of bytes: T.view(a, (rows, columns), dtype)")
    builder.require_kernel("T.view")
    value = bits_of(builder.discardable, src.buffer.value, element, sizes)
    seen = Buffer(src.name, element, sizes, src.buffer.space, value, src.buffer.location)
    seen.unnamed = True
    return seen


def vbitcast(src: Tile, dtype: ElementType, size: Sizes | None = None) -> Buffer:
    """Return a buffer that shares the memory of ``src`` and has another element type of the same width.

    Example: ``T.vbitcast(a, "int32")``

    Args:
        src: a buffer or a slice.
        dtype: the element type as which the bits are read.
        size: the shape of the part to view, from the first element of ``src``; without it, all of ``src``.

    Raises:
        TileError: T110, the widths differ; T111, a size is not constant.
    """
    return _bitcast("T.vbitcast", src, dtype, size)


def npuir_bitcast(src: Tile, dtype: ElementType, size: Sizes | None = None) -> Buffer:
    """Return a buffer that shares the memory of ``src`` and has another element type of the same width, as ``T.vbitcast``.

    Example: ``T.npuir_bitcast(a, "int32")``
    """
    return _bitcast("T.npuir_bitcast", src, dtype, size)


def _bitcast(what: str, src: Tile, dtype: object, size: object) -> Buffer:
    builder = Builder.running(what)
    builder.require_kernel(what)
    memory = as_memory(what, "the source", src)
    if size is not None:
        memory = right_aligned(what, memory, sizes_argument(builder, what, size))
    return bits_as(what, memory, dtype)


def bits_as(what: str, memory: Addressable, dtype: object) -> Buffer:
    """Returns a buffer that shares the memory of a tile and reads the tile's bits as another element type of the same width.

    Args:
        what: the name of the call, for messages.
        memory: the tile.
        dtype: the element type.

    Raises:
        TileError: T110, the widths differ; T111, a size is not constant.
    """
    builder, element = Builder.running(what), element_type(dtype, what)
    shape = [size for size in memory.extents if isinstance(size, int)]
    if len(shape) != memory.ndim:
        raise TileError(f"{what}: {memory.describe()} has a size that is not constant", code="T111",
                        help="take a slice of constant size")
    if element.nbytes != memory.dtype.nbytes or memory.dtype.bits != element.bits:
        raise TileError(f"{what}: {memory.describe()} has elements of {memory.dtype.bits} bits, {element} has {element.bits}",
                        code="T110", help="convert with T.tile.cast or T.vcast")
    value = memory.ssa(builder)
    assert isinstance(value.type, MemRefType)
    kind = MemRefType(ir_types.element_type(element), value.type.shape, value.type.layout, value.type.memory_space)
    made = builder.discardable(tile.ViewOp(value, kind)).results[0]
    seen = Buffer(memory.name, element, tuple(shape), memory.buffer.space, made, memory.buffer.location)
    seen.unnamed = True
    return seen


def _reshaped_tensor(builder: Builder, what: str, src: Addressable, shape: Sequence[object], label: str | None) -> Buffer:
    """A whole global tensor with other sizes, of which some are known at run time only.

    Raises:
        TileError: T111, ``src`` is a part of a tensor or has gaps between its rows, or the shapes are not known to have
            the same number of elements.
    """
    root = src.buffer.value
    flat = root.owner.source if isinstance(root.owner, tile.TensorOp) else root
    whole = isinstance(src, Buffer) and not src.buffer.has_gaps
    if not whole or not isinstance(flat.type, MemRefType) or len(flat.type.get_shape()) != 1:
        raise TileError(f"{what}: a size of {src.describe()} or of the shape {shape_text(shape)} is known at run time only, "
                        "and the source is no whole tensor with such a size", code="T111",
                        help="view the whole parameter, and slice the view")
    sizes = [extent(builder, size) for size in shape]
    named = [size if isinstance(size, (int, Sym)) else getattr(size, "symbol", None) for size in shape]
    dimensions = [size for size in named if size is not None]
    if len(dimensions) < len(named):
        raise TileError(f"{what}: a size of {shape_text(sizes)} is no sum or product of the sizes of the parameters",
                        code="T111", help="sizes of tensors are known when the kernel is called")
    before, after = (polynomial(math.prod(part, start=1)) for part in (src.buffer.dimensions, dimensions))
    if before != after:
        raise TileError(f"{what}: {src.describe()} and the shape {shape_text(sizes)} are not known to have the same number of "
                        "elements", code="T111", help="compute the sizes from the tensor's: (M * 4, 32) for (M, 128)")
    made = builder.discardable(tile.TensorOp(flat, [size if isinstance(size, int) else size.ssa(builder) for size in sizes]))
    seen = Buffer(label or src.name, src.dtype, dimensions, "gm", made.results[0], src.buffer.location)
    seen.unnamed = label is None
    return seen


def _reshaped(builder: Builder, what: str, src: object, shape: Sequence[object], label: str | None) -> Buffer:
    if not isinstance(src, Addressable):
        raise TileError(f"{what}: the source must be a buffer, not {shown(src)}", code="T110",
                        help="pass a buffer or a slice of a buffer")
    builder.require_kernel(what)
    if src.buffer.space == "gm" and (element_count(src) is None or not all(isinstance(size, int) for size in shape)):
        return _reshaped_tensor(builder, what, src, shape, label)
    sizes: list[int] = []
    for size in shape:
        if not isinstance(size, int) or size <= 0:
            raise TileError(f"{what}: size {size} is not a positive constant", code="T111",
                            help="use positive constants: shapes on chip must be constants")
        sizes.append(size)
    count = math.prod(sizes)
    have = element_count(src)
    if have != count or not is_dense(src):
        why = "has gaps between its rows" if have == count else f"has {have if have is not None else '?'} elements"
        raise TileError(f"{what}: {src.describe()} {why}; {shape_text(shape)} has {count}", code="T111",
                        help="copy it into a buffer of that shape")
    value = view(builder, src.ssa(builder), sizes)
    made = Buffer(label or src.name, src.dtype, sizes, src.buffer.space, value, src.buffer.location)
    made.unnamed = label is None
    return made
