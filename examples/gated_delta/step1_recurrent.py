"""Token by token

The recurrence as written, with half of the columns of a head on each core. V passes over the state six times for each
token, and this takes nearly all of the time.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def gated_delta(heads, length, dim, tile=16):
    half = dim // 2

    @T.prim_func
    def gated_delta(
        Q: T.Tensor((heads, length, dim), "float16"),
        K: T.Tensor((heads, length, dim), "float16"),
        V: T.Tensor((heads, length, dim), "float16"),
        G: T.Tensor((heads, length, 1), "float32"),
        B: T.Tensor((heads, length, 1), "float32"),
        O: T.Tensor((heads, length, dim), "float16"),
    ):
        with T.Kernel(2 * heads, is_npu=True) as (block, _):
            head = block // 2
            first = block % 2 * half
            q = T.alloc_shared((tile, dim), "float16")
            k = T.alloc_shared((tile, dim), "float16")
            v = T.alloc_shared((tile, half), "float16")
            g = T.alloc_shared((tile, 1), "float32")
            b = T.alloc_shared((tile, 1), "float32")
            qw = T.alloc_shared((tile, dim), "float32")
            kw = T.alloc_shared((tile, dim), "float32")
            vw = T.alloc_shared((tile, half), "float32")
            delta = T.alloc_shared((1, half), "float32")
            state = T.alloc_shared((dim, half), "float32")
            part = T.alloc_shared((dim, half), "float32")
            T.clear(state)
            for i in T.serial(T.ceildiv(length, tile)):
                T.copy(Q[head, i * tile : (i + 1) * tile, :], q)
                T.copy(K[head, i * tile : (i + 1) * tile, :], k)
                T.copy(V[head, i * tile : (i + 1) * tile, first : first + half], v)
                T.copy(G[head, i * tile : (i + 1) * tile, :], g)
                T.copy(B[head, i * tile : (i + 1) * tile, :], b)
                T.copy(q, qw)
                T.copy(k, kw)
                T.copy(v, vw)
                T.vexp(g, g)
                for t in T.serial(tile):
                    for r, c in T.Parallel(dim, half):
                        state[r, c] = state[r, c] * g[t, 0]
                    for r, c in T.Parallel(dim, half):
                        part[r, c] = state[r, c] * kw[t, r]
                    T.reduce_sum(part, delta, dim=0)
                    for r, c in T.Parallel(1, half):
                        delta[r, c] = (vw[t, c] - delta[r, c]) * b[t, 0]
                    for r, c in T.Parallel(dim, half):
                        state[r, c] = state[r, c] + kw[t, r] * delta[0, c]
                    for r, c in T.Parallel(dim, half):
                        part[r, c] = state[r, c] * qw[t, r]
                    T.reduce_sum(part, vw[t : t + 1, :], dim=0)
                T.copy(vw, v)
                T.copy(v, O[head, i * tile : (i + 1) * tile, first : first + half])

    return gated_delta


if __name__ == "__main__":
    check(gated_delta)
