"""Replay: blocks run once more on copies where a verdict depends on values; alone, or with all blocks that they wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.errors import TileError
from tilelang_npu.sharing import once
from tilelang_npu.simulator.machine.memory import POISON, Array, as_bytes
from tilelang_npu.simulator.machine.op_records import ScalarAccess, accesses_to_gm, footprint

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.observed_emitter import Observer
    from tilelang_npu.simulator.run.arguments import BoundArguments, FunctionParameter
    from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch, ReplayResult

Arrays = Sequence[Array | None]


class Replay:
    """Further runs of blocks of a launch.

    A launch that computed values has left them in its arrays. One that was only traced has none: its blocks run on generated
    numbers, the same in every process. So do blocks of arrays that the launch both reads and writes: their final contents could
    hide a difference, as a sum that is NaN stays NaN.

    Args:
        recorded: the launch.

    Attributes:
        failed: errors of blocks on generated numbers; verdicts that depend on them are not decided.
    """

    def __init__(self, recorded: RecordedLaunch) -> None:
        self._recorded = recorded
        self._settled: set[int] = set()
        self._lock = RLock()
        self.failed: list[TileError] = []

    @once
    def _before(self) -> BoundArguments:
        """The arguments of a run that does not depend on another run."""
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
        """The arguments with the results of the launch, as far as they are known."""
        return self._before if self._recorded.traced else self._recorded.bound

    @property
    def arrays(self) -> Arrays:
        """The contents of the arrays after the launch, for settled blocks."""
        return self._bound.arrays

    def settle(self, blocks: Iterable[int]) -> None:
        """Makes sure that the arrays hold the results of these blocks."""
        if not self._recorded.traced:
            return
        with self._lock:
            for block in sorted(set(blocks) - self._settled):
                after = self._run(self._bound, [block], POISON, None)
                if after is not None:
                    self._bound = replace(self._bound, arrays=after.arrays)
                self._settled.add(block)

    def run_after_launch(self, run: BlockRun) -> ReplayResult | None:
        """Runs a block once more after the launch, on copies of the arrays; None as for ``after``."""
        return self._run(self._bound, [one.block for one in self.together(run)], POISON, self.spans(run))

    def after(self, run: BlockRun, *, poison: int = POISON, observer: Observer | None = None,
              blank: Mapping[int, NDArray[np.bool_]] | None = None) -> ReplayResult | None:
        """Runs a block, and those that it waits for, on copies of the arrays; None if they cannot run on generated numbers.

        Args:
            run: the block; only the bytes that it accesses are copied.
            poison: the byte that fills on-chip memory before the block.
            observer: called before and after every op that reads or writes.
            blank: bytes of arguments that are filled with the same byte.
        """
        return self._run(self._before, [one.block for one in self.together(run)], poison, self.spans(run), observer, blank)

    def watched(self, runs: Sequence[BlockRun], observer: Observer) -> bool:
        """Runs blocks concurrently with an observer; returns whether they could run."""
        return self._run(self._before, [run.block for run in runs], POISON, None, observer) is not None

    def together(self, run: BlockRun) -> Sequence[BlockRun]:
        """Returns a block, and after it the blocks that it waits for."""
        recorded = self._recorded
        return [run, *(one for one in recorded.blocks if one is not run)] if recorded.program.global_sync else [run]

    def spans(self, run: BlockRun) -> dict[int, tuple[int, int]]:
        """Returns, for each argument that a block or one that it waits for accesses, the first byte and one past the last."""
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
             observer: Observer | None = None, blank: Mapping[int, NDArray[np.bool_]] | None = None) -> ReplayResult | None:
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
            return self._run(recorded.bound, blocks, poison, spans, observer)  # generated numbers did not work


def _made_up(array: Array, parameter: FunctionParameter, rng: np.random.Generator, *, keep: bool) -> Array:
    """Returns generated contents of an array: normal numbers; integers keep their values if any is not 0, because they may be
    indices, and are 0 or 1 otherwise.

    Args:
        array, parameter: the argument of the launch.
        rng: the generator.
        keep: the scalar unit reads from the array, so that the trace depends on its contents.
    """
    if parameter.role != "user" or keep:
        return array.copy()
    element = parameter.element
    count = array.size // element.nbytes
    if element.is_float:
        return as_bytes(rng.standard_normal(count, np.float32).astype(element.numpy))
    return array.copy() if array.any() else as_bytes(rng.integers(0, 2, count).astype(element.numpy))
