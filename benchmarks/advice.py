"""Whether the advice of profiles holds: each edit is written into its script, and the script runs again.

    python benchmarks/advice.py FOLDER [PATTERN...] [--count 200] [--jobs 2] [--seconds 300] [--json FILE]

runs the scripts below ``FOLDER`` whose paths match a pattern (all without one), such as ``examples`` of a checkout of
https://github.com/tile-ai/tilelang-ascend, by ``tilelang-npu run SCRIPT --profile --json``. Each advice of each kernel is
applied alone to a copy of its script by ``tilelang_npu.source_changes.apply_changes``; the copy runs again, with the checks
that it makes itself. An advice *applies* if the edited script ends as the original does, and *holds* if its kernel then wins
at least 80 % of the promised gain. The command prints a row for each advice and both shares, and exits with 1 if either is
below 95 %.

``--json FILE`` keeps the rows; advice of scripts that are in the file is not tried again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tilelang_npu.source_changes import SourceChange, apply_changes

KEPT = 0.8
"""The share of the promised gain that an edited kernel must win."""
WANTED = 0.95
"""The share of advice that must apply and hold."""


@dataclass(frozen=True)
class Row:
    """An advice and what became of it.

    Attributes:
        script: the path of the script, below the folder.
        kernel: the place of the kernel among those that the script runs.
        text: the advice.
        before: the modelled microseconds of the kernel.
        promised: those after the edit, as the advice says.
        measured: those of the kernel in the edited script; None if the script does not end as before.
        problem: the last line of the script's errors if it does not.
    """

    script: str
    kernel: int
    text: str
    before: float
    promised: float
    measured: float | None
    problem: str = ""

    @property
    def holds(self) -> bool:
        """Whether the edited kernel wins enough."""
        return self.measured is not None and self.before - self.measured >= KEPT * (self.before - self.promised)

    def __str__(self) -> str:
        after = "does not run" if self.measured is None else f"{self.measured:.1f} us"
        outcome = "holds" if self.holds else self.problem or "wins less"
        times = f"{self.before:.1f} us, promised {self.promised:.1f}, {after}"
        return f"{self.script} kernel {self.kernel}: {self.text}: {times}: {outcome}"


def run(script: Path, seconds: float, *, profile: bool) -> tuple[dict[str, Any] | None, str]:
    """Run a script, and return the report of its kernels, and the last line of its errors; None if there is no report."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.json"
        options = ["--profile"] * profile
        try:
            done = subprocess.run([sys.executable, "-m", "tilelang_npu", "run", *options, "--json", str(file), script.name],
                                  cwd=script.parent, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return None, f"no end within {seconds:.0f} s"
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
        return (json.loads(file.read_text(encoding="utf-8")) if file.exists() else None), last


def rows_of(folder: Path, script: Path, seconds: float) -> Iterator[Row]:
    """Yield the advice of a script's kernels, each tried."""
    first, _ = run(script, seconds, profile=True)
    if first is None or first["exit_code"] != 0:
        return
    seen = set()
    for place, kernel in enumerate(first["kernels"]):
        for advice in kernel.get("profile", {}).get("advice", ()):
            changes = [SourceChange(row["file"], row["line"], tuple(row["before"]), tuple(row["after"]))
                       for row in advice["changes"]]
            key = (kernel["name"], tuple(changes))
            if not changes or key in seen or {(script.parent / change.file).resolve() for change in changes} != {
                    script.resolve()}:
                continue
            seen.add(key)
            yield tried(folder, script, (place, len(first["kernels"])), advice, changes, seconds)


def tried(folder: Path, script: Path, kernel: tuple[int, int], advice: dict[str, Any], changes: Sequence[SourceChange],
          seconds: float) -> Row:
    """Write an edit into a copy of a script, run it, and return its row.

    Args:
        folder: the folder of all scripts.
        script: the script.
        kernel: the place of the kernel, and how many kernels the script runs.
        advice: the advice as data.
        changes: its changes.
        seconds: the time limit of a run.
    """
    place, count = kernel
    before = advice["us"] / (1 - advice["gain"])
    with tempfile.TemporaryDirectory() as copied:
        shutil.copytree(script.parent, copied, dirs_exist_ok=True)
        copy = Path(copied) / script.name
        copy.write_text(apply_changes(script.read_text(encoding="utf-8"), changes), encoding="utf-8")
        after, problem = run(copy, seconds, profile=False)
    measured = None
    if after is not None and after["exit_code"] == 0 and len(after["kernels"]) == count:
        measured = after["kernels"][place]["last_launch"]["time_us"]
    return Row(str(script.relative_to(folder)), place, advice["text"], before, advice["us"], measured,
               problem if measured is None else "")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    parser.add_argument("--count", type=int, default=200, help="after so many pieces of advice no further script is begun")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=300, help="time limit of a run of a script")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    kept = json.loads(args.json.read_text(encoding="utf-8")) if args.json is not None and args.json.exists() else {}
    scripts = [path for path in sorted(args.folder.rglob("*.py"))
               if not args.patterns or any(fnmatch(str(path.relative_to(args.folder)), one) for one in args.patterns)]
    rows: list[Row] = []

    def judge(script: Path) -> list[Row]:
        name = str(script.relative_to(args.folder))
        if name in kept:
            return [Row(**row) for row in kept[name]]
        return list(rows_of(args.folder, script, args.seconds)) if len(rows) < args.count else []

    with ThreadPoolExecutor(args.jobs) as pool:
        for script, found in zip(scripts, pool.map(judge, scripts), strict=True):
            rows += found
            kept[str(script.relative_to(args.folder))] = [asdict(row) for row in found]
            for row in found:
                print(row, flush=True)
            if args.json is not None:
                args.json.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    applies = sum(row.measured is not None for row in rows)
    holds = sum(row.holds for row in rows)
    print(f"{len(rows)} pieces of advice: {applies} apply ({applies / max(len(rows), 1):.1%}), "
          f"{holds} win at least {KEPT:.0%} of what is promised ({holds / max(len(rows), 1):.1%})")
    return int(min(applies, holds) < WANTED * len(rows))


if __name__ == "__main__":
    sys.exit(main())
