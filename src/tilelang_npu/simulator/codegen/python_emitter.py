"""Generates the Python source of one device function: its lines, op by op."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from tilelang_npu.simulator.codegen.data_uses import lengths_by_data
from tilelang_npu.simulator.codegen.handlers import Value, handler_of, unsupported
from tilelang_npu.simulator.codegen.lines import CodeScope, Int, Kind
from tilelang_npu.simulator.codegen.records import Records
from tilelang_npu.simulator.codegen.strided import Buffer
from tilelang_npu.simulator.machine.events import OpRecord
from tilelang_npu.target import Chip


class PythonEmitter(Records):
    """Generates the Python source of one device function.

    Args:
        function: the function.
        core: ``AIC`` or ``AIV``.
        chip: gives the capacities of the memories.
        parallel: sub-blocks of the block (1, or 2 for the Vector half of a mixed kernel).

    Attributes:
        switches: whether the function waits for other cores.
        global_sync: whether it waits for other blocks.
        turns: of each loop that is open its variable, lower bound and step.
        atomic: what stores to GM do with what is there.
        unwatched: iterations of the loops at this place, with those in them, that nobody counts.
        axes_in_front: how many axes arrays have in front of those of their memrefs.
    """

    stepwise = False
    computes = True
    axes_in_front = 0

    def __init__(self, function: FuncOp, core: str, chip: Chip, parallel: int) -> None:
        super().__init__(function, core, chip, parallel)
        self.switches = self.global_sync = False
        self.turns: dict[Operation, tuple[Int, Int, Int]] = {}
        self.atomic = "none"
        self.unwatched = 1
        self._by_data: frozenset[Operation] | None = None

    def evaluate(self, op: Operation) -> Value | Sequence[Value]:
        """The results of an op without effects.

        Raises:
            TileError: T501, it is not executed.
        """
        handler = handler_of(type(op))
        if handler is None or handler.kind != "pure":
            raise unsupported(op)
        made: Value | Sequence[Value] = handler.run(self, op)
        return made

    def knows_length(self, loop: Operation) -> bool:
        """Whether how often a counted loop runs follows from sizes and the number of the block, not from data."""
        if self._by_data is None:
            self._by_data = lengths_by_data(self.function)
        return loop not in self._by_data

    # -- lines -------------------------------------------------------------------------------------------------------

    def line(self, text: str, op: Operation | None = None) -> None:
        """A statement in the current scope."""
        self.scope.line(text, op if op is not None else self.current)

    def over(self, text: str, *buffers: Buffer) -> None:
        """A statement that does to each element, or to each matrix, the same whatever axes its arrays have in front of theirs,
        where these buffers have as many axes as each other."""
        self.line(text)

    def multiplied_by_rows(self, *buffers: Buffer, rows: bool) -> None:
        """The matrices that an op multiplies, and whether it may have their rows whole in place of fractals."""

    def shown(self, text: str) -> None:
        """A statement that prints for the kernel's author."""
        self.line(text)

    def finish_op(self) -> None:
        """The lines of an op are complete."""

    def is_own(self) -> bool:
        """Whether the number that is being made is an array, with one for each block that the code runs."""
        return False

    def read(self, name: str, element: str) -> None:
        """Set a variable to the number in an array of one element."""
        self.line(f"{name} = {element}.item()")

    def decided(self, op: Operation, condition: str) -> str:
        """The condition of a branch or an open loop, as it is written."""
        return condition

    def leave_flag(self, flag: Int, group: str, op: Operation) -> None:
        """Set a flag between cores."""
        self.line(f"set_flag({self.spelled(flag)}, {group!r})", op)

    def take_flag(self, record: OpRecord, flag: Int, op: Operation) -> None:
        """Wait for a flag between cores, handing over to the other cores until it is set."""
        self.flush()
        text = self.name_of(flag)
        self.line(f"while not counts[{text}]: yield {record.number}, {text}", op)
        self.line(f"counts[{text}] -= 1", op)

    def enter(self, kind: Kind, *, certain: bool = False) -> CodeScope:
        """Open a scope inside the current one."""
        self.flush()
        self.scope = CodeScope(kind, self.scope, self.scope.indent + 1, certain)
        return self.scope

    def leave(self) -> None:
        """Close the current scope."""
        self.flush()
        scope = self.scope
        if not scope.lines:
            scope.line("pass")
        scope.close()
        assert scope.parent is not None
        self.scope = scope.parent

    # -- blocks --------------------------------------------------------------------------------------------------------

    def emit_block(self, block: Block) -> None:
        """Emit the ops of a block in their order."""
        self.scalar_work.arguments(block.args)
        self.homes[block] = self.scope
        for op in block.ops:
            self.current = op
            handler = handler_of(type(op))
            if handler is None:
                raise unsupported(op, help_="write it with other ops of the planned form; T501 lists what nothing executes")
            if handler.kind == "effect":
                self.scalar_work.uses(op)
                handler.run(self, op)
                self.finish_op()
                self.scalar_work.results(op)
            elif handler.kind == "pure":
                self.scalar_work.computes(op)
        self.current = None
