"""Emits the HIVM function of a kernel: its arguments, its block indices, and the cores that execute it.

The arguments follow AscendNPU-IR's convention (docs/hivm.md#arguments): FFTS address, sync-block lock, workspace, the user's
tensors and scalars, one i32 per symbolic dimension, the grid as three i32.

A kernel without operations of the Cube core runs on Vector cores only. If its author uses the sub-block index (``vid``), one
block is launched per sub-block of each grid point: with two sub-blocks, block ``b`` is sub-block ``b % 2`` of grid point ``b //
2``.
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

from tilelang_npu.analysis.buffers import root_of, space_of, walk
from tilelang_npu.analysis.cores import core_of, core_of_function
from tilelang_npu.analysis.launch_grids import constant_grid
from tilelang_npu.analysis.locations import line_of, refuse
from tilelang_npu.dialects import hacc, hivm, tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.linear import Interval
from tilelang_npu.target.chip_data import FunctionCore
from tilelang_npu.transforms.infra.launch_blocks import grid_position
from tilelang_npu.transforms.infra.op_builder import OpBuilder, Value
from tilelang_npu.transforms.lower.views import LoweredBuffer, whole_view

if TYPE_CHECKING:
    from tilelang_npu.transforms.lower.lower_to_hivm import KernelLowering

_SCOPES = {"AIC": "cube", "AIV": "vector"}


@dataclass(frozen=True)
class KernelShape:
    """The cores that execute a kernel, and the number of sub-blocks per grid point.

    Attributes:
        cores: ``AIC``, ``AIV`` or ``MIX``.
        sub_blocks: the number of values of the sub-block index (``vid``) in the kernel's body; 1 if the body has no such index.
    """

    cores: FunctionCore
    sub_blocks: int

    @property
    def blocks_per_point(self) -> int:
        """The number of blocks that are launched for each grid point: ``sub_blocks`` if only Vector cores are used, otherwise
        1."""
        return self.sub_blocks if self.cores == "AIV" else 1

    def bind(self, lowering: KernelLowering, op: tile.LaunchOp) -> None:
        """Emits the block indices and the sub-block index, and maps the block arguments of the launch to them.

        Args:
            lowering: the lowering of the kernel; its ``values`` receive the indices.
            op: the launch.
        """
        emit, ranges = lowering.emit, lowering.emit.ranges
        grid = [_constant_or_value(emit, lowering.values[extent]) for extent in op.grid]
        blocks = math.prod(ranges.of(extent).high for extent in grid)
        index: Value = _emit_index(emit, hivm.GetBlockIdxOp(), "block", blocks * self.blocks_per_point)
        half: Value = 0
        if op.explicit_sub_block is not None:
            if self.blocks_per_point > 1:
                half, index = emit.modulo(index, self.sub_blocks), emit.floordiv(index, self.sub_blocks)
            elif self.cores == "MIX":
                half = _emit_index(emit, hivm.GetSubBlockIdxOp(), "sub_block", self.sub_blocks)
        arguments = list(op.body.block.args)
        places = grid_position(emit, op, grid, index)
        for here, argument in zip(places, arguments, strict=False):
            self._set_name_hint(emit, here, argument)
            lowering.values[argument] = emit.value(here)
        if op.explicit_sub_block is not None:
            self._set_name_hint(emit, half, arguments[-1])
            lowering.values[arguments[-1]] = emit.value(half)

    def _set_name_hint(self, emit: OpBuilder, value: Value, argument: SSAValue) -> None:
        if isinstance(value, SSAValue) and argument.name_hint:
            value.name_hint = argument.name_hint


def _constant_or_value(emit: OpBuilder, value: SSAValue) -> Value:
    constant = emit.ranges.constant(value)
    return value if constant is None else constant


def _emit_index(emit: OpBuilder, query: hivm.GetBlockIdxOp | hivm.GetSubBlockIdxOp, name: str, count: float) -> SSAValue:
    raw = emit.insert(query).results[0]
    cast = emit.insert(arith.IndexCastOp(raw, IndexType())).result
    cast.name_hint = name
    emit.ranges.assume(cast, Interval(0, count - 1))
    return cast


def kernel_shape_of(kernel: func.FuncOp) -> KernelShape:
    """Returns the launch shape of a kernel, from the attribute that ``assign-cores`` wrote on the function.

    Raises:
        TileError: T294, the function has no such attribute.
    """
    cores = core_of_function(kernel)
    if cores is None:
        raise refuse(kernel, f"{kernel.sym_name.data} has no cores yet; run assign-cores first", "T294")
    launch = next(op for op in kernel.walk() if isinstance(op, tile.LaunchOp))
    return KernelShape(cores, launch.sub_blocks.value.data if launch.explicit_sub_block is not None else 1)


def check_core_scopes(kernel: func.FuncOp, *, divide: bool) -> None:
    """Checks that each operation in a ``T.Scope`` belongs to the core of that scope.

    Only operations on on-chip buffers are checked.

    Args:
        kernel: the kernel.
        divide: whether operations outside of any ``T.Scope`` are allowed.

    Raises:
        TileError: T247, an operation is in a ``T.Scope`` of the other core; T248, an operation is in no ``T.Scope``, and
            ``divide`` is false.
    """
    for op in walk(kernel.body.block):
        uses = [use.value for use in effects_of(op)]
        if all(space_of(value) in ("gm", "local") for value in uses):
            continue  # it moves nothing on chip: a flag, a scalar
        side = _SCOPES.get(core_of(op))
        if side is None:
            continue  # either core can execute it
        if any(isinstance(root_of(value).owner, tile.AllocOp) and space_of(value) == "gm" for value in uses):
            continue  # a hand-over of the compiler's own
        scope = op.parent_op()
        while scope is not None and not isinstance(scope, tile.OnCoreOp):
            scope = scope.parent_op()
        what = op.name.removeprefix("tile.")
        if scope is not None and scope.core.data != side:
            raise refuse(op, f"this {what} belongs to the {side.capitalize()} core, but is in a T.Scope of the other core",
                         "T247",
                         notes=(f"the T.Scope of the {scope.core.data} core begins at {line_of(scope)}",),
                         help=f"move it into `with T.Scope({side[0].upper()!r}):`")
        if scope is None and not divide:
            raise refuse(op, f"this {what} belongs to the {side.capitalize()} core, but is in no T.Scope of a kernel that uses"
                         " both cores", "T248",
                         help=f"put it into `with T.Scope({side[0].upper()!r}):`, or let the compiler divide "
                         "the work: pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True}")


def begin_function(lowering: KernelLowering) -> tuple[func.FuncOp, OpBuilder]:
    """Returns the empty HIVM function of a kernel, with its arguments bound to the tile kernel's, and an emitter for it.

    Raises:
        TileError: T602, an argument with several axes has a size that is known only at run time.
    """
    kernel, cores = lowering.kernel, lowering.shape.cores
    flat = MemRefType(i8, [DYNAMIC_INDEX], memory_space=hivm.address_space("gm"))
    roles: list[tuple[str, Attribute, Attribute | None]] = [
        ("ffts", i64, hacc.ArgTypeAttr("ffts_base_address")),
        ("lock", flat, hacc.ArgTypeAttr("sync_block_lock")),
        ("workspace", flat, hacc.ArgTypeAttr("workspace")),
    ]
    arguments = list(kernel.body.block.args)
    for position, argument in enumerate(arguments):
        shape = argument.type.get_shape() if isinstance(argument.type, MemRefType) else ()
        if DYNAMIC_INDEX in shape and len(shape) > 1:
            name = author_name(argument, f"argument {position}")
            msg = f"{name} has {len(shape)} axes, and the size of one is known only at run time"
            raise refuse(kernel, msg, "T602", help="pass the elements as memref<?x..>, and view them with tile.tensor")
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
    if cores == "MIX" and lowering.shape.sub_blocks > 1 and (lowering.shape.sub_blocks, lowering.chip.aiv_per_aic) != (2, 2):
        made.attributes[hivm.SUB_BLOCKS] = IntegerAttr(lowering.shape.sub_blocks, i64)
    grid = next((constant_grid(op) for op in walk(kernel.body.block) if isinstance(op, tile.LaunchOp)), None)
    if grid is not None:
        made.attributes["hacc.block_dim"] = IntegerAttr(math.prod(grid) * lowering.shape.blocks_per_point, i64)
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
            lowering.views[argument] = whole_view(
                LoweredBuffer(given[argument], "gm", tuple(shape), author_name(argument, f"argument {position}")))
        else:
            lowering.values[argument] = given[argument]


def lower_strided_tensor(lowering: KernelLowering, op: tile.StridedTensorOp) -> None:
    """Lowers ``tile.strided_tensor`` to a view of the flat argument with the tensor's sizes and strides."""
    shape, strides = ([value if isinstance(value, int) else _constant_or_value(lowering.emit, lowering.values[value])
                       for value in values] for values in (op.mixed_sizes(), op.mixed_strides()))
    _bind_view(lowering, op.source, op.result, shape, strides, gaps=True)


