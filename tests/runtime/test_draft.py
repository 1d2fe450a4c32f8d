"""Drafts: equal kernels have equal keys, a draft can be sent to another process, and its result is a time or a reason."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from runtime.tuned_rows import SIZE, doubled
from tilelang_npu import TileError
from tilelang_npu.runtime.kernel.draft import Draft, Timing, failure, time_draft, time_limit


def draft(tile: int) -> Draft:
    return doubled.draft(SIZE, tile=tile)


def test_equal_kernels_have_one_key_and_others_another(monkeypatch: pytest.MonkeyPatch) -> None:
    assert draft(1024).key == draft(1024).key
    assert draft(1024).key != draft(512).key
    before = draft(1024).key
    monkeypatch.setenv("TILELANG_NPU_CHIP", "Ascend910B4")
    assert draft(1024).key != before


def test_a_draft_that_has_travelled_takes_the_same_time() -> None:
    made = draft(1024)
    trace = doubled.compile(SIZE, tile=1024).trace()
    assert trace is not None
    assert time_draft(made, 60) == time_draft(pickle.loads(pickle.dumps(made)), 60) == Timing(trace.time_us)


def test_the_environment_of_the_caller_is_settled_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_CHIP", "Ascend910B4")
    made = draft(1024)
    monkeypatch.delenv("TILELANG_NPU_CHIP")
    assert made.compile().chip.name == "Ascend910B4"


def test_what_does_not_work_is_a_reason_in_a_line() -> None:
    assert time_draft(draft(65536), 60).code == "T104"
    assert not time_draft(draft(65536), 60).works
    assert failure(TileError("no\nfit", code="T104")) == Timing(code="T104", reason="no\nfit")
    assert str(failure(ValueError("\nfirst\nsecond"))) == "ValueError: first"
    assert str(Timing(code="T104", reason="no")) == "T104: no"


def test_time_is_up_where_it_is_and_nowhere_else() -> None:
    started = time.monotonic()
    with pytest.raises(TimeoutError, match=r"longer than 0\.05 s"), time_limit(0.05):
        time.sleep(30)
    assert time.monotonic() - started < 10
    with time_limit(0.05):
        pass
    time.sleep(0.1)  # an alarm that is left would end this


def test_time_is_up_in_a_thread_and_without_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(seconds: float) -> str:
        try:
            with time_limit(seconds):
                for _ in range(1000):
                    time.sleep(0.01)
        except TimeoutError as error:
            return f"{type(error).__name__}: {error}"
        return "in time"

    with ThreadPoolExecutor(2) as pool:  # each thread has a limit of its own
        assert [*pool.map(limited, [0.05, 0.1])] == ["TimeoutError: longer than 0.05 s", "TimeoutError: longer than 0.1 s"]

        def short(_: int) -> str:
            with time_limit(0.05):
                pass
            for _ in range(20):
                time.sleep(0.01)
            return "in time"

        assert [*pool.map(short, range(2))] == ["in time"] * 2
    monkeypatch.delattr(signal, "SIGALRM", raising=False)  # as on Windows
    assert limited(0.05) == "TimeoutError: longer than 0.05 s"


PROFILED = """
import sys, threading, time
from tilelang_npu.runtime.kernel.draft import time_limit

def limited(seconds):
    try:
        with time_limit(seconds):
            time.sleep(0.05)
    except TimeoutError:
        pass

for seconds in (60.0, 0.01):  # in time, and not
    thread = threading.Thread(target=limited, args=(seconds,))
    thread.start()
    thread.join()

def called():
    return sum(range(3))

sys.setprofile(lambda *_: None)
print([called() for _ in range(3)])
"""


def test_code_can_be_profiled_after_a_limit_in_a_thread() -> None:
    """CPython 3.11 hangs in a profiled function if an exception for a thread was set to none."""
    done = subprocess.run([sys.executable, "-c", PROFILED], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[3, 3, 3]\n"


def test_an_exception_that_comes_too_late_hits_nothing_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is up while the body ends: each limit either raises or does not, and nothing is raised after it."""
    monkeypatch.delattr(signal, "SIGALRM", raising=False)
    outcomes = []
    for _ in range(200):
        try:
            with time_limit(0.001):
                time.sleep(0.001)
        except TimeoutError:
            outcomes.append("time is up")
        else:
            outcomes.append("in time")
        time.sleep(0.0005)
    assert len(outcomes) == 200
