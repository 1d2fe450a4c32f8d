"""A linear layer, GeLU, and int8 for the next layer."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`C = round(gelu(A @ B + bias) / scale)` from float16 to int8, with a scale for each column: the first half of a feed-forward
block of BERT, whose second half multiplies int8. GeLU is the approximation by a hyperbolic tangent, which is `z / (1 +
exp(-2 * sqrt(2 / pi) * (z + 0.044715 * z ** 3)))`; the kernel is given one over the scales. What does not fit int8 becomes the
nearest that does.

The sizes are those of BERT large and base: 4096 tokens, 1024 or 768 numbers each, four times as many in between. K is short,
so that a tile is soon done: what surrounds the product counts."""

REST = """\
The last step is bound by MTE2, at work for {0: AIC MTE2} of the time at the first size and {1: AIC MTE2} at the second, and M
has nearly as much to do. B comes in rows of 256 bytes, each with a beginning of its own, which are {0: AIC MTE2 short rows}
of the time: a tile twice as wide has whole lines and all of L0C, and M waits until FIX has drained it. B that stays in place
of A was tried, too, and is slower, as M and MTE1 wait where another B begins. The launch takes {0: launch share} and
{1: launch share}."""


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    a, b = ((rng.standard_normal(shape) * K**-0.25).astype(np.float16) for shape in ((M, K), (K, N)))
    bias = rng.standard_normal((1, N)).astype(np.float32)
    return a, b, bias, rng.uniform(20, 60, (1, N)).astype(np.float32), np.zeros((M, N), np.int8)


def expected(a: NDArray[Any], b: NDArray[Any], bias: NDArray[Any], scale: NDArray[Any], _c: NDArray[Any],
             **_: Any) -> NDArray[Any]:
    z = a.astype(np.float64) @ b.astype(np.float64) + bias
    gelu = z / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
    result: NDArray[Any] = np.clip(np.rint(gelu * scale), -128, 127).astype(np.int8)
    return result


def work(M: int, N: int, K: int) -> Work:
    return Work(read=2 * K * (M + N) + 8 * N, written=M * N, flops={"f16": 2 * M * N * K})


LADDER = Ladder(
    title="Linear layer with GeLU and int8",
    about=ABOUT,
    cases=[{"M": 256, "N": 256, "K": 256}, {"M": 250, "N": 300, "K": 200}],
    large=[{"M": 4096, "N": 4096, "K": 1024}, {"M": 4096, "N": 3072, "K": 768}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"int8": (0.0, 1.0)},
    goal=0.8,
    rate_of="cube",
    rest=REST,
)
check = LADDER.check
