"""The multiplications of the Cube cores: useful operations, operations with padding, and the percentage of the peak."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator import Launch
from tilelang_npu.simulator.result.cube_operations import Products, products
from tilelang_npu.target import chip

COUNT = int(os.environ.get("TILELANG_RANDOM_PRODUCTS", "15"))
SYNC = {"tl.ascend_auto_sync": True}


def launched(main: Any, target: str = "ascendc") -> Launch:
    launch = tilelang.compile(main, target=target, pass_configs=SYNC if target == "ascendc" else {}).trace()
    assert isinstance(launch, Launch)
    return launch


def gemm(sizes: tuple[int, int, int], tiles: tuple[int, int, int], element: str = "float16", wide: str = "float32",
         turned: tuple[bool, bool] = (False, False)) -> Launch:
    (m, n, k), (tile_m, tile_n, tile_k) = sizes, tiles
    left, right = turned

    @T.prim_func
    def main(A: T.Tensor((k, m) if left else (m, k), element), B: T.Tensor((n, k) if right else (k, n), element),
             C: T.Tensor((m, n), wide)):
        with T.Kernel(T.ceildiv(m, tile_m) * T.ceildiv(n, tile_n), is_npu=True) as (block, _):
            row = block // T.ceildiv(n, tile_n) * tile_m
            column = block % T.ceildiv(n, tile_n) * tile_n
            a = T.alloc_L1((tile_k, tile_m) if left else (tile_m, tile_k), element)
            b = T.alloc_L1((tile_n, tile_k) if right else (tile_k, tile_n), element)
            c = T.alloc_L0C((tile_m, tile_n), wide)
            for i in T.serial(T.ceildiv(k, tile_k)):
                T.copy(A[i * tile_k, row] if left else A[row, i * tile_k], a)
                T.copy(B[column, i * tile_k] if right else B[i * tile_k, column], b)
                T.gemm_v0(a, b, c, transpose_A=left, transpose_B=right, init=(i == 0))
            T.copy(c, C[row, column])

    return launched(main)


def by_hand(sizes: tuple[int, int, int]) -> Launch:
    """L0 filled by the author, in steps of a tile of L1."""
    m, n, k = sizes

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, 64), is_npu=True) as (block, _):
            a = T.alloc_L1((64, 128), "float16")
            b = T.alloc_L1((128, 64), "float16")
            left = T.alloc_L0A((64, 32), "float16")
            right = T.alloc_L0B((32, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            for i in T.serial(T.ceildiv(k, 128)):
                T.copy(A[block * 64, i * 128], a)
                T.copy(B[i * 128, 0], b)
                for j in T.serial(4):
                    T.copy(a[0, j * 32], left)
                    T.copy(b[j * 32, 0], right)
                    T.mma(left, right, c, init=T.And(i == 0, j == 0))
            T.copy(c, C[block * 64, 0])

    return launched(main)


def test_the_peak_was_that_of_float16_for_every_type() -> None:
    for element, wide, report in (("int8", "int32", "TOP/s"), ("float16", "float32", "TFLOP/s"),
                                ("bfloat16", "float32", "TFLOP/s"), ("float32", "float32", "TFLOP/s")):
        launch = gemm((256, 256, 256), (128, 128, 64), element, wide)
        line = launch.summary().splitlines()[1]
        found = re.search(rf"([\d.]+) {report}, (\d+) % of the {element} peak", line)
        assert found is not None, line
        rate = 2 * 256**3 / launch.time_us / 1e6
        kind = {"int8": "i8", "float16": "f16", "bfloat16": "bf16", "float32": "f32"}[element]
        steps = {"i8": 32, "f16": 16, "bf16": 16, "f32": 4}[kind]  # depths that 16 x 16 multipliers take in a cycle
        peak = 2 * 16 * 16 * steps * 24 * 1.8e9 / 1e12
        assert chip("910B2").peak_flops(kind) / 1e12 == pytest.approx(peak)
        assert float(found[1]) == pytest.approx(rate, abs=0.06)
        assert int(found[2]) == round(100 * rate / peak)


def test_padding_was_counted_as_work() -> None:
    """300 x 333 x 211: tiles at the edges are multiplied whole."""
    launch = gemm((300, 211, 333), (64, 64, 64))
    found = products(launch)["f16"]
    assert found.useful == 2 * 300 * 333 * 211
    assert found.done == 2 * 320 * 256 * 384
    rates = [work / launch.time_us / 1e6 for work in (found.useful, found.done)]
    assert f"   {rates[0]:.1f} TFLOP/s ({rates[1]:.1f} with padding), " in launch.summary()
    assert "with padding" not in gemm((256, 128, 128), (64, 64, 64)).summary()


def test_the_time_held_a_launch_that_nothing_named() -> None:
    launch = gemm((256, 256, 256), (128, 128, 64))
    running = launch.cycles / 1800  # microseconds at 1.8 GHz
    law = chip("910B2").launch
    starting = law.kernel_us + 3 * law.core_us  # of four cores
    assert launch.launch_us == pytest.approx(starting)
    assert launch.time_us == pytest.approx(running + starting)
    lines = launch.summary().splitlines()
    assert lines[1].startswith(f"  time      {launch.time_us:.1f} us +- ")
    assert lines[2].startswith(f"  of which  launch {starting:.1f}   ramp ")
    assert lines[3].endswith(f"   of {running:.1f} us")
    shares = {pipe: float(share) for pipe, share in re.findall(r"(\w+) (\d+) %", lines[3])}
    for pipe, cycles in launch.busy_cycles["AIC"].items():
        assert shares[pipe] == round(100 * cycles / 4 / 1800 / running)
    assert launch.trace()["otherData"]["launch_us"] == launch.launch_us


@settings(max_examples=COUNT, deadline=None)
@given(sizes=st.tuples(*[st.integers(1, 200)] * 3), tiles=st.tuples(*[st.sampled_from([32, 64, 96])] * 3),
       turned=st.tuples(st.booleans(), st.booleans()))
def test_useful_work_is_that_of_the_matrices(sizes: tuple[int, int, int], tiles: tuple[int, int, int],
                                             turned: tuple[bool, bool]) -> None:
    m, n, k = sizes
    whole = 2
    for size, tile in zip(sizes, tiles, strict=True):
        whole *= -(-size // tile) * tile
    found = products(gemm(sizes, tiles, turned=turned))["f16"]
    assert (found.useful, found.done) == (2 * m * n * k, whole)


@pytest.mark.parametrize("sizes", [(100, 50, 200), (64, 64, 128), (1, 1, 1), (65, 17, 129)])
def test_tiles_that_the_author_puts_into_l0(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    found = products(by_hand(sizes))["f16"]
    assert found.useful == 2 * m * n * k
    assert found.done == 2 * (-(-m // 64) * 64) * 64 * (-(-k // 128) * 128)


def test_a_result_that_is_an_operand_again_is_useful() -> None:
    """The result of the first product goes from L0C to L1. Of the 64 rows of the other operand, 40 are in the tensor."""
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((40, 32), "float16"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_L1((64, 64), "float16")
            b = T.alloc_L1((64, 32), "float16")
            square = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            d = T.alloc_L0C((64, 32), "float32")
            T.copy(A, a)
            T.copy(B[0, 0], b)
            T.gemm_v0(a, a, c, init=True)
            T.copy(c, square)
            T.gemm_v0(square, b, d, init=True)
            T.copy(d, C)

    assert products(launched(main))["f16"] == Products(
        done=2 * (64 * 64 * 64 + 64 * 64 * 32), useful=2 * (64 * 64 * 64 + 64 * 40 * 32))


def test_rows_over_padded_columns_leave_the_padding_below_them() -> None:
    """Of the 64 rows of 16 columns of a, 40 are in the tensor; then the rows from 16 to 47 of all columns are loaded."""
    @T.prim_func
    def main(X: T.Tensor((40, 16), "float16"), Y: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_L1((64, 64), "float16")
            b = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            T.copy(Y, a)
            T.copy(Y, b)
            T.copy(X[0, 0], a[0:64, 16:32])
            T.copy(Y[0:32, 0:64], a[16:48, 0:64])
            T.gemm_v0(a, b, c, init=True)
            T.copy(c, C)

    assert products(launched(main))["f16"] == Products(done=2 * 64**3, useful=2 * 64 * (48 * 16 + 64 * 48))


def test_a_result_that_is_part_of_an_operand_is_useful() -> None:
    """The first product takes the place of the padding: of the 64 rows that are loaded, 32 are in the tensor."""
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((32, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_L1((64, 64), "float16")
            b = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((32, 64), "float32")
            d = T.alloc_L0C((64, 64), "float32")
            T.copy(A, a)
            T.copy(B[0, 0], b)
            T.gemm_v0(a[0:32, :], a, c, init=True)
            T.copy(c, b[32:64, :])
            T.gemm_v0(a, b, d, init=True)
            T.copy(d, C)

    assert products(launched(main))["f16"] == Products(
        done=2 * (32 * 64 * 64 + 64 * 64 * 64), useful=2 * (32 * 64 * 64 + 64 * 64 * 64))
