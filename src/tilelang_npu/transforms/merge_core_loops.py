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
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.buffers import Use, root_of
from tilelang_npu.transforms.channels import Channels, is_scratch, uses_below
from tilelang_npu.transforms.locations import line_of, refuse
from tilelang_npu.transforms.ranges import Ranges

_PURE = (arith.ConstantOp, arith.SignlessIntegerBinaryOperation, arith.IndexCastOp, arith.SelectOp, arith.CmpiOp)


def _same(a: SSAValue, b: SSAValue, ranges: Ranges) -> bool:
    """Whether two bounds are surely the same number."""
    if a is b or (ranges.constant(a) is not None and ranges.constant(a) == ranges.constant(b)):
        return True
    one, other = a.owner, b.owner
    if not (isinstance(one, Operation) and isinstance(other, Operation)) or type(one) is not type(other):
        return False
    return (isinstance(one, _PURE) and one.attributes == other.attributes and one.properties == other.properties
            and all(_same(x, y, ranges) for x, y in zip(one.operands, other.operands, strict=True)))


def _partner(loop: scf.ForOp, channels: Channels, ranges: Ranges) -> scf.ForOp | None:
    """The loop further down, on the other core, that cannot wait until ``loop`` is done."""
    block = loop.parent_block()
    assert block is not None
    statements = list(block.ops)
    at = statements.index(loop)
    earlier = {root_of(use.value) for op in statements[:at] for use in uses_below(op) if use.writes}
    uses = uses_below(loop)
    writes = {root_of(use.value) for use in uses if use.writes}
    reads = {root_of(use.value) for use in uses if use.reads}
    wanted = (reads & channels.found) - earlier - writes
    in_place = {root for root in (writes - reads) & channels.found if is_scratch(root) and _stays(root, uses, loop)}
    for other in statements[at + 1:]:
        if isinstance(other, scf.ForOp) and not channels.cores(other) & channels.cores(loop):
            others = uses_below(other)
            fills = any(use.writes and root_of(use.value) in wanted for use in others)
            takes = any(use.reads and root_of(use.value) in in_place and _stays(root_of(use.value), others, other)
                        for use in others) and _same_range(loop, other, ranges)
            if fills or takes:
                return other
    return None


def _stays(root: SSAValue, uses: list[Use], loop: scf.ForOp) -> bool:
    """Whether every iteration of a loop touches the same elements of a tensor."""
    return not any(root_of(use.value) is root and _varies(use.value, loop) for use in uses)


def _varies(value: SSAValue, loop: scf.ForOp) -> bool:
    owner = value.owner
    if not isinstance(owner, Operation):
        return any(owner is block for inner in loop.walk() for region in inner.regions for block in region.blocks)
    if not loop.is_ancestor(owner):
        return False
    return not isinstance(owner, (*_PURE, tile.RegionOp, tile.ViewOp)) or any(_varies(each, loop) for each in owner.operands)


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
    if tile.stages_of(first) != tile.stages_of(second):
        raise refuse(first, f"this loop has {tile.stages_of(first)} stages and {other}, with which it passes values back and "
                     f"forth, {tile.stages_of(second)}", "T205", help="give both the same num_stages")
    shared = _conflict(first, second) - channels.found
    if shared:
        names = ", ".join(sorted(root.name_hint or "a buffer" for root in shared))
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
        tensors: what passes through scratch tensors counts too; off where the user sets the flags around them.
    """

    name = "merge-core-loops"
    tensors: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        channels = Channels(op, tensors=self.tensors)
        if channels.found:
            for block in [block for region in op.regions for block in region.blocks]:
                _below(block, channels, Ranges())
