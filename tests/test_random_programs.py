"""Random kernels against NumPy: elementwise, reductions and gemm, serial and pipelined, in any order of the blocks.

Each example is a script as a user writes it, in a separate file. Its vector work is written in one of three styles; the
reference is computed from the same list of steps on whole arrays and knows nothing of tiles.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilelang_npu import simulator
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator.run import batched_execution

UNARY = {"abs": np.abs, "relu": lambda a: np.maximum(a, 0), "bounded_exp": lambda a: np.exp(np.minimum(a, 1.0))}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
SYMBOL = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "max": "T.max({}, {})", "min": "T.min({}, {})"}
REDUCE = {"reduce_sum": np.sum, "reduce_max": np.max, "reduce_min": np.min}

Step = tuple[str, int, int, int | float]


@st.composite
def steps(draw: Any, count: int = 3, *, reductions: bool = True) -> list[Step]:
    """A list of (operation, destination, source, second source or scalar) over ``count`` tiles."""
    tile = st.integers(0, count - 1)
    made: list[Step] = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from([*UNARY, *BINARY, *BINARY, *(REDUCE if reductions else ())]))
        second: int | float = draw(tile)
        if kind in BINARY and draw(st.booleans()):
            second = float(draw(st.sampled_from([-1.5, 0.25, 2.0])))
        made.append((kind, draw(tile), draw(tile), second))
    return made


def _line(step: Step, style: str, rows: int, columns: int) -> list[str]:
    kind, target, source, second = step
    if kind in REDUCE:
        return [f"T.{kind}(t{source}, r, dim=-1)", f"T.vsub(t{source}, r, t{target})"]
    if kind == "bounded_exp":
        return [f"T.vmin(t{source}, 1.0, t{target})", f"T.vexp(t{target}, t{target})"]
    if kind in UNARY:
        return [f"T.tile.{kind}(t{target}, t{source})" if style == "tile" else f"T.v{kind}(t{source}, t{target})"]
    other = f"t{second}" if isinstance(second, int) else repr(second)
    if style == "tile":
        return [f"T.tile.{kind}(t{target}, t{source}, {other})"]
    if style == "vector":
        return [f"T.v{kind}(t{source}, {other}, t{target})"]
    element = f"{other}[i, j]" if isinstance(second, int) else other
    return [f"for i, j in T.Parallel({rows}, {columns}):",
            f"    t{target}[i, j] = {SYMBOL[kind].format(f't{source}[i, j]', element)}"]


@pytest.fixture(autouse=True, scope="module")
def stacked() -> Iterator[None]:
    """Blocks are batched if possible; the reference orders run them one after the other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batched_execution, "LEAST_BLOCKS", 2)
        patch.setattr(batched_execution, "LEAST_BYTES", 0)
        patch.setattr(batched_execution, "AT_ONCE", 0)
        yield


def _reference(program: list[Step], tiles: list[Any]) -> Any:
    for kind, target, source, second in program:
        a = tiles[source]
        if kind in REDUCE:
            tiles[target] = a - REDUCE[kind](a, axis=1, keepdims=True)
        elif kind in UNARY:
            tiles[target] = UNARY[kind](a)
        else:
            tiles[target] = BINARY[kind](a, tiles[second] if isinstance(second, int) else np.float32(second))
    return tiles[0]


def _load(path: Path, text: str) -> Any:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VECTOR = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(out_idx=[-1], target="npuir")
def make(M, N, rows, trips, stages):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32"), O: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, rows * trips), is_npu=True) as (cid, _):
            t0 = T.alloc_shared((rows, N), "float32")
            t1 = T.alloc_shared((rows, N), "float32")
            t2 = T.alloc_shared((rows, N), "float32")
            r = T.alloc_shared((rows, 1), "float32")
            for step in T.Pipelined(trips, num_stages=stages):
                row = (cid * trips + step) * rows
                T.copy(X[row, 0], t0)
                T.copy(Y[row, 0], t1)
                T.vadd(t0, t1, t2)
{body}
                T.copy(t0, O[row, 0])
    return main
"""


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(program=steps(), style=st.sampled_from(["vector", "tile", "parallel"]), rows=st.sampled_from([1, 3, 8]),
       trips=st.integers(1, 4), spare=st.integers(0, 5), columns=st.sampled_from([8, 17, 64, 100]), seed=st.integers(0, 999))
def test_vector_programs(tmp_path_factory: pytest.TempPathFactory, program: list[Step], style: str, rows: int, trips: int,
                         spare: int, columns: int, seed: int) -> None:
    count = max(1, 2 * rows * trips - spare)
    body = "\n".join(" " * 16 + line for step in program for line in _line(step, style, rows, columns))
    module = _load(tmp_path_factory.mktemp("kernel") / f"vector{seed}.py", VECTOR.format(body=body))
    rng = np.random.default_rng(seed)
    x, y = (rng.uniform(-1, 1, (count, columns)).astype(np.float32) for _ in range(2))
    expected = _reference(program, [x, y, x + y])
    results = []
    for stages in (1, 2, 3):
        kernel = module.make(count, columns, rows, trips, stages)
        results.append(kernel(x, y))
        np.testing.assert_allclose(results[-1], expected, rtol=1e-5, atol=1e-5)
        _check_orders(kernel, (x, y), results[-1])
    assert all(np.array_equal(results[0], other) for other in results[1:])


def _check_orders(kernel: Any, inputs: tuple[Any, ...], expected: Any) -> None:
    """The dumped text, run with the blocks in two random orders, gives the same values and no hazard."""
    module = parse_module(kernel.mlir())
    for order in (1, 2):
        out = np.full_like(expected, np.nan)
        launch = simulator.simulate(module, [*inputs, out], blocks=kernel.last_launch.blocks, order=order, hazards=True)
        np.testing.assert_array_equal(out, expected)
        assert launch.hazards == []
        assert launch.cycles == kernel.last_launch.cycles


GEMM = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(out_idx=[-1], target="npuir")
def make(M, N, K, BM, BN, BK, stages):
    @T.prim_func
    def main(A: T.Tensor({a}, "float16"), B: T.Tensor({b}, "float16"), O: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (bx, by):
            a = T.alloc_shared({ta}, "float16")
            b = T.alloc_shared({tb}, "float16")
            t0 = T.alloc_fragment((BM, BN), "float32")
            t1 = T.alloc_fragment((BM, BN), "float32")
            T.clear(t0)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                T.copy(A[{ra}], a)
                T.copy(B[{rb}], b)
                T.gemm(a, b, t0, transpose_A={xa}, transpose_B={xb})
{body}
            T.copy(t0, O[by * BM, bx * BN])
    return main
"""


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(program=st.one_of(st.just([]), steps(count=1, reductions=False)), shape=st.tuples(*[st.integers(1, 70)] * 3),
       tile=st.tuples(*[st.sampled_from([16, 32])] * 3), transposed=st.tuples(st.booleans(), st.booleans()),
       seed=st.integers(0, 999))
