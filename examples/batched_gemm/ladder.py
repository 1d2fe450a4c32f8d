"""A batch of matrix products of the same size."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`C[i] = A[i] @ B[i]` in float16, summed in float32, for a batch of small matrices: 16 products of 1024 x 1024 x 1024, and 96
products of 1024 x 1024 with a K of 128, the size of the scores of 96 attention heads. Libraries have a separate function
for this case: one launch for each product would leave cores idle and pay the launch cost each time.

Each operand is used for one product only, so all of them are read from HBM once, and all results are written there once. In
the second size, where the results are eight times as large as the operands, this traffic takes longer than the Cube cores
need."""

LIMITS = """\
The first size is bound by M, which is busy for {0: AIC M} of the time. One tile occupies all of L0C, so M waits until FIX
has stored it. M also waits for the first loads after the launch and at each new matrix, none of which is in L2 yet; and 512
tiles are not a multiple of 24. Two tiles of half the width in L0C were tried: MTE1 and loads of half a line lose what the
overlap gains. The second size is bound by FIX, which is busy for {1: AIC FIX} of the time, for {1: AIC FIX HBM} slowed by
HBM, because the results are larger than L2."""


def inputs(batch: int, M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((batch, M, K), (batch, K, N)))
    return a, b, np.zeros((batch, M, N), np.float16)


def expected(a: NDArray[Any], b: NDArray[Any], _c: NDArray[Any], **_: Any) -> NDArray[Any]:
    result: NDArray[Any] = a.astype(np.float32) @ b.astype(np.float32)
    return result


def work(batch: int, M: int, N: int, K: int) -> Work:
    return Work(read=2 * batch * K * (M + N), written=2 * batch * M * N, flops={"f16": 2 * batch * M * N * K})


LADDER = Ladder(
    title="Batched matrix product",
    about=ABOUT,
    cases=[{"batch": 3, "M": 256, "N": 256, "K": 256}, {"batch": 2, "M": 150, "N": 300, "K": 200}],
    large=[{"batch": 16, "M": 1024, "N": 1024, "K": 1024}, {"batch": 96, "M": 1024, "N": 1024, "K": 128}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (2e-3, 4e-2)},
    goal=0.8,
    rate_of="cube",
    limits=LIMITS,
)
check = LADDER.check
