"""Diagnosis of cores that hang: which event or flag each stuck pipe waits for, which op would set it, and what blocks that op.

:class:`~tilelang_npu.simulator.time.step_order.StepOrder` calls :func:`explain` if it cannot order the remaining steps. These
steps are in the queues of waiting pipes, or are not issued because the scalar unit waits. Each wait is in one of two cases: the
set that it needs is still to come but is blocked by another wait, which gives an edge of the wait-for graph; or the rest of the
program has no such set. A cycle in the graph is a deadlock (S301). Without a cycle, some wait has no set: no core sets the
event or flag again (S302), or only some of the cores do that must all set the flag or reach the barrier (S303).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tilelang_npu.errors import Location, TileError
from tilelang_npu.simulator.machine.core_coroutines import BARRIER_FLAG, CoreId, Rendezvous
from tilelang_npu.simulator.machine.op_records import OpRecord, number_of
from tilelang_npu.simulator.time.pipe_steps import CROSS_SET, CROSS_WAIT, INTERNAL, JOIN, RELEASE, SET, WAIT, PipeStep
from tilelang_npu.target.chip_data import PIPES

if TYPE_CHECKING:
    from tilelang_npu.diagnostic_codes import Code
    from tilelang_npu.simulator.time.step_order import CoreState, Ordered

_ROWS = 6
"""Maximum number of waits that an error lists; the error gives only the number of the others."""
_HELP: Mapping[Code, str] = {
    "S301": "move one of these sets before the wait that blocks it, or set one of these events or flags once before the loop",
    "S302": "give each wait a set that precedes it, with the same pipes and number, equally often, and on every path",
    "S303": "let each of these cores set the flag or reach the barrier, in every iteration and on every path",
}
Agent = tuple[int, int]
"""A pipe of a core: the position of the core among the cores that run concurrently, and the number of the pipe."""


class _Found(NamedTuple):
    """A set that is not executed yet: the waiting pipe that blocks it, and the record of the set's op."""

    agent: Agent
    record: OpRecord


@dataclass
class _Wait:
    """A pipe that waits for an event or flag.

    Attributes:
        agent: the core and the pipe.
        step: the wait.
        record: the record of the wait's op.
        iteration: how often the core had executed the op before.
        sets: for a flag, the number of sets that earlier waits have consumed; for an event, the number of sets that were
            executed.
        coming: the sets of the event or flag that are not executed yet.
        absent: the cores that should set the event or flag but do not set it again.
        arrived: for a flag that a group of cores must set: the cores that have set it.
        done: the positions in the step order of the sets that were made.
    """

    agent: Agent
    step: PipeStep
    record: OpRecord
    iteration: int
    sets: int = 0
    coming: list[_Found] = field(default_factory=list)
    absent: list[CoreId] = field(default_factory=list)
    arrived: list[CoreId] = field(default_factory=list)
    done: list[int] = field(default_factory=list)


def explain(cores: Sequence[CoreState], steps: Sequence[Ordered], rendezvous: Rendezvous) -> TileError:
    """Returns the error (S301, S302 or S303) that explains why some cores hang.

    Args:
        cores: the state of the cores when no further step could be executed.
        steps: the steps that were executed.
        rendezvous: the flags between cores that only some of the cores have set that must set them.
    """
    return _Graph(cores, steps, rendezvous).error()


