"""Numbers the statements of a loop's body; the number of the statement is written into the location of each operation."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import LocationAttr, NameLoc
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import is_pure
from tilelang_npu.errors import Location


class StatementNumbers:
    """Numbers the statements of a loop's body while the body is traced.

    Args:
        block: the block of the loop's body.
        number: the number of the loop.

    Attributes:
        number: the number of the loop, which is part of the locations.
        places: the source position of each numbered statement.
    """

    def __init__(self, block: Block, number: int) -> None:
        self._block, self.number = block, number
        self._seen: Operation | None = None
        self.places: list[Location] = []

    def close(self, block: Block, place: Location) -> None:
        """Ends a statement of the source.

        All operations that were added to the body since the previous call belong to the statement. A statement that only
        computes scalars or allocates buffers gets no number.

        Args:
            block: the current block; the call has no effect if this is not the loop's body.
            place: the source position of the statement.
        """
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
    """Whether an operation, or one in it, is more than a scalar or an allocation."""
    if op.regions:
        return any(_does_something(inner) for region in op.regions for block in region.blocks for inner in block.ops)
    return not (is_pure(op) or isinstance(op, (tile.AllocOp, memref.LoadOp)) or op.has_trait(IsTerminator))


__all__ = ["StatementNumbers"]
