"""Two linear layers and SwiGLU: the first half of a gated feed-forward block."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`C = silu(A @ G.T) * (A @ U.T)` with `silu(z) = z / (1 + exp(-z))`, in float16, summed in float32: the gated feed-forward
block of LLaMA and similar models. Both weights are stored as linear layers store them, with a row for each column of the
result.

Two products share an operand, and their results are used only together. A fused kernel stores neither product: it keeps a
tile of each in L0C and writes one matrix in place of three. The sizes are 4096 tokens with 4096 features, and 4096 or 11008
(LLaMA 7B) intermediate features."""


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    arrays = [(rng.standard_normal(shape) * K**-0.25).astype(np.float16) for shape in ((M, K), (N, K), (N, K))]
    return *arrays, np.zeros((M, N), np.float16)


def expected(a: NDArray[Any], gate: NDArray[Any], up: NDArray[Any], _c: NDArray[Any], **_: Any) -> NDArray[Any]:
    z, u = (a.astype(np.float64) @ weights.astype(np.float64).T for weights in (gate, up))
    result: NDArray[Any] = z / (1 + np.exp(-z)) * u
    return result


def work(M: int, N: int, K: int) -> Work:
    return Work(read=2 * K * (M + 2 * N), written=2 * M * N, flops={"f16": 4 * M * N * K})


LADDER = Ladder(
    title="Gated linear layer (SwiGLU)",
    about=ABOUT,
    cases=[{"M": 256, "N": 256, "K": 256}, {"M": 250, "N": 300, "K": 200}],
    large=[{"M": 4096, "N": 4096, "K": 4096}, {"M": 4096, "N": 11008, "K": 4096}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (4e-3, 4e-3)},
    goal=0.8,
    rate_of="cube",
)
check = LADDER.check
