"""Products of matrices that L2 does not hold."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`C = A @ B` again, of 12288 x 12288 x 12288 in float16. Three matrices of 288 MB are more than the 192 MB of *L2*, the memory
between the cores and HBM: what one core has loaded is there for the next one that wants it, as long as little else came
between. [The other ladder](matmul.md) ended where it did not matter which core takes which tile of C, since L2 held all.

A wave is the 24 tiles that the cores compute at the same time. What it loads is a band of A for each row of C that it has
tiles in, and a column of tiles of B for each column. The order of the tiles decides how many those are, and what of them is
still in L2 when the next wave comes. GPUs know the same by the names of swizzle, rasterisation and `GROUP_M`."""


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    return a, b, np.zeros((M, N), np.float16)


def expected(a: NDArray[Any], b: NDArray[Any], _c: NDArray[Any], **_: Any) -> NDArray[Any]:
    return a.astype(np.float32) @ b.astype(np.float32)


def work(M: int, N: int, K: int) -> Work:
    return Work(read=2 * K * (M + N), written=2 * M * N, flops={"f16": 2 * M * N * K})


LADDER = Ladder(
    title="Products larger than L2",
    about=ABOUT,
    cases=[
        {"M": 1024, "N": 768, "K": 256},
        {"M": 700, "N": 530, "K": 200},
    ],
    large=[{"M": 12288, "N": 12288, "K": 12288}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (2e-3, 4e-2)},
    goal=0.8,
    rate_of="cube",
)
check = LADDER.check
