"""The record of a launch: for each block and core, the events and the GM offsets."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.sharing import Kept, once, state_of
from tilelang_npu.simulator.machine.batched_integers import BatchedInt, BlockBatch, Numbers, Terms
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import Event, Stream
from tilelang_npu.simulator.run.arguments import BoundArguments
from tilelang_npu.simulator.run.replay import Replay

if TYPE_CHECKING:
    from tilelang_npu.simulator.run.program import Program


@dataclass(frozen=True)
class BlockRun:
    """The record of one block: per core the event stream (equal streams are one object) and the GM offsets."""

    block: int
    streams: tuple[Stream, ...]
    gm: tuple[Sequence[int], ...]


class BatchedOffsets:
    """The GM offsets of one core, for all blocks of a batch that recorded the same events.

    Args:
        places: the offsets as integers, or as batched integers.
        blocks: the batch of these.

    Attributes:
        constants: the constant term of each offset.
        kind: for each offset, the number of its variable term.
        apart: the value of each variable term, by block and number.
    """

    def __init__(self, places: Sequence[int | BatchedInt], blocks: BlockBatch) -> None:
        kinds: dict[Terms, int] = {}
        none: Terms = ()
        self.constants: Numbers = np.array([place if isinstance(place, int) else place.constant for place in places], np.int64)
        self.kind: NDArray[np.intp] = np.array(
            [kinds.setdefault(none if isinstance(place, int) else place.terms, len(kinds)) for place in places], np.intp)
        self.apart: Numbers = np.array([blocks.sum(terms) for terms in kinds], np.int64).reshape(len(kinds), -1).T.copy()

    @property
    def kinds(self) -> int:
        """Number of distinct variable terms."""
        return int(self.apart.shape[1])

    def some(self, places: NDArray[np.intp], blocks: NDArray[np.intp]) -> Numbers:
        """Returns some of the offsets of some blocks, both by position."""
        return self.apart[np.ix_(blocks, self.kind[places])] + self.constants[places]

    def of(self, block: int) -> Numbers:
        """Returns the offsets of a block, by its position in the batch."""
        return self.constants + self.apart[block][self.kind] if len(self.kind) else self.constants


@dataclass(frozen=True, eq=False)
class OffsetsOfBlock(Sequence[int]):
    """The GM offsets of one core of one block of a batch.

    Attributes:
        places: those of the batch.
        block: the block's position in the batch.
    """

    places: BatchedOffsets
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


def offsets_key(run: BlockRun) -> tuple[int, ...]:
    """Returns a key that is equal for blocks whose GM offsets have the same variable terms."""
    return tuple(id(offsets.places) for offsets in run.gm if isinstance(offsets, OffsetsOfBlock))


def columns(runs: Sequence[BlockRun], lane: int, picked: NDArray[np.intp], owners: NDArray[np.intp] | None = None,
            ) -> tuple[NDArray[np.intp], Numbers]:
    """Returns columns of GM offsets, one row per block, for blocks with equal streams. Where offsets are batched, one column is
    returned for all offsets of an owner that have the same variable term: they differ by constants.

    Args:
        runs: the blocks.
        lane: the lane.
        picked: positions of the offsets.
        owners: the owner of each of them; one owner for all where None.

    Returns:
        positions of the returned columns in ``picked``, and the columns.
    """
    first = runs[0].gm[lane]
    if not isinstance(first, OffsetsOfBlock):
        return np.arange(len(picked)), np.array([run.gm[lane] for run in runs], np.int64).reshape(len(runs), -1)[:, picked]
    kinds = first.places.kind[picked]
    _, chosen = np.unique(kinds if owners is None else owners * max(1, first.places.kinds) + kinds, return_index=True)
    chosen.sort()
    return chosen, first.places.some(picked[chosen], positions(runs, lane))


def positions(runs: Sequence[BlockRun], lane: int) -> NDArray[np.intp]:
    """Returns the positions of blocks in their batch."""
    given = (run.gm[lane] for run in runs)
    return np.array([offsets.block for offsets in given if isinstance(offsets, OffsetsOfBlock)], np.intp)


class SharedResults:
    """Results that depend on the record of a launch but not on the contents of its arrays; launches that are equally batched
    share them.

    Args:
        apart: whether it is known that no block accesses bytes that another one writes.
        filled: whether it is known that ops read no on-chip bytes but those that their block wrote before.

    Attributes:
        made: results for single streams, by kind of result, function number and stream identity.
        missed: shares of transfers that L2 misses, by its capacity: independent of transfer rates.
    """

    def __init__(self, *, apart: bool = False, filled: bool = False) -> None:
        self.apart, self.filled = apart, filled
        self.made: Kept[tuple[str, int, int], Any] = Kept()
        self.missed: Kept[int, dict[tuple[int, bool], float]] = Kept()

    def __reduce__(self) -> tuple[type[SharedResults], tuple[()]]:
        return SharedResults, ()


@dataclass(frozen=True)
class RecordedLaunch:
    """The record of a finished launch, before timing."""

    program: Program
    bound: BoundArguments
    blocks: tuple[BlockRun, ...]
    workspace_bytes: int
    count: int
    """Blocks of the launch; a trace of a large launch may hold only some of them."""
    traced: bool = False
    """Whether the launch was traced, without computing values."""
    alike: SharedResults = field(default_factory=SharedResults, compare=False, repr=False)
    """Results that are shared with launches of the same record and array sizes."""

    def __getstate__(self) -> dict[str, object]:
        return state_of(self)

    @property
    def is_complete(self) -> bool:
        """Whether all accesses are known: all blocks are recorded, and other data would not change their ops."""
        return not self.traced or (len(self.blocks) == self.count and self.program.data_free)

    def reads(self, buffer: int) -> bool:
        """Whether an op reads a GM argument that it does not write."""
        return any(access.buffer == buffer and access.memory == "gm" and access.reads and not access.writes
                   for function in self.program.functions for record in function.records for access in record.accesses)

    @once
    def distinct_streams(self) -> list[tuple[int, Stream, int]]:
        """The distinct streams of all blocks, each with the number of its function and its number of occurrences."""
        counts: Counter[tuple[int, int]] = Counter()
        streams: dict[tuple[int, int], Stream] = {}
        for run in self.blocks:
            for stream, (index, _) in zip(run.streams, self.program.lanes, strict=True):
                counts[index, id(stream)] += 1
                streams[index, id(stream)] = stream
        return [(index, streams[index, key], count) for (index, key), count in counts.items()]

    @once
    def replay(self) -> Replay:
        """Further runs of single blocks."""
        return Replay(self)


class ReplayResult(NamedTuple):
    """The result of running blocks once more: the arrays, and per core its events and GM offsets."""

    arrays: tuple[Array | None, ...]
    recorded: list[tuple[list[Event], list[int]]]
