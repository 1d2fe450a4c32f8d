"""Execution of ops in other orders than the program's, by a schedule: any order that events, flags and barriers allow.

The scalar unit of each core issues ops to the pipes. Each pipe runs its ops in order. The result of an op *lands*, which means
that it is written to memory, at some time after the op has run, and before an event, flag or barrier that follows the op takes
effect. A schedule decides everything else: whether an op that can run does so now, whether a result lands now, which core
continues. A kernel with all necessary synchronisation computes the same values under every schedule. A kernel that lacks some
synchronisation computes wrong values under some schedules.
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
    RELEASE,
    RUN,
    SET,
    WAIT,
    Expansion,
    PipeStep,
)
from tilelang_npu.simulator.time.step_order import StepOrder
from tilelang_npu.target.chip_data import PIPES

SCALAR = PIPE["S"]
_AT_ONCE = frozenset({PIPE["M"]})
"""Pipes whose results land before their next op runs. Those of the scalar unit land before it reads again."""
_DMA = frozenset({PIPE["MTE1"], PIPE["MTE2"], PIPE["MTE3"], PIPE["FIX"]})
Issued = tuple[Event, tuple[int, ...], Callable[..., None] | None, tuple[object, ...], tuple[Array, ...]]
Stores = Callable[[CoreId, str, str, Array], None]
REST = 100_000
"""Limit of the ops that a hanging core still issues, to find the set that would end its wait."""
Choice = tuple[int, int, str]
"""An action: the position of a core, the number of a pipe, and ``issue`` (the core issues its next op), ``run`` (the pipe runs
its next step) or ``land`` (a result of the pipe lands)."""


class Policy(Protocol):
    """Decides which of the possible actions of all cores is executed next. Each schedule (:func:`policy`) is an
    implementation.
    """

    def choose(self, choices: Sequence[Choice]) -> Choice:
        """Returns one of the actions that are possible now; it is executed next."""

    def which(self, count: int) -> int:
        """Returns which of the ``count`` results of a pipe that have not landed lands next; 0 is the oldest result."""


def policy(schedule: str) -> Policy:
    """Returns the policy of a schedule.

    Args:
        schedule: ``early``: results land and ops run as soon as they can. ``late``: ops run only when no op can be issued, and
            results land only when no op can run; among the ops, and among the results, loads and stores come last.
            ``random:SEED``: actions have random priorities that change now and then, so that some pipes run many ops before
            other pipes run theirs.

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
    """A policy that chooses the possible action with the highest rank; results of a pipe land in order, the oldest first."""

    def __init__(self, rank: Callable[[Choice], tuple[bool, ...]]) -> None:
        self._rank = rank

    def choose(self, choices: Sequence[Choice]) -> Choice:
        return max(choices, key=self._rank)

    def which(self, count: int) -> int:
        return 0


