"""The builder of a trace, with which the functions of the language emit operations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.hivm.attributes import address_space
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.tile import CoreScope
from tilelang_npu.errors import Location, TileError
from tilelang_npu.ops import DType
from tilelang_npu.source_dialects import TracedDialect
from tilelang_npu.traced import arithmetic, conversions, jumps
from tilelang_npu.traced.active_trace import Inlined
from tilelang_npu.traced.buffers import Buffer
from tilelang_npu.traced.emitter import Emitter
from tilelang_npu.traced.jumps import Jumps
from tilelang_npu.traced.kinds import INDEX
from tilelang_npu.traced.scalars import Expr
from tilelang_npu.traced.symbols import Dimension, Sym

if TYPE_CHECKING:
    from tilelang_npu.target import Chip
    from tilelang_npu.traced.vector_region import VectorRegion


@dataclass(frozen=True)
class AtomicMode:
    """How copies to global tensors combine with the elements there.

    Attributes:
        kind: ``add``, ``max`` or ``min``.
        element: the element type of the copies.
        path: the open blocks at the statement that set the mode, from the outermost.
        location: the position of that statement.
    """

    kind: str
    element: DType
    path: tuple[Block, ...]
    location: Location


class Builder(Emitter):
    """An emitter that also tracks the launches, ``T.Scope`` blocks, loops and macros of the kernel that is traced.

    Attributes:
        vector_cores: the number of Vector cores for each Cube core of the chip.
        core: the core of the innermost ``T.Scope``; None outside of one.
        pipe: the pipe of the innermost ``T.rs``; None outside of one.
        grids: for each launch, the block count along each axis, as a number or an expression that the host can evaluate.
        region: the body of the vector function that is traced; None outside of one.
        chip: the chip that the kernel is compiled for; None if it is not known.
        threads: the number of threads along each axis of a GPU's block in the current launch; empty if it is for an NPU.
        vector_core: the index of the Vector core in the current launch, and the number of Vector cores; None if the launch does
            not have this index.
        loops: the state of the jumps of each loop around the current statement, outermost loop first.
        walk: a function that inlines a macro; set by the module that walks the kernel's source.
        own_tensor: a function that adds a tensor which each call of the kernel allocates, given its sizes and its element type;
            set by ``trace``.
        symbols: the traced scalars of the parameters' symbolic dimensions, by name.
        scale: the factor of the last ``T.set_deq_scale``, and the ``path`` (the open blocks) at that statement.
        has_empty_tensor: whether a parameter is a tensor with a size of 0, so that a launch may have no block.
        scaled_at: the ``path`` of each conversion that has used such a factor.
        atomic: the mode that ``T.set_atomic`` has set; None if copies replace the elements of global tensors.
    """

    def __init__(self, dialect: TracedDialect, entry: Block, location: Location, vector_cores: int = 2,
                 chip: Chip | None = None) -> None:
        super().__init__(dialect, entry, location)
        self.vector_cores = vector_cores
        self.chip = chip
        self.region: VectorRegion | None = None
        self.core: CoreScope | None = None
        self.pipe: str | None = None
        self.grids: list[tuple[Dimension, ...]] = []
        self.threads: tuple[int, ...] = ()
        self.vector_core: tuple[Expr, int] | None = None
        self.loops: list[Jumps] = []
        self.walk: Callable[[Inlined, Sequence[object], Mapping[str, object]], object] = _no_walker
        self.own_tensor: Callable[[Sequence[object], DType], Buffer] = _no_trace
        self.symbols: dict[str, Expr] = {}
        self.scale: tuple[float | Expr, tuple[Block, ...]] | None = None
        self.scaled_at: list[tuple[Block, ...]] = []
        self.has_empty_tensor = False
        self.atomic: AtomicMode | None = None
        self._first: list[tuple[Location, Callable[[], object]]] = []
        self._lifted: dict[Hashable, Expr] = {}

    # --- operations of tiles, and of every core -----------------------------------------------------------------------------

    def tile_op(self, op: Operation, what: str, *, by_point: bool = False) -> Operation:
        """Appends an operation on tiles to the current block.

        Args:
            op: the operation.
            what: the name of the call, for error messages.
            by_point: whether the operation is allowed in the body of ``T.Parallel``, which executes it for each point.

        An operation without results on a buffer without elements is not appended.

        Raises:
            TileError: T160, the call is outside of ``T.Kernel``; T141, the call is inside ``T.Parallel`` and ``by_point`` is
                false; T110, T190, the operation copies to a global tensor, and the atomic mode does not fit.
        """
        self.require_kernel(what)
        if self.in_parallel and not by_point:
            raise TileError(f"{what} cannot be used inside T.Parallel, whose body computes single elements", code="T141",
                            help="move it out of the loop, or write the element's expression")
        if self.atomic is not None and isinstance(op, tile.CopyOp):
            self._combine(op, self.atomic, what)
        if not op.results and any(isinstance(one.type, MemRefType) and 0 in one.type.get_shape() for one in op.operands):
            return op  # it has no elements to work on
        return self.emit(op)

    def _combine(self, copy: tile.CopyOp, mode: AtomicMode, what: str) -> None:
        """Makes a copy to a global tensor combine with the tensor's elements, as the atomic mode says."""
        kind = copy.target.type
        if not isinstance(kind, MemRefType) or kind.memory_space != address_space("gm"):
            return
        if self.path[:len(mode.path)] != mode.path:
            raise TileError(f"{what}: the atomic mode {mode.kind} was set in a loop or branch that has ended", code="T190",
                            help="set and reset the mode in the same loop or branch")
        element = dtype_of(kind.element_type)
        if element != mode.element:
            raise TileError(f"{what} writes {element}, and the atomic mode is {mode.kind} of {mode.element}", code="T110",
                            help=f"call T.set_atomic({mode.kind!r}, {str(element)!r}), or T.set_atomic_none() before the copy")
        if copy.atomic is not None and (copy.atomic.data, mode.kind) != ("add", "add"):
            raise TileError(f"{what} in the atomic mode {mode.kind}", code="T190", help="call T.set_atomic_none() before it")
        copy.properties["atomic"] = StringAttr(mode.kind)

    def in_every_core(self, emit: Callable[[], object]) -> None:
        """Calls ``emit`` at a position that every core executes.

        Inside ``T.Kernel``, this is the current position; before ``T.Kernel``, the start of the launch's body; and after
        ``T.Kernel``, the end of the launch's body.

        Args:
            emit: emits the operation.
        """
        if self.in_kernel:
            emit()
        elif not self.launches:
            self._first.append((self.location, emit))
        else:
            last = self.launches[-1]
            while (later := last.next_op) is not None:  # scalars that the operation may use
                later.detach()
                self.entry.insert_op_before(later, last)
            self.in_kernel = True
            with self.at(last.body.block):
                emit()
            self.in_kernel = False

    def begin_kernel(self) -> None:
        """Emits the operations that were passed to :meth:`in_every_core` before ``T.Kernel``, at the start of the launch's
        body.
        """
        outer = self.location
        for location, emit in self._first:
            self.location = location
            emit()
        self._first.clear()
        self.location = outer

    # --- scalars -------------------------------------------------------------------------------------------------------------

    def index(self, value: object) -> SSAValue:
        """Returns the ``index`` value in the IR for a number, a symbolic dimension or a traced integer."""
        found = conversions.extent(self, value)
        return self.constant(found, INDEX) if isinstance(found, int) else found.ssa(self)

    def lift(self, symbol: int | Sym) -> Expr:
        """Returns a traced scalar with the value of an expression of symbolic dimensions, which is computed at function entry.

        Raises:
            TileError: T140, the expression has a symbolic dimension that is in no parameter's shape.
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
            name = symbol.name
            if name not in self.symbols:
                raise TileError(f"the symbolic dimension {name!r} is in no parameter's shape", code="T140",
                                help=f"declare a tensor of that size, T.Tensor(({name},), dtype), or a number, {name}: T.int32")
            return self.symbols[name]
        left, right = (self.lift(part) for part in symbol.operands)
        names = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod"}
        return arithmetic.binary(self, names.get(symbol.operator, symbol.operator), left, right)

    def cast(self, value: object, kind: DType) -> Expr:
        return conversions.cast(self, value, kind)

    def binary(self, name: str, left: object, right: object) -> Expr:
        return arithmetic.binary(self, name, left, right)

    def compare(self, name: str, left: object, right: object) -> Expr:
        return arithmetic.compare(self, name, left, right)

    def negate(self, value: object) -> Expr:
        return arithmetic.negate(self, value)

    def invert(self, value: object) -> Expr:
        return arithmetic.invert(self, value)

    def truth(self, value: object) -> Expr:
        return arithmetic.truth(self, value)

    def logical_not(self, value: object) -> Expr:
        return arithmetic.logical_not(self, value)

    def select(self, condition: object, chosen: object, other: object) -> Expr:
        return arithmetic.select(self, condition, chosen, other)

    def math(self, name: str, value: object) -> Expr:
        return arithmetic.math(self, name, value)

    def math_of_two(self, name: str, left: object, right: object) -> Expr:
        return arithmetic.math_of_two(self, name, left, right)

    def count_bits(self, name: str, value: object) -> Expr:
        return arithmetic.count_bits(self, name, value)

    def bits_as(self, value: object, kind: DType) -> Expr:
        return arithmetic.bits_as(self, value, kind)

    # --- loops and macros ----------------------------------------------------------------------------------------------------

    def jump(self, what: str, *, leaves: bool) -> None:
        jumps.jump(self, self.loops, what, leaves=leaves)

    def inline(self, macro: Inlined, arguments: Sequence[object], keywords: Mapping[str, object]) -> object:
        return self.walk(macro, arguments, keywords)


def _no_walker(macro: Inlined, _arguments: Sequence[object], _keywords: Mapping[str, object]) -> object:
    raise TileError(f"the macro {macro.function.__name__!r} is called outside of a kernel", code="T160",
                    help="call it from a @T.prim_func")


def _no_trace(_sizes: Sequence[object], _element: DType) -> Buffer:
    raise TileError("a tensor is created outside of a kernel", code="T160", help="create it in a @T.prim_func")
