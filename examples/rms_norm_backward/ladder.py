"""Gradients of RMSNorm."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

EPS = 1e-5
ABOUT = """\
The gradients of RMSNorm, from `x`, `w` and the gradient `g` of its result. With `n = x / sqrt(mean(x * x) + eps)`, `dx = (g
* w - n * mean(g * w * n)) / sqrt(mean(x * x) + eps)` for each row, and `dw`, the sum of `g * n` over all rows. Two tensors
are read and one is written, for a dozen operations on each element."""


def inputs(rows: int, columns: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal((rows, columns)).astype(dtype) for _ in range(2))
    return x, rng.standard_normal((1, columns)).astype(dtype), g, np.zeros_like(x), np.zeros((1, columns), np.float32)


def expected(x: NDArray[Any], weight: NDArray[Any], g: NDArray[Any], *_out: NDArray[Any], **_: Any) -> tuple[NDArray[Any], ...]:
    x, weight, g = (array.astype(np.float64) for array in (x, weight, g))
    scale = 1 / np.sqrt((x * x).mean(1, keepdims=True) + EPS)
    n = x * scale
    return (g * weight - n * (g * weight * n).mean(1, keepdims=True)) * scale, (g * n).sum(0, keepdims=True)


def work(rows: int, columns: int, dtype: str) -> Work:
    nbytes = rows * columns * np.dtype(dtype).itemsize
    return Work(read=2 * nbytes, written=nbytes)


LADDER = Ladder(
    title="RMSNorm, backward",
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
    tolerance={"float32": (1e-4, 1e-4), "float16": (4e-3, 4e-3)},
    results=2,
)
check = LADDER.check
