"""Simulating must stay near the arithmetic itself: values and cycles against NumPy loops over the same tiles."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator import Program, simulate
from tilelang_npu.simulator.program import one_blas_thread


def best(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of the fastest of some runs."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def test_gemm_takes_at_most_two_and_a_half_numpy_loops(rng: np.random.Generator) -> None:
    size = 512
    a, b = rng.standard_normal((2, size, size)).astype(np.float16)
    c = np.zeros((size, size), np.float16)

    def tiled() -> None:
        with one_blas_thread():
            for i in range(0, size, 128):
                for j in range(0, size, 128):
                    total = np.zeros((128, 128), np.float32)
                    for k in range(0, size, 64):
                        total += a[i:i + 128, k:k + 64].astype(np.float32) @ b[k:k + 64, j:j + 128].astype(np.float32)
                    c[i:i + 128, j:j + 128] = total

    program = Program(parse_module(texts.gemm(size, size, size)))
    assert best(lambda: simulate(program, [a, b, c], blocks=16).time_us) < 2.5 * best(tiled)


def test_softmax_takes_at_most_four_numpy_loops(rng: np.random.Generator) -> None:
    x = rng.standard_normal((1024, 1024)).astype(np.float32)
    y = np.zeros_like(x)

    def tiled() -> None:
        for row in range(0, 1024, 8):
            part = x[row:row + 8]
            e = np.exp(part - part.max(axis=1, keepdims=True))
            y[row:row + 8] = e / e.sum(axis=1, keepdims=True)

    program = Program(parse_module(texts.row_softmax(1024, 8)))
    assert best(lambda: simulate(program, [x, y], blocks=128).time_us) < 4 * best(tiled)


def test_compiling_is_quick() -> None:
    module = parse_module(texts.gemm(1024, 1024, 1024))
    assert best(lambda: Program(module)) < 0.06


def test_timing_and_hazards_are_linear(rng: np.random.Generator) -> None:
    """Four times the iterations take about four times as long, not sixteen."""
    x = rng.standard_normal((8 * 512, 64)).astype(np.float32)
    y = np.zeros_like(x)

    def seconds(tiles: int) -> float:
        program = Program(parse_module(texts.row_softmax(64, 8, tiles)))
        return best(lambda: simulate(program, [x[:8 * tiles], y[:8 * tiles]], blocks=1, hazards=True).time_us, 3)

    assert seconds(512) < 8 * seconds(128)
