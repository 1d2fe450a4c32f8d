"""The order in which blocks take tiles: ``T.use_swizzle``."""

from __future__ import annotations

from typing import Any

from tilelang_npu.errors import TileError
from tilelang_npu.frontend import arithmetic
from tilelang_npu.frontend.arithmetic import binary as compute
from tilelang_npu.frontend.builder import Builder
from tilelang_npu.language import tracing
from tilelang_npu.language.scalar import Select


def use_swizzle(cid: Any, m: Any = None, n: Any = None, k: Any = None, block_m: Any = None, block_n: Any = None,
                off: int = 1, dir: int = 0, in_loop: bool = False) -> Any:  # noqa: A002  (the language's name)
    """The tile that block ``cid`` takes, as row times columns plus column: bands of ``off`` rows (columns with ``dir`` 1),
    every other one backwards, so that neighbours share what they load. Numbers past the last tile stay what they are. ``k`` and
    ``in_loop`` have no effect.

    Raises:
        TileError: T150, a size that is no positive constant or that the blocks do not divide; T190, the form for a GPU, which
            has the number of a panel alone.
    """
    what = "T.use_swizzle"
    if m is None or isinstance(m, str):
        raise TileError(f"{what}({cid}) orders the blocks of a GPU", code="T190", location=tracing.user_location(),
                        help="number = T.use_swizzle(cid, M, N, K, block_M, block_N) is the tile that a block takes")
    builder = tracing.builder(what)
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
