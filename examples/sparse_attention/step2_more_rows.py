"""256 rows in a tile

Data passes between the cores a quarter as often. To make room in L0C for the scores of 256 rows, the second product is
computed in two halves of its columns, one after the other.

Removes cause: small tiles
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def sparse_attention(queries, heads, length, count, dim, tile=256, width=256):
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
            product = T.alloc_fragment((heads, width), "float32")
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
                T.vmul(result, before, result)
                for c in T.serial(dim // width):
                    T.gemm(p, kv[:, c * width : (c + 1) * width], product, initC=True)
                    for i, j in T.Parallel(heads, width):
                        result[i, c * width + j] = result[i, c * width + j] + product[i, j]
            T.vdiv(result, total, result)
            T.copy(result, O[query, :, :])

    return sparse_attention


if __name__ == "__main__":
    check(sparse_attention)
