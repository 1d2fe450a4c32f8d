"""What the machine has room for: NumPy by hand at one size, alone and beside another process that does the same.

    python benchmarks/copies.py gemm 2048 3

prints as JSON the milliseconds of a call alone and of one beside the other, of each the least. ``run.py --only jobs`` asks for
it: where two programs that share nothing at all take as long at once as in turn, two threads of one cannot win anything either.
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
    """Milliseconds of a work.

    Attributes:
        wall: that passed.
        waited: in which this thread had work to do and no processor, because other programs had them (Linux; else 0).
        process, thread: of the processor, of all threads of this process and of this one.
    """

    wall: float
    waited: float
    process: float
    thread: float

    @property
    def busiest(self) -> float:
        """Milliseconds of the processor of the busier one of two threads."""
        return max(self.thread, self.process - self.thread)


def waited() -> float:
    """Milliseconds that this thread has stood in line for a processor since it began."""
    try:
        return int(_SCHEDULED.read_text(encoding="ascii").split()[1]) / 1e6
    except OSError:
        return 0.0


def took(work: Callable[[], object]) -> Took:
    """How long a work takes."""
    begin = time.perf_counter(), waited() / 1000, time.process_time(), time.thread_time()
    work()
    end = time.perf_counter(), waited() / 1000, time.process_time(), time.thread_time()
    return Took(*((behind - before) * 1000 for before, behind in zip(begin, end, strict=True)))


def _copy(name: str, size: int, repeat: int) -> None:
    """One of the two: tells that it is ready, and calls so often whenever it is told."""
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
    """Milliseconds of a call alone, and of one beside another process."""
    command = [sys.executable, __file__, name, str(size), str(repeat), "copy"]
    copies = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) for _ in range(2)]
    try:
        for copy in copies:
            assert copy.stdout is not None
            copy.stdout.readline()
        return min(_told([copy])[0] for copy in copies), max(_told(copies))
    finally:
        for copy in copies:
            assert copy.stdin is not None
            copy.stdin.close()
            copy.wait()


def _told(copies: list[subprocess.Popen[str]]) -> list[float]:
    """What copies measure that are told to call at once."""
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
