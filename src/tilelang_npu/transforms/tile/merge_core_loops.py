"""Make one loop of a Cube loop and a Vector loop that feed each other.

Authors who write what each core does in one piece give each core its own loop over the same range, and pass values
through channels (see ``channels``): the k-th iteration of one works with the k-th of the other. Read as a sequence, the
first loop would read what the second has not written yet, or write every value over the one before it. So the loops become
one, with the bodies one behind the other; ``order-hand-overs`` then puts the statements where the values flow forwards.

Only loops that cannot be read as a sequence are merged. What stands between them moves in front of both.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import is_pure
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.locations import line_of, refuse
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.channels import Channels, is_scratch, stays, uses_below


def _same(a: SSAValue, b: SSAValue, ranges: Ranges) -> bool:
    """Whether two bounds are surely the same number."""
    if a is b or (ranges.constant(a) is not None and ranges.constant(a) == ranges.constant(b)):
        return True
    one, other = a.owner, b.owner
    if not (isinstance(one, Operation) and isinstance(other, Operation)) or one.name != other.name:
        return False
    return (is_pure(one) and one.attributes == other.attributes and one.properties == other.properties
            and all(_same(x, y, ranges) for x, y in zip(one.operands, other.operands, strict=True)))


def _partner(loop: scf.ForOp, channels: Channels, ranges: Ranges) -> scf.ForOp | None:
    """The loop further down, on the other core, that cannot wait until ``loop`` is done."""
    block = loop.parent_block()
    assert block is not None
    statements = list(block.ops)
    reads, writes = _roots(loop, channels)
    for other in statements[statements.index(loop) + 1:]:
        if isinstance(other, scf.ForOp) and not channels.cores(other) & channels.cores(loop):
            read, written = _roots(other, channels)
            back = {root for root in reads & written - writes if not channels.written_outside(root, loop, other)}
            onward = {root for root in writes & read - reads if space_of(root) == "gm"}
            in_place = {root for root in back | onward if stays(root, loop) and stays(root, other)}
            certain = {root for root in back if space_of(root) != "gm" or is_scratch(root)}
            if certain or (in_place and _same_range(loop, other, ranges)):
                return other
    return None


def _roots(loop: scf.ForOp, channels: Channels) -> tuple[set[SSAValue], set[SSAValue]]:
    """The channels that a loop reads, and those that it writes."""
    uses = uses_below(loop)
    return ({root_of(use.value) for use in uses if use.reads} & channels.found,
            {root_of(use.value) for use in uses if use.writes} & channels.found)


def _same_range(a: scf.ForOp, b: scf.ForOp, ranges: Ranges) -> bool:
    return all(_same(getattr(a, side), getattr(b, side), ranges) for side in ("lb", "ub", "step"))


def _conflict(a: Operation, b: Operation) -> set[SSAValue]:
    """Buffers that both touch and one of them writes."""
    of_a, of_b = uses_below(a), uses_below(b)
    writes = {root_of(use.value) for use in (*of_a, *of_b) if use.writes}
    return {root_of(use.value) for use in of_a} & {root_of(use.value) for use in of_b} & writes


def _check(first: scf.ForOp, second: scf.ForOp, between: list[Operation], channels: Channels,
           ranges: Ranges) -> None:
    """Refuse what cannot be merged."""
    other = f"the loop at {line_of(second)}"
    if not _same_range(first, second, ranges):
        raise refuse(first, f"this loop and {other} pass values to each other, and do not surely run over the same range",
                     "T205", help="give both the same bounds: an iteration of one works with the same iteration of the other")
    for loop in (first, second):
        if tile.SCHEDULE in loop.attributes:
            partner = other if loop is first else f"the loop at {line_of(first)}"
            raise refuse(loop, f"this loop has an order or a stage for its statements, and it and {partner} pass values to "
                         "each other, so that they become one", "T205",
                         help="write both cores' work into one loop, and count its statements")
    if tile.stages_of(first) != tile.stages_of(second):
        raise refuse(first, f"this loop has {tile.stages_of(first)} stages and {other}, with which it passes values back and "
                     f"forth, {tile.stages_of(second)}", "T205", help="give both the same num_stages")
    shared = _conflict(first, second) - {root for root in channels.found if space_of(root) != "gm" or is_scratch(root) or (
        stays(root, first) and stays(root, second))}
    if shared:
        names = ", ".join(sorted(author_name(root, "a buffer") for root in shared))
        raise refuse(first, f"this loop and {other} pass values to each other, and also share {names}", "T205",
                     help="give each core its own, or write both cores' work into one loop")
    for op in between:
        if _conflict(first, op) or channels.cores(op) & channels.cores(first):
            raise refuse(op, f"this stands between the loop at {line_of(first)} and {other}, which run side by side, and needs "
                         "the first to be done", "T205", help="put it behind both loops")


def _merge(first: scf.ForOp, second: scf.ForOp, channels: Channels, ranges: Ranges) -> None:
    block = first.parent_block()
    assert block is not None
    statements = list(block.ops)
    _check(first, second, statements[statements.index(first) + 1:statements.index(second)], channels, ranges)
    body, rest = first.body.block, second.body.block
    body.args[0].replace_all_uses_with(rest.args[0])
    moved = [op for op in body.ops if not isinstance(op, scf.YieldOp)]
    for op in moved:
        body.detach_op(op)
    head = rest.first_op
    assert head is not None
    rest.insert_ops_before(moved, head)
    block.erase_op(first)


def _below(block: Block, channels: Channels, ranges: Ranges) -> None:
    for op in list(block.ops):
        if op.parent_block() is block and isinstance(op, scf.ForOp) and not op.iter_args:
            partner = _partner(op, channels, ranges)
            if partner is not None and not partner.iter_args:
                _merge(op, partner, channels, ranges)
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                _below(inner, channels, ranges)


@dataclass(frozen=True)
class MergeCoreLoops(ModulePass):
    """The pass.

    Attributes:
        tensors: what passes through tensors counts too; off where the user sets the flags around them.
    """

    name = "merge-core-loops"
    tensors: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            channels = Channels(function, tensors=self.tensors)
            for block in function.body.blocks if channels.found else ():
                _below(block, channels, Ranges())
