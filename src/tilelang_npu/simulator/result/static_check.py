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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilelang_npu.errors import Location, TileError
from tilelang_npu.simulator.machine.events import Stream
from tilelang_npu.simulator.machine.used_data import Use
from tilelang_npu.simulator.machine.witness import Ways
from tilelang_npu.simulator.result.launch_result import Launch
from tilelang_npu.simulator.run.program import Program
from tilelang_npu.simulator.sanitizer.finding import Hazard

VALUES = (0, 1, 2)
"""Numbers that stand in for data, beside those that the kernel compares it with."""
MOST_VALUES = 9
"""How many further numbers are tried at most."""
EVENTS = 300_000
"""Ops of the blocks that are looked at; of a launch of more only some blocks are."""
EVENTS_AGAIN = 30_000
"""The same where a number stands in for data."""
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


def check(program: Program, args: Sequence[object], blocks: int, *, most_ops: int | None = None, made: Iterable[int] = (),
          before: Sequence[Launch] = ()) -> Checked:
    """Check one launch.

    Args:
        program: the kernel.
        args: the user's arguments in order; of arrays the shapes count, and the contents only where the kernel reads a single
            number from them.
        blocks: number of blocks.
        most_ops: ops that a core may issue in a block; as ``endless`` says where None.
        made, before: as for ``Launch``: arguments that the call allocated, and its earlier launches.

    Raises:
        TileError: T401 to T406, wrong arguments; T501, an op that the machine does not have.
    """
    started = time.perf_counter()
    done = Checked()
    known: dict[object, Hazard] = {}
    uses = list(dict.fromkeys(use for function in program.traced for use in function.data.uses))
    ways: list[Ways] = [{} for _ in program.traced]
    chosen = {use.location for use in uses if use.what == "place"}
    given = all(array.any() for array in args if isinstance(array, np.ndarray) and array.dtype.kind in "iu")
    seen: set[tuple[Stream, ...]] = set()
    tried: list[int | tuple[int, int]] = []
    for value in _values(program, uses, ways):
        if value is not None:
            tried.append(value)
        try:
            recorded = program.trace(args, blocks=blocks, value=value, most=EVENTS if value is None else EVENTS_AGAIN,
                                     most_ops=most_ops, ways=ways)
            kinds = {run.streams for run in recorded.blocks}
            if kinds <= seen:  # the same ops: only places in tensors differ
                continue
            seen |= kinds
            launch = Launch(recorded, made=made, before=before)
        except TileError as error:
            _note_error(done, error, value, uses)
            continue
        done.launch = done.launch or launch
        for hazard in launch.hazards:
            if hazard.code == "S203" and (value is not None or not given) and _places(hazard) & chosen:
                name = hazard.buffer or "a tensor"
                done.notes.append(f"{_line(hazard.first.location)}: whether blocks meet in {name} depends on data; not decided")
            else:
                known.setdefault(hazard.key, hazard)
        done.notes += [f"not decided, because the blocks do not run on made-up numbers: {error.message}"
                       for error in launch.recorded.replay.failed]
    done.hazards = list(known.values())
    done.notes += [*_undecided(program, tried, ways), *_left_out(done.launch)]
    done.notes = list(dict.fromkeys(done.notes))
    done.milliseconds = (time.perf_counter() - started) * 1000
    return done


def _values(program: Program, uses: Sequence[Use], ways: Sequence[Ways]) -> Iterator[int | tuple[int, int] | None]:
    """What to read in place of data: first what the arrays hold; further numbers as long as a branch went but one way.

    Two numbers in turn make iterations differ from each other.
    """
    yield None
    if not uses:
        return
    if all(use.what in ("place", "extent") for use in uses):
        yield from VALUES[1:]
        return
    yield from VALUES
    yield from ((0, 1), (1, 0))
    near = [number + step for function in program.traced for number in function.data.compared for step in (0, 1, -1)]
    more = [number for number in dict.fromkeys(near) if 0 <= number <= GREATEST and number not in VALUES]
    for number in more[:MOST_VALUES]:
        if all(len(seen.get(use.number, ())) == 2
               for function, seen in zip(program.traced, ways, strict=True) for use in function.data.uses if use.number >= 0):
            return
        yield number
        yield 0, number


def _note_error(done: Checked, error: TileError, value: int | tuple[int, int] | None, uses: Sequence[Use]) -> None:
    """An error of a trace: of the kernel's, unless a made-up number leads outside."""
    leads = {"T502": "place", "T509": "place", "S305": "trips", "S306": "trips"}.get(error.code)  # what of data may lead there
    if leads is not None and uses and (value is not None or any(use.what == leads for use in uses)):
        given = "" if value is None else f" where the kernel reads {_spoken(value)}"
        done.notes.append(f"not decided{given}: {error.message}")
        return
    if value is not None:
        error.notes = (*error.notes, f"where the kernel reads {_spoken(value)}")
    if all((one.code, one.location) != (error.code, error.location) for one in done.errors):
        done.errors.append(error)


def _spoken(value: int | tuple[int, int]) -> str:
    return f"{value[0]} and {value[1]} in turn" if isinstance(value, tuple) else str(value)


def _undecided(program: Program, tried: Sequence[int | tuple[int, int]], ways: Sequence[Ways]) -> Iterator[str]:
    """What depends on data, and what was tried."""
    values = ", ".join(_spoken(value) for value in tried)
    for function, seen in zip(program.traced, ways, strict=True):
        for use in function.data.uses:
            where = _line(use.location)
            said = f"{where}: {_SAID[use.what]} depends on data"
            if use.what == "branch":
                went = seen.get(use.number, set())
                taken = "both ways" if len(went) == 2 else "only where it is taken" if True in went else (
                    "only where it is not taken" if went else "nowhere: no trace came by")
                yield f"{said}; checked {taken}"
            else:
                yield f"{said}; checked where what is read is {values}"


def _left_out(launch: Launch | None) -> Iterator[str]:
    if launch is not None and len(launch.recorded.blocks) < launch.recorded.count:
        yield f"{len(launch.recorded.blocks)} of {launch.recorded.count} blocks were looked at"


def _places(hazard: Hazard) -> set[Location | None]:
    return {site.location for site in (hazard.first, hazard.second) if site is not None}


def _line(location: Location | None) -> str:
    return location.shown_line if location is not None else "somewhere"
