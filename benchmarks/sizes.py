"""Measures time and peak memory of one kernel at one size, in a separate process.

    python benchmarks/sizes.py gemm 2048

Prints both as JSON; ``run.py --only sizes`` runs it for all kernels at all sizes. The peak is that of the whole process from
the creation of the inputs to the end of the run, with cycles and hazards (on Linux).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent))

import kernels

os.environ["TILELANG_NPU_JOBS"] = "1"  # processor time sums over threads
SIZES = (512, 1024, 2048, 4096, 8192)
LONG = 5.0
"""The seconds of measured calls after which no further call is made."""
MIB = 1 << 20


def least(work: Callable[[], object]) -> float:
    """Returns the processor time of a call in milliseconds: the least of up to three short calls after a warm-up call."""
    times: list[float] = []
    while len(times) < 4 and sum(times) < LONG:
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) * 1000


def forget_peak() -> None:
    """Resets the system's peak memory of this process."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak() -> float:
    """Returns the peak memory in MiB since ``forget_peak``."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def measured(name: str, size: int) -> dict[str, float]:
    """Returns the milliseconds of a run with cycles and hazards and of the NumPy code, and the MiB of the peak and of the
    inputs."""
    case = kernels.CASES[name]
    inputs, kernel = case.inputs(np.random.default_rng(0), size), case.kernel(size)

    def launch() -> None:
        kernel(*inputs)
        assert kernel.last_launch.time_us + len(kernel.last_launch.hazards)

    linux = sys.platform == "linux"
    with threadpool_limits(1, "blas"):
        if linux:
            forget_peak()
        ours = least(launch)
        most = peak() if linux else float("nan")
        by_hand = least(lambda: case.by_hand(*inputs))
    return {"ours": ours, "by_hand": by_hand, "peak": most, "inputs": sum(each.nbytes for each in inputs) / MIB}


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))
