"""Edits of refusals are applied to the kernel: the refused optimisation is then done, and the values are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.dialects.ir.changes import InFront, OwnBuffer, Rounds, Smaller, Stages, SwitchedOn, Unpinned
from tilelang_npu.dialects.ir.remarks import Remark
from tilelang_npu.dialects.text import location_of
from tilelang_npu.runtime.checks.result_comparison import Verdict
from tilelang_npu.runtime.reports.edit_trials import EditComparison, make_and_time, resolved_refusals
from tilelang_npu.runtime.reports.kernel_edits import edits_of_refusals, loops


def overwritten() -> Any:
    @T.prim_func
    def main(X: T.Tensor((4, 8, 64), "float32"), W: T.Tensor((8, 64), "float32"), Y: T.Tensor((4, 8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 64), "float32")
            w = T.alloc_shared((8, 64), "float32")
            for i in T.serial(4):
                T.copy(X[i, 0, 0], x)
                T.copy(W, w)
                T.vmul(w, x, w)
                T.copy(w, Y[i, 0, 0])

    return tilelang.compile(main, target="npuir")


def serial() -> Any:
    @T.prim_func
    def main(X: T.Tensor((8, 16, 64), "float32"), Y: T.Tensor((8, 16, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((16, 64), "float32")
            e = T.alloc_shared((16, 64), "float32")
            for i in T.serial(8):
                T.copy(X[i, 0, 0], x)
                T.copy(x, e)
                T.vexp(e, e)
                T.copy(e, Y[i, 0, 0])

    return tilelang.compile(main, target="npuir")


def pinned() -> Any:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            v = T.alloc_shared((32, 32), "float32")
            T.annotate_address({v: 4096})
            T.copy(A, a)
            T.gemm(a, a, c, initC=True)
            T.copy(c, v)
            T.vexp(v, v)
            T.copy(v, C)

    return tilelang.compile(main, target="npuir")


def without_sinking() -> Any:
    @T.prim_func
    def main(X: T.Tensor((4, 8, 64), "float32"), Y: T.Tensor((4, 8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 64), "float32")
            for i in T.Pipelined(4, num_stages=2):
                T.copy(X[i, 0, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[i, 0, 0])

    return tilelang.compile(main, target="npuir", pass_configs={"tl.disable": ["sink-buffers"]})


def crowded() -> Any:
    @T.prim_func
    def main(X: T.Tensor((4, 128, 256), "float32"), W: T.Tensor((1, 256), "float32"), Y: T.Tensor((4, 128, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((128, 256), "float32")
            w = T.alloc_shared((1, 256), "float32")
            for i in T.Pipelined(4, num_stages=2):
                T.copy(X[i, 0, 0], x)
                T.copy(W, w)
                T.vmul(x, w, x)
                T.copy(x, Y[i, 0, 0])

    return tilelang.compile(main, target="npuir")


@tilelang.jit(out_idx=[-1], target="npuir")
def tiled(rows: int = 448, tile: int = 112) -> Any:
    @T.prim_func
    def main(X: T.Tensor((rows, 256), "float32"), Y: T.Tensor((rows, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((tile, 256), "float32")
            for i in T.Pipelined(T.ceildiv(rows, tile), num_stages=2):
                T.copy(X[i * tile, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[i * tile, 0])

    return main


CASES = [
    (overwritten, "hoist-loads", OwnBuffer, "a separate buffer for w from line"),
    (serial, "collapse-copies", Stages, "T.Pipelined with num_stages=2 in place of T.serial"),
    (without_sinking, "multi-buffer", SwitchedOn, "sink-buffers out of tl.disable"),
    (pinned, "bind-sub-blocks", Unpinned, "no fixed address for the buffer"),
    (crowded, "hoist-loads", InFront, "the load before the loop at line"),
    (tiled, "multi-buffer", Smaller, "tile=56 in place of 112"),
]


def refusal(kernel: Any, about: str, kind: type) -> Remark:
    (one,) = (one for one in kernel.explain().refused if one.about == about and isinstance(one.change, kind))
    return one


@pytest.mark.parametrize(("make", "about", "kind", "text"), CASES)
def test_with_the_edit_it_is_done_and_the_values_are_the_same(make: Any, about: str, kind: type, text: str) -> None:
    kernel = make()
    message = refusal(kernel, about, kind)
    (edit,) = edits_of_refusals(kernel.explain().source, [message])
    made, time = make_and_time(edit)
    assert edit.text.startswith(text) and made is not None
    assert resolved_refusals([message], made) == (message,)
    assert EditComparison(kernel).verdict(made) is Verdict.EQUAL
    assert time == made.trace().time_us
    (found,) = (one for one in kernel.explain().trials if message in one.gone and one.text == edit.text)
    assert (found.before, found.after) == (kernel.trace().time_us, time)


@pytest.mark.parametrize("blocks", [1, 4, 15])
def test_fewer_blocks_do_the_same_in_rounds(blocks: int) -> None:
    """Along two axes, and on both Vector cores: the old block indices are the quotient and the remainder of a number."""
    @T.prim_func
    def main(X: T.Tensor((5, 3, 32, 64), "float32"), Y: T.Tensor((5, 3, 32, 64), "float32")):
        with T.Kernel(3, 5, is_npu=True) as (column, row):
            x = T.alloc_shared((8, 64), "float32")
            for i in T.serial(4):
                T.copy(X[row, column, i * 8, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[row, column, i * 8, 0])

    kernel = tilelang.compile(main, target="npuir")
    source = kernel.explain().source
    (loop,) = loops(source.traced.module)
    (edit,) = edits_of_refusals(source, [Remark("overlap-iterations", change=Rounds(location_of(loop), blocks))])
    assert edit.text.startswith(f"{blocks} blocks, each with a loop")
    made = edit.make()
    x = np.random.default_rng(0).standard_normal((5, 3, 32, 64)).astype(np.float32)
    y = np.zeros_like(x)
    assert made is not None
    made(x, y)
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-5)
    assert kernel.trace().blocks * blocks == made.trace().blocks * 15


@tilelang.jit(target="npuir", pass_configs={"tl.disable": ["make-persistent"]})
def scaled_tiles(rows: int, columns: int) -> Any:
    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(columns // 64, rows // 8, is_npu=True) as (column, row):
            x = T.alloc_shared((8, 64), "float32")
            T.copy(X[row * 8, column * 64], x)
            y = T.alloc_shared((8, 64), "float32")
            for r, c in T.Parallel(8, 64):
                y[r, c] = x[r, c] * 2
            T.copy(y, Y[row * 8, column * 64])

    return main


def test_a_launch_of_more_blocks_than_cores_is_tried_with_one_block_for_each_core() -> None:
    """Also without a refusal, without a loop in the launch, with two indices, and with an allocation between statements."""
    explained = scaled_tiles(400, 512).explain()
    (found,) = (one for one in explained.trials if "each with a loop over its share of the grid" in one.text)
    cores = scaled_tiles(400, 512).trace().cores
    assert found.text.startswith(f"{cores} blocks") and found.wins and found.gain > 0.05, found
    made = found.changes[0].after
    assert made[0] == f"        with T.Kernel({cores}, is_npu=True) as core:"
    assert made[3] == f"            for column, row in T.Persistent([columns // 64, rows // 8], {cores}, core):"
    assert [row.strip().partition(" ")[0] for row in made[1:3]] == ["x", "y"], "allocations are before the loop"


def test_a_launch_of_as_many_blocks_as_cores_stays() -> None:
    assert not any("its share of the grid" in one.text for one in scaled_tiles(8, 512).explain().trials)


def test_a_number_that_the_factory_does_not_take_is_no_edit() -> None:
    @tilelang.jit(out_idx=[-1], target="npuir")
    def factory(tile: int = 16) -> Any:
        if tile != 16:
            raise KeyError(tile)

        @T.prim_func
        def main(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, _):
                x = T.alloc_shared((tile, 64), "float32")
                T.copy(X, x)
                T.vexp(x, x)
                T.copy(x, Y)

        return main

    assert factory().explain().trials == ()


def test_an_edit_that_takes_away_the_occasion_has_not_done_it() -> None:
    """With one stage nothing is refused any more, and nothing overlaps."""
    kernel = tiled()
    message = refusal(kernel, "multi-buffer", Smaller)
    (single,) = (one for one in kernel.explain().trials if one.text == "num_stages=1 in place of 2")
    assert message not in single.gone
    x = np.random.default_rng(0).standard_normal((448, 256)).astype(np.float32)
    np.testing.assert_allclose(kernel(x), np.exp(x), rtol=1e-5)
