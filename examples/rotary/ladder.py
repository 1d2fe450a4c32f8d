"""Rotary position embedding."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
Queries and keys are rotated by an angle for each position and each pair of columns, before attention multiplies them: with
`a` and `b` the left and the right half of a row, `y = (a * cos - b * sin, b * cos + a * sin)`, as in LLaMA. The tables of
`cos` and `sin` have a row of half the width for each position, which all heads share; they are float32, and so is the
computation.

There are few operations. The time depends on how often the tables are loaded, and on how rows of 128 elements are combined
into requests that are large enough for HBM."""


def inputs(heads: int, positions: int, dim: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((positions, heads, dim)).astype(dtype)
    angle = np.arange(positions)[:, None] * 10000.0 ** (-np.arange(dim // 2) / (dim // 2))
    return x, np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32), np.zeros_like(x)


def expected(x: NDArray[Any], cos: NDArray[Any], sin: NDArray[Any], _y: NDArray[Any], dim: int, **_: Any) -> NDArray[Any]:
    a, b = x[..., : dim // 2].astype(np.float64), x[..., dim // 2 :].astype(np.float64)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def work(heads: int, positions: int, dim: int, dtype: str) -> Work:
    nbytes = positions * heads * dim * np.dtype(dtype).itemsize
    return Work(read=nbytes + 4 * positions * dim, written=nbytes)


LADDER = Ladder(
    title="Rotary embedding",
    about=ABOUT,
    cases=[
        {"heads": 4, "positions": 96, "dim": 128, "dtype": "float32"},
        {"heads": 3, "positions": 250, "dim": 64, "dtype": "float16"},
    ],
    large=[{"heads": 32, "positions": 16384, "dim": 128, "dtype": dtype} for dtype in ("float32", "float16")],
    inputs=inputs,
    expected=expected,
    work=work,
    shown=1,
    tolerance={"float32": (1e-5, 1e-6)},
)
check = LADDER.check
