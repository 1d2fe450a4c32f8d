"""Vector clocks against all orders of small random programs: the same verdict on races and on hangs, no race made up."""

from __future__ import annotations

import os
import random
from typing import Any, NamedTuple

import pytest

from simulator.explorer import Explorer, Op, Seen
from tilelang_npu import TileError
from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.core_coroutines import CoreId
from tilelang_npu.simulator.machine.op_records import (
    Access,
    Barrier,
    CrossSet,
    CrossWait,
    EventSet,
    EventWait,
    OpRecord,
    Transfer,
)
from tilelang_npu.simulator.sanitizer.happens_before import find_hazards
from tilelang_npu.simulator.time.pipe_steps import Expansion
from tilelang_npu.simulator.time.step_order import StepOrder

PROGRAMS = int(os.environ.get("TILELANG_NPU_ORACLE", "100"))
"""How many random programs; the suite's own number keeps it short, 10000 take half an hour."""
PIPES = {"AIC": ("S", "M", "MTE2", "FIX"), "AIV": ("S", "V", "MTE2", "MTE3")}
CELLS = 3


class Verdict(NamedTuple):
    """The package's findings: races as pairs of ops, whether the cores hang, whether the sets or waits of a flag are
    unordered."""

    races: set[tuple[tuple[int, int], tuple[int, int]]]
    hangs: bool
    open_flag: bool = False


class _NoCosts:
    def cost(self, record: OpRecord, event: object) -> None:
        return None


def by_clocks(kinds: list[str], programs: list[list[Op]]) -> Verdict:
    """Returns the package's findings for a program."""
    subs = [kinds[:place].count(kind) for place, kind in enumerate(kinds)]
    cores = [CoreId(0, kind, sub) for kind, sub in zip(kinds, subs, strict=True)]
    labels = {core.label: place for place, core in enumerate(cores)}
    records = [[_record(number, kind, op) for number, op in enumerate(program)]
               for kind, program in zip(kinds, programs, strict=True)]
    streams = [tuple(range(len(program))) for program in programs]
    offsets = [[cell for op in program if op[0] == "run" for cell in (*sorted(op[2]), *sorted(op[3]))] for program in programs]
    expansions: Any = [Expansion(known, _NoCosts()) for known in records]  # type: ignore[arg-type]  # nothing is timed
    try:
        order = StepOrder(cores, streams, expansions, 1000)
    except TileError as error:
        return Verdict(set(), error.code in ("S301", "S302", "S303"))
    found = find_hazards(order, cores, streams, offsets, records, {0: (0, 0)})
    pairs = set()
    for hazard in found:
        if hazard.kind != "flag":
            assert hazard.second is not None
            first, second = ((labels[site.core], site.location.line) for site in (hazard.first, hazard.second) if site.location)
            pairs.add((first, second))
    return Verdict(pairs, hangs=False, open_flag=any(hazard.code == "S214" for hazard in found))


def _record(number: int, kind: str, op: Op) -> OpRecord:
    accesses: list[Access] = []
    if op[0] == "run":
        work: object = Transfer("any")
        accesses = [Access("gm", 0, name == "r", name == "w", 1, None, (), (), op[1], name)
                    for name, cells in (("r", op[2]), ("w", op[3])) for _ in sorted(cells)]
    elif op[0] == "set":
        work = EventSet(op[1], op[2], op[3])
    elif op[0] == "wait":
        work = EventWait(op[2], op[1], op[3])
    elif op[0] == "barrier":
        work = Barrier(op[1])
    elif op[0] == "cross_set":
        work = CrossSet(op[1], op[2], "pair")
    else:
        work = CrossWait(op[1], op[2])
    pipe = "S" if op[1] == "ALL" else op[1]
    return OpRecord(number, op[0], pipe, kind, Location("program", number), tuple(accesses), work, 0)


