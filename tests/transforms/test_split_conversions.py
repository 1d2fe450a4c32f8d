"""``split-conversions`` on kernels: with converted tiles, more stages are never slower, and values stay the same."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def gated(rows: int, columns: int, tile_r: int, tile_c: int, stages: int, cores: int = 48, dtype: str = "bfloat16") -> Any:
    """``z / (1 + exp(-z)) + r`` with ``z = x + b``, loaded and stored as 16 bits and computed in float32."""
    @T.prim_func
    def gated(X: T.Tensor((rows, columns), dtype), B: T.Tensor((1, columns), dtype), R: T.Tensor((rows, columns), dtype),
              Y: T.Tensor((rows, columns), dtype)):
        with T.Kernel(cores, is_npu=True) as (i, _):
            x = T.alloc_shared((tile_r, tile_c), "float32")
            b = T.alloc_shared((1, tile_c), "float32")
            r = T.alloc_shared((tile_r, tile_c), "float32")
            y = T.alloc_shared((tile_r, tile_c), "float32")
            for c in T.serial(T.ceildiv(columns, tile_c)):
                T.copy(B[0, c * tile_c], b)
                for t in T.Pipelined(T.ceildiv(T.ceildiv(rows, tile_r), cores), num_stages=stages):
                    row = (t * cores + i) * tile_r
                    T.copy(X[row, c * tile_c], x)
                    T.copy(R[row, c * tile_c], r)
                    for a, q in T.Parallel(tile_r, tile_c):
                        z = x[a, q] + b[0, q]
                        y[a, q] = z / (1.0 + T.exp(-z)) + r[a, q]
                    T.copy(y, Y[row, c * tile_c])

    return gated


@pytest.mark.parametrize("tile", [8, 4, 2])
def test_more_stages_never_take_longer(tile: int) -> None:
    """Tiles of float32 with two slots each do not fit in UB together with the temporaries if the tile has eight rows."""
    one, two, three = (gated(4096, 11008, tile, 688, stages).estimate().time_us for stages in (1, 2, 3))
    assert two <= one * 1.001
    assert three <= one * 1.001


@pytest.mark.filterwarnings("ignore:.*slots instead of")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("rows", "columns"), [(96, 1376), (37, 1000)])
def test_values(rows: int, columns: int, dtype: str) -> None:
    """Also for sizes that tiles do not divide: a partial tile is padded before it is converted."""
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    rng = np.random.default_rng(0)
    x, b, r = (rng.standard_normal(shape).astype(kind) for shape in ((rows, columns), (1, columns), (rows, columns)))
    kernel = gated(rows, columns, 8, 688, 2, 2, dtype)
    text = kernel.mlir("split-conversions")
    assert text.count("tile.alloc") - kernel.mlir("hoist-loads").count("tile.alloc") == 3, "for two loads and a store"
    z = x.astype(np.float32) + b.astype(np.float32)
    wanted = z / (1 + np.exp(-z)) + r.astype(np.float32)
    np.testing.assert_allclose(np.asarray(kernel(x, b, r)).astype(np.float32), wanted, rtol=1e-2, atol=1e-2)


def normalised(stages: int, tile: int = 8, rows: int = 96, columns: int = 1024) -> Any:
    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float16"), G: T.Tensor((rows, columns), "float16"),
             Y: T.Tensor((rows, columns), "float16")):
        with T.Kernel(4, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), "float32")
            g = T.alloc_shared((tile, columns), "float32")
            t = T.alloc_shared((tile, columns), "float32")
            sums = T.alloc_shared((tile, columns), "float32")
            r = T.alloc_shared((tile, 1), "float32")
            T.clear(sums)
            for n in T.Pipelined(rows // tile // 4, num_stages=stages):
                T.copy(X[(n * 4 + core) * tile, 0], x)
                T.copy(G[(n * 4 + core) * tile, 0], g)
                for i, j in T.Parallel(tile, columns):
                    t[i, j] = x[i, j] * g[i, j]
                T.reduce_sum(t, r, dim=1)
                for i, j in T.Parallel(tile, columns):
                    sums[i, j] = sums[i, j] + t[i, j]
                for i, j in T.Parallel(tile, columns):
                    g[i, j] = g[i, j] * r[i, 0] + x[i, j] + sums[i, j]
                T.copy(g, Y[(n * 4 + core) * tile, 0])

    return main


def test_only_loads_are_split_where_tiles_for_stores_have_no_room(rng: np.random.Generator) -> None:
    """With a tile for the store too, the tiles would not fit, and would be divided into strips."""
    one, two = (tilelang.compile(normalised(stages), target="npuir") for stages in (1, 2))
    remarks = [remark for remark in two.explain(edits=False).remarks if remark.kind == "done"]
    assert "split-tiles" not in {remark.about for remark in remarks}
    split = [remark.text for remark in remarks if remark.about == "split-conversions"]
    assert split and all("is loaded through" in text for text in split), split
    assert two.estimate().time_us <= one.estimate().time_us * 1.001
    x, g = (rng.standard_normal((96, 1024)).astype(np.float16) for _ in range(2))
    found = [np.zeros((96, 1024), np.float16) for _ in range(2)]
    for kernel, y in zip((one, two), found, strict=True):
        kernel(x, g, y)
    np.testing.assert_array_equal(*found)
