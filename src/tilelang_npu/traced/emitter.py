"""The emitter of a trace: it appends operations to the current block, with the current source location."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.errors import Location, TileError
from tilelang_npu.linear import ANY, Interval, Linear
from tilelang_npu.ops import DType
from tilelang_npu.source_dialects import TracedDialect
from tilelang_npu.traced import numbers
from tilelang_npu.traced.active_trace import Trace
from tilelang_npu.traced.ir_types import float_type, integer_type, scalar_type
from tilelang_npu.traced.kinds import INDEX, Kind
from tilelang_npu.traced.linear_forms import Atoms
from tilelang_npu.traced.locations import location_attribute
from tilelang_npu.traced.scalars import Expr, clip
from tilelang_npu.traced.statement_numbers import StatementNumbers
from tilelang_npu.traced.symbols import Sym


class Emitter(Trace):
    """Emits the operations of one trace.

    Attributes:
        dialect: the dialect of the kernel's source, ``npuir`` or ``ascendc``.
        entry: the entry block of the function.
        block: the current block, to which operations are appended.
        location: the position of the statement or call that is being traced; emitted operations get this location.
        atoms: the table that numbers the atoms (indivisible terms) of the linear forms of integers in this trace.
        epoch: a counter that is incremented at each operation that possibly writes memory and at each loop. Two loads of the
            same element in the same epoch have equal values.
        launches: the launch operation of each ``T.Kernel`` so far, in order.
        in_kernel: whether the current statement is inside a ``T.Kernel``; its launch is the last of ``launches``.
        around_parallel: the block with the ``T.Parallel`` that the current statement is inside of; None outside of one.
        remarks: the warnings for the author.
        ignored: the constructs of the source that have no effect on an NPU, with the position of the first use of each.
        path: the open blocks, from the kernel's body to the current block.
        counted: the statement numbers of the innermost loop for which the author states a schedule; None outside of such a
            loop.
        schedules: the number of loops with a schedule so far.
        repeats: the number of threads of a GPU's block that execute the current statement of a branch for some of the threads;
            1 outside of such branches.
    """

    def __init__(self, dialect: TracedDialect, entry: Block, location: Location) -> None:
        self.dialect = dialect
        self.entry = entry
        self.block = entry
        self.location = location
        self.atoms = Atoms()
        self.epoch = 0
        self.launches: list[tile.LaunchOp] = []
        self.in_kernel = False
        self.around_parallel: Block | None = None
        self.remarks: list[TileError] = []
        self.ignored: dict[str, Location] = {}
        self.path: tuple[Block, ...] = ()
        self.counted: StatementNumbers | None = None
        self.schedules = 0
        self.repeats = 1
        self._constants: dict[Block, dict[tuple[str, str], Operation]] = {}
        self._discardable: list[Operation] = []

    @property
    def in_parallel(self) -> bool:
        """Whether the current statement is inside a ``T.Parallel``."""
        return self.around_parallel is not None

    @abstractmethod
    def lift(self, symbol: int | Sym) -> Expr:
        """Returns a traced scalar with the value of an expression of symbolic dimensions."""

    def remark(self, remark: TileError) -> None:
        """Adds a warning for the author, unless there is already one with the same text and position."""
        if all((known.message, known.location) != (remark.message, remark.location) for known in self.remarks):
            self.remarks.append(remark)

    def ignore(self, construct: str) -> None:
        """Records that a construct of TileLang for GPUs has no effect here.

        Args:
            construct: the name for the note, such as ``T.pdl_sync`` or ``annotations= of T.copy``.
        """
        self.ignored.setdefault(construct, self.location)

    # --- ops -------------------------------------------------------------------------------------------------------------

    def emit(self, op: Operation, location: Location | None = None) -> Operation:
        """Appends an operation that must not be removed, such as one that accesses memory or has regions, and returns it.

        Args:
            op: the operation.
            location: the operation's location; None for the current location.
        """
        self.epoch += 1
        return self._append(op, location or self.location)

    def discardable(self, op: Operation) -> Operation:
        """Appends an operation that :meth:`sweep` removes if its results have no uses, and returns the operation."""
        self._append(op, self.location)
        self._discardable.append(op)
        return op

    def pure(self, op: Operation, kind: Kind, *, form: Linear[int] | None = None, bounds: Interval = ANY,
             symbol: int | Sym | None = None) -> Expr:
        """Appends a scalar operation without side effects, and returns its result as a traced scalar.

        Args:
            op: the operation.
            kind: the type of the result.
            form: the linear form of the result, if it is an integer and the form is known.
            bounds: the interval of the result's possible values, if it is an integer.
            symbol: the result as an expression of symbolic dimensions, if it is one.
        """
        made = self.scalar(self.discardable(op).results[0], kind, form, bounds)
        made.symbol = symbol
        return made

    def scalar(self, value: SSAValue, kind: Kind, form: Linear[int] | None = None, bounds: Interval = ANY) -> Expr:
        """Returns a traced scalar for a value of the IR.

        Args:
            value: the value.
            kind: the type.
            form: the linear form of an integer; None makes the integer a new atom, which is equal to no other integer.
            bounds: the interval of an integer's possible values.
        """
        if not kind.is_float:
            form = form or self.atoms.fresh()
            if isinstance(kind, DType):
                bounds = clip(kind, bounds)
        return Expr(kind, value, form=form, bounds=bounds)

    def _append(self, op: Operation, location: Location) -> Operation:
        op.location = location_attribute(location)
        self._place(op)
        return op

    def _place(self, op: Operation) -> None:
        """Inserts an operation at the end of the current block, or before the open ``T.Kernel`` if that is the function's."""
        if self.block is self.entry and self.in_kernel and self.launches:
            self.block.insert_op_before(op, self.launches[-1])
        else:
            self.block.add_op(op)

    def require_kernel(self, what: str) -> None:
        """Raises T160 if the current statement is outside of ``T.Kernel``; ``what`` names the statement in the message."""
        if not self.in_kernel:
            raise TileError(f"{what} is outside T.Kernel", code="T160",
                            help="move it below `with T.Kernel(...)`; only scalars may be defined above it")

    # --- constants --------------------------------------------------------------------------------------------------------

    def literal(self, value: int | float | bool, kind: Kind) -> Expr:
        """Returns a constant scalar of type ``kind``; a float is rounded and an integer is wrapped to that type."""
        known = numbers.rounded(value, kind) if isinstance(kind, DType) else int(value)
        if kind.is_float:
            return Expr(kind, None, constant=known)
        return Expr(kind, None, constant=known, form=Linear(int(known)), bounds=Interval.at(int(known)), symbol=int(known))

    def constant(self, value: int | float | bool, kind: Kind) -> SSAValue:
        """Returns the IR value of a constant in the current block; equal constants of a block share one operation."""
        known = self._constants.setdefault(self.block, {})
        key = (str(kind), repr(value))
        op = known.get(key)
        if op is None:
            op = known[key] = self.discardable(arith.ConstantOp(_attribute(value, kind)))
            op.results[0].name_hint = _constant_name(value, kind)
        return op.results[0]

    # --- blocks ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def at(self, block: Block) -> Iterator[Block]:
        """Makes ``block`` the current block inside the ``with`` statement."""
        before, self.block = self.block, block
        outer, self.path = self.path, (*self.path, block)
        try:
            yield block
        finally:
            self.block, self.path = before, outer

    def splice(self, block: Block) -> None:
        """Moves the operations of a detached block to the end of the current block, and merges equal constants."""
        mine, theirs = self._constants.setdefault(self.block, {}), self._constants.pop(block, {})
        known = {op: key for key, op in theirs.items()}
        for op in list(block.ops):
            op.detach()
            key = known.get(op)
            if key is not None and key in mine:
                op.results[0].replace_all_uses_with(mine[key].results[0])
                self._discardable.remove(op)
                op.erase()
                continue
            if key is not None:
                mine[key] = op
            self._place(op)

    def lifted_out(self, block: Block) -> Block:
        """Moves the operations of a block to a new detached block, which is returned; the block keeps its arguments."""
        made = Block()
        for op in list(block.ops):
            op.detach()
            made.add_op(op)
        self._constants[made] = self._constants.pop(block, {})
        return made

    def sweep(self) -> None:
        """Erases the operations that were appended by :meth:`discardable` and whose results have no uses."""
        for op in reversed(self._discardable):
            if op.parent is not None and all(result.first_use is None for result in op.results):
                op.detach()
                op.erase()
        self._discardable.clear()


def region_of(block: Block) -> Region:
    """Returns a region that contains ``block`` only."""
    return Region([block])


def _constant_name(value: int | float | bool, kind: Kind) -> str:
    if kind.is_bool:
        return "true" if value else "false"
    if kind.is_float:
        return "cst"
    text = f"c{value}" if value >= 0 else f"c_{-value}"
    return text if kind is INDEX else f"{text}_{scalar_type(kind)}"


def _attribute(value: int | float | bool, kind: Kind) -> FloatAttr | IntegerAttr:
    if kind.is_float:
        return FloatAttr(float(value), float_type(kind))
    return IntegerAttr(int(value), IndexType() if kind is INDEX else integer_type(kind))
