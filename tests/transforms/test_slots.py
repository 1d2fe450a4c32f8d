"""Typical loops of users, under a branch or in sequence with the same buffers, get the requested slots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

TILE, DEPTH, CORES = 64, 8, 3


def persistent(rows: int, columns: int, *, guarded: bool) -> Any:
    """A product whose tiles are distributed over the cores in a loop; if ``guarded``, the last iteration of some cores has no
    tile."""
    tiles = rows // TILE * (columns // TILE)

    @T.prim_func
    def main(A: T.Tensor((rows, DEPTH * TILE), "float16"), B: T.Tensor((DEPTH * TILE, columns), "float16"),
             C: T.Tensor((rows, columns), "float32")):
        with T.Kernel(CORES, is_npu=True) as (core, _):
            a = T.alloc_shared((TILE, TILE), "float16")
            b = T.alloc_shared((TILE, TILE), "float16")
            c = T.alloc_fragment((TILE, TILE), "float32")
            for turn in T.serial(T.ceildiv(tiles, CORES)):
                tile = turn * CORES + core
                if tile < tiles if guarded else tile >= 0:
                    for k in T.Pipelined(DEPTH, num_stages=2):
                        T.copy(A[tile // (columns // TILE) * TILE, k * TILE], a)
                        T.copy(B[k * TILE, tile % (columns // TILE) * TILE], b)
                        T.gemm(a[:, 0:32], b[0:32, :], c, initC=k == 0)
                        T.gemm(a[:, 32:64], b[32:64, :], c, initC=False)
                    T.copy(c, C[tile // (columns // TILE) * TILE, tile % (columns // TILE) * TILE])

    return main


def two_products(*, names: int) -> Any:
    """Two products in sequence; the operands of the second are in the buffers of the first, or in others."""

    @T.prim_func
    def main(A: T.Tensor((TILE, DEPTH * TILE), "float16"), B: T.Tensor((DEPTH * TILE, TILE), "float16"),
             D: T.Tensor((DEPTH * TILE, TILE), "float16"), C: T.Tensor((2, TILE, TILE), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((TILE, TILE), "float16")
            b = T.alloc_shared((TILE, TILE), "float16")
            c = T.alloc_fragment((TILE, TILE), "float32")
            other = T.alloc_shared((TILE, TILE), "float16") if names == 2 else a
            further = T.alloc_shared((TILE, TILE), "float16") if names == 2 else b
            for k in T.Pipelined(DEPTH, num_stages=2):
                T.copy(A[0, k * TILE], a)
                T.copy(B[k * TILE, 0], b)
                T.gemm(a, b, c, initC=k == 0)
            T.copy(c, C[0, 0, 0])
            for k in T.Pipelined(DEPTH, num_stages=2):
                T.copy(A[0, k * TILE], other)
                T.copy(D[k * TILE, 0], further)
                T.gemm(other, further, c, initC=k == 0)
            T.copy(c, C[1, 0, 0])

    return main


def operands(*shapes: tuple[int, int]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.integers(-2, 3, shape).astype(np.float16) for shape in shapes]


@pytest.mark.parametrize(("rows", "columns"), [(128, 128), (64, 320), (192, 64)])
def test_a_persistent_kernel_keeps_its_slots_under_the_branch_that_ends_it(rows: int, columns: int) -> None:
    a, b = operands((rows, DEPTH * TILE), (DEPTH * TILE, columns))
    kernel = tilelang.compile(persistent(rows, columns, guarded=True), out_idx=[2], target="npuir", sanitize=True)
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.float32) @ b.astype(np.float32))
    (pipeline,) = kernel.explain().sections["pipelines"]
    assert "a (L1)" in pipeline and "b (L1)" in pipeline


def test_the_branch_costs_a_persistent_kernel_little() -> None:
    times = [tilelang.compile(persistent(192, 192, guarded=guarded), out_idx=[2], target="npuir").trace().cycles
             for guarded in (True, False)]  # every iteration has a tile: both do the same
    assert times[0] < 1.02 * times[1]


def test_a_second_name_for_a_buffer_of_two_loops_gains_nothing() -> None:
    a, b, d = operands((TILE, DEPTH * TILE), (DEPTH * TILE, TILE), (DEPTH * TILE, TILE))
    times = []
    for names in (1, 2):
        kernel = tilelang.compile(two_products(names=names), out_idx=[3], target="npuir", sanitize=True)
        c = kernel(a, b, d)
        for found, right in zip(c, (b, d), strict=True):
            np.testing.assert_array_equal(found, a.astype(np.float32) @ right.astype(np.float32))
        assert kernel.last_launch.hazards == []
        times.append(kernel.last_launch.cycles)
    assert times[0] == times[1]


@pytest.mark.parametrize("planned", [True, False])
def test_a_buffer_of_two_loops_stays_one_where_its_author_plans(planned: bool) -> None:
    """Memory planning is off by default in ascendc: two buffers would need twice the memory that the author expects."""
    configs = {"tl.ascend_auto_sync": True, "tl.ascend_auto_cv_combine": True, "tl.ascend_auto_cross_core_sync": True,
               "tl.ascend_memory_planning": planned}
    kernel = tilelang.compile(vector_loops(), target="ascendc", pass_configs=configs)
    (memory,) = kernel.memory_report().memories
    assert len([each for each in memory.buffers if each.name == "x"]) == (2 if planned else 1)
    refused = [each.text for each in kernel.explain().refused if each.about == "multi-buffer"]
    assert planned == (not refused) and all("memory planning is off" in text for text in refused)


def vector_loops() -> Any:
    @T.prim_func
    def main(X: T.Tensor((8, 16, 64), "float32"), Y: T.Tensor((2, 8, 16, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((16, 64), "float32")
            for i in T.Pipelined(8, num_stages=2):
                T.copy(X[i, 0, 0], x)
                T.tile.exp(x, x)
                T.copy(x, Y[0, i, 0, 0])
            for i in T.Pipelined(8, num_stages=2):
                T.copy(X[i, 0, 0], x)
                T.tile.abs(x, x)
                T.copy(x, Y[1, i, 0, 0])

    return main


def test_the_reason_for_one_slot_of_a_buffer_of_two_loops_is_reported() -> None:
    @T.prim_func
    def main(X: T.Tensor((8, 16, 64), "float32"), Y: T.Tensor((8, 16, 64), "float32"), Z: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((16, 64), "float32")
            for i in T.Pipelined(8, num_stages=2):
                T.copy(X[i, 0, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[i, 0, 0])
            T.copy(x, Z)

    kernel = tilelang.compile(main, target="npuir")
    (one,) = [each for each in kernel.explain().refused if each.about == "multi-buffer"]
    assert one.text.startswith("x (4 096 bytes of UB) has one slot for the 2 stages of the loop at line ")
    assert one.text.endswith(" possibly reads the value that the loop left in x")
    assert "read that buffer in place of x" in one.edit


def test_a_branch_and_a_loop_in_it_have_a_buffer_of_their_own_each() -> None:
    """The branch gets one, and hands on a further one to its loop: it has no loop left that could be named."""
    @T.prim_func
    def lives(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (_block, _):
            x = T.alloc_ub((8, 64), "float32")
            T.copy(A[8, 0], x)
            T.copy(x, B[56, 0])
            if n > 0:
                T.copy(A[8, 0], x)
                T.tile.add(x, x, x)
                T.copy(x, B[48, 0])
                for i in T.Pipelined(4, num_stages=2):
                    T.copy(A[i * 8, 0], x)
                    T.tile.add(x, x, x)
                    T.copy(x, B[i * 8, 0])

    kernel = tilelang.compile(lives, target="ascendc", pass_configs={
        tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True})
    a, b = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32), np.zeros((64, 64), np.float32)
    kernel(a, b, 1)
    np.testing.assert_array_equal(b, np.concatenate([2 * a[:32], 0 * a[32:48], 2 * a[8:16], a[8:16]]))
    reported = [remark.text for remark in kernel.explain().remarks if "get a separate buffer" in remark.text]
    assert len(reported) == 2
    assert sum("in the loop" in text for text in reported) == 1


def exponentials(*, form: str) -> Any:
    """e to the power of X, tile by tile; the load of the next tile is before the computation on a tile, or after it."""
    tile, tiles = 32, 12

    @T.prim_func
    def main(X: T.Tensor((tile * tiles, 256), "float32"), Y: T.Tensor((tile * tiles, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((2, tile, 256), "float32")
            y = T.alloc_shared((2, tile, 256), "float32")
            if form == "compiler":
                for t in T.Pipelined(tiles, num_stages=2):
                    T.copy(X[t * tile, 0], x[0, :, :])
                    T.vexp(x[0, :, :], y[0, :, :])
                    T.copy(y[0, :, :], Y[t * tile, 0])
            else:
                T.copy(X[0, 0], x[0, :, :])
                for t in T.serial(tiles - (form != "guarded")):
                    if form == "guarded" and t + 1 < tiles:
                        T.copy(X[(t + 1) * tile, 0], x[(t + 1) % 2, :, :])
                    if form == "ahead":
                        T.copy(X[(t + 1) * tile, 0], x[(t + 1) % 2, :, :])
                    T.vexp(x[t % 2, :, :], y[t % 2, :, :])
                    T.copy(y[t % 2, :, :], Y[t * tile, 0])
                    if form == "after":
                        T.copy(X[(t + 1) * tile, 0], x[(t + 1) % 2, :, :])
                if form != "guarded":
                    T.vexp(x[(tiles - 1) % 2, :, :], y[(tiles - 1) % 2, :, :])
                    T.copy(y[(tiles - 1) % 2, :, :], Y[(tiles - 1) * tile, 0])

    return main


@pytest.mark.parametrize("form", ["ahead", "after", "guarded"])
def test_who_loads_the_next_tile_by_hand_waits_for_that_of_this_one_alone(form: str) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (384, 256)).astype(np.float32)
    times = []
    for name in ("compiler", form):
        kernel = tilelang.jit(exponentials, target="npuir")(form=name)
        y = np.zeros_like(x)
        kernel(x, y)
        np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)
        assert kernel.last_launch.hazards == []
        times.append(kernel.last_launch.time_us)
    assert times[1] <= 1.02 * times[0]


def overwritten_in_part(rows: int, columns: int, stored: int) -> Any:
    """A loop loads a tile twice into one buffer; then single elements of the first ``stored`` rows are overwritten."""

    @T.prim_func
    def main(X: T.Tensor((3 * rows, columns), "int32"), Y: T.Tensor((rows, columns), "int32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((rows, columns), "int32")
            T.copy(X[2 * rows, 0], x)
            for _turn in T.serial(2):
                T.fill(x, 1)
                for _again in T.serial(2):
                    T.copy(X[rows, 0], x)
            for turn in T.serial(1, 5):
                for i, j in T.Parallel(stored, columns):
                    x[i, j] = (i * 3 | 7) // 3 | j * 3 >> 1 | turn >> 1
            T.copy(x, Y[0, 0])

    return main


@pytest.mark.parametrize("stored", [5, 16])
@pytest.mark.parametrize("columns", [20, 24])
def test_what_a_loop_loads_is_kept_where_single_elements_overwrite_only_a_part(columns: int, stored: int) -> None:
    """Found by ``benchmarks/fuzz.py`` (seed 207812): the stores were taken to overwrite the whole buffer, so the loop got a
    buffer of its own, and the rows after the stored ones had the contents from before the loop."""
    rows = 16
    x = np.random.default_rng(1).integers(-100, 100, (3 * rows, columns)).astype(np.int32)
    expected = x[rows:2 * rows].copy()
    i, j = np.arange(stored)[:, None], np.arange(columns)
    expected[:stored] = (i * 3 | 7) // 3 | j * 3 >> 1 | 4 >> 1
    y = np.zeros((rows, columns), np.int32)
    tilelang.jit(overwritten_in_part, target="npuir")(rows=rows, columns=columns, stored=stored)(x, y)
    np.testing.assert_array_equal(y, expected)
