"""Lists refused optimisations of kernels, their cost, and the gain of the edits that they suggest.

``python benchmarks/refusals.py FILE...`` runs scripts and examines the kernels that they call; the default are the scripts of
``examples/`` and the steps of its ladders. Each refusal names a line and an edit. A sample of the refusals is drawn,
distributed evenly over the optimisations, at random within each (``--seed``). If a tool can make the edit, it is made: the
kernel is compiled, its values are compared with those of the original kernel, and it is timed. If this edit does not remove the
refusal, the parameters of the factory are varied until it is gone. The remaining kernels would have to be rewritten by their
author; for all refusals, the table has an upper bound of the cost: the launch is timed again without the operations that the
optimisation would remove.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import runpy
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from tilelang_npu import compat
from tilelang_npu.dialects.ir.remarks import Remark
from tilelang_npu.runtime.checks.result_comparison import Verdict
from tilelang_npu.runtime.jit.jit_kernel import JITKernel
from tilelang_npu.runtime.reports.edit_trials import EditComparison, make_and_time, resolved_refusals, time_of
from tilelang_npu.runtime.reports.kernel_edits import edits_of_refusals, number_edits

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SAMPLE = 30


@dataclass(frozen=True)
class Refused:
    """A refusal, and its kernel."""

    script: Path
    kernel: JITKernel
    remark: Remark


@dataclass(frozen=True)
class Edited:
    """An edit that was made: its text, microseconds before and after, and whether the refusal is gone."""

    text: str
    before: float
    after: float
    gone: bool


def refusals(scripts: Sequence[Path]) -> Iterator[Refused]:
    """Returns the refusals of the kernels that scripts call; only the first for each line and optimisation."""
    seen: set[tuple[object, ...]] = set()
    for script in scripts:
        for kernel in _called(script):
            for remark in kernel.explain().refused:
                key = script, remark.about, remark.place and remark.place.line
                if key not in seen:
                    seen.add(key)
                    yield Refused(script, kernel, remark)


def _called(script: Path) -> list[JITKernel]:
    """Returns the kernels that a script calls when it is run."""
    found: list[JITKernel] = []
    call = JITKernel.__call__

    def observed(self: JITKernel, *args: Any, **options: Any) -> Any:
        if self not in found:
            found.append(self)
        return call(self, *args, **options)

    sys.path.insert(0, str(script.parent))
    compat.install()
    before = set(sys.modules)
    try:
        with (mock.patch.object(JITKernel, "__call__", observed), contextlib.redirect_stdout(io.StringIO()),
              contextlib.redirect_stderr(io.StringIO())):
            runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.path.remove(str(script.parent))
        for name in set(sys.modules) - before:  # the next script may import another module of the same name from its folder
            if Path(getattr(sys.modules[name], "__file__", None) or "").parent == script.parent:
                del sys.modules[name]
    return found


def sampled(found: Sequence[Refused], count: int, seed: int = 0) -> list[Refused]:
    """Returns ``count`` refusals: from each optimisation in turn, at random within an optimisation."""
    kinds: dict[str, list[Refused]] = defaultdict(list)
    for one in random.Random(seed).sample(list(found), len(found)):
        kinds[one.remark.about].append(one)
    taken: list[Refused] = []
    for turn in range(max(map(len, kinds.values()), default=0)):
        taken += [ones[turn] for _, ones in sorted(kinds.items()) if turn < len(ones)]
    return taken[:count]


def edited(one: Refused) -> Edited | None:
    """Returns the fastest edit that removes the refusal, or else the fastest edit that a tool can make; None if no edit
    computes the same values."""
    before, source = time_of(one.kernel), one.kernel.explain().source
    if before is None or source is None:
        return None
    best: Edited | None = None
    for edit in (*edits_of_refusals(source, [one.remark]), *number_edits(source)):
        made, after = make_and_time(edit)
        if made is None or after is None:
            continue
        gone = one.remark in resolved_refusals([one.remark], made)
        found = Edited(f"line {edit.place.line}: {edit.text}" if edit.place is not None else edit.text, before, after, gone)
        if (not gone and edit.cause == "other numbers") or (best is not None and (best.gone, -best.after) >= (gone, -after)):
            continue
        if edit.safe or EditComparison(one.kernel).verdict(made) is not Verdict.DIFFERENT:
            best = found
    return best


def table(scripts: Sequence[Path], count: int, seed: int = 0) -> Iterator[str]:
    """Yields the lines of the table, in Markdown, as they are found."""
    found = list(refusals(scripts))
    lacking = [one for one in found if one.remark.place is None or not one.remark.edit]
    where = len({one.script for one in found})
    yield f"{len(found)} refusals in {where} of {len(scripts)} scripts, {len(lacking)} of them without a line or an edit"
    costs = [one.kernel.explain().costs.get(one.remark) for one in found]
    free = sum(cost is not None and cost.nothing for cost in costs)
    yield f"{free} cost nothing, {sum(cost is not None and not cost.nothing for cost in costs)} may cost something"
    yield ""
    yield "| kernel | line | optimisation | refused | cost at most, us | suggested edit | edit made | us before | us after |"
    yield "|---|---:|---|---|---:|---|---|---:|---:|"
    for one in sampled(found, count, seed):
        tried, cost = edited(one), one.kernel.explain().costs.get(one.remark)
        made = ("by its author", "", "") if tried is None else (
            tried.text + ("" if tried.gone else " (still refused)"), f"{tried.before:.1f}", f"{tried.after:.1f}")
        line = one.remark.place.line if one.remark.place is not None else ""
        most = "" if cost is None else "nothing" if cost.nothing else f"{cost.before - cost.after:.1f} of {cost.before:.1f}"
        name = f"{one.script.parent.name}/{one.script.stem}" if one.script.stem.startswith("step") else one.script.stem
        yield (f"| {name} | {line} | {one.remark.about} | {one.remark.text} | {most} | {one.remark.edit} | "
               + " | ".join(made) + " |")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Refused optimisations, and the gain of the suggested edits.")
    parser.add_argument("scripts", nargs="*", type=Path, help="default: examples/ and its ladders")
    parser.add_argument("--count", type=int, default=SAMPLE, help=f"refusals in the table; default {SAMPLE}")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample; default 0")
    options = parser.parse_args(argv)
    usual = [*sorted(EXAMPLES.glob("*.py")), *sorted(EXAMPLES.glob("*/step*.py"))]
    for line in table([script.resolve() for script in options.scripts] or usual, options.count, options.seed):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
