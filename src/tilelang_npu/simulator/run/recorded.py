"""What a launch records: per block and core the events and the places in GM."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.sharing import Kept, once, state_of
from tilelang_npu.simulator.machine.events import Event, Stream
from tilelang_npu.simulator.machine.many import Many, ManyBlocks, Numbers, Terms
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


class SharedPlaces:
    """The places in GM of one core of blocks that recorded the same events.

    Args:
        places: integers, or those of many blocks.
        blocks: what these are sums of.

    Attributes:
        constants: of each place the part that all blocks have in common.
        kind: of each place the number of the part that each block has for itself.
        apart: by block and kind that part.
    """

    def __init__(self, places: Sequence[int | Many], blocks: ManyBlocks) -> None:
        kinds: dict[Terms, int] = {}
        none: Terms = ()
        self.constants: Numbers = np.array([place if isinstance(place, int) else place.constant for place in places], np.int64)
        self.kind: NDArray[np.intp] = np.array(
            [kinds.setdefault(none if isinstance(place, int) else place.terms, len(kinds)) for place in places], np.intp)
        self.apart: Numbers = np.array([blocks.sum(terms) for terms in kinds], np.int64).reshape(len(kinds), -1).T.copy()

    @property
    def kinds(self) -> int:
        """How many different parts a block has for itself."""
        return int(self.apart.shape[1])

    def some(self, places: NDArray[np.intp], blocks: NDArray[np.intp]) -> Numbers:
        """Some of the places of some blocks, both by position."""
        return self.apart[np.ix_(blocks, self.kind[places])] + self.constants[places]

    def of(self, block: int) -> Numbers:
        """The places of a block, by its position among the blocks."""
        return self.constants + self.apart[block][self.kind] if len(self.kind) else self.constants


@dataclass(frozen=True, eq=False)
class PlacesOfBlock(Sequence[int]):
    """The places in GM of one core of one of such blocks.

    Attributes:
        places: those of all.
        block: the block's position among them.
    """

    places: SharedPlaces
    block: int

    def __len__(self) -> int:
        return len(self.places.constants)

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...

    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if isinstance(index, slice):
            found: list[int] = self.places.of(self.block)[index].tolist()
            return found
        return int(self.places.constants[index] + self.places.apart[self.block, self.places.kind[index]])

    def __iter__(self) -> Iterator[int]:
        return iter(self.places.of(self.block).tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.places.of(self.block).astype(dtype or np.int64)

    def __reduce__(self) -> tuple[object, ...]:
        return array, ("q", list(self))


def places_in_common(run: BlockRun) -> tuple[int, ...]:
    """What is equal for blocks whose places in GM are sums of the same parts."""
    return tuple(id(offsets.places) for offsets in run.gm if isinstance(offsets, PlacesOfBlock))


def columns(runs: Sequence[BlockRun], lane: int, picked: NDArray[np.intp], owners: NDArray[np.intp] | None = None,
            ) -> tuple[NDArray[np.intp], Numbers]:
    """By block some places in GM of a lane, of blocks with equal streams: where the places are sums, of those of one owner that
    are equally far apart in all blocks the first.

    Args:
        runs: the blocks.
        lane: the lane.
        picked: the places, by position.
        owners: whose each of them is; one's, if not told.

    Returns:
        which of ``picked`` the columns are, by their positions among them, and the places.
    """
    first = runs[0].gm[lane]
    if not isinstance(first, PlacesOfBlock):
        return np.arange(len(picked)), np.array([run.gm[lane] for run in runs], np.int64).reshape(len(runs), -1)[:, picked]
    kinds = first.places.kind[picked]
    _, chosen = np.unique(kinds if owners is None else owners * max(1, first.places.kinds) + kinds, return_index=True)
    chosen.sort()
    return chosen, first.places.some(picked[chosen], positions(runs, lane))


def positions(runs: Sequence[BlockRun], lane: int) -> NDArray[np.intp]:
    """The positions of blocks among those that have such places."""
    given = (run.gm[lane] for run in runs)
    return np.array([offsets.block for offsets in given if isinstance(offsets, PlacesOfBlock)], np.intp)


class Alike:
    """What follows from what launches recorded, whatever their arrays hold: kept here by whoever needs it first.

    Args:
        apart: whether it is known that no block touches what another one writes.
        filled: whether it is known that ops read no bytes on chip but those that their block wrote before.

    Attributes:
        made: what is known of single streams, by what it is, the function's number and the stream's identity.
        missed: the shares of transfers that L2 misses, by its bytes: the same at whatever rate they go.
    """

    def __init__(self, *, apart: bool = False, filled: bool = False) -> None:
        self.apart, self.filled = apart, filled
        self.made: Kept[tuple[str, int, int], Any] = Kept()
        self.missed: Kept[int, dict[tuple[int, bool], float]] = Kept()

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

    def reads(self, buffer: int) -> bool:
        """Whether an op reads a GM argument and does not write it."""
        return any(access.buffer == buffer and access.memory == "gm" and access.reads and not access.writes
                   for function in self.program.functions for record in function.records for access in record.accesses)

    @once
    def replay(self) -> Replay:
        """Further runs of single blocks."""
        return Replay(self)


class Again(NamedTuple):
    """What a further run of blocks left: the arrays, and per core its events and GM offsets."""

    arrays: tuple[Array | None, ...]
    recorded: list[tuple[list[Event], list[int]]]
