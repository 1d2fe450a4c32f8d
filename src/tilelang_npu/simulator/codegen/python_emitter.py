"""The emitter of a device function: walks over its ops and generates Python source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from tilelang_npu.card_signals import have_polled, pass_core_wait
from tilelang_npu.dialects import hivm
from tilelang_npu.simulator.codegen.code_scopes import CodeScope, Int, Kind
from tilelang_npu.simulator.codegen.data_dependence import data_dependent_loops
from tilelang_npu.simulator.codegen.handlers import Value, handler_of, unsupported
from tilelang_npu.simulator.codegen.op_recorder import OpRecorder
from tilelang_npu.simulator.codegen.strided_views import Buffer, alternatives
from tilelang_npu.simulator.machine.op_records import OpRecord
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import CoreKind

SIGNALS = frozenset(("shmem_signal_op", "shmem_signal_wait_until", "shmem_quiet", "shmem_barrier"))
"""The symbols of the custom ops that order what cards do."""


class PythonEmitter(OpRecorder):
    """Generates the Python source of one device function, which computes the ops in program order.

    Args:
        function: the function.
        core: ``AIC`` or ``AIV``.
        chip: the chip, which gives the memories, pipes and paths.
        parallel: the number of sub-blocks that run the function: the number of Vector cores of a block for the Vector function
            of a mixed kernel, otherwise 1.

    Attributes:
        stepwise: whether the generated code yields its ops instead of running them.
        computes: whether the generated code computes values.
        switches: whether the generated code sets or waits for flags of other cores, or yields its ops.
        global_sync: whether the function sets flags of other blocks, so that blocks must run concurrently.
        open_loops: for each open loop, its induction variable, lower bound and step.
        atomic: the core's atomic mode: the operation that combines a stored value with the value in GM, or ``none``.
        unguarded_trips: in the loop body that is being emitted, the largest number of iterations of a loop nest that contains
            no check of the limit of iterations.
        batch_axes: the number of leading batch axes of the arrays.
        settles_products: whether each product is written to L0C at once, because memory is read or compared between ops.
        polls: the variables of the generated code that have the ``PollWait`` of each open ``while`` loop.
    """

    stepwise = False
    computes = True
    batch_axes = 0
    settles_products = False

    def __init__(self, function: FuncOp, core: CoreKind, chip: Chip, parallel: int) -> None:
        super().__init__(function, core, chip, parallel)
        self.switches = self.global_sync = False
        self.open_loops: dict[Operation, tuple[Int, Int, Int]] = {}
        self.atomic = "none"
        self.unguarded_trips = 1
        self.polls: list[str] = []
        self._by_data: frozenset[Operation] | None = None

    def evaluate(self, op: Operation) -> Value | Sequence[Value]:
        """Returns the representations of the results of an op without effects.

        Raises:
            TileError: T501, the simulator does not execute the op.
        """
        handler = handler_of(type(op))
        if handler is None or handler.kind != "pure":
            raise unsupported(op)
        made: Value | Sequence[Value] = handler.run(self, op)
        return made

    def knows_length(self, loop: Operation) -> bool:
        """Whether the trip count of a counted loop is independent of data: it follows from sizes and the block index."""
        if self._by_data is None:
            self._by_data = data_dependent_loops(self.function)
        return loop not in self._by_data

    # -- lines -------------------------------------------------------------------------------------------------------

    def line(self, text: str, op: Operation | None = None) -> None:
        """Emits a statement in the current scope, for ``op`` or else for the current op."""
        self.scope.line(text, op if op is not None else self.current)

    def emit_batched(self, text: str, *buffers: Buffer) -> None:
        """Emits a statement that is also correct for arrays with additional leading batch axes.

        Args:
            text: the statement.
            buffers: memrefs that must have equal ranks for the statement to be correct with batch axes; none if the statement
                is correct with any ranks.
        """
        self.line(text)

    def note_product_operands(self, *buffers: Buffer, rows: bool) -> None:
        """Called with the operands of each matrix product. Does nothing; subclasses override it.

        Args:
            buffers: the operands.
            rows: whether the product allows operands that are stored row by row instead of in fractals.
        """

    def emit_print(self, text: str) -> None:
        """Emits a statement that prints output of the kernel."""
        self.line(text)

    def finish_op(self) -> None:
        """Called after the last line of each op. Does nothing; subclasses override it."""

    def is_per_block(self) -> bool:
        """Whether the current op's result is a scalar that differs between the blocks of a batch.

        Always False in this class, whose code runs one block; subclasses override it.
        """
        return False

    def emit_scalar_read(self, name: str, element: str) -> None:
        """Emits the assignment of the number in an array of one element, ``element``, to the variable ``name``."""
        self.line(f"{name} = {element}.item()")

    def condition_text(self, op: Operation, condition: str) -> str:
        """Returns the expression that is emitted for the condition of a branch or a while loop."""
        return condition

    def emit_flag_set(self, flag: Int, group: str, op: Operation) -> None:
        """Emits a statement that sets a flag between cores; ``group`` as in ``Rendezvous.group``."""
        self.line(f"set_flag({self.text_of(flag)}, {group!r})", op)

    def emit_flag_wait(self, record: OpRecord, flag: Int, op: Operation) -> None:
        """Emits a loop that waits for a flag between cores; the code yields to other cores until the flag is set."""
        self.flush()
        text = self.name_of(flag)
        self.line(f"while not counts[{text}]: yield {record.number}, {text}", op)
        self.line(f"counts[{text}] -= 1", op)
        if self._signals_cards:
            self.line(f"{self.constant(pass_core_wait, 'passed')}({self.core_text()})", op)

    @cached_property
    def _signals_cards(self) -> bool:
        """Whether a function of the kernel signals other cards, or waits for them, possibly in a ``while`` loop."""
        return self.may_poll or any(op.symbol in SIGNALS for op in self._custom_ops)

    @cached_property
    def reaches_cards(self) -> bool:
        """Whether a function of the kernel moves data to other cards or from them."""
        return any((op.symbol or "").startswith("shmem_") and op.symbol not in SIGNALS for op in self._custom_ops)

    @cached_property
    def may_poll(self) -> bool:
        """Whether a function of the kernel has a ``while`` loop, which can wait for other cards."""
        module = self.function.parent_op() or self.function
        return any(isinstance(op, scf.WhileOp) for op in module.walk())

    @cached_property
    def _custom_ops(self) -> list[hivm.CustomOp]:
        module = self.function.parent_op() or self.function
        return [op for op in module.walk() if isinstance(op, hivm.CustomOp)]

    def note_poll(self, source: Buffer) -> None:
        """Emits the statement that the last op has read a tensor to find out whether another card has written it."""
        self.records[-1] = replace(self.records[-1], polls=True)
        self.line(f"{self.constant(have_polled, 'have_polled')}({self.array(source)}, {self.core_text()})")

    def emit_read_of(self, source: Buffer, text: str) -> None:
        """Emits a statement that reads a memref. In a ``while`` loop, it is between those by which the loop can poll.

        Args:
            source: the memref.
            text: the statement.
        """
        base = alternatives(source)[0].base
        if not self.polls or base.memory != "gm":
            self.line(text)
            return
        self.records[-1] = replace(self.records[-1], polls=True)
        array = self.array(source)
        for poll in self.polls:
            self.line(f"{poll}.read({array}, {base.label or 'a tensor'!r})")
        self.line(text)
        self.line(f"{self.polls[-1]}.have_read({array})")

    def core_text(self) -> str:
        """Returns an expression that tells the core that runs the code apart from the other cores of the card."""
        return f"({self.core!r}, bid, sid)"

    def emit_card_wait(self, record: OpRecord, wait: str, op: Operation) -> None:
        """Emits a loop that waits for other cards; the code yields to other cores until the wait is over.

        Args:
            record: the record of the op.
            wait: an expression that makes the ``CardWait``.
            op: the op.
        """
        self.flush()
        name = self.fresh("w")
        self.line(f"{name} = {wait}", op)
        self.line(f"while not {name}.ready(): yield {record.number}, {name}", op)
        self.line(f"{name}.finish()", op)

    def enter(self, kind: Kind, *, certain: bool = False) -> CodeScope:
        """Opens a scope inside the current one, makes it the current one, and returns it.

        Args:
            kind: the kind of the scope.
            certain: for a loop, whether it is known to have at least one iteration.
        """
        self.flush()
        self.scope = CodeScope(kind, self.scope, self.scope.indent + 1, certain)
        return self.scope

    def leave(self) -> None:
        """Closes the current scope: appends its lines to the enclosing scope, which becomes the current one."""
        self.flush()
        scope = self.scope
        if not scope.lines:
            scope.line("pass")
        scope.close()
        assert scope.parent is not None
        self.scope = scope.parent

    # -- blocks --------------------------------------------------------------------------------------------------------

    def emit_block(self, block: Block) -> None:
        """Emits the ops of an MLIR block in program order.

        Raises:
            TileError: T501, the simulator does not execute an op.
        """
        self.scalar_work.enter_block(block.args)
        self.homes[block] = self.scope
        for op in block.ops:
            self.current = op
            handler = handler_of(type(op))
            if handler is None:
                raise unsupported(op, help_="write it with other ops of HIVM; the page of T501 lists the ops that are not "
                                            "executed")
            if handler.kind == "effect":
                self.scalar_work.use_operands(op)
                handler.run(self, op)
                self.finish_op()
                self.scalar_work.define_results(op)
            elif handler.kind == "pure":
                self.scalar_work.visit_pure(op)
        self.current = None
