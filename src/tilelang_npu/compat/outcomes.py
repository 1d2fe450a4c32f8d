"""The outcome of a script or a test: one of five words, a reason of one line, and the user's line.

A script without output has not passed. A script has passed if it ended with exit code 0, a kernel ran, it printed no word for
failure, and it reported success: by printing a verdict, or by an assertion that held after a kernel had run. Warnings of
libraries are not verdicts.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tilelang_npu.errors import Location, TileError

__all__ = ["FAILED", "PASSED", "Case", "Outcome", "of_error", "of_output"]

Outcome = Literal["passed", "wrong", "refused", "timeout", "unsupported"]

# Texts that upstream's scripts print. Upstream's own test runs look for the first two.
PASSED = re.compile(r"kernel output match|test passed!|all tests? passed|\bPASS(ED)?\b", re.IGNORECASE)
FAILED = re.compile(r"^.*(\bFAIL(ED|URE)?\b|\bMISMATCH(ED)?\b|\b(does|do) not match\b|❌).*$", re.MULTILINE)
RAISED = re.compile(r"^Traceback \(most recent call last\):$(?:\n.*)*?\n(\w[\w.]*(?:Error|Exception|Interrupt|Exit)\b.*)$",
                    re.MULTILINE)
_FOREIGN = re.compile(r"CUDA|cuDNN|NVIDIA|HIP GPU", re.IGNORECASE)
_LONGEST = 200  # characters of a reason


@dataclass(frozen=True)
class Case:
    """One script, or one test of a pytest file.

    Attributes:
        path: the file, relative to the surveyed folder; a test's name follows ``::``.
        outcome: ``passed``; ``wrong``: numbers differ; ``refused``: an error; ``timeout``; ``unsupported``: it needs something
            that is not simulated, or checks nothing.
        reason: the reason in one line; empty where it passed.
        line: the user's line as ``file:line: text``, or None.
        seconds: its duration.
    """

    path: str
    outcome: Outcome
    reason: str = ""
    line: str | None = None
    seconds: float = 0.0

    def record(self) -> dict[str, Any]:
        """The case as in the JSON file."""
        return {**asdict(self), "seconds": round(self.seconds, 2)}


def _short(text: str) -> str:
    line = next((part.strip() for part in text.splitlines() if part.strip()), "")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _spelled(where: Location | None, root: Path) -> str | None:
    if where is None:
        return None
    path = Path(where.file)
    name = path.relative_to(root) if path.is_relative_to(root) else path.name
    return f"{name}:{where.line}: {linecache.getline(where.file, where.line).strip()}"


def _user_line(error: BaseException, root: Path) -> Location | None:
    """The innermost line in a file below the folder on the error's traceback."""
    found, frames = None, error.__traceback__
    while frames is not None:
        name = frames.tb_frame.f_code.co_filename
        if Path(name).is_relative_to(root):
            found = Location(name, frames.tb_lineno)
        frames = frames.tb_next
    return found


def of_error(error: BaseException, root: Path, kernels_ran: bool) -> tuple[Outcome, str, str | None]:
    """The outcome, the reason and the line of a run that ended with an exception.

    Args:
        error: the exception.
        root: the folder of the user's files.
        kernels_ran: whether a kernel had run before.
    """
    if isinstance(error, TileError):
        outcome: Outcome = "unsupported" if error.code == "T702" else "wrong" if error.code == "S501" else "refused"
        return outcome, _short(f"{error.code}: {error.message}"), _spelled(error.location or _user_line(error, root), root)
    line = _spelled(_user_line(error, root), root)
    text = _short(f"{type(error).__name__}: {str(error).strip()}")
    if isinstance(error, AssertionError):
        return ("wrong" if kernels_ran else "refused"), _numbers(error) or text, line
    if isinstance(error, (ImportError, FileNotFoundError, MemoryError)) or _FOREIGN.search(str(error)):
        return "unsupported", text, line
    if isinstance(error, SystemExit) and error.code == 2:
        return "unsupported", "it needs arguments on its command line", line
    return "refused", text, line


def _numbers(error: AssertionError) -> str:
    """The line with the numbers in the messages of torch and NumPy."""
    wanted = re.search(r"^.*(Mismatched elements|Max absolute difference|elements differ).*$", str(error), re.MULTILINE)
    return _short(wanted.group()) if wanted else ""


def of_output(said: str, complained: str, kernels_ran: bool, held: int, is_program: bool) -> tuple[Outcome, str]:
    """The outcome and the reason of a script that ended with exit code 0.

    Args:
        said: its output, and the text that it wrote itself to standard error.
        complained: all of standard error. Libraries write warnings there, so only a traceback counts.
        kernels_ran: whether a kernel ran.
        held: the number of its assertions that held after a kernel had run.
        is_program: whether it has a part that runs it as a program.
    """
    raised = RAISED.search(said) or RAISED.search(complained)
    if raised:
        return "refused", _short(f"it printed a traceback: {raised.group(1).strip()}")
    failed = FAILED.search(said)
    if failed:
        return "wrong", _short(f"it printed: {failed.group().strip()}")
    if not kernels_ran:
        return "unsupported", "no kernel ran" if is_program else "a module for other scripts: nothing runs"
    if held or PASSED.search(said):
        return "passed", ""
    return "unsupported", "it checks nothing: neither an assertion nor a printed verdict"
