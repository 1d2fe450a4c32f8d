"""A layer of a mixture of experts: a router, and for each token the products with the matrices of two experts."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`Y[t] = p1 * X[t] @ W[e1] + p2 * X[t] @ W[e2]`: a router, itself a small product `X @ R.T`, computes a score of each token
for each of 8 experts; `e1` and `e2` are the experts with the two largest scores (which differ), and `p1` and `p2` the
softmax of these scores. X, R and W are float16, and sums are float32.

A token needs two of the eight products. Which two is known only after the router has run, and differs between tokens: a
Cube core multiplies tiles of 128 tokens by one matrix, so the tokens of a tile must have the same expert. The computation
therefore has four parts: route, permute, multiply by groups, combine. The roofline counts the two products of each token."""

LIMITS = """\
MTE3 is the busiest pipe in the last step, with {AIV MTE3} of the time, of which {AIV MTE3 latency} are start-up costs: each
row of a tile is stored at the position of its token, 1 KB at a time, in a separate store. M is busy for {AIC M}. Four other
launches, which gather rows and add the two parts of each token, run before and after the launch that multiplies, and each
starts only when the previous one has ended. All launches together take {launch} of {time}."""


def inputs(tokens: int, experts: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape, np.float32).astype(np.float16) for shape in ((tokens, K), (experts, K, N)))
    return x, (rng.standard_normal((experts, K)) * K**-0.5).astype(np.float16), w, np.zeros((tokens, N), np.float32)


def expected(x: NDArray[Any], router: NDArray[Any], w: NDArray[Any], y: NDArray[Any], **_: Any) -> NDArray[Any]:
    wide = x.astype(np.float32)
    logits = wide @ router.astype(np.float32).T
    for token, places in enumerate(np.argsort(-logits, axis=1)[:, :2]):
        chosen = np.exp(logits[token, places] - logits[token, places[0]])
        for place, share in zip(places, chosen / chosen.sum(), strict=True):
            y[token] += share * (wide[token] @ w[place].astype(np.float32))
    return y


def work(tokens: int, experts: int, N: int, K: int) -> Work:
    return Work(read=2 * K * (tokens + experts * N + experts), written=4 * tokens * N,
                flops={"f16": 2 * tokens * K * (2 * N + experts)})


LADDER = Ladder(
    title="Mixture of experts",
    about=ABOUT,
    cases=[{"tokens": 256, "experts": 8, "N": 256, "K": 256}, {"tokens": 200, "experts": 8, "N": 150, "K": 136}],
    large=[{"tokens": 2048, "experts": 8, "N": 2048, "K": 1024}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float32": (2e-3, 4e-2)},
    goal=0.8,
    rate_of="cube",
    limits=LIMITS,
)
check = LADDER.check
