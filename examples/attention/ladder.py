"""Attention, forward, all keys for all queries."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`O = softmax(Q @ K.T / sqrt(dim)) @ V` for each head, in float16 with float32 between. The scores of a tile of queries and a
tile of keys are used where they are made: the softmax is kept online, as in the softmax of long rows, and no matrix of all
scores exists.

A *mixed* kernel: a block takes a Cube core for both products and two Vector cores for what is between them, each of which
takes half of the rows. Between the two kinds of cores there is no way but through GM: FIX stores the scores there, MTE2 of
the Vector cores loads them, MTE3 stores the weights, MTE2 of the Cube core loads those, and the same again for the second
product. (What passes so stays in L2.) The first kernels do not say which core does what, what passes between them, or when
one waits for the other; one says all of that, with all of the compiler's switches off; the last ones say what passes, with
all of them on."""


def inputs(heads: int, queries: int, keys: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((heads, length, dim)).astype(np.float16) for length in (queries, keys, keys))
    return q, k, v, np.zeros_like(q)


def expected(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], _o: NDArray[Any], **_: Any) -> NDArray[Any]:
    q, k, v = (array.astype(np.float32) for array in (q, k, v))
    s = q @ k.transpose(0, 2, 1) * q.shape[2] ** -0.5
    s = np.exp(s - s.max(axis=2, keepdims=True))
    return s / s.sum(axis=2, keepdims=True) @ v


def work(heads: int, queries: int, keys: int, dim: int) -> Work:
    rows = 2 * heads * dim
    return Work(read=rows * (queries + 2 * keys), written=rows * queries, flops={"f16": 2 * rows * queries * keys})


LADDER = Ladder(
    title="Attention",
    about=ABOUT,
    cases=[
        {"heads": 1, "queries": 256, "keys": 512, "dim": 128},
        {"heads": 2, "queries": 100, "keys": 256, "dim": 64},
    ],
    large=[{"heads": 3, "queries": 8192, "keys": 8192, "dim": 128}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (1e-2, 5e-3)},
    goal=0.6,
    rate_of="cube",
)
check = LADDER.check
