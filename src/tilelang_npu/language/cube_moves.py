"""Copies between named memories for the Cube core: ``T.load_nd2nz``, ``T.store_fixpipe``, ``T.store_nz2nd``, their npuir names,
and ``T.copy_pa``.

These functions are ``T.copy`` between fixed memories: a load changes the rows of a global tensor to fractals (submatrices of 16
rows by 32 bytes) in L1, and a store from L0C or L1 changes fractals to rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language import movement, scalar
from tilelang_npu.language.operands import as_memory, check_inside, is_dense, squeezed_axes, view, with_axes
from tilelang_npu.language.table_functions import function_of
from tilelang_npu.target.chip_data import OpenScope, Space
from tilelang_npu.traced.buffers import Addressable, Buffer, Element, Operand, Sizes, Tile
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import bounds_of_index, extent
from tilelang_npu.traced.emitter import region_of
from tilelang_npu.traced.kinds import INDEX
from tilelang_npu.traced.symbols import Number

_OPEN: dict[Space, OpenScope] = {"cbuf": "shared", "cc": "fragment"}
"""The scope of a buffer whose memory is not decided yet, by the memory that it may get."""
_PLACES: dict[Space, str] = {"gm": "a global tensor", "cbuf": "L1 (T.alloc_L1, T.alloc_shared)",
                           "cc": "L0C (T.alloc_L0C, T.alloc_fragment)"}
_RELU = {"": False, "relu": True}


def _move(what: str, src: Tile, dst: Tile, size: object, spaces: tuple[tuple[Space, ...], Space], *,
          relu: bool = False) -> None:
    builder = Builder.running(what)
    ends = movement.operand(what, "source", src), movement.operand(what, "destination", dst)
    for role, end, allowed in (("source", ends[0], spaces[0]), ("destination", ends[1], (spaces[1],))):
        require_memory(what, role, end, allowed)
    a, b = movement.extents(builder, what, *ends, size)
    check_inside(what, a)
    check_inside(what, b)
    builder.tile_op(tile.CopyOp(a.ssa(builder), b.ssa(builder), relu=relu), what)


def require_memory(what: str, role: str, end: Addressable | Element, allowed: tuple[Space, ...]) -> None:
    """Checks that an operand is in one of the memories ``allowed``, or in a scope that may become one.

    Raises:
        TileError: T122, the operand is in another memory.
    """
    space = end.buffer.space
    if space not in allowed and space not in [_OPEN.get(each) for each in allowed]:
        places = " or ".join(_PLACES[each] for each in allowed)
        raise TileError(f"{what}: the {role} {end.buffer.describe()} is not in {places}", code="T122",
                        help="T.copy moves between any two memories that have a path")


def _load_nd2nz(src: Tile, dst: Tile, size: Sizes | None = None, *, what: str) -> None:
    """Load a matrix from the global tensor ``src`` into L1, and change its layout from rows to fractals.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``; the sizes need not be constants.

    Example: ``NAME(A[row, 0], a)``

    Raises:
        TileError: T122, ``src`` is not in GM or ``dst`` not in L1; T131, the shapes differ; T130, a tile is not inside its
            buffer.
    """
    _move(what, src, dst, size, (("gm",), "cbuf"))


def _store_fixpipe(src: Tile, dst: Tile, size: Sizes | None = None, enable_nz2nd: bool = False, channel_split: bool = False,
                   pre_relu_mode: str = "", *, what: str) -> None:
    """Store a matrix from L0C to the global tensor ``dst``, converted to the element type of ``dst``.

    float32 can be converted to float16 or bfloat16, and int32 to int8. Operands and ``size`` are as for ``T.copy``. Writes
    ``dst``.

    Example: ``NAME(c, C[row, 0], enable_nz2nd=True)``

    Args:
        src: the matrix in L0C.
        dst: the tile of a global tensor.
        size: the shape of the tile, as for ``T.copy``.
        enable_nz2nd: whether the layout changes from fractals to rows; must be True.
        channel_split: must be False.
        pre_relu_mode: ``"relu"`` to store negative elements as 0; ``""`` to store them unchanged.

    Raises:
        TileError: T122, ``src`` is not in L0C or ``dst`` not in GM; T131, the shapes differ; T145, there is no such
            ``pre_relu_mode``; T190, an argument that the hardware or this package does not support.
    """
    if pre_relu_mode in ("leaky_relu", "prelu"):
        raise TileError(f"{what}: pre_relu_mode={pre_relu_mode!r} needs slopes, and the call has none", code="T190",
                        help="multiply in vector work (T.vmul, T.vmax), or use 'relu'")
    if pre_relu_mode not in _RELU:
        raise TileError(f"{what}: there is no pre_relu_mode {pre_relu_mode!r}", code="T145",
                        help="pre_relu_mode must be '' or 'relu'")
    if not enable_nz2nd:
        raise TileError(f"{what} without enable_nz2nd would store fractals in global memory, where tensors are row-major",
                        code="T190", help="write enable_nz2nd=True")
    if channel_split:
        raise TileError(f"{what}: channel_split is not possible", code="T190",
                        help="remove channel_split: chips before the 950 do not have it, and it is not modelled for the 950")
    _move(what, src, dst, size, (("cc",), "gm"), relu=_RELU[pre_relu_mode])


def _store_nz2nd(src: Tile, dst: Tile, size: Sizes | None = None, *, what: str) -> None:
    """Store a matrix from L1 or L0C to the global tensor ``dst``, and change its layout from fractals to rows.

    Writes ``dst``. Operands and ``size`` are as for ``T.copy``.

    Example: ``NAME(c, C[row, 0])``

    Raises:
        TileError: T122, ``src`` is not in L1 or L0C, or ``dst`` not in GM; T131, the shapes differ.
    """
    _move(what, src, dst, size, (("cbuf", "cc"), "gm"))


load_nd2nz, npuir_load_nd2nz = (function_of(name, _load_nd2nz) for name in ("load_nd2nz", "npuir_load_nd2nz"))
store_fixpipe, npuir_store_fixpipe = (function_of(name, _store_fixpipe) for name in ("store_fixpipe", "npuir_store_fixpipe"))
store_nz2nd, npuir_store_nz2nd = (function_of(name, _store_nz2nd) for name in ("store_nz2nd", "npuir_store_nz2nd"))

def copy_pa(dst: Tile, kv: Operand, block_table: Operand, block_size: Number, head_num: Number, head_dim: int,
            kv_stride: int, max_block_num_per_batch: Number, act_head_dim: int, copy_row_num: Number,
            copy_row_num_align: Number, b_idx: Number, n2_idx: Number, s2_idx: Number, d_idx: Number) -> None:
    """Load consecutive rows of a sequence from the pages of a key-value cache in GM into the matrix ``dst`` in L1.

    Row ``s`` of sequence ``b_idx`` is in page ``block_table[b_idx * max_block_num_per_batch + s // block_size]``. The scalar
    unit reads the number of each page, and one copy moves the rows of a page. Writes the first ``copy_row_num`` rows of
    ``dst``, and leaves the others. Pages beyond the end of the cache are read as 0, as by ``T.copy``.

    Example: ``T.copy_pa(keys, KV, table, 128, 1, 512, 128 * 512, 16, 512, n, 64, batch, 0, first, 0)``

    Args:
        dst: the matrix in L1, with ``act_head_dim`` columns.
        kv: the cache: a global tensor whose elements follow each other by pages, heads, rows and columns.
        block_table: a global tensor of int32, with the numbers of the pages of all sequences one after the other.
        block_size: the number of rows of a page.
        head_num: the number of heads; has no effect.
        head_dim: the number of columns of a row in the cache, a constant.
        kv_stride: the distance of pages in the cache in elements, a constant and a multiple of ``head_dim``.
        max_block_num_per_batch: the number of entries of the table for a sequence.
        act_head_dim: the number of columns to load, a constant.
        copy_row_num: the number of rows to load.
        copy_row_num_align: the number of rows of ``dst`` in L1.
        b_idx: the sequence.
        n2_idx: the head.
        s2_idx: the first row in the sequence.
        d_idx: the first column.

    Raises:
        TileError: T110, an operand is not a buffer, or the table is not int32; T111, ``dst`` is not a matrix of the stated
            size, or the cache is not a whole number of rows; T122, ``dst`` is not in L1, or another operand is not in GM; T145,
            a size that must be a constant is not; T190, a tensor that must be seen by rows has a size that is not constant;
            T502, while the kernel runs, the number of a page is negative, or the table has no entry for a page.
    """
    what = "T.copy_pa"
    builder = Builder.running(what)
    builder.require_kernel(what)
    for name, value in (("head_dim", head_dim), ("kv_stride", kv_stride), ("act_head_dim", act_head_dim)):
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise TileError(f"{what}: {name} is {value!r}", code="T145", help=f"{name} must be a positive constant")
    if kv_stride % head_dim:
        raise TileError(f"{what}: kv_stride {kv_stride} is not a multiple of head_dim, {head_dim}", code="T145",
                        help="kv_stride is the number of elements of a page: block_size * head_num * head_dim")
    target, cache, table = (as_memory(what, role, value) for role, value in (
        ("the destination", dst), ("the cache", kv), ("the block table", block_table)))
    require_memory(what, "destination", target, ("cbuf",))
    for memory in (cache, table):
        require_memory(what, "source", memory, ("gm",))
    if table.dtype != "int32":
        raise TileError(f"{what}: the block table {table.describe()} has elements of {table.dtype}", code="T110",
                        help="pass the block table as int32")
    matrix = with_axes(target, squeezed_axes(target)) if target.ndim > 2 else target
    rows, align = matrix.extents[0], extent(builder, copy_row_num_align)
    if matrix.ndim != 2 or matrix.extents[1] != act_head_dim or (
            isinstance(rows, int) and isinstance(align, int) and -(-align // 16) != -(-rows // 16)):
        raise TileError(f"{what}: the destination {target.describe()} is not a matrix of copy_row_num_align = "
                        f"{copy_row_num_align} rows and act_head_dim = {act_head_dim} columns", code="T111",
                        help="pass the whole buffer in L1, or one matrix of a buffer of matrices, and its sizes")
    lines, pages = _flat(builder, what, cache, [head_dim]), _flat(builder, what, table, [])
    across, entries, batch, head, start_row, column = (extent(builder, value) for value in (
        block_size, max_block_num_per_batch, b_idx, n2_idx, s2_idx, d_idx))
    last = start_row + extent(builder, copy_row_num)
    location, count = builder.location, extent(builder, scalar.ceildiv(last, across) - start_row // across)
    start, stop, step = (builder.index(bound) for bound in (0, count, 1))
    block = Block(arg_types=[IndexType()])
    builder.epoch += 1
    with builder.at(block):
        page = builder.scalar(block.args[0], INDEX, None, bounds_of_index(count)) + start_row // across
        first = scalar.max(page * across, start_row)
        size = scalar.min((page + 1) * across, last) - first
        number = pages[batch * entries + page]
        line, place = number * (kv_stride // head_dim) + head * across + (first - page * across), first - start_row
        _move(what, lines[line:line + size, column:column + act_head_dim], matrix[place:place + size, :], None,
              (("gm",), "cbuf"))
        builder.emit(scf.YieldOp(), location)
    builder.emit(scf.ForOp(start, stop, step, [], region_of(block)), location)


def _flat(builder: Builder, what: str, memory: Addressable, row: Sequence[int]) -> Addressable:
    """Returns a whole global tensor with one axis, or with an empty ``row`` none, before an axis for the elements of a row.

    Raises:
        TileError: T111, the tensor is a slice with gaps, or has no whole number of rows; T190, its size is not constant.
    """
    width = row[0] if row else 1
    if memory.ndim == 1 + len(row) and (not row or memory.extents[-1] == width):
        return memory
    count = 1
    for size in memory.extents:
        if not isinstance(size, int):
            raise TileError(f"{what}: the shape of {memory.describe()} is not constant", code="T190",
                            help=f"declare the tensor with {1 + len(row)} ax{'e' if row else 'i'}s"
                                 + (f", of which the last has {width} elements" if row else ""))
        count *= size
    if count % width or not is_dense(memory):
        raise TileError(f"{what}: {memory.describe()} is not a whole number of rows of {width} elements that follow each other",
                        code="T111", help="pass the whole tensor, and its sizes")
    shape = (count // width, *row)
    return Buffer(memory.name, memory.dtype, shape, "gm", view(builder, memory.ssa(builder), shape), memory.buffer.location)


__all__ = ["copy_pa", "load_nd2nz", "npuir_load_nd2nz", "npuir_store_fixpipe", "npuir_store_nz2nd",
           "require_memory", "store_fixpipe", "store_nz2nd"]
