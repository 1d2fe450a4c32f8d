"""Results that depend on bytes which nothing wrote; and bytes that nothing wrote on which no result depends."""

from __future__ import annotations

import runpy
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.result.static_check import check
from tilelang_npu.simulator.run.replay import Replay
from tilelang_npu.simulator.run.uninitialised_reads import find_uninitialised_reads

pytestmark = pytest.mark.filterwarnings("ignore:stale")

ROWS, N = 8, 64


def added(loaded: int, stored: int, dtype: str) -> Any:
    """Y = X + X on whole tiles, of which only the first columns are loaded and stored."""

    @T.prim_func
    def main(X: T.Tensor((ROWS, N), dtype), Y: T.Tensor((ROWS, stored), dtype)):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_ub((ROWS, N), dtype)
            T.copy(X[0:ROWS, 0:loaded], x[0:ROWS, 0:loaded])
            T.tile.add(x, x, x)
            T.copy(x[0:ROWS, 0:stored], Y[0:ROWS, 0:stored])

    return main


def _launch(function: Any, *arrays: np.ndarray[Any, Any], dialect: str = "ascendc") -> Any:
    switches = {"tl.ascend_auto_sync": True} if dialect == "ascendc" else {}
    kernel = tilelang.compile(function, target=dialect, pass_configs=switches)
    kernel(*arrays)
    return kernel.last_launch


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int16"])
@pytest.mark.parametrize(("loaded", "stored", "found"), [(N, N, False), (32, 32, False), (32, N, True), (48, 64, True)])
def test_a_tile_that_is_loaded_in_part(dtype: str, loaded: int, stored: int, found: bool) -> None:
    launch = _launch(added(loaded, stored, dtype), np.ones((ROWS, N), dtype), np.zeros((ROWS, stored), dtype))
    assert bool(launch.hazards) == found
    if found:
        (hazard,) = launch.hazards
        size = np.dtype(dtype).itemsize
        assert (hazard.code, hazard.memory, hazard.start, hazard.buffer) == ("S221", "UB", loaded * size, "x")
        assert "T.tile.add(x, x, x)" in str(hazard)
        assert "T.copy(x[0:ROWS, 0:stored], Y[0:ROWS, 0:stored])" in str(hazard)
        assert f"the first is byte {loaded * size}" in hazard.missing


