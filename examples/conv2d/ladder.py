"""A convolution as a matrix product."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`y[n, h, w, :] = sum(x[n, h + i, w + j, :] @ weight[i, j] for i, j in the filter)` with a 3 x 3 filter, in float16, summed
in float32. Images are stored channels-last (all channels of a pixel are contiguous) and are already padded with zeros, so
that no tap of the filter reads outside.

In this form a convolution is nine matrix products, pixels x channels times channels x filters, accumulated in one tile of
L0C. The left matrix of a tap is the image, shifted by a few pixels. *Im2col* first writes this matrix to memory; an
*implicit* GEMM reads its rows from the image and never stores it."""

SIZE = 3
"""of the filter, both ways"""


LIMITS = """\
M is busy for {AIC M} of the time, MTE2 for {AIC MTE2}: a core loads 84.5 bytes a cycle, and each tap loads its pixels and
weights again. Three taps need the same lines of the image. Keeping them in L1 for three products would save a third of these
loads, but L1 has no room for that and for both halves of double-buffered weights of 256 filters."""


def inputs(batch: int, height: int, width: int, channels: int, filters: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, height + SIZE - 1, width + SIZE - 1, channels)).astype(np.float16)
    w = (rng.standard_normal((SIZE, SIZE, channels, filters)) / SIZE).astype(np.float16)
    return x, w, np.zeros((batch, height, width, filters), np.float16)


def expected(x: NDArray[Any], w: NDArray[Any], y: NDArray[Any], height: int, width: int, **_: Any) -> NDArray[Any]:
    total = np.zeros(y.shape, np.float32)
    for i in range(SIZE):
        for j in range(SIZE):
            total += x[:, i : i + height, j : j + width].astype(np.float32) @ w[i, j].astype(np.float32)
    return total


def work(batch: int, height: int, width: int, channels: int, filters: int) -> Work:
    pixels, taps = batch * height * width, SIZE * SIZE * channels
    return Work(read=2 * (batch * (height + SIZE - 1) * (width + SIZE - 1) * channels + taps * filters),
                written=2 * pixels * filters, flops={"f16": 2 * pixels * taps * filters})


LADDER = Ladder(
    title="Convolution",
    about=ABOUT,
    cases=[
        {"batch": 1, "height": 4, "width": 64, "channels": 64, "filters": 64},
        {"batch": 2, "height": 3, "width": 20, "channels": 48, "filters": 40},
    ],
    large=[{"batch": 24, "height": 64, "width": 64, "channels": 256, "filters": 256}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (4e-3, 4e-2)},
    goal=0.8,
    limits=LIMITS,
    rate_of="cube",
)
check = LADDER.check
