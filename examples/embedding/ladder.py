"""Rows of a table, selected by an index."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`Y[i] = W[I[i]]`: rows of a table whose indices are read at run time. A row is 8 KB and contiguous, so this could be as fast
as a copy. But the address of a load is known only after the scalar unit has read the index, for which it waits; and each
row is a separate request.

The time depends on the indices, so the kernel is timed with values; here they are in random order, and some rows occur
twice."""


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
