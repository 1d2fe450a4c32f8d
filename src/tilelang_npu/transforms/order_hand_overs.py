"""Put what a core sends in front of what the other core receives, where the author wrote them the other way round.

Cube and Vector run side by side, and a buffer between them is a channel: the k-th value received is the k-th sent. So a
kernel may read such a buffer above the statement that fills it. Where a loop body reads a buffer before anything in the
kernel has written it, the reading statements move behind the writing ones, and everything else keeps its order as far
as the data allow it. From here on the body can be read as a sequence.

Runs first of the passes that ask what a buffer holds. Only a buffer that one core fills and the other reads is a
channel; reading anything else too early stays the mistake that it is, and is reported by ``infer-scopes``.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.buffers import Use, root_of, space_of, uses_of
from tilelang_npu.transforms.locations import refuse

_CUBE = ("left", "right", "accumulator")


def _uses_below(op: Operation) -> list[Use]:
    return [use for inner in op.walk() for use in uses_of(inner)]


def _sides(uses: list[Use]) -> tuple[set[str], set[str]]:
    """The cores that write and that read a buffer, as far as its uses tell."""
    writers: set[str] = set()
    readers: set[str] = set()
    for use in uses:
        if use.role == "copy-target":
            if space_of(use.op.operands[0]) != "gm":
                writers.add("vector")
            continue
        if use.role == "copy-source":
            continue
        side = "cube" if use.role in _CUBE else "vector"
        if use.writes:
            writers.add(side)
        if use.reads and use.role != "accumulator":
            readers.add(side)
    return writers, readers


def _channels(module: ModuleOp) -> set[SSAValue]:
    """Buffers that one core fills and the other reads."""
    uses: dict[SSAValue, list[Use]] = {}
    for use in _uses_below(module):
        uses.setdefault(root_of(use.value), []).append(use)
    found: set[SSAValue] = set()
    for buffer, all_uses in uses.items():
        if isinstance(buffer.owner, tile.AllocOp):
            writers, readers = _sides(all_uses)
            if ("vector" in writers and readers == {"cube"}) or (writers == {"cube"} and "vector" in readers):
                found.add(buffer)
    return found


def _early(body: Block, channels: set[SSAValue]) -> set[SSAValue]:
    """Channels that a block reads before it writes them."""
    written: set[SSAValue] = set()
    early: set[SSAValue] = set()
    for op in body.ops:
        uses = _uses_below(op)
        early |= {root_of(use.value) for use in uses if use.reads and root_of(use.value) not in written}
        written |= {root_of(use.value) for use in uses if use.writes}
    return early & written & channels


def _written_outside(buffer: SSAValue, body: Block) -> bool:
    """Whether something outside the block writes the buffer."""
    owner = buffer.owner
    assert isinstance(owner, Operation)
    home = owner.parent_block()
    assert home is not None
    inside = {id(op) for op in body.walk()}
    return any(use.writes and root_of(use.value) is buffer and id(use.op) not in inside
               for op in home.ops for use in _uses_below(op))


def _order(body: Block, early: set[SSAValue]) -> None:
    """Sort the statements of a block: as they stand, but writers of early channels in front of the readers."""
    statements = list(body.ops)
    position = {op: index for index, op in enumerate(statements)}
    needs: list[set[int]] = [set() for _ in statements]
    touched: dict[SSAValue, list[tuple[int, bool, bool]]] = {}
    for index, op in enumerate(statements):
        for inner in op.walk():
            for operand in inner.operands:
                owner: object = operand.owner
                while isinstance(owner, Operation) and owner.parent_block() is not body:
                    owner = owner.parent_op()
                if isinstance(owner, Operation) and owner in position and position[owner] != index:
                    needs[index].add(position[owner])
        for use in _uses_below(op):
            touched.setdefault(root_of(use.value), []).append((index, use.reads, use.writes))
    for buffer, accesses in touched.items():
        for a, _, a_writes in accesses:
            for b, _, b_writes in accesses:
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
            stuck = next(i for i in range(len(statements)) if i not in done)
            names = ", ".join(sorted(b.owner.label.data for b in early if isinstance(b.owner, tile.AllocOp)))
            raise refuse(statements[stuck], f"Cube and Vector wait for each other here: {names} are read before they are "
                         "written, and each needs the other", "T204", help="write one of them before the loop")
        done.add(ready)
        order.append(ready)
    last = statements[-1]
    if isinstance(last, scf.YieldOp):
        order.remove(position[last])
        order.append(position[last])
    for op in statements:
        body.detach_op(op)
    body.add_ops([statements[index] for index in order])


@dataclass(frozen=True)
class OrderHandOvers(ModulePass):
    """The pass; see the module's text."""

    name = "order-hand-overs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        channels = _channels(op)
        if not channels:
            return
        for loop in [inner for inner in op.walk() if isinstance(inner, scf.ForOp)]:
            body = loop.body.block
            early = {buffer for buffer in _early(body, channels) if not _written_outside(buffer, body)}
            if early:
                _order(body, early)
