"""Softmax of rows that do not fit in UB."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
Softmax along rows of 65536 elements: 256 KB in float32, where UB has 192. A row must be read more than once, since nothing
can be written before its largest element and its sum are known; but what is read a second time while L2 still holds it
comes at 5.2 TB/s and not at 1.456. 48 cores at a row each touch 12 MB, of 192. So the roof is the same as if rows were read
once."""


REST = """\
What keeps the last step from 85 % in float16 is V, at work for {1: AIV V} of the time, which takes two exponentials of each
element, one for the sum and one for the result, makes it wider for each of them, and folds each tile twice. A row that stays
in UB, 128 KB with its exponentials in float16, is no way out: tiles of what is left have half the length, and the loads of
the next row wait for the stores of this one; that was tried, and is slower."""


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
    rest=REST,
    shown=1,
    tolerance={"float32": (2e-5, 1e-7)},
)
check = LADDER.check
