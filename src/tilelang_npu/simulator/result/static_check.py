"""The static check of a kernel: it applies the sanitizer's rules without the user's data.

The ops of a kernel, their addresses and their order depend only on sizes and on the block index, unless a branch, a trip count
or an address depends on a number from a tensor. Therefore the blocks are traced without computing values, and the trace is
checked like the record of a launch: for races, wrong use of flags, hangs, and accesses beyond the end of a memory. If data
decide which ops run, the trace is repeated with several numbers in place of the data; for each of these traces there is data
that would produce it. Notes say what remains undecided.

Two checks need values: whether blocks that write the same bytes write equal values, and whether uninitialised bytes reach a
result. For these checks, the blocks concerned run on pseudo-random test values (:class:`Replay`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tilelang_npu.errors import Location, TileError
from tilelang_npu.progress import shown
from tilelang_npu.simulator.machine.op_records import Stream
from tilelang_npu.simulator.machine.placeholder_data import BranchOutcomes, DataUse
from tilelang_npu.simulator.result.launch_result import Launch
from tilelang_npu.simulator.run.program import Program
from tilelang_npu.simulator.sanitizer.hazard import Hazard

VALUES = (0, 1, 2)
"""The numbers that always replace data in repeated traces. The numbers with which the kernel compares data are tried too."""
MOST_VALUES = 9
"""Maximum number of tried numbers in addition to ``VALUES``."""
EVENTS = 300_000
"""Maximum number of executed ops, summed over all blocks, in a trace; of a longer launch only some blocks are checked."""
EVENTS_AGAIN = 30_000
"""Maximum number of executed ops, summed over all blocks, in a trace in which a number replaces data."""
GREATEST = 4096
"""The greatest number that is tried, because a loop possibly runs that often."""
_DECISIONS = {"branch": "the direction of a branch", "trips": "the trip count of a loop",
              "place": "the address of an access", "flag": "the number of a flag",
              "extent": "a size or other number that an op uses"}


class Undecided(NamedTuple):
    """A part of a kernel's behaviour that depends on data, so that not all cases were checked.

    Attributes:
        what: what depends on data, such as ``the address of an access``.
        checked: the cases that were checked, such as ``with the numbers 0, 1 and 2``.
        location: the source line; None if unknown.
    """

    what: str
    checked: str
    location: Location | None


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


@dataclass
class Checked:
    """The result of a static check.

    Attributes:
        hazards: the hazards that were found, each once.
        errors: other errors that were found: cores that hang, accesses beyond the end of a memory.
        undecided: the statements whose behaviour depends on data.
        failures: the messages of errors that a number in place of data possibly causes, each with these numbers as text.
        notes: further messages that say what could not be decided, or was checked only for some blocks.
        milliseconds: the duration of the check, without compiling the kernel.
        launch: the first trace that succeeded; None if all failed.
    """

    hazards: list[Hazard] = field(default_factory=list)
    errors: list[TileError] = field(default_factory=list)
    undecided: list[Undecided] = field(default_factory=list)
    failures: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    milliseconds: float = 0.0
    launch: Launch | None = None

    @property
    def open_questions(self) -> list[str]:
        """What the check could not decide, as lines of text: one for all of ``undecided`` with the same checked cases, which
        names the source lines; one for each message of ``failures``; and ``notes``."""
        groups: dict[str, dict[str, list[Location | None]]] = {}
        for one in self.undecided:
            groups.setdefault(one.checked, {}).setdefault(one.what, []).append(one.location)
        lines = [f"depends on data, checked {checked}: "
                 + "; ".join(f"{what} ({_lines(places)})" for what, places in kinds.items())
                 for checked, kinds in groups.items()]
        for message, values in self.failures.items():
            where = f" where the kernel reads {_listed([value for value in values if value])}" if any(values) else ""
            lines.append(f"not decided{where}: {message}")
        return [*lines, *self.notes]


def check(program: Program, args: Sequence[object], blocks: int, *, most_ops: int | None = None, made: Iterable[int] = (),
          before: Sequence[Launch] = ()) -> Checked:
    """Checks one launch of a kernel without running it on the user's data.

    Args:
        program: the compiled kernel.
        args: the user's arguments in order. Only the shapes and element types of arrays matter, and the contents of arrays from
            which the scalar unit reads single numbers.
        blocks: the number of blocks.
        most_ops: the largest number of ops that a core may execute in a block before the check stops with an error; None for
            the default.
        made: the positions of the user's arguments that the call allocates.
        before: the earlier launches of the call.

    Raises:
        TileError: T401 to T406, wrong arguments; T501, the simulator does not support an op.
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
    with shown(f"checking {program.name},", _most_traces(program, uses), "traces at most") as step:
        for number, value in enumerate(_values(program, uses, ways)):
            step.done = number
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
            done.notes += [f"not decided, because the blocks fail on generated numbers: {error.message}"
                           for error in launch.recorded.replay.failed]
    done.hazards = list(known.values())
    done.undecided = list(dict.fromkeys(_undecided(program, tried, ways)))
    done.notes += _left_out(done.launch)
    done.notes = list(dict.fromkeys(done.notes))
    done.milliseconds = (time.perf_counter() - started) * 1000
    return done


