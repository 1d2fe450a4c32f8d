"""``trace``, which translates a ``@T.prim_func`` to a module of the tile dialect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar, get_args

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, IndexType, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import deserialise_module, serialise_module
from tilelang_npu.dialects.text.names import escape_name
from tilelang_npu.errors import Location, TileError
from tilelang_npu.frontend import kernels
from tilelang_npu.frontend.dialects import dialect_of_kernel
from tilelang_npu.frontend.parameters import Parameter, declared, shape_of, symbols_of
from tilelang_npu.frontend.scopes import Scopes
from tilelang_npu.frontend.statements import Statements
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.linear import NATURAL
from tilelang_npu.ops import DType
from tilelang_npu.source_dialects import RequestedDialect, TracedDialect
from tilelang_npu.traced import source
from tilelang_npu.traced.active_trace import enter, leave
from tilelang_npu.traced.buffers import Buffer
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.ir_types import buffer_type, packed_size, scalar_type
from tilelang_npu.traced.kinds import INDEX
from tilelang_npu.traced.locations import location_attribute, span
from tilelang_npu.traced.scalars import Expr
from tilelang_npu.traced.symbols import Dimension, Sym

if TYPE_CHECKING:
    from tilelang_npu.target import Chip

OpT = TypeVar("OpT", bound=Operation)


@dataclass(frozen=True)
class Traced:
    """A traced kernel.

    Attributes:
        module: a module with one function. The function's arguments are the parameters, then one ``index`` for each symbolic
            dimension. A tensor with symbolic sizes is a flat ``memref<?x..>``, to which ``tile.tensor`` gives its shape.
        name: the kernel's name in the Python source.
        parameters: the parameters, in order; the last ``own`` of them are not parameters of the Python function.
        symbols: the names of the symbolic dimensions, in the order of the function's arguments.
        grids: for each ``T.Kernel`` the block count along each axis, as a number or an expression of symbolic dimensions and
            integer parameters. The block index along the first axis changes fastest.
        dialect: the dialect of the source, ``npuir`` or ``ascendc``.
        location: the position of the definition.
        remarks: the warnings for the author.
        same: for the position of each parameter that is the same tensor as an earlier parameter, the position of the earlier
            one.
        own: the number of tensors that each call allocates itself; they are the last parameters.
    """

    module: ModuleOp
    name: str
    parameters: tuple[Parameter, ...]
    symbols: tuple[str, ...]
    grids: tuple[tuple[Dimension, ...], ...]
    dialect: TracedDialect
    location: Location
    remarks: tuple[TileError, ...] = field(default=())
    same: Mapping[int, int] = field(default_factory=dict)
    own: int = 0

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "module": serialise_module(self.module)}

    def __setstate__(self, state: dict[str, object]) -> None:
        serialised = state["module"]
        assert isinstance(serialised, Mapping)
        vars(self).update(state, module=deserialise_module(serialised))

    @property
    def launches(self) -> list[tile.LaunchOp]:
        """The launch operations of the module, one for each ``T.Kernel``, in order."""
        return [op for op in self._function.body.block.ops if isinstance(op, tile.LaunchOp)]

    @property
    def symbol(self) -> str:
        """The name of the kernel's function in the module."""
        return self._function.sym_name.data

    @property
    def _function(self) -> func.FuncOp:
        function = self.module.body.block.first_op
        assert isinstance(function, func.FuncOp)
        return function

    def as_one(self, same: Mapping[int, int]) -> Traced:
        """Returns a copy of the kernel for calls that pass the same array for several parameters.

        Accesses to these parameters become accesses to the first of them.

        Args:
            same: for the position of each repeated parameter, the position of the first parameter with the same array. Both
                must have the same element type, and either the same shape or symbolic shapes.
        """
        module = self.module.clone()
        function = module.body.block.first_op
        assert isinstance(function, func.FuncOp)
        arguments = function.body.block.args
        for other, first in same.items():
            assert arguments[other].type == arguments[first].type, "arguments of one type are one tensor"
            arguments[other].replace_all_uses_with(arguments[first])
        return replace(self, module=module, same=dict(same))

    def mark_scratch(self, outputs: Iterable[int], workspaces: Iterable[int]) -> None:
        """Marks tensor arguments in the module whose contents are undefined when the kernel starts. Earlier marks are replaced.

        Args:
            outputs: the positions of tensors that are undefined when the kernel starts.
            workspaces: the positions of tensors that are undefined when the kernel starts and that no caller reads afterwards.
        """
        held = {*self.same, *self.same.values()}
        unseen = {tile.SCRATCH: UnitAttr(), tile.WORKSPACE: UnitAttr()}
        scratch = {at: {tile.SCRATCH: UnitAttr()} for at in outputs} | dict.fromkeys(set(workspaces) - set(outputs), unseen)
        function = self._function
        function.properties.pop("arg_attrs", None)
        if scratch.keys() - held:
            function.properties["arg_attrs"] = ArrayAttr(
                [DictionaryAttr(scratch.get(at, {}) if at not in held else {}) for at in range(len(function.body.block.args))])


