"""Code that runs op by op under somebody else's control, for schedules other than program order.

The generated function is a generator: it yields each op instead of running it, as ``(event, gm offsets, function,
arguments, operands)``, and goes on with the next one. Arguments are bound when the op is issued, as the scalar unit does.
Only what the scalar unit reads runs in place, when the generator is resumed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilelang_npu.simulator.codegen.lines import Int, Line
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.records import Costing, Operand
from tilelang_npu.simulator.machine.events import OpRecord
from tilelang_npu.target import Chip


class StepwiseEmitter(PythonEmitter):
    """As ``PythonEmitter``, for code that yields its ops."""

    stepwise = True
    _pending: tuple[str, Sequence[Operand]] | None = None
    _body: list[str]

    def __init__(self, function: FuncOp, core: str, chip: Chip, parallel: int) -> None:
        super().__init__(function, core, chip, parallel)
        self.scope.line("if False: yield")  # a core without ops is a generator, too

    def record(self, op: Operation, pipe: str, operands: Sequence[Operand],
               work: Costing) -> OpRecord:
        """Record the op; what its handler then writes becomes a function of its own."""
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

    def now(self, record: OpRecord) -> str:
        """What is recorded is handed over like all else."""
        return f"yield {record.number}, (), None, (), ()"

    def line(self, text: str, op: Operation | None = None) -> None:
        """A statement: of the op that was recorded, or of the scalar unit."""
        if self._pending is None:
            super().line(text, op)
        else:
            self._body.append(text)

    def finish_op(self) -> None:
        """Write the function of the recorded op, and the yield that hands it over."""
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

    def leave_flag(self, flag: Int, group: str, op: Operation) -> None:
        """Cross-core flags are the schedule's."""

    def take_flag(self, record: OpRecord, flag: Int, op: Operation) -> None:
        """Cross-core flags are the schedule's."""
