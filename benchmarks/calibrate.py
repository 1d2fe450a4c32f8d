"""Compares modelled times with published measurements of the same kernels.

    python benchmarks/calibrate.py [--only gemm,attention,...] [--pipes] [--aside] [--clock MHZ] [--leave-out] [--json FILE]
                                   [--write | --page]

The measurements are in ``calibration/measured.json``, each with its source and the tiling that the source states; the kernels
are in the Python files of the same directory. Only times are computed: all rows take about a minute. The tables have, for each
row, the ratio of the modelled to the measured time and the busiest pipe; for each class, the median error, the median ratio and
the worst row; and for each ladder (an experiment in steps), the rank correlation of modelled and measured times. The figures
are the same in every run.

``--aside`` takes the measurements that are kept aside instead: no constant is fitted to them, and they are not in the tables of
docs/accuracy.md, so that they show the error on a source that the model has never seen.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from math import log
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from calibration import (
    attention,
    copies,
    elementwise,
    fused,
    handoff,
    instructions,
    launches,
    matmul,
    quantisation,
    reductions,
    scripts,
    swizzled,
    templates,
    transposes,
    vector,
)
from calibration.case import Case, Modelled
from calibration.page import page

from tilelang_npu.simulator.result.launch_result import L2State
from tilelang_npu.target import Chip, chip, chips
from tilelang_npu.target.accuracy import SIDES

MEASURED = Path(__file__).resolve().parent / "calibration" / "measured.json"
ROOT = Path(__file__).resolve().parent.parent
ACCURACY = ROOT / "src" / "tilelang_npu" / "target" / "accuracy.json"
PAGE = ROOT / "docs" / "accuracy.md"
CASES: dict[str, Case] = {**vector.CASES, **matmul.CASES, **attention.CASES, **fused.CASES, **scripts.CASES, **copies.CASES,
                          **instructions.CASES, **templates.CASES, **elementwise.CASES,
                          **reductions.CASES, **launches.CASES, **quantisation.CASES,
                          **handoff.CASES, **transposes.CASES, **swizzled.CASES}
FITTED = ("traffic.hbm_read", "traffic.hbm_write", "traffic.l2", "traffic.requests", "traffic.same_place", "traffic.dirty",
          "gm_l1_nd2nz.sustained", "gm_l1_nd2nz.row", "gm_ub.flight", "gm_ub.row", "ub_gm.fixed", "ub_gm.rate",
          "cube.overhead", "cube.burst", "sync.handoff", "sync.barrier", "sync.vector_barrier", "scalar.alu",
          "launch.kernel_us", "launch.mixed_us", "launch.core_us", "launch.vector_core_us", "launch.dispatch_us")
"""The constants that are fitted to these measurements; all others are published."""
_CUBE = {name for name in FITTED if name.startswith(("gm_l1", "cube"))}
_BETWEEN = {"sync.handoff", "launch.mixed_us"}
UNUSED = {"vector": {*_CUBE, *_BETWEEN, "launch.core_us"},
          "cube": {"gm_ub.flight", "gm_ub.row", "ub_gm.fixed", "ub_gm.rate", "launch.vector_core_us", "sync.vector_barrier",
                   *_BETWEEN},
          "mixed": {"launch.vector_core_us"}}
"""By the kinds of cores of a launch, the fitted constants that its time does not depend on."""
STEP = 1.1
"""The factor by which a constant is changed to compute the slope of the time."""
NOISE, WITHIN = 0.1, 0.5
"""The standard deviations that the fit assumes for the model's errors and for the constants, as logarithms."""
FEWEST = 3
"""The smallest number of rows of a ladder for which a rank correlation is printed."""


@dataclass(frozen=True)
class Row:
    """A measurement and the modelled time.

    Attributes:
        name, kind, ladder, source, chip, measured: the entries of the file.
        pipes: measured busy microseconds of pipes.
        slopes: the change of the modelled time in per cent for a change of one per cent of each fitted constant.
    """

    name: str
    kind: str
    ladder: str
    source: str
    chip: str
    measured: float
    pipes: dict[str, float]
    modelled: Modelled
    slopes: tuple[float, ...] = ()

    @property
    def ratio(self) -> float:
        return self.modelled.us / self.measured

    @property
    def error(self) -> float:
        """The error of the modelled time, relative to the measured one."""
        return abs(self.ratio - 1)

    @property
    def factor(self) -> float:
        """The ratio of the larger to the smaller of both times."""
        return max(self.ratio, 1 / self.ratio)


