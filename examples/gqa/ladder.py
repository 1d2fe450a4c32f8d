"""Grouped-query attention over a prompt."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
Attention in which several query heads share their keys and values (*GQA*): here six query heads and two KV heads, over a
prompt of 8192 tokens, with a causal mask. The products are those of causal attention, but fewer keys and values are read,
and the KV cache is smaller, which is the purpose of GQA. This ladder is the *prefill*; [decoding](decoding.md) is the same
computation for a single query.

It starts with the step of [causal attention](causal.md) that masks only tiles on the diagonal, and shows the effect of
groups."""


LIMITS = """\
The last step has the same bound as causal attention: V of the Vector cores is busy for {AIV V} of the time, and its work
does not depend on the number of KV heads; MTE2 of the Cube cores is busy for {AIC MTE2}. Fewer keys reduce the traffic of
HBM, which was not the bound."""


def inputs(heads: int, kv_heads: int, length: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((count, length, dim)).astype(np.float16) for count in (heads, kv_heads, kv_heads))
    return q, k, v, np.zeros_like(q)


def expected(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], _o: NDArray[Any], **_: Any) -> NDArray[Any]:
    group = len(q) // len(k)
    k, v = (np.repeat(array, group, axis=0) for array in (k, v))
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    s = q @ k.transpose(0, 2, 1) * q.shape[2] ** -0.5
    s = np.where(np.tril(np.ones(s.shape[1:], bool)), s, -np.inf)
    s = np.exp(s - s.max(axis=2, keepdims=True))
    result: NDArray[Any] = s / s.sum(axis=2, keepdims=True) @ v
    return result


def work(heads: int, kv_heads: int, length: int, dim: int) -> Work:
    return Work(read=2 * (heads + 2 * kv_heads) * length * dim, written=2 * heads * length * dim,
                flops={"f16": 2 * heads * length * (length + 1) * dim})


LADDER = Ladder(
    title="Attention with grouped keys (GQA)",
    about=ABOUT,
    cases=[
        {"heads": 4, "kv_heads": 2, "length": 512, "dim": 128},
        {"heads": 3, "kv_heads": 1, "length": 300, "dim": 64},
    ],
    large=[{"heads": 6, "kv_heads": 2, "length": 8192, "dim": 128}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (1e-2, 5e-3)},
    goal=0.6,
    rate_of="cube",
    limits=LIMITS,
)
check = LADDER.check
