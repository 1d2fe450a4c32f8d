"""Re-execution of a launch: runs single blocks once more on copies of the arrays, for checks whose result depends on values.

A block runs alone, or together with all blocks of the launch if the blocks wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.errors import TileError
from tilelang_npu.sharing import once
from tilelang_npu.simulator.machine.memory import POISON, Array, Spot, as_bytes
from tilelang_npu.simulator.machine.op_records import ScalarAccess, accesses_to_gm, footprint

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.observed_emitter import Observer
    from tilelang_npu.simulator.run.arguments import BoundArguments, FunctionParameter
    from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch, ReplayResult

Arrays = Sequence[Array | None]
_FEW_OPS = 20_000
"""The ops that a core may issue on test values in addition to those of the launch: about a second. Loops that issue no ops may
have ``loop_limits.IDLE`` times as many iterations."""


class Replay:
    """Runs blocks of a launch once more.

    Every call of :meth:`after` and :meth:`watched` starts from the same contents of the arrays. After a run these are the
    contents after the run, except that arrays which the launch both reads and writes are filled with pseudo-random test values:
    their final contents could hide a difference, because a sum that is NaN stays NaN. After a trace, which computes no results,
    all arrays that the user passed are filled with test values. The test values are the same in every process.

    A block can fail on test values, for example if it uses a number from an array as an address, or as the trip count of a
    loop: it may issue about twice as many ops as in the launch. After a run, the block is then run on the contents after the
    run instead. After a trace, there is no result for this block.

    Args:
        recorded: the launch.

    Attributes:
        failed: the errors of blocks that failed on test values after a trace; checks of these blocks have no result.
    """

    def __init__(self, recorded: RecordedLaunch) -> None:
        self._recorded = recorded
        self._settled: set[int] = set()
        self._lock = RLock()
        self.failed: list[TileError] = []

    @once
    def _before(self) -> BoundArguments:
        """The arguments with the contents of arrays from which :meth:`after` and :meth:`watched` start."""
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
    def _bound(self) -> BoundArguments:
        """The arguments with the results of the launch: of all blocks after a run, of the settled blocks after a trace."""
        return self._before if self._recorded.traced else self._recorded.bound

    @property
    def arrays(self) -> Arrays:
        """The arrays after the launch. After a trace, they contain the results of the blocks that :meth:`settle` has run."""
        return self._bound.arrays

    def settle(self, blocks: Iterable[int]) -> None:
        """Makes ``arrays`` contain the results of some blocks: after a trace, runs these blocks unless they were run before."""
        if not self._recorded.traced:
            return
        with self._lock:
            for block in sorted(set(blocks) - self._settled):
                after = self._run(self._bound, [block], POISON, None)
                if after is not None:
                    self._bound = replace(self._bound, arrays=after.arrays)
                self._settled.add(block)

    def run_after_launch(self, run: BlockRun) -> ReplayResult | None:
        """Runs a block a second time, on copies of ``arrays``, together with the blocks that it waits for.

        Returns:
            the copies after the run, and the record of the run; None if the launch was only traced and the block fails on test
            values.
        """
        return self._run(self._bound, [one.block for one in self.together(run)], POISON, self.spans(run))

    def after(self, run: BlockRun, *, poison: int = POISON, observer: Observer | None = None,
              blank: Mapping[int, NDArray[np.bool_]] | None = None, spot: Spot | None = None) -> ReplayResult | None:
        """Runs a block on copies of the arrays with their initial contents, together with the blocks that it waits for.

        The initial contents are those that the class describes: test values, or the contents after the launch.

        Args:
            run: the block; only the bytes that it accesses are copied.
            poison: the byte that fills on-chip memory before the block.
            observer: called before and after every op with operands in memory.
            blank: for each argument, by number, a mask of the bytes that are filled with ``poison`` before the block.
            spot: a range of on-chip bytes that is filled with ``POISON``.

        Returns:
            the copies after the run, and the record of the run; None if the launch was only traced and the block fails on test
            values.
        """
        return self._run(self._before, [one.block for one in self.together(run)], poison, self.spans(run), observer, blank,
                         spot)

    def watched(self, runs: Sequence[BlockRun], observer: Observer) -> bool:
        """Runs blocks concurrently with an observer, on copies of the arrays with the initial contents of :meth:`after`.

        Returns:
            whether the blocks ran to the end; False if the launch was only traced and the blocks fail on test values.
        """
        return self._run(self._before, [run.block for run in runs], POISON, None, observer) is not None

    def together(self, run: BlockRun) -> Sequence[BlockRun]:
        """Returns a block, followed by the blocks that must run concurrently with it.

        These are all other blocks of the launch if the blocks of the launch wait for each other, otherwise none.
        """
        recorded = self._recorded
        return [run, *(one for one in recorded.blocks if one is not run)] if recorded.program.global_sync else [run]

    def spans(self, run: BlockRun) -> dict[int, tuple[int, int]]:
        """Returns the range of bytes of each argument that a block, or a block that must run with it, accesses.

        Returns:
            by the number of the argument, the offset of the first byte and the offset after the last byte.
        """
        found: dict[int, tuple[int, int]] = {}
        program = self._recorded.program
        for one in self.together(run):
            for (index, _), stream, offsets in zip(program.lanes, one.streams, one.gm, strict=True):
                for position, _, event, access in accesses_to_gm(program.functions[index].records, stream):
                    where = footprint(access, event, offsets[position])
                    if not where.empty:
                        first, end = found.get(access.buffer, (where.offset, where.end))
                        found[access.buffer] = min(first, where.offset), max(end, where.end)
        return found

    def _run(self, bound: BoundArguments, blocks: Sequence[int], poison: int, spans: dict[int, tuple[int, int]] | None,
             observer: Observer | None = None, blank: Mapping[int, NDArray[np.bool_]] | None = None,
             spot: Spot | None = None) -> ReplayResult | None:
        recorded = self._recorded
        if blank is not None:
            bound = replace(bound, arrays=tuple(
                array if array is None or number not in blank else np.where(blank[number], np.uint8(poison), array)
                for number, array in enumerate(bound.arrays)))
        made_up = bound is not recorded.bound and blank is None
        try:
            return recorded.program.again(bound, blocks, recorded.count, poison=poison, spans=spans, observer=observer,
                                          most_ops=self._most_ops(blocks) if made_up else None, spot=spot)
        except TileError as error:
            if recorded.traced:
                self.failed.append(error)
                return None
            if not made_up:
                raise
            return self._run(recorded.bound, blocks, poison, spans, observer, spot=spot)  # generated numbers did not work


    def _most_ops(self, blocks: Sequence[int]) -> int:
        """Returns the limit of the ops of a core on test values: test values can be trip counts that the launch never has."""
        chosen = set(blocks)
        streams = (stream for run in self._recorded.blocks if run.block in chosen for stream in run.streams)
        return _FEW_OPS + 2 * max(map(len, streams), default=0)


def _made_up(array: Array, parameter: FunctionParameter, rng: np.random.Generator, *, keep: bool) -> Array:
    """Returns test values for an array.

    Floats are drawn from the normal distribution. Integers are possibly indices, so they keep their values if any of them is
    not 0; otherwise they are drawn from 0 and 1.

    Args:
        array, parameter: the argument of the launch, and its parameter.
        rng: the generator of random numbers.
        keep: whether to return a copy of the array, because the scalar unit reads from it and its contents decide what runs.
    """
    if parameter.role != "user" or keep:
        return array.copy()
    element = parameter.element
    count = array.size // element.nbytes
    if element.is_float:
        return as_bytes(rng.standard_normal(count, np.float32).astype(element.numpy))
    return array.copy() if array.any() else as_bytes(rng.integers(0, 2, count).astype(element.numpy))
