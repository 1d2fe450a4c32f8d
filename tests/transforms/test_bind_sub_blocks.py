"""Kernels with ``threads=2`` have the results of one Vector core, whichever parts can be divided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.language.functions import PrimFunc

AUTO = {f"tl.ascend_{name}": True for name in ("auto_sync", "auto_cv_combine", "memory_planning", "auto_cross_core_sync")}
M, N = 24, 32


def rows(threads: int, m: int) -> PrimFunc:
    """A reduction along the rows, row by row work, a broadcast row and a store."""
    @T.prim_func
    def main(X: T.Tensor((2 * m, N), "float32"), B: T.Tensor((N,), "float32"), Y: T.Tensor((2 * m, N), "float32")):
        with T.Kernel(2, threads=threads, is_npu=True) as cid:
            x = T.alloc_shared((m, N), "float32")
            y = T.alloc_shared((m, N), "float32")
            top = T.alloc_shared((m,), "float32")
            bias = T.alloc_shared((N,), "float32")
            T.copy(X[cid * m, 0], x)
            T.copy(B, bias)
            T.reduce_max(x, top, dim=-1)
            for i in range(m):
                T.tile.sub(x[i, :], x[i, :], top[i])
                T.tile.add(y[i, :], x[i, :], bias)
            T.copy(y, Y[cid * m, 0])

    return main


def columns(threads: int, m: int) -> PrimFunc:
    """A reduction over the rows, which needs all of them."""
    @T.prim_func
    def main(X: T.Tensor((2 * m, N), "float32"), B: T.Tensor((N,), "float32"), Y: T.Tensor((2 * m, N), "float32")):
        with T.Kernel(2, threads=threads, is_npu=True) as cid:
            x = T.alloc_shared((m, N), "float32")
            total = T.alloc_shared((1, N), "float32")
            y = T.alloc_shared((m, N), "float32")
            z = T.alloc_shared((m, N), "float32")
            T.copy(X[cid * m, 0], x)
            T.copy(X[cid * m, 0], z)
            T.reduce_sum(x, total, dim=0)
            T.tile.broadcast(y, total)
            T.tile.add(y, y, x)
            T.tile.mul(z, z, y)
            T.copy(z, Y[cid * m, 0])

    return main


def gathered(threads: int, m: int) -> PrimFunc:
    """Rows gathered by an index, and a scratch row that every iteration writes again."""
    @T.prim_func
    def main(X: T.Tensor((2 * m, N), "float32"), B: T.Tensor((N,), "float32"), Y: T.Tensor((2 * m, N), "float32")):
        with T.Kernel(2, threads=threads, is_npu=True) as cid:
            x = T.alloc_shared((m, N), "float32")
            row = T.alloc_shared((N,), "float32")
            for i in T.serial(m):
                T.copy(X[(cid * m + i * 5) % (2 * m), 0], row)
                T.tile.mul(x[i, :], row, 2.0)
            for i in T.serial(m // 2):
                T.copy(x[i * 2:i * 2 + 2, :], Y[cid * m + i * 2, 0])

    return main


def masked(threads: int, m: int) -> PrimFunc:
    """Zeros before the diagonal: the mask depends on the row."""
    @T.prim_func
    def main(X: T.Tensor((2 * m, N), "float32"), B: T.Tensor((N,), "float32"), Y: T.Tensor((2 * m, N), "float32")):
        with T.Kernel(2, threads=threads, is_npu=True) as cid:
            x = T.alloc_shared((m, N), "float32")
            T.copy(X[cid * m, 0], x)
            for i, j in T.Parallel(m, N):
                x[i, j] = T.if_then_else(j >= cid * m + i, x[i, j], 0.0)
            T.copy(x, Y[cid * m, 0])

    return main


def swapped(threads: int, m: int) -> PrimFunc:
    """Elements at computed indices: nothing can be divided."""
    @T.prim_func
    def main(X: T.Tensor((2 * m, N), "float32"), B: T.Tensor((N,), "float32"), Y: T.Tensor((2 * m, N), "float32")):
        with T.Kernel(2, threads=threads, is_npu=True) as cid:
            x = T.alloc_shared((m, N), "float32")
            T.copy(X[cid * m, 0], x)
            for i in T.serial(m // 2):
                first = x[i, 0]
                x[i, 0] = x[m - 1 - i, 0]
                x[m - 1 - i, 0] = first
            T.copy(x, Y[cid * m, 0])

    return main


def running(threads: int, m: int) -> PrimFunc:
    """A sum that is carried from row to row."""
    @T.prim_func
    def main(X: T.Tensor((2 * m, N), "float32"), B: T.Tensor((N,), "float32"), Y: T.Tensor((2 * m, N), "float32")):
        with T.Kernel(2, threads=threads, is_npu=True) as cid:
            x = T.alloc_shared((m, N), "float32")
            total = T.alloc_shared((N,), "float32")
            T.copy(X[cid * m, 0], x)
            T.tile.fill(total, 0.0)
            for i in T.serial(m):
                T.tile.add(total, total, x[i, :])
                T.copy(total, x[i, :])
            T.copy(x, Y[cid * m, 0])

    return main


def _wanted(x: Any, bias: Any, m: int, which: Callable[..., PrimFunc]) -> Any:
    found = []
    for block in range(2):
        tile = x[block * m:(block + 1) * m]
        if which is rows:
            found.append(tile - tile.max(1, keepdims=True) + bias)
        elif which is columns:
            found.append(tile * (tile + tile.sum(0, keepdims=True)))
        elif which is gathered:
            found.append(x[(block * m + np.arange(m) * 5) % (2 * m)] * 2)
        elif which is masked:
            found.append(np.triu(tile, block * m))
        elif which is swapped:
            other = tile.copy()
            other[:m // 2 * 2, 0] = np.concatenate([tile[m - m // 2:, 0][::-1], tile[:m // 2, 0][::-1]])
            if m % 2:
                other[:, 0] = tile[::-1, 0]
            found.append(other)
        else:
            found.append(np.cumsum(tile, 0, dtype=np.float32))
    return np.concatenate(found)


@pytest.mark.parametrize("which", [rows, columns, gathered, masked, swapped, running])
@pytest.mark.parametrize("m", [24, 6])
def test_two_cores_do_the_work_of_one(which: Callable[..., PrimFunc], m: int, rng: np.random.Generator) -> None:
    x, bias = rng.integers(-9, 9, (2 * m, N)).astype(np.float32), rng.integers(-9, 9, N).astype(np.float32)
    for threads in (1, 2):
        y = tilelang.compile(which(threads, m), target="ascendc", out_idx=[2], pass_configs=AUTO)(x, bias)
        np.testing.assert_array_equal(y, _wanted(x, bias, m, which))


def test_buffers_are_halved_where_they_can_be() -> None:
    def sizes(which: Callable[..., PrimFunc]) -> dict[str, str]:
        text = tilelang.compile(which(2, M), target="ascendc", out_idx=[2], pass_configs=AUTO).mlir("bind-sub-blocks")
        lines = [line for line in text.splitlines() if "tile.alloc" in line]
        return {line.split('"')[1]: line.split("memref<")[1].split("xf32")[0] for line in lines}

    assert sizes(rows) == {"x": "12x32", "y": "12x32", "top": "12", "bias": "32"}
    assert sizes(columns) == {"x": "24x32", "total": "1x32", "y": "12x32", "z": "12x32"}
    assert sizes(gathered) == {"x": "12x32", "row": "32"}
    assert sizes(masked) == {"x": "12x32", "T.Parallel": "12x32"}
    assert sizes(swapped) == {"x": "24x32"}
    assert sizes(running) == {"x": "24x32", "total": "32"}


def test_a_product_and_its_epilogue_on_both_cores(rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 32), "float16"), D: T.Tensor((64, 32), "float16"),
             C: T.Tensor((64, 32), "float16")):
        with T.Kernel(2, threads=2, is_npu=True) as cid:
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            d = T.alloc_shared((32, 32), "float16")
            e = T.alloc_shared((32, 32), "float16")
            T.copy(A[cid * 32, 0], a)
            T.copy(B, b)
            T.gemm_v0(a, b, c, init=True)
            T.copy(c, e)
            T.copy(D[cid * 32, 0], d)
            T.tile.add(e, e, d)
            T.copy(e, a)
            T.gemm_v0(a, b, c, init=True)
            T.copy(c, C[cid * 32, 0])

    a, b, d = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((64, 32), (32, 32), (64, 32)))
    kernel = tilelang.compile(main, target="ascendc", out_idx=[3], pass_configs=AUTO)
    np.testing.assert_array_equal(kernel(a, b, d), (a @ b + d) @ b)
    assert "hivm.hir.get_sub_block_idx" in kernel.mlir()


@pytest.mark.parametrize("columns", [16, 40])
@pytest.mark.parametrize("rows", [32, 50])
def test_a_mixed_kernel_is_divided_unasked(rows: int, columns: int) -> None:
    """Reductions over all rows run on both cores; everything else is divided, including partial tiles."""
    tile, depth = 16, 24

    @T.prim_func
    def main(A: T.Tensor((rows, depth), "float16"), B: T.Tensor((depth, columns), "float16"),
             C: T.Tensor((rows, columns), "float32"), D: T.Tensor((T.ceildiv(rows, tile), columns), "float32")):
        with T.Kernel(T.ceildiv(rows, tile), is_npu=True) as (block, _):
            a = T.alloc_shared((tile, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_fragment((tile, columns), "float32")
            again = T.alloc_fragment((tile, columns), "float32")
            top = T.alloc_fragment((tile, 1), "float32")
            total = T.alloc_fragment((1, columns), "float32")
            T.copy(A[block * tile, 0], a)
            T.copy(B, b)
            T.gemm(a, b, again, initC=True)
            T.reduce_sum(again, total, dim=0)
            T.gemm(a, b, c, initC=True)
            T.reduce_max(c, top, dim=1)
            T.vsub(c, top, c)
            T.copy(c, C[block * tile, 0])
            T.copy(total, D[block, 0])

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((rows, depth), (depth, columns)))
    kernel = tilelang.compile(main, out_idx=[2, 3], target="npuir", sanitize=True)
    c, d = kernel(a, b)
    product = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(c, product - product.max(axis=1, keepdims=True))
    parts = [product[start:start + tile].sum(axis=0) for start in range(0, rows, tile)]
    np.testing.assert_array_equal(d, parts)
    assert "hivm.hir.get_sub_block_idx" in kernel.mlir()
