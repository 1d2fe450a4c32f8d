"""Upsampling of images by repeating pixels."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Counterpart, Ladder, Work

ABOUT = """\
Each pixel of an image becomes `scale` x `scale` equal pixels. All images and channels are stored as one matrix, `rows` x
`columns`; each of its rows gives `scale` rows of the result, each `scale` times as long. So `scale * scale` elements are
written for each that is read, and MTE3, which stores, is the bound of an efficient kernel."""


def inputs(rows: int, columns: int, scale: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((rows, columns)).astype(dtype), np.zeros((rows, scale, scale * columns), dtype)


def expected(x: NDArray[Any], _y: NDArray[Any], scale: int, **_: Any) -> NDArray[Any]:
    return np.repeat(np.repeat(x, scale, 1)[:, None, :], scale, 1)


def work(rows: int, columns: int, scale: int, dtype: str) -> Work:
    nbytes = rows * columns * np.dtype(dtype).itemsize
    return Work(read=nbytes, written=scale * scale * nbytes)


LADDER = Ladder(
    title="Upsample nearest",
    about=ABOUT,
    cases=[
        {"rows": 384, "columns": 64, "scale": 2, "dtype": "float32"},
        {"rows": 100, "columns": 40, "scale": 3, "dtype": "float16"},
    ],
    large=[
        {"rows": 131072, "columns": 256, "scale": scale, "dtype": dtype} for scale in (2, 3) for dtype in ("float32", "float16")
    ],
    inputs=inputs,
    expected=expected,
    work=work,
    counterparts=[
        Counterpart("plain", "float32", "111.42 us", "28.30 %"),
        Counterpart("optimised", "float32", "61.44 us", "52.18 %"),
        Counterpart("plain", "float16", "100.38 us", "16.99 %"),
        Counterpart("optimised", "float16", "35.36 us", "43.26 %"),
    ],
)
check = LADDER.check
