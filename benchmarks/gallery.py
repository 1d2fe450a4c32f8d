"""The tables, plots and pages of the gallery: every step of every ladder in examples/, timed on the modelled chip.

    python benchmarks/gallery.py [--only reduce,softmax,...] [--json FILE]

writes docs/gallery/LADDER.md, its plot LADDER.svg, and docs/gallery/index.md. Nothing is computed where times do not depend on
data, so that sizes are those of real work. The figures are the same in every run and on every machine.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import ladders
from ladders import Case, Ladder, Step, Timed

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "gallery"
INTRODUCTION = ROOT / "examples" / "ladders" / "introduction.md"
ON_A_CARD = "Theirs was measured on a card (A100 PCIe 40 GB, about 1.55 TB/s); ours above is modelled."


@dataclass(frozen=True)
class Measured:
    """A ladder with the times of its steps: ``times[step][case]``."""

    folder: Path
    ladder: Ladder
    steps: list[Step]
    times: list[list[Timed]]


def measure(folder: Path, steps: Sequence[Step], done: Progress) -> Measured:
    """Time all steps of a ladder at all large sizes."""
    ladder = ladders.load(folder)
    times = []
    for step in steps:
        factory = step.factory()
        row = []
        for case in ladder.large:
            done.say(f"{folder.name} {step.file.stem} {ladders.name(case)}")
            row.append(ladder.timed(factory, case))
        times.append(row)
        done.step()
    return Measured(folder, ladder, list(steps), times)


class Progress:
    """A bar on stderr, where that is a terminal; elsewhere nothing."""

    WIDTH = 32

    def __init__(self, total: int) -> None:
        self.total, self.count = total, 0
        self.shown = sys.stderr.isatty()

    def say(self, text: str) -> None:
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


def table(measured: Measured, place: int) -> list[str]:
    """The steps at one size, as a Markdown table."""
    what = "bandwidth" if measured.ladder.beside == "memory" else "rate"
    lines = [f"| step | time | {what} | of the roof | bound by |", "|---|---:|---:|---:|---|"]
    for number, (step, times) in enumerate(zip(measured.steps, measured.times, strict=True), 1):
        timed = times[place]
        lines.append(f"| {number}. {step.title} | {timed.us:.1f} us | {timed.rate} | {timed.share:.1%} | {timed.bound} |")
    return lines


def page(measured: Measured) -> str:
    """The whole page of a ladder."""
    ladder, folder = measured.ladder, measured.folder
    lines = [f"# {ladder.title}", "", ladder.about, "", f"![Share of the roof, step by step]({folder.name}.svg)", "",
             "## Steps", "", _roof(measured), ""]
    for place, case in enumerate(ladder.large):
        lines += [f"### {ladders.name(case)}", "", *table(measured, place), ""]
    if ladder.rest:
        lines += [ladder.rest, ""]
    if ladder.counterparts:
        lines += ["### On a GPU", "", ON_A_CARD, "",
                  "| kernel | element type | time | share of bandwidth |", "|---|---|---:|---:|",
                  *(f"| {one.step} | {one.dtype} | {one.time} | {one.share or '-'} |" for one in ladder.counterparts), ""]
    before = None
    for number, (step, times) in enumerate(zip(measured.steps, measured.times, strict=True), 1):
        path = step.file.relative_to(ROOT).as_posix()
        lines += [f"## {number}. {step.title}", "", step.text, "", f"`python {path}`", ""]
        lines += _code(before, step)
        shown = ladders.name(ladder.large[ladder.shown])
        lines += [f"What the profile says ({shown}):", "", "```text", profile(times[ladder.shown]), "```", ""]
        before = step
    return "\n".join(lines)


def _roof(measured: Measured) -> str:
    chip = measured.times[0][0].chip
    if measured.ladder.beside == "memory":
        rates = chip.traffic
        rates = chip.traffic
        roof = (f"Modelled on the {chip.name}. The roof is the time in which it reads each byte once from HBM "
                f"({rates.hbm_read / 1e12:.3f} TB/s) and writes each once ({rates.hbm_write / 1e12:.2f} TB/s; "
                f"{rates.l2_write / 1e12:.1f} into L2, where all that is touched has room in its {chip.l2 >> 20} MB).")
    else:
        roof = (f"Modelled on the {chip.name}. The roof is the time in which its {chip.aic} Cube cores multiply as much "
                f"({chip.peak_flops('f16') / 1e12:.0f} TFLOP/s of float16), or in which HBM moves each byte once, where that "
                "is longer.")
    return f"{roof} Times have the launch in them. `python benchmarks/gallery.py` makes these tables."


def _code(before: Step | None, step: Step) -> list[str]:
    """The file, or what changed of it."""
    if before is None:
        return ["```python", step.code, "```", ""]
    changed = difflib.unified_diff(before.code.splitlines(), step.code.splitlines(), n=2, lineterm="")
    body = [line for line in changed if not line.startswith(("---", "+++"))]
    return ["```diff", *("@@" if line.startswith("@@") else line for line in body), "```", ""] if body else []


def profile(timed: Timed) -> str:
    """What the launch's summary says of its pipes and its memories; of the longest, where there are several."""
    launch = max(getattr(timed.launch, "parts", (timed.launch,)), key=lambda part: part.time_us)
    return str(launch.summary())


