"""Rows of a table at given places."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`Y[i] = W[I[i]]`: rows of a table at places that are read while the kernel runs. A row is 8 KB, one run of memory, so that
this could be as fast as a copy. But where to read is known only when the number has been read, by the scalar unit, which
waits for it; and each row is a request of its own.

How long it takes depends on the places, here a random order in which some rows come twice, so that the kernel is run with
values for its time."""


def inputs(rows: int, columns: int, count: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    table = np.resize(np.arange(2039, dtype=dtype), (rows, columns))
    places = rng.permutation(max(rows, count) + 100)[:count] % rows
    return table, places.astype(np.int32), np.zeros((count, columns), dtype)


def expected(table: NDArray[Any], places: NDArray[Any], _y: NDArray[Any], **_: Any) -> NDArray[Any]:
    return table[places]


def work(rows: int, columns: int, count: int, dtype: str) -> Work:
    row = columns * np.dtype(dtype).itemsize
    _, places, _ = inputs(rows, 1, count, dtype)
    return Work(read=len(np.unique(places)) * row + 4 * count, written=count * row)


LADDER = Ladder(
    title="Embedding",
    about=ABOUT,
    cases=[
        {"rows": 100, "columns": 256, "count": 384, "dtype": "float16"},
        {"rows": 50, "columns": 100, "count": 77, "dtype": "float32"},
    ],
    large=[{"rows": 16000, "columns": 4096, "count": 16200, "dtype": "float16"}],
    inputs=inputs,
    expected=expected,
    work=work,
)
check = LADDER.check
