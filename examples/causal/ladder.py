"""Causal attention, forward: each position attends to itself and to earlier positions."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
The attention of a language model: position `i` attends to the keys `0 .. i`, so only half of all scores are used. The
operations in the table are those of this half, so a kernel that computes all scores reaches at most 50 % of the peak.

[The ladder of attention](attention.md) explains what both kernels share; this ladder starts with tiles of 128 queries and
128 keys and several iterations in flight. Its steps skip the unused half of the scores, apply the mask only where it is
needed, and balance the resulting triangle of work between the cores."""


LIMITS = """\
The last step is bound by V of the Vector cores, which is busy for {AIV V} of the time; MTE2 of the Cube cores, which loads
keys, values and weights from L2, is busy for {AIC MTE2}. Both are as in [attention](attention.md) without a mask. The share
is lower than there for two reasons: half of the scores on the diagonal are discarded, and these tiles are also masked (a
pair of tiles takes 17 iterations, with 16.5 iterations of useful scores); and the launch takes {launch share} of a call
that is half as long."""


def inputs(heads: int, length: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((heads, length, dim)).astype(np.float16) for _ in range(3))
    return q, k, v, np.zeros_like(q)


def expected(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], _o: NDArray[Any], **_: Any) -> NDArray[Any]:
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    s = q @ k.transpose(0, 2, 1) * q.shape[2] ** -0.5
    s = np.where(np.tril(np.ones(s.shape[1:], bool)), s, -np.inf)
    s = np.exp(s - s.max(axis=2, keepdims=True))
    result: NDArray[Any] = s / s.sum(axis=2, keepdims=True) @ v
    return result


def work(heads: int, length: int, dim: int) -> Work:
    return Work(read=6 * heads * length * dim, written=2 * heads * length * dim,
                flops={"f16": 2 * heads * length * (length + 1) * dim})


LADDER = Ladder(
    title="Causal attention",
    about=ABOUT,
    cases=[
        {"heads": 2, "length": 1024, "dim": 128},
        {"heads": 1, "length": 300, "dim": 64},
    ],
    large=[{"heads": 3, "length": 8192, "dim": 128}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (1e-2, 5e-3)},
    goal=0.6,
    rate_of="cube",
    limits=LIMITS,
)
check = LADDER.check
