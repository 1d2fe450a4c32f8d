"""How far the modelled times are from measured ones: each published measurement beside the same kernel written here.

    python benchmarks/calibrate.py [--only gemm,attention,...] [--pipes] [--json FILE]

The measurements stand in ``calibration/measured.json``, each with its source and the tiling that this states, the kernels in
the files beside it. Nothing is computed but times: all rows take about a minute. The tables: each row with the ratio of the
modelled to the measured time and the busiest pipe; by class the median error, the median ratio and the worst row; and along
each ladder, which is one experiment in steps, the rank correlation of both. The figures are the same in every run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from calibration import attention, fused, matmul, vector
from calibration.case import Case, Modelled

MEASURED = Path(__file__).resolve().parent / "calibration" / "measured.json"
CASES: dict[str, Case] = {**vector.CASES, **matmul.CASES, **attention.CASES, **fused.CASES}
FEWEST = 3
"""Rows from which on a ladder has an order worth comparing."""


@dataclass(frozen=True)
class Row:
    """A measurement and what the model says.

    Attributes:
        name, kind, ladder, source, measured: as they stand in the file.
        pipes: busy microseconds of pipes, as measured.
    """

    name: str
    kind: str
    ladder: str
    source: str
    measured: float
    pipes: dict[str, float]
    modelled: Modelled

    @property
    def ratio(self) -> float:
        return self.modelled.us / self.measured

    @property
    def error(self) -> float:
        """Of the modelled time, as a share of the measured one."""
        return abs(self.ratio - 1)

    @property
    def factor(self) -> float:
        """How often the smaller of both goes into the larger."""
        return max(self.ratio, 1 / self.ratio)


def rows(only: Sequence[str] = ()) -> list[Row]:
    """All rows, or those of some classes or of some names."""
    table: dict[str, dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8"))["rows"]
    return [Row(name, row["class"], row["ladder"], row["source"], row["us"], row.get("pipes", {}), CASES[name].modelled())
            for name, row in table.items() if not only or row["class"] in only or name in only]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's, equal values sharing their ranks."""
    ranks = [[sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values]
             for values in (first, second)]
    return statistics.correlation(*ranks)


def show_rows(found: Sequence[Row], *, pipes: bool) -> None:
    """The table of rows."""
    print(f"{'row':16} {'measured us':>12} {'modelled us':>12} {'ratio':>6}  bound by")
    for row in found:
        print(f"{row.name:16} {row.measured:12.1f} {row.modelled.us:12.1f} {row.ratio:6.2f}  {row.modelled.bound}")
        if pipes and row.pipes:
            parts = (f"{pipe} {us:.0f} / {row.modelled.pipes.get(pipe, 0.0):.0f}" for pipe, us in row.pipes.items())
            print(f"{'':16} {'measured / modelled:':>25} " + "   ".join(parts))


def show_classes(found: Sequence[Row]) -> None:
    """The table of classes, and that of ladders."""
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
    parser.add_argument("--only", default="", help="classes or names of rows, with commas between")
    parser.add_argument("--pipes", action="store_true", help="busy times of pipes too, where they were measured")
    parser.add_argument("--json", type=Path, help="write the rows there")
    given = parser.parse_args()
    found = rows([part for part in given.only.split(",") if part])
    show_rows(found, pipes=given.pipes)
    show_classes(found)
    if given.json:
        given.json.write_text(json.dumps([asdict(row) | {"ratio": row.ratio} for row in found], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
