"""How many iterations at a time L2 has room for the workspaces of.

Each block passes tiles between its cores through workspaces of its own, with more slots the more iterations are under way.
As long as the workspaces of all blocks fit in L2 beside the tensors, what passes through them never sees HBM; where they do
not, each byte of them is brought there once, as no later block writes it again. That is the larger a part of the time the fewer
iterations use a slot, while each further iteration under way wins less than the one before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation

from tilelang_npu.dialects import tile
from tilelang_npu.target import GM, Chip
from tilelang_npu.transforms.ir.buffers import space_of
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.sizes import nbytes_of, spaced

_ALONE, _FALLS = 0.09, 9.0
"""What one iteration under way takes more than many, and what part of that is left with each further one: attention forward,
causal and not, of 24 to 448 blocks."""
_SPILLED = 4 / 3
"""What a byte of a workspace costs that goes to HBM, in bytes that pass through L2: the same, of 384 to 1024 blocks."""


def fewer_slots(allocation: tile.AllocOp, ahead: int) -> int:
    """The slots of a workspace with so many iterations under way: two are what it has in any loop."""
    return min(_slots_of(allocation), max(ahead, 2))


def _slots_of(allocation: tile.AllocOp) -> int:
    return allocation.slots.value.data if allocation.slots is not None else 1


@dataclass(frozen=True)
class L2Room:
    """What L2 holds during a launch beside the workspaces of a loop.

    Attributes:
        room: bytes of L2.
        blocks: of the launch.
        tensors: bytes of all of the kernel's.
        others: bytes of the workspaces that a block has outside of the loop.
        trips: how often the loop's body runs in a block, in the mean of what its bounds can be.
    """

    room: int
    blocks: int
    tensors: int
    others: int
    trips: float

    def needed(self, slots: Mapping[tile.AllocOp, int]) -> int:
        """Bytes of all tensors and workspaces, with so many slots of those in the loop."""
        return self.tensors + self.blocks * (self.others + _bytes_of(slots))

    def time(self, ahead: int, slots: Mapping[tile.AllocOp, int]) -> float:
        """What the loop takes with so many iterations under way, in parts of the least: to compare depths by."""
        overlapped = 1 + _ALONE * _FALLS ** (1 - ahead)
        if not slots or self.needed(slots) <= self.room:
            return overlapped
        return overlapped * (1 + _SPILLED * _bytes_of(slots) / (_bytes_of(dict.fromkeys(slots, 1)) * self.trips))

    def said(self, slots: Mapping[tile.AllocOp, int]) -> str:
        """What does not fit, in words."""
        many = "block has" if self.blocks == 1 else f"{spaced(self.blocks)} blocks have"
        return (f"the workspaces of {many} {spaced(self.needed(slots) - self.tensors)} bytes then, and L2 holds "
                f"{spaced(self.room)} with {spaced(self.tensors)} of tensors")


def l2_room(loop: scf.ForOp, ranges: Ranges, chip: Chip) -> L2Room | None:
    """What there is beside the workspaces of a loop; None where a length is known when the kernel is called, or by data."""
    launch, trips = loop.parent_op(), _trips(loop, ranges)
    while launch is not None and not isinstance(launch, tile.LaunchOp):
        if isinstance(launch, scf.ForOp):
            around = _trips(launch, ranges)
            trips = None if trips is None or around is None else trips * around
        launch = launch.parent_op()
    kernel: Operation | None = launch
    while kernel is not None and not isinstance(kernel, func.FuncOp):
        kernel = kernel.parent_op()
    if launch is None or kernel is None or not trips:
        return None
    grid = [ranges.constant(size) for size in launch.grid]
    kinds = [argument.type for argument in kernel.body.block.args if isinstance(argument.type, MemRefType)]
    if None in grid or any(size < 0 for kind in kinds for size in kind.get_shape()):
        return None
    others = {op: _slots_of(op) for op in launch.walk()
              if isinstance(op, tile.AllocOp) and space_of(op.result) == GM and op.parent_block() is not loop.body.block}
    tensors = sum(nbytes_of(argument) for argument in kernel.body.block.args if isinstance(argument.type, MemRefType))
    return L2Room(chip.l2, prod(size for size in grid if size is not None), tensors, _bytes_of(others), trips)


def workspaces_in(loop: scf.ForOp) -> list[tile.AllocOp]:
    """The workspaces of which each iteration of a loop has a slot."""
    return [op for op in loop.body.block.ops if isinstance(op, tile.AllocOp) and space_of(op.result) == GM]


def _trips(loop: scf.ForOp, ranges: Ranges) -> float | None:
    """How often a loop runs, in the mean of what its bounds can be."""
    bounds, step = [ranges.of(loop.lb), ranges.of(loop.ub)], ranges.constant(loop.step)
    if not step or not all(bound.closed for bound in bounds):
        return None
    first, end = (0.5 * (bound.low + bound.high) for bound in bounds)
    return max(end - first, 0.0) / step


def _bytes_of(slots: Mapping[tile.AllocOp, int]) -> int:
    return sum(nbytes_of(allocation.result) * count for allocation, count in slots.items())


__all__ = ["L2Room", "fewer_slots", "l2_room", "workspaces_in"]
