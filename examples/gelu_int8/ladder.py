"""A linear layer and GeLU, with int8 results for the next layer."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`C = round(gelu(A @ B + bias) / scale)` from float16 to int8, with a scale for each column: the first half of a BERT
feed-forward block, whose second half multiplies int8. GeLU is the tanh approximation, `z / (1 + exp(-2 * sqrt(2 / pi) * (z
+ 0.044715 * z ** 3)))`; the kernel's input is the reciprocal of the scales. Values outside the range of int8 saturate.

The sizes are those of BERT large and base: 4096 tokens with 1024 or 768 features, and four times as many intermediate
features. K is short, so a tile takes little time, and the work around the product counts."""

LIMITS = """\
The last step is bound by MTE2, which is busy for {0: AIC MTE2} of the time at the first size and {1: AIC MTE2} at the
second; M has nearly as much work. B is loaded in rows of 256 bytes, whose start-up costs are {0: AIC MTE2 short rows} of
the time. A tile of twice the width has full lines but fills L0C, so that M waits until FIX has stored it. A version in
which B stays in L1 in place of A was tried and is slower, because M and MTE1 wait at the start of each new B. The launch
takes {0: launch share} and {1: launch share}."""


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
    limits=LIMITS,
)
check = LADDER.check
