"""From a ``@T.prim_func`` to a module of the tile dialect."""

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
from tilelang_npu.traced.buffers import Buffer
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.ir_types import buffer_type, scalar_type
from tilelang_npu.traced.kinds import INDEX
from tilelang_npu.traced.locations import location_attribute, span
from tilelang_npu.traced.running import enter, leave
from tilelang_npu.traced.scalars import Expr
from tilelang_npu.traced.symbols import Dimension, Sym


@dataclass(frozen=True)
class Traced:
    """A traced kernel.

    Attributes:
        module: one function: the parameters (a tensor with symbolic sizes as a flat ``memref<?x..>``, seen in its shape by
            ``tile.tensor``), then one ``index`` per symbolic dimension.
        name: the kernel's name.
        parameters: in order.
        symbols: names of the symbolic dimensions in the order of their arguments.
        grids: of each ``T.Kernel`` in order the block counts, numbers or expressions of dimensions and integer parameters; the
            first axis runs fastest.
        dialect: ``npuir`` or ``ascendc``.
        location: file and line of the definition.
        remarks: what the author should know though nothing is wrong; never raised.
        same: parameters that are the tensor of an earlier one, by position: that one.
        own: how many of the parameters, the last ones, nobody passes: tensors that a call makes for itself.
    """

    module: ModuleOp
    name: str
    parameters: tuple[Parameter, ...]
    symbols: tuple[str, ...]
    grids: tuple[tuple[Dimension, ...], ...]
    dialect: str
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
        """The kernel for calls in which one array stands for several parameters: all that is done to them is done to the first.

        Args:
            same: by position of a parameter, that of the first with its array. Both have one element type, and one shape or
                symbolic ones.
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
        """Note in the module that these tensors hold nothing when the kernel starts, and that nobody sees the workspaces."""
        held = {*self.same, *self.same.values()}
        unseen = {tile.SCRATCH: UnitAttr(), tile.WORKSPACE: UnitAttr()}
        scratch = {at: {tile.SCRATCH: UnitAttr()} for at in outputs} | dict.fromkeys(set(workspaces) - set(outputs), unseen)
        function = self._function
        function.properties.pop("arg_attrs", None)
        if scratch.keys() - held:
            function.properties["arg_attrs"] = ArrayAttr(
                [DictionaryAttr(scratch.get(at, {}) if at not in held else {}) for at in range(len(function.body.block.args))])


def trace(function: PrimFunc, *, dialect: str = "auto", lengths: Mapping[str, int] | None = None) -> Traced:
    """Trace a kernel.

    Args:
        function: the kernel.
        dialect: whose rules its source follows: ``npuir``, ``ascendc``, ``gpu`` (as npuir), or ``auto`` to tell from the
            operations that it names.
        lengths: of the first axis of tensors, by parameter, in place of those declared.

    Raises:
        TileError: the kernel is wrong, with the place in the user's file.
    """
    if dialect not in ("npuir", "ascendc", "gpu", "auto"):
        raise TileError(f"unknown dialect {dialect!r}", code="T150", help="one of npuir, ascendc, gpu, auto")
    found, names = function.definition or (source.find(function.function), {})
    chosen = (detect(found.node, function.function, names) if dialect == "auto" else
              "npuir" if dialect == "gpu" else dialect)
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
    module = _module(function.function.__name__, entry, chosen, location)
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
    """The tensors that a call makes for itself: arguments of the function behind those of its parameters.

    Attributes:
        made: the tensors, in order.
    """

    def __init__(self, builder: Builder, first: int) -> None:
        self.made: list[Buffer] = []
        self._builder, self._first = builder, first
        self._arguments: list[SSAValue] = []

    def make(self, sizes: Sequence[Any], element: DType) -> Buffer:
        """One more.

        Raises:
            TileError: T140, a dimension that no parameter has; T150, T151, no sizes of a tensor.
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
        """What the call makes."""
        for argument, tensor in zip(self._arguments, self.made, strict=True):
            argument.name_hint = escape_name(tensor.label)
            assert tensor.location is not None
            yield Parameter(tensor.label, "tensor", tensor.element, tensor.dimensions, tensor.location)


def _in_shape(builder: Builder, parameter: Parameter, flat: SSAValue) -> SSAValue:
    """The tensor behind a flat argument whose shape symbolic dimensions give."""
    assert parameter.shape is not None
    builder.location = parameter.location
    sizes = [size if isinstance(size, int) else builder.lift(size).ssa(builder) for size in parameter.shape]
    made = builder.discardable(tile.TensorOp(flat, sizes)).results[0]
    made.name_hint = escape_name(parameter.name)
    return made


def _module(name: str, entry: Block, dialect: str, location: Location) -> ModuleOp:
    made = func.FuncOp(escape_name(name) or "kernel", ([argument.type for argument in entry.args], []), Region([entry]))
    made.attributes[tile.DIALECT] = StringAttr(dialect)
    return ModuleOp([_located(made, location)])
