"""The interpreter's switch interval: short while several threads compute a launch, and restored when the last launch ends."""

from __future__ import annotations

import sys
import threading

import pytest

from tilelang_npu.simulator.machine.worker_threads import SOON, short_switch_interval


def test_launches_at_once_leave_the_interval_as_it_was() -> None:
    before = sys.getswitchinterval()
    inside, leave = threading.Barrier(3), threading.Event()

    def launch() -> None:
        with short_switch_interval():
            inside.wait()
            leave.wait()

    threads = [threading.Thread(target=launch) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait()
    with short_switch_interval():
        assert sys.getswitchinterval() == pytest.approx(SOON, abs=1e-6)
    assert sys.getswitchinterval() == pytest.approx(SOON, abs=1e-6)  # two are still inside
    leave.set()
    for thread in threads:
        thread.join()
    assert sys.getswitchinterval() == before


def test_an_error_leaves_the_interval_as_it_was() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(OSError, match="full"), short_switch_interval():
        raise OSError("full")
    assert sys.getswitchinterval() == before
