"""Execution in another order than the program's: any order that events, flags and barriers allow.

The scalar unit of each core issues ops to the pipes. Each pipe starts its ops in order, and their results land in memory some
time later; an event, a flag or a barrier after the op waits for that. A schedule decides everything else: whether an op that
can run runs now, whether a result lands now, which core continues. A kernel with all necessary synchronisation computes the
same values under every schedule; one without shows a wrong number under some.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from tilelang_npu.errors import InternalError, TileError
from tilelang_npu.simulator.machine.core_coroutines import CoreId, Rendezvous
from tilelang_npu.simulator.machine.memory import POISON, Array
from tilelang_npu.simulator.machine.op_records import Access, CrossSet, Event, OpRecord, number_of
from tilelang_npu.simulator.time.cost import CostModel
from tilelang_npu.simulator.time.pipe_steps import (
    ALL,
    BARRIER,
    CROSS_SET,
    CROSS_WAIT,
    JOIN,
    PIPE,
    PIPES,
    RUN,
    SET,
    WAIT,
    Expansion,
    PipeStep,
)
from tilelang_npu.simulator.time.step_order import StepOrder

SCALAR = PIPE["S"]
_AT_ONCE = frozenset({PIPE["M"]})
"""Pipes whose results are visible to their next op; results of the scalar unit are, before it reads again."""
_DMA = frozenset({PIPE["MTE1"], PIPE["MTE2"], PIPE["MTE3"], PIPE["FIX"]})
Issued = tuple[Event, tuple[int, ...], Callable[..., None] | None, tuple[object, ...], tuple[Array, ...]]
Stores = Callable[[CoreId, str, str, Array], None]
REST = 100_000
"""Ops of a hanging core that are inspected for the set that would release it."""
Choice = tuple[int, int, str]
"""Core, pipe and action: ``issue`` its next op, ``run`` the next op of the pipe, ``land`` a result."""


class Policy(Protocol):
    """Decides between the possible next actions."""

    def choose(self, choices: Sequence[Choice]) -> Choice:
        """Returns the next action."""

    def which(self, count: int) -> int:
        """Returns which of a pipe's results lands next; 0 is the oldest."""


def policy(schedule: str) -> Policy:
    """Returns the policy of a schedule.

    Args:
        schedule: ``early``: everything runs as soon as it can; ``late``: an op runs only when others wait for it, loads and
            stores last; ``random:SEED``: some pipes run ahead of others, and which ones changes at random.

    Raises:
        TileError: T413, there is no such schedule.
    """
    if schedule == "early":
        return _Ranked(lambda one: (one[2] == "land", one[2] == "run"))
    if schedule == "late":
        return _Ranked(lambda one: (one[2] == "issue", one[2] == "run", one[1] not in _DMA))
    name, _, seed = schedule.partition(":")
    if name == "random" and seed.isdigit():
        return _Random(int(seed))
    raise TileError(f"there is no schedule {schedule!r}", code="T413", help="use late, early, or random:SEED with a number")


class _Ranked:
    """A fixed ranking of actions."""

    def __init__(self, rank: Callable[[Choice], tuple[bool, ...]]) -> None:
        self._rank = rank

    def choose(self, choices: Sequence[Choice]) -> Choice:
        return max(choices, key=self._rank)

    def which(self, count: int) -> int:
        return 0


class _Random:
    """Random priorities that change now and then, so that one pipe can run far ahead of another.

    In most seeds one pipe, or a third of the cores, always comes last: some races need a long chain of ops to run first.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._priority: dict[Choice, float] = {}
        last = self._random.randrange(len(PIPES) + 3)
        self._last_pipe = last if last < len(PIPES) else -1
        self._last_core = last - len(PIPES)

    def choose(self, choices: Sequence[Choice]) -> Choice:
        if self._random.random() < 1 / 24:
            self._priority.clear()
        for one in choices:
            if one not in self._priority:
                last = one[0] % 3 == self._last_core or (one[1] == self._last_pipe and one[2] != "issue")
                self._priority[one] = self._random.random() - last
        return max(choices, key=self._priority.__getitem__)

    def which(self, count: int) -> int:
        return self._random.randrange(count)


@dataclass
class SyncState:
    """The state of a core's synchronisation: the count of each event, by its pipes and number, and of each flag."""

    events: dict[tuple[int, int, int], int] = field(default_factory=dict)
    flags: dict[int, int] = field(default_factory=dict)


