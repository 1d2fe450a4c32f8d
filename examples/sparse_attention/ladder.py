"""Attention of many heads to the keys that an index names."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
Sparse attention: of a long cache each query sees the keys that an index names, 1024 here, anywhere in it. As in
multi-head *latent* attention (MLA), all 64 heads share one head, and a row of it is key and value at once, 512 numbers.
The rows of a tile are the heads of one query, since another query has other keys.

A tile of keys is no piece of the cache but as many loads as it has rows, of 1 KB each, whose places are known only when
the scalar unit has read their numbers. All 64 heads use a row that is loaded, in both products: reckoned by operations,
the Cube cores are the roof."""

REST = """\
MTE2 of the Cube cores bounds the last step, at work for {AIC MTE2} of the time: for {AIC MTE2 latency} of the
time loads of 1 KB start one after the other, and for {AIC MTE2 transfer} their bytes move. M is at work for {AIC M}.
Blocks of neighbouring rows, as [pages](paged_decoding.md) are, or more heads for each row would come nearer to the roof; the
Vector cores, which could load rows as well, take twice as long for one and would have to pass it on through GM."""


def inputs(queries: int, heads: int, length: int, count: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    q, kv = (rng.standard_normal(shape, np.float32).astype(np.float16) for shape in ((queries, heads, dim), (length, dim)))
    at = np.stack([rng.permutation(length)[:count] for _ in range(queries)]).astype(np.int32)
    return q, kv, at, np.zeros_like(q)


def expected(q: NDArray[Any], kv: NDArray[Any], at: NDArray[Any], _o: NDArray[Any], **_: Any) -> NDArray[Any]:
    q, kv = q.astype(np.float64), kv.astype(np.float64)
    result = np.empty_like(q)
    for number, named in enumerate(at):
        s = q[number] @ kv[named].T * q.shape[2] ** -0.5
        s = np.exp(s - s.max(axis=1, keepdims=True))
        result[number] = s / s.sum(axis=1, keepdims=True) @ kv[named]
    return result


def work(queries: int, heads: int, length: int, count: int, dim: int) -> Work:
    return Work(read=2 * dim * (queries * heads + min(length, queries * count)) + 4 * queries * count,
                written=2 * queries * heads * dim, flops={"f16": 4 * queries * heads * count * dim})


LADDER = Ladder(
    title="Sparse attention",
    about=ABOUT,
    cases=[
        {"queries": 3, "heads": 64, "length": 600, "count": 256, "dim": 256},
        {"queries": 2, "heads": 32, "length": 300, "count": 200, "dim": 512},
    ],
    large=[{"queries": 192, "heads": 64, "length": 16384, "count": 1024, "dim": 512}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (1e-2, 5e-3)},
    goal=0.6,
    rate_of="cube",
    rest=REST,
)
check = LADDER.check
