"""How many blocks a call launches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.binding import BoundCall, size_of
from tilelang_npu.simulator.machine.core_coroutines import MAX_BLOCKS
from tilelang_npu.traced.author import user_location
from tilelang_npu.transforms.ir.launch_names import names_of

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter
    from tilelang_npu.traced.symbols import Dimension

__all__ = ["blocks"]


def blocks(kernel: str, parameters: Sequence[Parameter], grids: Sequence[Sequence[Dimension]], per_point: Sequence[int],
           call: BoundCall, place: Callable[[int], Location | None]) -> tuple[int, ...]:
    """The blocks of each ``T.Kernel``.

    Args:
        kernel: the kernel's name.
        parameters: its parameters.
        grids: of each ``T.Kernel`` its sizes.
        per_point: blocks for a point of each grid.
        call: the arguments.
        place: where a ``T.Kernel`` is written, by its number.

    Raises:
        TileError: T406 there are none, because a size or a number among the arguments makes the grid empty, or too many.
    """
    numbers = {p.name: int(value) for p, value in zip(parameters, call.values, strict=True)
               if p.shape is None and not p.dtype.is_float}
    found = []
    names = names_of(kernel, len(grids))
    for number, (name, points, each) in enumerate(zip(names, grids, per_point, strict=True)):
        grid = [size_of(size, {**numbers, **call.symbols}) for size in points]
        if min(grid) <= 0:
            msg = f"the grid of {name} is {' x '.join(map(str, grid))}: there is no block to run"
            raise TileError(msg, code="T406", location=user_location(),
                            help="skip the call where there is nothing to compute")
        launched = math.prod(grid)
        if launched > MAX_BLOCKS:  # of the launch: the Vector cores of a point are one block there
            called = user_location()
            raise TileError(f"the grid of {name} is {' x '.join(map(str, grid))}: {launched} blocks, and a launch has at "
                            f"most {MAX_BLOCKS}", code="T406", location=place(number),
                            notes=(f"in the call at {called}",) if called else (),
                            help="take larger tiles, or let each block loop over several of them (T.Persistent)")
        found.append(launched * each)
    return tuple(found)
