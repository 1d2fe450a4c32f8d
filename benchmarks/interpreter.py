"""Compares the interpreter with the compiled simulation: time and memory of each call of the examples, at their default sizes.

    python benchmarks/interpreter.py [FILE ...] [--repeat N]

Each script is run once, and the first call of each kernel is recorded. This call is then repeated compiled and interpreted,
alternately, on copies of the arguments; the time is the least of ``N`` after one warm-up call. Memory is the peak of NumPy's
and Python's allocations during an interpreted call, as a multiple of the tensors' bytes. The limits are 30 times the time, and
three times the tensors' memory, if that exceeds the on-chip memories of one block (the largest possible size of its buffers).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import runpy
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tilelang_npu import compat
from tilelang_npu.runtime.jit.jit_kernel import JITKernel

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def calls(file: Path) -> list[tuple[JITKernel, tuple[Any, ...]]]:
    """Returns the first call of each kernel of a script, with copies of its arguments."""
    found: dict[int, tuple[JITKernel, tuple[Any, ...]]] = {}
    plain = JITKernel.__call__

    def noted(self: JITKernel, *args: Any, **named: Any) -> Any:
        found.setdefault(id(self), (self, copied(self.positional(args, dict(named)))))
        return plain(self, *args, **named)

    sys.path.insert(0, str(file.parent))
    try:
        with mock.patch.object(JITKernel, "__call__", noted), contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(file), run_name="__main__")
    finally:
        sys.path.remove(str(file.parent))
    return list(found.values())


def copied(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the arguments with copies of the arrays."""
    return tuple(value.copy() if isinstance(value, np.ndarray) else value.clone() if hasattr(value, "clone") else value
                 for value in values)


def least(call: Callable[..., Any], args: tuple[Any, ...], repeat: int) -> float:
    """Returns the seconds of the fastest of some calls."""
    times = []
    for _ in range(repeat + 1):
        given = copied(args)
        started = time.perf_counter()
        call(*given)
        times.append(time.perf_counter() - started)
    return min(times[1:])


def peak(call: Callable[..., Any], args: tuple[Any, ...]) -> int:
    """Returns the peak of the bytes that a call allocates."""
    given = copied(args)
    tracemalloc.start()
    try:
        call(*given)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def on_chip(kernel: JITKernel) -> int:
    """Returns the total size of the on-chip memories of one block, in bytes."""
    return sum(memory.size * (2 if memory.core == "AIV" else 1) for memory in kernel.chip.memory.values())


def main() -> int:
    """The command; returns 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    compat.install()
    worst_time = worst_memory = 0.0
    print(f"{'kernel':44} {'compiled':>10} {'interpreted':>12} {'times':>7} {'tensors':>11} {'memory':>8}")
    for file in args.files or sorted(EXAMPLES.glob("*.py")):
        for kernel, given in calls(file.resolve()):
            compiled, interpreted = least(kernel, given, args.repeat), least(kernel.interpret, given, args.repeat)
            tensors = sum(value.nbytes for value in kernel.signature.bind(list(copied(given))).values
                          if isinstance(value, np.ndarray))
            most = peak(kernel.interpret, given)
            times, memory = interpreted / compiled, most / tensors
            worst_time = max(worst_time, times)
            if most > on_chip(kernel):
                worst_memory = max(worst_memory, memory)
            print(f"{f'{file.stem}: {kernel.name}':44} {compiled * 1e3:7.1f} ms {interpreted * 1e3:9.1f} ms {times:7.1f} "
                  f"{tensors / 1024:8.0f} KB {memory:8.2f}", flush=True)
    print(f"at most {worst_time:.1f} times as long, and {worst_memory:.2f} times the tensors' memory")
    return int(worst_time > 30 or worst_memory > 3)


if __name__ == "__main__":
    sys.exit(main())
