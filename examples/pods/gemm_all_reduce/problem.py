"""GEMM with all-reduce: each card has K columns of A and K rows of B; all cards get the sum of their products.

Matrices of results are stored tile by tile, so that a tile is one transfer. The card ``tile % ranks`` adds the parts of a tile.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))

from pod_ladder import PodLadder

TILE_M, TILE_N = 128, 256


def _parts(ranks, M, N, K):
    rng = np.random.default_rng(0)  # small integers, whose sums are exact in any order
    return rng.integers(-3, 4, (ranks, M, K)).astype(np.float16), rng.integers(-3, 4, (ranks, K, N)).astype(np.float16)


def tensors(rank, ranks, M, N, K):
    a, b = _parts(ranks, M, N, K)
    tiles = M // TILE_M * (N // TILE_N)
    return {"A": a[rank], "B": b[rank], "P": np.zeros((tiles, TILE_M, TILE_N), np.float32),
            "S": np.zeros((tiles, TILE_M, TILE_N), np.float32), "C": np.zeros((tiles, TILE_M, TILE_N), np.float32),
            "W": np.zeros((48, TILE_M, TILE_N), np.float32), "F": np.zeros(tiles, np.int32)}


def expected(ranks, M, N, K):
    a, b = (part.astype(np.float32) for part in _parts(ranks, M, N, K))
    return [np.einsum("rmk,rkn->mn", a, b)] * ranks


def result(own, ranks, M, N, K):
    tiles = own["C"].reshape(M // TILE_M, N // TILE_N, TILE_M, TILE_N)
    return tiles.swapaxes(1, 2).reshape(M, N)


LADDER = PodLadder(
    small={"ranks": 2, "M": 2304, "N": 1024, "K": 256}, large={"ranks": 8, "M": 8192, "N": 1536, "K": 10240}, tensors=tensors,
    shared=frozenset({"P", "S", "C", "F"}), expected=expected, result=result)
check = LADDER.check
