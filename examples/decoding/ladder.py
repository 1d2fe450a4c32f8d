"""Attention of one new token over a long KV cache."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
Decoding: one new token, whose query attends to all keys in the cache. Eight query heads share a head of keys and values
(GQA), so each key that is loaded is used for only eight products: HBM is the bound, and the Cube cores, which process 16
rows at a time, have little work. The goal is that all cores load all the time."""



def inputs(batch: int, heads: int, kv_heads: int, length: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    k, v = (rng.standard_normal((batch, kv_heads, length, dim)).astype(np.float16) for _ in range(2))
    q = rng.standard_normal((batch, heads, dim)).astype(np.float16)
    return q, k, v, np.zeros_like(q)


def expected(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], _o: NDArray[Any], **_: Any) -> NDArray[Any]:
    batch, heads, dim = q.shape
    q = q.reshape(batch, k.shape[1], -1, dim).astype(np.float32)
    s = q @ k.astype(np.float32).transpose(0, 1, 3, 2) * dim**-0.5
    s = np.exp(s - s.max(axis=-1, keepdims=True))
    result: NDArray[Any] = (s / s.sum(axis=-1, keepdims=True) @ v.astype(np.float32)).reshape(batch, heads, dim)
    return result


def work(batch: int, heads: int, kv_heads: int, length: int, dim: int) -> Work:
    return Work(read=2 * batch * dim * (heads + 2 * kv_heads * length), written=2 * batch * heads * dim,
                flops={"f16": 4 * batch * heads * length * dim})


LADDER = Ladder(
    title="Decoding",
    about=ABOUT,
    cases=[
        {"batch": 2, "heads": 16, "kv_heads": 2, "length": 1536, "dim": 128},
        {"batch": 1, "heads": 16, "kv_heads": 2, "length": 1000, "dim": 64},
    ],
    large=[{"batch": 1, "heads": 64, "kv_heads": 8, "length": 65536, "dim": 128}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (1e-2, 5e-3)},
)
check = LADDER.check
