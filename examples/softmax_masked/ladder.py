"""Softmax of scores with a scale and a mask: the softmax of an encoder's attention."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
The softmax of BERT's attention: `y = softmax(scale * x + mask)` along the keys. Sentences of a batch differ in length, and
`mask` has for each sentence a row with 0 for its keys and -10000 for padding. All heads and queries of a sentence share
this row, and the kernel loads it once for each tile, which costs little. A library's `x + mask` expands it to a tensor of
the size of the scores, which would cost much.

The differences to the plain softmax are three more operations, for the scale and the mask, and that a tile belongs to one
sentence."""

SCALE = 0.125
"""1 / sqrt(64)"""


def inputs(batch: int, rows: int, columns: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x = (8 * rng.standard_normal((batch, rows, columns))).astype(dtype)
    lengths = rng.integers(columns // 2, columns + 1, batch)
    mask = np.where(np.arange(columns) < lengths[:, None], 0, -10000).astype(dtype)
    return x, mask, np.zeros_like(x)


def expected(x: NDArray[Any], mask: NDArray[Any], _y: NDArray[Any], **_: Any) -> NDArray[Any]:
    z = SCALE * x.astype(np.float64) + mask[:, None, :].astype(np.float64)
    e = np.exp(z - z.max(axis=2, keepdims=True))
    return e / e.sum(axis=2, keepdims=True)


def work(batch: int, rows: int, columns: int, dtype: str) -> Work:
    size = np.dtype(dtype).itemsize
    return Work(read=(batch * rows + batch) * columns * size, written=batch * rows * columns * size)


LADDER = Ladder(
    title="Softmax with scale and mask",
    about=ABOUT,
    cases=[
        {"batch": 2, "rows": 192, "columns": 128, "dtype": "float32"},
        {"batch": 3, "rows": 100, "columns": 200, "dtype": "float16"},
    ],
    large=[{"batch": 16, "rows": 12 * 512, "columns": 512, "dtype": dtype} for dtype in ("float32", "float16")],
    inputs=inputs,
    expected=expected,
    work=work,
    shown=1,
)
check = LADDER.check
