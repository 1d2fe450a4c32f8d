"""Copies between named memories for the Cube core: ``T.load_nd2nz``, ``T.store_fixpipe``, ``T.store_nz2nd``, and their npuir
names.

These functions are ``T.copy`` between fixed memories: a load changes the rows of a global tensor to fractals (submatrices of 16
rows by 32 bytes) in L1, and a store from L0C or L1 changes fractals to rows.
"""

from __future__ import annotations

from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language import movement
from tilelang_npu.language.operands import check_inside
from tilelang_npu.language.table_functions import function_of
from tilelang_npu.target.chip_data import OpenScope, Space
from tilelang_npu.traced.buffers import Addressable, Element, Sizes, Tile
from tilelang_npu.traced.builder import Builder

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
        _check_memory(what, role, end, allowed)
    a, b = movement.extents(builder, what, *ends, size)
    check_inside(what, a)
    check_inside(what, b)
    builder.tile_op(tile.CopyOp(a.ssa(builder), b.ssa(builder), relu=relu), what)


def _check_memory(what: str, role: str, end: Addressable | Element, allowed: tuple[Space, ...]) -> None:
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
        raise TileError(f"{what} without enable_nz2nd would leave fractals in global memory, where tensors are rows",
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

__all__ = ["load_nd2nz", "npuir_load_nd2nz", "npuir_store_fixpipe", "npuir_store_nz2nd", "store_fixpipe", "store_nz2nd"]
