"""Results that were not written, completely or in part, are errors; parts that depend on data, and strips of the caller's
array, are reported."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError, TileWarning
from tilelang_npu.errors import Location
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.checks.unwritten_results import UnwrittenResult, describe
from tilelang_npu.runtime.jit import recording
from tilelang_npu.runtime.reports.static_checker import Checker

C: Any = SimpleNamespace(name="C", location=Location("kernel.py", 7))
COUNT = int(os.environ.get("TILELANG_RANDOM_COVERAGE", "25"))


def judge(shape: tuple[int, ...], written: Any, tile: tuple[int, ...] | None, allocated: bool = True,
          **facts: bool) -> UnwrittenResult:
    missing = np.ones(shape, np.bool_)
    missing[written] = False
    return UnwrittenResult(C, tile, missing, allocated, **facts)


def refused(*arguments: Any, **facts: bool) -> TileError:
    error = judge(*arguments, **facts).error()
    assert error is not None
    assert error.code == "T410"
    assert error.location == C.location
    return error


def test_all_written() -> None:
    found = judge((8, 8), np.s_[:, :], (4, 4))
    assert found.error() is None
    assert not found.warning()


def test_rows_at_the_end() -> None:
    error = refused((1025, 64), np.s_[:1024, :], (128, 64))
    assert error.message == "rows 1024..1024 of C are never written: the grid's tiles cover 1024 of 1025 rows"
    assert "T.ceildiv" in error.help


def test_columns_at_the_end() -> None:
    assert "columns 64..79 of C" in refused((32, 80), np.s_[:, :64], (32, 64)).message


def test_both_at_the_end() -> None:
    error = refused((33, 70), np.s_[:32, :64], (32, 64))
    assert "rows 32..32" in error.message
    assert error.notes == ("likewise columns 64..69",)


def test_elements_and_further_axes() -> None:
    assert "elements 96..99 of C" in refused((100,), np.s_[:96], (32,)).message
    assert "indices of axis 1 4..4 of C" in refused((2, 5, 8), np.s_[:, :4], (1, 4, 8)).message


def test_tiles_of_which_each_vector_core_stores_half() -> None:
    assert "rows 96..126" in refused((127, 64), np.s_[:96, :], (16, 64)).message


@pytest.mark.parametrize(
    ("written", "tile", "report"),
    [(np.s_[1:, :], (4, 8), "rows 0..0 of C are never written: 8 of 64 elements"),
     (np.s_[::2, :], (1, 8), "rows 1, 3, 5, 7 of C are never written: 32 of 64 elements"),
     (np.s_[:4, :], (2, 8), "rows 4..7 of C are never written: 32 of 64 elements"),
     (np.s_[:6, :5], (4, 8), "rows 6..7 and columns 5..7 of C are never written: 34 of 64 elements"),
     (np.s_[:7, :], None, "rows 7..7 of C are never written: 8 of 64 elements"),
     (np.s_[0:0, :], (4, 8), "C is never written: nothing is stored to any of its 64 elements"),
     ((np.arange(7), 3), (1, 1), "rows 7..7 and columns 0..2, 4..7 of C are never written: 57 of 64 elements"),
     (np.eye(8) == 0, (1, 1), "8 of 64 elements of C are never written, in rows 0..7 and columns 0..7; the first at [0, 0]")],
    ids=["start", "every second row", "several tiles", "not whole tiles", "tile unknown", "nothing", "a column", "diagonal"],
)
def test_other_holes_in_a_returned_array_are_errors_too(written: Any, tile: tuple[int, ...] | None, report: str) -> None:
    error = refused((8, 8), written, tile)
    assert error.message == report
    assert "out_idx" in error.help


def test_many_runs_are_not_all_named() -> None:
    missing = np.zeros(40, np.bool_)
    missing[::4] = True
    assert describe("C", missing) == "elements 0, 4, 8, 12 and 6 more of C are never written"


def test_a_whole_tile_that_is_missing() -> None:
    """A grid that was rounded down, or a kernel that skips the last row: both return uninitialised elements."""
    assert refused((8, 8), np.s_[:7, :], (1, 8)).message == "rows 7..7 of C are never written: 8 of 64 elements"


def test_what_data_leave_out_is_a_warning() -> None:
    found = judge((8, 8), np.s_[:3, :], (1, 8), data_dependent=True)
    assert found.error() is None
    assert found.warning() == ("rows 3..7 of C are never written: 40 of 64 elements; data decide which elements are written"
                               f" ({C.location})")


def test_an_output_that_is_only_added_to_is_reported_as_such() -> None:
    assert "atomic_add" in refused((8, 8), np.s_[0:0, :], (1, 8), added=True).notes[0]


@pytest.mark.parametrize("tile", [(2,), (1,)])
def test_a_strip_of_the_callers_array_warns(tile: tuple[int, ...]) -> None:
    found = judge((3,), np.s_[:2], tile, False)
    assert found.error() is None
    assert found.warning().startswith("elements 2..2 of C are never written")


def test_a_strip_of_the_callers_array_that_data_leave_out_is_the_callers() -> None:
    found = judge((3,), np.s_[:2], (2,), False, data_dependent=True)
    assert found.error() is None
    assert not found.warning()


def test_other_holes_in_the_callers_array_are_the_callers() -> None:
    found = judge((8, 8), np.s_[::2, :], (1, 8), False)
    assert found.error() is None
    assert not found.warning()


# -- kernels -----------------------------------------------------------------------------------------------------------

TARGETS = [("ascendc", {"tl.ascend_auto_sync": True}), ("npuir", {})]


def store_kernel(target: str, what: str) -> Any:
    """A kernel that does something about its result."""
    configs = dict(TARGETS)[target]

    @tilelang.jit(out_idx=[-1], target=target, pass_configs=configs)
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((32, 16), "float32"), I: T.Tensor((8,), "int32"), N: T.int32,
                 C: T.Tensor((32, 16), "float32")):  # the result
            with T.Kernel(4, is_npu=True) as (block, _):
                x = T.alloc_ub((8, 16), "float32")
                T.copy(A[block * 8, 0], x)
                if what == "half":
                    T.copy(x[0:4, 0:16], C[block * 8 : block * 8 + 4, 0:16])
                for _ in T.serial(N if what == "a loop without a turn" else 0):
                    T.copy(x, C[block * 8, 0])
                if what == "place from data":
                    T.copy(x, C[I[block] * 8, 0])
                for _ in T.serial(I[0] if what == "trips from data" else 0):
                    T.copy(x, C[block * 8, 0])
                if what == "floored, places read from data":
                    y = T.alloc_ub((8, 16), "float32")
                    T.copy(A[I[block] * 8, 0], y)
                    if block < 3:
                        T.copy(y, C[block * 8, 0])

        return main

    return factory()


ARGUMENTS = np.ones((32, 16), np.float32), np.zeros(8, np.int32), 0


@pytest.mark.parametrize("target", ["ascendc", "npuir"])
@pytest.mark.parametrize("sanitize", [False, True])
@pytest.mark.parametrize(
    ("what", "report"), [("half", r"rows 4\.\.7, 12\.\.15, 20\.\.23, 28\.\.31 of C are never written: 256 of 512"),
                       ("a loop without a turn", r"C is never written: nothing is stored to any of its 512"),
                       ("floored, places read from data", r"rows 24\.\.31 of C are never written")])
def test_a_kernel_that_left_its_result_unwritten_returned_nan(target: str, sanitize: bool, what: str, report: str) -> None:
    kernel = store_kernel(target, what)
    kernel.sanitize = sanitize
    with pytest.raises(TileError, match=report) as caught:
        kernel(*ARGUMENTS)
    assert caught.value.code == "T410"
    assert caught.value.location is not None
    assert "# the result" in Path(__file__).read_text(encoding="utf-8").splitlines()[caught.value.location.line - 1]


@pytest.mark.parametrize("target", ["ascendc", "npuir"])
def test_a_result_that_no_statement_stores_to(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 16), "float32"), C: T.Tensor((32, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            x = T.alloc_ub((32, 16), "float32")
            T.copy(A, x)

    kernel = tilelang.compile(main, out_idx=[-1], target=target, pass_configs=dict(TARGETS)[target])
    with pytest.raises(TileError, match="C is never written: nothing is stored to any of its 512 elements") as caught:
        kernel(ARGUMENTS[0])
    assert caught.value.code == "T410"


def slices(row: int, columns: tuple[int, int]) -> Any:
    """Blocks of 8 rows of a result of 32 by 128, of each of which constant slices leave out columns."""
    @T.prim_func
    def main(A: T.Tensor((32, 128), "float32"), C: T.Tensor((32, 128), "float32")):
        with T.Kernel(row, is_npu=True) as (block, _):
            x = T.alloc_ub((8, 128), "float32")
            T.copy(A[block * 8, 0], x)
            T.copy(x[:, columns[0]:columns[1]], C[block * 8 : block * 8 + 8, columns[0]:columns[1]])

    return tilelang.compile(main, out_idx=[-1], target="npuir")


@pytest.mark.parametrize(("columns", "text"), [((0, 96), "columns 96..127"), ((32, 128), "columns 0..31"),
                                               ((16, 80), r"columns 0..15, 80..127")])
def test_what_constant_slices_leave_out_is_a_warning(columns: tuple[int, int], text: str) -> None:
    a = np.random.default_rng(0).standard_normal((32, 128)).astype(np.float32)
    with pytest.warns(TileWarning, match=f"{text} of C are never written: .*; constant slices leave them out"):
        found = slices(4, columns)(a)
    np.testing.assert_array_equal(found[:, columns[0]:columns[1]], a[:, columns[0]:columns[1]])
    assert np.isnan(np.delete(found, np.s_[columns[0]:columns[1]], axis=1)).all()
    with pytest.raises(TileError, match=r"rows 24\.\.31") as caught:  # the grid leaves out rows
        slices(3, columns)(a)
    assert caught.value.code == "T410"


@pytest.mark.parametrize("what", ["place from data", "trips from data"])
def test_a_result_of_which_data_choose_the_parts_warns(what: str) -> None:
    kernel = store_kernel("npuir", what)
    with pytest.warns(TileWarning, match="C (is|are) never written.* data decide") as caught:
        kernel(*ARGUMENTS)
    assert caught[0].filename == __file__
    checker = Checker(Sanitizer(), {})
    with recording.record(checker=checker):
        kernel(*ARGUMENTS)
    assert not checker.looks[0].done.errors
    report = "rows 8..31 of C are never written" if what == "place from data" else "C is never written"
    assert any(note.startswith(report) and "data decide which elements are written" in note
               for note in checker.looks[0].done.notes)


def test_a_result_that_is_only_added_to() -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 16), "float32"), C: T.Tensor((32, 16), "float32")):
        with T.Kernel(4, is_npu=True) as (block, _):
            x = T.alloc_ub((8, 16), "float32")
            T.copy(A[block * 8, 0], x)
            T.npuir_atomic_add(C[block * 8, 0], x, [8, 16])

    a = np.ones((32, 16), np.float32)
    with pytest.raises(TileError, match="C is never written") as caught:
        tilelang.compile(main, out_idx=[-1], target="npuir")(a)
    assert "atomic_add" in caught.value.notes[0]
    c = np.ones((32, 16), np.float32)
    tilelang.compile(main, target="npuir")(a, c)  # the caller's zeros, or whatever else they are
    assert (c == 2).all()


def test_the_commands_fail_on_a_result_that_is_left_unwritten(tmp_path: Path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(HALF)
    for command in (["run", str(script)], ["run", "--sanitize", str(script)], ["check", str(script)],
                    ["check", f"{script}:half"]):
        done = subprocess.run([sys.executable, "-m", "tilelang_npu", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 1, command
        assert "error[T410]: rows 16..31 of C are never written: 256 of 512 elements" in done.stdout + done.stderr
        line, column = HALF[: HALF.index("C: T.Tensor")].count("\n") + 1, len('def main(A: T.Tensor((32, 16), "float32"), ') + 1
        assert f"kernel.py:{line}:{column}" in done.stdout + done.stderr


HALF = '''
import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.prim_func
def main(A: T.Tensor((32, 16), "float32"), C: T.Tensor((32, 16), "float32")):
    with T.Kernel(1, is_npu=True) as (block, half):
        x = T.alloc_ub((16, 16), "float32")
        T.copy(A[0, 0], x)
        T.barrier_all()
        T.copy(x, C[0, 0])


half = tilelang.compile(main, out_idx=[-1], target="ascendc")
if __name__ == "__main__":
    half(np.ones((32, 16), np.float32))
'''


# -- the class ---------------------------------------------------------------------------------------------------------


@settings(max_examples=COUNT, deadline=None)
@given(target=st.sampled_from(["ascendc", "npuir"]), tile=st.tuples(st.integers(1, 12), st.sampled_from([8, 16, 24])),
       grid=st.integers(1, 5), turns=st.integers(1, 3), start=st.tuples(st.integers(0, 6), st.sampled_from([0, 0, 8, 16])),
       step=st.tuples(st.integers(1, 14), st.sampled_from([0, 8, 16, 24])),
       more=st.tuples(st.integers(-11, 5), st.integers(-7, 5)), reverse=st.booleans())
def test_the_verdict_is_that_of_counting(target: str, tile: tuple[int, int], grid: int, turns: int, start: tuple[int, int],
                                         step: tuple[int, int], more: tuple[int, int], reverse: bool) -> None:
    """Tiles with gaps and overlaps, past the ends and short of them: the expected missing elements are counted with slices."""
    (height, width), (top, left), (down, right) = tile, start, step
    last = top + (grid - 1) * down, left + (turns - 1) * right
    rows, columns = (max(at + 1, at + size + extra) for at, size, extra in zip(last, tile, more, strict=True))

    @T.prim_func
    def main(A: T.Tensor((height, width), "float32"), C: T.Tensor((rows, columns), "float32")):
        with T.Kernel(grid, is_npu=True) as (block, _):
            x = T.alloc_ub((height, width), "float32")
            T.copy(A[0, 0], x)
            for turn in T.serial(turns):
                T.copy(x, C[top + block * down, (last[1] - turn * right) if reverse else (left + turn * right)])

    count = np.zeros((rows, columns), np.int64)
    for block in range(grid):
        for turn in range(turns):
            row, column = top + block * down, left + turn * right
            count[row : row + height, column : column + width] += 1
    missing = count == 0
    kernel = tilelang.compile(main, out_idx=[-1], target=target, pass_configs=dict(TARGETS)[target])
    a = np.ones((height, width), np.float32)
    checker = Checker(Sanitizer(), {})
    with recording.record(checker=checker):
        kernel(a)
    output = [error for error in checker.looks[0].done.errors if error.code == "T410"]
    assert len(output) == int(missing.any())
    if not output:
        assert (kernel(a) == 1).all()
        return
    with pytest.raises(TileError) as caught:
        kernel(a)
    assert (caught.value.code, caught.value.message) == ("T410", output[0].message)
    if "the grid's tiles cover" in output[0].message:
        box = np.flatnonzero((count > 0).any(axis=1)).max(), np.flatnonzero((count > 0).any(axis=0)).max()
        assert (count[: box[0] + 1, : box[1] + 1] > 0).all()
        assert (f"rows {box[0] + 1}..{rows - 1} of C" in output[0].message) == (box[0] + 1 < rows)
    else:
        assert f"{missing.sum()} of {missing.size} elements" in output[0].message
    mine = np.zeros((rows, columns), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TileWarning)  # strips of the caller's array
        kernel(a, mine)
    np.testing.assert_array_equal(mine, ~missing)


def test_large_results_that_a_call_writes_wholly_are_not_marked_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a repeated call the memory is not marked; for a call with other sizes, unwritten elements are NaN."""
    @T.prim_func
    def rows(X: T.Tensor((512, 512), "float32"), n: T.int32, Y: T.Tensor((512, 512), "float32")):
        with T.Kernel(8, is_npu=True) as (block, _):
            x = T.alloc_shared((16, 512), "float32")
            for i in T.serial(n):
                T.copy(X[block * 64 + i * 16, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[block * 64 + i * 16, 0])

    kernel = tilelang.compile(rows, out_idx=[-1], target="npuir")
    x = np.random.default_rng(0).standard_normal((512, 512), np.float32)
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float, **_: np.full(shape, 7, dtype))
    marked: list[bool] = []
    run = type(kernel)._run

    def looked_at(self: Any, call: Any) -> None:
        marked.append(bool(np.isnan(call.values[2]).all()))
        run(self, call)

    monkeypatch.setattr(type(kernel), "_run", looked_at)
    for _ in range(2):
        np.testing.assert_allclose(kernel(x, 4), np.exp(x), rtol=1e-6)
    assert marked == [True, False]
    with pytest.raises(TileError, match="never written"):
        kernel(x, 3)
    assert marked == [True, False, True]


