"""Sanitizer sessions: the hazards of launches, by cause, without those that the user allows.

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
from tilelang_npu.runtime.checks.allowances import Allowance, allowances_in, has_comments
from tilelang_npu.runtime.settings.log import logger
from tilelang_npu.simulator.sanitizer.findings import Finding, causes, merged

if TYPE_CHECKING:
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.simulator import AnyLaunch, Hazard, Program


class Sanitizer:
    """The findings of a session.

    Args:
        allowances: allowances in options. Allowances in comments of the kernels are read when a kernel runs.

    Attributes:
        findings: each cause once, also those that are allowed, in the order of their lines.
    """

    def __init__(self, allowances: Sequence[Allowance] = ()) -> None:
        self.findings: list[Finding] = []
        self._options = list(allowances)
        self._comments: dict[Allowance, None] = {}
        self._used: set[Allowance] = set()
        self._programs: WeakSet[Program] = WeakSet()
        self._lock = RLock()

    def judge(self, hazards: Iterable[Hazard], program: Program, name: str, function: PrimFunc | None = None) -> list[Finding]:
        """Returns the findings of a launch; allowed ones are marked.

        Args:
            hazards: the hazards of the launch.
            program: the program that ran.
            name: the kernel's name.
            function: the kernel's function; None for a file of MLIR.

        Raises:
            TileError: T414 an allowance in a comment of the kernel cannot be read, or has no reason.
        """
        with self._lock:
            if program not in self._programs:
                if any(map(has_comments, _files(program, function))):  # this is faster than finding the lines
                    for file, (first, last) in _lines(program, function).items():
                        self._comments.update(dict.fromkeys(allowances_in(file, first, last)))
                self._programs.add(program)
            by_allowance: dict[Allowance | None, list[Hazard]] = {}
            for hazard in hazards:
                allowance = next((one for one in (*self._comments, *self._options) if one.allows(hazard)), None)
                by_allowance.setdefault(allowance, []).append(hazard)
            found: list[Finding] = []
            for allowance, allowed in by_allowance.items():
                made = causes(allowed, name, program.chip.name)
                if allowance is not None:
                    self._used.add(allowance)
                    made = [Finding(one.hazard, one.others, one.kernel, one.chip, allowance.reason, allowance.at is not None)
                            for one in made]
                found += made
            self.findings = merged([*self.findings, *found])
            return merged(found)

    def judge_all(self, launch: AnyLaunch, function: PrimFunc | None = None) -> list[Finding]:
        """Returns the findings of all launches of a call; see :meth:`judge`."""
        with shown(f"looking for hazards in {launch.parts[0].name}"):
            return merged([found for part in launch.parts
                           for found in self.judge(part.hazards, part.recorded.program, part.name, function)])

    @property
    def seen(self) -> tuple[list[Allowance], set[Allowance]]:
        """All allowances of this session, and those of them that allowed a hazard."""
        return [*self._options, *self._comments], self._used

    def idle(self) -> list[TileError]:
        """Returns an error for each allowance that allowed no hazard."""
        every, used = self.seen
        return [one.idle() for one in every if one not in used]


def unallowed(findings: Iterable[Finding]) -> list[Finding]:
    """Returns the findings that no allowance covers."""
    return [finding for finding in findings if finding.allowed is None]


def raise_findings(findings: Sequence[Finding]) -> None:
    """Raises an error with the findings that no allowance covers, if there are any.

    Raises:
        SanitizerError: with the findings.
    """
    bad = unallowed(findings)
    if bad:
        raise SanitizerError("\n\n".join(map(str, bad)), code=bad[0].code, location=bad[0].location, findings=bad)


def _files(program: Program, function: PrimFunc | None) -> set[str]:
    """Returns the files in which a kernel is written."""
    files = {record.location.file for compiled in program.functions for record in compiled.records
             if record.location is not None}
    return files if function is None else {*files, function.location.file}


def _lines(program: Program, function: PrimFunc | None) -> dict[str, tuple[int, int]]:
    """Returns the first and last line of a kernel by file: its whole function, and the lines of its ops in other files."""
    found: dict[str, tuple[int, int]] = {}
    for compiled in program.functions:
        for record in compiled.records:
            place = record.location
            if place is not None:
                first, last = found.get(place.file, (place.line, place.line))
                found[place.file] = min(first, place.line), max(last, place.line)
    if function is None:
        found.update({file: (1, 1 << 30) for file in found if file.endswith(".mlir")})
    elif function.lines is not None:
        start, end = function.lines
        first, last = found.get(function.location.file, (start, end))
        found[function.location.file] = min(first, start), max(last, end)
    return found


class _Process:
    session: Sanitizer | None = None
    lock = RLock()


def process_sanitizer() -> Sanitizer:
    """Returns the session for launches that no command or test sanitizes. At exit it logs the comments that allowed nothing."""
    with _Process.lock:
        if _Process.session is None:
            _Process.session = Sanitizer()
            atexit.register(_log_idle_comments)
        return _Process.session


def _log_idle_comments() -> None:
    if _Process.session is not None:
        for error in _Process.session.idle():
            logger.warning("%s", error)
