"""Page by page

A tile is a page. The scalar unit reads its number from the block table, 16 KB of keys and 16 KB of values are loaded from
this page, and the rest is as in decoding. The rows of a tile are eight query heads; a block processes all pages of one KV
head, so 8 of 24 cores have work. The table ends with the last page, so no number after it is read.

`num_stages=1` keeps the loop over pages serial; otherwise the compiler would pipeline it (`pipeline-loops`).
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[4], workspace_idx=[5, 6, 7], target="npuir")
def paged_decoding(batch, heads, kv_heads, length, dim, page=64, tile=64, splits=1):
    group = heads // kv_heads
    scale = dim**-0.5
    pages = T.ceildiv(length, page)
    part = T.ceildiv(T.ceildiv(length, tile), splits)

    @T.prim_func
    def paged_decoding(
        Q: T.Tensor((batch, heads, dim), "float16"),
        K: T.Tensor((batch * pages, kv_heads, page, dim), "float16"),
        V: T.Tensor((batch * pages, kv_heads, page, dim), "float16"),
        Table: T.Tensor((batch, pages), "int32"),
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
            for t in T.Pipelined(part, num_stages=1):
                first = (split * part + t) * tile
                number = Table[b, T.min(first // page, pages - 1)]
                T.copy(K[number, h, :, :], k)
                T.copy(V[number, h, :, :], v)
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

    return paged_decoding


if __name__ == "__main__":
    check(paged_decoding)
