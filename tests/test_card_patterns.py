"""Random patterns of communication: cards that move slots to and fro end with the bytes of a sequential model.

A pattern is a list of operations on the slots of all cards, in one sequential order. Each card executes its own operations in
one kernel, and waits only where an operation depends on one of another card: that card sends a signal after its operation. The
kernel reads the pattern from a tensor, so that it is compiled once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError, pods
from tilelang_npu.pods import Card

SLOTS, LENGTH, STEPS, WORDS, EDGES = 6, 16, 16, 512, 12
KIND, PEER, SOURCE, TARGET, WAITS, SIGNALS, FIRST_WAIT, FIRST_SIGNAL = 0, 1, 2, 3, 4, 5, 6, 6 + EDGES
FIELDS = 64
PUT, GET, ADD, COMPUTE = range(4)
SEEDS, CHUNK, INTERLEAVINGS = 200, 20, 3


@dataclass
class Step:
    """An operation of a card: what it does, with whom, and with which slots; and the signals before and after it.

    Attributes:
        waits: the words of this card for which it waits.
        signals: the words that it sets afterwards, each with the card.
    """

    card: int
    kind: int
    peer: int
    source: int
    target: int
    waits: list[int] = field(default_factory=list)
    signals: list[tuple[int, int]] = field(default_factory=list)

    def reads(self) -> set[tuple[int, int]]:
        """The slots that the operation reads, each with its card."""
        found = {(self.peer if self.kind == GET else self.card, self.source)}
        return found | (self.writes() if self.kind == ADD else set())

    def writes(self) -> set[tuple[int, int]]:
        """The slot that the operation writes, with its card."""
        return {(self.peer if self.kind in (PUT, ADD) else self.card, self.target)}

    def depends_on(self, other: Step) -> bool:
        """Whether the operation must come after another one."""
        adds = self.kind == ADD and other.kind == ADD and self.writes() == other.writes()
        conflict = self.writes() & (other.reads() | other.writes()) or self.reads() & other.writes()
        return bool(conflict) and not (adds and not (self.reads() - self.writes()) & other.writes()
                                       and not (other.reads() - other.writes()) & self.writes())


def pattern(seed: int) -> tuple[int, list[Step]]:
    """A random pattern: the number of cards, and the operations in the order of the sequential model."""
    chooser = random.Random(seed)
    cards = chooser.randint(2, 4)
    steps: list[Step] = []
    for _ in range(chooser.randint(cards, 5 * cards)):
        steps.append(Step(chooser.randrange(cards), chooser.choice([PUT, PUT, GET, ADD, COMPUTE]), chooser.randrange(cards),
                          chooser.randrange(SLOTS), chooser.randrange(SLOTS)))
    steps = [step for step in steps if sum(one.card == step.card for one in steps[:steps.index(step)]) < STEPS]
    word = 0
    for place, step in enumerate(steps):
        latest: dict[int, Step] = {}  # of each card, the last operation before it; the card's earlier ones precede that
        for other in steps[:place]:
            if step.depends_on(other) and other.card != step.card:
                latest[other.card] = other
        for other in latest.values():
            step.waits.append(word)
            other.signals.append((word, step.card))
            word += 1
    assert word <= WORDS
    assert all(max(len(step.waits), len(step.signals)) <= EDGES for step in steps)
    return cards, steps


def modelled(cards: int, steps: list[Step]) -> np.ndarray:
    """The slots of all cards after all operations, one after the other."""
    slots = initial(cards)
    for step in steps:
        for card, target in step.writes():
            if step.kind == COMPUTE:
                slots[card, target] = slots[card, step.source] * 3 + 1
            elif step.kind == ADD:
                slots[card, target] += slots[step.card, step.source]
            else:
                slots[card, target] = slots[step.peer if step.kind == GET else step.card, step.source]
    return slots


def initial(cards: int) -> np.ndarray:
    return np.arange(cards * SLOTS * LENGTH, dtype=np.int32).reshape(cards, SLOTS, LENGTH)


def table(cards: int, steps: list[Step]) -> np.ndarray:
    """The pattern as the kernels of the cards read it."""
    made = np.full((cards, STEPS, FIELDS), -1, np.int32)
    made[..., (WAITS, SIGNALS)] = 0
    for card in range(cards):
        for place, step in enumerate(one for one in steps if one.card == card):
            row = made[card, place]
            row[:FIRST_WAIT] = step.kind, step.peer, step.source, step.target, len(step.waits), len(step.signals)
            row[FIRST_WAIT:FIRST_WAIT + len(step.waits)] = step.waits
            flat = [number for signal in step.signals for number in signal]
            row[FIRST_SIGNAL:FIRST_SIGNAL + len(flat)] = flat
    return made


@tilelang.jit(target="npuir")
def executed() -> Any:
    @T.prim_func
    def executed(P: T.Tensor((STEPS, FIELDS), "int32"), X: T.Tensor((SLOTS, LENGTH), "int32"), F: T.Tensor((WORDS,), "int32")
                 ) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((1, LENGTH), "int32")
            for i in T.serial(STEPS):
                for wait in T.serial(P[i, WAITS]):
                    T.shmem_signal_wait_until(F, P[i, FIRST_WAIT + wait], 3, 1)
                if P[i, KIND] == PUT:
                    T.copy(X[P[i, SOURCE], 0], tile)
                    T.shmem_ub_put_nbi(tile, X, LENGTH, P[i, PEER], P[i, TARGET] * LENGTH)
                if P[i, KIND] == ADD:
                    T.copy(X[P[i, SOURCE], 0], tile)
                    T.shmem_ub_atomic_add_nbi(tile, X, LENGTH, P[i, PEER], P[i, TARGET] * LENGTH)
                if P[i, KIND] == GET:
                    T.shmem_ub_get_nbi(tile, X[P[i, SOURCE], 0], LENGTH, P[i, PEER])
                    T.copy(tile, X[P[i, TARGET], 0])
                if P[i, KIND] == COMPUTE:
                    T.copy(X[P[i, SOURCE], 0], tile)
                    for _j, k in T.Parallel(1, LENGTH):
                        tile[0, k] = tile[0, k] * 3 + 1
                    T.copy(tile, X[P[i, TARGET], 0])
                T.shmem_quiet()
                for signal in T.serial(P[i, SIGNALS]):
                    T.shmem_signal_op(F, P[i, FIRST_SIGNAL + 2 * signal], 1, 0, P[i, FIRST_SIGNAL + 2 * signal + 1])

    return executed


def run(cards: int, steps: list[Step], **settings: Any) -> np.ndarray:
    """The slots of all cards after the pattern has run on a pod."""
    kernel, given, begin = executed(), table(cards, steps), initial(cards)

    def body(card: Card) -> np.ndarray:
        slots, words = card.tensor((SLOTS, LENGTH), "int32"), card.tensor(WORDS, "int32")
        slots[...] = begin[card.rank]
        card.barrier()
        kernel(given[card.rank], slots, words)
        card.barrier()
        return slots.copy()

    return np.stack(pods.run(body, cards, heap_bytes=1 << 14, **settings))


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_interleaving_ends_with_the_bytes_of_the_sequential_model(first: int) -> None:
    for seed in range(first, first + CHUNK):
        cards, steps = pattern(seed)
        wanted = modelled(cards, steps)
        for interleaving in range(INTERLEAVINGS):
            found = run(cards, steps, interleaving=interleaving, sanitize=interleaving == 0)
            np.testing.assert_array_equal(found, wanted, err_msg=f"seed {seed}, interleaving {interleaving}")


def _is_ordered(steps: list[Step], before: Step, after: Step) -> bool:
    """Whether signals and the order inside of the cards put one operation before another one."""
    known = {id(before)}
    sent: set[int] = set()
    for step in steps:
        mine = any(id(other) in known and other.card == step.card for other in steps[:_place(steps, step)])
        if id(step) in known or mine or set(step.waits) & sent:
            known.add(id(step))
            sent |= {word for word, _ in step.signals}
    return id(after) in known


def _place(steps: list[Step], step: Step) -> int:
    return next(place for place, one in enumerate(steps) if one is step)


def test_a_signal_that_is_left_out_is_a_hang_and_a_wait_that_is_left_out_a_race() -> None:
    """Each wait and each signal, unless others give the same order."""
    hangs = races = 0
    for seed in range(12):
        cards, steps = pattern(seed)
        for step in steps:
            for word, card in list(step.signals):
                waiter = next(one for one in steps if word in one.waits)
                step.signals.remove((word, card))
                with pytest.raises(TileError) as caught:
                    run(cards, steps, timeout=60.0)
                assert caught.value.code == "S308", seed
                hangs += 1
                waiter.waits.remove(word)
                if not _is_ordered(steps, step, waiter):
                    with pytest.raises(TileError) as caught:
                        run(cards, steps, sanitize=True)
                    assert caught.value.code == "S231", seed
                    races += 1
                step.signals.append((word, card))
                waiter.waits.append(word)
    assert hangs > 20
    assert races > 10
