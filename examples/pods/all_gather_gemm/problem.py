"""All-gather with GEMM: each card has M / ranks rows of A and N columns of B, and computes its N columns of A @ B."""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))

from pod_ladder import PodLadder


def _whole(ranks, M, N, K):
    rng = np.random.default_rng(0)  # small integers, whose products are exact
    return rng.integers(-3, 4, (M, K)).astype(np.float16), rng.integers(-3, 4, (ranks, K, N)).astype(np.float16)


def tensors(rank, ranks, M, N, K):
    a, b = _whole(ranks, M, N, K)
    own = M // ranks
    return {"A": a[rank * own:(rank + 1) * own], "G": np.zeros((M, K), np.float16), "B": b[rank],
            "C": np.zeros((M, N), np.float16)}


def expected(ranks, M, N, K):
    a, b = _whole(ranks, M, N, K)
    return [(a.astype(np.float32) @ one.astype(np.float32)).astype(np.float16) for one in b]


LADDER = PodLadder(
    small={"ranks": 2, "M": 2048, "N": 512, "K": 256}, large={"ranks": 8, "M": 24576, "N": 1536, "K": 4096}, tensors=tensors,
    shared=frozenset({"A"}), expected=expected, result=lambda own, **_: own["C"])
check = LADDER.check
