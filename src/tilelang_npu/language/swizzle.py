"""``T.use_swizzle``: changes the order in which blocks compute tiles."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64

from tilelang_npu.errors import TileError
from tilelang_npu.language.scalar import Select
from tilelang_npu.traced import arithmetic
from tilelang_npu.traced.arithmetic import binary as compute
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.scalars import Expr
from tilelang_npu.traced.symbols import Number


def use_swizzle(cid: object = None, m: int | str | None = None, n: int | None = None, k: object = None,
                block_m: int | None = None, block_n: int | None = None, off: int = 1,
                dir: int = 0, in_loop: bool = False,  # noqa: A002  (the language's name)
                **panels: Any) -> Any:  # the tile's number, or None in the form for GPUs
    """Order the tiles of an m x n matrix so that blocks that run at the same time read the same rows and columns.

    ``T.use_swizzle(cid, m, n, k, block_m, block_n, off)`` returns the number of the tile that block ``cid`` is to compute: the
    tile's row times the number of tile columns, plus the tile's column. Tiles are visited in bands of ``off`` tile rows, or of
    ``off`` tile columns with ``dir=1``; every second band is visited backwards. A ``cid`` beyond the last tile is returned
    unchanged.

    ``T.use_swizzle(panel_size, order="row", enable=True)`` is the form for GPUs. The grid's first two axes are divided into
    panels of ``panel_size`` rows (or columns, with ``order="column"``), and the blocks of one panel start before those of
    the next panel. The block ids in the kernel keep their meaning, and the result is None. On a grid of one axis it has no
    effect, and a warning (T720) says so.

    Example: ``T.use_swizzle(cid, M, N, K, 128, 256, off=3)``

    Args:
        cid: the block id; in the form for GPUs, the panel size.
        m, n: the sizes of the matrix in elements, multiples of ``block_m`` and ``block_n``; in the form for GPUs, ``order`` and
            ``enable``.
        k, in_loop: have no effect.
        block_m, block_n: the sizes of a tile in elements.
        off: the number of tile rows or tile columns of a band.
        dir: 0 for bands of rows, 1 for bands of columns.
        panels: ``panel_size``, ``order`` and ``enable`` as named arguments.

    Raises:
        TileError: T150, a size is not a positive constant or not a multiple of the tile's size, or the launch has an order of
            blocks already; T190, there is no such ``order``; T145, the arguments are wrong.
    """
    what = "T.use_swizzle"
    builder = Builder.running(what)
    if m is None or isinstance(m, str) or panels:
        words = (("panel_size", cid), ("order", m), ("enable", n))
        given: dict[str, Any] = {name: value for name, value in words if value is not None}  # checked by _panels
        try:
            _panels(builder, what, **given, **panels)
        except TypeError:
            raise TileError(f"{what} takes the arguments panel_size, order and enable", code="T145",
                            help="write T.use_swizzle(panel_size, order=\"row\", enable=True)") from None
        return None
    height, width = _positive(what, "m", m), _positive(what, "n", n)
    block_height, block_width = _positive(what, "block_m", block_m), _positive(what, "block_n", block_n)
    _positive(what, "off", off)
    if height % block_height or width % block_width or dir not in (0, 1):
        raise TileError(f"{what}: {m} x {n} is not a whole number of blocks of {block_m} x {block_n}, or dir={dir!r} is not 0"
                        " or 1",
                        code="T150", help="pad the sizes, or remove T.use_swizzle")
    rows, columns = height // block_height, width // block_width
    row, column = _place(builder, cid, rows, columns, off) if dir == 0 else _place(builder, cid, columns, rows, off)[::-1]
    linear = compute(builder, "add", compute(builder, "mul", row, columns), column)
    return Select(arithmetic.compare(builder, "lt", cid, rows * columns), linear, cid)


def _positive(what: str, name: str, size: object) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
        raise TileError(f"{what}: {name}={size!r} is not a positive constant", code="T150",
                        help="compute the tile with // and % where sizes are known at run time only")
    return size


def _panels(builder: Builder, what: str, panel_size: object, order: str = "row", enable: bool = True) -> None:
    """The form for GPUs: records the order on the launch."""
    builder.require_kernel(what)
    if isinstance(panel_size, bool) or not isinstance(panel_size, int) or panel_size <= 0:
        raise TileError(f"{what}: panel_size={panel_size!r} is not a positive constant", code="T150",
                        help="panel_size must be the number of rows (or columns) of a panel, a positive constant")
    if order not in ("row", "column"):
        raise TileError(f"{what}: order={order!r} is not supported", code="T190", help='the orders are "row" and "column"')
    if not enable:
        return
    launch = builder.launches[-1]
    if launch.panel is not None:
        raise TileError(f"{what}: an earlier T.use_swizzle has set the order of the blocks already", code="T150",
                        help="call T.use_swizzle once in a launch")
    if len(launch.grid) < 2:
        builder.remark(TileError(
            f"{what}({panel_size}) has no effect: it orders blocks along the first two axes of the grid, and this grid has one",
            code="T720", location=builder.location,
            help="give T.Kernel the rows and the columns of tiles as two axes; or compute the tile of a block with"
                 " tile = T.use_swizzle(block, M, N, K, block_M, block_N, off=...)"))
    launch.panel = IntegerAttr(panel_size, i64)
    launch.upright = UnitAttr() if order == "column" else None


def _place(builder: Builder, number: object, along: int, across: int, off: int) -> tuple[Expr, Number]:
    """The position of tile ``number`` along the axis of the bands, and across it."""
    band, inside = compute(builder, "floordiv", number, off * across), compute(builder, "mod", number, off * across)
    rest = along % off or off
    last = -(-along // off) - 1
    width = off if rest == off else Select(arithmetic.compare(builder, "eq", band, last), rest, off)
    first = compute(builder, "add", compute(builder, "mul", band, off), compute(builder, "mod", inside, width))
    second = compute(builder, "floordiv", inside, width)
    odd = arithmetic.compare(builder, "eq", compute(builder, "mod", band, 2), 1)
    return first, Select(odd, compute(builder, "sub", across - 1, second), second)
