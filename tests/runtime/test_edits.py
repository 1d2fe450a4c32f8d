"""``explain()`` begins with the edits that win most: each was compiled and timed, and computes the same."""

from __future__ import annotations

import re
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.reports import edit_trials

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


@pytest.fixture
def gemm(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES)
    import gemm

    return partial(gemm.gemm, tile_N=128, tile_K=64)  # smaller than is best


def test_a_tile_that_is_too_small(gemm: Any) -> None:
    page = gemm(512, 512, 1024).explain()
    best = page.tried[0]
    assert best.text == "tile_K=128 in place of 64"
    name, _, value = best.text.split()[0].partition("=")
    assert best.after == gemm(512, 512, 1024, **{name: int(value)}).trace().time_us < best.before
    assert best.before == gemm(512, 512, 1024).trace().time_us
    (rate,) = page.rates
    assert str(page).splitlines()[2:8] == ["time", f"  {page.time}", f"  {rate}", "", "edits that win most, tried", f"  {best}"]
    assert not best.changes, "the call passes the number by a partial function"
    assert page.time.startswith(f"{best.before:.1f} us +- ")
    assert [one.after for one in page.tried] == sorted(one.after for one in page.tried) and len(page.tried) <= 3


@T.macro
def rows_of_turn(X: Any, Y: Any, x: Any, row: Any) -> None:
    T.copy(X[row, 0], x)
    T.vexp(x, x)
    T.vexp(x, x)
    T.copy(x, Y[row, 0])


def summed(stages: int | None, configs: dict[str, Any] | None = None, rows: Any = 512) -> Any:
    @tilelang.jit(out_idx=[-1], target="npuir", pass_configs=configs)
    def factory(rows: Any) -> Any:
        @T.prim_func
        def main(X: T.Tensor((rows, 512), "float32"), Y: T.Tensor((rows, 512), "float32")):
            with T.Kernel(4, is_npu=True) as (block, _):
                x = T.alloc_shared((16, 512), "float32")
                if stages is None:
                    for t in T.serial(8):
                        rows_of_turn(X, Y, x, block * 128 + t * 16)
                else:
                    for t in T.Pipelined(8, num_stages=stages):
                        rows_of_turn(X, Y, x, block * 128 + t * 16)

        return main

    return factory(rows)


@pytest.mark.parametrize(("kernel", "text"), [
    (summed(None, {"tl.disable": ["pipeline-loops"]}), "T.Pipelined with num_stages=2 in place of T.serial"),
    (summed(1), "num_stages=3 in place of 1"),
    (summed(2, {"tl.disable": ["multi-buffer"]}), "multi-buffer out of tl.disable"),
])
def test_a_loop_that_does_not_overlap(kernel: Any, text: str) -> None:
    best = kernel.explain().tried[0]
    assert best.text == text
    assert best.gain > 0.1
    assert best.changes
    if "multi" in text:
        assert best.after == summed(2).trace().time_us


def test_edits_that_change_values_are_not_suggested() -> None:
    @tilelang.jit(out_idx=[-1], target="npuir")
    def factory(turns: int = 32) -> Any:
        @T.prim_func
        def main(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _vid):
                x = T.alloc_shared((16, 64), "float32")
                T.copy(X[0, 0], x)
                for _t in T.serial(turns):
                    T.vadd(x, 0.5, x)
                T.copy(x, Y[0, 0])

        return main

    assert factory(16).trace().time_us < factory(32).trace().time_us
    assert factory(32).explain().tried == ()


def test_trials_print_nothing_and_leave_no_state(gemm: Any) -> None:
    kernel = gemm(256, 256, 512)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = kernel.explain(), kernel.explain()
    assert str(first) == str(second) and first.tried
    assert kernel.last_launch is None


def test_without_a_call_nothing_is_tried_where_sizes_come_with_it() -> None:
    page = summed(1, rows=T.dynamic("rows")).explain()
    assert page.tried == ()
    assert page.trial_note == ("nothing was tried: the time depends on the sizes or the elements of a call's arrays, and the "
                               "kernel was not called")
    assert f"edits that win most, tried\n  {page.trial_note}" in str(page)


