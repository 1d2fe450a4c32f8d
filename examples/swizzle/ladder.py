"""Matrix products whose operands do not fit in L2."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`C = A @ B` again, of 12288 x 12288 x 12288 in float16. Three matrices of 288 MB are larger than the 192 MB of *L2*, the
cache between the cores and HBM: data that one core has loaded is still there for the next core that needs it, if little
other data was accessed in between. In [the other ladder](matmul.md) the assignment of tiles of C to cores did not matter,
because all matrices fit in L2.

A wave is the 24 tiles that the cores compute at the same time. It loads a band of A for each row of tiles that it covers,
and a column of tiles of B for each column. The order of the tiles determines the number of these bands and columns, and how
much of them is still in L2 when the next wave needs it. On GPUs this is known as swizzling, rasterisation order or
`GROUP_M`."""


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
