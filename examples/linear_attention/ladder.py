"""Causal linear attention."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`o[t] = sum(v[s] * (q[t] . k[s]) for s <= t)`: attention without a softmax, in float16 with float32 between. Without it
the order of the products is free: `(q k') v = q (k' v)`, and `state = k' v`, of dim by dim numbers, is all that has to
be kept of the tokens so far. Token by token that is the least work, and all of it for Vector cores. In *chunks* it is
more work and for the Cube cores: among the tokens of a chunk as in attention, with a mask, and with all tokens before
by the state.

A Cube core has a multiplication of 64 tokens done in no time; the story of this ladder is what passes between the
cores, and what waits for it."""

REST = """\
The last step takes twice as long as the bytes do. The longest at work is MTE2 of the Cube cores, for {AIC MTE2} of the time,
then MTE1, for {AIC MTE1}. In each chunk the scores go through GM to the Vector cores, for nothing but the mask, and come
back, while the Cube core has only two products to do that want nothing of them. Overlapping a chunk with the one before would
hide that. It is not done: `explain()` says that queries and keys of three chunks would take more of L1 than it gives to such
rings. With that bound lifted it was tried, and is slower, since in L0C, with a state of 64 KB, there is no room for the
products of two chunks. The launch is {launch share}."""


def inputs(heads: int, length: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    q, k, v = ((rng.standard_normal((heads, length, dim)) * dim**-0.5).astype(np.float16) for _ in range(3))
    return q, k, v, np.zeros_like(q)


def expected(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], _o: NDArray[Any], **_: Any) -> NDArray[Any]:
    q, k, v = (array.astype(np.float32) for array in (q, k, v))
    return np.tril(q @ k.transpose(0, 2, 1)) @ v


def work(heads: int, length: int, dim: int) -> Work:
    rows = 2 * heads * length * dim
    return Work(read=3 * rows, written=rows, flops={"f16": 2 * rows * dim})


LADDER = Ladder(
    title="Linear attention",
    about=ABOUT,
    cases=[
        {"heads": 2, "length": 256, "dim": 128},
        {"heads": 1, "length": 200, "dim": 64},
    ],
    large=[{"heads": 48, "length": 4096, "dim": 128}],
    inputs=inputs,
    expected=expected,
    work=work,
    rest=REST,
    tolerance={"float16": (4e-3, 1e-3)},
)
check = LADDER.check
