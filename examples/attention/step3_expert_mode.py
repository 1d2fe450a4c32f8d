"""128 queries and 128 keys, in Expert mode

A tile with four times as many scores needs twice the loads and a quarter of the iterations, so the start-up costs and waits
of an iteration are paid a quarter as often. The kernel is in Expert mode: it declares a workspace for each value that passes
between the cores, with all compiler switches off. The source assigns each operation to a core, splits each tile between the
Vector cores, and has every flag between cores and every wait within a core. The Cube core runs two tiles ahead of the weights.

Removes cause: small tiles
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T

SCORES, WEIGHTS, PRODUCT = 0, 1, 2  # flags between the cores: the tile of this name is in its workspace


@tilelang.jit(out_idx=[3], workspace_idx=[4, 5, 6], target="ascendc")
def attention(heads, queries, keys, dim, tile=128, ahead=2):
    scale, half = dim**-0.5, tile // 2
    tiles, count, ring = T.ceildiv(queries, tile), keys // tile, ahead + 1
    blocks = heads * tiles

    @T.prim_func
    def attention(
        Q: T.Tensor((heads, queries, dim), "float16"),
        K: T.Tensor((heads, keys, dim), "float16"),
        V: T.Tensor((heads, keys, dim), "float16"),
        O: T.Tensor((heads, queries, dim), "float16"),
        scores_of: T.Tensor((blocks, ring, tile, tile), "float32"),
        weights_of: T.Tensor((blocks, ring, tile, tile), "float16"),
        product_of: T.Tensor((blocks, ring, tile, dim), "float32"),
    ):
        with T.Kernel(blocks, is_npu=True) as (block, vid):
            head = block // tiles
            row = block % tiles * tile
            q = T.alloc_L1((tile, dim), "float16")
            k = T.alloc_L1((2, tile, dim), "float16")
            v = T.alloc_L1((2, tile, dim), "float16")
            p = T.alloc_L1((2, tile, tile), "float16")
            scores_l0 = T.alloc_L0C((tile, tile), "float32")
            product_l0 = T.alloc_L0C((tile, dim), "float32")

            with T.Scope("C"):
                for slot in range(2):
                    T.set_flag("mte1", "mte2", slot)
                    T.set_flag("mte1", "mte2", 2 + slot)
                    T.set_flag("fix", "m", slot)
                T.copy(Q[head, row, 0], q)

                for i in T.serial(count + ahead):
                    if i < count:
                        T.wait_flag("mte1", "mte2", i % 2)
                        T.copy(K[head, i * tile, 0], k[i % 2, :, :])
                        T.set_flag("mte2", "mte1", i % 2)
                        T.wait_flag("mte2", "mte1", i % 2)
                        T.wait_flag("fix", "m", 0)
                        T.gemm_v0(q, k[i % 2, :, :], scores_l0, transpose_B=True, init=True)
                        T.set_flag("mte1", "mte2", i % 2)
                        T.set_flag("m", "fix", 0)
                        T.wait_flag("m", "fix", 0)
                        T.copy(scores_l0, scores_of[block, i % ring, :, :])
                        T.set_flag("fix", "m", 0)
                        T.set_cross_flag("fix", SCORES)
                    if i >= ahead:
                        T.wait_flag("mte1", "mte2", 2 + i % 2)
                        T.copy(V[head, (i - ahead) * tile, 0], v[i % 2, :, :])
                        T.wait_cross_flag(WEIGHTS)
                        T.copy(weights_of[block, (i + 1) % ring, :, :], p[i % 2, :, :])
                        T.set_flag("mte2", "mte1", 2 + i % 2)
                        T.wait_flag("mte2", "mte1", 2 + i % 2)
                        T.wait_flag("fix", "m", 1)
                        T.gemm_v0(p[i % 2, :, :], v[i % 2, :, :], product_l0, init=True)
                        T.set_flag("mte1", "mte2", 2 + i % 2)
                        T.set_flag("m", "fix", 1)
                        T.wait_flag("m", "fix", 1)
                        T.copy(product_l0, product_of[block, (i + 1) % ring, :, :])
                        T.set_flag("fix", "m", 1)
                        T.set_cross_flag("fix", PRODUCT)

                for slot in range(2):
                    T.wait_flag("mte1", "mte2", slot)
                    T.wait_flag("mte1", "mte2", 2 + slot)
                    T.wait_flag("fix", "m", slot)

            scores = T.alloc_ub((2, half, tile), "float32")
            weights = T.alloc_ub((half, tile), "float16")
            product = T.alloc_ub((half, dim), "float32")
            result = T.alloc_ub((half, dim), "float32")
            stored = T.alloc_ub((half, dim), "float16")
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

                for i in T.serial(count + ahead):
                    if i < count:
                        T.wait_cross_flag(SCORES)
                        T.wait_flag("v", "mte2", i % 2)
                        T.copy(scores_of[block, i % ring, vid * half, 0], scores[i % 2, :, :])
                        T.set_flag("mte2", "v", i % 2)
                        T.wait_flag("mte2", "v", i % 2)
                        T.tile.mul(scores[i % 2, :, :], scores[i % 2, :, :], scale)
                        T.pipe_barrier("v")
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

                T.tile.div(result, result, total)
                T.pipe_barrier("v")
                T.copy(result, stored)
                T.set_flag("v", "mte3", 1)
                T.wait_flag("v", "mte3", 1)
                T.copy(stored, O[head, row + vid * half, 0])
                T.wait_flag("v", "mte2", 0)
                T.wait_flag("v", "mte2", 1)
                T.wait_flag("v", "mte2", 2)
                T.wait_flag("mte3", "v", 0)

    return attention


if __name__ == "__main__":
    check(attention)
