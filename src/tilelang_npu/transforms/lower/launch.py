"""The kernel function in HIVM: its arguments, its block index, the cores it runs on.

The argument convention is AscendNPU-IR's (docs/hivm.md#arguments): FFTS address, sync-block lock, workspace, the user's tensors
and scalars, one i32 per symbolic dimension, the grid as three i32.

A kernel with vector work only runs on the Vector cores alone. Where its author wrote the sub-block index (``vid``), two
blocks are launched for each point of the grid: block ``b`` is sub-block ``b % 2`` of grid point ``b // 2``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StridedLayoutAttr,
    StringAttr,
    UnitAttr,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from tilelang_npu.dialects import hacc, hivm, tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.linear import Interval
from tilelang_npu.transforms.ir.buffers import root_of, space_of, walk
from tilelang_npu.transforms.ir.cores import core_of, core_of_function
from tilelang_npu.transforms.ir.emit import OpBuilder, Value
from tilelang_npu.transforms.ir.locations import line_of, refuse
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.lower.views import LoweredBuffer, whole

if TYPE_CHECKING:
    from tilelang_npu.transforms.lower.lower_to_hivm import KernelLowering

_SCOPES = {"AIC": "cube", "AIV": "vector"}


@dataclass(frozen=True)
class KernelShape:
    """What the whole body says about the launch.

    Attributes:
        cores: ``AIC``, ``AIV`` or ``MIX``.
        two_halves: whether a Vector-only kernel launches two blocks for each grid point.
    """

    cores: str
    two_halves: bool

    def bind(self, lowering: KernelLowering, op: tile.LaunchOp) -> None:
        """Give the launch's block arguments their values."""
        emit, ranges = lowering.emit, lowering.emit.ranges
        grid = [_known(emit, lowering.values[extent]) for extent in op.grid]
        blocks = math.prod(_high(ranges, extent) for extent in grid)
        index: Value = _index(emit, hivm.GetBlockIdxOp(), "block", blocks * (2 if self.two_halves else 1))
        half: Value = 0
        if op.explicit_sub_block is not None:
            if self.two_halves:
                half, index = emit.modulo(index, 2), emit.floordiv(index, 2)
            elif self.cores == "MIX":
                half = _index(emit, hivm.GetSubBlockIdxOp(), "sub_block", 2)
        arguments = list(op.body.block.args)
        places: list[Value] = []
        if op.panel is not None and len(grid) > 1:
            columns, rows, *rest = grid
            plane = emit.mul(columns, rows)
            inside = _remainder(emit, index, plane) if rest else index
            index = _quotient(emit, index, plane) if rest else 0
            if op.upright is None:
                row, column = _in_panels(emit, inside, rows, columns, op.panel.value.data)
            else:
                column, row = _in_panels(emit, inside, columns, rows, op.panel.value.data)
            places, grid = [column, row], rest
        for position, extent in enumerate(grid):
            last = position == len(grid) - 1
            places.append(index if last else _remainder(emit, index, extent))
            index = index if last else _quotient(emit, index, extent)
        for here, argument in zip(places, arguments, strict=False):
            self._name(emit, here, argument)
            lowering.values[argument] = emit.value(here)
        if op.explicit_sub_block is not None:
            self._name(emit, half, arguments[-1])
            lowering.values[arguments[-1]] = emit.value(half)

    def _name(self, emit: OpBuilder, value: Value, argument: SSAValue) -> None:
        if isinstance(value, SSAValue) and argument.name_hint:
            value.name_hint = argument.name_hint


def _known(emit: OpBuilder, value: SSAValue) -> Value:
    constant = emit.ranges.constant(value)
    return value if constant is None else constant


def _high(ranges: Ranges, value: Value) -> float:
    return ranges.of(value).high


def _index(emit: OpBuilder, query: hivm.GetBlockIdxOp | hivm.GetSubBlockIdxOp, name: str, count: float) -> SSAValue:
    raw = emit.insert(query).results[0]
    cast = emit.insert(arith.IndexCastOp(raw, IndexType())).result
    cast.name_hint = name
    emit.ranges.assume(cast, Interval(0, count - 1))
    return cast


def _remainder(emit: OpBuilder, value: Value, extent: Value) -> Value:
    if isinstance(extent, int):
        return emit.modulo(value, extent)
    return emit.insert(arith.RemUIOp(emit.value(value), extent)).result


