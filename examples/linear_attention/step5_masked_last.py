"""Masked scores last

The scores have to go to V and return. In the meantime the Cube core can compute the two products that do not depend on
them: queries times state, and the chunk's contribution to the state.

Insight: these two products do not depend on results of the Vector cores.
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
            state = T.alloc_fragment((dim, dim), "float32")
            o = T.alloc_fragment((chunk, dim), "float32")
            for i in T.Pipelined(T.ceildiv(length, chunk), num_stages=2):
                T.copy(Q[head, i * chunk : (i + 1) * chunk, :], q)
                T.copy(K[head, i * chunk : (i + 1) * chunk, :], k)
                T.copy(V[head, i * chunk : (i + 1) * chunk, :], v)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                for r, c in T.Parallel(chunk, chunk):
                    p[r, c] = T.if_then_else(r >= c, scores[r, c], 0)
                if i > 0:
                    T.copy(state, narrow)
                    T.gemm(q, narrow, o, initC=True)
                T.gemm(k, v, state, initC=(i == 0), a_transpose=True)
                T.gemm(p, v, o, initC=(i == 0))
                T.copy(o, O[head, i * chunk : (i + 1) * chunk, :])

    return linear_attention


if __name__ == "__main__":
    check(linear_attention)
