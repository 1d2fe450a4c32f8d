"""Elements of each row, selected by a row of indices."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`y[i, j] = x[i, index[i, j]]`: `torch.gather` along the last axis, for example to select logits, undo a sort, or permute
columns. An embedding reads whole rows, each with one request of MTE2; here every element has its own index. Separate
requests would read at least 32 bytes for each element of 2 or 4 bytes. But all elements come from one row, and a row fits
in UB: it is loaded as a whole, and V selects the elements there (`T.gather`)."""


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
