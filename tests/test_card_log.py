"""What the log of a pod keeps: the changes of words, what ended a wait in the run, and which call a signal belongs to."""

from __future__ import annotations

import pytest

from tilelang_npu.card_log import ActId, CardCall, CardLog, Meeting, Signal, WordWait

WORD = (1, 0)


def _log(*signals: tuple[int, int, bool]) -> CardLog:
    """A log in which card 0 sends signals to a word of card 1: the numbers before and after, and whether they add."""
    log = CardLog(2)
    log.begin_kernel(0, "sends")
    log.begin_kernel(1, "waits")
    for core, (before, after, adds) in enumerate(signals):
        log.sent(0, core, WORD, before, after, adds=adds)
    return log


@pytest.mark.parametrize(("signals", "least", "ended"), [
    ([(0, 1, False)], 1, 0),
    ([(0, 1, False)], 0, -1),  # true before any signal
    ([(0, 1, False), (1, 2, False)], 1, 0),  # the earlier one was enough
    ([(0, 1, False), (1, 2, False)], 2, 1),
    ([(0, 1, True), (1, 2, True), (2, 3, True)], 2, 1),
    ([(3, 4, False)], 1, -1),  # the card's own store was enough
    ([(0, 1, False), (0, 1, False)], 1, 1),  # the card has reset the word between
    ([(0, 1, False), (1, 0, False)], 1, 0),  # changed again before the core went on
    ([(0, 1, False)], 2, -1),
])
def test_what_ended_a_wait_in_the_run(signals: list[tuple[int, int, bool]], least: int, ended: int) -> None:
    log = _log(*signals)
    log.waited(1, "core", WORD, lambda number: number >= least)
    call = log.cards[1][0]
    assert isinstance(call, CardCall)
    (wait,) = call.acts["core"]
    assert isinstance(wait, WordWait)
    assert log.words[WORD].ended(wait) == ended


def test_signals_after_a_wait_did_not_end_it() -> None:
    log = _log()
    log.waited(1, "core", WORD, bool)
    log.sent(0, 0, WORD, 0, 1, adds=False)
    call = log.cards[1][0]
    assert isinstance(call, CardCall)
    (wait,) = call.acts["core"]
    assert isinstance(wait, WordWait)
    assert log.words[WORD].ended(wait) == -1


@pytest.mark.parametrize(("signals", "alone"), [
    ([(0, 1, False)], True), ([(0, 1, True), (1, 2, True)], True), ([(0, 1, True), (0, 1, True)], False)])
def test_whether_only_signals_change_a_word(signals: list[tuple[int, int, bool]], alone: bool) -> None:
    assert _log(*signals).words[WORD].is_signalled_alone == alone


def test_a_signal_belongs_to_the_call_that_runs() -> None:
    log = CardLog(1)
    for number in range(2):
        log.begin_kernel(0, "kernel")
        log.sent(0, "core", (0, 0), number, number + 1, adds=True)
        log.sent(0, "core", (0, 8), 0, 1, adds=False)
        log.end_kernel(0, None)
    log.sent(0, "core", (0, 0), 2, 3, adds=True)  # no compiled kernel runs
    assert [change.signal for change in log.words[0, 0].changes] == [ActId(0, 0, "core", 0), ActId(0, 1, "core", 0)]
    for call in log.cards[0]:
        assert isinstance(call, CardCall)
        assert call.acts["core"] == [Signal((0, 0)), Signal((0, 8))]


def test_a_barrier_has_the_arrivals_of_its_turn_of_all_members() -> None:
    log = CardLog(2)
    for rank in range(2):
        log.begin_kernel(rank, "kernel")
    for _turn in range(2):
        for rank in range(2):
            log.arrived(rank, "core", 0)
        for rank in range(2):
            log.passed(rank, "core", 0, (0, 1))
    call = log.cards[0][0]
    assert isinstance(call, CardCall)
    assert call.acts["core"] == [Meeting((ActId(0, 0, "core", turn), ActId(1, 0, "core", turn))) for turn in range(2)]
