"""LayerNorm along rows."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

EPS = 1e-5
ABOUT = """\
`y = (x - mean) / sqrt(variance + eps) * w + b` along rows, computed in float32. A row stays in UB from its load to its
store, so each element is read once and written once."""


def inputs(rows: int, columns: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, columns)).astype(dtype)
    weight, bias = (rng.standard_normal((1, columns)).astype(dtype) for _ in range(2))
    return x, weight, bias, np.zeros_like(x)


def expected(x: NDArray[Any], weight: NDArray[Any], bias: NDArray[Any], _y: NDArray[Any], **_: Any) -> NDArray[Any]:
    x, weight, bias = (array.astype(np.float64) for array in (x, weight, bias))
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + EPS) * weight + bias


def work(rows: int, columns: int, dtype: str) -> Work:
    nbytes = rows * columns * np.dtype(dtype).itemsize
    return Work(read=nbytes, written=nbytes)


LADDER = Ladder(
    title="LayerNorm",
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
)
check = LADDER.check
