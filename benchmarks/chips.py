"""Runs every example, and every step of the ladders at its smallest size, on chips, and reports whether the results are right.

    python benchmarks/chips.py                       # on the invented chips of tests/target/chips
    python benchmarks/chips.py 910_95 my_chip.toml   # on the given chips
    python benchmarks/chips.py --only attention A6.py

An example is right, refused (with a code of docs/diagnostics), or wrong; if one is wrong, the exit code is 1. One chip takes
about two minutes of processor time; ``--sanitize`` also looks for hazards.
"""

from __future__ import annotations

import argparse
import math
import os
import runpy
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
MADE_UP = ROOT / "tests" / "target" / "chips"


def examples() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yields the name of each example and of each step, with a function that runs it and raises an error if it is wrong."""
    sys.path.insert(0, str(EXAMPLES))
    import ladders

    for file in sorted(EXAMPLES.glob("*.py")):
        yield file.stem, lambda file=file: runpy.run_path(str(file), run_name="__main__")
    for folder in ladders.folders():
        ladder = ladders.load(folder)
        smallest = min(ladder.cases, key=lambda case: math.prod(size for size in case.values() if isinstance(size, int)))
        for step in ladders.steps(folder):
            yield f"{folder.name}/{step.file.stem}", lambda ladder=ladder, smallest=smallest, step=step: replace(
                ladder, cases=[smallest]).check_values(step.factory())


def outcome(run: Callable[[], object]) -> tuple[str, str]:
    """Returns the outcome of a run, ``right``, ``refused`` or ``wrong``, and the text of its error."""
    from tilelang_npu.errors import TileError

    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            run()
    except TileError as error:
        wrong = error.code in ("T410", "T502") or error.code[0] == "S"
        return "wrong" if wrong else "refused", f"{error.code} {error.message}"
    except Exception as error:  # noqa: BLE001  (any exception is a result: the table has its type and text)
        return "wrong", f"{type(error).__name__} {' '.join(str(error).split())[:200]}"
    return "right", ""


def chips_of(given: Sequence[str]) -> Iterator[str]:
    """Yields the names of the chips; for a file, those of all chips that it describes."""
    from tilelang_npu import target

    for name in given or sorted(map(str, MADE_UP.iterdir())):
        found = target.chip(name)
        yield from (chip.name for chip in target.chips() if chip.file == found.file) if found.file else (found.name,)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("chips", nargs="*", metavar="CHIP", help="names or files; those of tests/target/chips if none is given")
    parser.add_argument("--only", metavar="TEXT", default="", help="examples with the text in their name")
    parser.add_argument("--sanitize", action="store_true", help="look for hazards after every run")
    args = parser.parse_args()
    os.environ["TILELANG_DISABLE_CACHE"] = "1"
    if args.sanitize:
        os.environ["TILELANG_NPU_SANITIZE"] = "1"
    wrong = 0
    for chip in list(chips_of(args.chips)):
        os.environ["TILELANG_NPU_CHIP"] = chip
        started, counts = time.process_time(), Counter[str]()
        for name, run in examples():
            if args.only in name:
                how, said = outcome(run)
                counts[how] += 1
                if how != "right":
                    print(f"{chip:<12} {name:<40} {how}: {said}", flush=True)
        print(f"{chip:<12} {counts['right']} right, {counts['refused']} refused, {counts['wrong']} wrong; "
              f"{time.process_time() - started:.0f} s of processor time", flush=True)
        wrong += counts["wrong"]
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