@dataclass
class _Op:
    """An issued op.

    Attributes:
        function, arguments: the call that runs it.
        views: its operands in the order of the record's accesses.
        record: its record.
    """

    function: Callable[..., None]
    arguments: list[object]
    views: tuple[Array, ...]
    record: OpRecord


class _Queued(NamedTuple):
    """A step in a pipe's queue, with its op; for ``JOIN``, ``goal`` is how many steps the other pipe must have done."""

    step: PipeStep
    op: _Op | None
    last_reads: tuple[int, ...]
    executes: bool
    goal: int


class _Landing(NamedTuple):
    """A result that has not landed, or a set (``fence``) that follows all results before it."""

    land: Callable[[], None]
    fence: bool = False


@dataclass
class _PipeQueue:
    queue: deque[_Queued] = field(default_factory=deque)
    landing: list[_Landing] = field(default_factory=list)
    issued: int = 0
    done: int = 0

    def land_all(self, policy: Policy) -> None:
        """Lands all results; the op that waits for them cannot know their order."""
        while self.landing:
            self.land_one(policy)

    def land_one(self, policy: Policy) -> None:
        """Lands one result: any of those before the first set, or the set if there are none."""
        free = next((place for place, one in enumerate(self.landing) if one.fence), len(self.landing))
        self.landing.pop(policy.which(free) if free else 0).land()


class StepParts(Expansion):
    """The steps of the events of one function, and what the op does in each."""

    def __init__(self, records: Sequence[OpRecord], costs: CostModel) -> None:
        super().__init__(records, costs)
        self._parts: dict[Event, list[tuple[PipeStep, tuple[int, ...], bool]]] = {}

    def parts(self, event: Event) -> list[tuple[PipeStep, tuple[int, ...], bool]]:
        """Returns the steps of an event, each with the operands that it reads last, and whether it is the one that writes."""
        found = self._parts.get(event)
        if found is None:
            steps = self.of(event)
            accesses = self.records[number_of(event)].accesses
            last = {index: place for place, step in enumerate(steps) for index in step.accesses}
            writers = [place for index, place in last.items() if accesses[index].writes]
            writer = max(writers or last.values(), default=-1)
            found = self._parts[event] = [
                (step, tuple(index for index, at in last.items() if at == place and place != writer), place == writer)
                for place, step in enumerate(steps)]
        return found


