"""The record of a launch: for each block and core, the events and the GM offsets (see ``machine/op_records.py``)."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tilelang_npu.sharing import Kept, once, state_of
from tilelang_npu.simulator.machine.batched_integers import BatchedInt, BlockBatch, Numbers, Terms
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import Event, Stream
from tilelang_npu.simulator.run.arguments import BoundArguments
from tilelang_npu.simulator.run.replay import Replay
from tilelang_npu.source_dialects import SourceDialect

if TYPE_CHECKING:
    from tilelang_npu.simulator.run.program import Program


@dataclass(frozen=True)
class BlockRun:
    """The record of one block.

    Attributes:
        block: the block index.
        streams: for each core of the block, the core's events; equal streams of different blocks are the same object.
        gm: for each core of the block, the core's GM offsets.
    """

    block: int
    streams: tuple[Stream, ...]
    gm: tuple[Sequence[int], ...]


class BatchedOffsets:
    """The GM offsets of one core, for blocks that were traced at once and recorded the same events.

    Each offset is a constant plus a *variable term*, which has one value per block. Many offsets have the same variable term.

    Args:
        places: the offsets, as integers or as batched integers.
        blocks: the blocks that were traced at once.

    Attributes:
        constants: the constant of each offset.
        kind: for each offset, the number of its variable term.
        apart: the values of the variable terms, as a matrix with a row per block and a column per variable term.
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
        """The number of distinct variable terms."""
        return int(self.apart.shape[1])

    def some(self, places: NDArray[np.intp], blocks: NDArray[np.intp]) -> Numbers:
        """Returns the GM offsets of some accesses in some blocks, as a matrix with a row per block and a column per access.

        Args:
            places: the indices of the offsets in the record of the core.
            blocks: the indices of the blocks among those that were traced at once.
        """
        return self.apart[np.ix_(blocks, self.kind[places])] + self.constants[places]

    def of(self, block: int) -> Numbers:
        """Returns all offsets of a block, given the position of the block among the blocks that were traced at once."""
        return self.constants + self.apart[block][self.kind] if len(self.kind) else self.constants


