"""Elements of each row at places that are given for that row."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`y[i, j] = x[i, index[i, j]]`: `torch.gather` along the last axis, as in choosing logits, undoing a sort, or a
permutation of columns. An embedding takes whole rows, and each is a request of MTE2; here every element has a place of
its own. As requests to memory they would be one each, of 32 bytes at least for 2 or 4 that are wanted. But all places
are in one row, and a row fits in UB: it is loaded as it is, and V takes the elements from there (`T.gather`)."""


def inputs(rows: int, columns: int, count: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x = np.resize(np.arange(2039, dtype=dtype), (rows, columns))
    return x, rng.integers(0, columns, (rows, count), np.int32), np.zeros((rows, count), dtype)


def expected(x: NDArray[Any], index: NDArray[Any], _y: NDArray[Any], **_: Any) -> NDArray[Any]:
    return np.take_along_axis(x, index, axis=1)


def work(rows: int, columns: int, count: int, dtype: str) -> Work:
    size = np.dtype(dtype).itemsize
    return Work(read=rows * (columns * size + count * 4), written=rows * count * size)


LADDER = Ladder(
    title="Gather",
    about=ABOUT,
    cases=[
        {"rows": 100, "columns": 256, "count": 128, "dtype": "float32"},
        {"rows": 77, "columns": 200, "count": 100, "dtype": "float16"},
    ],
    large=[{"rows": 65536, "columns": 1024, "count": 1024, "dtype": dtype} for dtype in ("float32", "float16")],
    inputs=inputs,
    expected=expected,
    work=work,
    shown=1,
)
check = LADDER.check
