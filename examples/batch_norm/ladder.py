"""Mean and variance of each channel: the statistics of BatchNorm."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
The mean and variance of each channel of a batch of images `x`, stored as batch x channels x pixels: `mean = sum(x) / n` and
`var = sum((x - mean) ** 2) / n`, in float32, over all pixels of all images. These statistics are the part of BatchNorm in
training that is not elementwise. The pixels of a channel are contiguous within one image, and the same channel of the next
image is far away in memory.

As written the formula needs two passes, since the variance needs the mean. The form `var = sum(x * x) / n - mean * mean`
needs one pass, but loses all accuracy if the mean is large and the variance small, because it subtracts two large, nearly
equal numbers. Chan's algorithm has neither disadvantage: it combines the means and the sums of squares of parts, each
around its own mean, exactly."""


def inputs(batch: int, channels: int, pixels: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, channels, pixels)) * 0.5 + 4 * rng.standard_normal((channels, 1))
    return x.astype(dtype), np.zeros((channels, 1), np.float32), np.zeros((channels, 1), np.float32)


def expected(x: NDArray[Any], *_out: NDArray[Any], **_: Any) -> tuple[NDArray[Any], ...]:
    x = x.astype(np.float64)
    return x.mean(axis=(0, 2))[:, None], x.var(axis=(0, 2))[:, None]


def work(batch: int, channels: int, pixels: int, dtype: str) -> Work:
    return Work(read=batch * channels * pixels * np.dtype(dtype).itemsize, written=8 * channels)


LADDER = Ladder(
    title="BatchNorm, statistics",
    about=ABOUT,
    cases=[
        {"batch": 4, "channels": 96, "pixels": 256, "dtype": "float32"},
        {"batch": 3, "channels": 50, "pixels": 196, "dtype": "float16"},
    ],
    large=[{"batch": 64, "channels": 384, "pixels": 56 * 56, "dtype": dtype} for dtype in ("float32", "float16")],
    inputs=inputs,
    expected=expected,
    work=work,
    shown=1,
    tolerance={"float32": (2e-5, 2e-5)},
    results=2,
)
check = LADDER.check
