"""Explores all orders of a small program exhaustively; the results of the vector clocks are compared with it.

It shares no code with the package, only the representation of a program: a list of ops for each core, each a tuple.

====================================  =================================================================================
``("run", pipe, reads, writes)``      the pipe starts it in order; its writes become visible later (on S and M at once)
``("set", pipe, to, event)``          happens when all started ops of the pipe are visible; the pipe continues meanwhile
``("wait", pipe, source, event)``     blocks the pipe until the k-th such wait has its k-th set
``("barrier", pipe)``                 blocks the pipe, or with ``ALL`` the core, until its writes are visible
``("cross_set", pipe, flag)``         like ``set``, for the other kind of core: an AIC for all AIVs, all AIVs for the AIC
``("cross_wait", pipe, flag)``        blocks the pipe until its core has an unused set of the flag
====================================  =================================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

Op = tuple[Any, ...]
SEES_ITS_OWN = ("S", "M")
"""Pipes whose ops see the writes of earlier ops of the same pipe before these are visible to others."""


class Seen(NamedTuple):
    """The results of all orders.

    Attributes:
        races: pairs of ops ``(core, number)`` that access a common byte, at least one writing, in either order.
        hangs: whether some order deadlocks.
        states: the number of states.
    """

    races: frozenset[tuple[tuple[int, int], tuple[int, int]]]
    hangs: bool
    states: int


class Explorer:
    """Args: the cores' kinds (``AIC`` or ``AIV``) and their programs."""

    def __init__(self, kinds: list[str], programs: list[list[Op]], limit: int = 12_000):
        self.kinds, self.programs, self.limit = kinds, programs, limit
        self.before: set[tuple[tuple[int, int], tuple[int, int]]] = set()
        self.conflicts: dict[tuple[int, int], list[tuple[int, int]]] = {}
        runs = [(core, number) for core, program in enumerate(programs) for number, op in enumerate(program) if op[0] == "run"]
        for one in runs:
            self.conflicts[one] = [other for other in runs if other != one and self._clash(one, other)]

    def _op(self, place: tuple[int, int]) -> Op:
        return self.programs[place[0]][place[1]]

    def _clash(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        _, _, reads, writes = self._op(one)
        _, _, others_reads, others_writes = self._op(other)
        return bool(writes & (others_reads | others_writes) or reads & others_writes)

    def explore(self) -> Seen | None:
        """Returns the results; None if there are too many states."""
        # a state: for each core the position of S, the queue and the pending writes of each pipe; tokens; flags; partial sets
        start = (tuple((0, (), ()) for _ in self.programs), (), (), ())
        known, pending, hangs = {start}, [start], False
        while pending:
            state = pending.pop()
            following = self._steps(state)
            if not following and any(core[1] or core[0] < len(program)
                                     for core, program in zip(state[0], self.programs, strict=True)):
                hangs = True
            for each in following:
                if each not in known:
                    known.add(each)
                    pending.append(each)
            if len(known) > self.limit:
                return None
        races = {(one, other) for one, other in self.before if (other, one) in self.before}
        return Seen(frozenset(races), hangs, len(known))

    def _steps(self, state: Any) -> list[Any]:
        cores, tokens, flags, parts = state
        made = []
        for number, (issued, queued, flying) in enumerate(cores):
            program = self.programs[number]
            held = any(program[at][1] in ("S", "ALL") for at in queued)
            if issued < len(program) and not held:
                made.append(self._with(state, number, (issued + 1, (*queued, issued), flying)))
            heads = {}
            for at in queued:
                heads.setdefault("S" if program[at][1] == "ALL" else program[at][1], at)
            for at in heads.values():
                after = self._run(state, number, at)
                if after is not None:
                    made.append(after)
            for place, at in enumerate(flying):
                if self._may_land(program, flying, place):
                    left = flying[:place] + flying[place + 1:]
                    made.append(self._land(self._with(state, number, (issued, queued, left)), number, at))
        return made

    @staticmethod
    def _with(state: Any, number: int, core: Any) -> Any:
        cores = list(state[0])
        cores[number] = core
        return (tuple(cores), *state[1:])

    def _may_land(self, program: list[Op], flying: tuple[int, ...], place: int) -> bool:
        """A result may become visible if no set of its pipe is before it; a set, if nothing of its pipe is."""
        pipe, is_set = program[flying[place]][1], program[flying[place]][0] != "run"
        earlier = [program[at] for at in flying[:place] if program[at][1] == pipe]
        return not earlier if is_set else all(op[0] == "run" for op in earlier)

    def _run(self, state: Any, number: int, at: int) -> Any:
        cores, tokens, flags, parts = state
        issued, queued, flying = cores[number]
        program = self.programs[number]
        op = program[at]
        rest = tuple(other for other in queued if other != at)
        on_its_way = [other for other in flying if program[other][1] == op[1]]
        if op[0] == "wait":
            token = (number, op[2], op[1], op[3])
            if token not in tokens:
                return None
            return self._with((cores, _less(tokens, token), flags, parts), number, (issued, rest, flying))
        if op[0] == "cross_wait":
            if (number, op[2]) not in flags:
                return None
            return self._with((cores, tokens, _less(flags, (number, op[2])), parts), number, (issued, rest, flying))
        if op[0] == "barrier":
            if (op[1] == "ALL" and (rest or flying)) or (op[1] != "ALL" and on_its_way):
                return None
            return self._with(state, number, (issued, rest, flying))
        if op[0] == "run":
            self._started(state, (number, at))
        return self._with(state, number, (issued, rest, (*flying, at)))

    def _land(self, state: Any, number: int, at: int) -> Any:
        cores, tokens, flags, parts = state
        op = self.programs[number][at]
        if op[0] == "set":
            return cores, _more(tokens, (number, op[1], op[2], op[3])), flags, parts
        if op[0] == "cross_set":
            mine = [core for core, kind in enumerate(self.kinds) if kind == self.kinds[number]]
            parts = _more(parts, (number, op[2]))
            if all((core, op[2]) in parts for core in mine):
                for core in mine:
                    parts = _less(parts, (core, op[2]))
                for core, kind in enumerate(self.kinds):
                    if kind != self.kinds[number]:
                        flags = _more(flags, (core, op[2]))
            return cores, tokens, flags, parts
        return state

    def _started(self, state: Any, place: tuple[int, int]) -> None:
        """Note which clashing ops are not done when an op starts."""
        op = self._op(place)
        for other in self.conflicts[place]:
            core, at = other
            issued, queued, flying = state[0][core]
            same_pipe = core == place[0] and self._op(other)[1] == self._op(place)[1]
            if at >= issued or at in queued:
                if not same_pipe or at < place[1]:
                    self.before.add((place, other))
            elif at in flying:
                writes, reads = self._op(other)[3], self._op(place)[2] | self._op(place)[3]
                if not same_pipe or (writes & reads and op[1] not in SEES_ITS_OWN):  # on one pipe a read is over by then
                    self.before.update({(place, other), (other, place)} if same_pipe else {(place, other)})


def _more(bag: tuple[Any, ...], item: Any) -> tuple[Any, ...]:
    return tuple(sorted((*bag, item), key=repr))


def _less(bag: tuple[Any, ...], item: Any) -> tuple[Any, ...]:
    made = list(bag)
    made.remove(item)
    return tuple(made)
