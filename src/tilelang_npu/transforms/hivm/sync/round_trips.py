"""What a core's flags to the other core and back order on the core itself.

A flag that a pipe sets is waited for on the other core; what that core issues behind the wait, a flag back included, comes
later, and so does what the first core issues behind its wait for that. Flags count: the n-th wait for one takes its n-th set.
So sets and waits are matched where the two cores run through the same loops and branches, each of them with as many sets of a
flag as waits for it. Where that is not plain to see (computed numbers, loops of two lengths, branches on two conditions),
nothing is claimed. What leads from one time that a branch is taken to the next one says nothing of the iterations between
them: it is an event of the branch that a loop around it holds. A branch or a loop of both cores may also be where a trip ends
that begins in a block around it, in front or some iterations before; and where one begins that ends there, some iterations
later, or behind that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.transforms.hivm.sync.cover import PIPES, EventPair
from tilelang_npu.transforms.hivm.sync.items import BlockItems


@dataclass(frozen=True)
class _Flag:
    """A set of a flag, or a wait for one.

    Attributes:
        number: which flag.
        sets: whether it is a set.
        pipe: the pipe that sets, or waits.
        items: items of the block in front of it.
        place: its place among the block's flags and loops.
    """

    number: int
    sets: bool
    pipe: str
    items: int
    place: int


@dataclass
class _Level:
    """A block with its flags, and the loops and branches in it that have some.

    Attributes:
        body: the block.
        flags: its own.
        loops: the loops and branches, each with its place among the flags.
        around: the level that it is in.
        single: the flags that a pipe of its core waits for, and not the scalar unit, which issues for all.
        held: sets not yet waited for when it starts, by whether they are the second core's, and their flag.
    """

    body: BlockItems
    flags: list[_Flag] = field(default_factory=list)
    loops: list[tuple[int, _Level]] = field(default_factory=list)
    around: _Level | None = None
    single: set[int] = field(default_factory=set)
    held: Counter[tuple[bool, int]] = field(default_factory=Counter)

    @property
    def again(self) -> bool:
        """Whether it runs more than once."""
        return self.body.loop is not None or (self.around is not None and self.around.again)

    @property
    def nests(self) -> bool:
        """Whether it is a loop or a branch."""
        return isinstance(self.body.block.parent_op(), (scf.ForOp, scf.IfOp))

    def holder(self, flags: Sequence[tuple[bool, int]]) -> BlockItems | None:
        """The body of the outermost loop around it from whose one iteration to the next none of some flags is left over.

        Where some are outstanding in front of it, they are taken behind it.
        """
        level, found = self.around, None
        while level is not None and not any(level.held[flag] for flag in flags):
            found = level.body if level.body.loop is not None else found
            level = level.around
        return found

    def nested(self) -> Iterator[_Flag]:
        """The flags of the loops and branches."""
        for _, level in self.loops:
            yield from level.flags
            yield from level.nested()


class _NotPlain(Exception):
    """The flags of the two cores cannot be matched."""


def round_trips(first: BlockItems, second: BlockItems) -> dict[int, list[EventPair]]:
    """What round trips order in the blocks of two functions, by the block's ``id``.

    Args:
        first, second: the items of the Cube's function and of the Vector's.
    """
    found: dict[int, list[EventPair]] = {}
    try:
        _match(_levels(first), _levels(second), Counter(), found, {}, [])
    except _NotPlain:
        return {}
    return found


_Partners = Mapping[_Flag, tuple[_Flag, int]]
"""The wait that takes each set of a level, and how many iterations later."""


@dataclass(frozen=True)
class _Passage:
    """From one level into another one that is in it: the level of each core, its flags, and the places of what leads on."""

    one: _Level
    two: _Level
    there: _Partners
    back: _Partners
    first: int
    second: int


def _levels(body: BlockItems, around: _Level | None = None) -> _Level:
    level, count, place = _Level(body, around=around, single=around.single if around is not None else set()), 0, 0
    items = {item.op: item for item in body.items}
    for op in body.block.ops:
        if isinstance(op, (hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp)):
            number = op.flag_id()
            if not isinstance(number, int) or not op.is_within_block():
                raise _NotPlain
            sets = isinstance(op, hivm.SyncBlockSetOp)
            producer, consumer = op.pipes()
            if not sets and consumer != "S":
                level.single.add(number)
            level.flags.append(_Flag(number, sets, producer if sets else consumer, count, place))
            place += 1
        elif op in items and any(_is_flag(inner) for inner in op.walk()):
            blocks = items[op].blocks
            otherwise = any(_is_flag(inner) for region in op.regions[1:] for inner in region.walk())
            if not isinstance(op, (scf.ForOp, scf.IfOp)) or otherwise:
                raise _NotPlain
            level.loops.append((place, _levels(blocks[0], level)))
            place += 1
        count += body.counts[op]
    return level


def _is_flag(op: Operation) -> bool:
    return isinstance(op, (hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp, hivm.SyncBlockOp))


def _match(one: _Level, two: _Level, held: Counter[tuple[bool, int]], found: dict[int, list[EventPair]],
           alike: dict[SSAValue, SSAValue], around: Sequence[_Passage]) -> None:
    """Match the flags of a level and of its loops and branches: those from ``one`` to ``two``, and those back.

    Args:
        one, two: what the cores run through together.
        held: sets not yet waited for when the level starts, by whether ``one`` waits for them, and their flag.
        found: takes the round trips.
        alike: the indices of the loops around the two.
        around: the levels around them, outermost first.

    Raises:
        _NotPlain: the cores do not run through the same loops and branches, or one leaves flags.
    """
    one.held = two.held = held
    there, back = _partners(one, two, held, back=False), _partners(two, one, held, back=True)
    found[id(one.body)] = list(_trips(one, there, back, two.single, second=False))
    found[id(two.body)] = list(_trips(two, back, there, one.single, second=True))
    for way in around:
        found[id(one.body)] += _trips_out(there, way.one, way.back, way.second, second=False)
        found[id(two.body)] += _trips_out(back, way.two, way.there, way.first, second=True)
        found[id(way.one.body)] += _trips_into(one, back, way.one, way.there, way.first, way.second)
        found[id(way.two.body)] += _trips_into(two, there, way.two, way.back, way.second, way.first)
    if len(one.loops) != len(two.loops):
        raise _NotPlain
    for (first, inner), (second, other) in zip(one.loops, two.loops, strict=True):
        if not _same_runs(inner.body, other.body, alike):
            raise _NotPlain
        before = Counter(held)
        for level, place in ((one, first), (two, second)):
            for flag in level.flags:
                if flag.place < place:
                    returns = flag.sets is (level is two)
                    before[returns, flag.number] += 1 if flag.sets else -1
        if min(before.values(), default=0) < 0:
            raise _NotPlain
        indices: dict[SSAValue, SSAValue] = dict(zip(inner.body.block.args, other.body.block.args, strict=True))
        _match(inner, other, before, found, {**alike, **indices}, [*around, _Passage(one, two, there, back, first, second)])


def _partners(setter: _Level, waiter: _Level, held: Mapping[tuple[bool, int], int],
              *, back: bool) -> _Partners:
    sets, waits = _by_number(setter, sets=True), _by_number(waiter, sets=False)
    nested = {flag.number for level in (setter, waiter) for flag in level.nested()}
    found: dict[_Flag, tuple[_Flag, int]] = {}
    for number in sorted({*sets, *waits}):
        mine, theirs = sets[number], waits[number]
        if setter.nests and len(mine) != len(theirs):
            raise _NotPlain
        if number in nested:
            continue
        for index, flag in enumerate(mine):
            later, taken = divmod(index + held[back, number], len(theirs)) if theirs else (1, 0)
            if setter.again or not later:
                found[flag] = theirs[taken], later
    return found


def _by_number(level: _Level, *, sets: bool) -> dict[int, list[_Flag]]:
    found: dict[int, list[_Flag]] = defaultdict(list)
    for flag in level.flags:
        if flag.sets is sets:
            found[flag.number].append(flag)
    return found


def _trips(mine: _Level, there: _Partners, back: _Partners,
           single: Container[int], *, second: bool) -> Iterator[EventPair]:
    """What the round trips from one core order there: work in front of a set, and work behind a wait.

    Where every flag is taken in the iteration of a loop further out in which it is set, what is behind a wait comes behind all
    sets of the iterations of that loop before, if all of the other core waited (``single``: the flags of which one pipe did).
    """
    count, loop = len(mine.body.items), mine.again
    nearest: dict[tuple[str, str, int, int], tuple[int, BlockItems | None]] = {}
    for start, (arrival, out) in there.items():
        for answer, (end, home) in back.items():
            turn = answer.place < arrival.place
            if arrival.pipe not in ("S", answer.pipe) or (turn and not loop):
                continue
            trip = distance = out + turn + home
            first, then = start.items - 1, end.items
            if loop and first < 0:
                first, distance = count - 1, distance + 1
            if loop and then == count:
                then, distance = 0, distance + 1
            if first >= 0 and then < count:
                flags = [(second, start.number), (not second, answer.number)]
                held_up = start.number not in single or not any(mine.held[flag] for flag in flags)
                at_edge = distance - trip  # what the last iteration does, or the first one, is no part of such a trip
                holder = mine.holder(flags) if held_up and (not at_edge or distance == 1) else None
                for target in _held(end):
                    key = start.pipe, target, first, then
                    known = nearest.get(key)
                    if known is None or distance < known[0]:
                        nearest[key] = distance, holder
    for (source, target, first, then), (distance, holder) in nearest.items():
        if mine.body.loop is not None or not distance:
            yield EventPair(source, target, first, then, distance, 1, None, holder=holder if distance else None)
        elif distance == 1 and holder is not None:
            yield EventPair(source, target, first, then, distance, 1, None, holder=holder)


def _trips_into(inner: _Level, back: _Partners, around: _Level, there: _Partners, place: int, other: int
                ) -> Iterator[EventPair]:
    """What the round trips order that begin in a block around a loop or branch of both cores, and end in that: events whose
    waits stand there.

    Args:
        inner: the loop or branch.
        back: the flags that the other core sets in its own, and how many iterations later they are waited for.
        around: the level around it.
        there: those that the core sets there.
        place: where what leads to the loop or branch is among the flags there.
        other: where it is on the other core.
    """
    soonest: dict[tuple[str, str, int, int], int] = {}
    for start, (arrival, out) in there.items():
        distance, first = out + (arrival.place > other), start.items - 1
        if first < 0:
            distance, first = distance + 1, len(around.body.items) - 1
        if around.body.loop is None if distance else start.place > place:
            continue
        for answer, (end, home) in back.items():
            if not home and arrival.pipe in ("S", answer.pipe) and end.items < len(inner.body.items):
                for target in _held(end):
                    key = start.pipe, target, first, distance
                    soonest[key] = min(soonest.get(key, end.items), end.items)
    for (source, target, first, distance), then in soonest.items():
        yield EventPair(source, target, first, then, distance, 1, None, into=inner.body)


def _trips_out(there: _Partners, around: _Level, back: _Partners, place: int, *, second: bool) -> Iterator[EventPair]:
    """What the round trips order that begin in a loop or branch of both cores, and end in a block around it: events whose waits
    stand there.

    Args:
        there: the flags that the core sets in the loop or branch.
        around: the level around it.
        back: those that the other core sets there, and how many iterations later they are waited for.
        place: where the other core's loop or branch is among its flags there.
        second: whether the core is the second one.
    """
    body = around.body
    soonest: dict[tuple[str, int, str], tuple[int, int]] = {}
    drained: set[tuple[str, int, str]] = set()
    for start, (arrival, out) in there.items():
        for answer, (end, home) in back.items():
            if out or start.items < 1 or arrival.pipe not in ("S", answer.pipe):
                continue
            distance, then = divmod((home + (answer.place < place)) * len(body.items) + end.items, len(body.items))
            if distance and body.loop is None:
                continue
            for target in _held(end):
                key = start.pipe, start.items - 1, target
                soonest[key] = min(soonest.get(key, (distance, then)), (distance, then))
                if answer.place > place and _drained(around, end, first=not second):
                    drained.add(key)
    for key, (distance, then) in soonest.items():
        source, start_at, target = key
        yield EventPair(source, target, start_at, then, distance, 1, None, out=body, drained=key in drained)


def _drained(loop: _Level, wait: _Flag, *, first: bool) -> bool:
    """Whether the sets of a flag that a loop leaves are waited for right behind it.

    Args:
        loop: the loop.
        wait: a wait for the flag in it.
        first: whether it is the first core that waits.
    """
    around = loop.around
    if around is None or loop.body.loop is None:
        return False
    place = next(at for at, level in around.loops if level is loop)
    item = next(index for index, one in enumerate(around.body.items) if one.op is loop.body.loop)
    behind = [flag for flag in around.flags if not flag.sets and flag.number == wait.number and flag.place > place]
    return len(behind) == loop.held[first, wait.number] and all(flag.items == item + 1 for flag in behind)


def _held(wait: _Flag) -> Sequence[str]:
    """The pipes that a wait holds."""
    return PIPES if wait.pipe == "S" else (wait.pipe,)


def _same_runs(one: BlockItems, two: BlockItems, alike: Mapping[SSAValue, SSAValue]) -> bool:
    """Whether two loops run equally often, or two branches are taken alike: by the same constants, or numbers that are found in
    the same way."""
    a, b = one.block.parent_op(), two.block.parent_op()
    if isinstance(a, scf.ForOp) and isinstance(b, scf.ForOp):
        return all(_same(x, y, alike) for x, y in ((a.lb, b.lb), (a.ub, b.ub), (a.step, b.step)))
    return isinstance(a, scf.IfOp) and isinstance(b, scf.IfOp) and _same(a.cond, b.cond, alike)


def _same(one: SSAValue, two: SSAValue, alike: Mapping[SSAValue, SSAValue]) -> bool:
    """Whether two values of the two functions are one value of the kernel."""
    a, b = one.owner, two.owner
    if isinstance(a, Block) or isinstance(b, Block):
        return alike.get(one) is two or (
            isinstance(one, BlockArgument) and isinstance(two, BlockArgument) and one.index == two.index
            and isinstance(one.owner.parent_op(), func.FuncOp) and isinstance(two.owner.parent_op(), func.FuncOp))
    return (a.name == b.name and not a.regions and a.properties == b.properties and len(a.operands) == len(b.operands)
            and all(_same(x, y, alike) for x, y in zip(a.operands, b.operands, strict=True)))
