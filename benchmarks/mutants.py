"""Mutation testing of the package: finds out which small faults in the compiler and the simulator the tests and the fuzzer
detect.

    python benchmarks/mutants.py map --count 400 --jobs 2   # runs the suite once: which tests evaluate each mutated expression
    python benchmarks/mutants.py run --count 200 --jobs 2   # tests the first 200 mutants, and prints the ones that survive

The first mutants of a larger ``--count`` are those of a smaller one with the same ``--seed``.

A mutant is one comparison, arithmetic operator, constant or boolean operator of ``transforms``, ``frontend``, ``traced`` or
``simulator`` that is replaced: ``<`` by ``<=``, ``+`` by ``-``, ``2`` by ``3``, ``and`` by ``or``, ``not x`` by ``x``. Texts of
errors and annotations are not mutated. A mutant is killed if one of the tests that evaluate the expression fails (tests named
after the file run first, then the fastest), if the fuzzer finds something within ``--fuzz`` seconds, or if the tests take six
times as long as without the mutant. Results are appended to ``FOLDER/results.jsonl``, and a run continues an earlier one;
``--again --seconds 600`` runs more tests on the survivors.

The map is made with a copy of the package in which each expression to be mutated records the running test when it is evaluated:
``a < b`` is ``(_note(17) or (a < b))`` there. This costs hardly any time, and also covers processes that tests start.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "tilelang_npu"
PARTS = ("transforms", "frontend", "traced", "simulator")
COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not",
               ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
_ERRORS = ("TileError", "refuse")
ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Mod: "//", ast.LShift: ">>", ast.RShift: "<<",
              ast.BitAnd: "|", ast.BitOr: "&", ast.Div: "*"}


@dataclass(frozen=True)
class Mutant:
    """A change of one expression in one file.

    Attributes:
        file: the path within the package.
        line: the first line of the change.
        start, end: the characters of the file that are replaced.
        before, after: the original and the new text.
        whole: the characters of the whole expression.
    """

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str
    whole: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before}  ->  {self.after}"


# --- the places of a file ----------------------------------------------------------------------------------------------------


def mutants(file: Path) -> Iterator[Mutant]:
    """Yields all mutants of a file."""
    text = file.read_text(encoding="utf-8")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def at(line: int, column: int) -> int:
        before = text[starts[line - 1]:].encode()[:column].decode()
        return starts[line - 1] + len(before)

    def span(node: ast.expr) -> tuple[int, int]:
        return at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)

    def replaced(node: ast.expr, after: str) -> Mutant:
        start, end = span(node)
        return Mutant(str(file.relative_to(SOURCE)), node.lineno, start, end, text[start:end], after, (start, end))

    def between(left: ast.expr, right: ast.expr, whole: ast.expr, after: str) -> Mutant:
        start, end = at(left.end_lineno or 0, left.end_col_offset or 0), at(right.lineno, right.col_offset)
        gap = text[start:end]
        inner = gap.strip(" ()\n")
        place = start + gap.index(inner)
        return Mutant(str(file.relative_to(SOURCE)), whole.lineno, place, place + len(inner), inner, after, span(whole))

    for node in _code(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
                yield between(left, right, node, COMPARISONS[type(op)])
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_text(node):
            yield between(node.left, node.right, node, ARITHMETIC[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield between(left, right, node, "or" if isinstance(node.op, ast.And) else "and")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            operand = replaced(node.operand, "").before
            yield replaced(node, f"({operand})")
        elif isinstance(node, ast.Constant) and type(node.value) in (bool, int):
            yield replaced(node, repr(not node.value if isinstance(node.value, bool) else node.value + 1))


def _is_text(node: ast.BinOp) -> bool:
    """Whether an operation concatenates strings, or is a union of types."""
    return any(isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, (str, type(None))))
               for part in ast.walk(node))


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a file's functions that can be mutated: no annotations, no errors, no texts."""
    seen: set[ast.AST] = set()
    for function in [part for part in ast.walk(tree) if isinstance(part, ast.FunctionDef)]:
        bodies: list[ast.AST] = list(function.body)
        while bodies:
            node = bodies.pop()
            if node in seen or isinstance(node, (ast.Raise, ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom)):
                continue
            seen.add(node)
            yield node
            if isinstance(node, ast.AnnAssign):
                bodies += [node.value] if node.value is not None else []
                continue
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                bodies += node.body
                continue
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in _ERRORS:
                continue
            bodies += ast.iter_child_nodes(node)


