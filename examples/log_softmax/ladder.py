"""The logarithm of the softmax of rows that fit in UB."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`y = x - max(x) - ln(sum(exp(x - max(x))))` along rows, computed in float32: the core of a classifier's loss. The formula
seems to have one operation more than a softmax, but it has one less: there is no division, and the exponentials are summed
and not stored."""


def inputs(rows: int, columns: int, dtype: str) -> tuple[NDArray[Any], ...]:
    return np.random.default_rng(0).standard_normal((rows, columns)).astype(dtype), np.zeros((rows, columns), dtype)


def expected(x: NDArray[Any], _y: NDArray[Any], **_: Any) -> NDArray[Any]:
    z = x.astype(np.float64) - x.max(axis=1, keepdims=True).astype(np.float64)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def work(rows: int, columns: int, dtype: str) -> Work:
    nbytes = rows * columns * np.dtype(dtype).itemsize
    return Work(read=nbytes, written=nbytes)


LADDER = Ladder(
    title="Log-softmax",
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
