"""A kernel looked at without its data: the sanitizer's rules over what it would do.

A kernel's ops, their places and their order follow from its sizes and the number of the block, unless it reads a number from a
tensor and branches, loops or finds a place by it. So the blocks are traced without computing anything, and what is recorded is
judged as that of a launch: races, flags, hangs, bytes beyond the end of a memory. Where data decides, the trace is taken again
for several numbers in its place, each everywhere; every such trace is one that some data give. What stays undecided is said.

Two verdicts need values: whether blocks that write the same bytes write the same into them, and whether bytes that nothing
wrote reach a result. There the blocks in question run on made-up numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelang_npu.errors import Location, TileError
from tilelang_npu.simulator.data_uses import Use
from tilelang_npu.simulator.finding import Hazard
from tilelang_npu.simulator.launch import Launch
from tilelang_npu.simulator.program import Program

VALUES = (0, 1, 2)
"""Numbers that stand in for data, beside those that the kernel compares it with."""
MOST_VALUES = 12
"""How many numbers are tried at most."""
EVENTS = 300_000
"""Ops of the blocks that are looked at; of a launch of more only some blocks are."""
GREATEST = 4096
"""Numbers beyond it are not tried: a loop may run as often."""
_SAID = {"branch": "which way the branch goes", "trips": "how often the loop runs", "place": "the place of an access",
         "flag": "the number of a flag", "extent": "a number that an op takes"}


@dataclass
class Checked:
    """What a check found.

    Attributes:
        hazards: the hazards, each once.
        errors: what else is wrong: cores that hang, accesses beyond the end of a memory.
        notes: what was not decided, or not for all blocks.
        milliseconds: how long it took, without compiling the kernel.
        launch: the trace; None where it came to an error.
    """

    hazards: list[Hazard] = field(default_factory=list)
    errors: list[TileError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    milliseconds: float = 0.0
    launch: Launch | None = None


def check(program: Program, args: Sequence[Any], blocks: int) -> Checked:
    """Check one launch.

    Args:
        program: the kernel.
        args: the user's arguments in order; of arrays the shapes count, and the contents only where the kernel reads a single
            number from them.
        blocks: number of blocks.

    Raises:
        TileError: T401 to T406, wrong arguments; T501, an op that the machine does not have.
    """
    started = time.perf_counter()
    done = Checked()
    known: dict[object, Hazard] = {}
    uses = list(dict.fromkeys(use for function in program.traced for use in function.data.uses))
    tried: list[int | None] = [None, *(_values(program) if uses else ())]
    for function in program.traced:
        function.witness.ways.clear()
    for value in tried:
        try:
            launch = Launch(program.trace(args, blocks=blocks, value=value, most=EVENTS))
        except TileError as error:
            _note_error(done, error, value, uses)
            continue
        done.launch = done.launch or launch
        for hazard in launch.hazards:
            known.setdefault(hazard.key, hazard)
        done.notes += [f"not decided, because the blocks do not run on made-up numbers: {error.message}"
                       for error in launch.recorded.replay.failed]
    done.hazards = list(known.values())
    done.notes += [*_undecided(program), *_left_out(done.launch)]
    done.notes = list(dict.fromkeys(done.notes))
    done.milliseconds = (time.perf_counter() - started) * 1000
    return done


def _values(program: Program) -> list[int]:
    near = [number + step for function in program.traced for number in function.data.compared for step in (0, 1, -1)]
    return list(dict.fromkeys(number for number in (*VALUES, *near) if 0 <= number <= GREATEST))[:MOST_VALUES]


def _note_error(done: Checked, error: TileError, value: int | None, uses: Sequence[Use]) -> None:
    """An error of a trace: of the kernel's, unless a made-up number leads outside."""
    leads = {"T502": "place", "T509": "place", "T511": "trips"}.get(error.code)  # what of the data may lead there
    if leads is not None and uses and (value is not None or any(use.what == leads for use in uses)):
        given = "" if value is None else f" where the kernel reads {value}"
        done.notes.append(f"not decided{given}: {error.message}")
        return
    if value is not None:
        error.notes = (*error.notes, f"where the kernel reads {value}")
    if all((one.code, one.location) != (error.code, error.location) for one in done.errors):
        done.errors.append(error)


def _undecided(program: Program) -> Iterator[str]:
    """What depends on data, and what was tried."""
    values = ", ".join(map(str, _values(program)))
    for function in program.traced:
        for use in function.data.uses:
            where = _line(use.location)
            said = f"{where}: {_SAID[use.what]} depends on data"
            if use.what == "branch":
                ways = function.witness.ways.get(use.number, set())
                taken = "both ways" if len(ways) == 2 else "only where it is taken" if True in ways else (
                    "only where it is not taken" if ways else "nowhere: no trace came by")
                yield f"{said}; checked {taken}"
            else:
                yield f"{said}; checked where what is read is {values}"


def _left_out(launch: Launch | None) -> Iterator[str]:
    if launch is not None and len(launch.recorded.blocks) < launch.recorded.count:
        yield f"{len(launch.recorded.blocks)} of {launch.recorded.count} blocks were looked at"


def _line(location: Location | None) -> str:
    return f"{location.file}:{location.line}" if location is not None else "somewhere"
