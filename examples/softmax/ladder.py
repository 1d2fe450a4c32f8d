"""Softmax of rows that fit in UB."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`y = exp(x - max(x)) / sum(exp(x - max(x)))` along rows, computed in float32. A row and its intermediate values fit in UB,
so each element is read once and written once. But there are eight operations for each element, two of them reductions: V
has as much work as MTE2, and it becomes the bound unless the tiles have the right size and the number of vector
instructions is kept small."""


def inputs(rows: int, columns: int, dtype: str) -> tuple[NDArray[Any], ...]:
    return np.random.default_rng(0).standard_normal((rows, columns)).astype(dtype), np.zeros((rows, columns), dtype)


def expected(x: NDArray[Any], _y: NDArray[Any], **_: Any) -> NDArray[Any]:
    e = np.exp(x.astype(np.float32) - x.max(axis=1, keepdims=True).astype(np.float32))
    return e / e.sum(axis=1, keepdims=True)


def work(rows: int, columns: int, dtype: str) -> Work:
    nbytes = rows * columns * np.dtype(dtype).itemsize
    return Work(read=nbytes, written=nbytes)


LADDER = Ladder(
    title="Softmax",
    about=ABOUT,
    cases=[
        {"rows": 384, "columns": 64, "dtype": "float32"},
        {"rows": 100, "columns": 200, "dtype": "float32"},
        {"rows": 800, "columns": 96, "dtype": "float16"},
    ],
    large=[{"rows": 65536, "columns": 1024, "dtype": dtype} for dtype in ("float32", "float16")],
    inputs=inputs,
    expected=expected,
    work=work,
    shown=1,
)
check = LADDER.check
