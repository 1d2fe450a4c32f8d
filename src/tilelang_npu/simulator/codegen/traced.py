"""Code that only tells what its ops are: which run, in which order, on which bytes. No array is read or written.

What it takes from memory is whatever lies there, so that it is of use only where data decide nothing (``data_free``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from tilelang_npu.simulator.codegen.emitter import Emitter, Operand
from tilelang_npu.simulator.codegen.scope import Int
from tilelang_npu.simulator.events import OpRecord, Slot


class TracingEmitter(Emitter):
    """As ``Emitter``, for code that leaves out what its ops do."""

    _inside = False

    def record(self, op: Operation, pipe: str, operands: Sequence[Operand],
               work: Callable[[Callable[[Int], Slot]], object]) -> OpRecord:
        """Record the op; what its handler then writes is left out, unless it makes a number for the scalar unit."""
        made = super().record(op, pipe, operands, work)
        self._inside = not op.results
        return made

    def line(self, text: str, op: Operation | None = None) -> None:
        """A statement of the scalar unit; those of an op are left out."""
        if not self._inside:
            super().line(text, op)

    def shown(self, text: str) -> None:
        """There are no values to print."""

    def finish_op(self) -> None:
        """What comes next is the scalar unit's again."""
        self._inside = False

    def leave_flag(self, flag: Int, group: str, op: Operation) -> None:
        """Nobody waits: the order of the cores is found from what they tell."""

    def take_flag(self, record: OpRecord, flag: Int, op: Operation) -> None:
        """See ``leave_flag``."""
