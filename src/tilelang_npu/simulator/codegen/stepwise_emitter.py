"""Generates code that yields its ops instead of running them, so that a schedule decides when each op runs.

The generated function is a generator of tuples ``(event, GM offsets, function, arguments, operands)``: calling the function
with the arguments runs the op. The values of the arguments are those at the time of the yield, at which the scalar unit issues
the op. Reads by the scalar unit run at once, when the generator is resumed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from typing import Literal

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilelang_npu.sharing import parse_python
from tilelang_npu.simulator.codegen.code_scopes import Int, Line
from tilelang_npu.simulator.codegen.op_recorder import Costing, Operand
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.machine.op_records import OpRecord
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import CoreKind, PipeName


class StepwiseEmitter(PythonEmitter):
    """Generates the Python source of one device function as a generator that yields its ops.

    Args:
        function, core, chip, parallel: as for ``PythonEmitter``.
    """

    stepwise = True
    settles_products = True
    _pending: tuple[str, Sequence[Operand]] | None = None
    _body: list[str]

    def __init__(self, function: FuncOp, core: CoreKind, chip: Chip, parallel: int) -> None:
        super().__init__(function, core, chip, parallel)
        self.scope.line("if False: yield")  # makes the function a generator even if it has no ops

    def record(self, op: Operation, pipe: PipeName | Literal[""], operands: Sequence[Operand],
               work: Costing) -> OpRecord:
        """Records an op. The statements that the op's handler then emits become the body of a function that runs the op."""
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

    def record_statement(self, record: OpRecord, *facts: str) -> str:
        """Returns a statement that yields the event of an op without operands in memory.

        Args:
            record: the record of the op.
            facts: the expressions of the event's facts (run-time numbers).
        """
        event = f"({record.number}, {', '.join(facts)})" if facts else record.number
        return f"yield {event}, (), None, (), ()"

    def line(self, text: str, op: Operation | None = None) -> None:
        """Emits a statement: between ``record`` and ``finish_op`` into the function that runs the op, otherwise into the
        generator.
        """
        if self._pending is None:
            super().line(text, op)
        else:
            self._body.append(text)

    def finish_op(self) -> None:
        """Emits the function that runs the recorded op, and the statement that yields the op."""
        if self._pending is None:
            return
        (event, operands), self._pending = self._pending, None
        used = {node.id for text in self._body for node in ast.walk(parse_python(text)) if isinstance(node, ast.Name)}
        names = "".join(f"{name}, " for name in sorted(used - self.globals.keys() - vars(builtins).keys() - {"nd"}))
        views = "".join(f"{self.array(operand.buffer)}, " for operand in operands)
        function = self.fresh("f")
        self.scope.line(f"def {function}({names}):", self.current)
        for text in self._body or ["pass"]:
            self.scope.lines.append(Line(self.scope.indent + 1, text, self.current))
        self.scope.line(f"yield {event}, {function}, ({names}), ({views})", self.current)

    def emit_card_wait(self, record: OpRecord, wait: str, op: Operation) -> None:
        """Emits nothing: ``Program.run`` refuses to reorder a kernel that waits for other cards."""

    def emit_flag_set(self, flag: Int, group: str, op: Operation) -> None:
        """Emits nothing: the schedule counts flags between cores."""

    def emit_flag_wait(self, record: OpRecord, flag: Int, op: Operation) -> None:
        """Emits nothing: the schedule counts flags between cores."""
