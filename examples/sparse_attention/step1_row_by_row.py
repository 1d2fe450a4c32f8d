"""Row by row

A block processes one query. The scalar unit reads the index of a row, MTE2 loads the row to L1, and so on for 64 rows,
which are used as keys and then as values: they are loaded once for both products. The index tensor ends with its last
entry, so nothing after it is read; excess rows of the last tile are masked.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def sparse_attention(queries, heads, length, count, dim, tile=64):
    scale = dim**-0.5

    @T.prim_func
    def sparse_attention(
        Q: T.Tensor((queries, heads, dim), "float16"),
        KV: T.Tensor((length, dim), "float16"),
        I: T.Tensor((queries, count), "int32"),
        O: T.Tensor((queries, heads, dim), "float16"),
    ):
        with T.Kernel(queries, is_npu=True) as (query, _):
            q = T.alloc_shared((heads, dim), "float16")
            kv = T.alloc_shared((tile, dim), "float16")
            p = T.alloc_shared((heads, tile), "float16")
            scores = T.alloc_fragment((heads, tile), "float32")
            product = T.alloc_fragment((heads, dim), "float32")
            result = T.alloc_fragment((heads, dim), "float32")
            largest = T.alloc_fragment((heads, 1), "float32")
            before = T.alloc_fragment((heads, 1), "float32")
            total = T.alloc_fragment((heads, 1), "float32")
            share = T.alloc_fragment((heads, 1), "float32")

            T.copy(Q[query, :, :], q)
            T.clear(result)
            T.clear(total)
            T.fill(largest, -(2.0**30))
            for t in T.serial(T.ceildiv(count, tile)):
                for n in T.serial(tile):
                    number = I[query, T.min(t * tile + n, count - 1)]
                    T.copy(KV[number : number + 1, :], kv[n : n + 1, :])
                T.gemm(q, kv, scores, initC=True, b_transpose=True)
                for i, j in T.Parallel(heads, tile):
                    scores[i, j] = T.if_then_else(t * tile + j < count, scores[i, j] * scale, -(2.0**30))
                T.copy(largest, before)
                T.reduce_max(scores, share, dim=-1)
                T.vmax(share, before, largest)
                T.vsub(before, largest, before)
                T.vexp(before, before)
                T.vsub(scores, largest, scores)
                T.vexp(scores, scores)
                T.copy(scores, p)
                T.reduce_sum(scores, share, dim=-1)
                T.vmul(total, before, total)
                T.vadd(total, share, total)
                T.gemm(p, kv, product, initC=True)
                T.vmul(result, before, result)
                T.vadd(result, product, result)
            T.vdiv(result, total, result)
            T.copy(result, O[query, :, :])

    return sparse_attention


if __name__ == "__main__":
    check(sparse_attention)
