"""Replaces a workspace tensor, which the call allocates for the kernel, by a buffer in GM that each iteration overwrites.

Some authors pass tiles from one core to the other through a parameter that the call allocates (``workspace_idx``), at the same
offset in each iteration. A tensor survives the iteration, so neither core could begin the next iteration early. If each
iteration of a pipelined loop writes all elements of the tensor that it reads, the part of the tensor that a block accesses is
replaced by an allocation in GM. This part has one index along some axes, such as the index of the block. ``sink-buffers`` then
moves the allocation into the loop and gives it slots, and ``overlap-iterations`` gives it a ring buffer.

The pass runs before ``sink-buffers``, and only if the compiler orders the cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.buffers import users_of, with_space
from tilelang_npu.analysis.channels import is_private_workspace
from tilelang_npu.analysis.cores import core_of
from tilelang_npu.analysis.first_writes import is_same_value, may_read_earlier_value
from tilelang_npu.analysis.locations import copy_location, line_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.target import GM

ABOUT = "overlap-iterations"
"""The optimisation that the remarks of this pass are about."""


@dataclass
class _WorkspaceTensor:
    """A tensor that is allocated for a kernel, and the regions of it that the kernel copies from and to.

    Attributes:
        value: the argument, or the ``tile.tensor`` that gives it its shape.
        regions: the regions.
        fixed: the axes along which all regions have one offset and size 1.
    """

    value: SSAValue
    regions: list[tile.RegionOp]
    fixed: list[int]

    def shape(self) -> list[int]:
        """Returns the shape of the part that an iteration accesses."""
        return [1 if axis in self.fixed else size for axis, size in enumerate(tile.shape_of(self.value))]


def _workspace_tensor(value: SSAValue) -> _WorkspaceTensor | None:
    """Returns a tensor of which the kernel only copies regions, within a part of constant size; None for any other."""
    regions = [use.operation for use in value.uses if isinstance(use.operation, tile.RegionOp)]
    links = (tile.RegionOp, tile.ViewOp)
    copied = all(isinstance(user, links) or (isinstance(user, tile.CopyOp) and user.atomic is None) for user in users_of(value))
    if not regions or len(regions) != len(list(value.uses)) or not copied:
        return None
    places = [region.mixed_offsets() for region in regions]
    sizes = [region.mixed_sizes() for region in regions]
    fixed = [axis for axis in range(len(places[0])) if all(
        size[axis] == 1 and _is_same_offset(place[axis], places[0][axis]) for place, size in zip(places, sizes, strict=True))]
    found = _WorkspaceTensor(value, regions, fixed)
    return None if any(size < 0 for size in found.shape()) else found


def _is_same_offset(a: SSAValue | int, b: SSAValue | int) -> bool:
    return a == b if isinstance(a, int) or isinstance(b, int) else is_same_value(a, b)


def _pipelined_loops_using(tensor: _WorkspaceTensor, launch: tile.LaunchOp) -> list[scf.ForOp]:
    """Returns the pipelined loops of both cores that use a tensor."""
    return [op for op in launch.walk() if isinstance(op, scf.ForOp) and tile.stages_of(op) > 1
            and any(op.is_ancestor(region) for region in tensor.regions)
            and {"AIC", "AIV"} <= {core_of(inner) for inner in op.walk()}]


@dataclass(frozen=True)
class OwnWorkspaces(ModulePass):
    """Replaces a workspace tensor, which the call allocates for the kernel, by a buffer in GM that each iteration overwrites.

    Attributes:
        overlap_iterations: whether the pass does anything; its result is only of use if iterations overlap.
    """

    name = "own-workspaces"
    overlap_iterations: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for launch in [inner for inner in op.walk() if isinstance(inner, tile.LaunchOp)] if self.overlap_iterations else ():
            for value in dict.fromkeys(operand for inner in launch.walk() for operand in inner.operands if is_private_workspace(
                    operand.owner.source if isinstance(operand.owner, (tile.TensorOp, tile.StridedTensorOp)) else operand)):
                tensor = _workspace_tensor(value)
                if tensor is not None and (loops := _pipelined_loops_using(tensor, launch)):
                    _replace_by_buffer(op, launch, tensor, loops)


def _replace_by_buffer(module: ModuleOp, launch: tile.LaunchOp, tensor: _WorkspaceTensor, loops: Sequence[scf.ForOp]) -> None:
    """Replaces a tensor by an allocation, unless an iteration reads a value of the tensor that it did not write."""
    name, ranges = author_name(tensor.value, "a tensor"), Ranges()
    kind = tensor.value.type
    assert isinstance(kind, MemRefType)
    buffer = tile.AllocOp(name, with_space(MemRefType(kind.element_type, tensor.shape()), GM))
    copy_location(loops[0], buffer)
    first = launch.body.block.first_op
    assert first is not None
    Rewriter().insert_op(buffer, InsertPoint.before(first))
    replaced = [(region, _region_of_buffer(region, buffer.result, tensor.fixed)) for region in tensor.regions]
    for region, made in replaced:
        region.result.replace_all_uses_with(made.result)
    carried = [loop for loop in loops if may_read_earlier_value(loop.body.block.ops, buffer.result, ranges)]
    if carried or may_read_earlier_value(launch.body.block.ops, buffer.result, ranges):
        for region, made in replaced:
            made.result.replace_all_uses_with(region.result)
            Rewriter.erase_op(made)
        Rewriter.erase_op(buffer)
        loop = (carried or loops)[0]
        record_refusal(module, ABOUT, location_of(loop), f"{name} passes values from iteration to iteration of the loop at "
                f"{line_of(loop)}, or between blocks: an iteration possibly reads elements that it did not write before",
                f"in each iteration, write all elements of {name} that the iteration reads", maker=OwnWorkspaces.name)
        return
    for region, _ in replaced:
        Rewriter.erase_op(region)
    record_done(module, ABOUT, location_of(loops[0]),
                f"{name} is replaced by a workspace with a slot for each iteration in flight", maker=OwnWorkspaces.name)


def _region_of_buffer(region: tile.RegionOp, buffer: SSAValue, fixed: Sequence[int]) -> tile.RegionOp:
    """Builds, after a region of the tensor, the same region of the buffer, which has size 1 along the fixed axes."""
    places = [0 if axis in fixed else place for axis, place in enumerate(region.mixed_offsets())]
    made = tile.RegionOp(buffer, places, region.mixed_sizes(), region.kept.get_values())
    copy_location(region, made)
    made.result.name_hint = region.result.name_hint
    Rewriter().insert_op(made, InsertPoint.after(region))
    return made


__all__ = ["OwnWorkspaces"]