def trace(function: PrimFunc, *, dialect: RequestedDialect = "auto", lengths: Mapping[str, int] | None = None,
          vector_cores: int = 2, chip: Chip | None = None) -> Traced:
    """Traces a kernel: translates its Python source to a module of the tile dialect.

    Args:
        function: the kernel.
        dialect: the dialect of the kernel's source: ``npuir``, ``ascendc``, ``gpu`` (treated as ``npuir``), or ``auto``, which
            determines the dialect from the operations that the kernel uses.
        lengths: for some tensors, by parameter name, the size of the first axis to use instead of the declared one.
        vector_cores: the number of Vector cores for each Cube core of the chip.
        chip: the chip, whose capabilities are checked; None accepts constructs of all chips.

    Raises:
        TileError: an error in the kernel, with the position in the author's file.
    """
    if dialect not in get_args(RequestedDialect):
        raise TileError(f"unknown dialect {dialect!r}", code="T150", help="use npuir, ascendc, gpu or auto")
    found, names = function.definition or (source.find(function.function), {})
    chosen = dialect_of_kernel(dialect, found.node, function.function, names)
    location = span(found.node, found.file, found.lines)
    parameters = declared(function, found, lengths or {})
    symbols = symbols_of(parameters)
    entry = _entry(parameters, symbols)
    builder = Builder(chosen, entry, location, vector_cores, chip)
    builder.has_empty_tensor = any(
        isinstance(size, int) and size == 0 for parameter in parameters for size in parameter.shape or ())
    scopes = Scopes(function.function, "kernel")
    token = enter(builder)
    try:
        for name, value in names.items():
            scopes.bind(name, value, location)
        _bind(builder, scopes, parameters, symbols)
        own = _OwnTensors(builder, len(parameters))
        builder.own_tensor = own.make
        walker = Statements(builder, found, scopes)
        builder.walk = walker.inline
        walker.function_body(found.node.body)
        if not builder.launches:
            raise TileError(f"kernel {function.function.__name__!r} has no `with T.Kernel(...)`", code="T150",
                            location=location,
                            help="put the body below `with T.Kernel(blocks, is_npu=True) as (cid, vid):`")
        mode = builder.atomic
        if mode is not None and any(isinstance(block.parent_op(), scf.ForOp | scf.WhileOp) for block in mode.path):
            raise TileError("the atomic mode is still set at the end of the loop", code="T190", location=mode.location,
                            help="call T.set_atomic_none() in the same loop: the next iteration would begin in this mode")
        builder.location = location
        builder.sweep()
        kernels.forget_unused_sub_blocks(builder)
        entry.add_op(_located(func.ReturnOp(), location))
    finally:
        leave(token)
    made = func.FuncOp(escape_name(function.function.__name__) or "kernel", ([argument.type for argument in entry.args], []),
                       Region([entry]))
    made.attributes[tile.DIALECT] = StringAttr(chosen)
    module = ModuleOp([_located(made, location)])
    return Traced(module, function.function.__name__, (*parameters, *own.parameters()), symbols, tuple(builder.grids), chosen,
                  location, (*builder.remarks, *_note_of_ignored(builder)), own=len(own.made))


def _note_of_ignored(builder: Builder) -> list[TileError]:
    """The warning (T191) that lists the constructs of TileLang for GPUs that have no effect; none if there are none."""
    if not builder.ignored:
        return []
    listed = ", ".join(f"{name} (line {place.line})" for name, place in builder.ignored.items())
    return [TileError(f"no effect on an NPU: {listed}", code="T191", location=next(iter(builder.ignored.values())),
                      help="the compiler itself arranges threads, registers and copies")]


def _located(op: OpT, location: Location) -> OpT:
    op.location = location_attribute(location)
    return op