def _quotient(emit: OpBuilder, value: Value, extent: Value) -> Value:
    if isinstance(extent, int):
        return emit.floordiv(value, extent)
    return emit.insert(arith.DivUIOp(emit.value(value), extent)).result


def _in_panels(emit: OpBuilder, number: Value, along: Value, across: Value, width: int) -> tuple[Value, Value]:
    """Where a number lies along an axis that is cut into panels of ``width``, and across it: it runs along a panel first, and
    through every other panel backwards. The last panel has what is left."""
    whole = emit.mul(across, width)
    panel, inside = _quotient(emit, number, whole), _remainder(emit, number, whole)
    start = emit.mul(panel, width)
    left = emit.sub(along, start)
    have = emit.minimum(width, left)
    first, second = emit.add(start, _remainder(emit, inside, have)), _quotient(emit, inside, have)
    odd = emit.modulo(panel, 2)
    # second where the panel is even, across - 1 - second where it is odd
    turned = emit.add(second, emit.mul(odd, emit.sub(emit.sub(across, 1), emit.mul(second, 2))))
    for value, extent in ((first, along), (turned, across)):
        if isinstance(value, SSAValue):
            emit.ranges.assume(value, Interval(0, _high(emit.ranges, extent) - 1))
    return first, turned


def shape_of_kernel(kernel: func.FuncOp) -> KernelShape:
    """The launch that a kernel needs, from the cores that it says it is for.

    Raises:
        TileError: T294 it says none.
    """
    cores = core_of_function(kernel)
    if cores is None:
        raise refuse(kernel, f"{kernel.sym_name.data} has no cores yet; run assign-cores first", "T294")
    launch = next(op for op in kernel.walk() if isinstance(op, tile.LaunchOp))
    halves = cores == "AIV" and launch.explicit_sub_block is not None
    return KernelShape(cores, halves and launch.sub_blocks.value.data == 2)


def check_cores(kernel: func.FuncOp, *, divide: bool) -> None:
    """Work in ``T.Scope`` must be its core's; without ``divide`` all work must stand in one.

    Raises:
        TileError: T247 work of the other core; T248 work in no ``T.Scope``.
    """
    for op in walk(kernel.body.block):
        uses = [use.value for use in effects_of(op)]
        if all(space_of(value) in ("gm", "local") for value in uses):
            continue  # it moves nothing on chip: a flag, a scalar
        side = _SCOPES[core_of(op)]
        if any(isinstance(root_of(value).owner, tile.AllocOp) and space_of(value) == "gm" for value in uses):
            continue  # a hand-over of the compiler's own
        scope = op.parent_op()
        while scope is not None and not isinstance(scope, tile.OnCoreOp):
            scope = scope.parent_op()
        what = op.name.removeprefix("tile.")
        if scope is not None and scope.core.data != side:
            raise refuse(op, f"this {what} is work of the {side.capitalize()} core and stands in a T.Scope of the other",
                         "T247",
                         notes=(f"the T.Scope of the {scope.core.data} core begins at {line_of(scope)}",),
                         help=f"move it into `with T.Scope({side[0].upper()!r}):`")
        if scope is None and not divide:
            raise refuse(op, f"this {what} is work of the {side.capitalize()} core and stands in no T.Scope, in a kernel of"
                         " both cores", "T248",
                         help=f"put it into `with T.Scope({side[0].upper()!r}):`, or let the compiler divide "
                         "the work: pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True}")


