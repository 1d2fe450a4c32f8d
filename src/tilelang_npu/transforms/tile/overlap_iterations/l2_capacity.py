"""Estimates how many iterations of a loop should be in flight, given that the workspaces of all blocks should fit in L2.

The cores of a block pass tiles to each other through workspaces, which each block has for itself. A workspace has one slot for
each iteration in flight. As long as the workspaces of all blocks and the tensors fit in L2, the data of the workspaces is not
transferred to or from HBM. Otherwise, each byte of a workspace is fetched from HBM once. This costs more the fewer iterations
use a slot, and each further iteration in flight saves less time than the one before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType

from tilelang_npu.analysis.buffer_sizes import nbytes_of, spaced
from tilelang_npu.analysis.buffers import slot_count, space_of
from tilelang_npu.analysis.cores import function_of
from tilelang_npu.analysis.nesting import launch_of, loop_around
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.target import GM, Chip

_ONE_ITERATION_EXTRA, _EXTRA_FALLS_BY = 0.09, 9.0
"""The extra time of one iteration in flight over many, and the factor by which each further iteration divides the extra. Fitted
to attention forward, causal and not, of 24 to 448 blocks.
"""
_HBM_COST = 4 / 3
"""The cost of a workspace byte that goes to HBM, in bytes that pass through L2. Fitted to the same kernels with 384 to 1024
blocks.
"""


def slots_with_depth(allocation: tile.AllocOp, ahead: int) -> int:
    """Returns the number of slots that a workspace should have with ``ahead`` iterations in flight.

    It is at least 2, and at most the number that the allocation has now.
    """
    return min(slot_count(allocation), max(ahead, 2))


@dataclass(frozen=True)
class L2Capacity:
    """The size of L2, and the bytes that a launch needs in L2 besides the workspaces of one loop.

    Attributes:
        capacity: the size of L2 in bytes.
        blocks: the number of blocks of the launch.
        tensors: the bytes of all tensors of the kernel.
        others: the bytes of the workspaces of one block that are not allocated in the loop.
        trips: the number of iterations of the loop in one block, including repetitions by outer loops; the mean if the bounds
            vary.
    """

    capacity: int
    blocks: int
    tensors: int
    others: int
    trips: float

    def bytes_needed(self, slots: Mapping[tile.AllocOp, int]) -> int:
        """Returns the bytes of all tensors and of the workspaces of all blocks.

        Args:
            slots: the number of slots of each workspace that is allocated in the loop.
        """
        return self.tensors + self.blocks * (self.others + _total_bytes(slots))

    def relative_time(self, ahead: int, slots: Mapping[tile.AllocOp, int]) -> float:
        """Returns the estimated time of the loop, as a multiple of its time with many iterations in flight and enough L2.

        Args:
            ahead: the number of iterations in flight.
            slots: the number of slots of each workspace that is allocated in the loop.
        """
        overlapped = 1 + _ONE_ITERATION_EXTRA * _EXTRA_FALLS_BY ** (1 - ahead)
        if not slots or self.bytes_needed(slots) <= self.capacity:
            return overlapped
        return overlapped * (1 + _HBM_COST * _total_bytes(slots) / (_total_bytes(dict.fromkeys(slots, 1)) * self.trips))

    def describe_lack(self, slots: Mapping[tile.AllocOp, int]) -> str:
        """Returns a text for a message that says how many bytes of workspaces and tensors exceed L2.

        Args:
            slots: the number of slots of each workspace that is allocated in the loop.
        """
        many = "one block" if self.blocks == 1 else f"{spaced(self.blocks)} blocks"
        return (f"the workspaces of {many} would take {spaced(self.bytes_needed(slots) - self.tensors)} bytes and the tensors "
                f"take {spaced(self.tensors)}, and L2 has {spaced(self.capacity)}")


def l2_capacity(loop: scf.ForOp, ranges: Ranges, chip: Chip) -> L2Capacity | None:
    """Returns the size of L2 and what the launch of a loop needs in it.

    None if the loop is in no launch, or if a tensor, the grid or a trip count of the loops is known only at run time.
    """
    launch, trips, outer = launch_of(loop), _mean_trip_count(loop, ranges), loop_around(loop)
    while outer is not None:
        outer_trips = _mean_trip_count(outer, ranges)
        trips = None if trips is None or outer_trips is None else trips * outer_trips
        outer = loop_around(outer)
    kernel = function_of(launch) if launch is not None else None
    if launch is None or kernel is None or not trips:
        return None
    grid = [ranges.constant(size) for size in launch.grid]
    types = [argument.type for argument in kernel.body.block.args if isinstance(argument.type, MemRefType)]
    if None in grid or any(size < 0 for type_ in types for size in type_.get_shape()):
        return None
    others = {op: slot_count(op) for op in launch.walk()
              if isinstance(op, tile.AllocOp) and space_of(op.result) == GM and op.parent_block() is not loop.body.block}
    tensors = sum(nbytes_of(argument) for argument in kernel.body.block.args if isinstance(argument.type, MemRefType))
    return L2Capacity(chip.l2, prod(size for size in grid if size is not None), tensors, _total_bytes(others), trips)


def workspaces_in(loop: scf.ForOp) -> list[tile.AllocOp]:
    """Returns the workspaces (buffers in GM) that are allocated in the body of a loop."""
    return [op for op in loop.body.block.ops if isinstance(op, tile.AllocOp) and space_of(op.result) == GM]


def _mean_trip_count(loop: scf.ForOp, ranges: Ranges) -> float | None:
    """Returns the trip count of a loop, the mean over its possible bounds; None where they are unknown."""
    bounds, step = [ranges.of(loop.lb), ranges.of(loop.ub)], ranges.constant(loop.step)
    if not step or not all(bound.closed for bound in bounds):
        return None
    first, end = (0.5 * (bound.low + bound.high) for bound in bounds)
    return max(end - first, 0.0) / step


def _total_bytes(slots: Mapping[tile.AllocOp, int]) -> int:
    return sum(nbytes_of(allocation.result) * count for allocation, count in slots.items())


__all__ = ["L2Capacity", "l2_capacity", "slots_with_depth", "workspaces_in"]
