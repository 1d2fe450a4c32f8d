"""A layer of a mixture of experts: dispatch, the experts' GEMM, and combine.

Each card has tokens and one expert. A router has chosen ``chosen`` experts for each token, some of them more often than others,
so that each pair of cards exchanges another number of rows, which only the kernels find out. Each card gets the rows for its
expert, in a segment of ``capacity`` rows for each card of origin, multiplies them by its weights, and gives the products back;
the card of a token adds them, weighted.

Tensors of a card: ``X`` its tokens; ``W`` its expert's weights; ``start``, at which of its (token, choice) pairs, sorted by
expert, each expert's begin; ``token``, the token of each of them; ``place``, for each choice of a token, the expert and the
number of the pair among the expert's, and ``weight``, its weight. On the symmetric heap: ``G``, the rows for its expert; ``N``,
for each card, the number of its rows plus one, 0 before they have come; ``P``, the products of its expert; ``Y``, the products
for its own tokens; ``F`` and ``E``, signals.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))

from pod_ladder import PodLadder

ROWS = 128
"""The rows of a tile of the GEMM."""


def _routed(rank, ranks, tokens, chosen):
    """Returns the experts of each token of a card, and their weights."""
    rng = np.random.default_rng(rank)
    liking = rng.gumbel(size=(tokens, ranks)) + np.linspace(0.0, 0.5, ranks)
    experts = np.argsort(-liking, axis=1)[:, :chosen].astype(np.int32)
    return experts, rng.choice(np.float32([0.25, 0.5, 0.75]), (tokens, chosen))  # exact sums


def _tokens(rank, tokens, K):
    return np.random.default_rng(rank + 100).integers(-1, 2, (tokens, K)).astype(np.float16)


def _weights(ranks, K):
    return np.random.default_rng(99).integers(-1, 2, (ranks, K, K)).astype(np.float16)


def tensors(rank, ranks, tokens, capacity, chosen, K):
    experts, weight = _routed(rank, ranks, tokens, chosen)
    flat = experts.reshape(-1)
    order = np.argsort(flat, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=ranks))])
    place = np.empty((tokens * chosen, 2), np.int32)
    place[order] = np.stack([flat[order], np.arange(len(flat)) - start[flat[order]]], axis=1)
    rows = np.zeros((ranks, capacity, K), np.float16)
    return {"X": _tokens(rank, tokens, K), "W": _weights(ranks, K)[rank], "start": start.astype(np.int32),
            "token": (order // chosen).astype(np.int32), "place": place, "weight": weight.reshape(-1), "G": rows,
            "P": np.zeros_like(rows), "Y": np.zeros_like(rows), "N": np.zeros(ranks, np.int32),
            "F": np.zeros(capacity // ROWS, np.int32), "E": np.zeros(ranks, np.int32), "O": np.zeros((tokens, K), np.float16)}


def routed(rank, ranks, tokens, capacity, chosen, K):
    """Returns the counts that the other cards send to a card."""
    experts = [_routed(one, ranks, tokens, chosen)[0] for one in range(ranks)]
    return {"N": np.array([(one == rank).sum() + 1 for one in experts], np.int32)}


def expected(ranks, tokens, capacity, chosen, K):
    found, weights = [], _weights(ranks, K).astype(np.float32)
    for rank in range(ranks):
        x = _tokens(rank, tokens, K).astype(np.float32)
        experts, weight = _routed(rank, ranks, tokens, chosen)
        products = np.stack([x @ one for one in weights]).astype(np.float16).astype(np.float32)
        parts = products[experts, np.arange(tokens)[:, None]]
        found.append((parts * weight[:, :, None]).sum(axis=1).astype(np.float16))
    return found


LADDER = PodLadder(
    small={"ranks": 4, "tokens": 256, "capacity": 256, "chosen": 2, "K": 256},
    large={"ranks": 8, "tokens": 2048, "capacity": 768, "chosen": 2, "K": 2048},
    tensors=tensors, shared=frozenset({"G", "N", "P", "Y", "F", "E"}), expected=expected, result=lambda own, **_: own["O"],
    routed=routed)
check = LADDER.check
