"""The emitter of a device function: walks over its ops and generates Python source."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from tilelang_npu.simulator.codegen.code_scopes import CodeScope, Int, Kind
from tilelang_npu.simulator.codegen.data_dependence import data_dependent_loops
from tilelang_npu.simulator.codegen.handlers import Value, handler_of, unsupported
from tilelang_npu.simulator.codegen.op_recorder import OpRecorder
from tilelang_npu.simulator.codegen.strided_views import Buffer
from tilelang_npu.simulator.machine.op_records import OpRecord
from tilelang_npu.target import Chip


class PythonEmitter(OpRecorder):
    """Generates the Python source of one device function.

    Args:
        function: the function.
        core: ``AIC`` or ``AIV``.
        chip: gives the capacities of the memories.
        parallel: sub-blocks of the block (1, or 2 for the Vector half of a mixed kernel).

    Attributes:
        switches: whether the function waits for other cores.
        global_sync: whether the function waits for other blocks.
        open_loops: for each open loop, its induction variable, lower bound and step.
        atomic: the core's atomic mode, which says how stores to GM combine.
        unguarded_trips: iterations of the unguarded loops around the current place.
        batch_axes: number of batch axes of the arrays.
    """

    stepwise = False
    computes = True
    batch_axes = 0

    def __init__(self, function: FuncOp, core: str, chip: Chip, parallel: int) -> None:
        super().__init__(function, core, chip, parallel)
        self.switches = self.global_sync = False
        self.open_loops: dict[Operation, tuple[Int, Int, Int]] = {}
        self.atomic = "none"
        self.unguarded_trips = 1
        self._by_data: frozenset[Operation] | None = None

    def evaluate(self, op: Operation) -> Value | Sequence[Value]:
        """Returns the results of an op without effects.

        Raises:
            TileError: T501, the op is not executed.
        """
        handler = handler_of(type(op))
        if handler is None or handler.kind != "pure":
            raise unsupported(op)
        made: Value | Sequence[Value] = handler.run(self, op)
        return made

    def knows_length(self, loop: Operation) -> bool:
        """Whether a counted loop's trip count follows from sizes and the block index, not from data."""
        if self._by_data is None:
            self._by_data = data_dependent_loops(self.function)
        return loop not in self._by_data

    # -- lines -------------------------------------------------------------------------------------------------------

    def line(self, text: str, op: Operation | None = None) -> None:
        """Emits a statement in the current scope."""
        self.scope.line(text, op if op is not None else self.current)

    def emit_batched(self, text: str, *buffers: Buffer) -> None:
        """Emits a statement that does the same for each element, or each matrix, whatever batch axes its arrays have; requires
        that ``buffers`` have equal ranks."""
        self.line(text)

    def note_product_operands(self, *buffers: Buffer, rows: bool) -> None:
        """Notes the operands of a product, and whether they may be stored row by row instead of in fractals."""

    def emit_print(self, text: str) -> None:
        """Emits a statement that prints output of the kernel."""
        self.line(text)

    def finish_op(self) -> None:
        """Ends the lines of an op."""

    def is_per_block(self) -> bool:
        """Whether the current scalar result is an array with one number per block."""
        return False

    def emit_scalar_read(self, name: str, element: str) -> None:
        """Emits the assignment of a variable from an array of one element."""
        self.line(f"{name} = {element}.item()")

    def condition_text(self, op: Operation, condition: str) -> str:
        """Returns the condition of a branch or a while loop as it is emitted."""
        return condition

    def emit_flag_set(self, flag: Int, group: str, op: Operation) -> None:
        """Emits the set of a flag between cores."""
        self.line(f"set_flag({self.text_of(flag)}, {group!r})", op)

    def emit_flag_wait(self, record: OpRecord, flag: Int, op: Operation) -> None:
        """Emits the wait for a flag between cores; it yields to other cores until the flag is set."""
        self.flush()
        text = self.name_of(flag)
        self.line(f"while not counts[{text}]: yield {record.number}, {text}", op)
        self.line(f"counts[{text}] -= 1", op)

    def enter(self, kind: Kind, *, certain: bool = False) -> CodeScope:
        """Opens a scope inside the current one."""
        self.flush()
        self.scope = CodeScope(kind, self.scope, self.scope.indent + 1, certain)
        return self.scope

    def leave(self) -> None:
        """Closes the current scope."""
        self.flush()
        scope = self.scope
        if not scope.lines:
            scope.line("pass")
        scope.close()
        assert scope.parent is not None
        self.scope = scope.parent

    # -- blocks --------------------------------------------------------------------------------------------------------

    def emit_block(self, block: Block) -> None:
        """Emits the ops of a block in program order."""
        self.scalar_work.enter_block(block.args)
        self.homes[block] = self.scope
        for op in block.ops:
            self.current = op
            handler = handler_of(type(op))
            if handler is None:
                raise unsupported(op, help_="write it with other ops of the planned form; T501 lists what nothing executes")
            if handler.kind == "effect":
                self.scalar_work.use_operands(op)
                handler.run(self, op)
                self.finish_op()
                self.scalar_work.define_results(op)
            elif handler.kind == "pure":
                self.scalar_work.visit_pure(op)
        self.current = None