def made_up(rng: random.Random) -> tuple[list[str], list[list[Op]]]:
    """Returns a random program: most sets have a later wait, so that most programs end."""
    kinds = rng.choice([["AIC"], ["AIV"], ["AIC", "AIV"], ["AIC", "AIV", "AIV"]])
    programs: list[list[Op]] = [[] for _ in kinds]
    room = {1: 7, 2: 4, 3: 3}[len(kinds)]
    for core, kind in enumerate(kinds):
        pipes, program = PIPES[kind], programs[core]
        while len(program) < room:
            drawn = rng.random()
            if drawn < 0.5:
                cells = rng.sample(range(CELLS), rng.choice((1, 1, 2)))
                cut = rng.randint(0, len(cells))
                program.append(("run", rng.choice(pipes), frozenset(cells[:cut]), frozenset(cells[cut:])))
            elif drawn < 0.8 and len(program) + 1 < room:
                source, target = rng.sample(pipes, 2)
                event = rng.randint(0, 1)
                program.append(("set", source, target, event))
                first = len(program) if rng.random() < 0.95 else 0
                program.insert(rng.randint(first, len(program)), ("wait", target, source, event))
            elif drawn < 0.9:
                program.append(("barrier", rng.choice((*pipes, "ALL"))))
    if len(kinds) > 1:
        for _ in range(rng.randint(0, 2)):
            flag, to_vector = rng.randint(0, 1), rng.random() < 0.5
            for core, kind in enumerate(kinds):
                sends = (kind == "AIC") == to_vector
                if rng.random() < 0.97:
                    where, pipe = rng.randint(0, len(programs[core])), rng.choice(PIPES[kind])
                    wait = ("cross_wait", rng.choice(("S", pipe)), flag)
                    programs[core].insert(where, ("cross_set", pipe, flag) if sends else wait)
    return kinds, programs


def _described(kinds: list[str], programs: list[list[Op]]) -> str:
    return "\n".join(f"{kind}: {program}" for kind, program in zip(kinds, programs, strict=True))


def test_the_same_verdict_on_random_programs() -> None:
    tried = races = hangs = 0
    for seed in range(PROGRAMS):
        kinds, programs = made_up(random.Random(seed))
        seen = Explorer(kinds, programs).explore()
        if seen is None:
            continue
        tried += 1
        report = by_clocks(kinds, programs)
        what = f"seed {seed}\n{_described(kinds, programs)}\nexplorer {sorted(seen.races)}\nclocks {report}"
        assert report.hangs == seen.hangs or report.open_flag, what
        if seen.hangs or report.hangs:
            hangs += 1
            continue
        races += bool(report.races)
        if report.open_flag:  # the set for a wait is ambiguous: this is reported, with or without races
            continue
        assert bool(report.races) == bool(seen.races), what
        assert report.races <= seen.races | {(b, a) for a, b in seen.races}, what
    assert tried > 0.8 * PROGRAMS
    assert 0.1 < races / tried < 0.9
    assert hangs


@pytest.mark.parametrize(("programs", "races", "hangs"), [
    ([[("run", "MTE2", frozenset(), frozenset({0})), ("run", "V", frozenset({0}), frozenset({1}))]], 1, False),
    ([[("run", "MTE2", frozenset(), frozenset({0})), ("set", "MTE2", "V", 0), ("wait", "V", "MTE2", 0),
       ("run", "V", frozenset({0}), frozenset({1}))]], 0, False),
    ([[("run", "V", frozenset(), frozenset({0})), ("run", "V", frozenset({0}), frozenset({1}))]], 1, False),
    ([[("run", "V", frozenset({0}), frozenset()), ("run", "V", frozenset(), frozenset({0}))]], 0, False),
    ([[("wait", "V", "MTE2", 0), ("set", "MTE2", "V", 0)]], 0, False),
    ([[("wait", "S", "MTE2", 0), ("set", "MTE2", "S", 0)]], 0, True),
], ids=["no event", "event", "no barrier", "read first", "the pipe waits", "the core waits"])
def test_the_explorer_itself(programs: list[list[Op]], races: int, hangs: bool) -> None:
    seen = Explorer(["AIV"], programs).explore()
    assert isinstance(seen, Seen)
    assert (len(seen.races) // 2, seen.hangs) == (races, hangs)
