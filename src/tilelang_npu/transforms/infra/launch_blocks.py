"""The blocks of a launch: their positions in the grid, and the loop with which one block does the work of several.

Blocks are numbered in the order in which they are dispatched: along the first axis of the grid first, or in panels
(``tile.LaunchOp``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint

from tilelang_npu.analysis.launch_grids import constant_grid
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.remarks import strip_remarks
from tilelang_npu.linear import Interval
from tilelang_npu.transforms.infra.op_builder import OpBuilder, Value

__all__ = ["grid_position", "loop_over_blocks"]


def grid_position(emit: OpBuilder, launch: tile.LaunchOp, grid: Sequence[Value], number: Value) -> list[Value]:
    """Emits the operations that compute the position of a block along each axis of a launch's grid.

    Args:
        emit: the builder, at the place where the position is needed.
        launch: the launch, whose ``panel`` and ``upright`` give the order of the blocks.
        grid: the number of blocks along each axis.
        number: the number of the block, at least 0 and less than the product of ``grid``.

    Returns:
        the index of the block along each axis, the first axis first.
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


def loop_over_blocks(launch: tile.LaunchOp, count: int, *, shared_buffers: bool = False) -> scf.ForOp:
    """Launches fewer blocks, each with a loop over its share of the original blocks.

    Block ``c`` executes the original blocks ``c``, ``c + count``, ``c + 2 * count`` and so on.

    Args:
        launch: the launch, whose grid must be constant. The last argument of its body, the index of the Vector core, stays if
            there is one (``explicit_sub_block``).
        count: the new number of blocks.
        shared_buffers: whether allocations stay before the loop, so that all iterations use the same buffers.

    Returns:
        the loop, which has the location of the launch.
    """
    sizes, old, outer = constant_grid(launch), launch.body.block, launch.parent_block()
    assert sizes is not None and outer is not None
    made, inner = Block(arg_types=[IndexType()] * (1 + len(old.args) - len(sizes))), Block(arg_types=[IndexType()])
    made.args[0].name_hint, inner.args[0].name_hint = "core", "block"
    for op in list(old.ops):
        op.detach()
        (made if shared_buffers and isinstance(op, tile.AllocOp) else inner).add_op(op)
    emit = OpBuilder(outer)
    emit.location = strip_remarks(launch.location)
    head = inner.first_op
    emit.point = InsertPoint.before(head) if head is not None else InsertPoint.at_end(inner)
    places = [*grid_position(emit, launch, sizes, inner.args[0]), *made.args[1:]]
    for place, argument in zip(places, old.args, strict=True):
        if isinstance(place, SSAValue) and argument.name_hint is not None:
            place.name_hint = argument.name_hint
        argument.replace_all_uses_with(emit.value(place))
    with emit.inside(inner):
        emit.insert(scf.YieldOp())
    with emit.inside(made):
        loop = emit.insert(scf.ForOp(made.args[0], emit.value(prod(sizes)), emit.value(count), [], inner))
    launch.body.detach_block(old)
    launch.body.add_block(made)
    launch.operands = [emit.value(count)]
    for order in ("panel", "upright"):
        launch.properties.pop(order, None)
    return loop


def _emit_remainder(emit: OpBuilder, value: Value, extent: Value) -> Value:
    if isinstance(extent, int):
        return emit.modulo(value, extent)
    return emit.insert(arith.RemUIOp(emit.value(value), extent)).result


def _emit_quotient(emit: OpBuilder, value: Value, extent: Value) -> Value:
    if isinstance(extent, int):
        return emit.floordiv(value, extent)
    return emit.insert(arith.DivUIOp(emit.value(value), extent)).result


def _panel_position(emit: OpBuilder, number: Value, along: Value, across: Value, width: int) -> tuple[Value, Value]:
    """Returns the position of block ``number`` along an axis that is divided into panels of ``width``, and along the other one.

    Within a panel the position along the divided axis changes first; the other position then increases, or decreases in every
    second panel. The last panel may be narrower. The first blocks of a grid of 4 x 3 with panels of 2 are at (0, 0), (1, 0),
    (0, 1), (1, 1), (0, 2), (1, 2), and the next panel begins at (2, 2), (3, 2), (2, 1).
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
            emit.ranges.assume(value, Interval(0, emit.ranges.of(extent).high - 1))
    return first, turned
