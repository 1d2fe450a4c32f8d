"""Softmax of rows that do not fit in UB."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
Softmax along rows of 65536 elements: 256 KB in float32, while UB has 192 KB. A row must be read more than once, because its
largest element and its sum must be known before anything is written; but data that is still in L2 is read again at 5.2 TB/s
in place of 1.456. 48 cores with a row each access 12 MB, of the 192 MB of L2. So the roofline is the same as if rows were
read once."""


LIMITS = """\
In float16 V keeps the last step below 85 %: it is busy for {1: AIV V} of the time, because it computes two exponentials of
each element, one for the sum and one for the result, converts each element to float32 for both, and reduces each tile
twice. Keeping a row in UB, 128 KB with its exponentials in float16, does not help: the remaining room halves the length of
the tiles, and the loads of the next row wait for the stores of the current one; this was tried, and is slower."""


def inputs(rows: int, columns: int, dtype: str) -> tuple[NDArray[Any], ...]:
    return 4 * np.random.default_rng(0).standard_normal((rows, columns)).astype(dtype), np.zeros((rows, columns), dtype)


def expected(x: NDArray[Any], _y: NDArray[Any], **_: Any) -> NDArray[Any]:
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def work(rows: int, columns: int, dtype: str) -> Work:
    nbytes = rows * columns * np.dtype(dtype).itemsize
    return Work(read=nbytes, written=nbytes)


LADDER = Ladder(
    title="Softmax of long rows",
    about=ABOUT,
    cases=[
        {"rows": 3, "columns": 16384, "dtype": "float32"},
        {"rows": 50, "columns": 9000, "dtype": "float16"},
    ],
    large=[{"rows": 960, "columns": 65536, "dtype": dtype} for dtype in ("float32", "float16")],
    inputs=inputs,
    expected=expected,
    work=work,
    limits=LIMITS,
    shown=1,
    tolerance={"float32": (2e-5, 1e-7)},
)
check = LADDER.check
