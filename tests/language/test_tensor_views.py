"""Tensors under another shape: ``T.view``, ``T.reshape``, and a GPU kernel's ``T.Tensor(shape, dtype, A.data)``."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import language as T
from tilelang_npu.errors import TileError


@pytest.mark.parametrize("spelling", ["view", "reshape", "data"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16", "int16"])
def test_tensors_are_read_and_written_under_another_shape(spelling: str, dtype: str) -> None:
    def seen(tensor: object, shape: tuple[int, ...]) -> object:
        if spelling == "data":
            return T.Tensor(shape, dtype, tensor.data)  # type: ignore[attr-defined]  # a tensor of the trace
        return (T.view if spelling == "view" else T.reshape)(tensor, shape)

    @tilelang.jit(out_idx=[-1], target="npu", sanitize=True)
    def shifted(planes: int, rows: int, columns: int):  # type: ignore[no-untyped-def]  # as users write it
        @T.prim_func
        def main(
            x: T.Tensor((planes, rows, columns), dtype), y: T.Tensor((planes * rows, columns // 2, 2), dtype)  # type: ignore[valid-type]
        ):
            with T.Kernel(planes, threads=128) as p:
                flat = seen(x, (planes * rows, columns))
                out = seen(y, (planes * rows, columns))
                tile = T.alloc_fragment((rows, columns), dtype, "local")
                T.copy(flat[p * rows, 0], tile)
                for i, j in T.Parallel(rows, columns):
                    tile[i, j] = tile[i, j] + tile[i, j]
                T.copy(tile, out[p * rows, 0])
        return main

    a = np.random.default_rng(3).integers(-50, 50, (3, 5, 46)).astype(tilelang.language.dtype(dtype).numpy)
    np.testing.assert_array_equal(shifted(3, 5, 46)(a).reshape(3, 5, 46), a + a)


def test_a_view_of_a_tensor_has_as_many_elements() -> None:
    @T.prim_func
    def main(x: T.Tensor((4, 6), "float32")):  # type: ignore[no-untyped-def, valid-type]
        with T.Kernel(1):
            flat = T.Tensor((5, 5), "float32", x.data)
            tile = T.alloc_shared((5, 5), "float32")
            T.copy(flat, tile)

    with pytest.raises(TileError, match=r"x \[4, 6\] float32 has 24 elements; \[5, 5\] has 25") as caught:
        tilelang.compile(main)
    assert caught.value.code == "T111"


def test_a_view_ends_where_its_own_shape_does() -> None:
    @tilelang.jit(out_idx=[-1])
    def read(start: int):  # type: ignore[no-untyped-def]
        @T.prim_func
        def main(x: T.Tensor((4, 16), "float32"), y: T.Tensor((4, 8), "float32")):  # type: ignore[valid-type]
            with T.Kernel(1):
                tile = T.alloc_shared((4, 8), "float32")
                T.copy(T.view(x, (8, 8))[start, 0], tile)
                T.copy(tile, y)
        return main

    a = np.arange(1, 65, dtype=np.float32).reshape(4, 16)
    padded = np.concatenate([a.reshape(8, 8), np.zeros((3, 8), np.float32)])
    for start in (0, 3, 4, 5, 7):
        np.testing.assert_array_equal(read(start)(a), padded[start:start + 4])


@pytest.mark.parametrize("order", [None, "relaxed", "release"])
def test_an_atomic_addition_orders_nothing_else(order: str | None) -> None:
    @tilelang.jit
    def total(order: str | None):  # type: ignore[no-untyped-def]
        @T.prim_func
        def main(x: T.Tensor((4, 16), "float32"), y: T.Tensor((1, 16), "float32")):  # type: ignore[valid-type]
            with T.Kernel(4) as p:
                tile = T.alloc_shared((1, 16), "float32")
                T.copy(x[p, 0], tile)
                T.atomic_add(y, tile, memory_order=order)
        return main

    if order == "release":
        with pytest.raises(TileError, match="memory_order='release' is not supported") as caught:
            total(order)
        assert caught.value.code == "T190"
        return
    x, y = np.arange(64, dtype=np.float32).reshape(4, 16), np.zeros((1, 16), np.float32)
    total(order)(x, y)
    np.testing.assert_array_equal(y[0], x.sum(0))


@pytest.mark.parametrize("spelling", ["view", "reshape", "data"])
def test_sizes_of_run_time(spelling: str) -> None:
    m, n = T.dynamic("m"), T.dynamic("n")

    def seen(tensor: object, shape: tuple[object, ...]) -> object:
        if spelling == "data":
            return T.Tensor(shape, "float32", tensor.data)  # type: ignore[attr-defined]  # a tensor of the trace
        return (T.view if spelling == "view" else T.reshape)(tensor, shape)

    @T.prim_func
    def main(x: T.Tensor((m, n, 32), "float32"), y: T.Tensor((m * n, 32), "float32"),  # type: ignore[no-untyped-def, valid-type]
             z: T.Tensor((m, n * 32), "float32")):  # type: ignore[valid-type]
        with T.Kernel(T.ceildiv(m * n, 16), threads=128) as b:
            rows, planes = seen(x, (m * n, 32)), seen(z, (n * m, 32))
            tile = T.alloc_fragment((16, 32), "float32")
            T.copy(rows[b * 16, 0], tile)
            for i, j in T.Parallel(16, 32):
                tile[i, j] = tile[i, j] + 1.0
            T.copy(tile, y[b * 16, 0])
            T.copy(tile, planes[b * 16, 0])

    kernel = tilelang.compile(main, target="npu")
    for sizes in ((3, 5), (8, 2), (1, 1), (7, 33)):
        a = np.random.default_rng(3).standard_normal((*sizes, 32)).astype(np.float32)
        for run in (kernel, kernel.interpret):
            y, z = np.zeros((sizes[0] * sizes[1], 32), np.float32), np.zeros((sizes[0], sizes[1] * 32), np.float32)
            run(a, y, z)
            np.testing.assert_array_equal(y, a.reshape(y.shape) + np.float32(1))
            np.testing.assert_array_equal(z, y.reshape(z.shape))
    assert kernel.last_launch.hazards == []


@pytest.mark.parametrize("shape", [lambda m: (m, 65), lambda m: (m + 1, 64)])
def test_sizes_of_run_time_must_agree(shape) -> None:  # type: ignore[no-untyped-def]
    m = T.dynamic("m")

    @T.prim_func
    def main(x: T.Tensor((m, 2, 32), "float32")):  # type: ignore[no-untyped-def, valid-type]
        with T.Kernel(m, threads=128) as b:
            tile = T.alloc_shared((1, 64), "float32")
            T.copy(T.reshape(x, shape(m))[b, 0], tile)

    with pytest.raises(TileError, match="are not known to have the same number of elements") as caught:
        tilelang.compile(main, target="npu")
    assert caught.value.code == "T111"


def test_a_part_of_a_tensor_keeps_sizes_of_run_time() -> None:
    m = T.dynamic("m")

    @T.prim_func
    def main(x: T.Tensor((m, 2, 32), "float32")):  # type: ignore[no-untyped-def, valid-type]
        with T.Kernel(m, threads=128) as b:
            tile = T.alloc_shared((1, 32), "float32")
            T.copy(T.reshape(x[:, 0, :], (m, 32))[b, 0], tile)

    with pytest.raises(TileError, match="known at run time only, and the source is no whole tensor"):
        tilelang.compile(main, target="npu")