def drawn(count: int, seed: int) -> list[Mutant]:
    """Returns mutants, drawn uniformly from all expressions, except ``strict=`` of zip, which is only a check like an
    assert."""
    every = [mutant for part in PARTS for file in sorted((SOURCE / part).rglob("*.py")) for mutant in mutants(file)]
    random.Random(seed).shuffle(every)
    found: list[Mutant] = []
    for mutant in every:
        if len(found) == count:
            break
        if not (SOURCE / mutant.file).read_text(encoding="utf-8")[:mutant.start].endswith("strict="):
            found.append(mutant)
    return found


# --- tests that evaluate a place ---------------------------------------------------------------------------------------------

NOTES = """\
import builtins, os

seen = set()

def note(number):
    if number not in seen:
        seen.add(number)
        test = os.environ.get("PYTEST_CURRENT_TEST")
        if test is not None:
            with open(os.path.join(os.environ["MUTANT_NOTES"], str(os.getpid())), "a", encoding="utf-8") as file:
                file.write(str(number) + " " + test.rpartition(" ")[0] + chr(10))

builtins._note = note
"""
"""``sitecustomize`` of the processes that record expressions: writes a line for each expression and test."""
FORGETS = """\
import sitecustomize

def pytest_runtest_logstart(nodeid, location):
    sitecustomize.seen.clear()
"""
"""The pytest plugin that records the name of the running test."""


def make_map(folder: Path, chosen: list[Mutant], jobs: int) -> None:
    """Runs the suite once, and records which tests evaluate which mutant's expression and how long each test takes."""
    place, notes = folder / "noting", folder / "notes"
    for old in (place, notes):
        shutil.rmtree(old, ignore_errors=True)
    notes.mkdir(parents=True)
    _copy(place)
    for file in {mutant.file for mutant in chosen}:
        path = place / "src" / "tilelang_npu" / file
        numbers: dict[tuple[int, int], list[int]] = {}
        for number, mutant in enumerate(chosen):
            if mutant.file == file:
                numbers.setdefault(mutant.whole, []).append(number)
        path.write_text(_noting(path.read_text(encoding="utf-8"), numbers), encoding="utf-8")
    (place / "sitecustomize.py").write_text(NOTES, encoding="utf-8")
    (place / "mutant_notes.py").write_text(FORGETS, encoding="utf-8")
    environment = _environment(place)
    environment.update(PYTHONPATH=f"{place / 'src'}{os.pathsep}{place}", MUTANT_NOTES=str(notes))
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", str(jobs), "-p", "mutant_notes", "-o", "junit_family=xunit1",
                    f"--junit-xml={folder / 'times.xml'}"], cwd=place, env=environment, check=False)
    times, tests = _times(folder / "times.xml"), [set[str]() for _ in chosen]
    for written in notes.iterdir():
        for line in written.read_text(encoding="utf-8").splitlines():
            number_text, _, test = line.partition(" ")
            if test in times:  # excludes the tests of a suite that a test runs
                tests[int(number_text)].add(test)
    found = {_key(mutant): sorted((times[test], test) for test in tests[number])
             for number, mutant in enumerate(chosen)}
    (folder / "map.json").write_text(json.dumps(found, indent=0), encoding="utf-8")


