"""Code that runs its ops and calls an observer before and after every op that accesses numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.ir import Operation

from tilelang_npu.simulator.codegen.op_recorder import Costing, Operand
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import OpRecord


class Observer(Protocol):
    """Receives the ops of a run that read or write numbers."""

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Array],
               writes: Sequence[Array]) -> object:
        """Called before the op runs; the returned object is passed to ``after``."""

    def after(self, kept: object) -> None:
        """Called after the op has run."""


class ObservedEmitter(PythonEmitter):
    """As ``PythonEmitter``, with calls of the observer that the code is bound to."""

    _watched = ""

    def record(self, op: Operation, pipe: str, operands: Sequence[Operand],
               work: Costing) -> OpRecord:
        """Records the op and emits the call before it; ops without numbers are not observed."""
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
        """Emits the call after the op."""
        if self._watched:
            self.scope.line(f"observer.after({self._watched})", self.current)
            self._watched = ""
