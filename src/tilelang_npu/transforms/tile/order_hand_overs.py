"""Reorders statements so that a value is written by one core before the other core reads it.

A kernel may read a channel (``analysis.channels``) above the statement that writes it, because the two cores run at the same
time. In a block that reads a channel before any statement has written it, the readers move after the writers. The statements of
each core keep their order. After this pass, the statements of a block can be executed one after the other.

The pass runs before all passes that analyse the values of buffers. A read of another buffer before its first write stays where
it is, and ``infer-scopes`` or the simulator reports it as a mistake of the author.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from tilelang_npu.analysis.accesses import accesses_within
from tilelang_npu.analysis.buffers import root_of
from tilelang_npu.analysis.channels import Channels, is_at_fixed_place, is_scratch
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text.names import author_name


def _sort(statements: list[Operation], early: set[SSAValue], channels: Channels) -> tuple[list[int], bool]:
    """Returns the order of the statements: that of the source, except that writers of the ``early`` channels precede the
    readers; and whether there is such an order.

    Where there is none, the last number of the list is the first statement that depends on itself.
    """
    body = statements[0].parent_block()
    position = {op: index for index, op in enumerate(statements)}
    dependences: list[set[int]] = [set() for _ in statements]
    cores = [channels.cores_of(op) for op in statements]
    accesses_by_buffer: dict[SSAValue, list[tuple[int, bool]]] = {}
    for index, op in enumerate(statements):
        for inner in op.walk():
            for operand in inner.operands:
                owner: object = operand.owner
                while isinstance(owner, Operation) and owner.parent_block() is not body:
                    owner = owner.parent_op()
                if isinstance(owner, Operation) and owner in position and position[owner] != index:
                    dependences[index].add(position[owner])
        for use in accesses_within(op):
            accesses_by_buffer.setdefault(root_of(use.value), []).append((index, use.writes))
        dependences[index].update(before for before in range(index) if cores[before] & cores[index])
        if op.has_trait(IsTerminator):
            dependences[index].update(range(index))
    for buffer, accesses in accesses_by_buffer.items():
        for a, a_writes in accesses:
            for b, b_writes in accesses:
                if a != b and (a_writes or b_writes):
                    first, second = (a, b) if a < b else (b, a)
                    if buffer in early and a_writes != b_writes:
                        first, second = (a, b) if a_writes else (b, a)
                    dependences[second].add(first)
    done: set[int] = set()
    order: list[int] = []
    while len(order) < len(statements):
        ready = next((i for i in range(len(statements)) if i not in done and dependences[i] <= done), None)
        if ready is None:
            return [*order, next(i for i in range(len(statements)) if i not in done)], False
        done.add(ready)
        order.append(ready)
    return order, True


def _reorder_block(body: Block, certain: set[SSAValue], likely: set[SSAValue], channels: Channels) -> None:
    """Sorts a block for the channels that are certain, and for as many of the likely ones as have an order."""
    statements = list(body.ops)
    order, is_sorted = _sort(statements, certain, channels)
    if not is_sorted:
        names = sorted(_buffer_label(buffer) for buffer in certain)
        raise refuse(statements[order[-1]], f"Cube and Vector wait for each other here: "
                     f"{', '.join(names)} is read above the statement that writes it, and each core depends on the other",
                     "T204",
                     help="write one of them before this statement, or exchange them in loops over the same range")
    early = certain
    for root in sorted(likely, key=_buffer_label):
        other, possible = _sort(statements, early | {root}, channels)
        if possible:  # otherwise its new value depends on the old one: a state that iterations pass on
            early, order = early | {root}, other
    for op in statements:
        body.detach_op(op)
    body.add_ops([statements[index] for index in order])


def _buffer_label(buffer: SSAValue) -> str:
    return buffer.owner.label.data if isinstance(buffer.owner, tile.AllocOp) else author_name(buffer, "a tensor")


@dataclass(frozen=True)
class OrderHandOvers(ModulePass):
    """Reorders statements so that a value is written by one core before the other core reads it.

    Attributes:
        cross_synchronise: whether to order accesses to tensors in GM too; false if the author sets the flags between the cores.
    """

    name = "order-hand-overs"
    cross_synchronise: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            channels = Channels(function, tensors=self.cross_synchronise)
            if channels.found:
                self._reorder_blocks(function, channels)

    def _reorder_blocks(self, function: func.FuncOp, channels: Channels) -> None:
        for inner in list(function.walk()):
            if isinstance(inner, (scf.ForOp, tile.LaunchOp)):
                body = inner.body.block
                early = {root for root in channels.read_before_written(body) if not channels.is_written_outside(root, inner)}
                certain = {root for root in early if is_scratch(root)}
                likely: set[SSAValue] = set()
                if isinstance(inner, scf.ForOp):
                    certain |= {root for root in early if isinstance(root.owner, tile.AllocOp)}
                    likely = {root for root in early - certain if is_at_fixed_place(root, inner)}
                if certain or likely:
                    _reorder_block(body, certain, likely, channels)
