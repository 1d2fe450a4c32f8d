"""The order in which blocks take tiles: ``T.use_swizzle``."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64

from tilelang_npu.errors import TileError
from tilelang_npu.language.scalar import Select
from tilelang_npu.traced import arithmetic
from tilelang_npu.traced.arithmetic import binary as compute
from tilelang_npu.traced.builder import Builder


def use_swizzle(cid: Any = None, m: Any = None, n: Any = None, k: Any = None, block_m: Any = None, block_n: Any = None,
                off: int = 1, dir: int = 0, in_loop: bool = False, **panels: Any) -> Any:  # noqa: A002  (the language's name)
    """The tile that block ``cid`` takes, as row times columns plus column: bands of ``off`` rows (columns with ``dir`` 1),
    every other one backwards, so that neighbours share what they load. Numbers past the last tile stay what they are. ``k`` and
    ``in_loop`` have no effect.

    As kernels for a GPU write it, ``T.use_swizzle(panel_size, order="row", enable=True)``, it orders the blocks themselves in
    the same way, by panels of so many rows (columns, with ``order="column"``) of the grid's first two axes: block ids mean what
    they did.

    Raises:
        TileError: T150, a size that is no positive constant or that the blocks do not divide, or a second order of the blocks;
            T190, another order.
    """
    what = "T.use_swizzle"
    builder = Builder.running(what)
    if m is None or isinstance(m, str) or panels:
        given = {name: value for name, value in (("panel_size", cid), ("order", m), ("enable", n)) if value is not None}
        try:
            _panels(builder, what, **given, **panels)
        except TypeError:
            raise TileError(f"{what} takes a panel size, an order and whether it holds", code="T145",
                            help="write T.use_swizzle(panel_size, order=\"row\", enable=True)") from None
        return None
    for name, size in (("m", m), ("n", n), ("block_m", block_m), ("block_n", block_n), ("off", off)):
        if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
            raise TileError(f"{what}: {name}={size!r} is not a positive constant", code="T150",
                            help="take tiles apart with // and % where sizes are known only at run time")
    if m % block_m or n % block_n or dir not in (0, 1):
        raise TileError(f"{what}: {m} x {n} is not a whole number of blocks of {block_m} x {block_n}, or dir={dir!r} is not 0"
                        " or 1",
                        code="T150", help="pad the sizes, or leave the swizzle out")
    rows, columns = m // block_m, n // block_n
    row, column = _place(builder, cid, rows, columns, off) if dir == 0 else _place(builder, cid, columns, rows, off)[::-1]
    linear = compute(builder, "add", compute(builder, "mul", row, columns), column)
    return Select(arithmetic.compare(builder, "lt", cid, rows * columns), linear, cid)


def _panels(builder: Builder, what: str, panel_size: Any, order: str = "row", enable: bool = True) -> None:
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


def _place(builder: Builder, number: Any, along: int, across: int, off: int) -> tuple[Any, Any]:
    """Position along the bands' axis and across it."""
    band, inside = compute(builder, "floordiv", number, off * across), compute(builder, "mod", number, off * across)
    rest = along % off or off
    last = -(-along // off) - 1
    width = off if rest == off else Select(arithmetic.compare(builder, "eq", band, last), rest, off)
    first = compute(builder, "add", compute(builder, "mul", band, off), compute(builder, "mod", inside, width))
    second = compute(builder, "floordiv", inside, width)
    odd = arithmetic.compare(builder, "eq", compute(builder, "mod", band, 2), 1)
    return first, Select(odd, compute(builder, "sub", across - 1, second), second)
