"""Attention of many heads to the keys that an index selects."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
Sparse attention: each query attends only to the keys of a long cache that an index selects, here 1024 at arbitrary
positions. As in multi-head *latent* attention (MLA), all 64 heads share one KV head, in which a row of 512 numbers is both
key and value. The rows of a tile are the heads of one query, since each query has different keys.

A tile of keys is not contiguous: each of its rows is a separate load of 1 KB, whose address is known only after the scalar
unit has read the index. All 64 heads use a loaded row, in both products, so by the number of operations the bound is the
Cube cores."""

LIMITS = """\
MTE2 of the Cube cores bounds the last step, busy for {AIC MTE2} of the time: for {AIC MTE2 latency} it pays the start-up
costs of loads of 1 KB, and for {AIC MTE2 transfer} it moves their bytes. M is busy for {AIC M}. Blocks of neighbouring
rows, as [pages](paged_decoding.md) are, or more heads for each row would bring the kernel nearer to the roofline. The
Vector cores could load rows as well, but take twice as long for each, and the rows would have to pass through GM."""


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
    limits=LIMITS,
)
check = LADDER.check
