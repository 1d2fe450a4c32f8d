"""Attention, forward: each query attends to all keys."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`O = softmax(Q @ K.T / sqrt(dim)) @ V` for each head, in float16 with float32 intermediates. The scores of a tile of queries
and a tile of keys are consumed where they are computed: the softmax is computed online, as in the softmax of long rows, so
that the matrix of all scores is never stored.

The kernel is *mixed*: a block uses one Cube core for both products and two Vector cores for the softmax between them; each
Vector core processes half of the rows. The only path between the two kinds of cores leads through GM: FIX stores the
scores, MTE2 of the Vector cores loads them, MTE3 stores the weights, and MTE2 of the Cube core loads these; the second
product takes the same path. (These tensors stay in L2.) The first kernels leave to the compiler which core executes which
operation, which values pass between the cores, and all synchronisation. One kernel states all of this explicitly, with the
compiler's switches off. The last kernels declare only the workspaces between the cores, with all switches on."""


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
