"""The HIVM text of a profile's page: the time of each operation, and links to the lines of the script."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator import Launch
from tilelang_npu.simulator.result.profile.hivm_listing import hivm_listing, operation_times, time_margin
from tilelang_npu.simulator.result.profile.launch_profile import Profile
from tilelang_npu.simulator.result.profile.time_breakdown import BlockTimes
from tilelang_npu.target.chip_data import PIPES

ROWS, COLUMNS = 100, 72


@tilelang.jit(out_idx=[-1], target="npuir")
def doubled(rows, columns):
    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(2, is_npu=True) as (block, _):
            x = T.alloc_shared((rows // 2, columns), "float32")
            T.copy(X[block * (rows // 2), 0], x)
            T.vadd(x, x, x)
            T.copy(x, Y[block * (rows // 2), 0])

    return main


@cache
def profiled() -> Profile:
    return doubled(ROWS, COLUMNS).profile(np.ones((ROWS, COLUMNS), np.float32))


def _block() -> tuple[Launch, BlockTimes]:
    one = profiled()
    launch = one.launch
    assert isinstance(launch, Launch)
    return launch, one.parts[0].blocks[0]


def test_the_times_of_operations_are_those_of_their_pipes() -> None:
    launch, block = _block()
    times = {op.name: us for op, us in operation_times(launch, block).items() if op.name in
             ("hivm.hir.load", "hivm.hir.vadd", "hivm.hir.store")}
    assert len(times) == 3
    busy = dict(zip(PIPES, block.group.timing.busy[0], strict=True))
    for name, pipe in (("hivm.hir.load", "MTE2"), ("hivm.hir.vadd", "V"), ("hivm.hir.store", "MTE3")):
        assert times[name] == pytest.approx(launch.chip.microseconds(busy[pipe]))


def test_a_wait_has_the_time_for_which_it_holds_its_pipe() -> None:
    """The addition cannot begin before the load is done, and the store not before the addition is done."""
    launch, block = _block()
    times = operation_times(launch, block)
    held = sum(us for op, us in times.items() if op.name in ("hivm.hir.wait_flag", "hivm.hir.pipe_barrier"))
    first = sum(cycles for (core, *_), cycles in block.group.timing.held.items() if core == 0)
    assert held == pytest.approx(launch.chip.microseconds(first))
    assert held > min(us for op, us in times.items() if op.name == "hivm.hir.load")


def test_lines_are_linked_to_the_lines_of_the_script_that_they_come_from() -> None:
    launch, block = _block()
    rows = re.findall(r'<span class="l"(?: data-p="(\d+)")?><span class="h"[^>]*>([\d.]* ?u?s?)</span>(.*?)</span>',
                      hivm_listing(launch, block, __file__))
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    found = {text.strip().split(" ")[0]: (source[int(line) - 1].strip(), us) for line, us, text in rows if line}
    assert found["hivm.hir.vadd"][0] == "T.vadd(x, x, x)"
    assert found["hivm.hir.load"][0].startswith("T.copy(X[")
    assert re.fullmatch(r"\d+\.\d\d us", found["hivm.hir.vadd"][1])
    others = hivm_listing(launch, block, "another.py")
    assert "data-p" not in others
    assert "hivm.hir.vadd" in others


def test_the_page_has_both_views() -> None:
    text = profiled().html()
    assert text.count('<input type="radio" name="view"') == 2
    assert "hivm.hir.vadd" in text.partition('<div class="hivm">')[2]
    assert "<h2>Critical path" in text.partition('<div class="report">')[2].partition('<div class="hivm">')[0]


def test_the_bar_of_a_time_is_its_part_of_the_whole_and_never_longer() -> None:
    assert time_margin(0.5, 2.0) == '<span class="h" style="--part:25.0%">0.50 us</span>'
    assert "--part:100.0%" in time_margin(3.0, 2.0)
