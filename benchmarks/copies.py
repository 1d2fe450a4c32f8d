"""Measures whether two processes on this machine run as fast as one: NumPy code at one size, alone and in two processes at
once.

    python benchmarks/copies.py gemm 2048 3

prints as JSON the milliseconds of the fastest call in one process alone, and in one of two simultaneous processes. ``run.py
--only jobs`` uses it as a reference: if two independent programs take as long at once as in turn, two threads cannot be faster
either.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

_SCHEDULED = Path("/proc/thread-self/schedstat")


@dataclass(frozen=True)
class Took:
    """Times of a function call, in milliseconds.

    Attributes:
        wall: wall-clock time.
        waited: time in which this thread was ready to run and had no processor, because of other programs (Linux; else 0).
        process, thread: processor time of all threads of this process, and of this thread.
    """

    wall: float
    waited: float
    process: float
    thread: float

    @property
    def busiest(self) -> float:
        """The processor time of the busier one of two threads, in milliseconds."""
        return max(self.thread, self.process - self.thread)


def waited() -> float:
    """Returns the milliseconds for which this thread has waited for a processor since it began."""
    try:
        return int(_SCHEDULED.read_text(encoding="ascii").split()[1]) / 1e6
    except OSError:
        return 0.0


def took(work: Callable[[], object]) -> Took:
    """Calls ``work`` and returns its times."""
    begin = time.perf_counter(), waited() / 1000, time.process_time(), time.thread_time()
    work()
    end = time.perf_counter(), waited() / 1000, time.process_time(), time.thread_time()
    return Took(*((after - before) * 1000 for before, after in zip(begin, end, strict=True)))


def _copy(name: str, size: int, repeat: int) -> None:
    """The loop of a measuring process: prints "ready"; for each line on stdin, calls ``repeat`` times and prints the least
    time."""
    import kernels
    import numpy as np
    from threadpoolctl import threadpool_limits

    case = kernels.CASES[name]
    inputs = case.inputs(np.random.default_rng(0), size)
    with threadpool_limits(1, "blas"):
        case.by_hand(*inputs)
        print("ready", flush=True)
        for _ in sys.stdin:
            until = time.perf_counter() + 1
            calls: list[float] = []
            while len(calls) < repeat or time.perf_counter() < until:
                calls.append(took(lambda: case.by_hand(*inputs)).wall)
            print(min(calls), flush=True)


def measured(name: str, size: int, repeat: int) -> tuple[float, float]:
    """Returns the milliseconds of a call in one process alone, and in one of two simultaneous processes."""
    command = [sys.executable, __file__, name, str(size), str(repeat), "copy"]
    copies = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) for _ in range(2)]
    try:
        for copy in copies:
            assert copy.stdout is not None
            copy.stdout.readline()
        return min(_times_at_once([copy])[0] for copy in copies), max(_times_at_once(copies))
    finally:
        for copy in copies:
            assert copy.stdin is not None
            copy.stdin.close()
            copy.wait()


def _times_at_once(copies: list[subprocess.Popen[str]]) -> list[float]:
    """Lets the processes measure at the same time, and returns their times in milliseconds."""
    for copy in copies:
        assert copy.stdin is not None
        copy.stdin.write("go\n")
        copy.stdin.flush()
    found = []
    for copy in copies:
        assert copy.stdout is not None
        found.append(float(copy.stdout.readline()))
    return found


if __name__ == "__main__":
    os.environ["TILELANG_NPU_JOBS"] = "1"
    if sys.argv[4:]:
        _copy(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        print(json.dumps(measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
