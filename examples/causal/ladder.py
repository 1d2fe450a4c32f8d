"""Attention, forward, each position to itself and those before it."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
Attention of a language model: position `i` sees the keys `0 .. i`, and so half of all scores count. The operations in the
table are those of this half, so that a kernel that computes the other half as well has at most 50 % of the peak.

What is shared with attention over all keys, and why, is in [its ladder](attention.md); this one begins with tiles of 128
queries and 128 keys and several iterations under way. It is about the other half: who computes it, who masks it, and what the
triangle that is left does to the balance between cores."""


REST = """\
V of the Vector cores bounds the last step, at work for {AIV V} of the time; MTE2 of the Cube cores, which loads keys, values
and weights from L2, is for {AIC MTE2}. That is as without a mask, in [attention](attention.md). Two things cost what is lost
to it: the scores on the diagonal, of which half are thrown away and which have the mask as well (a pair of tiles takes 17
turns for 16.5 turns of scores that count), and the launch, {launch share} of a call that is half as long."""


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
    rest=REST,
)
check = LADDER.check
