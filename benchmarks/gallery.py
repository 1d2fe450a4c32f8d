"""The tables, plots and pages of the gallery: every step of every ladder in examples/, timed on the modelled chip.

    python benchmarks/gallery.py [--only reduce,softmax,...] [--json FILE]

writes docs/gallery/LADDER.md, its pictures LADDER*.svg, and docs/gallery/index.md. Values are computed only if times depend on
data, so that the sizes can be those of real workloads. The figures are the same in every run and on every machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import ladders
from ladders import Step
from ladders.page import Measured, index, page
from ladders.pictures import draw_roofline, draw_shares, draw_timeline
from ladders.profile_summary import summarise_profile

PAGES = Path(__file__).resolve().parent.parent / "docs" / "gallery"


def measure(folder: Path, steps: Sequence[Step], done: Progress) -> Measured:
    """Times all steps of a ladder at all large sizes, and profiles each step at one of them."""
    ladder = ladders.load(folder)
    times, summaries = [], []
    for step in steps:
        factory = step.factory()
        row = []
        for case in ladder.large:
            done.show(f"{folder.name} {step.file.stem} {ladders.case_name(case)}")
            row.append(ladder.time_case(factory, case))
        done.show(f"{folder.name} {step.file.stem} profile")
        summaries.append(summarise_profile(row[ladder.shown]))
        times.append(row)
        done.step()
    return Measured(folder, ladder, steps, times, summaries)


def list_pages() -> list[str]:
    """Writes the index if all ladders have a page, and returns the ladders without a page."""
    without = [folder.name for folder in ladders.folders() if not (PAGES / f"{folder.name}.md").exists()]
    if not without:
        (PAGES / "index.md").write_text(index(PAGES), encoding="utf-8")
    return without


def pictures(measured: Measured) -> dict[str, str]:
    """Returns the pictures of a page, by their file name."""
    name = measured.folder.name
    made = {f"{name}.svg": draw_shares(measured.ladder, measured.times),
            f"{name}-timeline.svg": draw_timeline(measured.summaries[-1]),
            f"{name}-roofline.svg": draw_roofline({f"step {number}": one for number, one in enumerate(measured.summaries, 1)})}
    return {file: text for file, text in made.items() if text}


class Progress:
    """A progress bar on stderr, if that is a terminal."""

    WIDTH = 32

    def __init__(self, total: int) -> None:
        self.total, self.count = total, 0
        self.shown = sys.stderr.isatty()

    def show(self, text: str) -> None:
        if self.shown:
            full = self.WIDTH * self.count // max(self.total, 1)
            room = max(os.get_terminal_size(sys.stderr.fileno()).columns - self.WIDTH - 16, 10)
            line = f"[{'#' * full}{'.' * (self.WIDTH - full)}] {self.count}/{self.total}  {text[:room]}"
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()

    def step(self) -> None:
        self.count += 1
        if self.count == self.total and self.shown:
            sys.stderr.write("\r\x1b[K")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Rebuild the gallery's tables, plots and pages.")
    parser.add_argument("--only", help="ladders, separated by commas; default: all")
    parser.add_argument("--json", type=Path, help="write the times here too")
    options = parser.parse_args(arguments)
    known = {folder.name: folder for folder in ladders.folders()}
    names = options.only.split(",") if options.only else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no ladder {', '.join(unknown)}; there are {', '.join(known)}")
    steps = {name: ladders.steps(known[name]) for name in names}
    done = Progress(sum(map(len, steps.values())))
    rows, without = [], []
    for name in names:
        with ladders.cold_l2():  # also while pages and pictures compute profiles and advice
            measured = measure(known[name], steps[name], done)
            (PAGES / f"{name}.md").write_text(page(measured), encoding="utf-8")
            for file, picture in pictures(measured).items():
                (PAGES / file).write_text(picture, encoding="utf-8")
        without = list_pages()
        rows += [{"ladder": name, "step": step.file.stem, "case": dict(case), "us": timed.us, "error": timed.error,
                  "share": timed.share, "bound": timed.bound}
                 for step, times in zip(measured.steps, measured.times, strict=True)
                 for case, timed in zip(measured.ladder.large, times, strict=True)]
        best = max(timed.share for timed in measured.times[-1])
        print(f"{name:<20} {len(measured.steps)} steps, the last at {best:.0%} of the roofline at most: docs/gallery/{name}.md")
    if without:
        print(f"docs/gallery/index.md is not written: no page of {', '.join(without)}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
