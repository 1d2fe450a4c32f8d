"""The command ``survey``, which runs each script and each pytest file of a folder in its own process, and reports the outcomes.

The report shows which files of a project run unmodified with this package, and the reasons why others do not, the most frequent
reason first. A survey that was interrupted continues with the remaining files.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypedDict

from tilelang_npu.cli.files import write_text
from tilelang_npu.cli.parser import Commands
from tilelang_npu.cli.script import add_gpu, gpu_of
from tilelang_npu.compat import profiler_program
from tilelang_npu.compat.outcomes import Case, CaseRecord, Outcome, of_output
from tilelang_npu.errors import TileError
from tilelang_npu.progress import shown
from tilelang_npu.runtime.kernel.executors import HELP, compute_each, open_executor
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.file_writing import replacing
from tilelang_npu.sharing import parse_python

__all__ = ["add_to", "survey"]

_WORDS: dict[Outcome, str] = {"passed": "passed", "wrong": "wrong numbers", "refused": "refused", "timeout": "timed out",
          "unsupported": "not simulated"}
_CODES: dict[Outcome, int] = {"wrong": 1, "refused": 3, "timeout": 4, "unsupported": 5}
"""The exit code for each outcome, the worst first; 2 is that of an error in the command line.

docs/command-line.md lists them."""


def add_to(commands: Commands) -> None:
    """Adds the command ``survey`` to the parser."""
    parser = commands.add_parser(
        "survey", help="run a folder of scripts and tests, and report what works",
        description="Run every script and every pytest file below DIR, unmodified, each in its own process and in its own"
                    " directory, and print the outcome of each: passed, wrong numbers, refused, timed out, or not simulated."
                    " The exit code is that of the worst outcome: 1 for wrong numbers, 3 for refused, 4 for timed out, and with"
                    " --strict 5 for files and tests that did not run; 0 otherwise. A survey that was interrupted continues"
                    " with the remaining files.",
    )
    parser.add_argument("folder", metavar="DIR", help="the folder, or one file")
    add_gpu(parser)
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="the number of processes that run at the same time (default: 1)")
    parser.add_argument("--executor", metavar="NAME",
                        help=f"where the processes are started: {HELP} (default: threads); a cluster must see DIR under the"
                             " same path")
    parser.add_argument("--timeout", type=float, default=300, metavar="S",
                        help="the time limit of a script or a test in seconds (default: 300)")
    parser.add_argument("--json", metavar="FILE", help="write the outcomes to a file")
    parser.add_argument("--against-interpreter", action="store_true",
                        help="run every call of a kernel both compiled and interpreted; if the results differ, the outcome is"
                             " wrong numbers")
    parser.add_argument("--strict", action="store_true",
                        help="fail (exit code 5) if a script or a test did not run, for example because a module is missing, or"
                             " if there is none")
    parser.add_argument("--restart", action="store_true", help="discard the results of an interrupted survey")
    parser.set_defaults(command=survey)


def survey(args: argparse.Namespace) -> int:
    """Runs all files of the folder, prints the report, and returns the exit code."""
    folder = Path(args.folder).resolve()
    if not folder.exists():
        raise TileError(f"{args.folder} does not exist", code="T801", help="give a folder of scripts")
    root = folder if folder.is_dir() else folder.parent
    files = list(_files(folder))
    profiler_program.install()  # once for all files: those that are ended at the time limit could not remove theirs
    state = _state_file(args.json, folder)
    if args.restart:
        state.unlink(missing_ok=True)
    state.parent.mkdir(parents=True, exist_ok=True)
    run = _Run(root, args.timeout, state, threads=max(1, (os.cpu_count() or 1) // max(1, args.jobs)),
               against=args.against_interpreter, gpu=gpu_of(args))
    done = run.known()
    left = [file for file in files if str(file.relative_to(root)) not in done]
    with (open_executor(args.executor or "threads", max(1, args.jobs)) as pool,
          shown(f"survey of {len(files)} files, {len(files) - len(left)} known" if len(left) < len(files) else "survey",
                len(left), "files") as step):
        try:
            for number, cases in compute_each(pool, run.cases_of, left):
                run.finish(left[number], cases if not isinstance(cases, BaseException) else run.lost(left[number], cases))
                step.done += 1
        except KeyboardInterrupt:
            run.stop()
            print(f"\ninterrupted; the same command continues from here ({state})", file=sys.stderr)
            return 130
    cases = sorted(run.cases(), key=lambda case: case.path)
    _print_report(cases)
    if args.json:
        write_text(args.json, json.dumps({"cases": [case.record() for case in cases]}, indent=1))
    state.unlink(missing_ok=True)
    return _exit_code(cases, strict=args.strict)


def _exit_code(cases: Sequence[Case], *, strict: bool) -> int:
    """Returns the exit code of the worst outcome. With ``strict``, the cases that did not run are printed, and count."""
    found = {case.outcome for case in cases}
    idle = [case.path for case in cases if case.did_not_run] if strict else []
    if idle:
        print(f"\n--strict: {len(idle)} did not run: {', '.join(idle)}", file=sys.stderr)
    if strict and not cases:
        print("\n--strict: there is nothing to run", file=sys.stderr)
    for outcome, code in _CODES.items():
        fails = bool(idle) or (strict and not cases) if outcome == "unsupported" else outcome in found
        if fails:
            return code
    return 0


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_file():
        yield folder
        return
    for file in sorted(folder.rglob("*.py")):
        hidden = any(part.startswith(".") or part == "__pycache__" for part in file.relative_to(folder).parts)
        if not hidden and file.name not in ("__init__.py", "conftest.py", "setup.py"):
            yield file


def _tree(file: Path) -> ast.Module | None:
    try:
        return parse_python(file.read_bytes())
    except (SyntaxError, ValueError):
        return None


def _is_pytest(file: Path) -> bool:
    """Whether the file has a name as for pytest and contains tests; a file without tests is run as a script."""
    tree = _tree(file)
    if tree is None or not (file.name.startswith("test_") or file.stem.endswith("_test")):
        return False
    return any(
        (isinstance(node, ast.FunctionDef) and node.name.startswith("test")) or
        (isinstance(node, ast.ClassDef) and any(isinstance(part, ast.FunctionDef) and part.name.startswith("test")
                                                for part in node.body))
        for node in tree.body
    )


def _is_program(file: Path) -> bool:
    """Whether a file is a script to run: it has ``if __name__ == "__main__"``, or a call at its top level."""
    return bool(re.search(r"__name__\s*==\s*['\"]__main__['\"]|^\w+\(", file.read_text(errors="replace"), re.MULTILINE))


def _state_file(json_file: str | None, folder: Path) -> Path:
    if json_file:
        return Path(json_file + ".part")
    return environment.cache_directory() / f"survey-{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}.part"


class _SavedLine(TypedDict):
    """A line of the file of the saved cases: a script or test file that has finished, and its cases."""

    finished: str
    cases: list[CaseRecord]


@dataclass
class _Run:
    """Runs the files of a survey, and saves the outcomes.

    A case is the outcome of one script or of one test. The cases are saved in a file, one line for each case, from which an
    interrupted survey continues.

    Attributes:
        root: the folder that paths are relative to.
        timeout: the time limit of a script or a test, in seconds.
        state: the file in which the cases are saved.
        threads: the number of threads of the arithmetic libraries in each process.
        against: whether every call of a kernel is compared with the interpreter.
        gpu: the value of ``TILELANG_NPU_GPU``, for files that were written for a GPU; empty for other files.
    """

    root: Path
    timeout: float
    state: Path
    threads: int
    against: bool = False
    gpu: str = ""

    def __post_init__(self) -> None:
        self.stopped = False

    def _lines(self) -> list[_SavedLine]:
        if not self.state.exists():
            return []
        found = []
        for line in self.state.read_text(encoding="utf-8").splitlines():
            with suppress(json.JSONDecodeError):  # a line that was being written when the survey was interrupted
                found.append(json.loads(line))
        return found

    def known(self) -> set[str]:
        """Returns the files whose cases are all saved. An incomplete last line is removed from the file of the cases."""
        lines = self._lines()
        with replacing(self.state) as state:
            state.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        return {line["finished"] for line in lines}

    def cases(self) -> list[Case]:
        """Returns the saved cases (the outcomes of scripts and tests) of all files that have finished."""
        return [Case(**case) for line in self._lines() for case in line.get("cases", [])]

    def finish(self, file: Path, cases: Sequence[Case]) -> None:
        """Saves the cases of a script or test file, which has then finished."""
        line = _SavedLine(finished=str(file.relative_to(self.root)), cases=[case.record() for case in cases])
        with self.state.open("a", encoding="utf-8") as state:
            state.write(json.dumps(line) + "\n")

    def cases_of(self, file: Path) -> list[Case]:
        """Runs a script or test file and returns its cases: one for a script, one for each test of a test file."""
        return self.tests(file) if _is_pytest(file) else self.script(file)

    def lost(self, file: Path, error: BaseException) -> list[Case]:
        """Returns the case of a file whose task failed on the executor, for example because its process died."""
        return [Case(str(file.relative_to(self.root)), "refused", f"{type(error).__name__}: {error}", None, 0.0)]

    def stop(self) -> None:
        """Ends the running processes, and prevents the start of further ones."""
        self.stopped = True

    def _environment(self, **more: str) -> dict[str, str]:
        count = str(self.threads)
        path = os.pathsep.join(filter(None, [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")]))
        return {**os.environ, "OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count, "PYTHONUNBUFFERED": "1",
                "PYTHONPATH": path, "MPLBACKEND": "Agg", **({environment.AGAINST.name: "1"} if self.against else {}),
                **({environment.GPU.name: self.gpu} if self.gpu else {}), **more}

    def _process(self, words: Sequence[str], output: BinaryIO | int, errors: BinaryIO | int, cwd: Path,
                 alive: Callable[[], float],
                 **more: str) -> int | None:
        """Runs a Python process and returns its exit code; None if it exceeded the time limit and was ended.

        Args:
            words: the arguments of the Python interpreter.
            output: the file for the standard output of the process.
            errors: the file for the standard error of the process.
            cwd: the working directory of the process.
            alive: returns the time (``time.monotonic()``) at which the process last reported progress, from which the time
                limit is counted.
            more: additional environment variables.
        """
        process = subprocess.Popen([sys.executable, *words], stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=errors, cwd=cwd, env=self._environment(**more))
        try:
            while True:
                try:
                    return process.wait(0.1)
                except subprocess.TimeoutExpired:
                    if self.stopped or time.monotonic() - alive() > self.timeout:
                        return None
        finally:
            process.kill()  # also where this thread is interrupted
            process.wait()

    def script(self, file: Path) -> list[Case]:
        """Runs a script and returns its case."""
        name = str(file.relative_to(self.root))
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as place:
            report, output, errors = Path(place, "report.json"), Path(place, "output.txt"), Path(place, "errors.txt")
            with output.open("wb") as sink, errors.open("wb") as complaints:
                code = self._process(["-m", "tilelang_npu.cli.script_case", str(file), str(report), str(self.root)], sink,
                                     complaints, file.parent, lambda: started)
            seconds = time.monotonic() - started
            if code is None:
                return [Case(name, "timeout", f"longer than {self.timeout:g} s", None, seconds)]
            said, complained = (path.read_text(encoding="utf-8", errors="replace") for path in (output, errors))
            if not report.exists():
                return [Case(name, "refused", _death(code, said + "\n" + complained), None, seconds)]
            found = json.loads(report.read_text(encoding="utf-8"))
        if "outcome" in found:
            return [Case(name, found["outcome"], found["reason"], found["line"], seconds)]
        if found["code"]:
            return [Case(name, "refused", f"it ended with exit code {found['code']}", None, seconds)]
        outcome, reason = of_output("\n".join([said, found["said"]]), complained, found["ran"], found["held"],
                                    _is_program(file))
        return [Case(name, outcome, reason, None, seconds)]

    def tests(self, file: Path) -> list[Case]:
        """Runs a pytest file and returns one case for each test."""
        name = str(file.relative_to(self.root))
        with tempfile.TemporaryDirectory() as place:
            report, output = Path(place, "report.jsonl"), Path(place, "output.txt")
            while True:
                before = _read_cases(report)
                started = time.monotonic()

                def alive(report: Path = report, started: float = started) -> float:
                    if not report.exists():
                        return started
                    return max(started, time.monotonic() - (time.time() - report.stat().st_mtime))

                with output.open("wb") as sink:
                    code = self._process(
                        ["-m", "pytest", "-q", "-p", "tilelang_npu.pytest_plugin", "-p",
                         "no:cacheprovider", str(file)], sink, subprocess.STDOUT, file.parent, alive,
                        TILELANG_NPU_SURVEY=str(report), TILELANG_NPU_SURVEY_ROOT=str(self.root))
                cases = _read_cases(report)
                if code in (0, 1, 2, 5) or self.stopped:  # pytest's codes: passed, failures, interrupted, no tests
                    break
                running = report.with_suffix(".running")
                current = running.read_text(encoding="utf-8") if running.exists() else name
                running.unlink(missing_ok=True)
                why = (f"longer than {self.timeout:g} s" if code is None
                       else _death(code, output.read_text(encoding="utf-8", errors="replace")))
                case = Case(current, "timeout" if code is None else "refused", why, None, time.monotonic() - started)
                with report.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(case.record()) + "\n")
                cases.append(case)
                if current == name or len(cases) == len(before):
                    break
            if not cases:
                text = output.read_text(encoding="utf-8", errors="replace")
                return [Case(name, "unsupported", "no test was run: " + _last_line(text))]
        if all(case.reason.startswith("FixtureLookupError") for case in cases) and _is_program(file):
            return self.script(file)  # the functions are not tests: a script's functions with names that begin with "test"
        return cases


def _read_cases(report: Path) -> list[Case]:
    if not report.exists():
        return []
    return [Case(**json.loads(line)) for line in report.read_text(encoding="utf-8").splitlines()]


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:200]


def _death(code: int, text: str) -> str:
    how = f"the process was ended by signal {-code}" if code < 0 else f"the process ended with exit code {code}"
    return f"{how}: {_last_line(text)}"


def _print_report(cases: Sequence[Case]) -> None:
    """Prints rows for the files, then totals, then reasons. Tests that passed share their file's row."""
    rows: list[tuple[str, str, str]] = []
    passed = Counter(case.path.partition("::")[0] for case in cases if case.outcome == "passed")
    for path in dict.fromkeys(case.path.partition("::")[0] for case in cases):
        own = [case for case in cases if case.path.partition("::")[0] == path]
        if passed[path]:
            count = f"{passed[path]} tests" if any("::" in case.path for case in own) else ""
            rows.append(("passed", path, count))
        rows += [(_WORDS[case.outcome], case.path, " | ".join(filter(None, [case.reason, case.line])))
                 for case in own if case.outcome != "passed"]
    for word, path, why in rows:
        print(f"{word:<14}{path}" + (f"\n{'':14}{why}" if why else ""))
    totals = Counter(case.outcome for case in cases)
    print(f"\n{len(cases)} cases: " + ", ".join(f"{totals[outcome]} {word}" for outcome, word in _WORDS.items()))
    reasons = Counter((case.outcome, _pattern(case.reason)) for case in cases if case.reason)
    if reasons:
        print("\nreasons, most frequent first")
    for (outcome, pattern), number in reasons.most_common():
        print(f"{number:6}  {_WORDS[outcome]:<14}{pattern}")


def _pattern(reason: str) -> str:
    """Returns the reason of a failure without its numbers, so that equal reasons of different cases are counted together."""
    return re.sub(r"(?<![\w.])\d+(\.\d+)?(e[+-]?\d+)?", "#", reason)
