"""Inserts a barrier of all pipes between statements outside pipelined loops, to reproduce the timing of TileLang-Ascend's
compiler (``--as upstream``).

With ``TL_ASCEND_AUTO_SYNC``, TileLang-Ascend sets each event directly before the wait for it. The waiting pipe therefore waits
for all operations that the other pipe was issued so far, so that the operations of a serial loop run one after the other:
measured kernels take as long as with a barrier after each operation (docs/accuracy.md). Loops whose buffers have several slots
get no barriers.

Runs before ``insert-sync``, which adds the synchronisation that is still missing, for example between the operations of one
statement.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from tilelang_npu.analysis.locations import location_of
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.effects import EffectsOp
from tilelang_npu.dialects.ir.remarks import Remark, Waits, set_remark
from tilelang_npu.transforms.infra.op_builder import OpBuilder

NAME = "separate-statements"


def _works(op: Operation) -> bool:
    """Whether an operation, or one in its regions, occupies a pipe."""
    return any(isinstance(inner, EffectsOp) and bool(inner.pipes()) for inner in op.walk())


def _has_slots(loop: Operation) -> bool:
    """Whether iterations of a loop use the slots of a buffer in turn."""
    return any(isinstance(buffer, hivm.PointerCastOp) and len(buffer.addrs) > 1
               for inner in loop.walk() for operand in inner.operands if isinstance(buffer := operand.owner, Operation))


def _statement(op: Operation) -> tuple[str, int] | Operation:
    place = location_of(op)
    return op if place is None or op.regions else (place.file, place.line)


class _Separator:
    """Separates the statements of one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self.emit = OpBuilder(function.body.block)

    def separate(self, block: Block, *, repeats: bool) -> None:
        """Inserts the barriers of a block and of those nested in it.

        Args:
            block: the block.
            repeats: whether the block is executed repeatedly, so that its first operation also follows its last one.
        """
        working = [op for op in block.ops if _works(op)]
        for op in working:
            if not isinstance(op, scf.ForOp | scf.WhileOp) or not _has_slots(op):
                for region in op.regions:
                    for nested in region.blocks:
                        self.separate(nested, repeats=isinstance(op, scf.ForOp | scf.WhileOp))
        for before, after in zip(working, working[1:], strict=False):
            if _statement(before) != _statement(after):
                self._insert(after)
        if repeats and len({_statement(op) for op in working}) > 1:
            self._insert(working[0])

    def _insert(self, op: Operation) -> None:
        with self.emit.before(op):
            set_remark(self.emit.insert(hivm.PipeBarrierOp("ALL")),
                       Remark(NAME, text="all pipes wait between these statements, as TileLang-Ascend's compiler does",
                              facts=Waits(source="ALL", target="ALL")))


@dataclass(frozen=True)
class SeparateStatements(ModulePass):
    """Inserts a barrier of all pipes between statements outside pipelined loops, as TileLang-Ascend's compiler waits.

    Attributes:
        in_turn: whether the pass inserts barriers; otherwise it does nothing.
    """

    name = NAME
    in_turn: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk() if self.in_turn else ():
            if isinstance(function, func.FuncOp) and function.body.blocks:
                for block in function.body.blocks:
                    _Separator(function).separate(block, repeats=False)


__all__ = ["SeparateStatements"]
