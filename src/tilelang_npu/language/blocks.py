"""The order in which blocks take tiles: ``T.use_swizzle``."""

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
                **panels: Any) -> Any:  # arguments of _panels, which gives none; else the tile's number
    """The tile that block ``cid`` takes, as row times columns plus column: bands of ``off`` rows (columns with ``dir`` 1),
    every other one backwards, so that neighbours share what they load. Numbers past the last tile stay what they are. ``k`` and
    ``in_loop`` have no effect.

    As kernels for a GPU write it, ``T.use_swizzle(panel_size, order="row", enable=True)``, it orders the blocks themselves in
    the same way, by panels of so many rows (columns, with ``order="column"``) of the grid's first two axes: block ids mean what
    they did.

    Example: ``T.use_swizzle(cid, M, N, K, 128, 256, off=3)``

    Raises:
        TileError: T150, a size that is no positive constant or that the blocks do not divide, or a second order of the blocks;
            T190, another order.
    """
    what = "T.use_swizzle"
    builder = Builder.running(what)
    if m is None or isinstance(m, str) or panels:
        words = (("panel_size", cid), ("order", m), ("enable", n))
        given: dict[str, Any] = {name: value for name, value in words if value is not None}  # _panels takes them or raises
        try:
            _panels(builder, what, **given, **panels)
        except TypeError:
            raise TileError(f"{what} takes a panel size, an order and whether it holds", code="T145",
                            help="write T.use_swizzle(panel_size, order=\"row\", enable=True)") from None
        return None
    height, width = _positive(what, "m", m), _positive(what, "n", n)
    block_height, block_width = _positive(what, "block_m", block_m), _positive(what, "block_n", block_n)
    _positive(what, "off", off)
    if height % block_height or width % block_width or dir not in (0, 1):
        raise TileError(f"{what}: {m} x {n} is not a whole number of blocks of {block_m} x {block_n}, or dir={dir!r} is not 0"
                        " or 1",
                        code="T150", help="pad the sizes, or leave the swizzle out")
    rows, columns = height // block_height, width // block_width
    row, column = _place(builder, cid, rows, columns, off) if dir == 0 else _place(builder, cid, columns, rows, off)[::-1]
    linear = compute(builder, "add", compute(builder, "mul", row, columns), column)
    return Select(arithmetic.compare(builder, "lt", cid, rows * columns), linear, cid)


def _positive(what: str, name: str, size: object) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
        raise TileError(f"{what}: {name}={size!r} is not a positive constant", code="T150",
                        help="take tiles apart with // and % where sizes are known only at run time")
    return size


def _panels(builder: Builder, what: str, panel_size: object, order: str = "row", enable: bool = True) -> None:
    """The form for a GPU."""
    builder.require_kernel(what)
    if isinstance(panel_size, bool) or not isinstance(panel_size, int) or panel_size <= 0:
        raise TileError(f"{what}: panel_size={panel_size!r} is not a positive constant", code="T150",
                        help="give the number of rows of a panel")
    if order not in ("row", "column"):
        raise TileError(f"{what}: order={order!r} is not supported", code="T190", help='the orders are "row" and "column"')
    if not enable:
        return
    launch = builder.launches[-1]
    if launch.panel is not None:
        raise TileError(f"{what}: the blocks have an order already", code="T150", help="order them once")
    launch.panel = IntegerAttr(panel_size, i64)
    launch.upright = UnitAttr() if order == "column" else None


def _place(builder: Builder, number: object, along: int, across: int, off: int) -> tuple[Expr, Number]:
    """Position along the bands' axis and across it."""
    band, inside = compute(builder, "floordiv", number, off * across), compute(builder, "mod", number, off * across)
    rest = along % off or off
    last = -(-along // off) - 1
    width = off if rest == off else Select(arithmetic.compare(builder, "eq", band, last), rest, off)
    first = compute(builder, "add", compute(builder, "mul", band, off), compute(builder, "mod", inside, width))
    second = compute(builder, "floordiv", inside, width)
    odd = arithmetic.compare(builder, "eq", compute(builder, "mod", band, 2), 1)
    return first, Select(odd, compute(builder, "sub", across - 1, second), second)
