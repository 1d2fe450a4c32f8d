"""``trace``: from a ``@T.prim_func`` to a module of the tile dialect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, IndexType, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import deserialise_module, serialise_module
from tilelang_npu.dialects.text.names import escape_name
from tilelang_npu.errors import Location, TileError
from tilelang_npu.frontend import kernels
from tilelang_npu.frontend.dialects import detect
from tilelang_npu.frontend.parameters import Parameter, declared, shape_of, symbols_of
from tilelang_npu.frontend.scopes import Scopes
from tilelang_npu.frontend.statements import Statements
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.linear import NATURAL
from tilelang_npu.ops import DType
from tilelang_npu.traced import source
from tilelang_npu.traced.active_trace import Dialect, enter, leave
from tilelang_npu.traced.buffers import Buffer
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.ir_types import buffer_type, scalar_type
from tilelang_npu.traced.kinds import INDEX
from tilelang_npu.traced.locations import location_attribute, span
from tilelang_npu.traced.scalars import Expr
from tilelang_npu.traced.symbols import Dimension, Sym


@dataclass(frozen=True)
class Traced:
    """A traced kernel.

    Attributes:
        module: one function. Its arguments are the parameters (a tensor with symbolic sizes as a flat ``memref<?x..>``, to
            which ``tile.tensor`` gives its shape), then one ``index`` for each symbolic dimension.
        name: the kernel's name.
        parameters: its parameters, in order.
        symbols: the names of the symbolic dimensions, in the order of their arguments.
        grids: the block counts of each ``T.Kernel``, numbers or expressions of dimensions and integer parameters; the first
            axis is the fastest.
        dialect: ``npuir`` or ``ascendc``.
        location: the file and the line of the definition.
        remarks: warnings for the author.
        same: for a parameter that is the same tensor as an earlier one, by position, the position of that one.
        own: how many of the last parameters are tensors that a call allocates itself.
    """

    module: ModuleOp
    name: str
    parameters: tuple[Parameter, ...]
    symbols: tuple[str, ...]
    grids: tuple[tuple[Dimension, ...], ...]
    dialect: Dialect
    location: Location
    remarks: tuple[TileError, ...] = field(default=())
    same: Mapping[int, int] = field(default_factory=dict)
    own: int = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "module": serialise_module(self.module)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, module=deserialise_module(state["module"]))

    @property
    def launches(self) -> list[tile.LaunchOp]:
        """The launch of each ``T.Kernel``, in order."""
        return [op for op in self._function.body.block.ops if isinstance(op, tile.LaunchOp)]

    @property
    def symbol(self) -> str:
        """The kernel's name in the module."""
        return self._function.sym_name.data

    @property
    def _function(self) -> func.FuncOp:
        function = self.module.body.block.first_op
        assert isinstance(function, func.FuncOp)
        return function

    def as_one(self, same: Mapping[int, int]) -> Traced:
        """The kernel for calls that pass one array for several parameters: accesses to them become accesses to the first.

        Args:
            same: for each of these parameters, by position, the position of the first one with the array. Both have the same
                element type and the same shape, or symbolic shapes.
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
        """Marks tensors in the module that are undefined when the kernel starts, and workspaces, which no caller reads."""
        held = {*self.same, *self.same.values()}
        unseen = {tile.SCRATCH: UnitAttr(), tile.WORKSPACE: UnitAttr()}
        scratch = {at: {tile.SCRATCH: UnitAttr()} for at in outputs} | dict.fromkeys(set(workspaces) - set(outputs), unseen)
        function = self._function
        function.properties.pop("arg_attrs", None)
        if scratch.keys() - held:
            function.properties["arg_attrs"] = ArrayAttr(
                [DictionaryAttr(scratch.get(at, {}) if at not in held else {}) for at in range(len(function.body.block.args))])


def trace(function: PrimFunc, *, dialect: str = "auto", lengths: Mapping[str, int] | None = None) -> Traced:
    """Traces a kernel.

    Args:
        function: the kernel.
        dialect: the dialect of its source: ``npuir``, ``ascendc``, ``gpu`` (as npuir), or ``auto``, which finds out from the
            operations that it uses.
        lengths: sizes of the first axis of tensors that replace the declared ones, by parameter.

    Raises:
        TileError: an error of the kernel, at its place in the user's file.
    """
    if dialect not in ("npuir", "ascendc", "gpu", "auto"):
        raise TileError(f"unknown dialect {dialect!r}", code="T150", help="one of npuir, ascendc, gpu, auto")
    found, names = function.definition or (source.find(function.function), {})
    chosen: Dialect = (detect(found.node, function.function, names) if dialect == "auto" else
                       "ascendc" if dialect == "ascendc" else "npuir")
    location = span(found.node, found.file, found.lines)
    parameters = declared(function, found, lengths or {})
    symbols = symbols_of(parameters)
    entry = _entry(parameters, symbols)
    builder = Builder(chosen, entry, location)
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
                  location, tuple(builder.remarks), own=len(own.made))


def _located(op: Any, location: Location) -> Any:
    op.location = location_attribute(location)
    return op


def _is_static(parameter: Parameter) -> bool:
    return parameter.shape is None or all(isinstance(size, int) for size in parameter.shape)


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

    def make(self, sizes: Sequence[Any], element: DType) -> Buffer:
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
    sizes = [size if isinstance(size, int) else builder.lift(size).ssa(builder) for size in parameter.shape]
    made = builder.discardable(tile.TensorOp(flat, sizes)).results[0]
    made.name_hint = escape_name(parameter.name)
    return made
