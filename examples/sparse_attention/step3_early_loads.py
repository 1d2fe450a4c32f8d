"""Loads of the next rows before the weights

MTE2 is idle while the Vector cores compute weights, because the loads of the next rows follow the load of the weights in
program order. Here they precede it: as soon as the scores of a tile are stored, the rows of the next tile are loaded to a
second buffer. Two tiles of 128 rows alternate, and a macro contains the work on one tile.

Insight: MTE2 executes its loads in program order, so a load that waits holds up all loads after it. `T.Pipelined` would do
this, but does not pipeline a loop whose load addresses depend on numbers read from GM.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def gathered(KV, I, query, first, count, tile, kv):
    for n in T.serial(tile):
        number = I[query, T.min(first + n, count - 1)]
        T.copy(KV[number : number + 1, :], kv[n : n + 1, :])


@T.macro
def one_tile(KV, I, query, first, count, q, kv, following, p, scores, product, result, largest, total):
    heads, dim = q.shape
    tile, width = kv.shape[0], product.shape[1]
    before = T.alloc_fragment((heads, 1), "float32")
    share = T.alloc_fragment((heads, 1), "float32")
    T.gemm(q, kv, scores, initC=True, b_transpose=True)
    gathered(KV, I, query, first + tile, count, tile, following)
    for i, j in T.Parallel(heads, tile):
        scores[i, j] = T.if_then_else(first + j < count, scores[i, j] * dim**-0.5, -(2.0**30))
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


@tilelang.jit(target="npuir")
def sparse_attention(queries, heads, length, count, dim, tile=128, width=256):
    @T.prim_func
    def sparse_attention(
        Q: T.Tensor((queries, heads, dim), "float16"),
        KV: T.Tensor((length, dim), "float16"),
        I: T.Tensor((queries, count), "int32"),
        O: T.Tensor((queries, heads, dim), "float16"),
    ):
        with T.Kernel(queries, is_npu=True) as (query, _):
            q = T.alloc_shared((heads, dim), "float16")
            even = T.alloc_shared((tile, dim), "float16")
            odd = T.alloc_shared((tile, dim), "float16")
            p = T.alloc_shared((heads, tile), "float16")
            scores = T.alloc_fragment((heads, tile), "float32")
            product = T.alloc_fragment((heads, width), "float32")
            result = T.alloc_fragment((heads, dim), "float32")
            largest = T.alloc_fragment((heads, 1), "float32")
            total = T.alloc_fragment((heads, 1), "float32")

            T.copy(Q[query, :, :], q)
            T.clear(result)
            T.clear(total)
            T.fill(largest, -(2.0**30))
            gathered(KV, I, query, 0, count, tile, even)
            for pair in T.serial(T.ceildiv(count, 2 * tile)):
                one_tile(KV, I, query, 2 * pair * tile, count, q, even, odd, p, scores, product, result, largest, total)
                one_tile(KV, I, query, 2 * pair * tile + tile, count, q, odd, even, p, scores, product, result, largest, total)
            T.vdiv(result, total, result)
            T.copy(result, O[query, :, :])

    return sparse_attention


if __name__ == "__main__":
    check(sparse_attention)