def _noting(text: str, numbers: dict[tuple[int, int], list[int]]) -> str:
    """Returns the source of a file in which the expressions at these characters record their numbers; they may be nested."""
    inserted = []
    for (start, end), noted in numbers.items():
        calls = " or ".join(f"_note({number})" for number in noted)
        inserted += [(start, 1, -end, f"({calls} or ("), (end, 0, -start, "))")]
    for at, _, _, added in sorted(inserted, reverse=True):
        text = text[:at] + added + text[at:]
    return text


def _key(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.start}:{mutant.after}"


def _times(file: Path) -> dict[str, float]:
    """Returns the seconds of each test that passed, by its node id.

    A test that fails without a mutant must not count as one that kills it.
    """
    from xml.etree import ElementTree

    failed = ("failure", "error", "skipped")
    return {f"{case.get('file')}::{case.get('name')}": float(case.get("time") or 0)
            for case in ElementTree.parse(file).iter("testcase") if all(part.tag not in failed for part in case)}


# --- judging a mutant --------------------------------------------------------------------------------------------------------


START = 20.0
"""The seconds that pytest takes before its first test."""
Timed = list[tuple[float, str]]
"""Tests with their durations in seconds, the fastest first."""


def judge(mutant: Mutant, tests: Timed, seconds: float, fuzz: float) -> dict[str, object]:
    """Returns what detects a mutant: one of the tests that evaluate its expression, the fuzzer, or nothing."""
    place = Path(tempfile.mkdtemp(prefix="mutant-"))
    started = time.monotonic()
    try:
        _copy(place)
        file = place / "src" / "tilelang_npu" / mutant.file
        text = file.read_text(encoding="utf-8")
        assert text[mutant.start:mutant.end] == mutant.before, mutant
        file.write_text(text[:mutant.start] + mutant.after + text[mutant.end:], encoding="utf-8")
        own = re.sub("[_-]", "[_-]", Path(mutant.file).stem)
        by = (_by_tests(place, sorted(tests, key=lambda test: re.search(own, test[1]) is None), seconds)
              or _by_fuzzer(place, fuzz))
        return {**asdict(mutant), "killed": by is not None, "by": by, "tests": len(tests),
                "seconds": round(time.monotonic() - started, 1)}
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _require_a_passing_test(tests: dict[str, Timed]) -> None:
    """Runs one test on a copy without a mutant: if it fails, every mutant would count as killed.

    Raises:
        RuntimeError: the test fails or pytest does not start, with the end of its output.
    """
    fastest = min(timed[0] for timed in tests.values() if timed)
    with tempfile.TemporaryDirectory(prefix="mutant-") as place:
        _copy(Path(place))
        if (failure := _by_tests(Path(place), [fastest], 1.0)) is not None:
            raise RuntimeError(f"{fastest[1]} fails without a mutant: {failure}")


