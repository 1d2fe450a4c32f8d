"""Numbers of the on-chip buffers: one for each ``hivm.hir.pointer_cast``, or for several that are slots of one buffer.

The planner numbers the buffers that it places. In HIVM from other tools each cast is a buffer; casts between which an
``arith.select`` chooses, or which a loop or a branch passes on alternately, are slots of one buffer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilelang_npu.simulator.codegen.strided import StridedView
from tilelang_npu.simulator.machine.events import Access, OpRecord

_Buffer = tuple[str, int]
"""The memory of a buffer, and the buffer's number in it."""


class BufferNumbers:
    """The buffers of one function. Numbers that are assigned here are negative; the planner's begin at 0."""

    def __init__(self) -> None:
        self._count = 0
        self._joined: dict[_Buffer, _Buffer] = {}

    def fresh(self) -> int:
        """Returns a new buffer number."""
        self._count += 1
        return -self._count

    def join(self, views: Iterable[StridedView]) -> None:
        """Makes the buffers of views slots of one buffer."""
        buffers = sorted({self._representative((view.base.memory, view.base.owner)) for view in views
                          if view.base.owner is not None})
        for buffer in buffers[:-1]:
            self._joined[buffer] = buffers[-1]

    def renumbered(self, record: OpRecord) -> OpRecord:
        """Returns a record whose accesses have one number for all slots of a buffer."""
        accesses = tuple(map(self._renumbered, record.accesses)) if self._joined else record.accesses
        return record if accesses == record.accesses else replace(record, accesses=accesses)

    def _renumbered(self, access: Access) -> Access:
        if access.owner is None:
            return access
        return replace(access, owner=self._representative((access.memory, access.owner))[1])

    def _representative(self, buffer: _Buffer) -> _Buffer:
        while buffer in self._joined:
            buffer = self._joined[buffer]
        return buffer


__all__ = ["BufferNumbers"]
