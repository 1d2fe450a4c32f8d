"""The routing of a mixture of experts: selects the experts of each token, and copies the token's row to each of them."""

import sys
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (importing it makes NumPy accept the type name "bfloat16")
import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
A router has computed a score of each token for each of 64 experts. The 8 largest values of their softmax, divided by their
sum, are the weights of the token's experts. The token's row of X is then copied to each of its eight experts; all rows of
an expert are contiguous, in the order of the tokens. The result is the input of a [grouped product](ragged_gemm.md): the
counts of the experts are the sizes of its groups, and the positions of a token's rows say where its results are. All scores
of a token differ, so the eight largest are unique.

Most of the traffic is rows that are written, eight for each row that is read. The position of a row depends on all earlier
tokens, so it is a prefix sum of counts over all cores.

The time depends on the scores, so kernels are timed with values; here no expert is preferred."""

LIMITS = """\
MTE3 bounds the last step, busy for {AIV MTE3} of the time: for {AIV MTE3 HBM} it is limited by HBM, and for
{AIV MTE3 latency} by the start-up costs of stores. The rows of a token go to scattered positions, each row of 8 KB is a
separate store, and a core has one pipe that stores. Both launches take {launch share} of {time}: the positions of all rows
need the counts of all cores. A sorted list of each expert's tokens would let a core store several neighbouring rows at
once, but needs one more launch."""


def inputs(tokens: int, experts: int, count: int, K: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    logits = rng.permuted(np.tile(np.linspace(-2, 2, experts, dtype=np.float32), (tokens, 1)), axis=1)
    x = rng.integers(-128, 128, (tokens, K), np.int8).astype(dtype)
    return (logits, x, np.zeros((tokens, count), np.float32), np.zeros((tokens, count), np.int32),
            np.zeros((experts,), np.int32), np.zeros((tokens * count, K), dtype))


def expected(logits: NDArray[Any], x: NDArray[Any], *_: NDArray[Any], count: int, **__: Any) -> tuple[NDArray[Any], ...]:
    tokens, experts = logits.shape
    chosen = np.argsort(-logits, axis=1)[:, :count]
    gates = np.exp(np.take_along_axis(logits, chosen, axis=1))
    order = np.argsort(chosen.reshape(-1), kind="stable")  # all slots by expert, and in the order of the tokens
    places = np.empty(tokens * count, np.int32)
    places[order] = np.arange(tokens * count)
    counts = np.bincount(chosen.reshape(-1), minlength=experts).astype(np.int32)
    return gates / gates.sum(axis=1, keepdims=True), places.reshape(tokens, count), counts, x[order // count]


def work(tokens: int, experts: int, count: int, K: int, dtype: str) -> Work:
    row = K * np.dtype(dtype).itemsize
    return Work(read=tokens * (row + 4 * experts), written=tokens * count * (row + 8) + 4 * experts)


LADDER = Ladder(
    title="Routing of a mixture of experts",
    about=ABOUT,
    cases=[
        {"tokens": 384, "experts": 64, "count": 8, "K": 256, "dtype": "float16"},
        {"tokens": 100, "experts": 60, "count": 4, "K": 136, "dtype": "bfloat16"},
        {"tokens": 30, "experts": 64, "count": 8, "K": 72, "dtype": "float32"},
    ],
    large=[{"tokens": 4096, "experts": 64, "count": 8, "K": 4096, "dtype": "float16"}],
    inputs=inputs,
    expected=expected,
    work=work,
    results=4,
    limits=LIMITS,
)
check = LADDER.check
