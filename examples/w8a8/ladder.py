"""A matrix product of int8 operands, quantised by rows and columns."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`C = (A @ B.T) * scale_a * scale_b`: activations and weights in int8, each row of either with its own scale, summed in
int32, and converted to float16. The Cube cores multiply int8 twice as fast as float16; everything else is faster only in
proportion to the smaller number of bytes."""

LIMITS = """\
The last step stays below 80 %: M is busy for {AIC M} of the time, and MTE2 of the Cube core for {AIC MTE2}. L0C holds
int32, so a tile of the result is no larger than in float16, and each loaded element takes part in as many products. M needs
half the time for these, and MTE2 loads half the bytes, but all cores load at the same time, which L2 slows for
{AIC MTE2 L2} of the time. The launch on Cube and Vector cores takes {launch share}."""


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((M, K), (N, K)))
    scale_a, scale_b = (rng.uniform(0.5e-3, 2e-3, shape).astype(np.float32) for shape in ((M, 1), (1, N)))
    return a, b, scale_a, scale_b, np.zeros((M, N), np.float16)


def expected(a: NDArray[Any], b: NDArray[Any], scale_a: NDArray[Any], scale_b: NDArray[Any], _c: NDArray[Any],
             **_: Any) -> NDArray[Any]:
    return a.astype(np.int32) @ b.astype(np.int32).T * scale_a * scale_b


def work(M: int, N: int, K: int) -> Work:
    return Work(read=K * (M + N) + 4 * (M + N), written=2 * M * N, flops={"i8": 2 * M * N * K})


LADDER = Ladder(
    title="Matrix product of int8 with scales",
    about=ABOUT,
    cases=[{"M": 256, "N": 512, "K": 512}, {"M": 130, "N": 300, "K": 544}],
    large=[{"M": 4096, "N": 4096, "K": 4096}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (2e-3, 1e-3)},
    goal=0.8,
    rate_of="cube",
    limits=LIMITS,
)
check = LADDER.check
