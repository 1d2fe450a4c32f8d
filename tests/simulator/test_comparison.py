"""Comparison of two profiles: the differences add up, and the changed line comes first."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def summed(more: bool, rows: int = 1024) -> Any:
    @T.prim_func
    def main(X: T.Tensor((rows, 256), "float32"), Y: T.Tensor((rows, 256), "float32")):
        with T.Kernel(rows // 32, is_npu=True) as (block, _):
            x = T.alloc_shared((32, 256), "float32")
            T.copy(X[block * 32, 0], x)
            T.vadd(x, 1.0, x)
            if more:
                T.vln(x, x)
            T.copy(x, Y[block * 32, 0])

    return main


def test_the_line_that_was_added_is_the_difference() -> None:
    found = summed(False).profile().compare(summed(True).profile())
    assert "T.vln(x, x)" in found.lines[0].what
    assert found.lines[0].first == 0.0
    assert found.pipes[0].what == "AIV V"
    assert found.total.us == summed(True).profile().time_us - summed(False).profile().time_us > 0
    assert sum(row.us for row in found.lines) == sum(row.us for row in found.kinds) == found.total.us
    assert "T.vln(x, x)" in str(found)
    assert found.to_dict()["lines"][0]["us"] == found.lines[0].us


def test_a_chip_that_loads_slowly_differs_in_its_loads() -> None:
    """On a chip with a tenth of the bandwidth, the difference is at the load's line, and of kind HBM, if L2 does not hold the
    data."""
    from dataclasses import replace

    warm = summed(True, 8192).profile().launch
    here = warm.retimed(l2_state="cold").profile()
    chip = here.launch.parts[0].chip
    slow = here.on(replace(chip, name="slow", traffic=replace(chip.traffic, hbm_read=chip.traffic.hbm_read / 10)))
    found = here.compare(slow)
    assert "T.copy(X[block * 32, 0], x)" in found.lines[0].what
    assert found.kinds[0].what == "HBM AIV MTE2"
    assert sum(row.us for row in found.lines) == found.total.us > 10
    assert warm.profile().compare(warm.retimed(slow.launch.parts[0].chip).profile()).total.us == 0


def test_equal_profiles_have_no_difference() -> None:
    found = summed(True).profile().compare(summed(True).profile())
    assert found.total.us == 0
    assert {row.us for row in (*found.lines, *found.kinds, *found.pipes)} == {0.0}
    assert "no difference" in str(found)
