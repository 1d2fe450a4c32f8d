"""Collects the hazards of launches, merges hazards with the same cause, and applies the user's allowances.

A :class:`Sanitizer` is one session: a script under ``run --sanitize``, the tests of a pytest run, or the launches of a process
whose kernels request the check (``jit(..., sanitize=True)``, ``TILELANG_NPU_SANITIZE=1``).
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
    """A sanitizer session: collects the findings of several launches, and which allowances of the user they match.

    Args:
        allowances: the allowances from options. Allowances in comments of a kernel are read when the kernel runs.

    Attributes:
        findings: the findings so far, one for each cause, in the order of their lines; allowed findings are included.
    """

    def __init__(self, allowances: Sequence[Allowance] = ()) -> None:
        self.findings: list[Finding] = []
        self._options = list(allowances)
        self._comments: dict[Allowance, None] = {}
        self._used: set[Allowance] = set()
        self._programs: WeakSet[Program] = WeakSet()
        self._lock = RLock()

    def judge(self, hazards: Iterable[Hazard], program: Program, name: str, function: PrimFunc | None = None) -> list[Finding]:
        """Merges the hazards of a launch to findings, one for each cause, and adds them to the session.

        Args:
            hazards: the hazards of the launch.
            program: the program that ran.
            name: the kernel's name.
            function: the kernel's function; None for a file of MLIR.

        Returns:
            The findings of this launch. A finding that an allowance permits has the reason in ``allowed``.

        Raises:
            TileError: T414 an allowance in a comment of the kernel cannot be parsed, or has no reason.
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
        """Adds the hazards of all launches of a call to the session, and returns their findings; see :meth:`judge`."""
        with shown(f"looking for hazards in {launch.parts[0].name}"):
            return merged([found for part in launch.parts
                           for found in self.judge(part.hazards, part.recorded.program, part.name, function)])

    @property
    def seen(self) -> tuple[list[Allowance], set[Allowance]]:
        """All allowances that this session has read, and the set of those that have matched a hazard."""
        return [*self._options, *self._comments], self._used

    def idle(self) -> list[TileError]:
        """Returns an error (T415) for each allowance that has matched no hazard in this session."""
        every, used = self.seen
        return [one.idle() for one in every if one not in used]


def unallowed(findings: Iterable[Finding]) -> list[Finding]:
    """Returns the findings that no allowance permits."""
    return [finding for finding in findings if finding.allowed is None]


def raise_findings(findings: Sequence[Finding]) -> None:
    """Raises an error if there are findings that no allowance permits.

    Raises:
        SanitizerError: there is such a finding; the error contains all of them.
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
    """Returns this process's session for launches outside of ``run --sanitize`` and pytest.

    When the process exits, a warning is logged for each allowance in a comment that has matched no hazard.
    """
    with _Process.lock:
        if _Process.session is None:
            _Process.session = Sanitizer()
            atexit.register(_log_idle_comments)
        return _Process.session


def _log_idle_comments() -> None:
    if _Process.session is not None:
        for error in _Process.session.idle():
            logger.warning("%s", error)
