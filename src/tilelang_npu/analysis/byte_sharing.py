"""Which allocations can share bytes without making an op wait longer.

Two allocations share bytes if memory planning gives them overlapping addresses. This costs no time in three cases:

- An elementwise op writes its result over the source that it reads for the last time (:meth:`ByteSharing.merge`).
- Only one pipe accesses either allocation. A pipe executes its ops in order, so it has read the old contents before it writes
  the new ones. Two writes to the same bytes need a barrier in between, which costs nothing if a barrier is needed there anyway.
- A pipe fills one allocation after a loop, and in that loop the same pipe always accesses the other allocation after all other
  pipes. The pipe has then waited for the other pipes already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.analysis.allocation_live_ranges import LiveRange
from tilelang_npu.analysis.view_chains import Loop, root_of
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.target.chip_data import PipeName


def _enclosing_loops(op: Operation) -> Iterator[Loop]:
    """Yields the loops around an op, innermost first."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, (scf.ForOp, scf.WhileOp)):
            yield parent
        parent = parent.parent_op()


class ByteSharing:
    """Answers whether ops of a function would wait longer if two allocations of this function shared bytes.

    Args:
        order: the ops of the function in the order of the live ranges' positions.
    """

    def __init__(self, order: Sequence[Operation]) -> None:
        self._order = order
        self._loop_positions = _loop_positions(order)
        self._barrier_counts: dict[PipeName, list[int]] = {}
        self._ends_with_write: dict[LiveRange, bool] = {}
        self._accesses: dict[SSAValue, list[tuple[int, PipeName, bool]]] = defaultdict(list)
        """The accesses of each buffer: position, pipe, whether it writes."""
        for position, op in enumerate(order):
            for access in accesses(op):
                self._accesses[root_of(access.value)].append((position, access.access_pipe, access.writes))

    def merge(self, ranges: Sequence[LiveRange], may_share: Callable[[LiveRange], bool]) -> list[LiveRange]:
        """Merges pairs of live ranges if an elementwise op can write one over the other and no op then waits longer.

        Outside loops no op waits longer, because each byte is filled once. Inside a loop, the op that fills the bytes for the
        next iteration would wait for all accesses of this iteration, unless one pipe makes all accesses and needs no
        additional barrier.

        Args:
            ranges: the live ranges.
            may_share: returns whether a live range may be merged with another one.

        Returns:
            The live ranges in their order, with each merged pair replaced by one live range.
        """
        units: dict[SSAValue, LiveRange] = {one.value: one for one in ranges}
        given: set[SSAValue] = set()
        able = [one for one in ranges if may_share(one)]
        givers: dict[SSAValue, list[LiveRange]] = defaultdict(list)
        for giver in sorted(able, key=lambda one: one.nbytes):
            for value in giver.takers:
                givers[value].append(giver)
        for heir in sorted(able, key=lambda one: one.used):
            for giver in givers[heir.value]:
                if giver.value in given:
                    continue
                one, other = units[giver.value], units[heir.value]
                if one.slots == other.slots == 1 and not self._take_over_waits(one, other):
                    used = min(one.used[0], other.used[0]), max(one.used[1], other.used[1])
                    merged = replace(one, nbytes=max(one.nbytes, other.nbytes), start=min(one.start, other.start),
                                     end=max(one.end, other.end), used=used, pipes=one.pipes | other.pipes, heirs=frozenset(),
                                     members=(*one.members, *other.members))
                    units.update(dict.fromkeys(merged.members, merged))
                    given.add(giver.value)
                    break
        return list(dict.fromkeys(units[one.value] for one in ranges))

    def _take_over_waits(self, giver: LiveRange, heir: LiveRange) -> bool:
        if not any(_enclosing_loops(self._order[heir.used[0]])):
            return False
        pipes = giver.pipes | heir.pipes
        return len(pipes) > 1 or self._next_iteration_waits(next(iter(pipes)), giver, heir)

    def adds_wait(self, one: LiveRange, other: LiveRange) -> bool:
        """Whether an op would wait longer if two allocations shared bytes. The two must not be live at the same time."""
        first, second = (one, other) if one.used <= other.used else (other, one)
        pipes = one.pipes | other.pipes
        if one.slots > 1 or other.slots > 1 or len(pipes) > 1:
            last = self._last_pipe(first)
            first_pipes = {pipe for position, pipe, _ in self._accesses_of(second) if position == second.used[0]}
            if last is None or first_pipes != {last} or set(
                    _enclosing_loops(self._order[first.used[0]])) & set(_enclosing_loops(self._order[second.used[0]])):
                return True
            pipes = frozenset({last})
        if not pipes:  # no pipe accesses either allocation
            return True
        (pipe,) = pipes
        if self._is_written_last(first) and not self._has_barrier_between(pipe, first.used[1], second.used[0]):
            return True
        return self._next_iteration_waits(pipe, first, second)

    def _next_iteration_waits(self, pipe: PipeName, first: LiveRange, second: LiveRange) -> bool:
        """Whether a pipe's write to ``first`` needs a barrier after its last write to ``second`` one iteration earlier."""
        loops = set(_enclosing_loops(self._order[second.used[0]]))
        common = next((loop for loop in _enclosing_loops(self._order[first.used[0]]) if loop in loops), None)
        if common is None or not self._is_written_last(second):
            return False
        start, end = self._loop_positions[common]
        return not (self._has_barrier_between(pipe, second.used[1], end)
                    or self._has_barrier_between(pipe, start, first.used[0]))

    def _accesses_of(self, one: LiveRange) -> list[tuple[int, PipeName, bool]]:
        """Returns the accesses of an allocation in order: position, pipe, whether it writes."""
        return sorted(access for member in one.members for access in self._accesses[member])

    def _last_pipe(self, one: LiveRange) -> PipeName | None:
        """Returns the pipe that accesses an allocation after all other pipes, in each block, and so waits for these pipes.

        In ``load (MTE2); add (V); load (MTE2)`` the pipe is MTE2, which waits for V before the second load. Returns None if no
        pipe does so in all blocks.
        """
        by_block: dict[object, list[tuple[int, PipeName, bool]]] = defaultdict(list)
        for access in self._accesses_of(one):
            by_block[self._order[access[0]].parent_block()].append(access)
        found = set()
        for block_accesses in by_block.values():
            final, pipe, _ = block_accesses[-1]
            found |= {each for position, each, _ in block_accesses if position == final}
            own = [(position, writes) for position, each, writes in block_accesses if each == pipe]
            for position, each, writes in block_accesses:
                if each != pipe and not any(later > position and (writes or wrote) for later, wrote in own):
                    return None
        return found.pop() if len(found) == 1 else None

    def _has_barrier_between(self, pipe: PipeName, first: int, last: int) -> bool:
        """Whether the pass that inserts waits will insert a barrier of a pipe after position ``first`` and before the end of
        position ``last``.
        """
        if pipe not in self._barrier_counts:
            self._barrier_counts[pipe] = _barrier_counts(self._order, pipe)
        return self._barrier_counts[pipe][last] > self._barrier_counts[pipe][first]

    def _is_written_last(self, one: LiveRange) -> bool:
        """Whether the last op that accesses an allocation possibly writes the allocation."""
        if one not in self._ends_with_write:
            last = [access for access in accesses(self._order[one.used[1]]) if root_of(access.value) in one.members]
            self._ends_with_write[one] = not last or any(access.writes for access in last)
        return self._ends_with_write[one]


