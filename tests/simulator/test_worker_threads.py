"""Worker threads of a launch: they end before the launch does, and their exceptions are raised."""

from __future__ import annotations

import threading
import weakref
from functools import partial

import numpy as np
import pytest

from tilelang_npu.simulator.machine import worker_threads
from tilelang_npu.simulator.machine.worker_threads import helped

SECONDS = 20
"""After which threads that wait for each other give up."""


def test_they_work_while_this_thread_does() -> None:
    meet = threading.Barrier(4)
    with helped([partial(meet.wait, SECONDS)] * 3):
        meet.wait(SECONDS)
    assert not meet.broken


def test_it_ends_after_all_of_them() -> None:
    inside = threading.Event()
    done: list[int] = []

    def late() -> None:
        assert inside.wait(SECONDS)
        done.append(threading.get_ident())

    with helped([late, late]):
        inside.set()
    assert len(done) == 2
    assert threading.get_ident() not in done


class _FailedError(Exception):
    pass


def _fail(what: str) -> None:
    raise _FailedError(what)


def test_what_one_of_them_raises_is_raised() -> None:
    done: list[int] = []
    with pytest.raises(_FailedError, match="there"), helped([partial(_fail, "there"), partial(done.append, 1)]):
        pass
    assert done == [1]


def test_what_is_raised_here_goes_first() -> None:
    done: list[int] = []
    with pytest.raises(_FailedError, match="here"), helped([partial(_fail, "there"), partial(done.append, 1)]):
        _fail("here")
    assert done == [1]


def test_there_are_fewer_where_no_more_can_be_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, done = worker_threads.start_new_thread, list[int]()

    def begin_one(*given: object) -> int:
        if done:
            raise RuntimeError("can't start new thread")
        done.append(0)
        return begin(*given)  # type: ignore[call-overload, no-any-return]  # the arguments of that function

    monkeypatch.setattr(worker_threads, "start_new_thread", begin_one)
    with helped([partial(done.append, 1), partial(done.append, 2)]):
        done.append(3)
    assert sorted(done) == [0, 1, 3]


def test_a_finished_thread_releases_its_arrays() -> None:
    array = np.zeros(10)
    seen = weakref.ref(array)
    given = [partial(array.fill, 1)]
    del array
    left: list[object] = []

    class Ended(worker_threads.Ended):
        def put(self, item: object, block: bool = True, timeout: float | None = None) -> None:
            left.append((item, seen()))

    worker_threads._help(given, Ended())
    assert left == [(None, None)]