class SteppedCore:
    """A core whose ops a schedule runs.

    Args:
        identity: the core.
        code: the generator of its ops.
        expansion: the steps of its events.
        explained: returns the user's error for an exception of the generated code.
        left: the events and flags that are set; updated in place.
        stores: called with what ops write (core, pipe, memory, numbers), except temporaries and atomic updates of GM, and with
            what the ops of pipes other than M read (as memory ``read``).

    Attributes:
        events, gm: the record.
        expansion: as given.
    """

    def __init__(self, identity: CoreId, code: Generator[Issued, None, None], expansion: StepParts,
                 explained: Callable[[Exception], Exception], left: SyncState, stores: Stores | None = None) -> None:
        self.identity = identity
        self.pipes = [_PipeQueue() for _ in PIPES]
        self.tokens, self.flags = left.events, left.flags
        self.events: list[Event] = []
        self.gm: list[int] = []
        self.finished = False
        self.explained = explained
        self._stores = stores
        self._code = code
        self.expansion = expansion

    def issue(self) -> None:
        """Issues the next op of the program."""
        try:
            event, offsets, function, arguments, views = next(self._code)
        except StopIteration:
            self.finished = True
            return
        except Exception as error:
            told = self.explained(error)
            if told is error:
                raise
            raise told from None
        self.events.append(event)
        self.gm += offsets
        record = self.expansion.records[number_of(event)]
        op = None if function is None else _Op(function, list(arguments), views, record)
        for step, last_reads, executes in self.expansion.parts(event):
            pipe = SCALAR if step.pipe == ALL else step.pipe
            goal = self.pipes[step.other].issued if step.kind == JOIN else 0
            self.pipes[pipe].queue.append(_Queued(step, op, last_reads, executes, goal))
            self.pipes[pipe].issued += 1

    def issue_rest(self) -> None:
        """Issues the remaining ops of a hanging core, as far as that works."""
        with suppress(Exception):  # the values of a hanging core are meaningless, and so are its errors
            for _ in range(REST):
                if self.finished:
                    break
                self.issue()

    def can_issue(self) -> bool:
        """Whether the scalar unit waits for nothing."""
        return not self.finished and not self.pipes[SCALAR].queue

    def can_run(self, pipe: int) -> bool:
        """Whether the next step of a pipe can run."""
        queue = self.pipes[pipe].queue
        if not queue:
            return False
        kind, own, other, number = queue[0].step[:4]
        if kind == WAIT:
            return self.tokens.get((other, own, number), 0) > 0
        if kind == CROSS_WAIT:
            return self.flags.get(number, 0) > 0
        if kind == JOIN:
            return self.pipes[other].done >= queue[0].goal
        if kind == BARRIER and own == ALL:
            return not any(each.queue for place, each in enumerate(self.pipes) if place != SCALAR)
        return True

    def choices(self, place: int) -> list[Choice]:
        """Returns the possible actions of the core at a position."""
        found: list[Choice] = [(place, SCALAR, "issue")] if self.can_issue() else []
        for number, pipe in enumerate(self.pipes):
            if pipe.queue and self.can_run(number):
                found.append((place, number, "run"))
            if pipe.landing:
                found.append((place, number, "land"))
        return found

    def run(self, pipe: int, set_flag: Callable[[int, str], None], policy: Policy) -> None:
        """Runs the next step of a pipe."""
        here = self.pipes[pipe]
        item = here.queue.popleft()
        here.done += 1
        kind, own, other, number = item.step[:4]
        if kind == RUN:
            self._execute(here, pipe, item, policy)
        elif kind == SET:
            self._behind(here, pipe, lambda: self._count(own, other, number))
        elif kind == CROSS_SET:
            self._behind(here, pipe, lambda: set_flag(number, item.step.group))
        elif kind == WAIT:
            self.tokens[other, own, number] -= 1
        elif kind == CROSS_WAIT:
            self.flags[number] -= 1
        elif kind == JOIN:
            self.pipes[other].land_all(policy)
        elif own == ALL:
            for each in self.pipes:
                each.land_all(policy)
        else:
            here.land_all(policy)

    def _count(self, source: int, target: int, event: int) -> None:
        self.tokens[source, target, event] = self.tokens.get((source, target, event), 0) + 1

    def _behind(self, here: _PipeQueue, pipe: int, act: Callable[[], None]) -> None:
        """Acts once all results of the pipe so far have landed; later steps of the pipe do not wait for it."""
        if pipe in _AT_ONCE or not here.landing:
            act()
        else:
            here.landing.append(_Landing(act, fence=True))

    def _execute(self, here: _PipeQueue, pipe: int, item: _Queued, policy: Policy) -> None:
        op = item.op
        if pipe == SCALAR and op is None:
            here.land_all(policy)
        if op is None:
            return
        for index in item.last_reads:  # a macro reads operands on one pipe and uses them on another
            view = op.views[index]
            op.arguments = [_apart(value, view) for value in op.arguments]
        if not item.executes:
            return
        accesses = op.record.accesses
        writes = [view for access, view in zip(accesses, op.views, strict=True) if access.writes]
        try:
            if pipe in _AT_ONCE or any(access.reads and access.writes and access.memory == "gm" for access in accesses):
                call = op.function, tuple(op.arguments)
                if pipe in _AT_ONCE:
                    call[0](*call[1])
                    self._tell(pipe, accesses, writes)
                else:  # an atomic update combines with the value at the time of landing
                    here.landing.append(_Landing(lambda: call[0](*call[1])))
                return
            before = [view.copy() for view in writes]
            if self._stores is not None:
                for access, view in zip(accesses, op.views, strict=True):
                    if access.reads and not access.scratch:
                        self._stores(self.identity, PIPES[pipe], "read", view)
            op.function(*op.arguments)
            after = [view.copy() for view in writes]
            for access, made in zip([access for access in accesses if access.writes], after, strict=True):
                if access.scratch:
                    made.reshape(-1).view("u1").fill(POISON)
            self._tell(pipe, accesses, after)
        except Exception as error:
            told = self.explained(error)
            if told is error:
                raise
            raise told from None
        for view, old in zip(reversed(writes), reversed(before), strict=True):
            view[...] = old

        def land() -> None:
            for view, made in zip(writes, after, strict=True):
                view[...] = made

        here.landing.append(_Landing(land))

    def _tell(self, pipe: int, accesses: Sequence[Access], made: Sequence[Array]) -> None:
        """Passes the results of an op to ``stores``."""
        if self._stores is not None:
            for access, numbers in zip([access for access in accesses if access.writes], made, strict=True):
                if not access.scratch:
                    self._stores(self.identity, PIPES[pipe], access.memory, numbers)


