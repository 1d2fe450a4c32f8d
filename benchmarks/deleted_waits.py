"""Deletes each signal, wait, quiet and barrier of the ladders over several cards, one at a time, and lists what reports it.

    python benchmarks/deleted_waits.py                          # all steps, with the originals: no report is a false alarm
    python benchmarks/deleted_waits.py moe_dispatch_combine     # one ladder
    python benchmarks/deleted_waits.py --markdown               # the table of docs/pods-missing-waits.md

A program runs at the ladder's small sizes, with the sanitizer for each card and the one for the pod. It is reported if one of
them finds something, or the run ends with an error of its own; ``values`` are wrong values that nothing explains. A barrier of
the cards before a launch counts as a statement of the step.
"""

from __future__ import annotations

import argparse
import ast
import runpy
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples" / "pods"))

import pod_ladder

from tilelang_npu import TileError
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.jit.recording import record

DELETED = ("shmem_signal_op", "shmem_signal_wait_until", "shmem_quiet", "sync_all", "set_cross_flag", "wait_cross_flag")
"""The functions of ``T`` whose calls are deleted."""
TIMEOUT = 60.0


@dataclass(frozen=True)
class Deletion:
    """A statement of a step that is deleted.

    Attributes:
        folder: the ladder.
        step: the file of the step, without its suffix.
        line: the line of the statement; 0 for a barrier of the cards.
        text: the statement.
        launch: the launch before which the cards do not meet; -1 if a statement of the kernel is deleted.
    """

    folder: str
    step: str
    line: int
    text: str
    launch: int = -1


def statements(file: Path) -> Iterator[Deletion]:
    """Yields the statements of a step's kernels that can be deleted."""
    source = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute) \
                and node.value.func.attr in DELETED:
            yield Deletion(file.parent.name, file.stem, node.lineno, ast.unparse(node))


def deletions(folder: Path) -> Iterator[Deletion]:
    """Yields all that is deleted of a ladder: in each step the statements, and the barriers between launches.

    The barrier before the first launch is not one of them: it orders what the host writes.
    """
    ladder = pod_ladder.load(folder)
    for file in sorted(folder.glob("step*.py")):
        yield from sorted(statements(file), key=lambda one: one.line)
        program = runpy.run_path(str(file), run_name=file.stem)[folder.name]
        for launch in range(1, len(program(rank=0, **ladder.small))):
            yield Deletion(folder.name, file.stem, 0, f"the barrier before launch {launch + 1}", launch)


def changed(source: str, line: int) -> str:
    """Returns the source of a step with the statement that begins at a line replaced by ``pass``."""
    return without(source, next(node for node in ast.walk(ast.parse(source))
                                if isinstance(node, ast.Expr) and node.lineno == line))


def without(source: str, node: ast.stmt) -> str:
    """Returns a source with a statement replaced by ``pass``; its lines keep their numbers."""
    lines = source.splitlines(keepends=True)
    assert node.end_lineno is not None
    lines[node.lineno - 1:node.end_lineno] = [" " * node.col_offset + "pass\n", *["\n"] * (node.end_lineno - node.lineno)]
    return "".join(lines)


def reports(folder: Path, step: str, deleted: Deletion | None = None) -> list[str]:
    """Runs a step, without a statement if one is given, and returns the codes of what is reported; ``values`` for wrong values
    that nothing explains."""
    ladder = pod_ladder.load(folder)
    source = (folder / f"{step}.py").read_text(encoding="utf-8")
    if deleted is not None and deleted.launch < 0:
        source = changed(source, deleted.line)
    session, found = Sanitizer(), set()
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(place) / f"{step}.py"
        file.write_text(source, encoding="utf-8")
        try:
            program = runpy.run_path(str(file), run_name=step)[folder.name]
            with record(sanitizer=session, every_thread=True):
                ladder.check_values(program, timeout=TIMEOUT, unmet=-1 if deleted is None else deleted.launch)
        except TileError as error:
            found.add(str(error.code))
        except AssertionError:
            found.add("values")
    found |= {str(finding.code) for finding in session.findings if finding.allowed is None}
    return sorted(found - {"values"}) or sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ladders", nargs="*", metavar="LADDER", help="names of folders of examples/pods; all without one")
    parser.add_argument("--markdown", action="store_true", help="print the rows of the table in docs/pods-missing-waits.md")
    args = parser.parse_args()
    quiet = missed = 0
    for folder in pod_ladder.folders():
        if args.ladders and folder.name not in args.ladders:
            continue
        for file in sorted(folder.glob("step*.py")) if not args.markdown else ():
            found = reports(folder, file.stem)
            quiet += bool(found)
            print(f"{folder.name}/{file.stem}: {', '.join(found) or 'no report'}", flush=True)
        for one in deletions(folder):
            found = reports(folder, one.step, one)
            missed += not found or found == ["values"]
            codes = ", ".join(found) or "nothing"
            where = f"{one.step}.py" + (f":{one.line}" if one.line else "")
            print(f"| `{folder.name}/{where}` | `{one.text}` | {codes} |" if args.markdown else
                  f"  {where} without {one.text}: {codes}", flush=True)
    if not args.markdown:
        print(f"{quiet} false alarms, {missed} deletions that nothing reports")


if __name__ == "__main__":
    main()