@dataclass(frozen=True, eq=False)
class OffsetsOfBlock(Sequence[int]):
    """The GM offsets of one core of one block, as a sequence that reads them from the offsets of many blocks.

    Attributes:
        places: the offsets of all blocks that were traced at once with this block.
        block: the position of the block among them.
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

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return self.places.of(self.block).astype(dtype or np.int64)

    def __reduce__(self) -> tuple[object, ...]:
        return array, ("q", list(self))


def offsets_key(run: BlockRun) -> tuple[int, ...]:
    """Returns a key that is equal for all blocks that were traced at once, as their GM offsets have the same variable terms."""
    return tuple(id(offsets.places) for offsets in run.gm if isinstance(offsets, OffsetsOfBlock))


def columns(runs: Sequence[BlockRun], lane: int, picked: NDArray[np.intp], owners: NDArray[np.intp] | None = None,
            ) -> tuple[NDArray[np.intp], Numbers]:
    """Returns GM offsets of one core in several blocks with equal events, as a matrix with a row per block.

    If the blocks were traced at once, offsets with the same variable term differ by constants. Then only one column is returned
    for all offsets that have the same owner and the same variable term.

    Args:
        runs: the blocks.
        lane: the position of the core in its block.
        picked: the positions of the wanted offsets among the GM offsets of the core.
        owners: for each of the wanted offsets, a number by which offsets are grouped, such as the number of the operand; with
            None all offsets are in one group.

    Returns:
        for each column of the matrix, the position in ``picked`` of its offset; and the matrix.
    """
    first = runs[0].gm[lane]
    if not isinstance(first, OffsetsOfBlock):
        return np.arange(len(picked)), np.array([run.gm[lane] for run in runs], np.int64).reshape(len(runs), -1)[:, picked]
    kinds = first.places.kind[picked]
    _, chosen = np.unique(kinds if owners is None else owners * max(1, first.places.kinds) + kinds, return_index=True)
    chosen.sort()
    return chosen, first.places.some(picked[chosen], positions(runs, lane))


def positions(runs: Sequence[BlockRun], lane: int) -> NDArray[np.intp]:
    """Returns, for each block, its index in the group of blocks that were traced at once. Blocks that were traced alone are
    left out.

    Args:
        runs: the blocks.
        lane: the index of a core in its block. The GM offsets of this core know the index of their block.
    """
    given = (run.gm[lane] for run in runs)
    return np.array([offsets.block for offsets in given if isinstance(offsets, OffsetsOfBlock)], np.intp)


class SharedResults:
    """Results that depend on the record of a launch but not on the contents of its arrays.

    All launches that run the same batches have equal records, and refer to one such object.

    Args:
        apart: whether it is known that no block accesses bytes that another block writes.
        filled: whether it is known that ops read only on-chip bytes that their block wrote before.

    Attributes:
        apart, filled: the arguments of the same name.
        made: results for single event streams, by the kind of result, the number of the function, and the ``id`` of the stream.
        missed: for each tensor, the share of its transferred bytes that miss L2, by the capacity of L2, the number of written
            bytes that L2 can hold, and whether L2 holds the tensors at the start of the launch. These shares do not depend on
            transfer rates.
    """

    def __init__(self, *, apart: bool = False, filled: bool = False) -> None:
        self.apart, self.filled = apart, filled
        self.made: Kept[tuple[str, int, int], Any] = Kept()
        self.missed: Kept[tuple[int, float, str], dict[tuple[int, bool], float]] = Kept()

    def __reduce__(self) -> tuple[type[SharedResults], tuple[()]]:
        return SharedResults, ()


class UpstreamLaunch(NamedTuple):
    """The differences in time between a launch by TileLang-Ascend's compilers and a launch by this package.

    On the ascendc branch each point of the grid occupies a Cube core and all its Vector cores, even if the kernel uses only
    some of them. On the npuir branch, ``T.arange`` of several axes is a loop of scalar stores.

    Attributes:
        dialect: the branch, ``ascendc`` or ``npuir``.
        blocks_per_point: the number of blocks that this package launches for one point of the grid.
    """

    dialect: SourceDialect
    blocks_per_point: int


@dataclass(frozen=True)
class RecordedLaunch:
    """The record of a finished launch, from which times, hazards and traffic are computed."""

    program: Program
    """The kernel."""
    bound: BoundArguments
    """The arguments; after a run, the arrays contain its results."""
    blocks: tuple[BlockRun, ...]
    """The record of each block, in the order of block indices."""
    workspace_bytes: int
    """The bytes of workspace of each block."""
    count: int
    """The number of blocks of the launch; the trace of a large launch has the records of only some of them."""
    as_upstream: UpstreamLaunch | None = None
    """How TileLang-Ascend launches the kernel, if its time is to be estimated; None for a launch by this package."""
    traced: bool = False
    """Whether the launch was traced, without computing values."""
    alike: SharedResults = field(default_factory=SharedResults, compare=False, repr=False)
    """Results that all launches with an equal record and equal sizes of arrays have in common."""

    def __getstate__(self) -> dict[str, object]:
        return state_of(self)

    @property
    def is_complete(self) -> bool:
        """Whether the record has all accesses of the launch.

        It always has for a run. For a trace it has if all blocks were traced and no op depends on data.
        """
        return not self.traced or (len(self.blocks) == self.count and self.program.data_free)

    def reads(self, buffer: int) -> bool:
        """Whether an op has an operand in argument number ``buffer`` that the op reads and does not write."""
        return any(access.buffer == buffer and access.memory == "gm" and access.reads and not access.writes
                   for function in self.program.functions for record in function.records for access in record.accesses)

    @once
    def distinct_streams(self) -> list[tuple[int, Stream, int]]:
        """The distinct event streams of the blocks.

        Each is a tuple of the number of the device function, the stream, and the number of cores that recorded the stream.
        """
        counts: Counter[tuple[int, int]] = Counter()
        streams: dict[tuple[int, int], Stream] = {}
        for run in self.blocks:
            for stream, (index, _) in zip(run.streams, self.program.lanes, strict=True):
                counts[index, id(stream)] += 1
                streams[index, id(stream)] = stream
        return [(index, streams[index, key], count) for (index, key), count in counts.items()]

    @once
    def replay(self) -> Replay:
        """The object that runs blocks of the launch once more."""
        return Replay(self)


class ReplayResult(NamedTuple):
    """The result of running blocks of a launch once more.

    Attributes:
        arrays: the bytes of each argument after the run; None for scalars.
        recorded: for each core of these blocks, its events and its GM offsets.
    """

    arrays: tuple[Array | None, ...]
    recorded: list[tuple[list[Event], list[int]]]
