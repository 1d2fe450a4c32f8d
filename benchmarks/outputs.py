"""Compares the compiler's output before and after a change for every example and ladder step: HIVM text, waits, bytes, modelled
time.

    python benchmarks/outputs.py write FOLDER            # FOLDER/NAME.mlir of each kernel, and FOLDER/figures.json
    python benchmarks/outputs.py compare BEFORE AFTER    # prints each kernel that differs; ends with 1 if one is worse

A kernel is worse if it has more waits or barriers, uses more bytes of a memory, or is slower by more than 0.05 %. ``write``
also prints the processor time for compiling every kernel without the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
WAITS = re.compile(r"hivm\.hir\.(wait_flag|pipe_barrier|sync_block_wait|sync_block\b)")
SLOWER = 1.0005
"""The factor of the modelled time above which a kernel is slower; it allows for the rounding of printed times."""


def kernels() -> Iterator[tuple[str, Any, Any]]:
    """Yields name, kernel and launch of every kernel of the examples and of every step of the ladders at its large sizes."""
    sys.path.insert(0, str(EXAMPLES))
    import ladders

    from tilelang_npu.runtime.jit.recording import record

    for file in sorted(EXAMPLES.glob("*.py")):
        with record(every_thread=True) as done, redirect_stdout(StringIO()):
            runpy.run_path(str(file), run_name="__main__")
        for number, tally in enumerate(done.tallies):
            yield f"{file.stem}-{number}", tally.kernel, tally.last
    for folder in ladders.folders():
        ladder = ladders.load(folder)
        for step in ladders.steps(folder):
            factory = step.factory()
            for number, case in enumerate(ladder.large):
                timed = ladder.time_case(factory, case)
                yield f"{folder.name}-{step.file.stem}-{number}", timed.kernel, timed.launch


def write(folder: Path) -> None:
    """Writes the text of each kernel and a table of their figures."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {}
    for name, kernel, launch in kernels():
        text = kernel.mlir()
        (folder / f"{name}.mlir").write_text(text, encoding="utf-8")
        memories: dict[str, int] = {}
        for memory in kernel.memory_report().memories:
            place = f"{memory.core} {memory.name}"
            memories[place] = max(memories.get(place, 0), memory.used)
        figures[name] = {"waits": len(WAITS.findall(text)), "time_us": launch.time_us, "bytes": memories}
    (folder / "figures.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    print(f"{len(figures)} kernels, {sum(row['waits'] for row in figures.values())} waits, in {folder}")


def compare(before: Path, after: Path) -> int:
    """Prints the differences between two folders, and returns 1 if a kernel is worse or missing."""
    old, new = (json.loads((folder / "figures.json").read_text(encoding="utf-8")) for folder in (before, after))
    worse = sorted(old.keys() - new.keys())
    for name in worse:
        print(f"{name}: missing")
    same = 0
    for name in sorted(old.keys() & new.keys()):
        texts = [(folder / f"{name}.mlir").read_text(encoding="utf-8") for folder in (before, after)]
        is_worse = (new[name]["waits"] > old[name]["waits"] or new[name]["time_us"] > SLOWER * old[name]["time_us"]
                    or any(used > old[name]["bytes"].get(place, 0) for place, used in new[name]["bytes"].items()))
        same += texts[0] == texts[1] and old[name] == new[name]
        if texts[0] != texts[1] or old[name] != new[name]:
            print(f"{name}: {'WORSE' if is_worse else 'other text'}; {old[name]} -> {new[name]}")
        worse += [name] * is_worse
    print(f"{same} of {len(old)} kernels are the same, {len(worse)} are worse; waits "
          f"{sum(row['waits'] for row in old.values())} -> {sum(row['waits'] for row in new.values())}")
    return int(bool(worse))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("write", "compare"))
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    args = parser.parse_args()
    if len(args.folders) != (1 if args.what == "write" else 2):
        parser.error("write takes one folder, compare two")
    if args.what == "compare":
        return compare(*args.folders)
    os.environ["TILELANG_DISABLE_CACHE"] = "1"
    started = time.process_time()
    write(args.folders[0])
    print(f"{time.process_time() - started:.0f} s of processor time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