def rows(only: Sequence[str] = (), *, varied: bool = False, aside: bool = False, clock: float | None = None) -> list[Row]:
    """Returns all rows, or those of some classes, ladders or names.

    Args:
        varied: whether to compute the slopes of each row.
        aside: whether to return rows that are kept aside, in place of the others.
        clock: the cycles per second of all chips; by default each chip has its nominal clock.
    """
    table: dict[str, dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8"))["aside" if aside else "rows"]
    return [_row(name, row, varied=varied, clock=clock) for name, row in table.items()
            if not only or {row["class"], row["ladder"], name} & set(only)]


def _row(name: str, row: dict[str, Any], *, varied: bool, clock: float | None) -> Row:
    modelled, slopes = _times(CASES[name], row.get("l2", "warm"), varied, clock)
    return Row(name, modelled.kind, row["ladder"], row["source"], row["chip"], row["us"], row.get("pipes", {}), modelled,
               slopes)


@cache
def _times(case: Case, l2_state: L2State, varied: bool, clock: float | None) -> tuple[Modelled, tuple[float, ...]]:
    """Returns the times of a case and the slopes for the fitted constants; cached, since several rows may have the same
    case."""
    launches = [launch.retimed(launch.chip if clock is None else replace(launch.chip, clock=clock), l2_state=l2_state)
                for launch in case.launches()]
    found = case.modelled(launches)
    unused = UNUSED[SIDES[found.kind]]

    def slope(name: str) -> float:
        if name in unused:
            return 0.0
        return log(case.modelled(launches, partial(changed, name, by=STEP)).us / found.us) / log(STEP)

    return found, tuple(map(slope, FITTED)) if varied else ()


def changed(name: str, chip: Chip, by: float) -> Chip:
    """Returns the chip with a fitted constant multiplied by ``by``."""
    part, constant = name.split(".")
    if part in chip.paths:
        path = chip.paths[part]
        near = path.near
        if constant == "sustained" and near is not None:  # L2 hits; misses are limited by the bytes in flight
            new = replace(path, near=replace(near, rate=near.rate * by, sustained=near.sustained * by))
        else:
            new = replace(path, move=replace(path.move, **{constant: getattr(path.move, constant) * by}),
                          near=near and replace(near, **{constant: getattr(near, constant) * by}))
        return replace(chip, paths={**chip.paths, part: new})
    row = getattr(chip, part)
    return replace(chip, **{part: replace(row, **{constant: getattr(row, constant) * by})})


def left_out(found: Sequence[Row]) -> list[float]:
    """Returns the errors of rows with constants that are fitted without the source of the row.

    The fit is by least squares of the logarithms of the ratios, linearised with the slopes. All sources have equal weight, and
    each constant stays within a factor of about ``e ** WITHIN``.
    """
    slopes = np.array([row.slopes for row in found])
    ratios = np.log([row.ratio for row in found])
    errors = np.zeros(len(found))  # as shares of the modelled time
    for source in {row.source for row in found}:
        out = np.array([row.source == source for row in found])
        weights = np.array([1 / sum(other.source == row.source for other in found) for row in found])[~out]
        scaled = slopes[~out] * np.sqrt(weights)[:, None] / NOISE
        normal = scaled.T @ scaled + np.eye(len(FITTED)) / WITHIN**2
        step = -np.linalg.solve(normal, scaled.T @ (ratios[~out] * np.sqrt(weights) / NOISE))
        errors[out] = np.abs(np.exp(-ratios[out] - slopes[out] @ step) - 1)
    return list(errors)


def show_left_out(found: Sequence[Row]) -> None:
    """Prints the table of errors with constants fitted without the rows' sources."""
    errors = left_out(found)
    print(f"\n{'class':16} {'median error':>13} {'without its source':>19} {'source':>45}")
    for kind in dict.fromkeys(row.kind for row in found):
        those = [(row, error) for row, error in zip(found, errors, strict=True) if row.kind == kind]
        print(f"{kind:16} {statistics.median(row.error for row, _ in those):13.1%}"
              f" {statistics.median(error for _, error in those):19.1%}")
        for source in dict.fromkeys(row.source for row, _ in those):
            own = [(row, error) for row, error in those if row.source == source]
            print(f"{'':16} {statistics.median(row.error for row, _ in own):13.1%}"
                  f" {statistics.median(error for _, error in own):19.1%} {source:>45}")


def write(found: Sequence[Row]) -> None:
    """Computes the errors, and writes them for the package and as the page."""
    rewrite({row.name: {"kind": row.kind, "source": row.source, "chip": row.chip, "families": _families(row.chip),
                        "measured": row.measured, "modelled": round(float(row.modelled.us), 3),
                        "left_out": round(float(error), 4)}
             for row, error in zip(found, left_out(found), strict=True)})


def _families(name: str) -> list[str]:
    """Returns the families of chips that have the same cores as a chip."""
    return sorted({one.family for one in chips() if (one.vector, one.cube) == (chip(name).vector, chip(name).cube)})


def rewrite(rows: dict[str, dict[str, Any]]) -> None:
    """Writes accuracy.json and the page from the data of the rows."""
    table = {"about": "Measured and modelled times in microseconds; written by benchmarks/calibrate.py --write. left_out: the"
                      " error as a share of the modelled time, with the fitted constants fitted without the row's source.",
             "rows": rows}
    ACCURACY.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(table, problems()), encoding="utf-8")


