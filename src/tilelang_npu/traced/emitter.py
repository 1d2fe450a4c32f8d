"""The emitter of a trace: the current block and location, whether a launch is open, and the constants of each block."""

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
from tilelang_npu.traced import numbers
from tilelang_npu.traced.active_trace import Dialect, Trace
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
        dialect: ``npuir`` or ``ascendc``.
        entry: the block of the function.
        block: the current block.
        location: the place of the statement or call that is traced; operations get it.
        atoms: the numbers of integer expressions by structure.
        epoch: grows with every write and at every loop; equal loads in one epoch have equal values.
        launches: the launch op of each ``T.Kernel``; an open one is the last.
        in_kernel: whether a launch is open.
        in_parallel: whether the current statement is in ``T.Parallel``.
        remarks: warnings for the author.
        path: the open blocks, from the kernel's body to the current one.
        counted: the statement numbers of the loop with an author's schedule that is being walked.
        schedules: the number of such loops so far.
    """

    def __init__(self, dialect: Dialect, entry: Block, location: Location) -> None:
        self.dialect = dialect
        self.entry = entry
        self.block = entry
        self.location = location
        self.atoms = Atoms()
        self.epoch = 0
        self.launches: list[tile.LaunchOp] = []
        self.in_kernel = False
        self.in_parallel = False
        self.remarks: list[TileError] = []
        self.path: tuple[Block, ...] = ()
        self.counted: StatementNumbers | None = None
        self.schedules = 0
        self._constants: dict[Block, dict[tuple[str, str], Operation]] = {}
        self._discardable: list[Operation] = []

    @abstractmethod
    def lift(self, symbol: int | Sym) -> Expr:
        """The run-time value of a host expression of symbolic dimensions."""

    def remark(self, remark: TileError) -> None:
        """Adds a warning for the author, unless there is one with the same text and line."""
        if all((known.message, known.location) != (remark.message, remark.location) for known in self.remarks):
            self.remarks.append(remark)

    # --- ops -------------------------------------------------------------------------------------------------------------

    def emit(self, op: Operation, location: Location | None = None) -> Operation:
        """Appends an operation that reads or writes memory, or has regions."""
        self.epoch += 1
        return self._append(op, location or self.location)

    def discardable(self, op: Operation) -> Operation:
        """Appends an operation that is removed again if nothing uses its result."""
        self._append(op, self.location)
        self._discardable.append(op)
        return op

    def pure(self, op: Operation, kind: Kind, *, form: Linear[int] | None = None, bounds: Interval = ANY,
             symbol: int | Sym | None = None) -> Expr:
        """Appends a scalar operation and returns its result as a scalar of type ``kind``."""
        made = self.scalar(self.discardable(op).results[0], kind, form, bounds)
        made.symbol = symbol
        return made

    def scalar(self, value: SSAValue, kind: Kind, form: Linear[int] | None = None, bounds: Interval = ANY) -> Expr:
        """A value of the IR as a scalar; an integer without a form becomes an atom."""
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
        """Raises T160 unless a ``T.Kernel`` is open."""
        if not self.in_kernel:
            raise TileError(f"{what} is outside T.Kernel", code="T160",
                            help="move it below `with T.Kernel(...)`; only scalars may be defined above it")

    # --- constants --------------------------------------------------------------------------------------------------------

    def literal(self, value: int | float | bool, kind: Kind) -> Expr:
        """A scalar with a known value, rounded or wrapped to its type."""
        known = numbers.rounded(value, kind) if isinstance(kind, DType) else int(value)
        if kind.is_float:
            return Expr(kind, None, constant=known)
        return Expr(kind, None, constant=known, form=Linear(int(known)), bounds=Interval.at(int(known)), symbol=int(known))

    def constant(self, value: int | float | bool, kind: Kind) -> SSAValue:
        """The constant in the current block; there is one op for each value and block."""
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
        """Appends to ``block`` in the body of the ``with``."""
        before, self.block = self.block, block
        outer, self.path = self.path, (*self.path, block)
        try:
            yield block
        finally:
            self.block, self.path = before, outer

    def splice(self, block: Block) -> None:
        """Moves the operations of a detached block to the current one, with one op for each constant."""
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
        """Moves the operations of a block to a new, detached one; its arguments stay."""
        made = Block()
        for op in list(block.ops):
            op.detach()
            made.add_op(op)
        self._constants[made] = self._constants.pop(block, {})
        return made

    def sweep(self) -> None:
        """Erases the discardable operations that nothing uses."""
        for op in reversed(self._discardable):
            if op.parent is not None and all(result.first_use is None for result in op.results):
                op.detach()
                op.erase()
        self._discardable.clear()


def region_of(block: Block) -> Region:
    """A region with one block."""
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
