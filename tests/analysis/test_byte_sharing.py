"""Buffers that share bytes although there is room: the values are the same as without sharing, and no waits or bytes are
added."""

from __future__ import annotations

import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COUNT = int(os.environ.get("TILELANG_RANDOM_PLANS", "25"))
ROWS, COLUMNS = 128, 8  # all buffers are a multiple of the banks' period: their addresses do not affect times
Step = tuple[str, int, int]

KERNEL = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

def make(trips, planned, loop):
    @tilelang.jit(out_idx=[-1], target="ascendc", sanitize=True, pass_configs={{
        "tl.ascend_auto_sync": True, "tl.ascend_memory_planning": planned, "tl.disable": ["banks"]}})
    def made():
        @T.prim_func
        def main(X: T.Tensor((trips * {rows}, {columns}), "float32"), Y: T.Tensor((trips * {rows}, {columns}), "float32"),
                 O: T.Tensor((trips * {rows}, {columns}), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, _):
{outside}
                for turn in loop(trips):
{inside}
        return main
    return made()
"""


@st.composite
def programs(draw: Any) -> list[Step]:
    """Operations with different destinations; an operand is the result of an earlier operation, given by its distance."""
    kinds = st.sampled_from(["add", "mul", "relu", "less", "half"])
    return draw(st.lists(st.tuples(kinds, st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8))


def _text(program: list[Step], *, sunk: bool) -> str:
    """Returns the program as a kernel, with tiles that are allocated in the loop or outside of it."""
    tile = f'T.alloc_ub(({ROWS}, {COLUMNS}), "float32")'
    made, lines = ["x = " + tile, "y = " + tile], [f"T.copy(X[turn * {ROWS}, 0], x)", f"T.copy(Y[turn * {ROWS}, 0], y)"]
    names = ["x", "y"]
    for number, (kind, left, right) in enumerate(program):
        one, other, name = names[-1 - left % len(names)], names[-1 - right % len(names)], f"t{number}"
        made.append(f"{name} = {tile}")
        if kind == "less":  # by the largest of the row
            made.append(f'r{number} = T.alloc_ub(({ROWS}, 1), "float32")')
            lines += [f"T.reduce_max({one}, r{number}, dim=-1)", f"T.tile.sub({name}, {one}, r{number})"]
        elif kind == "half":
            made.append(f'h{number} = T.alloc_ub(({ROWS}, {COLUMNS}), "float16")')
            lines += [f'T.tile.cast(h{number}, {one}, "CAST_RINT", {ROWS * COLUMNS})',
                      f'T.tile.cast({name}, h{number}, "CAST_NONE", {ROWS * COLUMNS})']
        else:
            lines.append(f"T.tile.{kind}({name}, {one}" + (")" if kind == "relu" else f", {other})"))
        names.append(name)
    lines.append(f"T.copy({names[-1]}, O[turn * {ROWS}, 0])")
    inside = [*made, *lines] if sunk else lines
    return KERNEL.format(rows=ROWS, columns=COLUMNS, outside="\n".join(" " * 16 + line for line in ([] if sunk else made)),
                         inside="\n".join(" " * 20 + line for line in inside))


def _expected(program: list[Step], x: Any, y: Any) -> Any:
    values = [x, y]
    for kind, left, right in program:
        one, other = values[-1 - left % len(values)], values[-1 - right % len(values)]
        values.append({"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "relu": lambda a, _: np.maximum(a, 0),
                       "less": lambda a, _: a - a.max(axis=1, keepdims=True),
                       "half": lambda a, _: a.astype(np.float16).astype(np.float32)}[kind](one, other))
    return values[-1]


@settings(max_examples=COUNT, suppress_health_check=list(HealthCheck), deadline=None)
@example(program=[("add", 0, 0), ("add", 0, 0), ("relu", 2, 0)], trips=2, sunk=False, stages=2, seed=0)  # an unread result
@given(program=programs(), trips=st.integers(1, 3), sunk=st.booleans(), stages=st.integers(1, 3), seed=st.integers(0, 999))
def test_random_programs_are_as_fast_and_the_same_as_side_by_side(
        tmp_path_factory: pytest.TempPathFactory, program: list[Step], trips: int, sunk: bool, stages: int, seed: int) -> None:
    path = tmp_path_factory.mktemp("plan") / f"plan{seed}.py"
    path.write_text(_text(program, sunk=sunk))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = np.random.default_rng(seed)
    x, y = (rng.uniform(-1, 1, (trips * ROWS, COLUMNS)).astype(np.float32) for _ in range(2))
    kernels = [module.make(trips, planned, lambda n: module.T.Pipelined(n, num_stages=stages)) for planned in (True, False)]
    results = [kernel(x, y) for kernel in kernels]
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], _expected(program, x, y), rtol=1e-6, atol=1e-6)
    together, apart = (kernel.memory_report().memories[0] for kernel in kernels)
    assert together.alive <= together.used <= apart.used
    assert kernels[0].last_launch.cycles <= kernels[1].last_launch.cycles


def test_a_result_reuses_the_bytes_of_its_last_input() -> None:
    """A product and its exponential, once in each block: both use the same 16 384 bytes of UB of a Vector core."""
    @T.prim_func
    def main(A: T.Tensor((512, 128), "float16"), B: T.Tensor((128, 512), "float16"), C: T.Tensor((512, 512), "float32"),
             D: T.Tensor((512, 512), "float32")):
        with T.Kernel(32, is_npu=True) as (cid, _):
            row, column = cid // 4 * 64, cid % 4 * 128
            a = T.alloc_shared((64, 128), "float16")
            b = T.alloc_shared((128, 128), "float16")
            c = T.alloc_fragment((64, 128), "float32")
            d = T.alloc_fragment((64, 128), "float32")
            T.copy(A[row, 0], a)
            T.copy(B[0, column], b)
            T.gemm(a, b, c, initC=True)
            T.exp(c, d)
            T.copy(c, C[row, column])
            T.copy(d, D[row, column])

    kernel = tilelang.compile(main, target="npuir", sanitize=True)
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-0.5, 0.5, shape).astype(np.float16) for shape in ((512, 128), (128, 512)))
    c, d = np.zeros((2, 512, 512), np.float32)
    kernel(a, b, c, d)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(d, np.exp(c), rtol=1e-5)
    (ub,) = [memory for memory in kernel.memory_report().memories if memory.name == "UB"]
    assert ub.used == 64 // 2 * 128 * 4


def test_temporaries_of_a_statement_and_of_the_next_are_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two slots of packed and of unpacked weights, one temporary for both halves, scratch in the gap of the banks."""
    monkeypatch.syspath_prepend(EXAMPLES)
    kernel = importlib.import_module("w4a8_gemm").w4a8_gemm(256, 256, 1024)
    (ub,) = [memory for memory in kernel.memory_report().memories if memory.name == "UB"]
    assert ub.used == 2 * 64 * 128 + 2 * 64 * 256 + 64 * 128 + 256


def test_two_accumulators_in_turn_over_a_length_of_run_time_fit() -> None:
    """Each accumulator fills L0C, and is cleared in each iteration of the outer loop."""
    length = T.dynamic("length")

    @T.prim_func
    def main(A: T.Tensor((256, length), "float16"), B: T.Tensor((length, 256), "float16"), C: T.Tensor((256, 256), "float32"),
             D: T.Tensor((256, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 256), "float16")
            c = T.alloc_fragment((128, 256), "float32")
            d = T.alloc_fragment((128, 256), "float32")
            for turn in T.serial(2):
                for k in T.serial(length // 64):
                    T.copy(A[turn * 128, k * 64], a)
                    T.copy(B[k * 64, 0], b)
                    T.gemm(a, b, c, initC=(k == 0))
                T.copy(c, C[turn * 128, 0])
                for k in T.serial(length // 64):
                    T.copy(A[turn * 128, k * 64], a)
                    T.copy(B[k * 64, 0], b)
                    T.gemm(a, b, d, initC=(k == 0))
                T.copy(d, D[turn * 128, 0])

    kernel = tilelang.compile(main, target="npuir", sanitize=True)
    rng = np.random.default_rng(0)
    for size in (64, 256):
        a, b = (rng.uniform(-0.5, 0.5, shape).astype(np.float16) for shape in ((256, size), (size, 256)))
        c, d = np.zeros((2, 256, 256), np.float32)
        kernel(a, b, c, d)
        for product in (c, d):
            np.testing.assert_allclose(product, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
    assert {memory.name: memory.used for memory in kernel.memory_report().memories}["L0C"] == 128 * 256 * 4
