"""The statements of a loop's body as its author counts them: each op says in its location which one it is of."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import LocationAttr, NameLoc
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import is_pure
from tilelang_npu.errors import Location


class Counted:
    """Counts while a body is walked.

    Attributes:
        number: of the loop, in the locations.
        places: where each statement stands.
    """

    def __init__(self, block: Block, number: int) -> None:
        self._block, self.number = block, number
        self._seen: Operation | None = None
        self.places: list[Location] = []

    def close(self, block: Block, place: Location) -> None:
        """Behind each statement of the source: what the body has got of it, and of none within, is one."""
        if block is not self._block:
            return
        first = self._block.first_op if self._seen is None else self._seen.next_op
        new: list[Operation] = []
        while first is not None:
            new.append(first)
            first = first.next_op
        self._seen = new[-1] if new else self._seen
        if any(_does_something(op) for op in new):
            for op in [inner for each in new for inner in each.walk()]:
                assert isinstance(op.location, LocationAttr)
                op.location = NameLoc(tile.statement_name(self.number, len(self.places)), op.location)
            self.places.append(place)


def _does_something(op: Operation) -> bool:
    """Whether an op, or one in it, is more than a scalar or an allocation."""
    if op.regions:
        return any(_does_something(inner) for region in op.regions for block in region.blocks for inner in block.ops)
    return not (is_pure(op) or isinstance(op, (tile.AllocOp, memref.LoadOp)) or op.has_trait(IsTerminator))


__all__ = ["Counted"]
