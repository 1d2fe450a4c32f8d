"""What comes before the products of a mixture of experts: who goes where, and the rows brought there."""

import sys
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (importing it makes NumPy accept the type name "bfloat16")
import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
Routing of a mixture of experts: a router has given each token a number for each of 64 experts. Their softmax, of it the 8
largest, and these divided by their sum are the shares of the token's experts; then the token's row of X is brought to each of
the eight, where all rows of an expert lie side by side, in the order of the tokens. That is what a
[grouped product](ragged_gemm.md) multiplies; the counts of the experts are its groups, and the places of a token's rows are
where its results are to be found. All numbers of a token differ, so that it is certain which eight are the largest.

Most of the bytes are rows that are written, eight for each that is read. Where a row has to go depends on all tokens before
it: a sum over what all cores count.

How long it takes depends on the numbers, so that kernels are run with values for their times; here no expert is preferred."""

REST = """\
MTE3 bounds the last step, at work for {AIV MTE3} of the time: for {AIV MTE3 HBM} HBM takes no more, and {AIV MTE3 latency}
are the beginnings of stores. Rows that a token sends lie anywhere, and each of 8 KB is a store of its own; one core has one
pipe that stores. Both launches take {launch share} of {time}: the places of all rows need the counts of all cores. A list of
each expert's tokens, sorted, would let a core store several neighbouring rows at once, and would be one more launch."""


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
    rest=REST,
)
check = LADDER.check
