"""What calibrate.py writes: the errors as data for the package, and docs/accuracy.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from calibration.version_order import table as table_of_orders
from calibration.version_order import version_pairs
from tilelang_npu.target import MeasuredKernel
from tilelang_npu.target.accuracy import SIDES, alike, interval, size_class

_HEAD = """# Modelled times: what they are made of, and how far to trust them

(Made by `python benchmarks/calibrate.py --write` from `src/tilelang_npu/target/accuracy.json`, which the same command
writes.)

A time that this package shows is modelled: what a profiler on the card would show as the task's duration. It stands
with the error that the model has for kernels of its class: `gemm: 27.9 us +- 18 % on Ascend910B2, 64 blocks, bound by MTE2`.

## The error

Published measurements (`benchmarks/calibration/measured.json`, each with its source and the tiling that this states)
are written as kernels and modelled. Some constants of the model come from these measurements, so the error of each row
is taken with these constants fitted anew without the row's source.

The error of a launch comes from the measured kernels that are like it: of its class and size, or, where fewer than 8 or
those of fewer than 4 sources were measured, of the same kinds of cores and its size, or of the same kinds of cores. It is a
conformal prediction interval (split conformal prediction with groups): 80 % of further kernels that are like the
measured ones are within it. The quantile is that of 0.82, with which 80 % of the kernels of a source that is left out are
within the intervals of the others. `+- ? %` is written where too few kernels were measured on such cores.

The class follows from what the recorded launch does, and `launch.kind` has it:

| class | cores | what the launch does |
|---|---|---|
| `copy` | Vector | it only moves data |
| `element-wise` | Vector | it computes element by element |
| `rearrangement` | Vector | it transposes, gathers or interleaves elements |
| `reduction` | Vector | it combines the elements of an axis |
| `sort` | Vector | it orders elements |
| `small gemm` | Cube | products, up to 10^10 multiplications |
| `gemm` | Cube | more of them |
| `attention` | both | Vector cores take products and make operands of further products of them |
| `mixed` | both | Vector cores do other work |

## Coverage

Each source is left out in turn; its kernels are judged with the intervals that the other sources give. `inside` is the
share of kernels whose measured time is within `+- error` of the modelled one.

"""
_BEFORE_ORDERS = """
`+- ? %` is also written on families of chips whose cores were not measured, and on chips that a user describes in a file. The
time of several launches together has the mean of their errors by their times.

## Two versions of a kernel

How often the model puts two measured versions of a kernel in the right order: pairs of rows that compute the same from the
same data on the same chip, with other tiles, numbers of blocks or slots (`problem` in `measured.json`). The difference is the
share of its time that the faster version saves. Two versions with equal modelled times count as half right.

