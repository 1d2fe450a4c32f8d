"""SwiGLU, between the linear layers of a gated feed-forward block."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`y = silu(a) * b` with `silu(a) = a / (1 + exp(-a))`, computed in float32. A linear layer has stored `a` and `b` in one
tensor with rows of twice as many columns: the left half of a row is `a`, the right half is `b`. Two elements are read for
each one that is written, and the kernel reads both halves directly, without a copy that separates them."""


def inputs(rows: int, columns: int, dtype: str) -> tuple[NDArray[Any], ...]:
    x = np.random.default_rng(0).standard_normal((rows, 2 * columns)).astype(dtype)
    return x, np.zeros((rows, columns), dtype)


def expected(x: NDArray[Any], _y: NDArray[Any], columns: int, **_: Any) -> NDArray[Any]:
    a, b = x[:, :columns].astype(np.float64), x[:, columns:].astype(np.float64)
    return a / (1 + np.exp(-a)) * b


def work(rows: int, columns: int, dtype: str) -> Work:
    nbytes = rows * columns * np.dtype(dtype).itemsize
    return Work(read=2 * nbytes, written=nbytes)


LADDER = Ladder(
    title="SwiGLU",
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
    tolerance={"float32": (1e-4, 1e-5)},
)
check = LADDER.check