def _copy(place: Path) -> None:
    """Copies the files of the repository."""
    for name in ("src", "tests", "examples", "benchmarks", "docs"):
        shutil.copytree(ROOT / name, place / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml", "LICENSE"):
        shutil.copy(ROOT / name, place / name)


def _environment(place: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(place / "src"), "TILELANG_CACHE_DIR": str(place / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1"}


def _by_tests(place: Path, tests: Timed, seconds: float) -> str | None:
    """Runs tests that take ``seconds`` in total, the first ones and for the second half others; returns the one that fails."""
    chosen, total, others = [], 0.0, []
    for took, test in tests:
        if total < seconds / 2:
            chosen.append(test)
            total += took
        else:
            others.append((took, test))
    for took, test in random.Random(0).sample(others, len(others)):
        if total + took <= seconds:
            chosen.append(test)
            total += took
    if not chosen:
        return None
    listed = place / "chosen.txt"
    listed.write_text("\n".join(chosen), encoding="utf-8")
    limit = 6 * (total + START)
    try:
        done = subprocess.run([sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"@{listed}"], cwd=place,
                              env=_environment(place), capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"no end within {limit:.0f} s"
    if done.returncode == 0:
        return None
    if done.returncode in (4, 5):  # the mutant changes the names of tests, or a test's module cannot be imported
        if not _is_collected(chosen):
            raise RuntimeError(f"pytest does not find the tests of {place}: {(done.stdout + done.stderr)[-500:]}")
        missing = re.search(r"(not found: \S+|^ERROR tests/.*$)", done.stdout + done.stderr, re.MULTILINE)
        return (missing[1] if missing else "tests are not found")[:200]
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0][:200] if failed else f"exit code {done.returncode}: {(done.stdout + done.stderr)[-200:]}"


def _is_collected(tests: Sequence[str]) -> bool:
    """Whether pytest finds tests in the repository, without a mutant."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as listed:
        listed.write("\n".join(tests))
        listed.flush()
        command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", f"@{listed.name}"]
        return subprocess.run(command, cwd=ROOT, env=_environment(ROOT), capture_output=True, check=False).returncode == 0


def _by_fuzzer(place: Path, seconds: float) -> str | None:
    """Runs the fuzzer and returns its finding."""
    try:
        done = subprocess.run([sys.executable, "benchmarks/fuzz.py", str(seconds), "--seed", "900000", "--shrink", "0",
                               "--first", "--keep", str(place / "found")], cwd=place, env=_environment(place),
                              capture_output=True, text=True, timeout=seconds + 120, check=False)
    except subprocess.TimeoutExpired:
        return "the fuzzer does not end"
    return None if done.returncode == 0 else "fuzzer: " + (done.stdout + done.stderr).strip()[:200]


def run(folder: Path, chosen: list[Mutant], jobs: int, seconds: float, fuzz: float, *, again: bool) -> int:
    """Tests mutants, and prints a summary; returns 1 if fewer than 90 % are killed."""
    results = folder / "results.jsonl"
    tests = json.loads((folder / "map.json").read_text(encoding="utf-8"))
    known = {}
    if results.exists():
        for line in results.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            known[row["file"], row["start"], row["after"]] = row
    _require_a_passing_test(tests)
    left = [mutant for mutant in chosen if (row := known.get((mutant.file, mutant.start, mutant.after))) is None
            or (again and not row["killed"])]
    with ThreadPoolExecutor(jobs) as pool, results.open("a", encoding="utf-8") as written:
        for done in as_completed(pool.submit(judge, mutant, tests[_key(mutant)], seconds, fuzz) for mutant in left):
            if (wrong := done.exception()) is not None:  # the other mutants are judged nevertheless
                print(f"not judged: {wrong}", flush=True)
                continue
            row = done.result()
            known[row["file"], row["start"], row["after"]] = row
            written.write(json.dumps(row) + "\n")
            written.flush()
            place = f"{row['file']}:{row['line']}: {row['before']} -> {row['after']}"
            outcome = f"killed   {place} ({row['by']})" if row["killed"] else f"SURVIVES {place} ({row['tests']} tests)"
            print(outcome, flush=True)
    rows = [row for mutant in chosen if (row := known.get((mutant.file, mutant.start, mutant.after))) is not None]
    killed = sum(bool(row["killed"]) for row in rows)
    print(f"{killed} of {len(rows)} mutants are killed ({100 * killed / len(rows):.1f} %)")
    return int(killed < 0.9 * len(rows))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("map", "run", "list"))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "tilelang-mutants")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=40, help="seconds for the tests of a mutant")
    parser.add_argument("--fuzz", type=float, default=60, help="seconds for the fuzzer, if the tests pass")
    parser.add_argument("--again", action="store_true", help="test survivors again, with these limits")
    args = parser.parse_args()
    chosen = drawn(args.count, args.seed)
    if args.what == "map":
        make_map(args.folder, chosen, args.jobs)
        return 0
    if args.what == "list":
        for mutant in chosen:
            print(mutant)
        return 0
    return run(args.folder, chosen, args.jobs, args.seconds, args.fuzz, again=args.again)


if __name__ == "__main__":
    sys.exit(main())
