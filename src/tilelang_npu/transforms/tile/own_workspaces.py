"""Give each iteration a workspace of its own in place of a tensor that the call allocates for the blocks to pass tiles through.

Authors who write both cores' work pass what one hands to the other through a parameter that the call allocates
(``workspace_idx``), at the same place in each iteration: as a tensor it goes from iteration to iteration, and no core could
begin with the next one. Where a pipelined loop writes in an iteration all that the iteration reads of the tensor, always at one
index of some axes (the block's), what is at that index becomes a buffer in GM of the compiler's, which ``sink-buffers`` moves
into the loop and gives slots, and ``overlap-iterations`` a ring. Nobody sees the tensor but the kernel.

Runs where the compiler orders the cores, in front of ``sink-buffers``.
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

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.target import GM
from tilelang_npu.transforms.ir.buffers import users_of, with_space
from tilelang_npu.transforms.ir.cores import core_of
from tilelang_npu.transforms.ir.locations import line_of, stand_in
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.channels import is_unseen
from tilelang_npu.transforms.tile.first_writes import reads_earlier, same_value

ABOUT = "overlap-iterations"


@dataclass
class _Tensor:
    """A tensor that is allocated for a kernel, and the rectangles of it that the kernel copies to and from.

    Attributes:
        value: the argument, or the shape that a call gives it.
        regions: its rectangles.
        fixed: the axes along which all of them are at the same place, one element wide.
    """

    value: SSAValue
    regions: list[tile.RegionOp]
    fixed: list[int]

    def shape(self) -> list[int]:
        """What an iteration has of it."""
        return [1 if axis in self.fixed else size for axis, size in enumerate(tile.shape_of(self.value))]


def _tensor(value: SSAValue) -> _Tensor | None:
    """A tensor of which the kernel only copies rectangles, in what is of constant size; None of any other."""
    regions = [use.operation for use in value.uses if isinstance(use.operation, tile.RegionOp)]
    links = (tile.RegionOp, tile.ViewOp)
    copied = all(isinstance(user, links) or (isinstance(user, tile.CopyOp) and user.atomic is None) for user in users_of(value))
    if not regions or len(regions) != len(list(value.uses)) or not copied:
        return None
    places = [region.mixed_offsets() for region in regions]
    sizes = [region.mixed_sizes() for region in regions]
    fixed = [axis for axis in range(len(places[0])) if all(
        size[axis] == 1 and _alike(place[axis], places[0][axis]) for place, size in zip(places, sizes, strict=True))]
    found = _Tensor(value, regions, fixed)
    return None if any(size < 0 for size in found.shape()) else found


def _alike(a: SSAValue | int, b: SSAValue | int) -> bool:
    return a == b if isinstance(a, int) or isinstance(b, int) else same_value(a, b)


def _loops(tensor: _Tensor, launch: tile.LaunchOp) -> list[scf.ForOp]:
    """The pipelined loops of both cores that use a tensor."""
    return [op for op in launch.walk() if isinstance(op, scf.ForOp) and tile.stages_of(op) > 1
            and any(op.is_ancestor(region) for region in tensor.regions)
            and {"AIC", "AIV"} <= {core_of(inner) for inner in op.walk()}]


@dataclass(frozen=True)
class OwnWorkspaces(ModulePass):
    """The pass; ``take`` is whether it does anything."""

    name = "own-workspaces"
    take: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for launch in [inner for inner in op.walk() if isinstance(inner, tile.LaunchOp)] if self.take else ():
            for value in dict.fromkeys(operand for inner in launch.walk() for operand in inner.operands if is_unseen(
                    operand.owner.source if isinstance(operand.owner, tile.TensorOp) else operand)):
                tensor = _tensor(value)
                if tensor is not None and (loops := _loops(tensor, launch)):
                    _take(op, launch, tensor, loops)


def _take(module: ModuleOp, launch: tile.LaunchOp, tensor: _Tensor, loops: Sequence[scf.ForOp]) -> None:
    """Put a buffer in the place of a tensor, unless it passes something on from iteration to iteration."""
    name, ranges = author_name(tensor.value, "a tensor"), Ranges()
    kind = tensor.value.type
    assert isinstance(kind, MemRefType)
    buffer = tile.AllocOp(name, with_space(MemRefType(kind.element_type, tensor.shape()), GM))
    stand_in(loops[0], buffer)
    first = launch.body.block.first_op
    assert first is not None
    Rewriter().insert_op(buffer, InsertPoint.before(first))
    replaced = [(region, _moved(region, buffer.result, tensor.fixed)) for region in tensor.regions]
    for region, made in replaced:
        region.result.replace_all_uses_with(made.result)
    carried = [loop for loop in loops if reads_earlier(loop.body.block.ops, buffer.result, ranges)]
    if carried or reads_earlier(launch.body.block.ops, buffer.result, ranges):
        for region, made in replaced:
            made.result.replace_all_uses_with(region.result)
            Rewriter.erase_op(made)
        Rewriter.erase_op(buffer)
        loop = (carried or loops)[0]
        record_refusal(module, ABOUT, location_of(loop), f"{name} passes values on from iteration to iteration of the loop at "
                f"{line_of(loop)}, or between blocks: what is read of it was not surely written further up in the iteration",
                f"write all of {name} that an iteration reads in the same iteration", maker=OwnWorkspaces.name)
        return
    for region, _ in replaced:
        Rewriter.erase_op(region)
    record_done(module, ABOUT, location_of(loops[0]), f"{name} is a workspace that each iteration has for itself",
                maker=OwnWorkspaces.name)


def _moved(region: tile.RegionOp, buffer: SSAValue, fixed: Sequence[int]) -> tile.RegionOp:
    """The rectangle of a buffer that has one element along the fixed axes, behind one of the tensor."""
    places = [0 if axis in fixed else place for axis, place in enumerate(region.mixed_offsets())]
    made = tile.RegionOp(buffer, places, region.mixed_sizes(), region.kept.get_values())
    stand_in(region, made)
    made.result.name_hint = region.result.name_hint
    Rewriter().insert_op(made, InsertPoint.after(region))
    return made


__all__ = ["OwnWorkspaces"]
