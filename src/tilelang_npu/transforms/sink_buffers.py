"""Move a buffer into the loop that alone uses it, and give it several slots where the loop is pipelined.

Each iteration of such a loop defines the buffer anew before it reads it, so its life is one iteration: the planner
can reuse its bytes elsewhere, and with N slots the loads of later iterations run while earlier ones are still being
used. A buffer that carries anything from one iteration to the next stays where it is.

Runs on the tile dialect after scope inference. ``T.Pipelined(num_stages=N)`` asks for N slots; buffers in L1 and UB
that a copy fills from, or drains to, another memory get them (L0C has no room for two, and needs none: its accumulator
is carried). The workspace of a hand-over between the cores gets two in any loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.buffers import Use, covers_root, root_of, space_of, uses_of
from tilelang_npu.transforms.ranges import Ranges

_ALTERNATING = ("ub", "cbuf")
WORKSPACE_SLOTS = 2  # a hand-over between the cores in any loop: the producer may be one iteration ahead


def _users(value: SSAValue) -> Iterator[Operation]:
    """Operations that use a buffer, through its views."""
    for use in value.uses:
        if isinstance(use.operation, (tile.RegionOp, tile.ViewOp)):
            yield use.operation
            yield from _users(use.operation.results[0])
        else:
            yield use.operation


def _loop_of_all(users: list[Operation], home: Block) -> scf.ForOp | None:
    """The outermost loop directly below ``home`` that all users are in."""
    found: Operation | None = None
    for user in users:
        ancestor: Operation | None = user
        while ancestor is not None and ancestor.parent_block() is not home:
            ancestor = ancestor.parent_op()
        if ancestor is None or (found is not None and ancestor is not found):
            return None
        found = ancestor
    return found if isinstance(found, scf.ForOp) else None


def _defines_first(block: Block, buffer: SSAValue, ranges: Ranges) -> bool:
    """Whether the first thing that a block does with a buffer is to write all of it."""
    for op in block.ops:
        if isinstance(op, scf.ForOp) and any(_touches(inner, buffer) for inner in op.walk()):
            if _fills_by_slices(op, buffer, ranges):
                return True
            return ranges.trip_count(op).low >= 1 and _defines_first(op.body.block, buffer, ranges)
        if op.regions and any(_touches(inner, buffer) for inner in op.walk()):
            return False
        uses = [use for use in uses_of(op) if root_of(use.value) is buffer]
        if uses:
            return all(_overwrites(use) for use in uses)
    return False


def _fills_by_slices(loop: scf.ForOp, buffer: SSAValue, ranges: Ranges) -> bool:
    """Whether a loop writes every slice of a buffer, one in each iteration, before anything in it reads the buffer."""
    if ranges.constant(loop.lb) != 0 or ranges.constant(loop.step) != 1:
        return False
    for op in loop.body.block.ops:
        uses = [use for use in uses_of(op) if root_of(use.value) is buffer]
        if op.regions and any(_touches(inner, buffer) for inner in op.walk()):
            return False
        if uses:
            return all(use.writes and not use.reads and _is_slice(use.value, loop, ranges) for use in uses)
    return False


def _is_slice(value: SSAValue, loop: scf.ForOp, ranges: Ranges) -> bool:
    region = value.owner
    while isinstance(region, tile.ViewOp):
        region = region.source.owner
    if not isinstance(region, tile.RegionOp) or isinstance(region.source.owner, (tile.RegionOp, tile.ViewOp)):
        return False
    along = False
    whole = tile.shape_of(region.source)
    for offset, size, extent in zip(region.mixed_offsets(), region.mixed_sizes(), whole, strict=True):
        if offset is loop.body.block.args[0]:
            if along or size != 1 or ranges.constant(loop.ub) != extent:
                return False
            along = True
        elif offset != 0 or size != extent:
            return False
    return along


def _overwrites(use: Use) -> bool:
    return use.writes and not use.reads and covers_root(use.value) and use.role != "scalar"


def _touches(op: Operation, buffer: SSAValue) -> bool:
    return any(root_of(use.value) is buffer for use in uses_of(op))


def _crosses_memories(users: list[Operation], buffer: SSAValue) -> bool:
    """Whether some copy moves the buffer to or from another memory."""
    space = space_of(buffer)
    return any(
        isinstance(user, tile.CopyOp) and any(space_of(use.value) != space for use in uses_of(user)) for user in users
    )


def _sink(allocation: tile.AllocOp, ranges: Ranges, *, multi_buffer: bool) -> None:
    buffer = allocation.result
    while True:
        home = allocation.parent_block()
        users = [user for user in _users(buffer) if not isinstance(user, (tile.RegionOp, tile.ViewOp))]
        views = [user for user in _users(buffer) if isinstance(user, (tile.RegionOp, tile.ViewOp))]
        if home is None or not users:
            return
        loop = _loop_of_all([*users, *views], home)
        if loop is None or not _defines_first(loop.body.block, buffer, ranges):
            return
        depth = tile.stages_of(loop) if multi_buffer else 1
        head = loop.body.block.first_op
        assert head is not None
        home.detach_op(allocation)
        Rewriter().insert_op(allocation, InsertPoint.before(head))
        if space_of(buffer) == "gm":
            allocation.properties["slots"] = IntegerAttr(max(depth, WORKSPACE_SLOTS), i64)
            return
        if depth > 1 and space_of(buffer) in _ALTERNATING and _crosses_memories(users, buffer):
            allocation.properties["slots"] = IntegerAttr(depth, i64)
            return


@dataclass(frozen=True)
class SinkBuffers(ModulePass):
    """The pass; without ``multi_buffer`` every buffer keeps one slot."""

    name = "sink-buffers"
    multi_buffer: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for allocation in [inner for inner in op.walk() if isinstance(inner, tile.AllocOp)]:
            if allocation.address is None:
                _sink(allocation, ranges, multi_buffer=self.multi_buffer)
        for inner in op.walk():
            inner.attributes.pop(tile.NUM_STAGES, None)
