"""The page of a ladder, as Markdown."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ladders
from ladders import Ladder, Step, Timed
from ladders.figures import fill_figures
from ladders.profile_summary import ProfileSummary

INTRODUCTION = Path(__file__).resolve().parent / "introduction.md"
GPU_NOTE = "The GPU times were measured (A100 PCIe 40 GB, about 1.55 TB/s); the times above are modelled."
FOLLOWED = "This step follows that advice."
OTHER = "This step does something else."
GAIN = 1.02
"""The smallest ratio of times before and after an edit, at one of the large sizes, that counts as a gain."""


@dataclass(frozen=True)
class Measured:
    """A ladder with the times of its steps.

    Attributes:
        folder: the folder of the ladder.
        ladder: the ladder.
        steps: its steps.
        times: the times of each step at each large size.
        summaries: the summary of the profile of each step, at the size that the page shows.
    """

    folder: Path
    ladder: Ladder
    steps: Sequence[Step]
    times: Sequence[Sequence[Timed]]
    summaries: Sequence[ProfileSummary]


def page(measured: Measured) -> str:
    """Returns the whole page."""
    ladder, name = measured.ladder, measured.folder.name
    lines = [f"# {ladder.title}", "", ladder.about, "", f"![Share of the roofline by step]({name}.svg)", "",
             "## Steps", "", _describe_roofline(measured), ""]
    for place, case in enumerate(ladder.large):
        lines += [f"### {ladders.case_name(case)}", "", *_table(measured, place), ""]
    if ladder.limits:
        lines += [fill_figures(ladder.limits, measured.times[-1], ladder.shown), ""]
    if ladder.counterparts:
        lines += ["### On a GPU", "", GPU_NOTE, "",
                  "| kernel | element type | time | share of bandwidth |", "|---|---|---:|---:|",
                  *(f"| {one.step} | {one.dtype} | {one.time} | {one.share or '-'} |" for one in ladder.counterparts), ""]
    for place in range(len(measured.steps)):
        lines += _step(measured, place)
    shown = ladders.case_name(ladder.large[ladder.shown])
    lines += ["## The last step in pictures", "", f"Part of the timeline of one block ({shown}); pale intervals are waits:", "",
              f"![Timeline of the pipes]({name}-timeline.svg)", ""]
    if any(one.profile.roofline.unit for one in measured.summaries[-1:]):
        lines += ["The roofline of compute and HBM with a point for each step; the large point is the last step:", "",
                  f"![Roofline]({name}-roofline.svg)", ""]
    return "\n".join(lines)


def _table(measured: Measured, place: int) -> list[str]:
    """Returns the table of the steps at one size."""
    rate = "bandwidth" if measured.ladder.rate_of == "memory" else "rate"
    lines = [f"| step | time | {rate} | of the roofline | bound by |", "|---|---:|---:|---:|---|"]
    for number, (step, times) in enumerate(zip(measured.steps, measured.times, strict=True), 1):
        timed = times[place]
        lines.append(f"| {number}. {step.title} | {timed.us:.1f} us ± {timed.error:.0%} | {timed.rate} | {timed.share:.1%} "
                     f"| {timed.bound} |")
    return lines


def _describe_roofline(measured: Measured) -> str:
    """Returns the definition of the roofline for the problem of a ladder, and of the error of times."""
    chip = measured.times[0][0].chip
    if measured.ladder.rate_of == "memory":
        rates = chip.traffic
        roofline = (f"Modelled on the {chip.name}, with a cold L2 at the start of a launch. The roofline is the time for "
                    f"reading each byte once from HBM ({rates.hbm_read / 1e12:.3f} TB/s) and for writing the results "
                    f"to HBM ({rates.hbm_write / 1e12:.2f} TB/s), except the last {rates.dirty / 1e6:.0f} MB, which stay in "
                    "L2.")
    else:
        roofline = (f"Modelled on the {chip.name}. The roofline is the time of its {chip.aic} Cube cores at their peak "
                    f"({chip.peak_flops('f16') / 1e12:.0f} TFLOP/s of float16), or the time in which HBM moves each byte once, "
                    "whichever is longer.")
    return (f"{roofline} Times include the launch; ± is the relative error that the model does not exceed for four of five "
            "comparable measured kernels ([accuracy](../accuracy.md)). `python benchmarks/gallery.py` generates these tables.")


def _step(measured: Measured, place: int) -> list[str]:
    """Returns the section of a step: its text, the advice that led to it, the change, and its profile."""
    ladder, step, summary = measured.ladder, measured.steps[place], measured.summaries[place]
    before = measured.steps[place - 1] if place else None
    path = step.file.relative_to(ladders.HERE.parent).as_posix()
    lines = [f"## {place + 1}. {step.title}", "", step.text, ""]
    if before is not None:
        lines += [_reason(measured, place), ""]
    lines += [f"`python {path}`", "", *_code(before, step)]
    launch = max(getattr(measured.times[place][ladder.shown].launch, "parts", (measured.times[place][ladder.shown].launch,)),
                 key=lambda part: part.time_us)
    rows = [] if before is None else [f"before    {measured.summaries[place - 1].busiest_pipe}",
                                      f"advice    {measured.summaries[place - 1].gains}"]
    rows += [f"{'after' if rows else 'profile':<9} {summary.busiest_pipe}", f"advice    {summary.gains}", "",
             str(launch.summary())]
    return [*lines, f"Profile ({ladders.case_name(ladder.large[ladder.shown])}):", "", "```text", *rows, "```", ""]


def _reason(measured: Measured, place: int) -> str:
    """Returns the first advice for the previous step, and whether this step follows it."""
    step, summary = measured.steps[place], measured.summaries[place - 1]
    advised = f"The profile's first advice for step {place}: {summary.first_advice}." if summary.first_advice else (
        f"The profile has no advice for step {place}.")
    if summary.is_followed_by(step):
        return f"{advised} {FOLLOWED}"
    further = [row for row in summary.profile.causes if row.cause == step.removed_cause]
    later = f" It removes a cause further down in the advice: {step.removed_cause}, {-further[0].gain:+.0%}." if further else ""
    insight = f" Insight: {step.insight}" if step.insight else ""
    return f"{advised} {OTHER}{later}{insight}"


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


def _has_gain(text: str) -> list[bool]:
    """Returns for each edit of a page whether it gains time at one of the large sizes."""
    tables = [[float(us) for us in re.findall(r"^\| \d+\. .* \| ([\d.]+) us ± ", part, re.MULTILINE)]
              for part in re.split(r"^###? ", text, flags=re.MULTILINE) if "| of the roofline |" in part]
    return [any(before > GAIN * after for before, after in both)
            for both in zip(*(list(zip(times, times[1:], strict=False)) for times in tables), strict=True)]


def index(pages: Path) -> str:
    """Returns the page that lists the ladders, and counts in their pages how many steps follow the first advice.

    Edits that gain no time cannot be advised, so only edits with a gain are counted: for example, a longer tile does not make a
    kernel faster that is already bound by HBM.
    """
    lines = ["| ladder | steps | first | last | of the roofline | advised |", "|---|---:|---|---|---:|---:|"]
    advised = edits = gaining = 0
    for folder in ladders.folders():
        name, steps = folder.name, ladders.steps(folder)
        text = (pages / f"{name}.md").read_text(encoding="utf-8")
        last = re.findall(rf"^\| {len(steps)}\. .*\| ([\d.]+%) \|", text, re.MULTILINE)
        count = text.count(FOLLOWED)
        has_gain = _has_gain(text)
        advised += sum(FOLLOWED in section for section, gains in zip(_sections(text)[1:], has_gain, strict=True) if gains)
        edits, gaining = edits + len(has_gain), gaining + sum(has_gain)
        lines.append(f"| [{ladders.load(folder).title}]({name}.md) | {len(steps)} | {steps[0].title} | {steps[-1].title} |"
                     f" {', '.join(last)} | {count} of {len(steps) - 1} |")
    counts = (f"Of {edits} edits {gaining} gain more than {GAIN - 1:.0%} at one of the sizes. {advised} of these follow the "
              "first advice in the profile of the previous step; for the others the page states the insight that they need.")
    return "\n".join(["# The gallery", "", INTRODUCTION.read_text(encoding="utf-8").strip(), "", counts, "", *lines, ""])
