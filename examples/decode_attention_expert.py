"""Attention of one new token over a KV cache, in Expert mode: keys and values of the next tiles are loaded while the Vector
cores compute the weights of the current tile. The Developer version is ``decode_attention.py``.
"""

import numpy as np
from decode_attention import SHAPES, expected, inputs

import tilelang_npu as tilelang
import tilelang_npu.language as T

SCORES, WEIGHTS, PRODUCT = 0, 1, 2  # flags between the cores: the tile of this name is in its workspace


@tilelang.jit(out_idx=[3], workspace_idx=[4, 5, 6, 7, 8, 9], target="ascendc")
def decode_attention(batch, heads, kv_heads, length, dim, tile=256, splits=2, ahead=1):
    group = heads // kv_heads
    half = group // 2
    scale = dim**-0.5
    part = T.ceildiv(T.ceildiv(length, tile), splits)
    blocks, ring, slots = batch * kv_heads * splits, ahead + 1, 3

    @T.prim_func
    def decode_attention(
        Q: T.Tensor((batch, heads, dim), "float16"),
        K: T.Tensor((batch, kv_heads, length, dim), "float16"),
        V: T.Tensor((batch, kv_heads, length, dim), "float16"),
        O: T.Tensor((batch, heads, dim), "float16"),
        scores_of: T.Tensor((blocks, ring, group, tile), "float32"),
        weights_of: T.Tensor((blocks, ring, group, tile), "float16"),
        product_of: T.Tensor((blocks, ring, group, dim), "float32"),
        Shares: T.Tensor((batch, kv_heads, splits, group, dim), "float32"),
        Largest: T.Tensor((batch, kv_heads, splits, 2, half), "float32"),
        Totals: T.Tensor((batch, kv_heads, splits, 2, half), "float32"),
    ):
        with T.Kernel(blocks, is_npu=True) as (block, vid):
            b = block // (kv_heads * splits)
            h = block // splits % kv_heads
            split = block % splits

            q = T.alloc_L1((group, dim), "float16")
            k = T.alloc_L1((slots, tile, dim), "float16")
            v = T.alloc_L1((slots, tile, dim), "float16")
            p = T.alloc_L1((slots, group, tile), "float16")
            scores_l0 = T.alloc_L0C((group, tile), "float32")
            product_l0 = T.alloc_L0C((group, dim), "float32")

            with T.Scope("C"):
                for slot in range(slots):
                    T.set_flag("mte1", "mte2", slot)
                T.set_flag("fix", "m", 0)
                T.set_flag("fix", "m", 1)
                T.copy(Q[b, h * group, 0], q)

                for i in T.serial(part + ahead):
                    if i < part:
                        T.copy(K[b, h, (split * part + i) * tile, 0], k[i % slots, :, :])
                        T.set_flag("mte2", "mte1", i % slots)
                        T.wait_flag("mte1", "mte2", i % slots)
                        T.copy(V[b, h, (split * part + i) * tile, 0], v[i % slots, :, :])

                        T.wait_flag("mte2", "mte1", i % slots)
                        T.wait_flag("fix", "m", 0)
                        T.gemm_v0(q, k[i % slots, :, :], scores_l0, transpose_B=True, init=True)
                        T.set_flag("m", "fix", 0)
                        T.wait_flag("m", "fix", 0)
                        T.copy(scores_l0, scores_of[block, i % ring, :, :])
                        T.set_flag("fix", "m", 0)
                        T.set_cross_flag("fix", SCORES)
                    if i >= ahead:
                        T.wait_cross_flag(WEIGHTS)
                        T.copy(weights_of[block, (i + 1) % ring, :, :], p[i % slots, :, :])
                        T.set_flag("mte2", "mte1", slots)
                        T.wait_flag("mte2", "mte1", slots)
                        T.wait_flag("fix", "m", 1)
                        T.gemm_v0(p[i % slots, :, :], v[(i - ahead) % slots, :, :], product_l0, init=True)
                        T.set_flag("mte1", "mte2", (i - ahead) % slots)
                        T.set_flag("m", "fix", 1)
                        T.wait_flag("m", "fix", 1)
                        T.copy(product_l0, product_of[block, (i + 1) % ring, :, :])
                        T.set_flag("fix", "m", 1)
                        T.set_cross_flag("fix", PRODUCT)

                for slot in range(slots):
                    T.wait_flag("mte1", "mte2", slot)
                T.wait_flag("fix", "m", 0)
                T.wait_flag("fix", "m", 1)

            scores = T.alloc_ub((2, half, tile), "float32")
            weights = T.alloc_ub((half, tile), "float16")
            product = T.alloc_ub((half, dim), "float32")
            result = T.alloc_ub((half, dim), "float32")
            largest = T.alloc_ub((half, 1), "float32")
            total = T.alloc_ub((half, 1), "float32")
            share = T.alloc_ub((half, 1), "float32")
            before = T.alloc_ub((ring, half, 1), "float32")

            with T.Scope("V"):
                T.set_flag("v", "mte2", 0)
                T.set_flag("v", "mte2", 1)
                T.set_flag("v", "mte2", 2)
                T.set_flag("mte3", "v", 0)
                T.tile.fill(result, 0.0)
                T.tile.fill(total, 0.0)
                T.tile.fill(largest, -(2.0**30))

                for i in T.serial(part + ahead):
                    if i < part:
                        T.wait_cross_flag(SCORES)
                        T.wait_flag("v", "mte2", i % 2)
                        T.copy(scores_of[block, i % ring, vid * half, 0], scores[i % 2, :, :])
                        T.set_flag("mte2", "v", i % 2)
                        T.wait_flag("mte2", "v", i % 2)
                        T.tile.mul(scores[i % 2, :, :], scores[i % 2, :, :], scale)
                        T.pipe_barrier("v")
                        keys = length - (split * part + i) * tile  # keys with valid scores
                        if keys < tile:
                            T.set_flag("v", "s", 0)
                            T.wait_flag("v", "s", 0)
                            for r in T.serial(half):
                                for c in T.serial(T.max(keys, 0), tile):
                                    scores[i % 2, r, c] = -(2.0**30)
                            T.set_flag("s", "v", 0)
                            T.wait_flag("s", "v", 0)
                        T.reduce_max(scores[i % 2, :, :], share, dim=-1)
                        T.pipe_barrier("v")
                        T.tile.max(share, share, largest)
                        T.pipe_barrier("v")
                        T.tile.sub(scores[i % 2, :, :], scores[i % 2, :, :], share)
                        T.tile.sub(before[i % ring, :, :], largest, share)
                        T.pipe_barrier("v")
                        T.tile.exp(scores[i % 2, :, :], scores[i % 2, :, :])
                        T.tile.exp(before[i % ring, :, :], before[i % ring, :, :])
                        T.copy(share, largest)
                        T.wait_flag("mte3", "v", 0)
                        T.pipe_barrier("v")
                        T.copy(scores[i % 2, :, :], weights)
                        T.set_flag("v", "mte3", 0)
                        T.wait_flag("v", "mte3", 0)
                        T.copy(weights, weights_of[block, i % ring, vid * half, 0])
                        T.set_flag("mte3", "v", 0)
                        T.set_cross_flag("mte3", WEIGHTS)
                        T.reduce_sum(scores[i % 2, :, :], share, dim=-1)
                        T.set_flag("v", "mte2", i % 2)
                        T.tile.mul(total, total, before[i % ring, :, :])
                        T.pipe_barrier("v")
                        T.tile.add(total, total, share)
                    if i >= ahead:
                        T.wait_cross_flag(PRODUCT)
                        T.wait_flag("v", "mte2", 2)
                        T.copy(product_of[block, (i + 1) % ring, vid * half, 0], product)
                        T.set_flag("mte2", "v", 2)
                        T.tile.mul(result, result, before[(i + 1) % ring, :, :])
                        T.wait_flag("mte2", "v", 2)
                        T.pipe_barrier("v")
                        T.tile.add(result, result, product)
                        T.set_flag("v", "mte2", 2)
                        T.pipe_barrier("v")

                T.set_flag("v", "mte3", 1)
                T.wait_flag("v", "mte3", 1)
                T.copy(result, Shares[b, h, split, vid * half, 0])
                T.copy(largest[:, 0], Largest[b, h, split, vid, :])
                T.copy(total[:, 0], Totals[b, h, split, vid, :])
                T.wait_flag("v", "mte2", 0)
                T.wait_flag("v", "mte2", 1)
                T.wait_flag("v", "mte2", 2)
                T.wait_flag("mte3", "v", 0)

        with T.Kernel(batch * kv_heads, is_npu=True) as (block, vid):
            b = block // kv_heads
            h = block % kv_heads

            parts = T.alloc_ub((splits, half, dim), "float32")
            out = T.alloc_ub((half, dim), "float32")
            stored = T.alloc_ub((half, dim), "float16")
            most = T.alloc_ub((half, 1), "float32")
            each = T.alloc_ub((splits, half, 1), "float32")
            weight = T.alloc_ub((splits, half, 1), "float32")
            all_of = T.alloc_ub((half, 1), "float32")

            with T.Scope("V"):
                for s in T.serial(splits):
                    T.copy(Largest[b, h, s, vid, :], each[s, :, 0])
                    T.copy(Totals[b, h, s, vid, :], weight[s, :, 0])
                T.set_flag("mte2", "v", 0)
                for s in T.serial(splits):
                    T.copy(Shares[b, h, s, vid * half, 0], parts[s, :, :])
                T.set_flag("mte2", "v", 1)
                T.tile.fill(out, 0.0)
                T.tile.fill(all_of, 0.0)
                T.tile.fill(most, -(2.0**30))
                T.wait_flag("mte2", "v", 0)
                for s in T.serial(splits):
                    T.pipe_barrier("v")
                    T.tile.max(most, most, each[s, :, :])
                T.pipe_barrier("v")
                for s in T.serial(splits):
                    T.tile.sub(each[s, :, :], each[s, :, :], most)
                T.pipe_barrier("v")
                T.tile.exp(each, each)
                T.pipe_barrier("v")
                T.tile.mul(weight, weight, each)
                T.wait_flag("mte2", "v", 1)
                for s in T.serial(splits):
                    T.pipe_barrier("v")
                    T.tile.mul(parts[s, :, :], parts[s, :, :], each[s, :, :])
                for s in T.serial(splits):
                    T.pipe_barrier("v")
                    T.tile.add(out, out, parts[s, :, :])
                    T.tile.add(all_of, all_of, weight[s, :, :])
                T.pipe_barrier("v")
                T.tile.div(out, out, all_of)
                T.pipe_barrier("v")
                T.copy(out, stored)
                T.set_flag("v", "mte3", 0)
                T.wait_flag("v", "mte3", 0)
                T.copy(stored, O[b, h * group + vid * half, 0])

    return decode_attention


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = decode_attention(*shape)(*arrays)
        np.testing.assert_allclose(out, expected(*arrays), rtol=1e-2, atol=5e-3)
    print("PASS")
