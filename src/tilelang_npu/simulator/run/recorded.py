"""What a launch records: per block and core the events and the places in GM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tilelang_npu.sharing import Kept, once, state_of
from tilelang_npu.simulator.machine.events import Event, Stream
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.run.arguments import Bound
from tilelang_npu.simulator.run.replay import Replay

if TYPE_CHECKING:
    from tilelang_npu.simulator.run.program import Program


@dataclass(frozen=True)
class BlockRun:
    """What one block recorded: per core the event stream (equal streams are one object) and the GM offsets."""

    block: int
    streams: tuple[Stream, ...]
    gm: tuple[Sequence[int], ...]


class Alike:
    """What follows from what launches recorded, whatever their arrays hold: kept here by whoever needs it first.

    Args:
        apart: whether it is known that no block touches what another one writes.

    Attributes:
        made: what is known of single streams, by what it is, the function's number and the stream's identity.
    """

    def __init__(self, *, apart: bool = False) -> None:
        self.apart = apart
        self.made: Kept[tuple[str, int, int], Any] = Kept()

    def __reduce__(self) -> tuple[type[Alike], tuple[()]]:
        return Alike, ()


@dataclass(frozen=True)
class Recorded:
    """A finished launch as recorded, before timing."""

    program: Program
    bound: Bound
    blocks: tuple[BlockRun, ...]
    workspace_bytes: int
    count: int
    """Blocks of the launch; a trace of many may hold but some of them."""
    traced: bool = False
    """Whether nothing was computed."""
    alike: Alike = field(default_factory=Alike, compare=False, repr=False)
    """What it has in common with launches that recorded the same of arrays of the same sizes."""

    def __getstate__(self) -> dict[str, object]:
        return state_of(self)

    @property
    def is_complete(self) -> bool:
        """Whether it is known what the launch accesses: all blocks are there, and no data could have decided otherwise."""
        return not self.traced or (len(self.blocks) == self.count and self.program.data_free)

    @once
    def replay(self) -> Replay:
        """Further runs of single blocks."""
        return Replay(self)


class Again(NamedTuple):
    """What a further run of blocks left: the arrays, and per core its events and GM offsets."""

    arrays: tuple[Array | None, ...]
    recorded: list[tuple[list[Event], list[int]]]