COLOURS = ("#2f6f9f", "#d1782b", "#4b8f5a", "#8d5aa3", "#b24c4c", "#6b6b6b")


def plot(measured: Measured) -> str:
    """Shares of the roof as bars: a group for each step, in it a bar for each size."""
    cases, steps = measured.ladder.large, measured.steps
    left, top, height, bar, gap = 44, 16, 220, 18, 26
    group = bar * len(cases) + gap
    width = max(left + group * len(steps) + 16, 480)
    legend = top + height + 34
    total = legend + 18 * len(cases) + 6
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total}" viewBox="0 0 {width} {total}" '
           'font-family="sans-serif" font-size="12">', f'<rect width="{width}" height="{total}" fill="white"/>']
    for percent in (0, 25, 50, 75, 100):
        y = top + height * (1 - percent / 100)
        out.append(f'<line x1="{left}" x2="{width - 8}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>'
                   f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>')
    goal = top + height * (1 - measured.ladder.goal)
    out.append(f'<line x1="{left}" x2="{width - 8}" y1="{goal:.1f}" y2="{goal:.1f}" stroke="#b24c4c" stroke-dasharray="5 4"/>')
    for number, (step, times) in enumerate(zip(steps, measured.times, strict=True)):
        x = left + gap / 2 + number * group
        for place, timed in enumerate(times):
            tall = height * min(timed.share, 1.0)
            out.append(f'<rect x="{x + place * bar:.1f}" y="{top + height - tall:.1f}" width="{bar - 2}" height="{tall:.1f}" '
                       f'fill="{COLOURS[place % len(COLOURS)]}"><title>{escape(step.title)}: {timed.share:.1%}</title></rect>')
        middle = x + bar * len(cases) / 2
        out.append(f'<text x="{middle:.1f}" y="{top + height + 16}" text-anchor="middle">step {number + 1}</text>')
    for place, case in enumerate(cases):
        y = legend + 18 * place
        out.append(f'<rect x="{left}" y="{y - 10}" width="12" height="12" fill="{COLOURS[place % len(COLOURS)]}"/>'
                   f'<text x="{left + 18}" y="{y}">{escape(ladders.name(case))}</text>')
    return "\n".join([*out, "</svg>", ""])


def index() -> str:
    """The page that lists the ladders."""
    lines = ["# The gallery", "", INTRODUCTION.read_text(encoding="utf-8").strip(), "",
             "| ladder | steps | first | last |", "|---|---:|---|---|"]
    for folder in ladders.folders():
        name, steps = folder.name, ladders.steps(folder)
        lines.append(f"| [{ladders.load(folder).title}]({name}.md) | {len(steps)} | {steps[0].title} | {steps[-1].title} |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Rebuild the gallery's tables, plots and pages.")
    parser.add_argument("--only", help="ladders, by commas; all without it")
    parser.add_argument("--json", type=Path, help="write the times here too")
    options = parser.parse_args(arguments)
    known = {folder.name: folder for folder in ladders.folders()}
    names = options.only.split(",") if options.only else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no ladder {', '.join(unknown)}; there are {', '.join(known)}")
    steps = {name: ladders.steps(known[name]) for name in names}
    done = Progress(sum(map(len, steps.values())))
    rows = []
    for name in names:
        measured = measure(known[name], steps[name], done)
        (PAGES / f"{name}.md").write_text(page(measured), encoding="utf-8")
        (PAGES / f"{name}.svg").write_text(plot(measured), encoding="utf-8")
        rows += [{"ladder": name, "step": step.file.stem, "case": dict(case), "us": timed.us, "share": timed.share,
                  "bound": timed.bound}
                 for step, times in zip(measured.steps, measured.times, strict=True)
                 for case, timed in zip(measured.ladder.large, times, strict=True)]
        best = max(timed.share for timed in measured.times[-1])
        print(f"{name:<20} {len(measured.steps)} steps, the last at {best:.0%} of the roof at most: docs/gallery/{name}.md")
    (PAGES / "index.md").write_text(index(), encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


__all__ = ["Case", "Measured", "main", "measure", "page", "table"]

if __name__ == "__main__":
    sys.exit(main())
