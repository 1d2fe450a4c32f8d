"""Whether data decide what a kernel does: how often a loop runs, which branch is taken, where an op reads or writes.

Where they do not, a kernel's ops, times and hazards are known without running it on numbers.
"""

from __future__ import annotations

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import AnyFloat, MemRefType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.simulator.codegen.emitter import EFFECT, PURE, op_name


def decided_by_data(function: FuncOp) -> Operation | None:
    """The first op found whose place, extent or turn follows from what memory holds; None where there is none.

    Numbers that are read from memory may be computed with, stored, and given to vector ops as floating-point scalars. An
    integer of a vector op counts as an extent.
    """
    return _Walk().run(function)


class _Walk:
    """Follows what was read from memory, through loops until nothing new is found."""

    def __init__(self) -> None:
        self.read: set[SSAValue] = set()
        self.grown = True

    def run(self, function: FuncOp) -> Operation | None:
        while self.grown:
            self.grown = False
            for op in function.walk():
                if self._decides(op):
                    return op
        return None

    def _mark(self, *values: SSAValue) -> bool:
        self.grown |= not self.read.issuperset(values)
        self.read.update(values)
        return False

    def _decides(self, op: Operation) -> bool:
        """Whether data decide something of this op; what they only flow through is marked."""
        name = op_name(op)
        if isinstance(op, memref.LoadOp) and isinstance(op.memref.owner, memref.AllocaOp):  # a variable of the scalar unit
            source = op.memref in self.read
            return any(index in self.read for index in op.indices) or (source and self._mark(*op.results))
        if name in EFFECT and op.results and not op.regions and not isinstance(op, memref.AllocaOp | memref.AllocOp):
            self._mark(*op.results)
        places = [place for place, operand in enumerate(op.operands) if operand in self.read]
        if not places or isinstance(op, ReturnOp):
            return False
        if isinstance(op, memref.StoreOp):
            held = isinstance(op.memref.owner, memref.AllocaOp)
            return places != [0] or (held and self._mark(op.memref))
        if isinstance(op, scf.ForOp):
            carried = [place - 3 for place in places]
            return min(carried) < 0 or self._mark(*(op.results[place] for place in carried),
                                                  *(op.body.block.args[place + 1] for place in carried))
        if isinstance(op, scf.WhileOp):
            return self._mark(*(op.before_region.block.args[place] for place in places))
        if isinstance(op, scf.ConditionOp):
            loop = op.parent_op()
            assert isinstance(loop, scf.WhileOp)
            return places[0] == 0 or self._mark(*(loop.results[place - 1] for place in places),
                                                *(loop.after_region.block.args[place - 1] for place in places))
        if isinstance(op, scf.YieldOp):
            return self._mark(*(value for place in places for value in _received(op, place)))
        if name in PURE:
            if any(isinstance(result.type, MemRefType) for result in op.results):
                return True
            return self._mark(*op.results)
        return not all(isinstance(op.operands[place].type, AnyFloat) for place in places)


def _received(op: scf.YieldOp, place: int) -> list[SSAValue]:
    """What a yielded value becomes."""
    parent, block = op.parent_op(), op.parent_block()
    assert parent is not None
    assert isinstance(block, Block)
    if isinstance(parent, scf.ForOp):
        return [parent.results[place], parent.body.block.args[place + 1]]
    if isinstance(parent, scf.WhileOp):
        return [parent.before_region.block.args[place]]
    return [parent.results[place]]
