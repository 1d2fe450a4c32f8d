"""Write the iterations of a ``T.unroll`` loop one behind the other, and any loop of one iteration, or of none, as what it does.

Runs first, on the tile dialect as traced, so that everything later sees constant indices. The bounds of the former must be
constants. What is done once needs no slots, no event from one iteration to the next, and no branch for the first one.
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

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.remarks import DONE, Remark, Turns, add_remark
from tilelang_npu.dialects.text import location_of
from tilelang_npu.transforms.ir.locations import refuse
from tilelang_npu.transforms.ir.ranges import Ranges

LIMIT = 1024  # iterations; more would make a program that nobody can read and no instruction cache can hold

_TOO_FEW = {0: "no iteration: it never runs", 1: "one iteration: there is none to take turns with"}
_ASKED = {tile.SCHEDULE, tile.CROSS_INTERVAL}
"""What an author says of a loop's iterations that its pass answers."""


def _unroll(loop: scf.ForOp, ranges: Ranges) -> None:
    low, high, step = (ranges.constant(value) for value in (loop.lb, loop.ub, loop.step))
    if low is None or high is None or step is None:
        raise refuse(loop, "T.unroll needs bounds that are constants", "T260", help="use T.serial for run-time bounds")
    values = range(low, high, step)
    if len(values) > LIMIT:
        raise refuse(loop, f"T.unroll over {len(values)} iterations; {LIMIT} are the most", "T260", help="use T.serial")
    _write(loop, _constants(values, loop))


def _constants(values: Iterable[int], loop: scf.ForOp) -> Iterator[SSAValue]:
    """Indices, each put in front of the loop when it is asked for."""
    block = loop.parent_block()
    assert block is not None
    for value in values:
        index = arith.ConstantOp(IntegerAttr(value, IndexType()))
        index.location = loop.location
        block.insert_op_before(index, loop)
        yield index.result


def _write(loop: scf.ForOp, indices: Iterable[SSAValue]) -> None:
    """Put what a loop does for some indices in its place."""
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
    """The pass; see the module's text."""

    name = "unroll-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for loop in reversed([inner for inner in op.walk() if isinstance(inner, scf.ForOp)]):
            if tile.UNROLL in loop.attributes:
                _unroll(loop, ranges)
            elif (count := ranges.trip_count(loop).constant) in (0, 1) and not loop.attributes.keys() & _ASKED:
                stages = loop.attributes.get(tile.NUM_STAGES)
                if isinstance(stages, IntegerAttr):
                    add_remark(op, Remark(self.name, DONE, place=location_of(loop), text=_TOO_FEW[count],
                                    facts=Turns(stages.value.data, (), ())))
                _write(loop, [loop.lb][:count])
