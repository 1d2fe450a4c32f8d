"""Cross-entropy of long rows: the loss of a language model."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`loss = ln(sum(exp(x))) - x[label]` for each row of `x`, which has a logit for every word of a vocabulary; computed in
float32. Only one number for each row is stored; a log-softmax kernel from which the label is picked afterwards would write
as much as it reads. A row of 32768 logits and its intermediate values do not fit in UB, so a row is processed in tiles. `m`
is the running maximum and `s` the running sum of `exp(x - m)`. A tile with a larger maximum scales `s` down, as in the
softmax of long rows, so one pass is enough."""


def inputs(rows: int, columns: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x = (4 * rng.standard_normal((rows, columns))).astype(dtype)
    return x, rng.integers(0, columns, (rows, 1), np.int32), np.zeros((rows, 1), np.float32)


def expected(x: NDArray[Any], labels: NDArray[Any], _y: NDArray[Any], **_: Any) -> NDArray[Any]:
    z = x.astype(np.float64)
    largest = z.max(axis=1, keepdims=True)
    return largest + np.log(np.exp(z - largest).sum(axis=1, keepdims=True)) - np.take_along_axis(z, labels, axis=1)


def work(rows: int, columns: int, dtype: str) -> Work:
    return Work(read=rows * (columns * np.dtype(dtype).itemsize + 4), written=rows * 4)


LADDER = Ladder(
    title="Cross-entropy",
    about=ABOUT,
    cases=[
        {"rows": 50, "columns": 16384, "dtype": "float32"},
        {"rows": 9, "columns": 9000, "dtype": "float16"},
    ],
    large=[{"rows": 12288, "columns": 32768, "dtype": dtype} for dtype in ("float32", "float16")],
    inputs=inputs,
    expected=expected,
    work=work,
    shown=1,
    tolerance={"float32": (1e-5, 1e-5)},
)
check = LADDER.check
