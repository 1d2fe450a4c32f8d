"""Which on-chip buffer an access is to: a number for each ``hivm.hir.pointer_cast``, or for several that are slots of one
buffer.

The planner has numbered the buffers that it has placed. In HIVM that is given nobody has; there each cast is a buffer. Casts
among which an ``arith.select`` chooses, or which a loop or a branch hands on in turn, are slots of one. """

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilelang_npu.simulator.codegen.strided import StridedView
from tilelang_npu.simulator.machine.events import Access, OpRecord

_Buffer = tuple[str, int]
"""The memory of a buffer, and its number there."""


class BufferNumbers:
    """The buffers of one function. Numbers that are given here are below 0; the planner's begin at 0."""

    def __init__(self) -> None:
        self._count = 0
        self._joined: dict[_Buffer, _Buffer] = {}

    def fresh(self) -> int:
        """A number for another buffer."""
        self._count += 1
        return -self._count

    def join(self, views: Iterable[StridedView]) -> None:
        """Make the buffers of views slots of one."""
        buffers = sorted({self._representative((view.base.memory, view.base.owner)) for view in views
                          if view.base.owner is not None})
        for buffer in buffers[:-1]:
            self._joined[buffer] = buffers[-1]

    def renumbered(self, record: OpRecord) -> OpRecord:
        """A record whose accesses have one number for all slots of a buffer."""
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