def test_gemm_programs(tmp_path_factory: pytest.TempPathFactory, program: list[Step], shape: tuple[int, int, int],
                       tile: tuple[int, int, int], transposed: tuple[bool, bool], seed: int) -> None:
    (m, n, k), (xa, xb) = shape, transposed
    lines = [line for step in program for line in _line(step, "vector", 0, 0)]
    text = GEMM.format(
        a="(K, M)" if xa else "(M, K)", b="(N, K)" if xb else "(K, N)", ta="(BK, BM)" if xa else "(BM, BK)",
        tb="(BN, BK)" if xb else "(BK, BN)", ra="k * BK, by * BM" if xa else "by * BM, k * BK",
        rb="bx * BN, k * BK" if xb else "k * BK, bx * BN", xa=xa, xb=xb,
        body="\n".join(" " * 12 + line for line in lines))
    module = _load(tmp_path_factory.mktemp("kernel") / f"gemm{seed}.py", text)
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, (k, m) if xa else (m, k)).astype(np.float16)
    b = rng.uniform(-1, 1, (n, k) if xb else (k, n)).astype(np.float16)
    product = (a.T if xa else a).astype(np.float32) @ (b.T if xb else b).astype(np.float32)
    expected = _reference(program, [product])
    results = []
    for stages in (1, 2):
        kernel = module.make(m, n, k, *tile, stages)
        results.append(kernel(a, b))
        np.testing.assert_allclose(results[-1], expected, rtol=1e-4, atol=1e-4)
        _check_orders(kernel, (a, b), results[-1])
    assert np.array_equal(*results)


CHAIN = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(out_idx=[-1], target="npuir")
def make(trips, stages):
    @T.prim_func
    def main(A: T.Tensor((trips * 32, 16), "float16"), B: T.Tensor((16, 32), "float16"), V: T.Tensor((32, 16), "float16"),
             O: T.Tensor((64, {width}), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 16), "float16")
            b = T.alloc_shared((16, 32), "float16")
            v = T.alloc_shared((32, 16), "float16")
            p = T.alloc_shared((32, 32), "float16")
            t0 = T.alloc_fragment((32, 32), "float32")
            t1 = T.alloc_fragment((32, 16), "float32")
            total = T.alloc_fragment((32, {width}), "float32")
            T.copy(B[0, 0], b)
            T.copy(V[0, 0], v)
            T.clear(total)
            for i in T.Pipelined(trips, num_stages=stages):
                T.copy(A[i * 32, 0], a)
                T.gemm(a, b, t0, initC=True)
{body}
                T.vadd(total, {last}, total)
            T.copy(total, O[cid * 32, 0])
    return main
"""


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(program=st.one_of(st.just([]), steps(count=1, reductions=False)), trips=st.integers(1, 5), twice=st.booleans(),
       seed=st.integers(0, 999))
def test_values_that_pass_between_the_cores_in_a_loop(tmp_path_factory: pytest.TempPathFactory, program: list[Step],
                                                      trips: int, twice: bool, seed: int) -> None:
    lines = [line for step in program for line in _line(step, "vector", 0, 0)]
    if twice:
        lines += ["T.vmin(t0, 8.0, t0)", "T.vmax(t0, -8.0, t0)", "T.copy(t0, p)", "T.gemm(p, v, t1, initC=True)"]
    text = CHAIN.format(width=16 if twice else 32, last="t1" if twice else "t0",
                        body="\n".join(" " * 16 + line for line in lines))
    module = _load(tmp_path_factory.mktemp("kernel") / f"chain{seed}.py", text)
    rng = np.random.default_rng(seed)
    a, b, v = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((trips * 32, 16), (16, 32), (32, 16)))
    total: Any = np.zeros((32, 16 if twice else 32), np.float32)
    for i in range(trips):
        part = _reference(program, [a[i * 32:i * 32 + 32].astype(np.float32) @ b.astype(np.float32)])
        if twice:
            part = np.clip(part, -8, 8).astype(np.float16).astype(np.float32) @ v.astype(np.float32)
        total = total + part
    expected = np.concatenate([total, total])
    results = []
    for stages in (1, 2, 3):
        kernel = module.make(trips, stages)
        results.append(kernel(a, b, v))
        np.testing.assert_allclose(results[-1], expected, rtol=1e-3, atol=1e-2)
        _check_orders(kernel, (a, b, v), results[-1])
    assert all(np.array_equal(results[0], other) for other in results[1:])