def begin_function(lowering: KernelLowering) -> tuple[func.FuncOp, OpBuilder]:
    """The empty HIVM function of a kernel, its arguments bound to the tile kernel's."""
    kernel, cores = lowering.kernel, lowering.shape.cores
    flat = MemRefType(i8, [DYNAMIC_INDEX], memory_space=hivm.address_space("gm"))
    roles: list[tuple[str, Attribute, Attribute | None]] = [
        ("ffts", i64, hacc.ArgTypeAttr("ffts_base_address")),
        ("lock", flat, hacc.ArgTypeAttr("sync_block_lock")),
        ("workspace", flat, hacc.ArgTypeAttr("workspace")),
    ]
    arguments = list(kernel.body.block.args)
    for argument in arguments:
        roles.append((argument.name_hint or "", _argument_type(argument.type), None))
    roles += [("grid_x", i32, None), ("grid_y", i32, None), ("grid_z", i32, None)]
    block = Block(arg_types=[kind for _, kind, _ in roles])
    for value, (name, _, _) in zip(block.args, roles, strict=True):
        value.name_hint = name or None
    made = func.FuncOp(kernel.sym_name.data, ([kind for _, kind, _ in roles], []), Region(block))
    made.location = kernel.location
    made.properties["arg_attrs"] = ArrayAttr(
        [DictionaryAttr({"hacc.arg_type": role} if role is not None else {}) for _, _, role in roles]
    )
    made.attributes.update({
        "SyncBlockLockArgIdx": IntegerAttr(0, i64),
        "WorkspaceArgIdx": IntegerAttr(1, i64),
        "hacc.entry": UnitAttr(),
        "hacc.function_kind": hacc.FunctionKindAttr("DEVICE"),
        "hivm.func_core_type": hivm.FuncCoreTypeAttr(cores),
        "mix_mode": StringAttr(cores.lower()),
    })
    blocks = _static_blocks(kernel)
    if blocks is not None:
        made.attributes["hacc.block_dim"] = IntegerAttr(blocks * (2 if lowering.shape.two_halves else 1), i64)
    emit = OpBuilder(block)
    emit.location = kernel.location
    _bind_arguments(lowering, emit, block, arguments)
    return made, emit


def _argument_type(kind: Attribute) -> Attribute:
    if isinstance(kind, IndexType):
        return i32
    if isinstance(kind, MemRefType) and DYNAMIC_INDEX in kind.get_shape():
        return MemRefType(kind.element_type, [DYNAMIC_INDEX], memory_space=kind.memory_space)
    return kind


def _static_blocks(kernel: func.FuncOp) -> int | None:
    ranges = Ranges()
    for op in walk(kernel.body.block):
        if isinstance(op, tile.LaunchOp):
            extents = [ranges.constant(extent) for extent in op.grid]
            known = [extent for extent in extents if extent is not None]
            return math.prod(known) if len(known) == len(extents) else None
    return None


def _bind_arguments(lowering: KernelLowering, emit: OpBuilder, block: Block, arguments: Sequence[SSAValue]) -> None:
    given = dict(zip(arguments, block.args[3:], strict=False))
    for position, argument in enumerate(arguments):
        if isinstance(argument.type, IndexType):
            index = emit.insert(arith.IndexCastOp(given[argument], IndexType())).result
            index.name_hint = argument.name_hint
            emit.ranges.assume(index, Interval(1))  # the runtime refuses empty tensors
            lowering.values[argument] = index
        elif isinstance(argument.type, MemRefType):
            shape = argument.type.get_shape()
            lowering.views[argument] = whole(
                LoweredBuffer(given[argument], "gm", tuple(shape), author_name(argument, f"argument {position}")))
        else:
            lowering.values[argument] = given[argument]


def shaped_argument(lowering: KernelLowering, op: tile.TensorOp) -> None:
    """A tensor with run-time dimensions: the flat argument seen in its shape, rows without gaps."""
    emit, flat = lowering.emit, lowering.view(op.source).buffer
    shape: list[Value] = [size if isinstance(size, int) else _known(emit, lowering.values[size]) for size in op.mixed_sizes()]
    strides: list[Value] = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, emit.mul(strides[0], size))
    layout = StridedLayoutAttr([stride if isinstance(stride, int) else None for stride in strides], 0)
    static = [size if isinstance(size, int) else DYNAMIC_INDEX for size in shape]
    kind = flat.value.type
    assert isinstance(kind, MemRefType)
    result = MemRefType(kind.element_type, static, layout, kind.memory_space)
    made = emit.insert(memref.ReinterpretCastOp.from_dynamic(flat.value, [0], shape, strides, result)).result
    made.name_hint = flat.value.name_hint
    lowering.views[op.result] = whole(LoweredBuffer(made, "gm", tuple(shape), flat.label))


def finish_function(lowering: KernelLowering, made: func.FuncOp) -> None:
    """Close the function."""
    lowering.emit.location = made.location
    lowering.emit.insert(func.ReturnOp())