def _is_static(parameter: Parameter) -> bool:
    return parameter.shape is None or (parameter.strides is None and all(isinstance(size, int) for size in parameter.shape))


def _argument_type(parameter: Parameter) -> Attribute:
    if parameter.shape is None:
        return scalar_type(parameter.dtype)
    sizes = tuple(size for size in parameter.shape if isinstance(size, int)) if _is_static(parameter) else (DYNAMIC_INDEX,)
    return buffer_type(parameter.dtype, sizes, "gm")


def _entry(parameters: tuple[Parameter, ...], symbols: tuple[str, ...]) -> Block:
    entry = Block(arg_types=[*(_argument_type(parameter) for parameter in parameters), *(IndexType() for _ in symbols)])
    for argument, name in zip(entry.args, [*(parameter.name for parameter in parameters), *symbols], strict=True):
        argument.name_hint = escape_name(name)
    return entry


def _bind(builder: Builder, scopes: Scopes, parameters: tuple[Parameter, ...], symbols: tuple[str, ...]) -> None:
    values = builder.entry.args
    for name, value in zip(symbols, values[len(parameters):], strict=True):
        made = builder.scalar(value, INDEX, builder.atoms.of(("symbol", name)), NATURAL)
        made.symbol = Sym(name)
        builder.symbols[name] = made
    for parameter, value in zip(parameters, values, strict=False):
        bound: Buffer | Expr
        if parameter.shape is not None:
            memory = value if _is_static(parameter) else _in_shape(builder, parameter, value)
            bound = Buffer(parameter.name, parameter.dtype, parameter.shape, "gm", memory, parameter.location)
            bound.has_gaps = parameter.strides is not None
        else:
            bound = builder.scalar(value, parameter.dtype)
            if parameter.dtype.is_integer:
                bound.symbol = Sym(parameter.name)
        scopes.bind(parameter.name, bound, parameter.location, assigned=True)


class _OwnTensors:
    """The tensors that a call allocates itself: arguments of the function after those of its parameters.

    Attributes:
        made: the tensors, in order.
    """

    def __init__(self, builder: Builder, first: int) -> None:
        self.made: list[Buffer] = []
        self._builder, self._first = builder, first
        self._arguments: list[SSAValue] = []

    def make(self, sizes: Sequence[object], element: DType) -> Buffer:
        """Adds a tensor.

        Raises:
            TileError: T140, a dimension that no parameter has; T150, T151, a size that is not valid.
        """
        builder = self._builder
        parameter = Parameter("tensor", "tensor", element, shape_of("tensor", tuple(sizes)), builder.location)
        argument = builder.entry.insert_arg(_argument_type(parameter), self._first + len(self.made))
        memory = argument if _is_static(parameter) else _in_shape(builder, parameter, argument)
        assert parameter.shape is not None
        made = Buffer(parameter.name, element, parameter.shape, "gm", memory, parameter.location)
        made.unnamed = True
        self.made.append(made)
        self._arguments.append(argument)
        return made

    def parameters(self) -> Iterator[Parameter]:
        """The tensors as parameters."""
        for argument, tensor in zip(self._arguments, self.made, strict=True):
            argument.name_hint = escape_name(tensor.label)
            assert tensor.location is not None
            yield Parameter(tensor.label, "tensor", tensor.element, tensor.dimensions, tensor.location)


def _in_shape(builder: Builder, parameter: Parameter, flat: SSAValue) -> SSAValue:
    """Gives the tensor of a flat argument the shape that its symbolic dimensions determine."""
    assert parameter.shape is not None
    builder.location = parameter.location
    if parameter.dtype.packed and parameter.strides is not None:
        raise TileError(f"{parameter.name} is a tensor of {parameter.dtype} with gaps", code="T190",
                        location=parameter.location, help="declare it as T.Tensor")
    shape = parameter.shape
    if parameter.dtype.packed:  # in pairs
        last = shape[-1]
        shape = (*shape[:-1], packed_size(last) if isinstance(last, int) else last // 2)
    sizes, strides = ([size if isinstance(size, int) else builder.lift(size).ssa(builder) for size in parts]
                      for parts in (shape, parameter.strides or ()))
    made = builder.discardable(tile.StridedTensorOp(flat, sizes, strides) if strides else tile.TensorOp(flat, sizes)).results[0]
    made.name_hint = escape_name(parameter.name)
    return made
