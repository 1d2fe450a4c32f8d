"""Attention of one new token over a paged KV cache."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
Decoding, as in [its ladder](decoding.md), with the cache in pages of 64 tokens that may be anywhere in memory: a *block
table* lists the page numbers of each sequence, in order. The cache of a sequence can thus grow without being moved, but its
keys are scattered pieces of 16 KB. The address of a load is known only after the scalar unit has read the page number from
GM, for which it waits hundreds of cycles.

As there, eight query heads share a head of keys and values, and HBM is the bound."""

PAGE = 64
"""Tokens of a page."""


def inputs(batch: int, heads: int, kv_heads: int, length: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    pages = -(-length // PAGE)
    table = rng.permutation(batch * pages).astype(np.int32).reshape(batch, pages)
    some = rng.standard_normal((2, 100_003)).astype(np.float16)  # a prime length, so that rows start at different offsets
    k, v = (np.resize(values, (batch * pages, kv_heads, PAGE, dim)) for values in some)
    q = rng.standard_normal((batch, heads, dim)).astype(np.float16)
    return q, k, v, table, np.zeros_like(q)


def expected(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], table: NDArray[Any], _o: NDArray[Any], length: int,
             **_: Any) -> NDArray[Any]:
    batch, heads, dim = q.shape
    kv_heads = k.shape[1]
    k, v = (x[table].swapaxes(1, 2).reshape(batch, kv_heads, -1, dim)[:, :, :length].astype(np.float64) for x in (k, v))
    s = q.reshape(batch, kv_heads, -1, dim) @ k.swapaxes(2, 3) * dim**-0.5
    s = np.exp(s - s.max(axis=-1, keepdims=True))
    result: NDArray[Any] = (s / s.sum(axis=-1, keepdims=True) @ v).reshape(batch, heads, dim)
    return result


def work(batch: int, heads: int, kv_heads: int, length: int, dim: int) -> Work:
    return Work(read=2 * batch * dim * (heads + 2 * kv_heads * length), written=2 * batch * heads * dim,
                flops={"f16": 4 * batch * heads * length * dim})


LADDER = Ladder(
    title="Decoding from pages",
    about=ABOUT,
    cases=[
        {"batch": 2, "heads": 16, "kv_heads": 2, "length": 1536, "dim": 128},
        {"batch": 1, "heads": 16, "kv_heads": 2, "length": 1000, "dim": 64},
    ],
    large=[{"batch": 2, "heads": 32, "kv_heads": 4, "length": 65536, "dim": 128}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (1e-2, 5e-3)},
)
check = LADDER.check
