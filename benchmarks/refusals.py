"""What optimisations refuse in kernels, and what the edit wins with which they do not: made where it is a number.

``python benchmarks/refusals.py FILE...`` runs scripts and takes the kernels that they call, those of ``examples/`` where none
is named. Each refusal names a line and an edit. Of all of them a sample is taken, as even over the optimisations as there are;
of each the factory's numbers, such as a tile's size or the stages of a loop, are changed until it is gone. The table shows the
modelled time before and behind. Where no number does it, the edit is one of the text (a buffer of its own, another type), which
is its author's to make.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import runpy
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from tilelang_npu import compat
from tilelang_npu.dialects.remarks import Remark
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.factory import Factory
from tilelang_npu.runtime.kernel import JITKernel

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SAMPLE = 30
_FEW = 4
"""Numbers up to this are changed by one, larger ones doubled and halved."""


@dataclass(frozen=True)
class Refused:
    """A refusal: in which kernel, and the factory that made it, if one did."""

    script: Path
    kernel: JITKernel
    factory: Factory | None
    remark: Remark


@dataclass(frozen=True)
class Edited:
    """A number with which a refusal is gone: how it is written, and microseconds before and behind."""

    text: str
    before: float
    after: float


def refusals(scripts: Sequence[Path]) -> Iterator[Refused]:
    """Every refusal of the kernels that scripts call; of one line by one optimisation the first."""
    seen: set[tuple[object, ...]] = set()
    for script in scripts:
        for kernel, factory in _called(script):
            for remark in kernel.explain().refused:
                key = script, remark.about, remark.place and remark.place.line
                if key not in seen:
                    seen.add(key)
                    yield Refused(script, kernel, factory, remark)


def _called(script: Path) -> list[tuple[JITKernel, Factory | None]]:
    """The kernels that a script calls when it is run, and their factories."""
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
            names = runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.path.remove(str(script.parent))
        for name in set(sys.modules) - before:  # what lies beside one script is of another name beside the next
            if Path(getattr(sys.modules[name], "__file__", None) or "").parent == script.parent:
                del sys.modules[name]
    factories = [value for value in names.values() if isinstance(value, Factory)]
    made = {kernel: kernel.made_by for kernel in found}
    return [(kernel, next((one for one in factories if (by := made[kernel]) is not None and by[0] is one.function), None))
            for kernel in found]


def sampled(found: Sequence[Refused], count: int) -> list[Refused]:
    """So many refusals, of each optimisation in turn."""
    kinds: dict[str, list[Refused]] = defaultdict(list)
    for one in found:
        kinds[one.remark.about].append(one)
    taken: list[Refused] = []
    for turn in range(max(map(len, kinds.values()), default=0)):
        taken += [ones[turn] for _, ones in sorted(kinds.items()) if turn < len(ones)]
    return taken[:count]


def edited(one: Refused) -> Edited | None:
    """The number with which a refusal is gone and the kernel is fastest; None where no number does it."""
    before, place = time_of(one.kernel), one.remark.place
    if one.factory is None or one.kernel.made_by is None or before is None or place is None:
        return None
    _, args, kwargs = one.kernel.made_by
    bound = inspect.signature(one.factory.function).bind(*args, **kwargs)
    bound.apply_defaults()
    best: Edited | None = None
    for name, value in bound.arguments.items():
        if type(value) is not int or value <= 0:
            continue
        for number in (value + 1, value - 1) if value <= _FEW else (2 * value, value // 2):
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    made = one.factory(**{**bound.arguments, name: number})
                    gone = made.params == one.kernel.params and not any(
                        each.about == one.remark.about and each.place == place for each in made.explain().refused)
                    after = time_of(made) if gone else None
            except (TileError, ValueError, ZeroDivisionError):  # a tile that does not fit, or that its author rules out
                continue
            if after is not None and (best is None or after < best.after):
                best = Edited(f"{name}={number} in place of {value}", before, after)
    return best


def time_of(kernel: JITKernel) -> float | None:
    """Modelled microseconds; None where they depend on data."""
    launch = kernel.trace()
    return None if launch is None else launch.time_us


def table(scripts: Sequence[Path], count: int) -> Iterator[str]:
    """The lines of the table, in Markdown, as they are found."""
    found = list(refusals(scripts))
    lacking = [one for one in found if one.remark.place is None or not one.remark.edit]
    where = len({one.script for one in found})
    yield f"{len(found)} refusals in {where} of {len(scripts)} scripts, {len(lacking)} of them without a line or an edit"
    yield ""
    yield "| kernel | line | optimisation | refused | the edit | made | us before | us behind |"
    yield "|---|---:|---|---|---|---|---:|---:|"
    for one in sampled(found, count):
        tried = edited(one)
        made = (tried.text, f"{tried.before:.1f}", f"{tried.after:.1f}") if tried is not None else ("by its author", "", "")
        line = one.remark.place.line if one.remark.place is not None else ""
        yield (f"| {one.script.stem} | {line} | {one.remark.about} | {one.remark.text} | {one.remark.edit} | "
               + " | ".join(made) + " |")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Refusals of optimisations, and what their edits win.")
    parser.add_argument("scripts", nargs="*", type=Path, help="default: examples/")
    parser.add_argument("--count", type=int, default=SAMPLE, help=f"refusals in the table; default {SAMPLE}")
    options = parser.parse_args(argv)
    for line in table([script.resolve() for script in options.scripts] or sorted(EXAMPLES.glob("*.py")), options.count):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
