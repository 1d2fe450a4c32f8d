"""Leave out what is written to a buffer and overwritten before anything reads it: ``T.clear`` in front of a load, for one.

An operation goes if the next one in its block that touches its buffer writes all of it and reads none: nothing can see what
it wrote. Its own reads have no effect, so that no diagnostic is lost. Only buffers that the compiler manages (see ``managed``),
not where the author has put work on a core or synchronises, and no accumulator: its clears are ``fold-accumulator-clear``'s. A
buffer that nothing reads at all keeps what is written to it: a load may be all that an author wants to see.

Runs while memories are open.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import EffectsOp
from tilelang_npu.dialects.ir.remarks import record_done
from tilelang_npu.dialects.text import location_of
from tilelang_npu.transforms.ir.buffers import root_of
from tilelang_npu.transforms.ir.locations import line_of
from tilelang_npu.transforms.tile.managed import is_managed, is_on_a_core, overwrites, touches


def _overwriting(op: Operation, buffer: SSAValue) -> Operation | None:
    """The operation that overwrites what this one has written, where nothing sees it before."""
    following = op.next_op
    while following is not None and not following.name.startswith("hivm."):
        if touches(following, buffer) and not isinstance(following, (tile.RegionOp, tile.ViewOp)):
            dead = overwrites(following, buffer) and not isinstance(following, tile.GemmOp)
            return following if dead else None
        following = following.next_op
    return None


def _written(op: Operation) -> SSAValue | None:
    """The one buffer that an operation writes, of which it reads nothing that it leaves as it is."""
    if not isinstance(op, EffectsOp) or op.has_side_effects():
        return None
    found = [root_of(use.value) for use in op.effects() if use.writes and use.role != "accumulator"]
    return found[0] if len(found) == 1 and is_managed(found[0]) else None


@dataclass(frozen=True)
class DropDeadStores(ModulePass):
    """The pass; ``drop`` is whether it does anything."""

    name = "drop-dead-stores"
    drop: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for store in reversed(list(op.walk())) if self.drop else ():
            buffer = _written(store)
            if buffer is None or is_on_a_core(store):
                continue
            following = _overwriting(store, buffer)
            if following is not None:
                assert isinstance(buffer.owner, tile.AllocOp)
                label = buffer.owner.label.data
                record_done(op, self.name, location_of(store),
                            f"what is written to {label} is overwritten at {line_of(following)}, and left out")
                Rewriter.erase_op(store)


__all__ = ["DropDeadStores"]
