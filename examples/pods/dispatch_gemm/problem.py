"""Dispatch of a mixture of experts, with the expert's GEMM: an all-to-all.

Each card has tokens and one expert. A router has chosen an expert for each token. The tokens of a card for one expert are
packed into ``capacity`` rows, of which the rest are zeros, and tokens beyond the capacity are dropped. The card of the expert
gets these rows from all cards, and multiplies them by its weights.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))

from pod_ladder import PodLadder


def _routed(ranks, capacity, K):
    """Returns the tokens of each card, and the expert of each token."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(-3, 4, (ranks, ranks * capacity * 3 // 4, K)).astype(np.float16)  # exact products
    return tokens, rng.integers(0, ranks, tokens.shape[:2])


def _weights(ranks, N, K):
    return np.random.default_rng(1).integers(-3, 4, (ranks, K, N)).astype(np.float16)


def _packed(tokens, experts, ranks, capacity):
    """Returns the rows of one card for each expert."""
    made = np.zeros((ranks, capacity, tokens.shape[-1]), np.float16)
    for expert in range(ranks):
        chosen = tokens[experts == expert][:capacity]
        made[expert, :len(chosen)] = chosen
    return made


def tensors(rank, ranks, capacity, N, K):
    tokens, experts = _routed(ranks, capacity, K)
    rows = ranks * capacity
    return {"X": _packed(tokens[rank], experts[rank], ranks, capacity).reshape(rows, K), "G": np.zeros((rows, K), np.float16),
            "B": _weights(ranks, N, K)[rank], "C": np.zeros((rows, N), np.float16)}


def expected(ranks, capacity, N, K):
    tokens, experts = _routed(ranks, capacity, K)
    weights = _weights(ranks, N, K)
    rows = np.stack([_packed(one, chosen, ranks, capacity) for one, chosen in zip(tokens, experts, strict=True)])
    return [(rows[:, expert].reshape(-1, K).astype(np.float32) @ weights[expert].astype(np.float32)).astype(np.float16)
            for expert in range(ranks)]


LADDER = PodLadder(
    small={"ranks": 2, "capacity": 1024, "N": 512, "K": 256}, large={"ranks": 8, "capacity": 3072, "N": 1536, "K": 4096},
    tensors=tensors, shared=frozenset({"X"}), expected=expected, result=lambda own, **_: own["C"])
check = LADDER.check
