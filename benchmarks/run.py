"""Measures the speed of the simulation, compared with hand-written NumPy and the interpreters of other tile languages.

    python benchmarks/run.py [--only gemm,linear,w4a8,softmax,rms_norm,flash,scalar,whole,sizes,sanitize,jobs,threads,
                             import,compile,text] [--json FILE] [--repeat 5]

Every figure is the median of the repeats with one BLAS thread. A kernel that is compared with NumPy runs its blocks on one
thread, and its calls alternate with NumPy's. The time is the processor time of all threads of the process; ``jobs``,
``threads``, ``import`` and ``text`` measure wall-clock time. The relevant column is the ratio to NumPy in the same run, which
does not depend on the speed of the machine. The NumPy code computes the same tiles in the same order. Triton's interpreter and
Pallas' TPU interpreter are measured if they are installed.

- ``sanitize``: each kernel at two sizes without and with the sanitizer, and the ratio of both; for Pallas, without and with
  ``detect_races``.
- ``whole``: GEMMs of 1024 to 8192, on one thread and on two, compared with the whole product by ``numpy.matmul`` in float32
  with as many BLAS threads, the conversions from and to float16 included; wall-clock time, the fastest call of each.
- ``scalar``: a convolution as loops over single elements, with the time of the first call, which includes preparation.
- ``sizes``: each kernel from 512 to 8192 rows, each in its own process: the ratio to NumPy, the time per unit of work relative
  to that at the smallest size, and the peak memory.
- ``jobs``: each kernel with one thread and with two, with values, cycles and hazards; the fastest call of each. A note has
  three figures: the processor time of the busier one of the two threads, relative to that of one thread alone (it is small if
  the threads wait for each other); the time of two processes that run the NumPy code at once, relative to running them in turn,
  as a reference for the machine; and the share of the time in which other programs occupied all processors (on Linux), which
  should be 0.
- ``threads``: two calls of one kernel, in turn and with two threads, and the ratio of both.
- ``compile``: a product with 50 tilings, each compiled once, and unrolled kernels of 500 to 5000 operations, with the time for
  an op of the final module and its ratio to that of the smallest kernel.
- ``text``: reads, verifies and writes 10 000 ops of HIVM, and as many of arith and memref, the latter also with xDSL's own
  parser, verifier and printer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent))

import copies
import developer
import kernels
import peers
import sizes

BENCHMARKS = ("gemm", "linear", "w4a8", "softmax", "rms_norm", "flash", "scalar", "whole", "sizes", "sanitize", "jobs",
              "threads", "import", "compile", "text")
SIZES = (1024, 4096)
"""Sizes at which the sanitizer is measured; the other benchmarks use the first."""
CHANNELS = 64
"""The size of the convolution."""
WHOLE = (1024, 2048, 4096, 8192)
"""Sizes of the GEMMs that are compared with one call of ``numpy.matmul``."""
JOBS = (2048, 4096)
"""Sizes at which one thread is compared with two."""
OPS = (500, 1000, 2000, 5000)
"""Operations of the unrolled kernels whose compilation is timed."""
DEVELOPER = "developer"
"""A further value of ``--only``, which measures the kernels and not the simulation: it prints a table with the cycles of the
Developer and the Expert version of each."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        ratio: to NumPy in the same benchmark; for ``sanitize`` to the run without the sanitizer; for ``threads`` to the calls
            in turn; for ``compile`` the time per op relative to that in the smallest kernel; 0 if there is no reference.
    """

    benchmark: str
    subject: str
    milliseconds: float
    ratio: float = 0.0
    note: str = ""


def median(work: Callable[[], object], repeat: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Returns the milliseconds of a call: the median of several calls after a warm-up call."""
    work()
    times = []
    for _ in range(repeat):
        start = clock()
        work()
        times.append((clock() - start) * 1000)
    return statistics.median(times)


def in_turns(works: Sequence[Callable[[], object]], repeat: int) -> list[float]:
    """Calls functions alternately, and returns the median processor time of each in milliseconds, after a warm-up call."""
    times: list[list[float]] = [[] for _ in works]
    for number in range(repeat + 1):
        for work, kept in zip(works, times, strict=True):
            start = time.process_time()
            work()
            if number:
                kept.append((time.process_time() - start) * 1000)
    return [statistics.median(kept) for kept in times]


