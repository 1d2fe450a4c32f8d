"""Blocks that run once more, on copies, where a verdict depends on values: one alone, or all where they wait for each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.errors import TileError
from tilelang_npu.sharing import once
from tilelang_npu.simulator.machine.events import footprint, number_of
from tilelang_npu.simulator.machine.memory import POISON, Array, as_bytes
from tilelang_npu.simulator.machine.work import ScalarAccess

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.watched import Observer
    from tilelang_npu.simulator.run.arguments import Bound, FunctionParameter
    from tilelang_npu.simulator.run.recorded import Again, BlockRun, Recorded

Arrays = Sequence[Array | None]


class Replay:
    """Further runs of blocks of a launch.

    A launch that computed has left its values in its arrays. One that was only traced has none: there the blocks run on
    made-up numbers, the same in every process. So they do on arrays that a launch both reads and writes: what it has left there
    may hide what another run would leave, as a sum that is no number any more stays none.

    Args:
        recorded: the launch.

    Attributes:
        failed: what kept blocks from running on made-up numbers; what depends on them is not decided.
    """

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._settled: set[int] = set()
        self._lock = RLock()
        self.failed: list[TileError] = []

    @once
    def _before(self) -> Bound:
        """The arguments of a run that has to do with no other."""
        recorded, bound = self._recorded, self._recorded.bound
        records = [record for function in recorded.program.functions for record in function.records]
        accesses = [(access, record) for record in records for access in record.accesses if access.memory == "gm"]
        single = {access.buffer for access, record in accesses
                  if isinstance(record.work, ScalarAccess) and not record.work.store}
        changed = {access.buffer for access, _ in accesses if access.reads} & {
            access.buffer for access, _ in accesses if access.writes}
        rng = np.random.default_rng(0)
        return replace(bound, arrays=tuple(
            array if array is None or not (recorded.traced or number in changed)
            else _made_up(array, parameter, rng, keep=number in single)
            for number, (array, parameter) in enumerate(zip(bound.arrays, bound.parameters, strict=True))))

    @once
    def _bound(self) -> Bound:
        """The arguments with what the launch left in them, as far as that is known."""
        return self._before if self._recorded.traced else self._recorded.bound

    @property
    def arrays(self) -> Arrays:
        """What the arrays hold behind the launch, of the blocks that are settled."""
        return self._bound.arrays

    def settle(self, blocks: Iterable[int]) -> None:
        """Make sure that what these blocks leave is in the arrays."""
        if not self._recorded.traced:
            return
        with self._lock:
            for block in sorted(set(blocks) - self._settled):
                after = self._run(self._bound, [block], POISON, None)
                if after is not None:
                    self._bound = replace(self._bound, arrays=after.arrays)
                self._settled.add(block)

    def behind(self, run: BlockRun) -> Again | None:
        """What copies of the arrays hold when a block has run once more behind the launch; None as for ``after``."""
        return self._run(self._bound, [one.block for one in self.together(run)], POISON, self.spans(run))

    def after(self, run: BlockRun, *, poison: int = POISON, observer: Observer | None = None,
              blank: Mapping[int, NDArray[np.bool_]] | None = None) -> Again | None:
        """What copies of the arrays hold when a block has run on them, and those that it waits for; None if they cannot run on
        made-up numbers.

        Args:
            run: the block's run; only the bytes that were accessed are copied.
            poison: the byte that fills on-chip memory at first.
            observer: sees every op that reads or writes before and behind it.
            blank: bytes of arguments that are filled so too.
        """
        return self._run(self._before, [one.block for one in self.together(run)], poison, self.spans(run), observer, blank)

    def watched(self, runs: Sequence[BlockRun], observer: Observer) -> bool:
        """Run blocks side by side under the eyes of an observer; whether they could."""
        return self._run(self._before, [run.block for run in runs], POISON, None, observer) is not None

    def together(self, run: BlockRun) -> Sequence[BlockRun]:
        """A block, and behind it those that it waits for."""
        recorded = self._recorded
        return [run, *(one for one in recorded.blocks if one is not run)] if recorded.program.global_sync else [run]

    def spans(self, run: BlockRun) -> dict[int, tuple[int, int]]:
        """Of each argument that a block, or one that it waits for, accesses the first byte, and the one behind the last."""
        found: dict[int, tuple[int, int]] = {}
        program = self._recorded.program
        for one in self.together(run):
            for (index, _), stream, offsets in zip(program.lanes, one.streams, one.gm, strict=True):
                records, place = program.functions[index].records, 0
                for event in stream:
                    for access in records[number_of(event)].accesses:
                        if access.memory == "gm":
                            where = footprint(access, event, offsets[place])
                            place += 1
                            if not where.empty:
                                first, end = found.get(access.buffer, (where.offset, where.end))
                                found[access.buffer] = min(first, where.offset), max(end, where.end)
        return found

    def _run(self, bound: Bound, blocks: Sequence[int], poison: int, spans: dict[int, tuple[int, int]] | None,
             observer: Observer | None = None, blank: Mapping[int, NDArray[np.bool_]] | None = None) -> Again | None:
        recorded = self._recorded
        if blank is not None:
            bound = replace(bound, arrays=tuple(
                array if array is None or number not in blank else np.where(blank[number], np.uint8(poison), array)
                for number, array in enumerate(bound.arrays)))
        try:
            return recorded.program.again(bound, blocks, recorded.count, poison=poison, spans=spans, observer=observer)
        except TileError as error:
            if recorded.traced:
                self.failed.append(error)
                return None
            if bound is recorded.bound or blank is not None:
                raise
            return self._run(recorded.bound, blocks, poison, spans, observer)  # not on made-up numbers


def _made_up(array: Array, parameter: FunctionParameter, rng: np.random.Generator, *, keep: bool) -> Array:
    """Normal numbers; integers keep their values where they have any, because they may be places, and are 0 or 1 otherwise.

    Args:
        array, parameter: what the launch has.
        rng: the generator.
        keep: single numbers are read from it, which were those of the array in the trace.
    """
    if parameter.role != "user" or keep:
        return array.copy()
    element = parameter.element
    count = array.size // element.nbytes
    if element.is_float:
        return as_bytes(rng.standard_normal(count, np.float32).astype(element.numpy))
    return array.copy() if array.any() else as_bytes(rng.integers(0, 2, count).astype(element.numpy))
