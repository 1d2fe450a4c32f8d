"""What calibrate.py writes: the errors as data for the package, and docs/accuracy.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from tilelang_npu.target import chip, chips

Rows = Mapping[str, Mapping[str, Any]]
"""By name what stands in ``accuracy.json``: class, source, chip, measured and modelled microseconds, ``left_out``."""

_HEAD = """# Modelled times: what they are made of, and how far to trust them

(Made by `python benchmarks/calibrate.py --write` from `src/tilelang_npu/target/accuracy.json`, which the same command
writes.)

A time that this package shows is modelled: what a profiler on the card would show as the task's duration. It stands
with the error that the model has for kernels of its class: `gemm: 27.9 us +- 18 % on Ascend910B2, 64 blocks, bound by MTE2`.

## The error

Published measurements (`benchmarks/calibration/measured.json`, each with its source and the tiling that this states)
are written as kernels and modelled. Some constants of the model come from these measurements. So the error of each row
is also taken with these constants fitted anew without the row's source (`left out`). A class has the larger of both
medians: one measured kernel of the class in two is closer, one is further off. It is an error of the model, and not a
scatter: the figures are the same in every run.

The class follows from what the recorded launch does, and `launch.kind` has it:

| class | what the launch does |
|---|---|
| `vector` | no matrices are multiplied: copies, element by element, reductions, sorts |
| `small gemm` | Cube cores alone, up to 10^10 multiplications |
| `gemm` | Cube cores alone, more of them |
| `fused` | both; Vector cores prepare operands of products, or finish products |
| `attention` | both; Vector cores take products and make operands of further products of them |

"""
_TAIL = """
`+- ? %` is written where nothing was measured that an error follows from: on families of chips whose cores were not measured,
and on chips that a user describes in a file. The time of several launches together has the mean of their errors by their times.

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
- Waves and tail: a core takes its next block 0.74 us after the last; the last wave has as many cores as blocks are left, and
  these share HBM and L2.
- Order of blocks, **an estimate**: core by core in turn. Hardware gives the next block to the core that is free first: where
  blocks differ much, a launch may end earlier than modelled.
- Phases in time, **not modelled**: how many transfers are in flight is a mean over a block. Where all cores load first and
  compute later, HBM is taken to be as busy in both.
- Cold start, **an estimate**: 2 us for each launch, in which cores wait for instructions and page tables. The first tasks of 72
  cores begin 0.3 to 5.6 us late (simpler); an empty kernel of all cores was seen to take 20 us (Ascend C, guide on profiling).
  What L2 holds is taken as in the later of many runs. Most rows below that were measured at less than 40 us took 2 to 7 us
  longer than modelled, whatever they do.
- Additions in GM: L2 reads and writes what is added to. Those to one line of 512 bytes wait for each other, 25.8 ns each:
  measured with reads, **an estimate** for additions.
- Reads of one line at once, **not modelled**: 48 cores that read the same rows in the same order took 1.6 times as long as
  those that did in turn (asc-devkit: data_copy).

## A launch as data

`kernel.last_launch.to_dict()` is a dictionary that JSON can hold. `tilelang-npu run FILE --json OUT` writes one for every
kernel of a script: `{"version": 1, "script", "exit_code", "kernels": [...]}`, each kernel with `name`, `label` (the name, and
the sizes where several have it), `runs` (how many there were), `total_us` (modelled time of all), `error` (of that), `findings`
(what the sanitizer said, as text), `last_launch`, and with `--profile` its `profile`.

| key | |
|---|---|
| `kernel`, `chip`, `class` | names; the class as above |
| `arguments` | of each its `name`, and `dtype` and `shape`, or the `value` of a number |
| `blocks`, `cores`, `waves` | blocks, cores that take them, rounds in which they do |
| `time_us`, `error`, `split_us` | the time, its error as a share (null where it is not known), its parts |
| `cycles` | from the start of the first block to the end of the last |
| `bound_by` | the busiest pipe, and the memory that it waits for |
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


def classes(rows: Rows) -> dict[str, dict[str, Any]]:
    """The table of classes, from that of rows."""
    found = {}
    for kind in dict.fromkeys(row["class"] for row in rows.values()):
        those = {name: row for name, row in rows.items() if row["class"] == kind}
        ratios = {name: row["modelled"] / row["measured"] for name, row in those.items()}
        worst = max(ratios, key=lambda name: max(ratios[name], 1 / ratios[name]))
        left_out = statistics.median(row["left_out"] for row in those.values())
        fitted = statistics.median(abs(ratio - 1) for ratio in ratios.values())
        found[kind] = {
            "rows": len(those),
            "error": round(max(left_out, fitted), 4), "left_out": round(left_out, 4), "fitted": round(fitted, 4),
            "ratio": round(statistics.median(ratios.values()), 4),
            "worst": worst, "worst_ratio": round(ratios[worst], 4),
            "families": sorted({one.family for one in chips() for row in those.values()
                                if (one.vector, one.cube) == (chip(row["chip"]).vector, chip(row["chip"]).cube)}),
            "sources": list(dict.fromkeys(row["source"] for row in those.values())),
        }
    return found


def page(table: Mapping[str, Any]) -> str:
    """docs/accuracy.md, from the whole of accuracy.json."""
    heads = ("class", "rows", "error", "fitted", "left out", "median ratio", "worst", "chips", "measured by")
    lines = [_row(heads), _row("---:" if head in heads[1:6] else "---" for head in heads)]
    lines += [_row((f"`{kind}`", row["rows"], f"{row['error']:.0%}", f"{row['fitted']:.1%}", f"{row['left_out']:.1%}",
                    f"{row['ratio']:.2f}", f"{row['worst']}: {row['worst_ratio']:.2f}", ", ".join(row["families"]),
                    "; ".join(row["sources"])))
              for kind, row in table["classes"].items()]
    rows = [_row(("row", "class", "chip", "measured", "modelled", "ratio", "left out")),
            _row(("---", "---", "---", "---:", "---:", "---:", "---:"))]
    rows += [_row((name, row["class"], row["chip"], f"{row['measured']:.1f}", f"{row['modelled']:.1f}",
                   f"{row['modelled'] / row['measured']:.2f}", f"{row['left_out']:.0%}"))
             for name, row in table["rows"].items()]
    return _HEAD + "\n".join(lines) + "\n" + _TAIL + "\n".join(rows) + "\n"


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
