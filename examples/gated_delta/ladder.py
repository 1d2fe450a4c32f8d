"""The gated delta rule."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
Linear attention with a state that decays and corrects itself: `state = exp(g[t]) * state`, then `delta = b[t] * (v[t] -
k[t] state)`, `state = state + k[t]' delta`, `o[t] = q[t] state`. The update of a token depends on the state's value for its
key, so a chunk of tokens cannot simply be multiplied: the `delta` of each token depends on those of all earlier tokens.

Within a chunk this dependence is a system of linear equations, `(I - n) delta = b v - (b k) state`, where `n` is strictly
lower triangular and has the products of keys with their decay. Such an `n` is nilpotent, so the inverse of `I - n` is a
product of few factors: `(I + n) (I + n^2) (I + n^4) ...`, six for 64 tokens. This turns the recurrence into matrix products
for the Cube cores. q, k and v are float16, and intermediate values are float32."""

LIMITS = """\
The last step is bound by the dependence chain of a chunk: six rounds, in each of which two products of 64 tokens go from
L0C through FIX to L1 in float16, and through MTE1 to L0A and L0B; the next chunk then starts with the resulting state. No
pipe is busy for half of the time; the busiest is MTE1, with {AIC MTE1}. `num_stages=2` moves only the loads of the next
chunk to an earlier time, and UB, which is full with intermediate values of V, has no room for it: it was tried, and is
slower. The flops of the roofline are those of the recurrence."""


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
    limits=LIMITS,
    tolerance={"float16": (1e-2, 4e-3)},
)
check = LADDER.check