def test_a_large_result_that_data_choose_or_a_kernel_adds_to_is_always_marked() -> None:
    @T.prim_func
    def chosen(X: T.Tensor((512, 512), "float32"), I: T.Tensor((8,), "int32"), Y: T.Tensor((512, 512), "float32")):
        with T.Kernel(8, is_npu=True) as (block, _):
            x = T.alloc_shared((64, 512), "float32")
            T.copy(X[block * 64, 0], x)
            T.copy(x, Y[I[block] * 64, 0])

    kernel = tilelang.compile(chosen, out_idx=[-1], target="npuir")
    x = np.random.default_rng(0).standard_normal((512, 512), np.float32)
    places = np.arange(8, dtype=np.int32)
    for _ in range(2):
        np.testing.assert_array_equal(kernel(x, places), x)
        assert set(kernel._process.overwritten.values()) == {frozenset()}
    places[3] = 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TileWarning)
        assert np.isnan(kernel(x, places)[192:256]).all()


@pytest.mark.parametrize(("last", "output"), [
    ("T.vadd(x, 1.0, x)", True), ("T.copy(C, x)", True), ("T.copy(x, C)", False), ("T.copy(x, A)", False),
    ("T.print(x)", False)])
def test_a_kernel_that_stores_to_no_tensor_is_reported(
        last: str, output: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "without_result.py").write_text(f"""\
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(target="npuir")
def factory():
    @T.prim_func
    def main(A: T.Tensor((32, 16), "float32"), C: T.Tensor((32, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            x = T.alloc_shared((32, 16), "float32")
            T.copy(A, x)
            {last}

    return main
""")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "without_result", raising=False)
    import without_result  # type: ignore[import-not-found]

    a, c = np.ones((32, 16), np.float32), np.zeros((32, 16), np.float32)
    kernel = without_result.factory()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel(a, c)
        kernel(a, c)
    assert [str(one.message).partition(":")[0] for one in caught] == [
        "main stores to none of A, C, so it has no results"] * output


