"""Matrix products with a long K and a small result."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`C += A @ B` where C is small and K is long, as for the gradient of a weight: 256 x 256 numbers, each of which is a sum of
65536 products. All of A and B is loaded for few operations, so HBM is the bound. But a kernel that assigns each tile of C
to a core, as for square matrices, has four tiles for 24 cores."""


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((M, K), (K, N)))
    return a, b, np.ones((M, N), np.float32)


def expected(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], **_: Any) -> NDArray[Any]:
    return c + a.astype(np.float32) @ b.astype(np.float32)


def work(M: int, N: int, K: int) -> Work:
    return Work(read=2 * K * (M + N), written=4 * M * N, flops={"f16": 2 * M * N * K})


LADDER = Ladder(
    title="Matrix product with a long K",
    about=ABOUT,
    cases=[
        {"M": 256, "N": 256, "K": 4096},
        {"M": 100, "N": 130, "K": 1000},
        {"M": 33, "N": 65, "K": 129},
    ],
    large=[{"M": 256, "N": 256, "K": 2**18}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float32": (0.0, 0.0)},
)
check = LADDER.check
