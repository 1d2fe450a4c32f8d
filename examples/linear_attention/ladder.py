"""Causal linear attention."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`o[t] = sum(v[s] * (q[t] . k[s]) for s <= t)`: attention without a softmax, in float16 with float32 intermediates. Without
the softmax the order of the products is free: `(q k') v = q (k' v)`, so the only value kept for earlier tokens is `state =
k' v`, with dim x dim elements. Token by token this needs the fewest operations, all of them on Vector cores. In *chunks* it
needs more operations, most of them on the Cube cores: within a chunk as in attention, with a mask, and the earlier tokens
through the state.

A Cube core multiplies a chunk of 64 tokens in little time; most of the time is transfers between the cores and waits for
them."""

LIMITS = """\
The last step takes twice as long as its traffic needs. The busiest pipe is MTE2 of the Cube cores, with {AIC MTE2} of the
time, then MTE1, with {AIC MTE1}. In each chunk the scores go through GM to the Vector cores, only for the mask, and return,
while the Cube core has only two products that do not depend on them. Overlapping a chunk with the previous one would hide
this transfer. The compiler does not do so: `explain()` says that queries and keys of three chunks would take more of L1
than it allows for such buffers. With this limit lifted it was tried, and is slower, because L0C, with a state of 64 KB, has
no room for the products of two chunks. The launch takes {launch share}."""


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
    limits=LIMITS,
    tolerance={"float16": (4e-3, 1e-3)},
)
check = LADDER.check