def test_sizes_of_the_last_call_are_those_of_the_edits() -> None:
    kernel = summed(1, rows=T.dynamic("rows"))
    kernel(np.zeros((512, 512), np.float32))
    best = kernel.explain().tried[0]
    assert (best.text, best.before) == ("num_stages=3 in place of 1", kernel.last_launch.time_us)
    assert best.after == summed(3, rows=T.dynamic("rows")).trace(np.zeros((512, 512), np.float32)).time_us
    assert kernel.profile((1024, 512)).advice[0].before == kernel.trace(np.zeros((1024, 512), np.float32)).time_us


@pytest.mark.filterwarnings("ignore:rows 32")  # blocks write as many rows as the data say
def test_elements_of_the_last_call_decide_what_edits_win() -> None:
    @tilelang.jit(out_idx=[-1], target="npuir")
    def ragged(tile: int = 1) -> Any:
        @T.prim_func
        def main(L: T.Tensor((24,), "int32"), X: T.Tensor((960, 128), "float32"), Y: T.Tensor((960, 128), "float32")):
            with T.Kernel(24, is_npu=True) as (block, _):
                x = T.alloc_shared((tile, 128), "float32")
                for t in T.serial(T.ceildiv(L[block], tile)):
                    T.copy(X[block * 40 + t * tile, 0], x)
                    T.vexp(x, x)
                    T.copy(x, Y[block * 40 + t * tile, 0])

        return main

    kernel = ragged()
    lengths = np.full(24, 32, np.int32)
    kernel(lengths, np.ones((960, 128), np.float32))
    best = kernel.explain().tried[0]
    assert best.gain > 0.3
    assert lengths.tolist() == [32] * 24
    assert kernel.explain().tried[0] == best


def test_a_pickled_kernel_knows_its_loops(gemm: Any) -> None:
    import pickle

    kernel = pickle.loads(pickle.dumps(summed(1)))
    assert kernel.made_by is None
    x = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32) / 8
    assert np.array_equal(kernel(x), summed(1)(x))
    assert kernel.explain().tried == summed(1).explain().tried != ()


def test_more_parts_than_the_matrix_has_columns_can_be_tried() -> None:
    """With twice the parts, the last tiles are past the last column: their copies out of L0C have a source, and nothing to
    write."""
    @tilelang.jit(out_idx=[-1], target="npuir")
    def factory(parts: int = 2) -> Any:
        @T.prim_func
        def columns(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 256), "float16"), C: T.Tensor((64, 256), "float32")):
            with T.Kernel(1, is_npu=True) as (_block, _):
                a = T.alloc_shared((64, 64), "float16")
                b = T.alloc_shared((64, 128), "float16")
                c = T.alloc_fragment((64, 128), "float32")
                T.copy(A, a)
                for part in T.unroll(parts):
                    T.copy(B[0, part * 128], b)
                    T.gemm(a, b, c, initC=True)
                    T.copy(c, C[0, part * 128])

        return columns

    kernel = factory()
    assert kernel.explain().tried == ()
    whole, more = kernel.estimate(), factory(parts=4).estimate()
    assert more.time_us > whole.time_us


