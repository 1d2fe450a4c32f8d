"""Multiplication by a row of factors, with a conversion of the element type."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`y[r, c] = cast(x[r, c]) * s[c]`: a conversion between float16 and float32 parts of a model, with a scale for each column.
The table gives the type of `x`; `y` has the other type. The factors are float32, and so is the product.

The row of factors is broadcast to all rows of `x`. Each core loads it once, and V reads it again for each row of a tile
without a copy. The cast is an instruction of V, too. If both are fused in one kernel, the lower bound is the traffic of `x`
and `y`."""


def inputs(rows: int, columns: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x, s = rng.standard_normal((rows, columns)).astype(dtype), rng.standard_normal(columns).astype(np.float32)
    return x, s, np.zeros((rows, columns), other(dtype))


def other(dtype: str) -> str:
    return "float16" if dtype == "float32" else "float32"


def expected(x: NDArray[Any], s: NDArray[Any], _y: NDArray[Any], **_: Any) -> NDArray[Any]:
    return x.astype(np.float64) * s


def work(rows: int, columns: int, dtype: str) -> Work:
    size = np.dtype(dtype).itemsize
    return Work(read=rows * columns * size + 4 * columns, written=rows * columns * (6 - size))


LADDER = Ladder(
    title="Cast and broadcast",
    about=ABOUT,
    cases=[
        {"rows": 384, "columns": 128, "dtype": "float32"},
        {"rows": 500, "columns": 200, "dtype": "float16"},
    ],
    large=[{"rows": 65536, "columns": 1024, "dtype": dtype} for dtype in ("float32", "float16")],
    inputs=inputs,
    expected=expected,
    work=work,
)
check = LADDER.check
