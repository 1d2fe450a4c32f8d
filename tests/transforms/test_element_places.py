"""Elements of global tensors at indices from data, and atomic additions of tiles at them point by point."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_an_index_past_the_end_reads_as_zero(rng: np.random.Generator) -> None:
    @T.prim_func
    def main(KV: T.Tensor((10, 24), "float16"), I: T.Tensor((5,), "int32"), O: T.Tensor((5, 24), "float16")):
        with T.Kernel(1, is_npu=True) as (_, _):
            o = T.alloc_shared((5, 24), "float16")
            for i, d in T.Parallel(5, 24):
                o[i, d] = KV[I[i], d]
            T.copy(o, O)

    kv = rng.standard_normal((10, 24)).astype(np.float16)
    places = np.array([9, 10, 0, 11, 3], np.int32)
    o = tilelang.compile(main, out_idx=[-1], target="npuir")(kv, places)
    np.testing.assert_array_equal(o, np.where((places < 10)[:, None], kv[np.minimum(places, 9)], 0))


def test_an_index_past_the_end_is_not_written(rng: np.random.Generator) -> None:
    @T.prim_func
    def main(V: T.Tensor((6,), "float32"), I: T.Tensor((6,), "int32"), O: T.Tensor((4, 3), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            v = T.alloc_ub((6,), "float32")
            T.copy(V, v)
            for i in T.serial(6):
                O[I[i], i % 3] = v[i]

    v, places = rng.standard_normal(6).astype(np.float32), np.array([3, 4, 0, 2, 1, 9], np.int32)
    o = np.full((4, 3), 7, np.float32)
    tilelang.compile(main, target="npuir")(v, places, o)
    expected = np.full((4, 3), 7, np.float32)
    for i in (0, 2, 3, 4):
        expected[places[i], i % 3] = v[i]
    np.testing.assert_array_equal(o, expected)


def test_a_computed_index_past_the_end_is_an_error() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), O: T.Tensor((8,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            o = T.alloc_ub((8,), "float32")
            for i in T.serial(8):
                o[i] = A[i + 1]
            T.copy(o, O)

    with pytest.raises(tilelang.TileError) as caught:
        tilelang.compile(main, out_idx=[-1], target="npuir")(np.zeros(8, np.float32))
    assert caught.value.code in ("T130", "T502")


@pytest.mark.parametrize("name", ["atomic_add", "atomic_addx4"])
def test_tiles_added_in_parallel(name: str, rng: np.random.Generator) -> None:
    add = getattr(T, name)

    @T.prim_func
    def main(X: T.Tensor((6, 16), "float32"), I: T.Tensor((6,), "int32"), O: T.Tensor((5, 16), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            x = T.alloc_ub((6, 16), "float32")
            T.copy(X, x)
            for i, d in T.Parallel(6, 4):
                if I[i] < 5:
                    add(O[I[i], d * 4], x[i, d * 4], [1, 4])

    x, places = rng.integers(-9, 9, (6, 16)).astype(np.float32), np.array([4, 0, 4, 7, 2, 0], np.int32)
    o = np.ones((5, 16), np.float32)
    tilelang.compile(main, target="npuir")(x, places, o)
    expected = np.ones((5, 16), np.float32)
    for row, place in zip(x, places, strict=True):
        if place < 5:
            expected[place] += 2 * row
    np.testing.assert_array_equal(o, expected)


def test_tiles_moved_in_parallel(rng: np.random.Generator) -> None:
    @T.prim_func
    def main(X: T.Tensor((6, 4, 16), "float32"), O: T.Tensor((6, 4, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((4, 16), "float32")
            total = T.alloc_ub((6, 4, 16), "float32")
            for i in T.Parallel(6):
                T.copy(X[i, 0, 0], x)
                total[i, 0, 0] = x[0, 0] + x[3, 15]
                T.copy(x[1:4, :], total[i, 1:4, :])
            T.copy(total[:, 0:1, 0:1], O[:, 0:1, 0:1])
            T.copy(total[:, 1:4, :], O[:, 1:4, :])

    x, o = rng.standard_normal((6, 4, 16)).astype(np.float32), np.zeros((6, 4, 16), np.float32)
    tilelang.compile(main, target="npuir")(x, o)
    np.testing.assert_array_equal(o[:, 1:], x[:, 1:])
    np.testing.assert_array_equal(o[:, 0, 0], x[:, 0, 0] + x[:, 3, 15])


def test_other_tile_operations_stay_out_of_parallel() -> None:
    @T.prim_func
    def main(X: T.Tensor((6, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((6, 16), "float32")
            for i in T.Parallel(6):
                T.vexp(x[i, :], x[i, :])

    with pytest.raises(tilelang.TileError) as caught:
        tilelang.compile(main, target="npuir")
    assert caught.value.code == "T141"


@pytest.mark.parametrize(("rows", "columns"), [(8, 16), (16, 8), (4, 24), (3, 40)])
@pytest.mark.parametrize("kind", ["float16", "float32", "int8"])
def test_reshape_to_a_narrower_or_wider_buffer(rows: int, columns: int, kind: str, rng: np.random.Generator) -> None:
    @T.prim_func
    def main(X: T.Tensor((rows, columns), kind), Y: T.Tensor((columns, rows), kind)):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((rows, columns), kind)
            y = T.alloc_ub((columns, rows), kind)
            T.copy(X, x)
            T.npuir_reshape(x, y)
            T.npuir_reshape(y, y)
            T.copy(y, Y)

    x = rng.integers(-99, 99, (rows, columns)).astype(kind)
    y = tilelang.compile(main, out_idx=[-1], target="npuir")(x)
    np.testing.assert_array_equal(y, x.reshape(columns, rows))


def test_what_was_copied_to_the_cube_changes_its_type_in_ub(rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_shared((32, 32), "float32")
            half = T.alloc_shared((32, 32), "float16")
            scaled = T.alloc_shared((1, 32, 32), "float32")
            result = T.alloc_shared((32, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, initC=True)
            T.reshape(c, scaled)
            T.vmul(scaled, 0.25, scaled)
            T.reshape(scaled, c)
            T.copy(c, half)
            T.gemm(half, b, result, initC=True)
            T.copy(result, C)

    a, b = rng.standard_normal((2, 32, 32)).astype(np.float16)
    c = tilelang.compile(main, out_idx=[-1], target="npuir")(a, b)
    half = (a.astype(np.float32) @ b.astype(np.float32) * np.float32(0.25)).astype(np.float16)
    np.testing.assert_allclose(c, half.astype(np.float32) @ b.astype(np.float32), rtol=1e-2, atol=1e-2)
