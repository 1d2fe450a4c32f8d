"""Derives the orders inside one core that a *round trip* of flags implies: a flag to the other core, and a flag back.

A pipe sets a flag. All operations that the other core issues after its wait for the flag are executed later, including its set
of a flag for the way back. All operations that the first core issues after its wait for that second flag are executed later
still::

    AIC                         AIV
    fixpipe; set 0
                                wait 0; ...; set 1
    wait 1; fixpipe             # comes after the first fixpipe is done

Flags are counters: the n-th wait for a flag returns after the n-th set. So sets can be matched with waits if both cores run
through the same loops and branches, each of which contains as many sets of a flag as waits for it. If this cannot be proved
(computed flag numbers, loops with different trip counts, branches on different conditions), no orders are derived.

A round trip that starts when a branch is taken and ends when the branch is taken the next time orders nothing in the iterations
in between: it is represented as an event of the branch, whose tokens (sets before and waits after a loop) are around the
enclosing loop. A round trip may also begin in a block around a branch or loop of both cores and end inside the branch or loop,
or vice versa.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Queue
from tilelang_npu.transforms.hivm.sync.ordering import PIPES, EventPair


@dataclass(frozen=True)
class _FlagOp:
    """A set of a flag, or a wait for one.

    Attributes:
        number: the number of the flag.
        sets: whether the operation sets the flag; otherwise it waits for the flag.
        pipe: the pipe that sets the flag, or waits for it.
        items: the number of items of the block before the operation.
        place: the index of the operation among the flag operations, loops and branches of its block.
    """

    number: int
    sets: bool
    pipe: Queue
    items: int
    place: int


@dataclass
class _FlagBlock:
    """A block of one core with its flags, and its loops and branches that contain flags.

    Attributes:
        body: the block.
        flags: the flag operations of the block, without those in nested blocks.
        nested: the loops and branches that contain flag operations, each with its ``place`` (see ``_FlagOp``).
        outer: the block around the block.
        single_pipe: the numbers of the flags that a single pipe of the core waits for. For the other flags, the scalar unit
            waits, which issues the operations of all pipes.
        outstanding: the number of sets that are not waited for yet when the block starts, by (whether the second core sets the
            flag, number of the flag).
    """

    body: BlockItems
    flags: list[_FlagOp] = field(default_factory=list)
    nested: list[tuple[int, _FlagBlock]] = field(default_factory=list)
    outer: _FlagBlock | None = None
    single_pipe: set[int] = field(default_factory=set)
    outstanding: Counter[tuple[bool, int]] = field(default_factory=Counter)

    @property
    def repeats(self) -> bool:
        """Whether the block runs more than once."""
        return self.body.loop is not None or (self.outer is not None and self.outer.repeats)

    @property
    def is_nested(self) -> bool:
        """Whether the block is in a loop or a branch."""
        return isinstance(self.body.block.parent_op(), (scf.ForOp, scf.IfOp))

    def token_loop(self, flags: Sequence[tuple[bool, int]]) -> BlockItems | None:
        """Returns the body of the outermost enclosing loop whose iterations leave none of some flags outstanding.

        Flags that are outstanding before a loop are taken after it.
        """
        level, found = self.outer, None
        while level is not None and not any(level.outstanding[flag] for flag in flags):
            found = level.body if level.body.loop is not None else found
            level = level.outer
        return found

    def nested_flags(self) -> Iterator[_FlagOp]:
        """Yields the flags of its loops and branches."""
        for _, level in self.nested:
            yield from level.flags
            yield from level.nested_flags()


class _Unmatched(Exception):
    """The flags of the two cores cannot be matched."""


def round_trips(first: BlockItems, second: BlockItems) -> dict[int, list[EventPair]]:
    """Returns the orders that round trips of flags imply in the blocks of two functions, as events by ``id(block)``.

    Args:
        first: the items of the Cube core's function.
        second: the items of the Vector core's function.

    Returns:
        For each block of either function, the implied events; empty if the flags of the two functions cannot be matched.
    """
    found: dict[int, list[EventPair]] = {}
    try:
        _match_blocks(_flag_block(first), _flag_block(second), Counter(), found, {}, [])
    except _Unmatched:
        return {}
    return found


_Partners = Mapping[_FlagOp, tuple[_FlagOp, int]]
"""For each set of a block, the matching wait on the other core, and the number of iterations from the set to the wait."""


@dataclass(frozen=True)
class _OuterPair:
    """A pair of blocks around the pair that is looked at, on the way to it.

    Attributes:
        one, two: the blocks of the two cores.
        there, back: the matches of the sets of ``one``, and of ``two``.
        first, second: the places in ``one`` and in ``two`` of the loop or branch that leads on.
    """

    one: _FlagBlock
    two: _FlagBlock
    there: _Partners
    back: _Partners
    first: int
    second: int


def _flag_block(body: BlockItems, outer: _FlagBlock | None = None) -> _FlagBlock:
    """Collects the flags of a block and of those nested in it.

    Raises:
        _Unmatched: a flag's number is computed, or a flag is in a ``while`` loop or an else arm.
    """
    level, count, place = _FlagBlock(body, outer=outer, single_pipe=outer.single_pipe if outer is not None else set()), 0, 0
    items = {item.op: item for item in body.items}
    for op in body.block.ops:
        if isinstance(op, (hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp)):
            number = op.flag_id()
            if not isinstance(number, int) or not op.is_within_block():
                raise _Unmatched
            sets = isinstance(op, hivm.SyncBlockSetOp)
            producer, consumer = op.pipes()
            if not sets and consumer != "S":
                level.single_pipe.add(number)
            level.flags.append(_FlagOp(number, sets, producer if sets else consumer, count, place))
            place += 1
        elif op in items and any(_is_flag(inner) for inner in op.walk()):
            blocks = items[op].blocks
            in_else = any(_is_flag(inner) for region in op.regions[1:] for inner in region.walk())
            if not isinstance(op, (scf.ForOp, scf.IfOp)) or in_else:
                raise _Unmatched
            level.nested.append((place, _flag_block(blocks[0], level)))
            place += 1
        count += body.items_per_op[op]
    return level


def _is_flag(op: Operation) -> bool:
    return isinstance(op, (hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp, hivm.SyncBlockOp))


def _match_blocks(one: _FlagBlock, two: _FlagBlock, outstanding: Counter[tuple[bool, int]], found: dict[int, list[EventPair]],
                  same_indices: dict[SSAValue, SSAValue], outer: Sequence[_OuterPair]) -> None:
    """Match the flags of two blocks and of those nested in them, and collect the round trips.

    Args:
        one, two: the blocks, which the cores run at the same time.
        outstanding: the sets not yet waited for when the blocks start, by (whether ``one`` waits for them, flag).
        found: receives the round trips.
        same_indices: the induction variables of the loops around the two.
        outer: the pairs of blocks around them, outermost first.

    Raises:
        _Unmatched: the cores do not run through the same loops and branches, or one leaves flags.
    """
    one.outstanding = two.outstanding = outstanding
    there = _match_waits(one, two, outstanding, second_sets=False)
    back = _match_waits(two, one, outstanding, second_sets=True)
    found[id(one.body)] = list(_trips_within(one, there, back, two.single_pipe, is_second=False))
    found[id(two.body)] = list(_trips_within(two, back, there, one.single_pipe, is_second=True))
    for way in outer:
        found[id(one.body)] += _trips_outwards(there, way.one, way.back, way.second, is_second=False)
        found[id(two.body)] += _trips_outwards(back, way.two, way.there, way.first, is_second=True)
        found[id(way.one.body)] += _trips_inwards(one, back, way.one, way.there, way.first, way.second)
        found[id(way.two.body)] += _trips_inwards(two, there, way.two, way.back, way.second, way.first)
    if len(one.nested) != len(two.nested):
        raise _Unmatched
    for (first, inner), (second, other) in zip(one.nested, two.nested, strict=True):
        if not _run_alike(inner.body, other.body, same_indices):
            raise _Unmatched
        before = Counter(outstanding)
        for level, place in ((one, first), (two, second)):
            for flag in level.flags:
                if flag.place < place:
                    second_sets = flag.sets is (level is two)
                    before[second_sets, flag.number] += 1 if flag.sets else -1
        if min(before.values(), default=0) < 0:
            raise _Unmatched
        indices: dict[SSAValue, SSAValue] = dict(zip(inner.body.block.args, other.body.block.args, strict=True))
        _match_blocks(inner, other, before, found, {**same_indices, **indices},
                      [*outer, _OuterPair(one, two, there, back, first, second)])


def _match_waits(setter: _FlagBlock, waiter: _FlagBlock, outstanding: Mapping[tuple[bool, int], int], *, second_sets: bool
                 ) -> _Partners:
    """Returns which wait takes each set, for flags that are used in these two blocks alone.

    With one set outstanding before a loop, and one set and one wait in it, the wait of the next iteration takes the set.
    """
    sets, waits = _by_number(setter, sets=True), _by_number(waiter, sets=False)
    nested = {flag.number for level in (setter, waiter) for flag in level.nested_flags()}
    found: dict[_FlagOp, tuple[_FlagOp, int]] = {}
    for number in sorted({*sets, *waits}):
        mine, theirs = sets[number], waits[number]
        if setter.is_nested and len(mine) != len(theirs):
            raise _Unmatched
        if number in nested:
            continue
        for index, flag in enumerate(mine):
            later, taken = divmod(index + outstanding[second_sets, number], len(theirs)) if theirs else (1, 0)
            if setter.repeats or not later:
                found[flag] = theirs[taken], later
    return found


def _by_number(level: _FlagBlock, *, sets: bool) -> dict[int, list[_FlagOp]]:
    found: dict[int, list[_FlagOp]] = defaultdict(list)
    for flag in level.flags:
        if flag.sets is sets:
            found[flag.number].append(flag)
    return found


def _trips_within(mine: _FlagBlock, there: _Partners, back: _Partners, single_pipe: Container[int], *, is_second: bool
                  ) -> Iterator[EventPair]:
    """Yields the orders between work before a set and work after a wait in one block.

    If every flag is taken in the iteration of an outer loop in which it is set, work after the wait comes after all sets of
    earlier iterations of that loop, provided that the whole other core waited.

    Args:
        mine: the block.
        there: the matches of its sets.
        back: the matches of the other core's sets.
        single_pipe: the flags for which only a pipe of the other core waited.
        is_second: whether it is the second core's block.
    """
    count, repeats = len(mine.body.items), mine.repeats
    nearest: dict[tuple[Queue, Queue, int, int], tuple[int, BlockItems | None]] = {}
    for start, (arrival, out) in there.items():
        for answer, (end, home) in back.items():
            wraps = answer.place < arrival.place  # the other core answers in its next iteration
            if arrival.pipe not in ("S", answer.pipe) or (wraps and not repeats):
                continue
            trip = distance = out + wraps + home
            first, then = start.items - 1, end.items
            if repeats and first < 0:
                first, distance = count - 1, distance + 1
            if repeats and then == count:
                then, distance = 0, distance + 1
            if first >= 0 and then < count:
                flags = [(is_second, start.number), (not is_second, answer.number)]
                whole_core = start.number not in single_pipe or not any(mine.outstanding[flag] for flag in flags)
                at_edge = distance - trip  # the last iteration's or the first one's work is no part of such a trip
                token_loop = mine.token_loop(flags) if whole_core and (not at_edge or distance == 1) else None
                for target in _blocked_pipes(end):
                    key = start.pipe, target, first, then
                    known = nearest.get(key)
                    if known is None or distance < known[0]:
                        nearest[key] = distance, token_loop
    for (source, target, first, then), (distance, token_loop) in nearest.items():
        if mine.body.loop is not None or not distance:
            yield EventPair(source, target, first, then, distance, token_loop=token_loop if distance else None)
        elif distance == 1 and token_loop is not None:
            yield EventPair(source, target, first, then, distance, token_loop=token_loop)


def _trips_inwards(inner: _FlagBlock, back: _Partners, outer: _FlagBlock, there: _Partners, place: int, other_place: int
                   ) -> Iterator[EventPair]:
    """Yields the orders of trips that begin in a block around a loop or branch of both cores and end in that loop or branch.

    Args:
        inner: the block of the loop or branch.
        back: the matches of the flags that the other core sets in its own.
        outer: the block around it.
        there: the matches of the flags that the core sets in ``outer``.
        place: the place of the loop or branch in ``outer``.
        other_place: its place on the other core.
    """
    soonest: dict[tuple[Queue, Queue, int, int], int] = {}
    for start, (arrival, out) in there.items():
        distance, first = out + (arrival.place > other_place), start.items - 1
        if first < 0:
            distance, first = distance + 1, len(outer.body.items) - 1
        if outer.body.loop is None if distance else start.place > place:
            continue
        for answer, (end, home) in back.items():
            if not home and arrival.pipe in ("S", answer.pipe) and end.items < len(inner.body.items):
                for target in _blocked_pipes(end):
                    key = start.pipe, target, first, distance
                    soonest[key] = min(soonest.get(key, end.items), end.items)
    for (source, target, first, distance), then in soonest.items():
        yield EventPair(source, target, first, then, distance, inner_wait_block=inner.body)


def _trips_outwards(there: _Partners, outer: _FlagBlock, back: _Partners, other_place: int, *, is_second: bool
                    ) -> Iterator[EventPair]:
    """Yields the orders of trips that begin in a loop or branch of both cores and end in a block around it.

    Args:
        there: the matches of the flags that the core sets in the loop or branch.
        outer: the block around it.
        back: the matches of the flags that the other core sets in its own outer block.
        other_place: the place of the loop or branch there.
        is_second: whether the core is the second one.
    """
    body = outer.body
    soonest: dict[tuple[Queue, int, Queue], tuple[int, int]] = {}
    drained: set[tuple[Queue, int, Queue]] = set()
    for start, (arrival, out) in there.items():
        for answer, (end, home) in back.items():
            if out or start.items < 1 or arrival.pipe not in ("S", answer.pipe):
                continue
            distance, then = divmod((home + (answer.place < other_place)) * len(body.items) + end.items, len(body.items))
            if distance and body.loop is None:
                continue
            for target in _blocked_pipes(end):
                key = start.pipe, start.items - 1, target
                soonest[key] = min(soonest.get(key, (distance, then)), (distance, then))
                if answer.place > other_place and _is_drained_after(outer, end, first_waits=not is_second):
                    drained.add(key)
    for key, (distance, then) in soonest.items():
        source, start_at, target = key
        yield EventPair(source, target, start_at, then, distance, outer_wait_block=body, drains_loop=key in drained)


def _is_drained_after(loop: _FlagBlock, wait: _FlagOp, *, first_waits: bool) -> bool:
    """Whether the sets of a flag that a loop leaves outstanding are waited for directly after it.

    Args:
        loop: the block of the loop.
        wait: a wait for the flag in it.
        first_waits: whether the first core waits.
    """
    outer = loop.outer
    if outer is None or loop.body.loop is None:
        return False
    place = next(at for at, level in outer.nested if level is loop)
    item = next(index for index, one in enumerate(outer.body.items) if one.op is loop.body.loop)
    after = [flag for flag in outer.flags if not flag.sets and flag.number == wait.number and flag.place > place]
    return len(after) == loop.outstanding[first_waits, wait.number] and all(flag.items == item + 1 for flag in after)


def _blocked_pipes(wait: _FlagOp) -> Sequence[Queue]:
    """Returns the pipes that a wait blocks."""
    return PIPES if wait.pipe == "S" else (wait.pipe,)


def _run_alike(one: BlockItems, two: BlockItems, same_indices: Mapping[SSAValue, SSAValue]) -> bool:
    """Whether two loops surely have the same trip count, or two branches surely the same outcome.

    That is so if their bounds or conditions are equal constants, or are computed in the same way in both functions.
    """
    a, b = one.block.parent_op(), two.block.parent_op()
    if isinstance(a, scf.ForOp) and isinstance(b, scf.ForOp):
        return all(_is_same_value(x, y, same_indices) for x, y in ((a.lb, b.lb), (a.ub, b.ub), (a.step, b.step)))
    return isinstance(a, scf.IfOp) and isinstance(b, scf.IfOp) and _is_same_value(a.cond, b.cond, same_indices)


def _is_same_value(one: SSAValue, two: SSAValue, same_indices: Mapping[SSAValue, SSAValue]) -> bool:
    """Whether values of the two functions are the same value of the kernel."""
    a, b = one.owner, two.owner
    if isinstance(a, Block) or isinstance(b, Block):
        return same_indices.get(one) is two or (
            isinstance(one, BlockArgument) and isinstance(two, BlockArgument) and one.index == two.index
            and isinstance(one.owner.parent_op(), func.FuncOp) and isinstance(two.owner.parent_op(), func.FuncOp))
    return (a.name == b.name and not a.regions and a.properties == b.properties and len(a.operands) == len(b.operands)
            and all(_is_same_value(x, y, same_indices) for x, y in zip(a.operands, b.operands, strict=True)))
