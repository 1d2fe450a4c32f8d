"""Static check of a kernel: the sanitizer's rules, applied without data.

A kernel's ops, their addresses and their order follow from sizes and the block index, unless branches, trip counts or addresses
depend on numbers from a tensor. So the blocks are traced without computing anything, and the record is checked like that of a
launch: races, flags, hangs, accesses beyond the end of a memory. Where data decide, the trace is repeated with several numbers
in place of the data; some data would produce each of these traces. Notes say what remains undecided.

Two verdicts need values: whether blocks that write the same bytes write equal values, and whether uninitialised bytes reach a
result. The blocks in question then run on generated numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilelang_npu.errors import Location, TileError
from tilelang_npu.simulator.machine.op_records import Stream
from tilelang_npu.simulator.machine.placeholder_data import BranchOutcomes, DataUse
from tilelang_npu.simulator.result.launch_result import Launch
from tilelang_npu.simulator.run.program import Program
from tilelang_npu.simulator.sanitizer.hazard import Hazard

VALUES = (0, 1, 2)
"""Numbers that replace data, in addition to those that the kernel compares data with."""
MOST_VALUES = 9
"""Limit of the additional numbers."""
EVENTS = 300_000
"""Limit of the ops of all blocks; of a longer launch only some blocks are checked."""
EVENTS_AGAIN = 30_000
"""The same for a trace in which a number replaces data."""
GREATEST = 4096
"""Limit of the numbers that are tried: a loop may run as often."""
_DECISIONS = {"branch": "the direction of the branch", "trips": "the trip count of the loop", "place": "the place of an access",
              "flag": "the number of a flag", "extent": "a number that an op takes"}


@dataclass
class Checked:
    """The result of a check.

    Attributes:
        hazards: the hazards, each once.
        errors: other errors: cores that hang, accesses beyond the end of a memory.
        notes: what was not decided, or not for all blocks.
        milliseconds: the duration, without compiling the kernel.
        launch: the trace; None if it failed.
    """

    hazards: list[Hazard] = field(default_factory=list)
    errors: list[TileError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    milliseconds: float = 0.0
    launch: Launch | None = None


def check(program: Program, args: Sequence[object], blocks: int, *, most_ops: int | None = None, made: Iterable[int] = (),
          before: Sequence[Launch] = ()) -> Checked:
    """Checks one launch.

    Args:
        program: the kernel.
        args: the user's arguments in order; for arrays the shapes count, and the contents only if the scalar unit reads single
            numbers from them.
        blocks: number of blocks.
        most_ops: limit of the ops of a core in a block; as in ``endless`` where None.
        made, before: as for ``Launch``: arguments that the call allocated, and its earlier launches.

    Raises:
        TileError: T401 to T406, wrong arguments; T501, an op that the machine does not have.
    """
    started = time.perf_counter()
    done = Checked()
    known: dict[object, Hazard] = {}
    uses = list(dict.fromkeys(use for function in program.traced for use in function.data.uses))
    ways: list[BranchOutcomes] = [{} for _ in program.traced]
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
            if kinds <= seen:  # the same ops; only places in tensors differ
                continue
            seen |= kinds
            launch = Launch(recorded, made=made, before=before)
        except TileError as error:
            _note_error(done, error, value, uses)
            continue
        done.launch = done.launch or launch
        for hazard in launch.hazards:
            if hazard.code == "S203" and (value is not None or not given) and _places(hazard) & chosen:
                where, name = _line(hazard.first.location), hazard.buffer or "a tensor"
                done.notes.append(f"{where}: not decided: whether blocks overlap in {name} depends on data")
            else:
                known.setdefault(hazard.key, hazard)
        done.notes += [f"not decided, because the blocks do not run on made-up numbers: {error.message}"
                       for error in launch.recorded.replay.failed]
    done.hazards = list(known.values())
    done.notes += [*_undecided(program, tried, ways), *_left_out(done.launch)]
    done.notes = list(dict.fromkeys(done.notes))
    done.milliseconds = (time.perf_counter() - started) * 1000
    return done


def _values(program: Program, uses: Sequence[DataUse], ways: Sequence[BranchOutcomes]) -> Iterator[int | tuple[int,
                                                                                                               int] | None]:
    """Yields the numbers that replace data: first None for the contents of the arrays; then numbers, until each branch has gone
    both ways.

    Pairs alternate and make iterations differ from each other.
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


def _note_error(done: Checked, error: TileError, value: int | tuple[int, int] | None, uses: Sequence[DataUse]) -> None:
    """Adds an error of a trace, or only a note if a number that replaces data may be its cause."""
    # the use of data that may lead to an error
    leads = {"T502": "place", "T509": "place", "S305": "trips", "S306": "trips"}.get(error.code)
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


def _undecided(program: Program, tried: Sequence[int | tuple[int, int]], ways: Sequence[BranchOutcomes]) -> Iterator[str]:
    """Yields notes about what depends on data, and which numbers were tried."""
    values = ", ".join(_spoken(value) for value in tried)
    for function, seen in zip(program.traced, ways, strict=True):
        for use in function.data.uses:
            where = _line(use.location)
            said = f"{where}: {_DECISIONS[use.what]} depends on data"
            if use.what == "branch":
                went = seen.get(use.number, set())
                taken = "both ways" if len(went) == 2 else "only where it is taken" if True in went else (
                    "only where it is not taken" if went else "nowhere: no trace reached it")
                yield f"{said}; checked {taken}"
            else:
                yield f"{said}; checked with the numbers {values}"


def _left_out(launch: Launch | None) -> Iterator[str]:
    if launch is not None and len(launch.recorded.blocks) < launch.recorded.count:
        yield f"{len(launch.recorded.blocks)} of {launch.recorded.count} blocks were checked"


def _places(hazard: Hazard) -> set[Location | None]:
    return {site.location for site in (hazard.first, hazard.second) if site is not None}


def _line(location: Location | None) -> str:
    return location.shown_line if location is not None else "somewhere"