def lower_tensor(lowering: KernelLowering, op: tile.TensorOp) -> None:
    """Lowers ``tile.tensor`` to a view of the flat argument with the tensor's run-time shape, in row-major order without gaps.
    """
    emit = lowering.emit
    shape: list[Value] = [size if isinstance(size, int) else _constant_or_value(emit, lowering.values[size])
                          for size in op.mixed_sizes()]
    strides: list[Value] = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, emit.mul(strides[0], size))
    _bind_view(lowering, op.source, op.result, shape, strides, gaps=False)


def _bind_view(lowering: KernelLowering, source: SSAValue, target: SSAValue, shape: Sequence[Value],
               strides: Sequence[Value], *, gaps: bool) -> None:
    """Emits a view of a flat argument, and maps a tensor of the tile dialect to it.

    Args:
        lowering: the lowering of the kernel.
        source: the flat argument in the tile dialect.
        target: the tensor in the tile dialect.
        shape: the sizes.
        strides: the strides, in elements.
        gaps: whether the strides are others than those of the shape.
    """
    flat = lowering.view(source).buffer
    layout = StridedLayoutAttr([stride if isinstance(stride, int) else None for stride in strides], 0)
    static = [size if isinstance(size, int) else DYNAMIC_INDEX for size in shape]
    kind = flat.value.type
    assert isinstance(kind, MemRefType)
    result = MemRefType(kind.element_type, static, layout, kind.memory_space)
    made = lowering.emit.insert(memref.ReinterpretCastOp.from_dynamic(flat.value, [0], shape, strides, result)).result
    made.name_hint = flat.value.name_hint
    lowering.views[target] = whole_view(
        LoweredBuffer(made, "gm", tuple(shape), flat.label, strides=tuple(strides) if gaps else None))


def finish_function(lowering: KernelLowering, made: func.FuncOp) -> None:
    """Emits the ``func.return`` of the function."""
    lowering.emit.location = made.location
    lowering.emit.insert(func.ReturnOp())
