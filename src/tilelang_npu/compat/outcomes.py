"""Classifies how a script or a test ended: an outcome (one of five words), a reason in one line, and the user's source line.

A script has passed if all of these hold: it ended with exit code 0, a kernel ran, it printed no word for failure, and it
reported success, either by printing a verdict such as ``test passed!`` or by an assertion that held after a kernel had run.
Warnings of libraries are not verdicts.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

from tilelang_npu.errors import Location, TileError

__all__ = ["FAILED", "PASSED", "Case", "Outcome", "asks_for_gpu", "of_error", "of_output"]

Outcome = Literal["passed", "wrong", "refused", "timeout", "unsupported"]

# Texts that upstream's scripts print. Upstream's own test runs look for the first two.
PASSED = re.compile(r"kernel output match|test passed!|all tests? passed|\bPASS(ED)?\b", re.IGNORECASE)
FAILED = re.compile(r"^.*(\bFAIL(ED|URE)?\b|\bMISMATCH(ED)?\b|\b(does|do) not match\b|❌).*$", re.MULTILINE)
RAISED = re.compile(r"^Traceback \(most recent call last\):$(?:\n.*)*?\n(\w[\w.]*(?:Error|Exception|Interrupt|Exit)\b.*)$",
                    re.MULTILINE)
_FOREIGN = re.compile(r"CUDA|cuDNN|NVIDIA|HIP GPU", re.IGNORECASE)
_NO_GPU = re.compile("|".join((
    "Torch not compiled with CUDA enabled", "Found no NVIDIA driver", "No CUDA GPUs are available", "CUDA is not available",
    "arguments from the 'CUDA' backend", "deserialize object on a CUDA device")))
"""The messages of torch for a script that asks for CUDA on a machine without it."""
MODULE = "a module for other scripts: nothing runs"
"""The reason of a file that only defines things for other files."""
UNCHECKED = "it checks nothing: neither an assertion nor a printed verdict"
"""The reason of a script whose kernels ran, and which does not say whether they are right."""
EXPECTED = "expected to fail: "
"""The beginning of the reason of a test that failed as it says (``xfail``)."""
_LONGEST = 200  # characters of a reason


class CaseRecord(TypedDict):
    """A :class:`Case` as an object for a JSON file."""

    path: str
    outcome: Outcome
    reason: str
    line: str | None
    seconds: float


@dataclass(frozen=True)
class Case:
    """The outcome of one script, or of one test of a pytest file.

    Attributes:
        path: the path of the file, relative to the surveyed folder; for a test followed by ``::`` and the test's name.
        outcome: ``passed``; ``wrong``: results differ from the expected ones; ``refused``: an error; ``timeout``;
            ``unsupported``: the script needs something that is not simulated, or checks nothing.
        reason: the reason for the outcome in one line; empty for ``passed``.
        line: the user's source line that caused the outcome, as ``file:line: text``; None if there is none.
        seconds: the duration in seconds.
    """

    path: str
    outcome: Outcome
    reason: str = ""
    line: str | None = None
    seconds: float = 0.0

    @property
    def did_not_run(self) -> bool:
        """Whether a script or a test did not run, although it is one to run: a missing module or file, no kernel, a skip."""
        ran = self.reason in (MODULE, UNCHECKED) or self.reason.startswith(EXPECTED)
        return self.outcome == "unsupported" and not ran

    def record(self) -> CaseRecord:
        """Returns the case as an object for the JSON file."""
        return CaseRecord(path=self.path, outcome=self.outcome, reason=self.reason, line=self.line,
                          seconds=round(self.seconds, 2))


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


def asks_for_gpu(error: BaseException) -> bool:
    """Whether an exception is torch's for a script that asks for CUDA on a machine without it."""
    return not isinstance(error, TileError) and _NO_GPU.search(str(error)) is not None


def of_error(error: BaseException, root: Path, kernels_ran: bool) -> tuple[Outcome, str, str | None]:
    """Returns the outcome, the reason and the user's source line of a run that ended with an exception.

    Args:
        error: the exception.
        root: the folder of the user's files; only lines in files below it are reported.
        kernels_ran: whether a kernel had run before the exception.
    """
    if isinstance(error, TileError):
        outcome: Outcome = "unsupported" if error.code == "T702" else "wrong" if error.code == "S501" else "refused"
        return outcome, _short(f"{error.code}: {error.message}"), _spelled(error.location or _user_line(error, root), root)
    line = _spelled(_user_line(error, root), root)
    text = _short(f"{type(error).__name__}: {str(error).strip()}")
    if asks_for_gpu(error):
        return "unsupported", "it asks for CUDA; `tilelang-npu survey --gpu` runs it on the simulated NPU", line
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
    """Returns the outcome and the reason of a script that ended with exit code 0.

    Args:
        said: the script's standard output, and the text that the script itself wrote to standard error.
        complained: everything that was written to standard error. Libraries write warnings there, so only a traceback counts.
        kernels_ran: whether a kernel ran.
        held: the number of the script's assertions that held after a kernel had run.
        is_program: whether the script has a part under ``if __name__ == "__main__"``.
    """
    raised = RAISED.search(said) or RAISED.search(complained)
    if raised:
        return "refused", _short(f"it printed a traceback: {raised.group(1).strip()}")
    failed = FAILED.search(said)
    if failed:
        return "wrong", _short(f"it printed: {failed.group().strip()}")
    if not kernels_ran:
        return "unsupported", "no kernel ran" if is_program else MODULE
    if held or PASSED.search(said):
        return "passed", ""
    return "unsupported", UNCHECKED
