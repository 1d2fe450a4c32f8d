"""Where ops go: the current block, location and launch of a trace, and the constants of each block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    Signedness,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.errors import Location, TileError
from tilelang_npu.frontend import arithmetic, conversions, numbers
from tilelang_npu.frontend.forms import Atoms
from tilelang_npu.frontend.locations import location_attribute
from tilelang_npu.frontend.scalars import INDEX, Expr, Kind
from tilelang_npu.language.symbols import Dimension, Sym
from tilelang_npu.linear import ANY, Interval, Linear
from tilelang_npu.ops import DType

if TYPE_CHECKING:
    from tilelang_npu.frontend.buffers import Buffer
    from tilelang_npu.frontend.jumps import Jumps
    from tilelang_npu.language.functions import Macro

_FLOATS: dict[str, Attribute] = {
    "float16": Float16Type(), "bfloat16": BFloat16Type(), "float32": Float32Type(), "float64": Float64Type(),
    "float8_e4m3fn": Float8E4M3FNType(), "float8_e5m2": Float8E5M2Type(),
}
OPEN_SPACES = ("shared", "fragment", "local")
"""Memory spaces that the kernel leaves to the compiler."""


@cache
def scalar_type(kind: Kind) -> Attribute:
    """MLIR type of a scalar; integers are signless, as ``arith`` wants them."""
    if not isinstance(kind, DType):
        return IndexType()
    return _FLOATS.get(str(kind)) or IntegerType(kind.bits)


@cache
def element_type(kind: DType) -> Attribute:
    """MLIR type of a buffer's element; unsigned integers say so."""
    if kind.is_integer and not kind.is_signed:
        return IntegerType(kind.bits, Signedness.UNSIGNED)
    return scalar_type(kind)


@cache
def buffer_type(kind: DType, shape: tuple[int, ...], space: str) -> MemRefType[Attribute]:
    """Memref type of a buffer; -1 is a size known only at run time."""
    memory: Attribute = tile.ScopeAttr(tile.Scope(space)) if space in OPEN_SPACES else hivm.address_space(space)
    return MemRefType(element_type(kind), shape, NoneAttr(), memory)


