"""Generates code that only records its ops, in order and with the bytes that they access; it computes and writes no values.

Every view is still created, so that an access beyond the end of its memory is found. Numbers that the scalar unit reads from
memory are unknown: a ``PlaceholderData`` supplies numbers in their place, and records the branches that depend on them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilelang_npu.simulator.codegen.code_scopes import Int
from tilelang_npu.simulator.codegen.op_recorder import Costing, Operand
from tilelang_npu.simulator.codegen.per_block_scalars import UnbatchableFunctionError, find_per_block_scalars
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.machine.op_records import OpRecord
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import CoreKind, PipeName

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.data_dependence import DataDependence


def _numbers(op: Operation) -> Sequence[SSAValue]:
    """Returns the scalar operands of an op that are not part of an address."""
    if isinstance(op, (memref.LoadOp, memref.StoreOp)):
        return op.operands[:1] if isinstance(op, memref.StoreOp) else ()
    return [value for value in op.operands if not isinstance(value.type, MemRefType)]


class TracingEmitter(PythonEmitter):
    """Generates the Python source of one device function that records its ops without running them.

    Args:
        data: the data-dependent behaviour of the function.
        function, core, chip, parallel: as for ``PythonEmitter``.
    """

    computes = False
    _inside = False

    def __init__(self, data: DataDependence, function: FuncOp, core: CoreKind, chip: Chip, parallel: int) -> None:
        super().__init__(function, core, chip, parallel)
        self._branches, self._differing = data.branches, data.differing
        self._own: Container[SSAValue] = ()
        with suppress(UnbatchableFunctionError):
            self._own = find_per_block_scalars(function)

    def record(self, op: Operation, pipe: PipeName | Literal[""], operands: Sequence[Operand],
               work: Costing) -> OpRecord:
        """Records an op. The statements that the op's handler then emits are omitted, unless the op returns a number to the
        scalar unit.
        """
        made = super().record(op, pipe, operands, work)
        self._inside = not op.results
        texts = [self.expression(value).text for value in _numbers(op) if value in self._differing and value not in self._own]
        if numbers := [text for text in texts if text not in made.facts]:
            self.scope.line(f"placeholder.note_scalars(bid, sid, {', '.join(numbers)})", op)
        return made

    def line(self, text: str, op: Operation | None = None) -> None:
        """Emits a statement of the scalar unit, and omits a statement of a recorded op."""
        if not self._inside:
            super().line(text, op)

    def emit_scalar_read(self, name: str, element: str) -> None:
        """Emits the assignment of a number from ``PlaceholderData.read`` to the variable ``name``."""
        self.line(f"{name} = placeholder.read({element})")

    def condition_text(self, op: Operation, condition: str) -> str:
        """Returns the expression of a condition; one that depends on data also records its value in the ``PlaceholderData``."""
        return f"placeholder.branch({self._branches[op]}, {condition})" if op in self._branches else condition

    def emit_print(self, text: str) -> None:
        """Emits nothing: a trace has no values to print."""

    def finish_op(self) -> None:
        """Called after the last line of an op: statements from here on are no longer omitted."""
        self._inside = False

    def emit_card_wait(self, record: OpRecord, wait: str, op: Operation) -> None:
        """Emits nothing: a trace does not run on a pod, and takes every wait for another card to be over."""

    def emit_flag_set(self, flag: Int, group: str, op: Operation) -> None:
        """Emits the statement that sets a flag, as in a run, so that the trace does not reach ops after a wait that never ends.
        """
        self._inside = False
        super().emit_flag_set(flag, group, op)

    def emit_flag_wait(self, record: OpRecord, flag: Int, op: Operation) -> None:
        """Emits the loop that waits for a flag, as in a run."""
        self._inside = False
        super().emit_flag_wait(record, flag, op)
