"""A matrix product with a bias and an activation."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`C = relu(A @ B + bias)` in float16, summed in float32: a linear layer of a network. The operations after the product, its
*epilogue*, run on the Vector cores, which have no path from L0C: FIX stores a tile to a workspace in GM, where it stays in
L2, MTE2 of a Vector core loads it, and the result is stored again.

This ladder measures how much time the epilogue adds to the product."""


LIMITS = """\
M is busy for {AIC M} of the time, MTE2 for {AIC MTE2}: a core loads 84.5 bytes a cycle, and the sums in L0C limit a tile to 128
x 256. The rows of A and B that such a tile multiplies take MTE2 longer than the products take M, so M waits. The same product
without a bias ([matmul](matmul.md)) has the same bound."""


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    return a, b, rng.standard_normal((1, N)).astype(np.float32), np.zeros((M, N), np.float16)


def expected(a: NDArray[Any], b: NDArray[Any], bias: NDArray[Any], _c: NDArray[Any], **_: Any) -> NDArray[Any]:
    result: NDArray[Any] = np.maximum(a.astype(np.float32) @ b.astype(np.float32) + bias, 0)
    return result


def work(M: int, N: int, K: int) -> Work:
    return Work(read=2 * K * (M + N) + 4 * N, written=2 * M * N, flops={"f16": 2 * M * N * K})


LADDER = Ladder(
    title="Matrix product with bias and activation",
    about=ABOUT,
    cases=[{"M": 256, "N": 512, "K": 512}, {"M": 250, "N": 300, "K": 200}],
    large=[{"M": 4096, "N": 4096, "K": 4096}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (2e-3, 4e-2)},
    goal=0.8,
    limits=LIMITS,
    rate_of="cube",
)
check = LADDER.check