class _Random:
    """A policy with random priorities that change now and then, so that one pipe can run many ops before another runs any.

    With most seeds one pipe, or a third of the cores, always has the lowest priority, because some races appear only if a long
    chain of other ops runs first.
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
    """The events and flags that are set on a core.

    Attributes:
        events: for each event, the number of its sets that no wait has consumed. The key is the number of the setting pipe, the
            number of the waiting pipe, and the number of the event.
        flags: for each flag between cores, by its number, the number of its sets that no wait has consumed.
    """

    events: dict[tuple[int, int, int], int] = field(default_factory=dict)
    flags: dict[int, int] = field(default_factory=dict)


@dataclass
class _Op:
    """An issued op.

    Attributes:
        function, arguments: the function that runs the op, and its arguments.
        views: the arrays of the op's operands, in the order of the record's accesses.
        record: the record of the op.
    """

    function: Callable[..., None]
    arguments: list[object]
    views: tuple[Array, ...]
    record: OpRecord


class _Queued(NamedTuple):
    """A step in a pipe's queue.

    Attributes:
        step: the step.
        op: the op that the step belongs to; None for an op without operands.
        last_reads: the positions of the op's operands that no later step of the op accesses.
        executes: whether the function of the op runs in this step.
        goal: for ``JOIN``, the number of steps of the other pipe up to its last release of one of the blocks.
    """

    step: PipeStep
    op: _Op | None
    last_reads: tuple[int, ...]
    executes: bool
    goal: int


class _Landing(NamedTuple):
    """A result that has not landed, or a set that takes effect after all earlier results of the pipe have landed.

    Attributes:
        land: writes the result to memory, or makes the set take effect.
        fence: whether this is a set.
    """

    land: Callable[[], None]
    fence: bool = False


@dataclass
class _PipeQueue:
    queue: deque[_Queued] = field(default_factory=deque)
    landing: list[_Landing] = field(default_factory=list)
    issued: int = 0
    done: int = 0

    def land_all(self, policy: Policy) -> None:
        """Lands all results in an order that the policy chooses."""
        while self.landing:
            self.land_one(policy)

    def land_one(self, policy: Policy) -> None:
        """Lands one result before the first set, which the policy chooses; if there is none, lets the set take effect."""
        free = next((place for place, one in enumerate(self.landing) if one.fence), len(self.landing))
        self.landing.pop(policy.which(free) if free else 0).land()


class StepParts(Expansion):
    """The steps of the events of one device function, and in which step of an op its function runs.

    Args:
        records: the records of the function.
        costs: the cost model, which computes the steps.
    """

    def __init__(self, records: Sequence[OpRecord], costs: CostModel) -> None:
        super().__init__(records, costs)
        self._parts: dict[Event, list[tuple[PipeStep, tuple[int, ...], bool]]] = {}

    def parts(self, event: Event) -> list[tuple[PipeStep, tuple[int, ...], bool]]:
        """Returns the steps of an event.

        Returns:
            for each step: the step, the positions of the operands that no later step accesses, and whether the op's function
            runs in this step. The function runs in the last step that writes an operand or, if no step writes, in the last step
            that accesses one; for this step the positions are empty.
        """
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
    """A core whose ops a schedule runs one by one.

    Args:
        identity: the core and its block.
        code: the generator that yields the core's ops.
        expansion: the steps of the events of the core's function.
        explained: returns the error to raise for an exception of the generated code.
        left: the events and flags that are set on the core; updated in place.
        stores: a function that is called for each operand that an op writes, except temporaries and atomic updates of GM, with
            the core, the pipe, the memory and the values. It is also called for each operand that an op of a pipe other than M
            reads, with ``read`` in place of the memory. None for no calls.

    Attributes:
        identity, explained, expansion: the arguments of the same name.
        pipes: the queues of the pipes.
        tokens, flags: the events and flags that are set, as in ``SyncState``.
        events, gm: the events and GM offsets of the ops issued so far.
        finished: whether the core has issued all its ops.
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
        self._released: list[list[tuple[int, int]]] = [[] for _ in PIPES]
        self._code = code
        self.expansion = expansion

    def issue(self) -> None:
        """Issues the next op of the program: appends its steps to the queues of their pipes, and its event to the record."""
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
            goal = 0
            if step.kind == JOIN:
                goal = max((count for blocks, count in self._released[step.other] if blocks & step.blocks), default=0)
            elif step.kind == RELEASE:
                before = [(blocks & ~step.blocks, count) for blocks, count in self._released[pipe] if blocks & ~step.blocks]
                self._released[pipe] = [*before, (step.blocks, self.pipes[pipe].issued)]
            self.pipes[pipe].queue.append(_Queued(step, op, last_reads, executes, goal))
            self.pipes[pipe].issued += 1

    def issue_rest(self) -> None:
        """Issues up to ``REST`` further ops of a hanging core, until an error occurs."""
        with suppress(Exception):  # the values of a hanging core are meaningless, and so are its errors
            for _ in range(REST):
                if self.finished:
                    break
                self.issue()

    def can_issue(self) -> bool:
        """Whether the scalar unit can issue the next op: the core has one, and no step of the scalar unit is pending."""
        return not self.finished and not self.pipes[SCALAR].queue

    def can_run(self, pipe: int) -> bool:
        """Whether the next step in the queue of a pipe can run now: a wait only if its event or flag is set.

        Args:
            pipe: the number of the pipe.
        """
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
        """Returns the actions of the core that are possible now.

        Args:
            place: the position of the core, which each action contains.
        """
        found: list[Choice] = [(place, SCALAR, "issue")] if self.can_issue() else []
        for number, pipe in enumerate(self.pipes):
            if pipe.queue and self.can_run(number):
                found.append((place, number, "run"))
            if pipe.landing:
                found.append((place, number, "land"))
        return found

    def run(self, pipe: int, set_flag: Callable[[int, str], None], policy: Policy) -> None:
        """Runs the next step in the queue of a pipe, which must be able to run.

        Args:
            pipe: the number of the pipe.
            set_flag: sets a flag between cores, given its number and the group of cores.
            policy: decides the order of results that land because a step waits for them.
        """
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
        elif kind == RELEASE:
            pass
        elif own == ALL:
            for each in self.pipes:
                each.land_all(policy)
        else:
            here.land_all(policy)

    def _count(self, source: int, target: int, event: int) -> None:
        self.tokens[source, target, event] = self.tokens.get((source, target, event), 0) + 1

    def _behind(self, here: _PipeQueue, pipe: int, act: Callable[[], None]) -> None:
        """Calls ``act`` once all results that the pipe has computed so far have landed; later steps of the pipe do not wait."""
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
        """Passes the values that an op writes to the function ``stores``."""
        if self._stores is not None:
            for access, numbers in zip([access for access in accesses if access.writes], made, strict=True):
                if not access.scratch:
                    self._stores(self.identity, PIPES[pipe], access.memory, numbers)


def _apart(value: object, view: Array) -> object:
    """Returns an argument of an op's function; returns a copy if it is an array that possibly has bytes in common with
    ``view``.
    """
    return value.copy() if isinstance(value, np.ndarray) and np.may_share_memory(value, view) else value


def run_reordered(cores: Sequence[SteppedCore], policy: Policy) -> None:
    """Runs cores until all ops have run and all results have landed.

    Args:
        cores: the cores, which run concurrently.
        policy: decides the order of actions.

    Raises:
        TileError: S301 to S303, the cores hang.
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
    """Returns the groups of cores within which cores can set flags for each other: the cores of each block, or all cores."""
    works = [record.work for core in cores for record in core.expansion.records]
    if any(isinstance(work, CrossSet) and work.group in ("kind", "all") for work in works):
        return [list(cores)]
    blocks: dict[int, list[SteppedCore]] = {}
    for core in cores:
        blocks.setdefault(core.identity.block, []).append(core)
    return list(blocks.values())
