"""Rows added to rows of a tensor at given places."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`y[index[i]] += x[i]` for rows of `x`: the gradient of an embedding, or what a graph's nodes receive. Places are read
while the kernel runs, several rows may go to one place, and all cores add to one tensor. Three cases: a large tensor
and few places, no two of them equal (float32 and float16); many rows for few places, as they come; and the same,
sorted. (A row here has 4096 elements; its place is read by the scalar unit.)

What adds is L2, for a store that says so. The roof below has each row of `x` read once and each row of `y` that is
touched written once. (On GPUs the collection that these ladders follow gives no figures for it, and says that care pays
where the places are few and the tensor is large.) That L2 may have to fetch a row of `y` before it adds to it is in
neither the roof nor the modelled times: what that takes is not published."""

def inputs(rows: int, columns: int, count: int, places: int, order: str, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    y = np.resize(np.arange(13, dtype=dtype), (rows, columns))
    x = np.resize(np.arange(-3, 4, dtype=dtype), (count, columns))
    index = np.resize(rng.permutation(rows)[:places], count)
    rng.shuffle(index)
    return x, (np.sort(index) if order == "sorted" else index).astype(np.int32), y


def expected(x: NDArray[Any], index: NDArray[Any], y: NDArray[Any], **_: Any) -> NDArray[Any]:
    np.add.at(y, index, x)
    return y


def work(rows: int, columns: int, count: int, places: int, order: str, dtype: str) -> Work:
    row = columns * np.dtype(dtype).itemsize
    return Work(read=count * (row + 4), written=places * row)


LADDER = Ladder(
    title="Index add",
    about=ABOUT,
    cases=[
        {"rows": 300, "columns": 256, "count": 100, "places": 100, "order": "unsorted", "dtype": "float32"},
        {"rows": 40, "columns": 200, "count": 150, "places": 20, "order": "unsorted", "dtype": "float32"},
        {"rows": 40, "columns": 96, "count": 200, "places": 7, "order": "sorted", "dtype": "float16"},
    ],
    large=[
        {"rows": 8192, "columns": 4096, "count": 4080, "places": 4080, "order": "unsorted", "dtype": "float32"},
        {"rows": 8192, "columns": 4096, "count": 4080, "places": 4080, "order": "unsorted", "dtype": "float16"},
        {"rows": 512, "columns": 4096, "count": 4080, "places": 256, "order": "unsorted", "dtype": "float32"},
        {"rows": 512, "columns": 4096, "count": 4080, "places": 256, "order": "sorted", "dtype": "float32"},
    ],
    inputs=inputs,
    expected=expected,
    work=work,
)
check = LADDER.check
