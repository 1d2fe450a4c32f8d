"""Values to try for a number: doubled and halved first, then shares of the sizes and the numbers of cores."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.reports.number_values import ValueStep, values_to_try


def test_large_steps_come_first() -> None:
    found = list(values_to_try(64, (24, 48), (3072,)))
    assert found[:2] == [ValueStep(128), ValueStep(32)]
    assert all(step.fine for step in found[2:])
    assert len({step.value for step in found}) == len(found)


@pytest.mark.parametrize(("current", "cores", "extents", "in_grid", "has", "has_not"), [
    (64, (24, 48), (3072,), False, {128, 32, 256, 96, 16, 512, 192, 48}, {64, 24, 0}),
    (100, (24, 48), (960,), True, {24, 48, 200, 50, 96, 120, 20}, {64}),  # 960 / 48 and divisors of 960 near 100
    (7, (24,), (), False, {14, 6}, {8}),
    (3, (20,), (), False, {6, 2, 4}, {20}),
    (1, (24,), (), False, {2}, {0}),
    (8192, (24,), (), False, {4096}, {16384}),
])
def test_values(current: int, cores: tuple[int, ...], extents: tuple[int, ...], in_grid: bool, has: set[int], has_not: set[int]
                ) -> None:
    found = {step.value for step in values_to_try(current, cores, extents, in_grid=in_grid)}
    assert has <= found
    assert not has_not & found


def test_a_number_that_divides_the_work_by_the_cores_is_tried() -> None:
    """With 72 rows a block there are 43 blocks for 48 cores; 64 rows give 48 equal blocks; 144 and 36 rows do not."""
    @tilelang.jit(out_idx=[-1], target="npuir", pass_configs={"tl.disable": ["make-persistent"]})
    def rows_of_a_block(height: int = 72) -> Any:
        @T.prim_func
        def main(X: T.Tensor((3072, 512), "float16"), Y: T.Tensor((3072, 512), "float16")):
            with T.Kernel(T.ceildiv(3072, height), is_npu=True) as (block, _):
                x = T.alloc_shared((height, 512), "float16")
                T.copy(X[block * height, 0], x)
                for _ in T.serial(6):
                    T.vexp(x, x)
                T.copy(x, Y[block * height, 0])

        return main

    assert rows_of_a_block().explain().tried[0].text == "height=64 in place of 72"
