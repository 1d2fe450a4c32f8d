"""Races between cards: accesses of two cards to one byte in one period are reported, whatever thread runs first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilelang_npu.card_races import CardRaces
from tilelang_npu.errors import Location, TileError

RANKS, SIZE = 3, 64
HERE, THERE = Location("a.py", 1), Location("b.py", 2)


@pytest.fixture(name="heap")
def made() -> np.ndarray:
    return np.zeros((RANKS, SIZE), np.uint8)


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
def test_two_cards_access_one_byte_and_one_writes(heap: np.ndarray, first: bool, second: bool) -> None:
    messages = set()
    for order in (1, -1):
        races = CardRaces(heap)
        accesses = [(0, heap[2, :16], first, HERE), (1, heap[2, 12:20], second, THERE)][::order]
        races.note(accesses[0][0], accesses[0][1], writes=accesses[0][2], location=accesses[0][3])
        with pytest.raises(TileError) as reported:
            races.note(accesses[1][0], accesses[1][1], writes=accesses[1][2], location=accesses[1][3])
        assert (reported.value.code, reported.value.location) == ("S231", HERE)
        messages.add(reported.value.message)
    does = {True: "writes", False: "reads"}
    assert messages == {f"rank 0 {does[first]} and rank 1 {does[second]} the same 4 bytes of rank 2, "
                        "and nothing orders the two"}


def test_what_is_no_race(heap: np.ndarray) -> None:
    races = CardRaces(heap)
    for rank in range(RANKS):
        races.note(rank, heap[1, :8], writes=False)  # several cards read one place
        races.note(rank, heap[rank, 8:16], writes=True)  # places of their own
        races.note(rank, heap[rank, 8:16], writes=False)
    races.note(0, heap[0, :0], writes=True)
    races.clear()  # the barrier of all cards
    races.note(2, heap[1, :16], writes=True)


def test_a_card_writes_what_several_cards_read(heap: np.ndarray) -> None:
    races = CardRaces(heap)
    for rank in range(2):
        races.note(rank, heap[0, :8], writes=False)
    with pytest.raises(TileError, match="rank 0 reads and rank 2 writes the same 8 bytes of rank 0, and nothing orders"):
        races.note(2, heap[0, :16], writes=True)
    with pytest.raises(TileError, match="rank 0 writes and rank 1 reads the same 8 bytes of rank 0"):
        races.note(0, heap[0, :8], writes=True)  # one of the cards that read it


CORE = ("AIV", 0, 0)


@pytest.mark.parametrize(("steps", "code"), [
    ("put quiet signal wait read", ""), ("put signal wait read", "S232"), ("put quiet wait signal read", "S231"),
    ("put quiet read signal wait", "S231"), ("put signal quiet wait read", "S232"), ("put returned signal wait read", ""),
    ("write signal wait read", ""), ("write wait signal read", "S231"), ("signal write wait read", "S231"),
    ("read signal-back wait-back put", ""), ("read put", "S231"), ("signal-back read wait-back put", "S231"),
])
def test_what_a_signal_orders(heap: np.ndarray, steps: str, code: str) -> None:
    """Card 0 puts to card 1, or writes there, and signals; card 1 waits and reads."""
    races = CardRaces(heap)
    there = heap[1, :8]
    do = {"put": lambda: races.note(0, there, writes=True, core=CORE, location=HERE), "quiet": lambda: races.complete(0, CORE),
          "returned": lambda: races.complete(0), "write": lambda: races.note(0, there, writes=True),
          "signal": lambda: races.release(0, "a", CORE), "wait": lambda: races.acquire(1, "a", CORE),
          "read": lambda: races.note(1, there, writes=False, location=THERE),
          "signal-back": lambda: races.release(1, "b", CORE), "wait-back": lambda: races.acquire(0, "b", CORE)}
    found = ""
    try:
        for step in steps.split():
            do[step]()
    except TileError as error:
        found = error.code
    assert found == code


def test_a_set_replaces_what_an_earlier_set_said_and_an_addition_does_not(heap: np.ndarray) -> None:
    for adds, code in ((True, ""), (False, "S231")):
        races = CardRaces(heap)
        races.note(0, heap[2, :8], writes=True)
        races.release(0, "word", adds=adds)
        races.release(1, "word", adds=adds)
        races.acquire(2, "word")
        found = ""
        try:
            races.note(2, heap[2, :8], writes=False)
        except TileError as error:
            found = error.code
        assert found == code


def test_an_access_that_is_noted_late_has_the_time_at_which_it_was_made(heap: np.ndarray) -> None:
    """The reads of a kernel are noted when it returns, after the other card has been told that they are over."""
    for steps, code in ((1, ""), (2, "S231")):
        races = CardRaces(heap)
        races.begin_kernel(1)
        races.acquire(1, "never set", CORE)
        races.release(1, "read", CORE)
        races.acquire(0, "read", CORE)
        races.note(0, heap[1, :8], writes=True)
        found = ""
        try:
            races.note(1, heap[1, :8], writes=False, when=races.clock_after(1, CORE, steps))
        except TileError as error:
            found = error.code
        assert found == code


def test_a_late_access_that_races_with_a_write_that_was_replaced_is_found_at_the_barrier(heap: np.ndarray) -> None:
    """Rank 1 writes, waits until rank 0 has read, and writes again; only the first write is not ordered with the read."""
    for waits_first in (False, True):
        races = CardRaces(heap)
        races.begin_kernel(0)
        if waits_first:
            races.release(1, "written", CORE)
        else:
            races.note(1, heap[0, :8], writes=True, location=THERE)
        races.release(0, "read", CORE)
        races.acquire(1, "read", CORE)
        races.note(1, heap[0, :8], writes=True)
        races.note(0, heap[0, :8], writes=False, location=HERE, when=races.clock_after(0, CORE, 0))
        found = ""
        try:
            races.clear()
        except TileError as error:
            found = error.code
        assert found == ("" if waits_first else "S231")


def test_views_with_gaps_access_only_their_elements(heap: np.ndarray) -> None:
    races = CardRaces(heap)
    columns: Any = heap[0].view(np.float32).reshape(4, 4)
    races.note(0, columns[:, :2], writes=True)
    races.note(1, columns[:, 2:], writes=True)
    with pytest.raises(TileError, match="rank 0 writes and rank 2 reads the same 4 bytes of rank 0"):
        races.note(2, columns[3:, 1], writes=False)