def test_an_error_in_a_bracketed_grid_has_the_position_of_the_grid() -> None:
    kernel = store_kernel("npuir", "place from data")
    with pytest.raises(TileError, match="is launched without a grid in brackets") as caught:
        kernel[(8, 1)](*ARGUMENTS)
    assert caught.value.code == "T401"
    assert "T.Kernel(...)" in caught.value.help


def test_a_slice_of_a_size_of_the_call_leaves_a_warning() -> None:
    n = T.symbolic("n")

    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), N: T.Tensor((n,), "int32"), C: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_ub((16, 64), "float32")
            T.copy(A[:, 0:n], a[:, 0:n])
            T.copy(a[:, 0:n], C[:, 0:n])

    kernel = tilelang.compile(main, out_idx=[-1], target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    a = np.ones((16, 64), np.float32)
    with pytest.warns(UserWarning, match="columns 32..63 of C are never written.*sizes of the call decide"):
        c = kernel(a, np.zeros(32, np.int32))
    assert (c[:, :32] == 1).all()


def test_a_script_for_cuda_gets_a_warning_of_a_result_that_it_does_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """TileOPs' transforms return an array of three that their kernel writes."""
    @T.prim_func
    def main(x: T.Tensor((16,), "float32"), y: T.Tensor((16,), "float32"), unused: T.Tensor((16,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_ub((16,), "float32")
            T.copy(x, a)
            T.copy(a, y)

    kernel = tilelang.compile(main, target="npuir", out_idx=[1, 2])
    x = np.ones(16, np.float32)
    with pytest.raises(TileError, match="unused is never written"):
        kernel(x)
    monkeypatch.setenv("TILELANG_NPU_GPU", "1")
    with pytest.warns(TileWarning, match="unused is never written"):
        y, _ = kernel(x)
    np.testing.assert_array_equal(y, x)
