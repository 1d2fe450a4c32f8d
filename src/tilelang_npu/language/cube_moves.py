"""Moves of the Cube core under their npuir names: ``T.load_nd2nz``, ``T.store_fixpipe``, ``T.store_nz2nd``.

They are copies whose memories are named: rows of a global tensor become fractals in L1, and come back from L0C or L1.
"""

from __future__ import annotations

from collections.abc import Callable

from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language import movement
from tilelang_npu.language.operands import check_inside
from tilelang_npu.traced.buffers import Addressable, Element, Sizes, Tile
from tilelang_npu.traced.builder import Builder

_OPEN = {"cbuf": "shared", "cc": "fragment"}
"""What a memory is as long as nothing has decided it."""
_PLACES = {"gm": "a global tensor", "cbuf": "L1 (T.alloc_L1, T.alloc_shared)", "cc": "L0C (T.alloc_L0C, T.alloc_fragment)"}
_RELU = {"": False, "relu": True}


def _move(what: str, src: Tile, dst: Tile, size: object, spaces: tuple[tuple[str, ...], str], *,
          relu: bool = False) -> None:
    builder = Builder.running(what)
    ends = movement.operand(what, "source", src), movement.operand(what, "destination", dst)
    for role, end, allowed in (("source", ends[0], spaces[0]), ("destination", ends[1], (spaces[1],))):
        _check_memory(what, role, end, allowed)
    a, b = movement.extents(builder, what, *ends, size)
    check_inside(what, a)
    check_inside(what, b)
    builder.tile_op(tile.CopyOp(a.ssa(builder), b.ssa(builder), relu=relu), what)


def _check_memory(what: str, role: str, end: Addressable | Element, allowed: tuple[str, ...]) -> None:
    space = end.buffer.space
    if space not in allowed and space not in [_OPEN.get(each) for each in allowed]:
        places = " or ".join(_PLACES[each] for each in allowed)
        raise TileError(f"{what}: the {role} {end.buffer.describe()} is not in {places}", code="T122",
                        help="T.copy moves between any two memories that have a path")


def _load_nd2nz(what: str) -> Callable[..., None]:
    def load_nd2nz(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
        """Load a matrix from a global tensor into fractals in L1; extents as of ``T.copy``, ``size`` may hold run-time values.

        ``dst`` is written.

        Example: ``NAME(A[row, 0], a)``

        Raises:
            TileError: T122 memories, T131 shapes.
        """
        _move(what, src, dst, size, (("gm",), "cbuf"))

    load_nd2nz.__doc__ = (load_nd2nz.__doc__ or "").replace("NAME", what)
    return load_nd2nz


def _store_fixpipe(what: str) -> Callable[..., None]:
    def store_fixpipe(src: Tile, dst: Tile, size: Sizes | None = None, enable_nz2nd: bool = False, channel_split: bool = False,
                      pre_relu_mode: str = "") -> None:
        """Store a matrix from L0C to a global tensor, converted to its element type (float32 to float16 or bfloat16, int32 to
        int8), negative elements as zero where ``pre_relu_mode`` is ``relu``.

        ``dst`` is written.

        Example: ``NAME(c, C[row, 0], enable_nz2nd=True)``

        Raises:
            TileError: T122 memories, T131 shapes, T145 no such mode, T190 what the hardware or this package cannot do.
        """
        if pre_relu_mode in ("leaky_relu", "prelu"):
            raise TileError(f"{what}: pre_relu_mode={pre_relu_mode!r} needs slopes, and the call has none", code="T190",
                            help="multiply in vector work (T.vmul, T.vmax), or use 'relu'")
        if pre_relu_mode not in _RELU:
            raise TileError(f"{what}: there is no pre_relu_mode {pre_relu_mode!r}", code="T145", help="it is '' or 'relu'")
        if not enable_nz2nd:
            raise TileError(f"{what} without enable_nz2nd would leave fractals in global memory, where tensors are rows",
                            code="T190", help="write enable_nz2nd=True")
        if channel_split:
            raise TileError(f"{what}: channel_split is not possible", code="T190",
                            help="chips before the 950 do not have it, and it is not modelled there; leave it out")
        _move(what, src, dst, size, (("cc",), "gm"), relu=_RELU[pre_relu_mode])

    store_fixpipe.__doc__ = (store_fixpipe.__doc__ or "").replace("NAME", what)
    return store_fixpipe


def _store_nz2nd(what: str) -> Callable[..., None]:
    def store_nz2nd(src: Tile, dst: Tile, size: Sizes | None = None) -> None:
        """Store a matrix from fractals in L1 or L0C to the rows of a global tensor; extents as of ``T.copy``.

        ``dst`` is written.

        Example: ``NAME(c, C[row, 0])``

        Raises:
            TileError: T122 memories, T131 shapes.
        """
        _move(what, src, dst, size, (("cbuf", "cc"), "gm"))

    store_nz2nd.__doc__ = (store_nz2nd.__doc__ or "").replace("NAME", what)
    return store_nz2nd


load_nd2nz, npuir_load_nd2nz = _load_nd2nz("T.load_nd2nz"), _load_nd2nz("T.npuir_load_nd2nz")
store_fixpipe, npuir_store_fixpipe = _store_fixpipe("T.store_fixpipe"), _store_fixpipe("T.npuir_store_fixpipe")
store_nz2nd, npuir_store_nz2nd = _store_nz2nd("T.store_nz2nd"), _store_nz2nd("T.npuir_store_nz2nd")

__all__ = ["load_nd2nz", "npuir_load_nd2nz", "npuir_store_fixpipe", "npuir_store_nz2nd", "store_fixpipe", "store_nz2nd"]