class Builder:
    """Emits the ops of one trace.

    Attributes:
        dialect: ``npuir`` or ``ascendc``.
        location: place of the statement or call that is being traced; every op gets it.
        atoms: numbers of integer sub-expressions by structure.
        epoch: grows with every write and at every loop, so that equal loads of one epoch are equal.
        launches: the launch ops, one for each ``T.Kernel`` so far; while one is open, it is the last.
        grids: of each, the block counts as the host can evaluate them.
        pipe: the pipe of the innermost ``T.rs``.
        loops: the loops around the current statement, from the outermost to the innermost.
        inline: how a macro is inlined; set by the walker.
        own_tensor: makes a tensor that the call allocates, of these sizes and elements; set by the trace.
        remarks: what the author should know though nothing is wrong.
        path: the blocks that are open, from the kernel's body to the current one.
        scale: the factor of ``T.set_deq_scale``, and the path where it was set.
        scaled_at: the paths of the conversions that have used one.
    """

    def __init__(self, dialect: str, entry: Block, location: Location) -> None:
        self.dialect = dialect
        self.entry = entry
        self.block = entry
        self.location = location
        self.atoms = Atoms()
        self.epoch = 0
        self.launches: list[tile.LaunchOp] = []
        self.in_kernel = False
        self.in_parallel = False
        self.core: str | None = None
        self.pipe: str | None = None
        self.grids: list[tuple[Dimension, ...]] = []
        self.loops: list[Jumps] = []
        self.inline: Callable[[Macro, Sequence[Any], dict[str, Any]], Any] = _no_walker
        self.own_tensor: Callable[[Sequence[Any], DType], Buffer] = _no_trace
        self.symbols: dict[str, Expr] = {}
        self.remarks: list[TileError] = []
        self.path: tuple[Block, ...] = ()
        self.scale: tuple[float | Expr, tuple[Block, ...]] | None = None
        self.scaled_at: list[tuple[Block, ...]] = []
        self._first: list[tuple[Location, Callable[[], object]]] = []
        self._lifted: dict[Any, Expr] = {}
        self._constants: dict[Block, dict[tuple[str, Any], Operation]] = {}
        self._discardable: list[Operation] = []

    def remark(self, remark: TileError) -> None:
        """Note what the author should know; what is said of a line once is not said again."""
        if all((known.message, known.location) != (remark.message, remark.location) for known in self.remarks):
            self.remarks.append(remark)

    # --- ops -------------------------------------------------------------------------------------------------------------

    def emit(self, op: Operation, location: Location | None = None) -> Operation:
        """Append an op that reads or writes memory, or holds regions."""
        self.epoch += 1
        return self._append(op, location or self.location)

    def discardable(self, op: Operation) -> Operation:
        """Append an op that goes away again if nothing uses its result."""
        self._append(op, self.location)
        self._discardable.append(op)
        return op

    def pure(self, op: Operation, kind: Kind, *, form: Linear[int] | None = None, bounds: Interval = ANY,
             symbol: int | Sym | None = None) -> Expr:
        """Append a scalar op and return its result as a scalar of type ``kind``."""
        made = self.scalar(self.discardable(op).results[0], kind, form, bounds)
        made.symbol = symbol
        return made

    def scalar(self, value: SSAValue, kind: Kind, form: Linear[int] | None = None, bounds: Interval = ANY) -> Expr:
        """An existing value as a scalar; an integer without a form becomes an atom of its own."""
        if not kind.is_float:
            form = form or self.atoms.fresh()
            if isinstance(kind, DType):
                bounds = arithmetic.clip(kind, bounds)
        return Expr(kind, value, form=form, bounds=bounds)

    def _append(self, op: Operation, location: Location) -> Operation:
        op.location = location_attribute(location)
        self._place(op)
        return op

    def _place(self, op: Operation) -> None:
        """Put an op at the end of the current block; of the function's while ``T.Kernel`` is open, in front of that."""
        if self.block is self.entry and self.in_kernel and self.launches:
            self.block.insert_op_before(op, self.launches[-1])
        else:
            self.block.add_op(op)

    def tile_op(self, op: Operation, what: str, *, by_point: bool = False) -> Operation:
        """Append a tile operation that ``what`` (a name for messages) stands for; ``by_point``: T.Parallel may do it at each
        point, in any order.

        Raises:
            TileError: T160 outside ``T.Kernel``, T141 inside ``T.Parallel``.
        """
        self.require_kernel(what)
        if self.in_parallel and not by_point:
            raise TileError(f"{what} cannot stand inside T.Parallel, whose body computes single elements", code="T141",
                            help="move it out of the loop, or write the element's expression")
        return self.emit(op)

    def in_every_core(self, emit: Callable[[], object]) -> None:
        """Emit here; in front of ``T.Kernel`` as the first, and behind it as the last that a block does."""
        if self.in_kernel:
            emit()
        elif not self.launches:
            self._first.append((self.location, emit))
        else:
            last = self.launches[-1]
            while (behind := last.next_op) is not None:  # scalars that it may need
                behind.detach()
                self.entry.insert_op_before(behind, last)
            self.in_kernel = True
            with self.at(last.body.block):
                emit()
            self.in_kernel = False

    def begin_kernel(self) -> None:
        """Emit what stands in front of ``T.Kernel`` and is for every core, at the head of the kernel's body."""
        here = self.location
        for location, emit in self._first:
            self.location = location
            emit()
        self._first.clear()
        self.location = here

    def require_kernel(self, what: str) -> None:
        """Raise T160 unless ``T.Kernel`` is open."""
        if not self.in_kernel:
            raise TileError(f"{what} stands outside T.Kernel", code="T160",
                            help="move it below `with T.Kernel(...)`; only scalar definitions may stand above it")

    # --- constants and symbols -------------------------------------------------------------------------------------------

    def literal(self, value: int | float | bool, kind: Kind) -> Expr:
        """A scalar whose value is known, rounded or wrapped to its type."""
        known = numbers.rounded(value, kind) if isinstance(kind, DType) else int(value)
        if kind.is_float:
            return Expr(kind, None, constant=known)
        return Expr(kind, None, constant=known, form=Linear(int(known)), bounds=Interval.at(int(known)), symbol=int(known))

    def constant(self, value: int | float | bool, kind: Kind) -> SSAValue:
        """The constant in the current block; one op for each value and block."""
        known = self._constants.setdefault(self.block, {})
        key = (str(kind), repr(value))
        op = known.get(key)
        if op is None:
            type_: Any = scalar_type(kind)
            attribute = FloatAttr(float(value), type_) if kind.is_float else IntegerAttr(int(value), type_)
            op = known[key] = self.discardable(arith.ConstantOp(attribute))
            op.results[0].name_hint = _constant_name(value, kind)
        return op.results[0]

    def index(self, value: Any) -> SSAValue:
        """An ``index`` value from a number, a symbolic dimension or a traced integer."""
        from tilelang_npu.frontend.buffers import extent

        found = extent(self, value)
        return self.constant(found, INDEX) if isinstance(found, int) else found.ssa(self)

    def lift(self, symbol: int | Sym) -> Expr:
        """The run-time value of a host expression of symbolic dimensions; it is computed at the function's entry.

        Raises:
            TileError: T140, a dimension that occurs in no parameter.
        """
        if isinstance(symbol, int):
            return self.literal(symbol, INDEX)
        found = self._lifted.get(symbol.key)
        if found is None:
            with self.at(self.entry):
                found = self._lifted[symbol.key] = self._lift(symbol)
        return found

    def _lift(self, symbol: Sym) -> Expr:
        if symbol.operator == "symbol":
            name = symbol.operands[0]
            if name not in self.symbols:
                raise TileError(f"the symbolic dimension {name!r} is in no parameter's shape", code="T140",
                                help=f"declare a tensor of that size, T.Tensor(({name},), dtype), or a number, {name}: T.int32")
            return self.symbols[name]
        left, right = (self.lift(part) for part in symbol.operands)
        names = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod"}
        return arithmetic.binary(self, names.get(symbol.operator, symbol.operator), left, right)

    def cast(self, value: Any, kind: DType) -> Expr:
        """A scalar as another element type, typed also where it is a plain number."""
        return conversions.cast(self, value, kind)

    # --- blocks ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def at(self, block: Block) -> Iterator[Block]:
        """Append to ``block`` in the body of the ``with``."""
        before, self.block = self.block, block
        outer, self.path = self.path, (*self.path, block)
        try:
            yield block
        finally:
            self.block, self.path = before, outer

    def splice(self, block: Block) -> None:
        """Move the ops of a detached block to the current one, keeping one op per constant."""
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
        """The ops of a block in a new, detached one; its arguments stay."""
        made = Block()
        for op in list(block.ops):
            op.detach()
            made.add_op(op)
        self._constants[made] = self._constants.pop(block, {})
        return made

    def sweep(self) -> None:
        """Erase the discardable ops that nothing uses."""
        for op in reversed(self._discardable):
            if op.parent is not None and all(result.first_use is None for result in op.results):
                op.detach()
                op.erase()
        self._discardable.clear()

    def mlir_type(self, kind: Kind) -> Any:
        """MLIR type of a scalar."""
        return scalar_type(kind)

    def element_type(self, kind: DType) -> Any:
        """MLIR type of a buffer's element."""
        return element_type(kind)


def region_of(block: Block) -> Region:
    """A region with this one block."""
    return Region([block])


def _constant_name(value: int | float | bool, kind: Kind) -> str:
    if kind.is_bool:
        return "true" if value else "false"
    if kind.is_float:
        return "cst"
    text = f"c{value}" if value >= 0 else f"c_{-value}"
    return text if kind is INDEX else f"{text}_{scalar_type(kind)}"


def _no_walker(macro: Macro, _arguments: Sequence[Any], _keywords: dict[str, Any]) -> Any:
    raise TileError(f"the macro {macro.function.__name__!r} is called outside a trace", code="T160",
                    help="call it from a @T.prim_func")



def _no_trace(_sizes: Sequence[Any], _element: DType) -> Buffer:
    raise TileError("a tensor is made outside a trace", code="T160", help="make it in a @T.prim_func")