def _apart(value: object, view: Array) -> object:
    """Returns an argument of an op, as a copy if it is an array that may share bytes with an operand."""
    return value.copy() if isinstance(value, np.ndarray) and np.may_share_memory(value, view) else value


def run_reordered(cores: Sequence[SteppedCore], policy: Policy) -> None:
    """Runs cores to their ends.

    Args:
        cores: the cores that run concurrently.
        policy: the policy.

    Raises:
        TileError: S301 to S303, they hang.
    """
    rendezvous = Rendezvous([core.identity for core in cores])
    place_of = {core.identity: place for place, core in enumerate(cores)}
    moved = set(place_of.values())  # cores whose possible actions have changed

    def setter(core: SteppedCore) -> Callable[[int, str], None]:
        def set_flag(flag: int, group: str) -> None:
            for receiver in rendezvous.arrive(core.identity, flag, group)[0]:
                moved.add(place_of[receiver])
                counts = cores[place_of[receiver]].flags
                counts[flag] = counts.get(flag, 0) + 1

        return set_flag

    setters = [setter(core) for core in cores]
    offered: list[list[Choice]] = [[] for _ in cores]
    while True:
        for place in moved:
            offered[place] = cores[place].choices(place)
        moved.clear()
        choices = [one for of_core in offered for one in of_core]
        if not choices:
            break
        place, number, what = policy.choose(choices)
        moved.add(place)
        core = cores[place]
        if what == "issue":
            core.issue()
        elif what == "run":
            core.run(number, setters[place], policy)
        else:
            core.pipes[number].land_one(policy)
    if any(not core.finished or any(pipe.queue for pipe in core.pipes) for core in cores):
        for core in cores:
            core.issue_rest()
        for together in _groups_of_flags(cores):
            StepOrder([core.identity for core in together], [core.events for core in together],
                      [core.expansion for core in together], 0)
        raise InternalError("a schedule hangs and program order does not")


def _groups_of_flags(cores: Sequence[SteppedCore]) -> list[list[SteppedCore]]:
    """Returns the groups of cores that can set flags for each other: those of a block, or all."""
    works = [record.work for core in cores for record in core.expansion.records]
    if any(isinstance(work, CrossSet) and work.group in ("kind", "all") for work in works):
        return [list(cores)]
    blocks: dict[int, list[SteppedCore]] = {}
    for core in cores:
        blocks.setdefault(core.identity.block, []).append(core)
    return list(blocks.values())
