"""Chunks of 64 tokens

There are four products for each chunk: queries times state, queries times keys (the scores), masked scores times values,
and the chunk's contribution to the state. The Cube core multiplies; V applies the mask and keeps the state, in float32. The
compiler assigns the operations to cores and inserts all synchronisation.

Insight: the chunked algorithm, which replaces the recurrence over tokens by matrix products over a chunk.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def linear_attention(heads, length, dim, chunk=64):
    @T.prim_func
    def linear_attention(
        Q: T.Tensor((heads, length, dim), "float16"),
        K: T.Tensor((heads, length, dim), "float16"),
        V: T.Tensor((heads, length, dim), "float16"),
        O: T.Tensor((heads, length, dim), "float16"),
    ):
        with T.Kernel(heads, is_npu=True) as (head, _):
            q = T.alloc_shared((chunk, dim), "float16")
            k = T.alloc_shared((chunk, dim), "float16")
            v = T.alloc_shared((chunk, dim), "float16")
            p = T.alloc_shared((chunk, chunk), "float16")
            narrow = T.alloc_shared((dim, dim), "float16")
            scores = T.alloc_fragment((chunk, chunk), "float32")
            product = T.alloc_fragment((dim, dim), "float32")
            state = T.alloc_fragment((dim, dim), "float32")
            o = T.alloc_fragment((chunk, dim), "float32")
            T.clear(state)
            for i in T.serial(T.ceildiv(length, chunk)):
                T.copy(Q[head, i * chunk : (i + 1) * chunk, :], q)
                T.copy(K[head, i * chunk : (i + 1) * chunk, :], k)
                T.copy(V[head, i * chunk : (i + 1) * chunk, :], v)
                T.copy(state, narrow)
                T.gemm(q, narrow, o, initC=True)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                for r, c in T.Parallel(chunk, chunk):
                    p[r, c] = T.if_then_else(r >= c, scores[r, c], 0)
                T.gemm(p, v, o, initC=False)
                T.gemm(k, v, product, initC=True, a_transpose=True)
                T.vadd(state, product, state)
                T.copy(o, O[head, i * chunk : (i + 1) * chunk, :])

    return linear_attention


if __name__ == "__main__":
    check(linear_attention)