def _values(program: Program, uses: Sequence[DataUse], ways: Sequence[BranchOutcomes]) -> Iterator[int | tuple[int,
                                                                                                               int] | None]:
    """Yields the numbers that replace data, one for each trace.

    The first value is None, which means the contents of the arrays. If only addresses or sizes depend on data, a few
    numbers follow. Otherwise numbers and pairs of numbers follow until each branch that depends on data was taken in one trace
    and not taken in another. The two numbers of a pair replace alternate elements, so that successive iterations differ.

    Args:
        program: the kernel.
        uses: the statements of the kernel whose behaviour depends on data.
        ways: for each function, the values that its data-dependent conditions have had so far; each trace adds to them.
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


def _most_traces(program: Program, uses: Sequence[DataUse]) -> int:
    """Returns an upper limit of the number of values that ``_values`` yields."""
    if not uses:
        return 1
    if all(use.what in ("place", "extent") for use in uses):
        return len(VALUES)
    compared = sum(len(function.data.compared) for function in program.traced)
    return 1 + len(VALUES) + 2 + 2 * min(MOST_VALUES, 3 * compared)


def _note_error(done: Checked, error: TileError, value: int | tuple[int, int] | None, uses: Sequence[DataUse]) -> None:
    """Adds an error of a trace to the result, or only a note if the number in place of data possibly causes the error."""
    # the use of data that may lead to an error
    leads = {"T502": "place", "T509": "place", "S305": "trips", "S306": "trips"}.get(error.code)
    if leads is not None and uses and (value is not None or any(use.what == leads for use in uses)):
        done.failures.setdefault(error.message, []).append("" if value is None else _spoken(value))
        return
    if value is not None:
        error.notes = (*error.notes, f"where the kernel reads {_spoken(value)}")
    if all((one.code, one.location) != (error.code, error.location) for one in done.errors):
        done.errors.append(error)


def _spoken(value: int | tuple[int, int]) -> str:
    return f"{value[0]} and {value[1]} in turn" if isinstance(value, tuple) else str(value)


def _undecided(program: Program, tried: Sequence[int | tuple[int, int]], ways: Sequence[BranchOutcomes]) -> Iterator[Undecided]:
    """Yields each branch, trip count, address or number that depends on data, with the cases that were tried."""
    values = _listed([_spoken(value) for value in tried if not isinstance(value, tuple)])
    if any(isinstance(value, tuple) for value in tried):
        values += ", and with two of them in turn,"
    for function, seen in zip(program.traced, ways, strict=True):
        for use in function.data.uses:
            if use.what == "branch":
                went = seen.get(use.number, set())
                taken = "both ways" if len(went) == 2 else "only where it is taken" if True in went else (
                    "only where it is not taken" if went else "nowhere: no trace reached it")
                yield Undecided(_DECISIONS[use.what], taken, use.location)
            else:
                yield Undecided(_DECISIONS[use.what], f"with {values} in place of data", use.location)


def _left_out(launch: Launch | None) -> Iterator[str]:
    if launch is not None and len(launch.recorded.blocks) < launch.recorded.count:
        yield f"{len(launch.recorded.blocks)} of {launch.recorded.count} blocks were checked"


def _places(hazard: Hazard) -> set[Location | None]:
    return {site.location for site in (hazard.first, hazard.second) if site is not None}


def _lines(locations: Iterable[Location | None]) -> str:
    """Returns source lines as text: each file once, with its lines in order (``kernel.py:3, 5, 8``)."""
    files: dict[str, set[int]] = {}
    others: dict[str, None] = {}
    for location in locations:
        if location is None or location.callers:
            others[_line(location)] = None
        else:
            files.setdefault(location.shown_file, set()).add(location.line)
    return ", ".join([*(f"{file}:{', '.join(map(str, sorted(numbers)))}" for file, numbers in files.items()), *others])


def _line(location: Location | None) -> str:
    return location.shown_line if location is not None else "somewhere"
