"""Gradients of image upsampling."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Counterpart, Ladder, Work

ABOUT = """\
The gradient of a pixel is the sum of the gradients of the `scale` x `scale` pixels that it became: a reduction over small
squares. Here `scale * scale` elements are read for each that is written, and MTE2 is the bound of an efficient kernel."""


def inputs(rows: int, columns: int, scale: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((rows, scale, scale * columns)).astype(dtype), np.zeros((rows, columns), dtype)


def expected(x: NDArray[Any], _y: NDArray[Any], scale: int, **_: Any) -> NDArray[Any]:
    return x.astype(np.float64).reshape(x.shape[0], scale, -1, scale).sum((1, 3))


def work(rows: int, columns: int, scale: int, dtype: str) -> Work:
    nbytes = rows * columns * np.dtype(dtype).itemsize
    return Work(read=scale * scale * nbytes, written=nbytes)


LADDER = Ladder(
    title="Upsample nearest, backward",
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
        Counterpart("plain", "float32", "65.12 us", "60.16 %"),
        Counterpart("optimised", "float32", "50.56 us", "77.66 %"),
        Counterpart("plain", "float16", "57.38 us", "31.56 %"),
        Counterpart("optimised", "float16", "40.26 us", "44.82 %"),
    ],
    tolerance={"float16": (1e-2, 2e-2)},
    shown=3,
)
check = LADDER.check
