"""Looking for hazards in launches, with what the user lets pass taken out.

A :class:`Sanitizer` is one session: a script under ``run --sanitize``, the tests of a pytest run, or the launches of a process
whose kernels ask for it (``jit(..., sanitize=True)``, ``TILELANG_NPU_SANITIZE=1``).
"""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Sequence
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakSet

from tilelang_npu.errors import SanitizerError, TileError
from tilelang_npu.progress import shown
from tilelang_npu.runtime.allowances import Allowance, beside, has_comments
from tilelang_npu.runtime.log import logger
from tilelang_npu.simulator.sanitizer.findings import Finding, causes, merged

if TYPE_CHECKING:
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.simulator import AnyLaunch, Hazard, Program

__all__ = ["Sanitizer", "in_process", "raise_found", "unallowed"]

Lines = dict[str, tuple[int, int]]
"""First and last line of a kernel in each file that it is written in."""


class Sanitizer:
    """What was found in the launches of a session.

    Args:
        allowances: what options let pass; comments beside the kernels' lines are read when they run.

    Attributes:
        findings: each cause once, also those that are let pass, in the order of their lines.
    """

    def __init__(self, allowances: Sequence[Allowance] = ()) -> None:
        self.findings: list[Finding] = []
        self._options = list(allowances)
        self._comments: dict[Allowance, bool] = {}
        self._used: set[Allowance] = set()
        self._programs: WeakSet[Program] = WeakSet()
        self._lock = RLock()

    def judge(self, hazards: Iterable[Hazard], program: Program, name: str, function: PrimFunc | None = None) -> list[Finding]:
        """The findings of a launch, those that are let pass marked so.

        Args:
            hazards: what the launch has.
            program: what ran.
            name: the kernel's name.
            function: what it was made from; None for a file of MLIR.

        Raises:
            TileError: T414 a comment of the kernel cannot be read or has no reason.
        """
        with self._lock:
            return self._judge(hazards, program, name, function)

    def _judge(self, hazards: Iterable[Hazard], program: Program, name: str, function: PrimFunc | None) -> list[Finding]:
        if program not in self._programs:
            if any(map(has_comments, _files(program, function))):
                for file, (first, last) in _lines(program, function).items():
                    self._comments.update(dict.fromkeys(beside(file, first, last), True))
            self._programs.add(program)
        parts: dict[Allowance | None, list[Hazard]] = {}
        for hazard in hazards:
            allowance = next((one for one in (*self._comments, *self._options) if one.covers(hazard)), None)
            parts.setdefault(allowance, []).append(hazard)
        found: list[Finding] = []
        for allowance, those in parts.items():
            made = causes(those, name, program.chip.name)
            if allowance is not None:
                self._used.add(allowance)
                made = [_let_pass(finding, allowance) for finding in made]
            found += made
        self.findings = merged([*self.findings, *found])
        return merged(found)

    def judge_all(self, launch: AnyLaunch, function: PrimFunc | None = None) -> list[Finding]:
        """The findings of all launches of a call; see ``judge``."""
        with shown(f"looking for hazards in {launch.parts[0].name}"):
            return merged([found for part in launch.parts
                           for found in self.judge(part.hazards, part.recorded.program, part.name, function)])

    @property
    def seen(self) -> tuple[list[Allowance], set[Allowance]]:
        """All allowances of this session, and those of them that let something pass."""
        return [*self._options, *self._comments], self._used

    def idle(self) -> list[TileError]:
        """An error for each allowance that let nothing pass."""
        every, used = self.seen
        return [one.idle() for one in every if one not in used]


def unallowed(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that nobody lets pass."""
    return [finding for finding in findings if finding.allowed is None]


def raise_found(findings: Sequence[Finding]) -> None:
    """Raise the findings of a launch that nobody lets pass; return where there is none.

    Raises:
        SanitizerError: with the findings.
    """
    bad = unallowed(findings)
    if bad:
        raise SanitizerError("\n\n".join(map(str, bad)), code=bad[0].code, location=bad[0].location, findings=bad)


def _let_pass(finding: Finding, allowance: Allowance) -> Finding:
    return Finding(finding.hazard, finding.others, finding.kernel, finding.chip, allowance.reason, allowance.at is not None)


def _files(program: Program, function: PrimFunc | None) -> set[str]:
    """Where a kernel is written."""
    found = {record.location.file for compiled in program.functions for record in compiled.records
             if record.location is not None}
    return found if function is None else {*found, function.location.file}


def _lines(program: Program, function: PrimFunc | None) -> Lines:
    """The lines in which a kernel is written: its function as a whole, and its ops elsewhere."""
    found: Lines = {}
    for compiled in program.functions:
        for record in compiled.records:
            place = record.location
            if place is not None:
                first, last = found.get(place.file, (place.line, place.line))
                found[place.file] = min(first, place.line), max(last, place.line)
    if function is not None:
        file, lines = function.location.file, function.lines
        if lines is None:  # typed in: there is no file and so no comment
            return found
        start, end = lines
        first, last = found.get(file, (start, end))
        found[file] = min(first, start), max(last, end)
    else:
        found.update({file: (1, 1 << 30) for file in found if file.endswith(".mlir")})
    return found


class _Process:
    session: Sanitizer | None = None
    lock = RLock()


def in_process() -> Sanitizer:
    """The session of launches that no command and no test looks after; at the end it says which comments let nothing pass."""
    with _Process.lock:
        if _Process.session is None:
            _Process.session = Sanitizer()
            atexit.register(_say_idle)
        return _Process.session


def _say_idle() -> None:
    if _Process.session is not None:
        for error in _Process.session.idle():
            logger.warning("%s", error)
