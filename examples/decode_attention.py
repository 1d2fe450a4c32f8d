"""Attention of one new token over a KV cache, with grouped query heads (GQA) and the keys split among blocks.

The rows of a tile are the query heads of a group. Each block processes a part of the cache and stores its partial result,
the largest score and the sum of its weights; a second launch combines the partial results.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[3], workspace_idx=[4, 5, 6], target="npuir")
def decode_attention(batch, heads, kv_heads, length, dim, tile=256, splits=2, stages=2):
    group = heads // kv_heads
    scale = dim**-0.5
    part = T.ceildiv(T.ceildiv(length, tile), splits)

    @T.prim_func
    def decode_attention(
        Q: T.Tensor((batch, heads, dim), "float16"),
        K: T.Tensor((batch, kv_heads, length, dim), "float16"),
        V: T.Tensor((batch, kv_heads, length, dim), "float16"),
        O: T.Tensor((batch, heads, dim), "float16"),
        Shares: T.Tensor((batch, kv_heads, splits, group, dim), "float32"),
        Largest: T.Tensor((batch, kv_heads, splits, group), "float32"),
        Totals: T.Tensor((batch, kv_heads, splits, group), "float32"),
    ):
        with T.Kernel(batch * kv_heads * splits, is_npu=True) as (block, _):
            b = block // (kv_heads * splits)
            h = block // splits % kv_heads
            split = block % splits

            q = T.alloc_shared((group, dim), "float16")
            k = T.alloc_shared((tile, dim), "float16")
            v = T.alloc_shared((tile, dim), "float16")
            p = T.alloc_shared((group, tile), "float16")
            scores = T.alloc_fragment((group, tile), "float32")
            product = T.alloc_fragment((group, dim), "float32")
            result = T.alloc_fragment((group, dim), "float32")
            largest = T.alloc_fragment((group,), "float32")
            before = T.alloc_fragment((group,), "float32")
            total = T.alloc_fragment((group,), "float32")
            share = T.alloc_fragment((group,), "float32")

            T.copy(Q[b, h * group : (h + 1) * group, :], q)
            T.clear(result)
            T.clear(total)
            T.fill(largest, -(2.0**30))
            for t in T.Pipelined(part, num_stages=stages):
                first = (split * part + t) * tile
                T.copy(K[b, h, first : first + tile, :], k)
                T.copy(V[b, h, first : first + tile, :], v)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                for i, j in T.Parallel(group, tile):
                    scores[i, j] = T.if_then_else(first + j < length, scores[i, j] * scale, -(2.0**30))
                T.copy(largest, before)
                T.reduce_max(scores, share, dim=-1)
                for i in T.Parallel(group):
                    largest[i] = T.max(share[i], before[i])
                    before[i] = T.exp(before[i] - largest[i])
                for i, j in T.Parallel(group, tile):
                    scores[i, j] = T.exp(scores[i, j] - largest[i])
                T.copy(scores, p)
                T.reduce_sum(scores, share, dim=-1)
                for i in T.Parallel(group):
                    total[i] = total[i] * before[i] + share[i]
                T.gemm(p, v, product, initC=True)
                for i, j in T.Parallel(group, dim):
                    result[i, j] = result[i, j] * before[i] + product[i, j]
            T.copy(result, Shares[b, h, split, :, :])
            T.copy(largest, Largest[b, h, split, :])
            T.copy(total, Totals[b, h, split, :])

        with T.Kernel(batch * kv_heads, is_npu=True) as (block, _):
            b = block // kv_heads
            h = block % kv_heads

            part_of = T.alloc_fragment((group, dim), "float32")
            out = T.alloc_fragment((group, dim), "float32")
            most = T.alloc_fragment((group,), "float32")
            mine = T.alloc_fragment((group,), "float32")
            weight = T.alloc_fragment((group,), "float32")
            all_of = T.alloc_fragment((group,), "float32")

            T.clear(out)
            T.clear(all_of)
            T.fill(most, -(2.0**30))
            for s in T.serial(splits):
                T.copy(Largest[b, h, s, :], mine)
                for i in T.Parallel(group):
                    most[i] = T.max(most[i], mine[i])
            for s in T.serial(splits):
                T.copy(Shares[b, h, s, :, :], part_of)
                T.copy(Largest[b, h, s, :], mine)
                T.copy(Totals[b, h, s, :], weight)
                for i in T.Parallel(group):
                    mine[i] = T.exp(mine[i] - most[i])
                    all_of[i] = all_of[i] + weight[i] * mine[i]
                for i, j in T.Parallel(group, dim):
                    out[i, j] = out[i, j] + part_of[i, j] * mine[i]
            for i, j in T.Parallel(group, dim):
                out[i, j] = out[i, j] / all_of[i]
            T.copy(out, O[b, h * group : (h + 1) * group, :])

    return decode_attention


SHAPES = [(2, 32, 4, 2048, 128), (1, 16, 2, 1000, 64)]


def inputs(batch: int, heads: int, kv_heads: int, length: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    cache = tuple(rng.standard_normal((batch, kv_heads, length, dim)).astype(np.float16) for _ in range(2))
    return rng.standard_normal((batch, heads, dim)).astype(np.float16), *cache


def expected(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any]) -> Any:
    batch, heads, dim = q.shape
    q = q.reshape(batch, k.shape[1], -1, dim).astype(np.float32)
    s = q @ k.astype(np.float32).transpose(0, 1, 3, 2) * dim**-0.5
    s = np.exp(s - s.max(axis=-1, keepdims=True))
    return (s / s.sum(axis=-1, keepdims=True) @ v.astype(np.float32)).reshape(batch, heads, dim)


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = decode_attention(*shape)(*arrays)
        np.testing.assert_allclose(out, expected(*arrays), rtol=1e-2, atol=5e-3)
    print("PASS")
