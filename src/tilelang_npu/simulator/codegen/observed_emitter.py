"""Generates code that runs its ops and calls an observer before and after every op that accesses memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from xdsl.ir import Operation

from tilelang_npu.simulator.codegen.op_recorder import Costing, Operand
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import OpRecord
from tilelang_npu.target.chip_data import PipeName


class Observer(Protocol):
    """An object that generated code calls before and after every op of a run that accesses memory."""

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Array],
               writes: Sequence[Array]) -> object:
        """Called before an op runs.

        Args:
            block, sub: the block and the sub-block that run the op.
            op: the op.
            record: the record of the op.
            reads: the arrays of the operands that the op reads, without temporaries.
            writes: the arrays of the operands that the op writes, without temporaries.

        Returns:
            an object that is passed to ``after``.
        """

    def after(self, kept: object) -> None:
        """Called after an op has run, with the object that ``before`` returned for this op."""


class ObservedEmitter(PythonEmitter):
    """Generates the Python source of one device function that calls an :class:`Observer` around its ops.

    The observer is an argument of ``CompiledFunction.bind_with``.
    """

    _watched = ""
    settles_products = True

    def record(self, op: Operation, pipe: PipeName | Literal[""], operands: Sequence[Operand],
               work: Costing) -> OpRecord:
        """Records an op and emits the call of ``Observer.before``, if the op has an operand in memory that is no temporary."""
        self.finish_op()
        made = super().record(op, pipe, operands, work)
        if any(not operand.scratch for operand in operands):
            reads, writes = (self._views(operands, writes=writes) for writes in (False, True))
            given = f"{self.constant(op, 'op')}, {self.constant(made, 'record')}"
            self._watched = self.fresh("w")
            self.scope.line(f"{self._watched} = observer.before(bid, sid, {given}, ({reads}), ({writes}))", op)
        return made

    def _views(self, operands: Sequence[Operand], *, writes: bool) -> str:
        chosen = [operand for operand in operands if (operand.writes if writes else operand.reads)]
        return "".join(f"{self.array(operand.buffer)}, " for operand in chosen if not operand.scratch)

    def finish_op(self) -> None:
        """Emits the call of ``Observer.after`` for the current op, if a call of ``Observer.before`` was emitted for this op."""
        if self._watched:
            self.scope.line(f"observer.after({self._watched})", self.current)
            self._watched = ""