class _Graph:
    """The wait-for graph of cores that hang: its nodes are waiting pipes, and an edge leads from a wait to the wait that blocks
    the set that it needs."""

    def __init__(self, cores: Sequence[CoreState], steps: Sequence[Ordered], rendezvous: Rendezvous) -> None:
        self.cores, self.steps, self.rendezvous = cores, steps, rendezvous
        self.blocks = sorted({core.identity.block for core in cores})
        self.waits: dict[Agent, _Wait] = {}
        for core in cores:
            for pipe, queue in enumerate(core.queues):
                if queue:
                    step, number = queue[0]
                    record = core.record(number)
                    before = sum(number_of(event) == record.number for event in core.stream[:number])
                    self.waits[core.place, pipe] = _Wait((core.place, pipe), step, record, before)
        for wait in self.waits.values():
            self._look(wait)

    # -- the graph -----------------------------------------------------------------------------------------------------

    def _look(self, wait: _Wait) -> None:
        """Fills in the fields of a wait that describe its sets: executed sets, sets still to come, and cores without a set."""
        core = self.cores[wait.agent[0]]
        kind, pipe, other, flag = wait.step[:4]
        if kind == WAIT:
            def is_set(step: PipeStep) -> bool:
                return step.kind == SET and step[1:4] == (other, pipe, flag)

            wait.done = [place for place, one in enumerate(self.steps) if one.core == core.place and is_set(one.step)]
            wait.sets = len(wait.done)
            found = self._next(core, is_set)
            if found is not None:
                wait.coming.append(found)
            else:
                wait.absent.append(core.identity)
        elif kind == CROSS_WAIT:
            self._look_across(wait, core, flag)
        elif kind == JOIN:
            found = self._next(core, lambda step: step.kind == RELEASE and step.pipe == other and step.number == flag)
            wait.coming += [found] if found is not None else []

    def _look_across(self, wait: _Wait, core: CoreState, flag: int) -> None:
        wait.sets = sum(1 for one in self.steps
                        if one.core == core.place and one.step.kind == CROSS_WAIT and one.step.number == flag)
        groups: dict[tuple[object, ...], tuple[str, tuple[CoreId, ...]]] = {}
        for other in self.cores:
            for group in other.groups(flag):
                key, members, receivers = self.rendezvous.group(other.identity, group)
                if core.identity in receivers:
                    groups[key] = group, members
        wait.done = [place for place, one in enumerate(self.steps) if one.step.kind == CROSS_SET and one.step.number == flag
                     and core.identity in self.rendezvous.group(self.cores[one.core].identity, one.step.group)[2]]
        place = {one.identity: one for one in self.cores}
        for key, (group, members) in groups.items():
            pending = self.rendezvous.pending(key, flag)
            for member in members:
                if pending.get(member):
                    wait.arrived.append(member)
                    continue
                found = self._next(place[member], lambda step, group=group: step.kind == CROSS_SET  # type: ignore[misc]
                                   and step.group == group and step.number == flag)  # mypy cannot type a lambda's default
                if found is not None:
                    wait.coming.append(found)
                else:
                    wait.absent.append(member)

    def _next(self, core: CoreState, wanted: Callable[[PipeStep], bool]) -> _Found | None:
        """Returns the core's next unexecuted step that fulfils a condition, with the pipe that blocks it; None if there is no
        such step."""
        for pipe, queue in enumerate(core.queues):
            for step, number in queue:
                if wanted(step):
                    return _Found((core.place, pipe), core.record(number))
        for number, step in core.unissued():
            if wanted(step):
                held = [pipe for pipe, queue in enumerate(core.queues) if queue]
                return _Found((core.place, held[0]), core.record(number))
        return None

    def _cycle(self) -> list[_Wait]:
        """Returns the waits of a cycle of the graph, beginning with that of the first core and pipe; empty if there is none."""
        state: dict[Agent, int] = {}

        def visit(agent: Agent, path: list[Agent]) -> list[Agent]:
            state[agent] = 1
            path.append(agent)
            for found in self.waits[agent].coming:
                known = state.get(found.agent)
                if known == 1:
                    return path[path.index(found.agent):]
                if known is None and (cycle := visit(found.agent, path)):
                    return cycle
            state[agent] = 2
            path.pop()
            return []

        for agent in self.waits:
            if agent not in state and (cycle := visit(agent, [])):
                first = min(range(len(cycle)), key=cycle.__getitem__)
                return [self.waits[one] for one in [*cycle[first:], *cycle[:first]]]
        return []

    # -- messages ------------------------------------------------------------------------------------------------------

    def error(self) -> TileError:
        """Returns the error for the hang, with a note for each wait."""
        cycle = self._cycle()
        roots = [wait for wait in self.waits.values() if wait.absent or not wait.coming]
        if cycle:
            code: Code = "S301"
            first = cycle
            names = self._joined([f"{self._agent(wait.agent)} ({self._line(wait.record)})" for wait in cycle])
            what = f"{names} " + ("waits for itself" if len(cycle) == 1 else "wait for each other")
        else:
            first = roots
            meeting = next((wait for wait in roots if wait.arrived), None)
            if meeting is not None:
                first = [meeting, *(wait for wait in roots if wait is not meeting)]
            code = "S303" if meeting is not None else "S302"
            what = self._unmet(first[0])
        rest = [wait for wait in self.waits.values() if all(wait is not one for one in first) and not _is_own(wait)]
        rows = self._rows([*first, *rest])
        if cycle:
            agents = [f"{self._agent(wait.agent)} ({self._line(wait.record)})" for wait in (*cycle, cycle[0])]
            rows.append(f"cycle: {' -> '.join(agents)}")
        near = "" if cycle else self._near(first[0])
        if near:
            rows.append(near)
        blocks = self.blocks if len(self.blocks) > 1 and code == "S303" else [self.cores[first[0].agent[0]].identity.block]
        where = f"block {blocks[0]}" if len(blocks) == 1 else f"blocks {blocks[0]} to {blocks[-1]}"
        return TileError(f"{where}: {what}", code=code, location=first[0].record.location, notes=tuple(rows), help=_HELP[code])

    def _unmet(self, wait: _Wait) -> str:
        """Returns the message of the error for a wait whose set is missing."""
        who, what = self._agent(wait.agent), self._thing(wait)
        if wait.step.kind == CROSS_WAIT and (wait.arrived or len(wait.absent) > 1):
            those = self._names(wait.absent)
            if wait.step.number >= BARRIER_FLAG:
                return f"{who} waits at a barrier that {those} never {'reaches' if len(wait.absent) == 1 else 'reach'}"
            again = " again" if wait.done else ""
            return f"{who} waits for {what}, which {those} never {'sets' if len(wait.absent) == 1 else 'set'}{again}"
        if not wait.done:
            return f"{who} waits for {what}, which nothing sets"
        return f"{who} waits for {what}, which is {_set(wait.sets)}; this is wait {wait.sets + 1}"

    def _rows(self, waits: Sequence[_Wait]) -> list[str]:
        """Returns a line of text for each wait, with aligned columns; cores that wait at the same op share a line."""
        kinds: dict[tuple[object, ...], list[_Wait]] = {}
        for wait in waits:
            core = self.cores[wait.agent[0]].identity
            kinds.setdefault((core.kind, wait.agent[1], wait.record.number, wait.step.number, wait.iteration, wait.sets,
                              len(wait.absent) > 0), []).append(wait)
        table = []
        for same in list(kinds.values())[:_ROWS]:
            wait = same[0]
            core = self.cores[wait.agent[0]].identity
            who = f"{core.label} {PIPES[wait.agent[1]]}"
            if len(self.blocks) > 1:
                who += f" of block {core.block}"
            if len(same) > 1:
                who += f" and {len(same) - 1} more"
            place = wait.record.location
            where = f"{place.file}:{place.line}" if place is not None else wait.record.name
            table.append((who, where, f"waits for {self._thing(wait)}", f"iteration {wait.iteration}", self._why(wait)))
        widths = [max(len(row[column]) for row in table) for column in range(4)]
        rows = ["  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[4]]) for row in table]
        if len(kinds) > _ROWS:
            rows.append(f"and {sum(map(len, list(kinds.values())[_ROWS:]))} more pipes that wait for these")
        return rows

    def _why(self, wait: _Wait) -> str:
        said = [f"{_set(wait.sets)}, this is wait {wait.sets + 1}"]
        places: dict[tuple[str, str], list[_Found]] = {}
        for found in wait.coming:
            places.setdefault((self._line(found.record), self._line(self.waits[found.agent].record)), []).append(found)
        for (here, place), same in list(places.items())[:2]:
            itself = "its own wait" if same[0].agent == wait.agent else "the wait"
            more = f" (and {len(same) - 1} more)" if len(same) > 1 else ""
            said.append(f"{self._agent(same[0].agent)}{more} sets it at {here}, after {itself} at {place}")
        if wait.absent and wait.sets and wait.done and not wait.arrived:
            last = self.steps[wait.done[-1]]
            said.append(f"the last set is at {self._line(self.cores[last.core].record(last.number))}")
        if wait.absent and wait.arrived:
            said.append(f"set by {self._names(wait.arrived)}, not by {self._names(wait.absent)}")
        return "; ".join(said)

    def _near(self, wait: _Wait) -> str:
        """Returns a note about a set that no wait consumes and that differs from the missing set in one detail, such as the
        number of the event; an empty text if there is no such set.
        """
        core = self.cores[wait.agent[0]]
        kind, pipe, other, flag = wait.step[:4]
        nearly: list[tuple[int, str]] = []
        for one in self.steps if kind == CROSS_WAIT and not wait.done else ():
            if one.step.kind == CROSS_SET and one.step.number == flag:
                setter = self.cores[one.core]
                those = [other.label for other in self.rendezvous.group(setter.identity, one.step.group)[2]]
                nearly.append((1, f"flag {flag} is set by {setter.identity.label} at {self._line(setter.record(one.number))}, "
                                  f"for {' and '.join(those[:2]) or 'no core'}"))
                break
        for key, tokens in core.tokens.items():
            if not tokens:
                continue
            earlier = self.steps[tokens[0][0]]
            place = self._line(self.cores[earlier.core].record(earlier.number))
            if kind == WAIT and isinstance(key, tuple) and key[2] < INTERNAL:
                source, target, event = key
                if (source, target) == (other, pipe):
                    nearly.append((0, f"EVENT_ID{event} of the same pipes is set at {place} and never waited for"))
                elif event == flag:
                    nearly.append((1, f"EVENT_ID{event} is set from {PIPES[source]} to {PIPES[target]} at {place} and never "
                                      f"waited for; the wait is for one from {PIPES[other]} to {PIPES[pipe]}"))
            elif kind == CROSS_WAIT and not isinstance(key, tuple):
                nearly.append((0, f"flag {key} is set for {core.identity.label} at {place} and never waited for"))
        return min(nearly)[1] if nearly else ""

    def _thing(self, wait: _Wait) -> str:
        kind, pipe, other, flag = wait.step[:4]
        if kind == JOIN:
            return f"the unit flags of {PIPES[other]}"
        if _is_own(wait):
            return f"the {PIPES[other]} of the same matmul"
        if kind == WAIT:
            return f"EVENT_ID{flag} from {PIPES[other]} to {PIPES[pipe]}"
        return f"flag {flag}" if flag < BARRIER_FLAG else "a barrier of cores"

    def _agent(self, agent: Agent) -> str:
        core = self.cores[agent[0]].identity
        return f"{PIPES[agent[1]]} of {core.label}" + (f" of block {core.block}" if len(self.blocks) > 1 else "")

    def _names(self, cores: Sequence[CoreId]) -> str:
        names = [core.label + (f" of block {core.block}" if len(self.blocks) > 1 else "") for core in cores]
        return self._joined(names[:3] + ([f"{len(names) - 3} others"] if len(names) > 3 else []))

    @staticmethod
    def _joined(names: Sequence[str]) -> str:
        return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]

    @staticmethod
    def _line(record: OpRecord) -> str:
        place: Location | None = record.location
        return f"line {place.line}" if place is not None else record.mnemonic


def _is_own(wait: _Wait) -> bool:
    """Whether a wait is for one of the internal events by which a matmul macro orders its own steps."""
    return bool(wait.step.kind == WAIT and wait.step.number >= INTERNAL)


def _set(count: int) -> str:
    return {0: "never set", 1: "set once", 2: "set twice"}.get(count, f"set {count} times")