def _loop_positions(order: Sequence[Operation]) -> dict[Operation, tuple[int, int]]:
    """Returns the first and the last position of each loop."""
    found: dict[Operation, tuple[int, int]] = {}
    for position, op in enumerate(order):
        for loop in _enclosing_loops(op):
            found[loop] = found.get(loop, (position - 1, 0))[0], position
    return found


def _barrier_counts(order: Sequence[Operation], pipe: PipeName) -> list[int]:
    """Returns, for each position, the number of barriers of a pipe that will be inserted up to this position.

    A barrier is inserted before each op that accesses a buffer that the pipe has written since the previous barrier. If the
    write is in a branch of an ``if``, a barrier is inserted at the end of this branch; it is therefore counted only for
    accesses inside of the branch.
    """
    written: dict[SSAValue, frozenset[Block]] = {}
    found, count = [], 0
    for op in order:
        around = _enclosing_branches(op)
        touched = [(root_of(access.value), access.writes) for access in accesses(op) if access.pipe == pipe]
        if any(root in written and written[root] <= around for root, _ in touched):
            written = {}
            count += 1
        written.update((root, around) for root, writes in touched if writes)
        found.append(count)
    return found


def _enclosing_branches(op: Operation) -> frozenset[Block]:
    """Returns the branches of all ``if`` ops that contain an op."""
    found, block = set(), op.parent_block()
    while block is not None:
        parent = block.parent_op()
        if isinstance(parent, scf.IfOp):
            found.add(block)
        block = parent.parent_block() if parent is not None else None
    return frozenset(found)


__all__ = ["ByteSharing"]