@contextmanager
def threads_for_blocks(count: int) -> Iterator[None]:
    """Context in which the blocks of a launch run on ``count`` threads."""
    before = os.environ.get("TILELANG_NPU_JOBS")
    os.environ["TILELANG_NPU_JOBS"] = str(count)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TILELANG_NPU_JOBS"]
        else:
            os.environ["TILELANG_NPU_JOBS"] = before


def compared(name: str, repeat: int) -> Iterator[Row]:
    """Yields the rows of a kernel: this package, NumPy, and the installed peers."""
    case = kernels.CASES[name]
    inputs = case.inputs(np.random.default_rng(0), SIZES[0])
    with threadpool_limits(1, "blas"), threads_for_blocks(1):
        kernel = case.kernel(SIZES[0])
        np.testing.assert_allclose(
            np.asarray(kernel(*inputs), np.float32), np.asarray(case.by_hand(*inputs), np.float32), rtol=2e-2, atol=2e-2
        )

        def launch() -> Any:
            kernel(*inputs)
            return kernel.last_launch

        subjects: dict[str, Callable[[], object]] = {
            "NumPy by hand": lambda: case.by_hand(*inputs),
            "tilelang_npu": launch,
            "  and cycles": lambda: launch().time_us,
            "  and cycles, hazards": lambda: (last := launch()).time_us + len(last.hazards),
        }
        took = in_turns(list(subjects.values()), repeat)
        floor, ours = took[0], took[-1]
        for subject, time_taken in zip(subjects, took, strict=True):
            note = f"modelled {launch().time_us:.1f} us on {kernel.chip.name}" if subject == "tilelang_npu" else ""
            yield Row(name, subject, time_taken, time_taken / floor, note)
        for peer in peers.of(name):
            if peer.work is None:
                yield Row(name, peer.name, float("nan"), note=peer.missing)
            else:
                work = peer.work(*inputs)
                theirs = median(work, max(1, repeat // 2), time.process_time)
                yield Row(name, peer.name, theirs, theirs / floor, f"{theirs / ours:.1f} times ours with cycles and hazards")


def growing() -> Iterator[Row]:
    """Yields the rows of each kernel at all sizes, with cycles and hazards."""
    for name, case in kernels.CASES.items():
        first = 0.0
        for size in sizes.SIZES:
            done = subprocess.run([sys.executable, sizes.__file__, name, str(size)], check=True, capture_output=True, text=True)
            found = json.loads(done.stdout)
            each = found["ours"] / size ** case.grows
            first = first or each
            yield Row("sizes", f"{name} {size}", found["ours"], found["ours"] / found["by_hand"],
                      f"{each / first:.2f} of the time for a unit of work at {sizes.SIZES[0]}; "
                      f"peak {found['peak']:.0f} MiB, {found['peak'] - found['inputs']:.0f} above its inputs")


def scalar(repeat: int) -> Iterator[Row]:
    """A convolution as loops over single elements."""
    case, repeat = kernels.SCALAR, max(2, repeat // 2)
    inputs = case.inputs(np.random.default_rng(0), CHANNELS)
    kernel = case.kernel(CHANNELS)
    products = inputs[1].size * 56 * 56

    def launch() -> None:
        kernel(*inputs)
        assert kernel.last_launch.time_us + len(kernel.last_launch.hazards)

    def row(subject: str, took: float, floor: float) -> Row:
        return Row("scalar", subject, took, took / floor, f"{products / took / 1000:.0f} million products a second")

    with threadpool_limits(1, "blas"):
        floor = median(lambda: case.by_hand(*inputs), repeat, time.process_time)
        yield row("NumPy, all pixels at once", floor, floor)
        start = time.process_time()
        launch()
        yield row("the first call, cycles, hazards", (time.process_time() - start) * 1000, floor)
        np.testing.assert_array_equal(kernel(*inputs), case.by_hand(*inputs))
        yield row("  and each one after it", median(launch, repeat, time.process_time), floor)


def whole(repeat: int) -> Iterator[Row]:
    """Yields the rows of GEMMs and of ``numpy.matmul`` of the whole matrices."""
    case = kernels.CASES["gemm"]

    def matmul(a: Any, b: Any) -> Any:
        return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)

    for size in WHOLE:
        kernel, inputs = case.kernel(size), case.inputs(np.random.default_rng(0), size)
        for threads in (1, 2):
            with threadpool_limits(threads, "blas"), threads_for_blocks(threads):
                floor, ours = _least(partial(matmul, *inputs), partial(kernel, *inputs), repeat if size < 4096 else 2)
            notes = [f"{2e-6 * size ** 3 / took:.0f} GFLOP/s" for took in (floor, ours)]
            yield Row("whole", f"numpy.matmul {size}, threads: {threads}", floor, 1.0, notes[0])
            yield Row("whole", "  tilelang_npu", ours, ours / floor, notes[1])


def jobs(repeat: int) -> Iterator[Row]:
    """Yields the rows of each kernel with one thread and with two; for reference, two processes run the NumPy code."""

    def by(count: int, kernel: Any, inputs: tuple[Any, ...]) -> None:
        with threads_for_blocks(count):
            kernel(*inputs)
        assert kernel.last_launch.time_us + len(kernel.last_launch.hazards)

    for name, case in kernels.CASES.items():
        for size in JOBS:
            kernel, inputs = case.kernel(size), case.inputs(np.random.default_rng(0), size)
            one, two = _least_of([partial(by, count, kernel, inputs) for count in (1, 2)], repeat)
            del inputs
            alone, at_once = copies.measured(name, size, repeat)
            others = max(call.waited / call.wall for call in (one, two))
            yield Row("jobs", f"{name} {size}", one.wall, 1.0)
            yield Row("jobs", "  by two threads", two.wall, two.wall / one.wall,
                      f"{two.busiest / one.busiest:.2f} by the processors' time; "
                      f"two programs of NumPy {at_once / alone / 2:.2f}; {others:.0%} lost to others")


def _least_of(works: Sequence[Callable[[], object]], repeat: int) -> list[copies.Took]:
    """Calls functions alternately, at least ``repeat`` times and for a second, and returns the fastest call of each."""
    for _ in range(2):  # a small launch finds its batches of blocks in the second call
        for work in works:
            work()
    found: list[list[copies.Took]] = [[] for _ in works]
    until = time.perf_counter() + 1
    while len(found[-1]) < repeat or time.perf_counter() < until:
        for work, calls in zip(works, found, strict=True):
            calls.append(copies.took(work))
    return [min(calls, key=lambda call: call.wall) for calls in found]


def sanitizing(repeat: int) -> Iterator[Row]:
    """Yields the rows of kernels without and with ``sanitize=True``."""
    for name, case in kernels.CASES.items():
        for size in SIZES:
            inputs = case.inputs(np.random.default_rng(0), size)
            kernel = case.kernel(size)
            with threadpool_limits(1, "blas"):
                yield from _pair(f"{name} {size}", *(_called(kernel, inputs, sanitize=on) for on in (False, True)),
                                 repeat if size == SIZES[0] else max(2, repeat // 2))
        for peer in peers.of(name):
            if peer.finds_races and peer.work is None:
                yield Row("sanitize", f"{name}, {peer.name}", float("nan"), note=peer.missing)
            elif peer.work is not None and peer.races is not None:
                inputs = case.inputs(np.random.default_rng(0), SIZES[0])
                yield from _pair(f"{name}, {peer.name}", peer.work(*inputs), peer.races(*inputs), max(1, repeat // 2))


def _called(kernel: Any, inputs: tuple[Any, ...], *, sanitize: bool) -> Callable[[], object]:
    def call() -> object:
        kernel.sanitize = sanitize
        return kernel(*inputs)

    return call


def _pair(name: str, plain: Callable[[], object], sanitized: Callable[[], object], repeat: int) -> Iterator[Row]:
    """Yields the rows of a run without and with the sanitizer."""
    without, checked = _least(plain, sanitized, repeat, time.process_time)
    yield Row("sanitize", name, without, 1.0)
    yield Row("sanitize", "  and races", checked, checked / without)


def threading(repeat: int) -> Iterator[Row]:
    """Yields the rows of two calls of one kernel on different inputs, one after the other and at the same time."""
    factors = [np.random.default_rng(number).standard_normal((512, 512), np.float32) for number in range(2)]
    with ThreadPoolExecutor(2) as pool:
        with threadpool_limits(1, "blas"):
            given = [(factor,) for factor in factors]
            serial, parallel = _least(partial(_in_turn, _products, given), partial(_at_once, _products, given, pool), repeat)
        yield Row("threads", "NumPy's products, twice 30", serial, 1.0)
        yield Row("threads", "  by two threads", parallel, parallel / serial, "reference for the machine")
        for name, case in kernels.CASES.items():
            kernel = case.kernel(SIZES[0])
            inputs = [case.inputs(np.random.default_rng(number), SIZES[0]) for number in range(2)]
            serial, parallel = _least(partial(_in_turn, kernel, inputs), partial(_at_once, kernel, inputs, pool), repeat)
            yield Row("threads", f"{name}, two calls", serial, 1.0)
            yield Row("threads", "  by two threads", parallel, parallel / serial)


def _products(factor: Any) -> None:
    for _ in range(30):
        factor @ factor


def _in_turn(kernel: Any, inputs: list[tuple[Any, ...]]) -> None:
    for given in inputs:
        kernel(*given)


def _at_once(kernel: Any, inputs: list[tuple[Any, ...]], pool: ThreadPoolExecutor) -> None:
    for done in [pool.submit(kernel, *given) for given in inputs]:
        done.result()


def _least(first: Callable[[], object], second: Callable[[], object], repeat: int,
           clock: Callable[[], float] = time.perf_counter) -> tuple[float, float]:
    """Calls both functions alternately, so that other load affects both alike; returns the least milliseconds of each."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(repeat + 1):
        for work, kept in zip((first, second), times, strict=True):
            start = clock()
            work()
            if number:
                kept.append((clock() - start) * 1000)
    return min(times[0]), min(times[1])


def importing(repeat: int) -> Iterator[Row]:
    """Yields the times of ``import numpy`` and ``import tilelang_npu``, each the least of several fresh interpreters."""

    def seconds(statement: str) -> float:
        program = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
        return float(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)

    subjects = {"import numpy": "import numpy", "+ tilelang_npu": "import numpy, tilelang_npu",
                "+ jit and language": "import numpy, tilelang_npu as t, tilelang_npu.language; t.jit"}
    rounds = [{name: seconds(work) * 1000 for name, work in subjects.items()} for _ in range(max(repeat, 5))]
    figures = {name: min(figure[name] for figure in rounds) for name in subjects}
    base = figures["import numpy"]
    for name, value in figures.items():
        yield Row("import", name, value, note="" if value is base else f"{value - base:.0f} ms above numpy")


def compiling(repeat: int) -> Iterator[Row]:
    """Yields the processor times from the factory's call to a kernel that is ready to run, without imports: compiled, and from
    the cache; then the times of kernels with more and more ops.
    """
    import tilelang_npu
    from tilelang_npu.runtime.cache import entries

    tilelang_npu.disable_cache()

    def times(kernel: Callable[[], Any]) -> tuple[float, float]:
        def once() -> object:
            return kernel().program

        def cold() -> object:
            entries._State.memory.clear()
            return once()

        return median(cold, repeat, time.process_time), median(once, repeat, time.process_time)

    for name in ("gemm", "flash"):
        figures = times(lambda name=name: kernels.CASES[name].kernel(SIZES[0]))
        for how, figure in zip(("lowered", "cached"), figures, strict=True):
            yield Row("compile", f"{name}, {how}", figure)
    yield _tuned(repeat)
    first = 0.0
    for ops in OPS:
        took = times(lambda ops=ops: kernels.chain(ops))[0]
        count = sum(1 for _ in kernels.chain(ops)._lowering.final.walk())
        first = first or took / count
        yield Row("compile", f"{ops} unrolled operations", took, took / count / first,
                  f"{took / count:.2f} ms for each of {count} ops of the final module")
    tilelang_npu.enable_cache()


def _tuned(repeat: int) -> Row:
    """Yields the time for each of 50 tilings that are compiled one after the other, as a tuner does."""
    from tilelang_npu.runtime.cache import entries

    def all_of_them() -> None:
        entries._State.memory.clear()
        for tiles in kernels.TILINGS:
            assert kernels.tiled(*tiles).program

    took = median(all_of_them, repeat, time.process_time)
    return Row("compile", f"{len(kernels.TILINGS)} tilings of a product", took,
               note=f"{took / len(kernels.TILINGS):.0f} ms for each")


TEXT_OPS = 10_000
"""Ops of the modules that ``text`` reads and writes."""


def texts(repeat: int) -> Iterator[Row]:
    """Yields the times of reading with verification, and of writing."""
    from io import StringIO

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.parser import Parser
    from xdsl.printer import Printer

    from tilelang_npu.dialects.context import make_context
    from tilelang_npu.dialects.text import parse_module, print_module

    buffer = "memref<16x128xf32, #hivm.address_space<ub>>"
    add = f"    hivm.hir.vadd ins(%x, %y : {buffer}, {buffer}) outs(%x : {buffer})\n"
    hivm = f"func.func @k(%x: {buffer}, %y: {buffer}) {{\n{add * TEXT_OPS}    return\n}}\n"
    lines = [f"    %a{i} = arith.addi %i, %i : index\n    %v{i} = memref.load %m[%a{i}] : memref<?xi32>\n"
             for i in range(TEXT_OPS // 2)]
    common = f"func.func @k(%i: index, %m: memref<?xi32>) {{\n{''.join(lines)}    return\n}}\n"

    def xdsl_reads() -> ModuleOp:
        module = Parser(make_context(), common).parse_module()
        module.verify()
        return module

    def xdsl_writes() -> None:
        Printer(StringIO()).print_op(theirs)

    theirs = xdsl_reads()
    reading, writing = median(xdsl_reads, repeat), median(xdsl_writes, repeat)
    yield Row("text", "xDSL reads arith and memref", reading, 1.0)
    yield Row("text", "xDSL writes them", writing, 1.0)
    for name, text in (("arith and memref", common), ("HIVM", hivm)):
        read, written = median(partial(parse_module, text), repeat), median(partial(print_module, parse_module(text)), repeat)
        yield Row("text", f"read {name}", read, read / reading, f"{read * 1000 / TEXT_OPS:.0f} us per op")
        yield Row("text", f"write {name}", written, written / writing, f"{written * 1000 / TEXT_OPS:.0f} us per op")


def rows(chosen: list[str], repeat: int) -> Iterator[Row]:
    """Yields all rows as they are measured."""
    for name in chosen:
        if name == "sanitize":
            yield from sanitizing(repeat)
        elif name == "scalar":
            yield from scalar(repeat)
        elif name == "whole":
            yield from whole(repeat)
        elif name == "sizes":
            yield from growing()
        elif name == "jobs":
            yield from jobs(repeat)
        elif name == "threads":
            yield from threading(repeat)
        elif name == "import":
            yield from importing(repeat)
        elif name == "compile":
            yield from compiling(repeat)
        elif name == "text":
            yield from texts(repeat)
        else:
            yield from compared(name, repeat)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default=",".join(BENCHMARKS), help="comma-separated; default all: %(default)s")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    chosen = args.only.split(",")
    if chosen == [DEVELOPER]:
        for line in developer.table():
            print(line, flush=True)
        return 0
    unknown = sorted(set(chosen) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    done = []
    print(f"{'benchmark':<10} {'subject':<34} {'ms':>10} {'ratio':>9}  note")
    for row in rows(chosen, args.repeat):
        done.append(row)
        ratio = f"{row.ratio:9.2f}" if row.ratio else " " * 9
        print(f"{row.benchmark:<10} {row.subject:<34} {row.milliseconds:10.2f} {ratio}  {row.note}".rstrip(), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps([asdict(row) for row in done], indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