"""
_BEFORE_ROWS = """
Below 2 % the model does not know the order. The measured times of such versions differ as little, by effects that it does not
have. So `tilelang-npu improve` keeps an edit only if it saves 2 % ([improving a kernel](improve.md#what-is-accepted)). From
2 % to 20 % the order is right more often than not; a measurement on a card decides.

## The parts

`of which  launch 5.5   ramp 0.0   steady 14.7   tail 7.7 us`: the parts lie one behind the other, and their sum is the
time.

| part | |
|---|---|
| launch | no block runs: the kernel's start and end, longer with each core ([hardware](hardware.md#launches)) |
| ramp | until the busiest pipe has its first work, on the core that ends last |
| steady | that pipe works, or waits for what is under way |
| tail | some core has no block left to take, or the busiest pipe of the last core has done its work |

## What is modelled, and what is not

- Requests in flight: at most 8 KB of a core's requests to HBM; those that L2 answers without a limit.
- Blocks are dispatched one after the other for the whole chip, 0.039 us for each core of a block. A core takes its next block
  as soon as that is dispatched; the last wave has as many cores as blocks are left, and these share HBM and L2.
- Order of blocks, **an estimate**: core by core in turn. Hardware gives the next block to the core that is free first: where
  blocks differ much, a launch may end earlier than modelled.
- Phases in time, **not modelled**: how many transfers are in flight is a mean over a block. Where all cores load first and
  compute later, HBM is taken to be as busy in both.
- What L2 holds when a launch begins: what the same launch before it left there (`warm`, as profilers time repeated launches),
  or nothing (`cold`: `--l2 cold`). Inputs that do not fit are read from HBM in both.
- Writes: L2 holds about 49 MB that are written; more goes to HBM, and shares it with reads.
- Requests: L2 answers 13.7 in a nanosecond, of up to a line of 512 bytes each; where all cores begin at once and read the same
  bytes in the same order, 4.95.
- Additions in GM: L2 reads and writes what is added to. Those to one line of 512 bytes wait for each other, 25.8 ns each:
  measured with reads, **an estimate** for additions.

## A launch as data

`kernel.last_launch.to_dict()` is a dictionary that JSON can hold. `tilelang-npu run FILE --json OUT` writes one for every
kernel of a script: `{"version": 1, "script", "exit_code", "kernels": [...]}`, each kernel with `name`, `label` (the name, and
the sizes where several have it), `runs` (how many there were), `total_us` (modelled time of all), `error` (of that), `findings`
(what the sanitizer said, as text), `last_launch`, and with `--profile` its `profile`.

| key | |
|---|---|
| `kernel`, `chip`, `class` | names; the class as above |
| `arguments` | of each its `name`, and `dtype` and `shape`, or the `value` of a number |
| `l2` | what L2 holds when the launch begins: `warm` or `cold` |
| `blocks`, `cores`, `waves` | blocks, cores that take them, rounds in which they do |
| `time_us`, `error`, `split_us` | the time, its error as a share (null where it is not known), its parts |
| `cycles` | from the start of the first block to the end of the last |
| `bound_by` | the busiest pipe, and the memory that it waits for; `latency` if no pipe works much; `dispatch` of short blocks |
| `pipes` | by kind of core the share of `cycles` that each pipe is busy |
| `memory` | bytes used of each memory on chip |
| `operations` | by element type what was multiplied, two for each multiply-add: `done`, and `useful` without padding |
| `gm` | `bytes` between the cores and GM, `bytes_per_second`, `served_by` (HBM or L2, the slower), its `share_of_peak` |

Of a kernel with several `T.Kernel` the dictionary has `kernel`, `chip`, `time_us`, `error`, `split_us`, `cycles`,
`blocks`, and in `launches` one such dictionary for each.

## Without running

`kernel.estimate(...)` gives the launch without computing a value, in a fraction of the time: arguments may be arrays,
or shapes in their place (`kernel.estimate((8192, 8192), (8192, 8192))`); without any they are as declared. Its times
are those of a run. Where data decide what a kernel does, there is nothing to estimate from shapes, and it says at which
line ([T421](diagnostics/T421.md)).

## The rows

Microseconds; the ratio is modelled to measured time. The last column is the error with constants that are fitted
without the row's source.

"""


def page(table: Mapping[str, Any], problems: Mapping[str, str]) -> str:
    """Returns docs/accuracy.md.

    Args:
        table: the whole of accuracy.json.
        problems: the problem of each row that is a version of a kernel, by the name of the row.
    """
    found = [MeasuredKernel(**{**row, "name": name, "families": tuple(row["families"])}) for name, row in table["rows"].items()]
    inside = covered(found)
    heads = ("kernels", "rows", "sources", "median error", "worst", "error", "inside")
    lines = [_row(heads), _row(("---", *["---:"] * 3, "---", *["---:"] * 2))]
    for name, group in _groups(found):
        if group:
            worst = max(group, key=lambda row: max(row.modelled / row.measured, row.measured / row.modelled))
            lines.append(_row((name, len(group), len({row.source for row in group}),
                               f"{statistics.median(abs(row.modelled / row.measured - 1) for row in group):.0%}",
                               f"{worst.name}: {worst.modelled / worst.measured:.2f}",
                               f"{interval(row.left_out for row in group):.0%}",
                               f"{statistics.mean(inside[row.name] for row in group):.0%}")))
    rows = [_row(("row", "class", "chip", "measured", "modelled", "ratio", "left out", "source")),
            _row(("---", "---", "---", "---:", "---:", "---:", "---:", "---"))]
    rows += [_row((row.name, row.kind, row.chip, f"{row.measured:.4g}", f"{row.modelled:.4g}",
                   f"{row.modelled / row.measured:.2f}", f"{row.left_out:.0%}", row.source)) for row in found]
    pairs = list(version_pairs({row.name: row.measured for row in found}, {row.name: row.modelled for row in found}, problems))
    return (_HEAD + "\n".join(lines) + "\n" + _BEFORE_ORDERS + table_of_orders(pairs) + "\n" + _BEFORE_ROWS
            + "\n".join(rows) + "\n")


def covered(found: Sequence[MeasuredKernel]) -> dict[str, bool]:
    """Whether each row is within the interval that the rows of the other sources give; a row without an interval is not."""
    inside = {}
    for row in found:
        group = alike(row.kind, size_class(row.modelled), (other for other in found if other.source != row.source))
        inside[row.name] = bool(group) and row.left_out <= interval(other.left_out for other in group)
    return inside


def _groups(found: Sequence[MeasuredKernel]) -> Iterator[tuple[str, list[MeasuredKernel]]]:
    """The rows by class, by kinds of cores and size, and all."""
    for kind in SIDES:
        yield f"`{kind}`", [row for row in found if row.kind == kind]
    for side in dict.fromkeys(SIDES.values()):
        for size, name in enumerate(("under 10 us", "10 to 100 us", "above 100 us")):
            yield f"{side.capitalize()}, {name}", [row for row in found if SIDES[row.kind] == side
                                                   and size_class(row.modelled) == size]
    for size, name in enumerate(("under 10 us", "10 to 100 us", "above 100 us")):
        yield f"all {name}", [row for row in found if size_class(row.modelled) == size]
    yield "all", list(found)


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
