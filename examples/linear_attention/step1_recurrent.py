"""Token by token

The recurrence as written: `state = state + k' v`, `o = q state`, with half of the columns of each head on a core. V passes
over the whole state three times for each token, and this takes nearly all of the time.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def linear_attention(heads, length, dim, tile=16):
    half = dim // 2

    @T.prim_func
    def linear_attention(
        Q: T.Tensor((heads, length, dim), "float16"),
        K: T.Tensor((heads, length, dim), "float16"),
        V: T.Tensor((heads, length, dim), "float16"),
        O: T.Tensor((heads, length, dim), "float16"),
    ):
        with T.Kernel(2 * heads, is_npu=True) as (block, _):
            head = block // 2
            first = block % 2 * half
            q = T.alloc_shared((tile, dim), "float16")
            k = T.alloc_shared((tile, dim), "float16")
            v = T.alloc_shared((tile, half), "float16")
            qw = T.alloc_shared((tile, dim), "float32")
            kw = T.alloc_shared((tile, dim), "float32")
            vw = T.alloc_shared((tile, half), "float32")
            o = T.alloc_shared((tile, half), "float32")
            state = T.alloc_shared((dim, half), "float32")
            part = T.alloc_shared((dim, half), "float32")
            T.clear(state)
            for i in T.serial(T.ceildiv(length, tile)):
                T.copy(Q[head, i * tile : (i + 1) * tile, :], q)
                T.copy(K[head, i * tile : (i + 1) * tile, :], k)
                T.copy(V[head, i * tile : (i + 1) * tile, first : first + half], v)
                T.copy(q, qw)
                T.copy(k, kw)
                T.copy(v, vw)
                for t in T.serial(tile):
                    for r, c in T.Parallel(dim, half):
                        state[r, c] = state[r, c] + kw[t, r] * vw[t, c]
                    for r, c in T.Parallel(dim, half):
                        part[r, c] = state[r, c] * qw[t, r]
                    T.reduce_sum(part, o[t : t + 1, :], dim=0)
                T.copy(o, v)
                T.copy(v, O[head, i * tile : (i + 1) * tile, first : first + half])

    return linear_attention


if __name__ == "__main__":
    check(linear_attention)