def test_explain_and_profile_share_what_they_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edits are tried once for a kernel and a state of L2; a pickled kernel tries them again."""
    from tilelang_npu.runtime.reports import edit_trials

    made: list[Any] = []
    compile_one = edit_trials.make_and_time

    def counted(edit: Any, arguments: Any) -> Any:
        made.append(edit.text)
        return compile_one(edit, arguments)

    monkeypatch.setattr(edit_trials, "make_and_time", counted)
    kernel = summed(1)
    kernel._process.reports.clear()  # the factory's kernel is that of earlier tests
    advice = kernel.profile().advice
    count = len(made)
    assert count > 0
    assert [one.text for one in kernel.explain().tried] == [one.text for one in advice]
    assert str(kernel.explain()) == str(kernel.explain())
    assert len(made) == count
    monkeypatch.setenv("TILELANG_NPU_L2", "cold")
    assert kernel.explain().tried
    assert len(made) == 2 * count


def test_a_call_that_passes_one_array_twice_is_timed_as_it_runs() -> None:
    """Its kernel is another one; data decide how often its loop runs, and the arrays stay as they are."""
    from tilelang_npu.runtime.kernel.draft import launch_of_call

    @tilelang.jit(target="npuir")
    def scaled() -> Any:
        @T.prim_func
        def main(L: T.Tensor((1,), "int32"), X: T.Tensor((32, 128), "float32"), Y: T.Tensor((32, 128), "float32")):
            with T.Kernel(1, is_npu=True) as (_block, _):
                x = T.alloc_shared((1, 128), "float32")
                for t in T.serial(L[0]):
                    T.copy(X[t, 0], x)
                    T.vadd(x, x, x)
                    T.copy(x, Y[t, 0])

        return main

    kernel, lengths, x = scaled(), np.array([20], np.int32), np.ones((32, 128), np.float32)
    assert kernel.trace(lengths, x, x) is None
    launch = launch_of_call(kernel, [lengths, x, x])
    assert launch is not None
    assert (x == 1).all()
    kernel(lengths, x, x)
    assert x.sum() == (2 * 20 + 12) * 128
    assert kernel.last_launch.time_us == launch.time_us


def test_blocks_that_issue_the_same_instructions_count_once(gemm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = gemm(1024, 896, 512)
    streams = [stream for run in kernel.trace().recorded.blocks for stream in run.streams]
    (stream,) = {id(stream): stream for stream in streams}.values()
    assert len(streams) > 10
    monkeypatch.setattr(edit_trials, "_MAX_EVENTS", 2 * len(stream))
    assert kernel.profile().advice
    monkeypatch.setattr(edit_trials, "_MAX_EVENTS", 1)
    profile = gemm(1024, 896, 512, stages=1).profile()
    assert profile.advice == ()
    assert profile.tried.note.startswith("nothing was tried: the kernel issues more than ")


def test_results_of_long_kernels_are_not_compared(gemm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_trials, "_MAX_COMPARED_US", 1.0)
    monkeypatch.setattr(edit_trials.EditComparison, "verdict", lambda *_: pytest.fail("the results are compared"))
    profile = gemm(1024, 1024, 768).profile()  # a size that no other test has, as trials are kept with the kernel
    assert profile.advice == ()
    assert re.match(r"\d+ of \d+ edits that were tried save 1% or more, but their results were not compared: "
                    r"simulating a kernel of \d+ us takes long", profile.tried.note)


@tilelang.jit(out_idx=[-1], target="npuir")
def sums_in_parts(part: int = 64) -> Any:
    """Sums of rows, computed from the sums of parts of the rows: the number of columns of a part decides the order."""
    @T.prim_func
    def main(X: T.Tensor((32, 4096), "float32"), Y: T.Tensor((32, 1), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            x = T.alloc_shared((32, part), "float32")
            own = T.alloc_shared((32, 1), "float32")
            total = T.alloc_shared((32, 1), "float32")
            T.clear(total)
            for step in T.serial(4096 // part):
                T.copy(X[0, step * part], x)
                T.reduce_sum(x, own, dim=1)
                T.vadd(total, own, total)
            T.copy(total, Y)

    return main


def test_an_edit_that_changes_the_order_of_additions_says_so() -> None:
    (best, *_) = sums_in_parts().explain().tried
    assert best.text.startswith("part=") and best.text.endswith(edit_trials.ROUNDED_NOTE)
    number = int(best.text.removeprefix("part=").split()[0])
    x = np.random.default_rng(0).standard_normal((32, 4096)).astype(np.float32)
    assert (sums_in_parts()(x) != sums_in_parts(number)(x)).any()
    assert edit_trials.ROUNDED_NOTE in str(sums_in_parts().profile())


def test_reports_without_edits_try_none(gemm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_trials, "try_edits", lambda *_: pytest.fail("edits are tried"))
    kernel = gemm(256, 384, 640)
    for report in (kernel.profile(edits=False), kernel.explain(edits=False)):
        assert "no edits were tried: edits=False or --no-edits was given" in str(report)
    assert kernel.explain(edits=False).tried == ()
