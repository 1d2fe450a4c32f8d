"""Merges a loop of the Cube core and a loop of the Vector cores that pass values to each other into one loop.

Some authors write one loop for each core, over the same range, and pass values between the loops through channels
(``analysis.channels``): the k-th iteration of one loop reads what the k-th iteration of the other writes. If the loops were
executed one after the other, the first would read values that the second has not written yet, or would overwrite each value
before it is read. So the loops are merged: the new body is the body of the first loop followed by the body of the second.
``order-hand-overs`` then puts writes before reads.

Only loops that cannot be executed one after the other are merged. Statements between the two loops stay before the merged loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilelang_npu.analysis.accesses import accesses_within, conflicting_buffers
from tilelang_npu.analysis.buffers import root_of, space_of
from tilelang_npu.analysis.channels import Channels, is_at_fixed_place, is_scratch
from tilelang_npu.analysis.locations import line_of, refuse
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import is_pure
from tilelang_npu.dialects.text.names import author_name


def _is_same_bound(a: SSAValue, b: SSAValue, ranges: Ranges) -> bool:
    """Whether two loop bounds surely have the same value."""
    if a is b or (ranges.constant(a) is not None and ranges.constant(a) == ranges.constant(b)):
        return True
    one, other = a.owner, b.owner
    if not (isinstance(one, Operation) and isinstance(other, Operation)) or one.name != other.name:
        return False
    return (is_pure(one) and one.attributes == other.attributes and one.properties == other.properties
            and all(_is_same_bound(x, y, ranges) for x, y in zip(one.operands, other.operands, strict=True)))


def _find_partner(loop: scf.ForOp, channels: Channels, ranges: Ranges) -> scf.ForOp | None:
    """Returns the later loop of the other core that cannot wait until ``loop`` is done; None where there is none."""
    block = loop.parent_block()
    assert block is not None
    statements = list(block.ops)
    reads, writes = _channels_of(loop, channels)
    for other in statements[statements.index(loop) + 1:]:
        if isinstance(other, scf.ForOp) and not channels.cores_of(other) & channels.cores_of(loop):
            read, written = _channels_of(other, channels)
            back = {root for root in reads & written - writes if not channels.is_written_outside(root, loop, other)}
            onward = {root for root in writes & read - reads if space_of(root) == "gm"}
            in_place = {root for root in back | onward if is_at_fixed_place(root, loop) and is_at_fixed_place(root, other)}
            scratch_back = {root for root in back if space_of(root) != "gm" or is_scratch(root)}
            if scratch_back or (in_place and _has_same_range(loop, other, ranges)):
                return other
    return None


def _channels_of(loop: scf.ForOp, channels: Channels) -> tuple[set[SSAValue], set[SSAValue]]:
    """Returns the channels that a loop reads, and those that it writes."""
    uses = accesses_within(loop)
    return ({root_of(use.value) for use in uses if use.reads} & channels.found,
            {root_of(use.value) for use in uses if use.writes} & channels.found)


def _has_same_range(a: scf.ForOp, b: scf.ForOp, ranges: Ranges) -> bool:
    return all(_is_same_bound(getattr(a, side), getattr(b, side), ranges) for side in ("lb", "ub", "step"))


def _refuse_if_unmergeable(first: scf.ForOp, second: scf.ForOp, ops_between: list[Operation], channels: Channels,
                           ranges: Ranges) -> None:
    """Checks that two loops can be merged.

    Raises:
        TileError: T205, they cannot.
    """
    other = f"the loop at {line_of(second)}"
    if not _has_same_range(first, second, ranges):
        raise refuse(first, f"this loop and {other} pass values to each other, and do not surely run over the same range",
                     "T205", help="give both the same bounds: an iteration of one works with the same iteration of the other")
    for loop in (first, second):
        if tile.SCHEDULE in loop.attributes:
            partner = other if loop is first else f"the loop at {line_of(first)}"
            raise refuse(loop, f"this loop has an order or a stage for its statements, but it and {partner} pass values to "
                         "each other and are merged into one loop", "T205",
                         help="write both cores' work into one loop, and give the order and stage of its statements")
    if tile.stages_of(first) != tile.stages_of(second):
        raise refuse(first, f"this loop has {tile.stages_of(first)} stages and {other} has {tile.stages_of(second)}, and the "
                     "two pass values to each other", "T205", help="give both loops the same num_stages")
    channels_merged = {root for root in channels.found if space_of(root) != "gm" or is_scratch(root)
                       or (is_at_fixed_place(root, first) and is_at_fixed_place(root, second))}
    shared = conflicting_buffers(first, second) - channels_merged
    if shared:
        names = ", ".join(sorted(author_name(root, "a buffer") for root in shared))
        raise refuse(first, f"this loop and {other} pass values to each other, and also share {names}", "T205",
                     help="give each core its own buffer, or write both cores' work into one loop")
    for op in ops_between:
        if conflicting_buffers(first, op) or channels.cores_of(op) & channels.cores_of(first):
            raise refuse(op, f"this statement is between the loop at {line_of(first)} and {other}, which run at the same time, "
                         "and depends on the first", "T205", help="put the statement after both loops")


def _merge_loops(first: scf.ForOp, second: scf.ForOp, channels: Channels, ranges: Ranges) -> None:
    block = first.parent_block()
    assert block is not None
    statements = list(block.ops)
    _refuse_if_unmergeable(first, second, statements[statements.index(first) + 1:statements.index(second)], channels, ranges)
    body, rest = first.body.block, second.body.block
    body.args[0].replace_all_uses_with(rest.args[0])
    moved = [op for op in body.ops if not isinstance(op, scf.YieldOp)]
    for op in moved:
        body.detach_op(op)
    head = rest.first_op
    assert head is not None
    rest.insert_ops_before(moved, head)
    block.erase_op(first)


def _merge_in_block(block: Block, channels: Channels, ranges: Ranges) -> None:
    for op in list(block.ops):
        if op.parent_block() is block and isinstance(op, scf.ForOp) and not op.iter_args:
            partner = _find_partner(op, channels, ranges)
            if partner is not None and not partner.iter_args:
                _merge_loops(op, partner, channels, ranges)
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                _merge_in_block(inner, channels, ranges)


@dataclass(frozen=True)
class MergeCoreLoops(ModulePass):
    """Merges a loop of the Cube core and a loop of the Vector cores that pass values to each other into one loop.

    Attributes:
        cross_synchronise: whether tensors in GM can be channels too; false if the author sets the flags between the cores.
    """

    name = "merge-core-loops"
    cross_synchronise: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            channels = Channels(function, tensors=self.cross_synchronise)
            for block in function.body.blocks if channels.found else ():
                _merge_in_block(block, channels, Ranges())
