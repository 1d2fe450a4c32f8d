"""Rows added to indexed rows of a tensor."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`y[index[i]] += x[i]` for rows of `x`: the gradient of an embedding, or the message aggregation of a graph network. Indices
are read at run time, several rows may have the same index, and all cores add to one tensor. There are three cases: a large
tensor and few indices, all different (float32 and float16); many rows for few indices, unsorted; and the same, sorted. (A
row has 4096 elements; the scalar unit reads its index.)

L2 executes the additions of accumulating stores. The roofline assumes that each row of `x` is read once and each accessed
row of `y` is written once. (The GPU collection that these ladders follow gives no figures for this problem, and says that
care pays if there are few indices and the tensor is large.) L2 may have to fetch a row of `y` before it adds to it; neither
the roofline nor the modelled times include this cost, because it is not published."""

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
