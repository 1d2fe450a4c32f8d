"""Code that only tells what its ops are: which run, in which order, on which bytes. Nothing is computed and nothing written.

Every view is still made, so that an access beyond the end of its memory is found. Numbers that the scalar unit reads from a
tensor or a buffer are not known: a ``Witness`` stands in for them, and notes which ways branches went that depend on them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilelang_npu.simulator.codegen.lines import Int
from tilelang_npu.simulator.codegen.own_numbers import ApartError, own_numbers
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.records import Costing, Operand
from tilelang_npu.simulator.machine.events import OpRecord
from tilelang_npu.target import Chip

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.data_uses import DataUses


def _numbers(op: Operation) -> Sequence[SSAValue]:
    """The scalars that an op takes besides what tells where its operands are."""
    if isinstance(op, (memref.LoadOp, memref.StoreOp)):
        return op.operands[:1] if isinstance(op, memref.StoreOp) else ()
    return [value for value in op.operands if not isinstance(value.type, MemRefType)]


class TracingEmitter(PythonEmitter):
    """As ``PythonEmitter``, for code that leaves out what its ops do.

    Args:
        data: what depends on the numbers that are read.
        function, core, chip, parallel: as for ``PythonEmitter``.
    """

    computes = False
    _inside = False

    def __init__(self, data: DataUses, function: FuncOp, core: str, chip: Chip, parallel: int) -> None:
        super().__init__(function, core, chip, parallel)
        self._branches, self._differing = data.branches, data.differing
        self._own: Container[SSAValue] = ()
        with suppress(ApartError):
            self._own = own_numbers(function)

    def record(self, op: Operation, pipe: str, operands: Sequence[Operand],
               work: Costing) -> OpRecord:
        """Record the op; what its handler then writes is left out, unless it makes a number for the scalar unit."""
        made = super().record(op, pipe, operands, work)
        self._inside = not op.results
        texts = [self.expression(value).text for value in _numbers(op) if value in self._differing and value not in self._own]
        if numbers := [text for text in texts if text not in made.facts]:
            self.scope.line(f"witness.note(bid, sid, {', '.join(numbers)})", op)
        return made

    def line(self, text: str, op: Operation | None = None) -> None:
        """A statement of the scalar unit; those of an op are left out."""
        if not self._inside:
            super().line(text, op)

    def read(self, name: str, element: str) -> None:
        """Ask the witness for a number."""
        self.line(f"{name} = witness.read({element})")

    def decided(self, op: Operation, condition: str) -> str:
        """Note how the condition of a branch comes out that depends on data."""
        return f"witness.way({self._branches[op]}, {condition})" if op in self._branches else condition

    def shown(self, text: str) -> None:
        """There are no values to print."""

    def finish_op(self) -> None:
        """What comes next is the scalar unit's again."""
        self._inside = False

    def leave_flag(self, flag: Int, group: str, op: Operation) -> None:
        """Flags are set and waited for as in a run: what is behind a wait that never ends is not reached."""
        self._inside = False
        super().leave_flag(flag, group, op)

    def take_flag(self, record: OpRecord, flag: Int, op: Operation) -> None:
        """See ``leave_flag``."""
        self._inside = False
        super().take_flag(record, flag, op)
