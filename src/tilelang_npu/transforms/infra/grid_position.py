"""The position of a block in the grid of its launch, from the block's number.

Blocks are numbered in the order in which they are dispatched: along the first axis of the grid first, or in panels
(``tile.LaunchOp``).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.linear import Interval
from tilelang_npu.transforms.infra.op_builder import OpBuilder, Value

__all__ = ["grid_position", "upper_bound"]


def grid_position(emit: OpBuilder, launch: tile.LaunchOp, grid: Sequence[Value], number: Value) -> list[Value]:
    """Emits the position of a block along each axis of a launch's grid.

    Args:
        emit: the builder, at the place where the position is needed.
        launch: the launch, which has the order of the blocks.
        grid: the number of blocks along each axis.
        number: the number of the block, from 0 to the product of ``grid`` - 1.
    """
    places: list[Value] = []
    rest = list(grid)
    if launch.panel is not None and len(rest) > 1:
        columns, rows, *rest = rest
        plane = emit.mul(columns, rows)
        inside = _emit_remainder(emit, number, plane) if rest else number
        number = _emit_quotient(emit, number, plane) if rest else 0
        if launch.upright is None:
            row, column = _panel_position(emit, inside, rows, columns, launch.panel.value.data)
        else:
            column, row = _panel_position(emit, inside, columns, rows, launch.panel.value.data)
        places = [column, row]
    for position, extent in enumerate(rest):
        last = position == len(rest) - 1
        places.append(number if last else _emit_remainder(emit, number, extent))
        number = number if last else _emit_quotient(emit, number, extent)
    return places


def upper_bound(ranges: Ranges, value: Value) -> float:
    """Returns the largest value that an index can have; infinity if it has no known bound."""
    return ranges.of(value).high


def _emit_remainder(emit: OpBuilder, value: Value, extent: Value) -> Value:
    if isinstance(extent, int):
        return emit.modulo(value, extent)
    return emit.insert(arith.RemUIOp(emit.value(value), extent)).result


def _emit_quotient(emit: OpBuilder, value: Value, extent: Value) -> Value:
    if isinstance(extent, int):
        return emit.floordiv(value, extent)
    return emit.insert(arith.DivUIOp(emit.value(value), extent)).result


def _panel_position(emit: OpBuilder, number: Value, along: Value, across: Value, width: int) -> tuple[Value, Value]:
    """Returns the position of block ``number`` along an axis that is divided into panels of ``width``, and across it.

    Blocks fill a panel one after another along its width, and every second panel is filled backwards across. The last panel may
    be narrower.
    """
    whole_view = emit.mul(across, width)
    panel, inside = _emit_quotient(emit, number, whole_view), _emit_remainder(emit, number, whole_view)
    start = emit.mul(panel, width)
    left = emit.sub(along, start)
    have = emit.minimum(width, left)
    first, second = emit.add(start, _emit_remainder(emit, inside, have)), _emit_quotient(emit, inside, have)
    odd = emit.modulo(panel, 2)
    # second where the panel is even, across - 1 - second where it is odd
    turned = emit.add(second, emit.mul(odd, emit.sub(emit.sub(across, 1), emit.mul(second, 2))))
    for value, extent in ((first, along), (turned, across)):
        if isinstance(value, SSAValue):
            emit.ranges.assume(value, Interval(0, upper_bound(emit.ranges, extent) - 1))
    return first, turned