def problems() -> dict[str, str]:
    """Returns the problem of each measured row that is a version of a kernel, by the name of the row."""
    table: dict[str, dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8"))["rows"]
    return {name: row["problem"] for name, row in table.items() if "problem" in row}


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Returns Spearman's rank correlation; equal values have the mean of their ranks."""
    ranks = [[sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values]
             for values in (first, second)]
    return statistics.correlation(*ranks)


def show_rows(found: Sequence[Row], *, pipes: bool) -> None:
    """Prints the table of rows."""
    print(f"{'row':16} {'measured us':>12} {'modelled us':>12} {'ratio':>6}  bound by")
    for row in found:
        print(f"{row.name:16} {row.measured:12.1f} {row.modelled.us:12.1f} {row.ratio:6.2f}  {row.modelled.bound}")
        if pipes and row.pipes:
            parts = (f"{pipe} {us:.0f} / {row.modelled.pipes.get(pipe, 0.0):.0f}" for pipe, us in row.pipes.items())
            print(f"{'':16} {'measured / modelled:':>25} " + "   ".join(parts))


def show_classes(found: Sequence[Row]) -> None:
    """Prints the table of classes and the table of ladders."""
    print(f"\n{'class':16} {'rows':>5} {'median error':>13} {'median ratio':>13}  worst")
    for kind in dict.fromkeys(row.kind for row in found):
        those = [row for row in found if row.kind == kind]
        worst = max(those, key=lambda row: row.factor)
        print(f"{kind:16} {len(those):5} {statistics.median(row.error for row in those):13.1%}"
              f" {statistics.median(row.ratio for row in those):13.2f}  {worst.name} {worst.ratio:.2f}")
    print(f"\n{'ladder':16} {'rows':>5} {'rank correlation':>17}")
    for ladder in dict.fromkeys(row.ladder for row in found):
        those = [row for row in found if row.ladder == ladder]
        if len(those) >= FEWEST:
            found_order = rank_correlation([row.measured for row in those], [row.modelled.us for row in those])
            print(f"{ladder:16} {len(those):5} {found_order:17.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="classes, ladders or names of rows, with commas between")
    parser.add_argument("--pipes", action="store_true", help="also print busy times of pipes, if they were measured")
    parser.add_argument("--aside", action="store_true", help="the rows that are kept aside, in place of the others")
    parser.add_argument("--clock", type=float, metavar="MHZ", help="the clock of all chips, in place of their nominal clocks")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--leave-out", action="store_true", help="errors with constants that are fitted without a row's source")
    parser.add_argument("--write", action="store_true", help="write target/accuracy.json and docs/accuracy.md")
    parser.add_argument("--page", action="store_true", help="write docs/accuracy.md from the rows in target/accuracy.json")
    given = parser.parse_args()
    if given.page:
        rewrite(json.loads(ACCURACY.read_text(encoding="utf-8"))["rows"])
        return
    if given.write and (given.only or given.aside or given.clock):
        parser.error("--write takes all rows at nominal clocks: leave --only, --aside and --clock out")
    found = rows([part for part in given.only.split(",") if part], varied=given.leave_out or given.write,
                 aside=given.aside, clock=given.clock and given.clock * 1e6)
    show_rows(found, pipes=given.pipes)
    show_classes(found)
    if given.leave_out:
        show_left_out(found)
    if given.write:
        write(found)
    if given.json:
        given.json.write_text(json.dumps([asdict(row) | {"ratio": row.ratio} for row in found], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
