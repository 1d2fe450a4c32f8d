"""The upper bound of a refusal's cost, compared with the gain on a chip with more memory, where it is not refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.target import known

ROOMY = """name = "Roomy910"
like = "910B2"

[memory.ub]
size = 393216
"""
AUTO = {f"tl.ascend_{name}": True for name in ("auto_sync", "auto_cv_combine", "memory_planning", "auto_cross_core_sync")}


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A chip that is the usual one but for UB, which is twice as large."""
    monkeypatch.setattr(known, "_CHIPS", dict(known._CHIPS))
    monkeypatch.setattr(known, "_BY_KEY", dict(known._BY_KEY))
    path = tmp_path / "roomy.toml"
    path.write_text(ROOMY)
    yield path
    known._described.cache_clear()
    for derived in (known._memories, known._filled, known.pipes_of):
        derived.cache_clear()


def loaded(turns: int, stages: int = 2) -> Any:
    """A loop whose tile has room for one slot of two, with ``work`` operations on it."""
    @T.prim_func
    def main(X: T.Tensor((8, 112, 256), "float32"), Y: T.Tensor((8, 112, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((112, 256), "float32")
            for i in T.Pipelined(8, num_stages=stages):
                T.copy(X[i, 0, 0], x)
                for _ in T.serial(turns):
                    T.vexp(x, x)
                T.copy(x, Y[i, 0, 0])

    return main


def of_one_slot(kernel: Any) -> Any:
    page = kernel.explain()
    (message,) = (one for one in page.refused if one.about == "multi-buffer")
    return page.costs[message]


@pytest.mark.parametrize("turns", [1, 3])
def test_a_slot_that_there_is_no_room_for_costs_what_it_wins_where_there_is(turns: int, roomy: Path) -> None:
    cost = of_one_slot(tilelang.compile(loaded(turns), target="npuir"))
    wide = tilelang.compile(loaded(turns), target="npuir", chip=str(roomy))
    assert not wide.explain().refused
    assert cost.before == tilelang.compile(loaded(turns), target="npuir").trace().time_us
    assert not cost.nothing and cost.after <= wide.trace().time_us < cost.before
    three = tilelang.compile(loaded(turns, stages=3), target="npuir", chip=str(roomy))
    assert not three.explain().refused
    assert cost.after == pytest.approx(three.trace().time_us, rel=0.03)  # a slot for each of three pipes
    assert str(cost) == f"costs at most {cost.before - cost.after:.1f} of {cost.before:.1f} us"


def test_where_another_pipe_bounds_it_costs_nothing_and_no_edit_is_shown(roomy: Path) -> None:
    kernel = tilelang.compile(loaded(800), target="npuir")
    cost, wide = of_one_slot(kernel), tilelang.compile(loaded(800), target="npuir", chip=str(roomy))
    assert cost.nothing and wide.trace().time_us > 0.99 * cost.before
    assert "V of AIV is busy" in str(cost)
    page = kernel.explain()
    shown = str(page).splitlines()
    (row,) = (row for row, line in enumerate(shown) if line.startswith("  multi-buffer  line ") and "one slot instead" in line)
    assert shown[row + 1] == f"    {cost}" and row + 2 == len(shown)
    assert page.sections["refused"][1].startswith("  to have it: shrink the tiles")  # the data of the refusal stay


def test_what_is_carried_costs_the_bytes_that_others_miss() -> None:
    """A tile that outlives its iterations costs nothing, unless something waits for bytes of its memory."""
    def carrying(rows: int) -> Any:
        @T.prim_func
        def main(X: T.Tensor((8, rows, 256), "float32"), Y: T.Tensor((8, rows, 256), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, _):
                kept = T.alloc_shared((8, 64), "float32")
                x = T.alloc_shared((rows, 256), "float32")
                for i in T.Pipelined(8, num_stages=2):
                    T.copy(X[i, 0, 0], x)
                    for r in T.serial(2):
                        T.vadd(kept[r * 4:r * 4 + 4, 0:64], x[0:4, 0:64], kept[r * 4:r * 4 + 4, 0:64])
                    T.copy(kept, x[0:8, 0:64])
                    T.copy(x, Y[i, 0, 0])

        return tilelang.compile(main, target="npuir")

    free, dear = carrying(16).explain(), carrying(112).explain()
    (one,) = (message for message in free.refused if message.about == "sink-buffers")
    assert free.costs[one].nothing and free.costs[one].after == free.costs[one].before
    (other,) = (message for message in dear.refused if message.about == "sink-buffers")
    assert dear.costs[other].after == min(cost.after for cost in dear.costs.values()) < dear.costs[other].before


def test_a_load_that_is_not_taken_out_of_its_loop_costs_what_its_author_can_win() -> None:
    """Compared with the kernel in which the load is before the loop."""
    def scaled(*, inside: bool) -> Any:
        @T.prim_func
        def main(X: T.Tensor((16, 512), "float32"), W: T.Tensor((64, 512), "float32"), Y: T.Tensor((16, 512), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, _):
                x = T.alloc_shared((1, 512), "float32")
                w = T.alloc_shared((64, 512), "float32")
                if not inside:
                    T.copy(W, w)
                for i in T.Pipelined(16, num_stages=1):
                    if inside:
                        T.copy(W, w)
                    T.copy(X[i, 0], x)
                    T.vmul(x, w[0:1, 0:512], x)
                    T.copy(x, Y[i, 0])
                    if inside:
                        T.vadd(w[0:1, 0:512], 1.0, w[0:1, 0:512])  # it is not the same in each iteration

        return main

    kernel = tilelang.compile(scaled(inside=True), target="npuir")
    page = kernel.explain()
    (message,) = (one for one in page.refused if one.about == "hoist-loads")
    cost, better = page.costs[message], tilelang.compile(scaled(inside=False), target="npuir").trace().time_us
    assert cost.before == kernel.trace().time_us > 2 * better
    assert cost.after <= better == pytest.approx(cost.after, rel=0.3)  # which loads once
    assert str(cost).startswith("costs at most ")


@pytest.mark.parametrize("heavy", [True, False])
def test_a_tile_that_is_not_divided_costs_half_of_the_work_on_it(heavy: bool) -> None:
    """Both Vector cores compute all of a tile with an odd number of rows; compared with an even number, which is divided."""
    def of_rows(rows: int) -> Any:
        @T.prim_func
        def main(X: T.Tensor((64, 512), "float32"), Z: T.Tensor((rows, 512), "float32"), Y: T.Tensor((64, 512), "float32"),
                 W: T.Tensor((rows, 512), "float32")):
            with T.Kernel(1, threads=2, is_npu=True) as _:
                x = T.alloc_shared((64, 512), "float32")
                z = T.alloc_shared((rows, 512), "float32")
                T.copy(X, x)
                T.copy(Z, z)
                for _ in T.serial(300 if heavy else 1):
                    T.vexp(z, z)
                for _ in T.serial(1 if heavy else 300):
                    T.vexp(x, x)
                T.copy(x, Y)
                T.copy(z, W)

        return tilelang.compile(main, target="ascendc", pass_configs=AUTO)

    kernel, even = of_rows(15), of_rows(16)
    page = kernel.explain()
    (message,) = (one for one in page.refused if one.about == "bind-sub-blocks")
    assert "z (30 720 bytes of UB) is not divided" in message.text and not even.explain().refused
    cost = page.costs[message]
    assert cost.before == kernel.trace().time_us
    assert cost.nothing is not heavy
    if heavy:
        assert cost.after <= even.trace().time_us == pytest.approx(cost.after, rel=0.2)  # the latency of an operation stays
