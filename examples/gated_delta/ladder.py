"""The gated delta rule."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
Linear attention whose state forgets and corrects itself: `state = exp(g[t]) * state`, then `delta = b[t] * (v[t] - k[t]
state)`, `state = state + k[t]' delta`, `o[t] = q[t] state`. What is added for a token depends on what the state says of
its key, so that a chunk of tokens cannot simply be multiplied: each token's `delta` depends on those of all tokens
before.

Within a chunk that is a system of linear equations, `(I - n) delta = b v - (b k) state`, where `n` has the products of
keys, with their decay, below its diagonal and nothing elsewhere. Such an `n` vanishes when it is multiplied by itself
often enough, and so the inverse of `I - n` is a product of few factors: `(I + n) (I + n^2) (I + n^4) ...`, six for 64
tokens. That turns a recurrence into matrix products, which is what the Cube cores are for; q, k and v are float16, the
rest is float32 in between."""

REST = """\
The chain of one chunk is what bounds it: six rounds, in each of which two products of 64 tokens go from L0C by FIX to
L1 in float16, and by MTE1 to L0A and L0B again, and the next chunk begins with the state that comes out. No pipe is at
work for half of the time, MTE1 the longest, for {AIC MTE1}. With `num_stages=2` the loads of the next chunk come earlier and
nothing else does, and UB, full with what V makes of queries, keys and values, has no room for it: that was tried, and is
slower. The flops of the roof are those of the recurrence."""


def inputs(heads: int, length: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((heads, length, dim)) for _ in range(3))
    q, k = (array / np.linalg.norm(array, axis=-1, keepdims=True) for array in (q, k))
    gate = np.log(0.9 + 0.1 * rng.random((heads, length, 1)))
    beta = 0.5 * rng.random((heads, length, 1))
    wide = (gate.astype(np.float32), beta.astype(np.float32))
    return *(array.astype(np.float16) for array in (q, k, v)), *wide, np.zeros(v.shape, np.float16)


def expected(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], gate: NDArray[Any], beta: NDArray[Any], o: NDArray[Any],
             dim: int, **_: Any) -> NDArray[Any]:
    q, k, v = (array.astype(np.float32)[:, :, None, :] for array in (q, k, v))
    state, o = np.zeros((len(q), dim, dim), np.float32), o.astype(np.float32)
    for t in range(o.shape[1]):
        state *= np.exp(gate[:, t, :, None])
        delta = beta[:, t, :, None] * (v[:, t] - k[:, t] @ state)
        state += k[:, t].transpose(0, 2, 1) * delta
        o[:, t] = (q[:, t] @ state)[:, 0]
    return o


def work(heads: int, length: int, dim: int) -> Work:
    rows = 2 * heads * length * dim
    return Work(read=3 * rows + 8 * heads * length, written=rows, flops={"f16": 3 * rows * dim})


LADDER = Ladder(
    title="Gated delta rule",
    about=ABOUT,
    cases=[
        {"heads": 2, "length": 128, "dim": 128},
        {"heads": 1, "length": 100, "dim": 64},
    ],
    large=[{"heads": 48, "length": 4096, "dim": 128}],
    inputs=inputs,
    expected=expected,
    work=work,
    rest=REST,
    tolerance={"float16": (1e-2, 4e-3)},
)
check = LADDER.check
