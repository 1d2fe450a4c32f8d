"""Many products of matrices of one size."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`C[i] = A[i] @ B[i]` in float16, summed in float32, for a batch of matrices none of which is large: 16 of 1024 x 1024 x 1024
and 96 of 1024 x 1024 with a K of 128, as the scores of 96 heads are. Libraries have a function of its own for it: a launch for
each would leave cores without work and begin anew each time.

Each matrix is used for one product only, so that all of them come from HBM once and go there once: of the second size, whose
results are eight times as large as its operands, that takes longer than the Cube cores."""

REST = """\
The first size is bound by M, at work for {0: AIC M} of the time: it has all of L0C for one tile, and waits until FIX has
drained it, and for its first pieces after the launch and at each new matrix, of which L2 has nothing yet; 512 tiles are no
multiple of 24. Two tiles of half the width in L0C were tried: MTE1 and loads of half a line take what is won. The second is
bound by FIX, at work for {1: AIC FIX} of the time, for {1: AIC FIX HBM} slowed by HBM: what it stores is more than L2
holds."""


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
    rest=REST,
)
check = LADDER.check
