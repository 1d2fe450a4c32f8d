"""Runs `tilelang-npu improve` on the first step of each ladder, and compares the result with the last step, which an expert
wrote.

    python benchmarks/improve.py [--only softmax,matmul] [--budget 120] [--jobs 2] [--write]

prints a line for each ladder: modelled microseconds of the first step, of the improved first step and of the last step, at the
    size for which the gallery shows profiles, with a cold L2. At the end it prints the geometric means of the speeds relative
    to the last
step. ``--write`` writes docs/gallery/improved.md. The search has a time limit, so the figures depend on the machine.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import ladders

from tilelang_npu.runtime.improve.improvement import Improvement, Improver
from tilelang_npu.runtime.improve.script_version import ScriptVersion
from tilelang_npu.runtime.jit.factory import Factory
from tilelang_npu.runtime.kernel.executors import open_executor

PAGE = Path(__file__).resolve().parent.parent / "docs" / "gallery" / "improved.md"
OTHER_ALGORITHM = {
    "adam", "attention_backward", "batch_norm", "bias_dropout", "bias_gelu", "cast_broadcast", "causal", "causal_backward",
    "conv2d", "cross_entropy", "decoding", "gated_delta", "gated_linear", "gather", "gelu_int8", "gqa", "index_add", "linear",
    "linear_attention", "log_softmax", "mixture", "moe_routing", "paged_decoding", "qkv_heads", "ragged_gemm", "reduce",
    "softmax_long", "softmax_masked", "split_k", "swiglu", "upsample", "w4a8", "atomic_add", "batched_gemm",
}
"""Ladders whose later steps change the algorithm: fused launches, one pass in place of two, chunks in place of
tokens, K or the keys divided between blocks, other instructions, unnecessary work that is removed."""


@dataclass(frozen=True)
class Row:
    """The times of a ladder.

    Attributes:
        name: the name of its folder.
        first, improved, last: modelled microseconds.
        result: the report of the search.
    """

    name: str
    first: float
    improved: float
    last: float
    result: Improvement

    @property
    def before(self) -> float:
        """The speed of the first step relative to that of the last step."""
        return self.last / self.first

    @property
    def after(self) -> float:
        """The speed of the improved first step relative to that of the last step."""
        return self.last / self.improved

    def line(self) -> str:
        """The row of the table."""
        edits = "; ".join(change.what for change in self.result.changes) or "none"
        return (f"| [{self.name}]({self.name}.md) | {self.first:.1f} | {self.improved:.1f} | {self.last:.1f} |"
                f" {self.before:.0%} | {self.after:.0%} | {edits} |")


@contextmanager
def importing_from(folder: Path) -> Iterator[None]:
    """Context in which ``import ladder`` imports the module of a folder."""
    sys.path.insert(0, str(folder))
    sys.modules.pop("ladder", None)
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("ladder", None)


def programs(folder: Path) -> tuple[ScriptVersion, ScriptVersion]:
    """Returns the first and the last step of a ladder at the size that the gallery shows."""
    with importing_from(folder):
        ladder = importlib.import_module("ladder").LADDER
        case = dict(ladder.large[ladder.shown])
        steps = sorted(folder.glob("step*.py"), key=lambda path: int(path.stem[4:].partition("_")[0]))
        return _program(steps[0], case), _program(steps[-1], case)


def _program(path: Path, case: dict[str, Any]) -> ScriptVersion:
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    text = path.read_text(encoding="utf-8")
    exec(compile(text, str(path), "exec"), names)
    factory = [name for name, value in names.items() if isinstance(value, Factory)][-1]
    return ScriptVersion(text, path, factory, names, (), case)


def measured(folder: Path, budget: float, executor: Executor | None) -> Row:
    """Improves the first step of a ladder, and returns its times."""
    first, last = programs(folder)
    result = Improver(first, executor=executor, reassociate=True).run(budget)
    launch = last.kernel().trace()
    assert launch is not None
    return Row(folder.name, result.before, result.after, launch.time_us, result)


def mean(values: list[float]) -> float:
    """Returns the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def summary(rows: list[Row]) -> list[str]:
    """Returns the geometric means of all ladders, and of the ladders of each kind."""
    kinds = {"all": rows, "the same algorithm": [row for row in rows if row.name not in OTHER_ALGORITHM],
             "another algorithm in later steps": [row for row in rows if row.name in OTHER_ALGORITHM]}
    return [f"{kind}: {len(chosen)} ladders, first step {mean([row.before for row in chosen]):.0%} of the last step's speed,"
            f" improved {mean([row.after for row in chosen]):.0%}, least {min(row.after for row in chosen):.0%}"
            for kind, chosen in kinds.items() if chosen]


def page(rows: list[Row], budget: float, jobs: int) -> str:
    """Returns the page of the documentation."""
    head = f"""# Results of `improve` on the first steps

Each ladder of the gallery starts with a simple kernel and ends with one that an expert optimised. For {len(rows)} ladders,
`tilelang-npu improve` started from the first step and searched source edits for {budget:.0f} s on {jobs} cores
([how](../improve.md)). Times are modelled microseconds with a cold L2, at the size for which the page of the ladder shows
profiles. The results of an improved step are bitwise equal to those of the first step, or equal within the rounding of their
type (`--reassociate`). `python benchmarks/improve.py --write` generates this page.

"""
    lines = [f"- {line}" for line in summary(rows)]
    table = ["| ladder | first | improved | last | first, of the last step's speed | improved | edits |",
             "|---|---:|---:|---:|---:|---:|---|"]
    return head + "\n".join([*lines, "", *table, *(row.line() for row in rows)]) + "\n"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="ladders, separated by commas")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds for each ladder")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write the page of the documentation")
    args = parser.parse_args()
    wanted = args.only.split(",") if args.only else [folder.name for folder in ladders.folders()]
    rows: list[Row] = []
    with ladders.cold_l2(), open_executor(f"processes:{args.jobs}") as executor:
        for folder in ladders.folders():
            if folder.name in wanted:
                try:
                    row = measured(folder, args.budget, executor)
                except Exception as error:  # noqa: BLE001  (the other ladders are measured all the same)
                    print(f"{folder.name}: {type(error).__name__}: {error}".splitlines()[0], flush=True)
                    continue
                rows.append(row)
                edits = "; ".join(change.what for change in row.result.changes)
                print(f"{row.name:20} {row.first:9.1f} {row.improved:9.1f} {row.last:9.1f} us  {row.before:5.0%} ->"
                      f" {row.after:5.0%}  {row.result.tried} tried, {edits}", flush=True)
    print("\n".join(summary(rows)))
    if args.write:
        PAGE.write_text(page(rows, args.budget, args.jobs), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
