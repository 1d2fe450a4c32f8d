"""Checks that a view lies inside its buffer and its memory: at compile time where that is known, otherwise at run time.

NumPy refuses an array that reaches beyond its memory. So a view that may leave its buffer becomes an array over the bytes of
that buffer alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError
from tilelang_npu.simulator.codegen.strided import Base, StridedView, spoken

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.values import Values


def part(em: Values, base: Base, limit: tuple[int, int]) -> str:
    """Returns the name of the bytes of one buffer."""
    name = em.parts.get((base, limit))
    if name is None:
        name = em.parts[base, limit] = f"{em.fresh('b')}_{base.label}"
        em.launch.line(f"{name} = {base.name}[{limit[0]}:{limit[1]}]")
    return name


def checked(em: Values, view: StridedView, element: np.dtype[np.void] | None) -> bool:
    """Whether a view is known to lie inside its memory.

    Raises:
        TileError: T502, it is known to lie outside.
    """
    base = view.base
    reach = view.offset + (view.element.nbytes if element is None else element.itemsize)
    for size, stride in zip(view.sizes, view.strides, strict=True):
        if not stride.known:
            return False
        reach = reach + (size - 1) * stride.constant
    if base.memory != "gm" and base.size is not None:
        high, known = reach.interval.high, em.extents.get(base.memory, 0)
        bounded = high <= base.size  # otherwise the limits of the view's buffer are better bounds
        em.extents[base.memory] = max(known, int(high)) if bounded else known or base.size
    if base.size is None:
        return False
    first, end = view.limit or (0, base.size)
    if view.static and view.shape is not None and 0 not in view.shape and (
            view.offset.constant < max(first, 0) or reach.constant > min(end, base.size)):
        beyond = view.offset.constant < 0 or reach.constant > base.size
        whole, room = (spoken(base), base.size) if beyond else (base.label or "its buffer", end - first)
        shift = 0 if beyond else first
        raise TileError(
            f"bytes {view.offset.constant - shift}..{reach.constant - shift - 1} do not lie in {whole}, which has {room} bytes",
            code="T502", location=location_of(em.owner_now()),
            help="the address plus the size of the buffer must not pass the end of the memory")
    return view.offset.at_least(first) and reach.at_most(end) and all(size.at_least(0) for size in view.sizes)


def check_address(em: Values, view: StridedView) -> None:
    """Checks the alignment of a known address, and that the buffer fits.

    Raises:
        TileError: T502, it does not fit; T510, it is not aligned.
    """
    memory = em.chip.memory[view.base.memory]
    if not view.offset.known:
        return
    if view.offset.constant % memory.align:
        raise TileError(f"address {view.offset.constant} in {spoken(view.base)} is not a multiple of {memory.align}",
                        code="T510", location=location_of(em.owner_now()))
    if view.shape is not None:
        checked(em, view, None)
