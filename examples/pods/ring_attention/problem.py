"""Ring attention: each card has some of the queries, keys and values of every head, and attends to the keys of all cards.

Keys and values travel around rings of the cards, one part a step, and each card combines what it has seen with an online
softmax. ``K0`` and ``V0``, ``K1`` and ``V1`` are by turns the part that a card attends to, and the next one; so are ``R``,
``M`` and ``L``, the sums and the maxima of the softmax before and after a step.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))

from pod_ladder import PodLadder


def _whole(ranks, heads, length, dim):
    rng = np.random.default_rng(0)
    return [rng.standard_normal((ranks, heads, length, dim)).astype(np.float16) for _ in range(3)]


def tensors(rank, ranks, heads, length, dim):
    q, k, v = (one[rank] for one in _whole(ranks, heads, length, dim))
    made = {"Q": q, "K0": k, "V0": v, "K1": np.zeros_like(k), "V1": np.zeros_like(v), "O": np.zeros_like(q)}
    for slot in range(2):
        made |= {f"R{slot}": np.zeros(q.shape, np.float32), f"L{slot}": np.zeros((heads, length, 1), np.float32),
                 f"M{slot}": np.full((heads, length, 1), -(2.0**30), np.float32)}
    return made


def expected(ranks, heads, length, dim):
    q, k, v = (one.astype(np.float64) for one in _whole(ranks, heads, length, dim))
    k, v = (np.concatenate(list(one), axis=1) for one in (k, v))
    found = []
    for own in q:
        scores = np.exp(own @ k.swapaxes(1, 2) * dim**-0.5)
        found.append((scores @ v / scores.sum(axis=-1, keepdims=True)).astype(np.float16))
    return found


LADDER = PodLadder(
    small={"ranks": 4, "heads": 4, "length": 256, "dim": 128},
    large={"ranks": 8, "heads": 12, "length": 2048, "dim": 128}, tensors=tensors, shared=frozenset({"K0", "V0", "K1", "V1"}),
    expected=expected, result=lambda own, **_: own["O"], tolerance=4e-3)
check = LADDER.check
