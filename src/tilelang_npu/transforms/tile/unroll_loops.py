"""Unrolls ``T.unroll`` loops, replaces loops of one iteration by their bodies, and removes loops without iterations.

The bounds of a ``T.unroll`` loop must be constants. The pass runs early, on the traced tile dialect, so that all later passes
see constant indices. A loop of one iteration is replaced because its body then needs no multi-buffer slots, no events between
iterations, and no branches for the first iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu.analysis.locations import refuse
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.remarks import DONE, Remark, Turns, add_remark
from tilelang_npu.dialects.text import location_of

_MOST_ITERATIONS = 1024
"""The most iterations to unroll: more would make a program that no instruction cache can hold."""

_TOO_FEW = {0: "the loop has no iteration, and is removed", 1: "the loop has one iteration, so no iterations can overlap"}
_REQUESTS = {tile.SCHEDULE, tile.CROSS_INTERVAL}
"""Attributes by which the author asks a later pass for a schedule: that pass must find the loop."""


def unroll_loop(loop: scf.ForOp, ranges: Ranges) -> None:
    """Replaces a loop by its body for each iteration.

    Raises:
        TileError: T260, a bound is known only at run time, or there are too many iterations.
    """
    low, high, step = (ranges.constant(value) for value in (loop.lb, loop.ub, loop.step))
    if low is None or high is None or step is None:
        raise refuse(loop, "T.unroll needs bounds that are constants", "T260", help="use T.serial for run-time bounds")
    values = range(low, high, step)
    if len(values) > _MOST_ITERATIONS:
        raise refuse(loop, f"T.unroll over {len(values)} iterations; {_MOST_ITERATIONS} are the most", "T260",
                     help="use T.serial")
    _replace_by_iterations(loop, _emit_constants(values, loop))


def _emit_constants(values: Iterable[int], loop: scf.ForOp) -> Iterator[SSAValue]:
    """Yields index constants, each inserted before the loop when it is asked for."""
    block = loop.parent_block()
    assert block is not None
    for value in values:
        index = arith.ConstantOp(IntegerAttr(value, IndexType()))
        index.location = loop.location
        block.insert_op_before(index, loop)
        yield index.result


def _replace_by_iterations(loop: scf.ForOp, indices: Iterable[SSAValue]) -> None:
    """Replaces a loop by its body for each of the given indices."""
    block = loop.parent_block()
    assert block is not None
    carried: list[SSAValue] = list(loop.iter_args)
    for index in indices:
        mapping: dict[SSAValue, SSAValue] = dict(zip(loop.body.block.args, [index, *carried], strict=True))
        for op in loop.body.block.ops:
            if isinstance(op, scf.YieldOp):
                carried = [mapping.get(operand, operand) for operand in op.operands]
            else:
                block.insert_op_before(op.clone(value_mapper=mapping), loop)
    for result, final in zip(loop.results, carried, strict=True):
        result.replace_all_uses_with(final)
    Rewriter.erase_op(loop)


@dataclass(frozen=True)
class UnrollLoops(ModulePass):
    """Unrolls ``T.unroll`` loops, replaces loops of one iteration by their bodies, and removes loops without iterations."""

    name = "unroll-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for loop in reversed([inner for inner in op.walk() if isinstance(inner, scf.ForOp)]):
            if tile.UNROLL in loop.attributes:
                unroll_loop(loop, ranges)
            elif (count := ranges.trip_count(loop).constant) in (0, 1) and not loop.attributes.keys() & _REQUESTS:
                stages = loop.attributes.get(tile.NUM_STAGES)
                if isinstance(stages, IntegerAttr):
                    add_remark(op, Remark(self.name, DONE, place=location_of(loop), text=_TOO_FEW[count],
                                          facts=Turns(stages.value.data, (), ())))
                _replace_by_iterations(loop, [loop.lb][:count])