@pytest.mark.parametrize(("columns", "found"), [(N, True), (N - 16, False)])
def test_padding_that_reaches_a_reduction(columns: int, found: bool) -> None:
    @T.prim_func
    def main(X: T.Tensor((ROWS, N - 16), "float32"), Y: T.Tensor((ROWS, 1), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_ub((ROWS, N), "float32")
            y = T.alloc_ub((ROWS, 1), "float32")
            T.copy(X, x[0:ROWS, 0:N - 16])
            T.reduce_max(x[0:ROWS, 0:columns], y, dim=-1)
            T.copy(y, Y)

    launch = _launch(main, np.ones((ROWS, N - 16), np.float32), np.zeros((ROWS, 1), np.float32))
    assert [hazard.code for hazard in launch.hazards] == (["S221"] if found else [])


@pytest.mark.parametrize("size", [32, 37])
def test_a_product_whose_fractals_are_not_full(size: int, rng: np.random.Generator) -> None:
    """Rows beyond the matrix are multiplied and never stored; the accumulator is cleared by a flag known at run time."""

    @T.prim_func
    def main(A: T.Tensor((size, 48), "float16"), B: T.Tensor((48, size), "float16"), C: T.Tensor((size, size), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_shared((size, 16), "float16")
            b = T.alloc_shared((16, size), "float16")
            c = T.alloc_fragment((size, size), "float32")
            for k in T.serial(3):
                T.copy(A[0, k * 16], a)
                T.copy(B[k * 16, 0], b)
                T.gemm(a, b, c, initC=(k == 0))
            T.copy(c, C)

    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((size, 48), (48, size)))
    c = np.zeros((size, size), np.float32)
    assert _launch(main, a, b, c, dialect="npuir").hazards == []
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-4)


def _product(rows: int, depth: int, used: int) -> Any:
    """The product of a tile of 16x128 and a tile of 64x128 in L1, of which only ``rows`` rows and ``depth`` columns are loaded.
    Its first ``used`` columns are stored."""

    @T.prim_func
    def main(A: T.Tensor((16, 128), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((16, used), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_shared((16, 128), "float16")
            b = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((16, 64), "float32")
            T.copy(A, a)
            T.copy(B[0:rows, 0:depth], b)
            T.gemm(a, b, c, initC=True, b_transpose=True)
            T.copy(c[:, 0:used], C)

    return main


@pytest.mark.parametrize(("rows", "used", "found"), [
    (48, 64, True), (49, 64, True), (60, 64, True), (63, 64, True), (64, 64, False), (60, 48, False), (60, 60, False)])
def test_rows_of_a_fractal_that_nothing_loaded(rows: int, used: int, found: bool) -> None:
    """Matrices in L1 consist of fractals of 16 rows, of which a load writes only the rows that it has."""
    arrays = np.ones((16, 128), np.float16), np.ones((64, 128), np.float16), np.zeros((16, used), np.float32)
    launch = _launch(_product(rows, 128, used), *arrays, dialect="npuir")
    assert np.isnan(arrays[2]).any() == found
    assert [(hazard.code, hazard.memory, hazard.buffer) for hazard in launch.hazards] == [("S221", "L1", "b")] * found
    hazards = check(launch.recorded.program, list(arrays), 1).hazards
    assert [(hazard.code, hazard.buffer) for hazard in hazards] == [("S221", "b")] * found
    if found:
        (hazard,) = launch.hazards
        (start,) = {access.offset for record in launch.recorded.program.functions[0].records for access in record.accesses
                    if access.label == "b" and access.writes}
        assert (hazard.start - start, hazard.end - hazard.start) == (rows * 32, (64 - rows) * 256)
        assert "T.gemm(a, b, c, initC=True, b_transpose=True)" in str(hazard)


@pytest.mark.filterwarnings("default:stale")
@pytest.mark.parametrize("rows", [49, 60])
def test_a_run_warns_of_rows_of_a_fractal_that_nothing_loaded(rows: int) -> None:
    with pytest.warns(tilelang.TileWarning, match=r"(?s)S221.* of b are read.*T\.gemm"):
        _launch(_product(rows, 128, 64), np.ones((16, 128), np.float16), np.ones((64, 128), np.float16),
                np.zeros((16, 64), np.float32), dialect="npuir")


@pytest.mark.parametrize(("depth", "found"), [(128, False), (120, True), (113, True), (112, True), (96, True)])
def test_columns_that_nothing_loaded(depth: int, found: bool) -> None:
    """Also within 32 bytes, which the chip fills with zeros: a copy to a slice of a tile keeps the rest of the tile here."""
    arrays = np.ones((16, 128), np.float16), np.ones((64, 128), np.float16), np.zeros((16, 64), np.float32)
    launch = _launch(_product(64, depth, 64), *arrays, dialect="npuir")
    assert [(hazard.code, hazard.buffer) for hazard in launch.hazards] == [("S221", "b")] * found
    if not found:
        np.testing.assert_array_equal(arrays[2], depth)


@pytest.mark.parametrize(("loaded", "stored", "found"), [(60, 60, False), (60, 64, True)])
def test_a_product_of_the_rows_that_were_loaded(loaded: int, stored: int, found: bool) -> None:
    """The rows that nothing loaded are not part of the product, so that its accumulator has columns that nothing wrote."""

    @T.prim_func
    def main(A: T.Tensor((16, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((16, stored), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_shared((16, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((16, 64), "float32")
            T.copy(A, a)
            T.copy(B[0:loaded, :], b)
            T.gemm(a, b, c, initC=True, b_transpose=True, size=[16, 64, loaded])
            T.copy(c[:, 0:stored], C)

    c = np.zeros((16, stored), np.float32)
    launch = _launch(main, np.ones((16, 64), np.float16), np.ones((64, 64), np.float16), c, dialect="npuir")
    reads = list(find_uninitialised_reads(launch.recorded.program, launch.recorded.blocks[0].streams, 0))
    assert [read.access.memory for read in reads] == ["cc"] * found
    assert [(hazard.code, hazard.memory, hazard.buffer) for hazard in launch.hazards] == [("S221", "L0C", "c")] * found


def test_an_accumulator_that_is_never_cleared() -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_L1((32, 32), "float16")
            c = T.alloc_L0C((32, 32), "float32")
            T.copy(A, a)
            T.gemm_v0(a, a, c, init=False)
            T.copy(c, C)

    (hazard,) = _launch(main, np.ones((32, 32), np.float16), np.zeros((32, 32), np.float32)).hazards
    assert (hazard.code, hazard.memory, hazard.buffer) == ("S221", "L0C", "c")


_ADDS = "help: the product adds to what c held before: "


@pytest.mark.parametrize(("body", "help_"), [
    ("T.gemm_v0(a, a, c, init=False)", "write init=True, or T.clear(c) before it"),
    ("T.gemm(a, a, c, initC=False)", "write initC=True, or T.clear(c) before it"),
    ("T.gemm(a, a, c, clear_accum=False)", "write clear_accum=True, or T.clear(c) before it"),
    ("for k in T.serial(2):\n    T.gemm(a, a, c)",
     "write initC=(k == 0), where k is the loop's variable, or T.clear(c) before the loop"),
    ("for k in T.serial(2):\n    T.gemm_v0(a, a, c, init=False)",
     "write init=(k == 0), where k is the loop's variable, or T.clear(c) before the loop"),
    ("for k in T.serial(2):\n    T.gemm_v0(a, a, c, init=(k > 1))", "T.clear(c) before the first product makes it 0"),
])
def test_the_report_of_an_accumulator_names_the_repair(body: str, help_: str, tmp_path: Path) -> None:
    path = tmp_path / "accumulator.py"
    path.write_text(f"""import tilelang_npu.language as T


@T.prim_func
def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, is_npu=True) as (_, _v):
        a = T.alloc_L1((32, 32), "float16")
        c = T.alloc_L0C((32, 32), "float32")
        T.copy(A, a)
{textwrap.indent(body, 8 * " ")}
        T.copy(c, C)
""", encoding="utf-8")
    main = runpy.run_path(str(path))["main"]
    (hazard,) = _launch(main, np.ones((32, 32), np.float16), np.zeros((32, 32), np.float32)).hazards
    assert hazard.code == "S221"
    assert str(hazard).splitlines()[-1] == f"  {_ADDS}{help_}"


@pytest.mark.parametrize("cleared", [0, 1])
def test_an_accumulator_that_a_turn_of_its_loop_clears(cleared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Since the first iteration clears it, no uninitialised byte is read, and no block has to run again for the diagnosis."""

    @T.prim_func
    def main(A: T.Tensor((32, 96), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_L1((32, 32), "float16")
            c = T.alloc_L0C((32, 32), "float32")
            for k in T.serial(3):
                T.copy(A[0:32, k * 32:k * 32 + 32], a)
                T.gemm_v0(a, a, c, init=(k == cleared))
            T.copy(c, C)

    again = []
    monkeypatch.setattr(Replay, "_run", lambda self, *args, run=Replay._run: again.append(1) or run(self, *args))
    launch = _launch(main, np.ones((32, 96), np.float16), np.zeros((32, 32), np.float32))
    assert [read.access.name for read in find_uninitialised_reads(launch.recorded.program, launch.recorded.blocks[0].streams,
                                                                  0)] == (
        ["c"] if cleared else [])
    assert launch.hazards == []  # the second iteration overwrites the values that the first has read
    assert len(again) == 2 * cleared


def test_a_branch_that_depends_on_them(rng: np.random.Generator) -> None:
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            count = T.alloc_ub((8,), "int32")
            x = T.alloc_ub((N,), "float32")
            T.copy(X, x)
            if count[0] > 0:
                T.tile.add(x, x, x)
            T.copy(x, Y)

    (hazard,) = _launch(main, np.ones(N, np.float32), np.zeros(N, np.float32)).hazards
    assert (hazard.code, hazard.second) == ("S221", None)
    assert hazard.missing == "which ops the block runs, or at which addresses, depends on them"


@pytest.mark.parametrize("atomic", [True, False])
def test_a_sum_that_is_no_number_any_more_hides_nothing(atomic: bool) -> None:
    """The result in a tensor that the launch adds to would have been NaN for all contents of the uninitialised bytes."""

    @T.prim_func
    def main(Y: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_ub((N,), "float32")
            y = T.alloc_ub((N,), "float32")
            if atomic:
                T.tile.add(x, x, 1.0)
                T.tile.atomic_add(Y, x)
            else:
                T.copy(Y, y)
                T.tile.add(y, y, x)
                T.copy(y, Y)

    launch = _launch(main, np.ones(N, np.float32))
    assert [(hazard.code, hazard.buffer) for hazard in launch.hazards] == [("S221", "x")]


@pytest.mark.parametrize(("harmful", "named"), [(("second",), "second"), (("first",), "first"), (("first", "second"), "first")])
def test_the_named_buffer_is_one_on_which_the_result_depends(harmful: tuple[str, ...], named: str) -> None:
    """Both tiles are computed whole and loaded in part; of one of them, the rest is possibly not stored."""
    one, other = (N if name in harmful else N // 2 for name in ("first", "second"))

    @T.prim_func
    def main(X: T.Tensor((ROWS, N), "float32"), Y: T.Tensor((ROWS, one), "float32"), Z: T.Tensor((ROWS, other), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            first = T.alloc_ub((ROWS, N), "float32")
            second = T.alloc_ub((ROWS, N), "float32")
            T.copy(X[0:ROWS, 0:N // 2], first[0:ROWS, 0:N // 2])
            T.copy(X[0:ROWS, 0:N // 2], second[0:ROWS, 0:N // 2])
            T.tile.add(first, first, first)
            T.tile.add(second, second, second)
            T.copy(first[0:ROWS, 0:one], Y)
            T.copy(second[0:ROWS, 0:other], Z)

    launch = _launch(main, np.ones((ROWS, N), np.float32), *(np.zeros((ROWS, size), np.float32) for size in (one, other)))
    (hazard,) = launch.hazards
    assert (hazard.code, hazard.buffer) == ("S221", named)
    result = "Y" if named == "first" else "Z"
    assert f"T.tile.add({named}, {named}, {named})" in str(hazard) and f"bytes of {result} depend on them" in str(hazard)


def _rows_read_past_the_load(kinds: int) -> Any:
    """A kernel whose blocks load L[b] rows of X, then the others if L[b] exceeds 1, and store the sum of 32 rows."""
    @T.prim_func
    def main(X: T.Tensor((64, 32), "int32"), L: T.Tensor((kinds,), "int32"), Y: T.Tensor((kinds, 32), "int32")):
        with T.Kernel(kinds, is_npu=True) as (b, _):
            x = T.alloc_shared((32, 32), "int32")
            s = T.alloc_shared((1, 32), "int32")
            n = L[b]
            T.copy(X[0:n, 0:32], x[0:n, 0:32])
            if n > 1:
                T.copy(X[n:32, 0:32], x[n:32, 0:32])
            T.reduce_sum(x, s, dim=0)
            T.copy(s, Y[b, 0])

    return tilelang.compile(main, target="npuir")


@pytest.mark.parametrize(("lengths", "warns"), [([1], True), ([5], False), ([*range(2, 30), 1], True),
                                                ([*range(2, 30)], False)])
def test_a_run_finds_tiles_that_were_loaded_in_part(lengths: list[int], warns: bool) -> None:
    """Integers show no NaN; and of 29 kinds of blocks the one that executes other ops is searched."""
    kernel = _rows_read_past_the_load(len(lengths))
    y = np.zeros((len(lengths), 32), np.int32)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        kernel(np.ones((64, 32), np.int32), np.array(lengths, np.int32), y)
    assert any("S221" in str(one.message) for one in found) == warns
