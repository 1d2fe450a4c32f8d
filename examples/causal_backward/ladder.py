"""Causal attention, backward: the gradients of queries, keys and values, where each position attends to itself and to
earlier positions.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
The gradients of [causal attention](causal.md), where only half of all scores are used: key `j` contributes only to the
results of the queries `j ..` that follow it. [The ladder of attention's backward pass](attention_backward.md) explains the
formulas, the five products, and which block accumulates which sum; this ladder starts with its fourth step, one launch with
tiles of 64 keys and 128 queries. Since a block keeps keys and loops over queries, the unused half lies before the diagonal.
The operations in the table are those of the used half."""

LIMITS = """\
As without a mask, four pipes of the Cube cores bound the last step: MTE2 is busy for {AIC MTE2} of the time, M for {AIC M},
FIX for {AIC FIX}, MTE1 for {AIC MTE1}, and each waits for the others, because L1 has room for only one chunk of queries.
Further losses are the diagonal (a pair of tiles of 256 keys takes 17 chunks of 512 queries, with 16 chunks of useful
scores) and the start of each tile with empty pipes, four times on a core. The launch takes {launch share}."""


def inputs(heads: int, length: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    shape = heads, length, dim
    q, k, v, do = (rng.standard_normal(shape, np.float32).astype(np.float16) for _ in range(4))
    s = q.astype(np.float32) @ k.astype(np.float32).transpose(0, 2, 1) * dim**-0.5
    s[:, ~np.tri(length, dtype=bool)] = -np.inf
    largest = s.max(axis=2)
    np.exp(s - largest[:, :, None], out=s)
    total = s.sum(axis=2)
    o = s @ v.astype(np.float32) / total[:, :, None]
    lse, delta = largest + np.log(total), (do * o).sum(axis=2)
    return q, k, v, do, lse, delta.astype(np.float32), *(np.zeros(shape, np.float32) for _ in range(3))


def expected(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], do: NDArray[Any], *_: NDArray[Any],
             **sizes: Any) -> tuple[NDArray[Any], ...]:
    q, k, v, do = (array.astype(np.float64) for array in (q, k, v, do))
    scale = q.shape[2] ** -0.5
    p = np.tril(np.exp(q @ k.transpose(0, 2, 1) * scale))
    p /= p.sum(axis=2, keepdims=True)
    dp = do @ v.transpose(0, 2, 1)
    ds = p * (dp - (p * dp).sum(axis=2, keepdims=True)) * scale
    return ds @ k, ds.transpose(0, 2, 1) @ q, p.transpose(0, 2, 1) @ do


def work(heads: int, length: int, dim: int) -> Work:
    return Work(read=heads * length * (8 * dim + 8), written=12 * heads * length * dim,
                flops={"f16": 5 * heads * length * (length + 1) * dim})


LADDER = Ladder(
    title="Causal attention backward",
    about=ABOUT,
    cases=[
        {"heads": 2, "length": 512, "dim": 128},
        {"heads": 1, "length": 300, "dim": 64},
    ],
    large=[{"heads": 3, "length": 8192, "dim": 128}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float32": (1e-2, 5e-3)},  # weights and their gradients pass between the cores as float16
    goal=0.6,
    rate_of="cube",
    limits=LIMITS,
    results=3,
)
check = LADDER.check
