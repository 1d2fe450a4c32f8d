"""Attention, backward: the gradients of queries, keys and values."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
The gradients of [attention](attention.md) with respect to queries, keys and values. The forward pass does not store the
weights. It stores `L[i]`, the logarithm of the sum of exponentials of each row `i`, from which the weights are recomputed:

- `P = exp(Q @ K.T / sqrt(dim) - L)`, and `dV = P.T @ dO`
- `dS = P * (dO @ V.T - D) / sqrt(dim)`, where `D[i]` is the sum of `dO[i] * O[i]`, which the caller provides
- `dQ = dS @ K`, and `dK = dS.T @ Q`

The backward pass has five products where the forward pass has two, and their sums run along different axes: `dK` and `dV`
sum over queries, `dQ` over keys. A block that keeps a tile of keys can accumulate `dK` and `dV` locally, but all blocks
contribute to `dQ`. Operands are float16, and the gradients float32. The operations in the table are those of five products;
a kernel that recomputes the weights executes more."""


def inputs(heads: int, length: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    shape = heads, length, dim
    q, k, v, do = (rng.standard_normal(shape, np.float32).astype(np.float16) for _ in range(4))
    s = q.astype(np.float32) @ k.astype(np.float32).transpose(0, 2, 1) * dim**-0.5
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
    p = np.exp(q @ k.transpose(0, 2, 1) * scale)
    p /= p.sum(axis=2, keepdims=True)
    dp = do @ v.transpose(0, 2, 1)
    ds = p * (dp - (p * dp).sum(axis=2, keepdims=True)) * scale
    return ds @ k, ds.transpose(0, 2, 1) @ q, p.transpose(0, 2, 1) @ do


def work(heads: int, length: int, dim: int) -> Work:
    return Work(read=heads * length * (8 * dim + 8), written=12 * heads * length * dim,
                flops={"f16": 10 * heads * length * length * dim})


LADDER = Ladder(
    title="Attention backward",
    about=ABOUT,
    cases=[
        {"heads": 2, "length": 256, "dim": 128},
        {"heads": 1, "length": 300, "dim": 64},
    ],
    large=[{"heads": 3, "length": 8192, "dim": 128}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float32": (1e-2, 5e-3)},  # weights and their gradients pass between the cores as float16
    goal=0.6,
    rate_of="cube",
    results=3,
)
check = LADDER.check
