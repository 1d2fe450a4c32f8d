"""Warns of loops of ``T.Parallel`` that are computed one point at a time (T192)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang_npu.dialects.ir.remarks import REFUSED, Points, module_remarks
from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilelang_npu.target import Chip

_NOTABLE = 5.0
"""Microseconds from which on a loop leads to a warning: about what the launch of a kernel takes."""


def scalar_loop_warnings(module: ModuleOp, chip: Chip) -> tuple[TileError, ...]:
    """Returns a warning for each ``T.Parallel`` that scalar code computes at a notable cost, in program order.

    There is no warning where vector operations would take longer, and where the user has switched them off.

    Args:
        module: the kernel's module, with the remarks of ``vectorise-parallel``.
        chip: the chip for which the kernel is compiled.
    """
    found = []
    for remark in module_remarks(module, Points):
        points = remark.facts
        if remark.kind != REFUSED or not isinstance(points, Points):
            continue
        time = chip.microseconds(points.cycles)
        if time >= _NOTABLE:
            extents = "x".join(map(str, points.extents))
            message = (f"the {extents} points of T.Parallel are computed one by one by the scalar unit, about {time:.0f} us "
                       f"each time: {remark.text}")
            found.append(TileError(message, code="T192", location=remark.place, help=remark.edit))
    return tuple(found)


__all__ = ["scalar_loop_warnings"]
