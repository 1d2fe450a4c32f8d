"""Code that yields its ops instead of running them, so that a schedule decides when each one runs.

The generated function is a generator of ``(event, gm offsets, function, arguments, operands)``. Arguments are bound when the op
is issued, as the scalar unit does. Reads of the scalar unit run at once, when the generator is resumed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilelang_npu.simulator.codegen.code_scopes import Int, Line
from tilelang_npu.simulator.codegen.op_recorder import Costing, Operand
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.machine.op_records import OpRecord
from tilelang_npu.target import Chip


class StepwiseEmitter(PythonEmitter):
    """As ``PythonEmitter``, for code that yields its ops."""

    stepwise = True
    _pending: tuple[str, Sequence[Operand]] | None = None
    _body: list[str]

    def __init__(self, function: FuncOp, core: str, chip: Chip, parallel: int) -> None:
        super().__init__(function, core, chip, parallel)
        self.scope.line("if False: yield")  # makes the function a generator even if it has no ops

    def record(self, op: Operation, pipe: str, operands: Sequence[Operand],
               work: Costing) -> OpRecord:
        """Records the op; the statements of its handler become a function."""
        self.finish_op()
        made = super().record(op, pipe, operands, work)
        self.switches = True
        event, offsets = self._events.pop(), "".join(f"{text}, " for text in self._gm)
        self._gm = []
        if not operands or (pipe == "S" and not any(operand.writes for operand in operands)):
            self.scope.line(f"yield {event}, ({offsets}), None, (), ()", op)
        else:
            self._pending, self._body = (f"{event}, ({offsets})", operands), []
        return made

    def record_statement(self, record: OpRecord) -> str:
        """Returns the statement that yields a record without operands."""
        return f"yield {record.number}, (), None, (), ()"

    def line(self, text: str, op: Operation | None = None) -> None:
        """Emits a statement: of the recorded op, or of the scalar unit."""
        if self._pending is None:
            super().line(text, op)
        else:
            self._body.append(text)

    def finish_op(self) -> None:
        """Emits the function of the recorded op, and the yield."""
        if self._pending is None:
            return
        (event, operands), self._pending = self._pending, None
        used = {node.id for text in self._body for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        names = "".join(f"{name}, " for name in sorted(used - self.globals.keys() - vars(builtins).keys() - {"nd"}))
        views = "".join(f"{self.array(operand.buffer)}, " for operand in operands)
        function = self.fresh("f")
        self.scope.line(f"def {function}({names}):", self.current)
        for text in self._body or ["pass"]:
            self.scope.lines.append(Line(self.scope.indent + 1, text, self.current))
        self.scope.line(f"yield {event}, {function}, ({names}), ({views})", self.current)

    def emit_flag_set(self, flag: Int, group: str, op: Operation) -> None:
        """Emits nothing: the schedule counts flags between cores."""

    def emit_flag_wait(self, record: OpRecord, flag: Int, op: Operation) -> None:
        """Emits nothing: the schedule counts flags between cores."""
