"""Gradients of LayerNorm."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

EPS = 1e-5
ABOUT = """\
The gradients of LayerNorm, from `x`, `w` and the gradient `g` of its result. With `n = (x - mean(x)) / sqrt(var(x) + eps)`
and `h = g * w` they are `dx = (h - mean(h) - n * mean(h * n)) / sqrt(var(x) + eps)` for each row, and, summed over all
rows, `dw`, the sum of `g * n`, and `db`, the sum of `g`. Two tensors are read and one is written.

`n` depends on the mean and the deviation of each row, which the forward pass computed. This kernel *recomputes* them: the
row has to be loaded to UB anyway, and the forward pass need not store a tensor of means and deviations."""


def inputs(rows: int, columns: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal((rows, columns)).astype(dtype) for _ in range(2))
    weight = rng.standard_normal((1, columns)).astype(dtype)
    return x, weight, g, np.zeros_like(x), np.zeros((1, columns), np.float32), np.zeros((1, columns), np.float32)


def expected(x: NDArray[Any], weight: NDArray[Any], g: NDArray[Any], *_out: NDArray[Any], **_: Any) -> tuple[NDArray[Any], ...]:
    x, weight, g = (array.astype(np.float64) for array in (x, weight, g))
    scale = 1 / np.sqrt(x.var(1, keepdims=True) + EPS)
    n, h = (x - x.mean(1, keepdims=True)) * scale, g * weight
    dx = (h - h.mean(1, keepdims=True) - n * (h * n).mean(1, keepdims=True)) * scale
    return dx, (g * n).sum(0, keepdims=True), g.sum(0, keepdims=True)


def work(rows: int, columns: int, dtype: str) -> Work:
    nbytes = rows * columns * np.dtype(dtype).itemsize
    return Work(read=2 * nbytes, written=nbytes)


LIMITS = """\
In float16 V is the bound, busy for {1: AIV V} of the time. For 64 elements of `x`, HBM takes 22 cycles of a core's time for
everything that is read and written. V takes half as many again: three conversions; fourteen sums and products, two of which
read both operands from the same banks of UB and take twice as long (UB is full, so the operands cannot be placed in
different banks); and four reductions along rows of more than two cycles each, which every formula for `dx` needs if mean
and deviation are recomputed. The start-up cost of V's instructions, on tiles of seven rows, is {1: AIV V latency} of the
time."""


LADDER = Ladder(
    title="LayerNorm, backward",
    about=ABOUT,
    cases=[
        {"rows": 384, "columns": 128, "dtype": "float32"},
        {"rows": 500, "columns": 200, "dtype": "float16"},
    ],
    large=[{"rows": 65536, "columns": 1024, "dtype": dtype} for dtype in ("float32", "float16")],
    inputs=inputs,
    expected=expected,
    work=work,
    shown=1,
    tolerance={"float32": (1e-4, 2e-4), "float16": (4e-3, 4e-3)},
    results=3,
    limits=LIMITS,
)
check = LADDER.check
