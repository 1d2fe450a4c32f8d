"""Put what a core sends in front of what the other core receives, where the author wrote them the other way round.

A kernel may read a channel (see ``channels``) above the statement that fills it. Where a block reads one before anything
has written it, the reading statements move behind the writing ones; each core's own statements keep their order. From
here on the body can be read as a sequence.

Runs first of the passes that ask what a buffer holds. Reading anything but a channel too early stays the mistake that it
is, and is reported by ``infer-scopes`` or by the machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.transforms.ir.buffers import root_of
from tilelang_npu.transforms.ir.locations import refuse
from tilelang_npu.transforms.tile.channels import Channels, is_scratch, stays, uses_below


def _order(statements: list[Operation], early: set[SSAValue], channels: Channels) -> tuple[list[int], bool]:
    """The statements' order: as they stand, but writers of early channels in front of the readers; and whether there is
    one. Where there is none, the last of the list is the first that waits for itself.
    """
    body = statements[0].parent_block()
    position = {op: index for index, op in enumerate(statements)}
    needs: list[set[int]] = [set() for _ in statements]
    cores = [channels.cores(op) for op in statements]
    touched: dict[SSAValue, list[tuple[int, bool]]] = {}
    for index, op in enumerate(statements):
        for inner in op.walk():
            for operand in inner.operands:
                owner: object = operand.owner
                while isinstance(owner, Operation) and owner.parent_block() is not body:
                    owner = owner.parent_op()
                if isinstance(owner, Operation) and owner in position and position[owner] != index:
                    needs[index].add(position[owner])
        for use in uses_below(op):
            touched.setdefault(root_of(use.value), []).append((index, use.writes))
        needs[index].update(before for before in range(index) if cores[before] & cores[index])
        if op.has_trait(IsTerminator):
            needs[index].update(range(index))
    for buffer, accesses in touched.items():
        for a, a_writes in accesses:
            for b, b_writes in accesses:
                if a != b and (a_writes or b_writes):
                    first, second = (a, b) if a < b else (b, a)
                    if buffer in early and a_writes != b_writes:
                        first, second = (a, b) if a_writes else (b, a)
                    needs[second].add(first)
    done: set[int] = set()
    order: list[int] = []
    while len(order) < len(statements):
        ready = next((i for i in range(len(statements)) if i not in done and needs[i] <= done), None)
        if ready is None:
            return [*order, next(i for i in range(len(statements)) if i not in done)], False
        done.add(ready)
        order.append(ready)
    return order, True


def _reorder(body: Block, certain: set[SSAValue], likely: set[SSAValue], channels: Channels) -> None:
    """Sort a block for the channels that are certain, and for as many of the likely ones as can be."""
    statements = list(body.ops)
    order, found = _order(statements, certain, channels)
    if not found:
        names = sorted(_name(buffer) for buffer in certain)
        raise refuse(statements[order[-1]], f"Cube and Vector wait for each other here: what is read of "
                     f"{', '.join(names)} is written further down, and each core needs the other", "T204",
                     help="write one of them before this, or put what the cores exchange into loops over the same range")
    early = certain
    for root in sorted(likely, key=_name):
        other, possible = _order(statements, early | {root}, channels)
        if possible:  # else its new value needs the old one: a state that goes from iteration to iteration
            early, order = early | {root}, other
    for op in statements:
        body.detach_op(op)
    body.add_ops([statements[index] for index in order])


def _name(buffer: SSAValue) -> str:
    return buffer.owner.label.data if isinstance(buffer.owner, tile.AllocOp) else author_name(buffer, "a tensor")


@dataclass(frozen=True)
class OrderHandOvers(ModulePass):
    """The pass.

    Attributes:
        tensors: order what passes through tensors too; off where the user sets the flags around them.
    """

    name = "order-hand-overs"
    tensors: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            channels = Channels(function, tensors=self.tensors)
            if channels.found:
                self._ordered(function, channels)

    def _ordered(self, function: func.FuncOp, channels: Channels) -> None:
        for inner in list(function.walk()):
            if isinstance(inner, (scf.ForOp, tile.LaunchOp)):
                body = inner.body.block
                early = {root for root in channels.early(body) if not channels.written_outside(root, inner)}
                certain = {root for root in early if is_scratch(root)}
                likely: set[SSAValue] = set()
                if isinstance(inner, scf.ForOp):
                    certain |= {root for root in early if isinstance(root.owner, tile.AllocOp)}
                    likely = {root for root in early - certain if stays(root, inner)}
                if certain or likely:
                    _reorder(body, certain, likely, channels)
