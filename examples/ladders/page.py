"""The page of a ladder, as Markdown."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ladders
from ladders import Ladder, Step, Timed
from ladders.advised import Said
from ladders.figures import with_figures

INTRODUCTION = Path(__file__).resolve().parent / "introduction.md"
ON_A_CARD = "Theirs was measured on a card (A100 PCIe 40 GB, about 1.55 TB/s); ours above is modelled."
FOLLOWED = "This step is that advice."
OTHER = "This step is something else."
WON = 1.02
"""The factor of the time, at one of the large sizes, from which on an edit counts as a gain."""


@dataclass(frozen=True)
class Measured:
    """A ladder with the times of its steps.

    Attributes:
        folder: the folder of the ladder.
        ladder: the ladder.
        steps: its steps.
        times: the times of each step at each large size.
        said: the summary of the profile of each step, at the size that the page shows.
    """

    folder: Path
    ladder: Ladder
    steps: Sequence[Step]
    times: Sequence[Sequence[Timed]]
    said: Sequence[Said]


def page(measured: Measured) -> str:
    """Returns the whole page."""
    ladder, name = measured.ladder, measured.folder.name
    lines = [f"# {ladder.title}", "", ladder.about, "", f"![Share of the roof, step by step]({name}.svg)", "",
             "## Steps", "", _roof(measured), ""]
    for place, case in enumerate(ladder.large):
        lines += [f"### {ladders.name(case)}", "", *_table(measured, place), ""]
    if ladder.rest:
        lines += [with_figures(ladder.rest, measured.times[-1], ladder.shown), ""]
    if ladder.counterparts:
        lines += ["### On a GPU", "", ON_A_CARD, "",
                  "| kernel | element type | time | share of bandwidth |", "|---|---|---:|---:|",
                  *(f"| {one.step} | {one.dtype} | {one.time} | {one.share or '-'} |" for one in ladder.counterparts), ""]
    for place in range(len(measured.steps)):
        lines += _step(measured, place)
    shown = ladders.name(ladder.large[ladder.shown])
    lines += ["## The last step in pictures", "", f"A part of a block's time ({shown}); pale is what waits:", "",
              f"![What each pipe does]({name}-timeline.svg)", ""]
    if any(one.profile.roofline.unit for one in measured.said[-1:]):
        lines += ["All steps under the roof of what is computed and of HBM, the last one large:", "",
                  f"![The place under the roof]({name}-roofline.svg)", ""]
    return "\n".join(lines)


def _table(measured: Measured, place: int) -> list[str]:
    """Returns the table of the steps at one size."""
    what = "bandwidth" if measured.ladder.rate_of == "memory" else "rate"
    lines = [f"| step | time | {what} | of the roof | bound by |", "|---|---:|---:|---:|---|"]
    for number, (step, times) in enumerate(zip(measured.steps, measured.times, strict=True), 1):
        timed = times[place]
        lines.append(f"| {number}. {step.title} | {timed.us:.1f} us ± {timed.error:.0%} | {timed.rate} | {timed.share:.1%} "
                     f"| {timed.bound} |")
    return lines


def _roof(measured: Measured) -> str:
    chip = measured.times[0][0].chip
    if measured.ladder.rate_of == "memory":
        rates = chip.traffic
        roof = (f"Modelled on the {chip.name}, with nothing in L2 when a launch begins. The roof is the time in which it "
                f"reads each byte once from HBM ({rates.hbm_read / 1e12:.3f} TB/s) and writes there "
                f"({rates.hbm_write / 1e12:.2f} TB/s) what L2 does not keep, the last {rates.dirty / 1e6:.0f} MB.")
    else:
        roof = (f"Modelled on the {chip.name}. The roof is the time in which its {chip.aic} Cube cores multiply as much "
                f"({chip.peak_flops('f16') / 1e12:.0f} TFLOP/s of float16), or in which HBM moves each byte once, where that "
                "is longer.")
    return (f"{roof} Times have the launch in them; ± is the share within which four of five measured kernels like them are "
            "([errors of times](../accuracy.md)). `python benchmarks/gallery.py` makes these tables.")


def _step(measured: Measured, place: int) -> list[str]:
    """Returns the section of a step: its text, the advice that led to it, the change, and its profile."""
    ladder, step, said = measured.ladder, measured.steps[place], measured.said[place]
    before = measured.steps[place - 1] if place else None
    path = step.file.relative_to(ladders.HERE.parent).as_posix()
    lines = [f"## {place + 1}. {step.title}", "", step.text, ""]
    if before is not None:
        lines += [_led(measured, place), ""]
    lines += [f"`python {path}`", "", *_code(before, step)]
    launch = max(getattr(measured.times[place][ladder.shown].launch, "parts", (measured.times[place][ladder.shown].launch,)),
                 key=lambda part: part.time_us)
    rows = [] if before is None else [f"before    {measured.said[place - 1].busiest}",
                                      f"advice    {measured.said[place - 1].causes}"]
    rows += [f"{'after' if rows else 'profile':<9} {said.busiest}", f"advice    {said.causes}", "", str(launch.summary())]
    return [*lines, f"What the profile says ({ladders.name(ladder.large[ladder.shown])}):", "", "```text", *rows, "```", ""]


def _led(measured: Measured, place: int) -> str:
    """Returns the first advice for the previous step, and whether this step follows it."""
    before, step, said = measured.steps[place - 1], measured.steps[place], measured.said[place - 1]
    advised = f"The profile's first advice on step {place}: {said.first}." if said.first else (
        f"The profile has no advice on step {place}.")
    if said.leads_to(before, step):
        return f"{advised} {FOLLOWED}"
    further = [one for one in said.profile.causes if one.cause == step.cures]
    what = f" It cures what is named further down: {step.cures}, {-further[0].gain:+.0%}." if further else ""
    known = f" What a person had to know: {step.known}" if step.known else ""
    return f"{advised} {OTHER}{what}{known}"


def _code(before: Step | None, step: Step) -> list[str]:
    """Returns the file, or its differences to the previous step."""
    if before is None:
        return ["```python", step.code, "```", ""]
    changed = difflib.unified_diff(before.code.splitlines(), step.code.splitlines(), n=2, lineterm="")
    body = [line for line in changed if not line.startswith(("---", "+++"))]
    return ["```diff", *("@@" if line.startswith("@@") else line for line in body), "```", ""] if body else []


def _sections(text: str) -> list[str]:
    """Returns the sections of a page, one for each step, in order."""
    return re.split(r"^## \d+\. ", text, flags=re.MULTILINE)[1:]


def _winning(text: str) -> list[bool]:
    """Returns for each edit of a page whether it saves time at one of the large sizes."""
    tables = [[float(us) for us in re.findall(r"^\| \d+\. .* \| ([\d.]+) us ± ", part, re.MULTILINE)]
              for part in re.split(r"^###? ", text, flags=re.MULTILINE) if "| of the roof |" in part]
    return [any(before > WON * after for before, after in both)
            for both in zip(*(list(zip(times, times[1:], strict=False)) for times in tables), strict=True)]


def index(pages: Path) -> str:
    """Returns the page that lists the ladders; it reads from their pages how often the next step follows the advice.

    Edits that save nothing cannot be advised, so they are counted separately: in the model, a longer tile does not make a
    kernel faster that HBM bounds already.
    """
    lines = ["| ladder | steps | first | last | of the roof | advised |", "|---|---:|---|---|---:|---:|"]
    advised = edits = winning = 0
    for folder in ladders.folders():
        name, steps = folder.name, ladders.steps(folder)
        text = (pages / f"{name}.md").read_text(encoding="utf-8")
        last = re.findall(rf"^\| {len(steps)}\. .*\| ([\d.]+%) \|", text, re.MULTILINE)
        count = text.count(FOLLOWED)
        won = _winning(text)
        advised += sum(FOLLOWED in section for section, wins in zip(_sections(text)[1:], won, strict=True) if wins)
        edits, winning = edits + len(won), winning + sum(won)
        lines.append(f"| [{ladders.load(folder).title}]({name}.md) | {len(steps)} | {steps[0].title} | {steps[-1].title} |"
                     f" {', '.join(last)} | {count} of {len(steps) - 1} |")
    said = (f"Of {edits} edits {winning} win more than {WON - 1:.0%} at a size. In {advised} of these the next step is what "
            "the profile of the step before advises first; where it is not, the page says what a person had to know.")
    return "\n".join(["# The gallery", "", INTRODUCTION.read_text(encoding="utf-8").strip(), "", said, "", *lines, ""])
