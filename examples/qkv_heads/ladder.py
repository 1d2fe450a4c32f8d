"""Bias and transposition between the QKV projection and attention."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
The step between the product that computes queries, keys and values, and attention, for example in BERT: the product stores
for each position a row of `3 * heads * dim` numbers; each needs its bias, and attention reads `[3, batch, heads, positions,
dim]`, where the positions of a head are contiguous. Two framework operations pass over the whole result of the product
twice; one kernel adds the bias and transposes in one pass.

There is almost no computation. The time depends on which side of the transposition has the short rows, 64 numbers of a
head, and on how many of them one request moves."""


def inputs(batch: int, positions: int, heads: int, dim: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x, bias = (rng.standard_normal(shape).astype(dtype) for shape in ((batch, positions, 3 * heads * dim), 3 * heads * dim))
    return x, bias, np.zeros((3, batch, heads, positions, dim), dtype)


def expected(x: NDArray[Any], bias: NDArray[Any], _y: NDArray[Any], heads: int, dim: int, **_: Any) -> NDArray[Any]:
    whole = x.astype(np.float64) + bias.astype(np.float64)
    return whole.reshape(*x.shape[:2], 3, heads, dim).transpose(2, 0, 3, 1, 4)


def work(batch: int, positions: int, heads: int, dim: int, dtype: str) -> Work:
    row = 3 * heads * dim * np.dtype(dtype).itemsize
    return Work(read=(batch * positions + 1) * row, written=batch * positions * row)


LADDER = Ladder(
    title="Bias and heads (QKV)",
    about=ABOUT,
    cases=[
        {"batch": 2, "positions": 128, "heads": 4, "dim": 64, "dtype": "float32"},
        {"batch": 3, "positions": 100, "heads": 3, "dim": 48, "dtype": "float16"},
    ],
    large=[{"batch": 64, "positions": 512, "heads": 12, "dim": 64, "dtype": dtype} for dtype in ("float32", "float16")],
    inputs=inputs,
    expected=expected,
    work=work,
    shown=1,
)
check = LADDER.check
