"""Causal attention: each position attends to itself and to earlier positions. Tiles above the diagonal are skipped.

Row statistics are one-dimensional buffers, as in most attention kernels. Only the tile on the diagonal is masked.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def causal_attention(heads, length, dim, tile=128, stages=4):
    scale = dim**-0.5
    tiles = T.ceildiv(length, tile)

    @T.prim_func
    def causal_attention(
        Q: T.Tensor((heads, length, dim), "float16"),
        K: T.Tensor((heads, length, dim), "float16"),
        V: T.Tensor((heads, length, dim), "float16"),
        O: T.Tensor((heads, length, dim), "float16"),
    ):
        with T.Kernel(heads * tiles, is_npu=True) as (block, _):
            head = block // tiles
            row = (tiles - 1 - block % tiles) * tile  # the longest rows first

            q = T.alloc_shared((tile, dim), "float16")
            k = T.alloc_shared((tile, dim), "float16")
            v = T.alloc_shared((tile, dim), "float16")
            p = T.alloc_shared((tile, tile), "float16")
            scores = T.alloc_fragment((tile, tile), "float32")
            product = T.alloc_fragment((tile, dim), "float32")
            result = T.alloc_fragment((tile, dim), "float32")
            largest = T.alloc_fragment((tile,), "float32")
            before = T.alloc_fragment((tile,), "float32")
            total = T.alloc_fragment((tile,), "float32")
            share = T.alloc_fragment((tile,), "float32")

            T.copy(Q[head, row : row + tile, :], q)
            T.clear(result)
            T.clear(total)
            T.fill(largest, -(2.0**30))
            for t in T.Pipelined(row // tile + 1, num_stages=stages):
                T.copy(K[head, t * tile : (t + 1) * tile, :], k)
                T.copy(V[head, t * tile : (t + 1) * tile, :], v)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                for i, j in T.Parallel(tile, tile):
                    scores[i, j] = scores[i, j] * scale
                if t * tile == row:
                    for i, j in T.Parallel(tile, tile):
                        scores[i, j] = T.if_then_else(j <= i, scores[i, j], -(2.0**30))
                T.copy(largest, before)
                T.reduce_max(scores, share, dim=-1)
                for i in T.Parallel(tile):
                    largest[i] = T.max(share[i], before[i])
                    before[i] = T.exp(before[i] - largest[i])
                for i, j in T.Parallel(tile, tile):
                    scores[i, j] = T.exp(scores[i, j] - largest[i])
                T.copy(scores, p)
                T.reduce_sum(scores, share, dim=-1)
                for i in T.Parallel(tile):
                    total[i] = total[i] * before[i] + share[i]
                T.gemm(p, v, product, initC=True)
                for i, j in T.Parallel(tile, dim):
                    result[i, j] = result[i, j] * before[i] + product[i, j]
            for i, j in T.Parallel(tile, dim):
                result[i, j] = result[i, j] / total[i]
            T.copy(result, O[head, row : row + tile, :])

    return causal_attention


SHAPES = [(2, 512, 128), (1, 300, 64)]


def inputs(heads: int, length: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal((heads, length, dim)).astype(np.float16) for _ in range(3))


def expected(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any]) -> Any:
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    s = q @ k.transpose(0, 2, 1) * q.shape[-1] ** -0.5
    s = np.where(np.tril(np.ones(s.shape[1:], bool)), s, -np.inf)
    s = np.exp(s - s.max(axis=-1, keepdims=True))
    return s / s.sum(axis=-1, keepdims=True) @ v


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = causal_attention(*shape)(*arrays)
        np.testing.assert_allclose(out, expected(*arrays), rtol=1e-2, atol=5e-3)
    print("PASS")
