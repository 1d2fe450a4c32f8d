"""Chunks of 64 tokens

There is one more round for twice as many tokens, and the state passes between the cores half as often.

Removes cause: small tiles
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def gated_delta(heads, length, dim, chunk=64):
    rounds = 6

    @T.prim_func
    def gated_delta(
        Q: T.Tensor((heads, length, dim), "float16"),
        K: T.Tensor((heads, length, dim), "float16"),
        V: T.Tensor((heads, length, dim), "float16"),
        G: T.Tensor((heads, length, 1), "float32"),
        B: T.Tensor((heads, length, 1), "float32"),
        O: T.Tensor((heads, length, dim), "float16"),
    ):
        with T.Kernel(heads, is_npu=True) as (head, _):
            k = T.alloc_shared((chunk, dim), "float16")
            q = T.alloc_shared((chunk, dim), "float16")
            kv = T.alloc_shared((chunk, dim), "float16")
            qv = T.alloc_shared((chunk, dim), "float16")
            vv = T.alloc_shared((chunk, dim), "float16")
            g = T.alloc_shared((chunk, 1), "float32")
            b = T.alloc_shared((chunk, 1), "float32")
            down = T.alloc_shared((chunk, 1), "float32")
            across = T.alloc_shared((1, chunk), "float32")
            wide = T.alloc_shared((chunk, dim), "float32")
            kin = T.alloc_shared((chunk, dim), "float16")
            kout = T.alloc_shared((chunk, dim), "float16")
            qin = T.alloc_shared((chunk, dim), "float16")
            vin = T.alloc_shared((chunk, dim), "float16")
            eye = T.alloc_shared((chunk, chunk), "float16")
            n = T.alloc_shared((chunk, chunk), "float16")
            p = T.alloc_shared((chunk, chunk), "float16")
            x = T.alloc_shared((chunk, dim), "float16")
            narrow = T.alloc_shared((dim, dim), "float16")
            kk = T.alloc_fragment((chunk, chunk), "float32")
            qk = T.alloc_fragment((chunk, chunk), "float32")
            nn = T.alloc_fragment((chunk, chunk), "float32")
            xs = T.alloc_fragment((chunk, dim), "float32")
            o = T.alloc_fragment((chunk, dim), "float32")
            product = T.alloc_fragment((dim, dim), "float32")
            state = T.alloc_fragment((dim, dim), "float32")
            T.clear(state)
            for r, c in T.Parallel(chunk, chunk):
                eye[r, c] = T.if_then_else(r == c, 1.0, 0.0)
            for i in T.serial(T.ceildiv(length, chunk)):
                T.copy(Q[head, i * chunk : (i + 1) * chunk, :], q)
                T.copy(K[head, i * chunk : (i + 1) * chunk, :], k)
                T.gemm(k, k, kk, initC=True, b_transpose=True)
                T.gemm(q, k, qk, initC=True, b_transpose=True)
                T.copy(G[head, i * chunk : (i + 1) * chunk, :], g)
                T.copy(B[head, i * chunk : (i + 1) * chunk, :], b)
                T.cumsum(g, down, dim=0)
                T.copy(T.reshape(down, (1, chunk)), across)
                for r, c in T.Parallel(chunk, chunk):
                    n[r, c] = T.if_then_else(r > c, -kk[r, c] * T.exp(down[r, 0] - across[0, c]) * b[r, 0], 0)
                for r, c in T.Parallel(chunk, chunk):
                    p[r, c] = T.if_then_else(r >= c, qk[r, c] * T.exp(down[r, 0] - across[0, c]), 0)
                T.copy(state, narrow)
                T.copy(K[head, i * chunk : (i + 1) * chunk, :], kv)
                T.copy(Q[head, i * chunk : (i + 1) * chunk, :], qv)
                T.copy(V[head, i * chunk : (i + 1) * chunk, :], vv)
                for r in T.Parallel(chunk):
                    g[r, 0] = T.exp(down[r, 0])
                T.copy(qv, wide)
                for r, c in T.Parallel(chunk, dim):
                    qin[r, c] = wide[r, c] * g[r, 0]
                T.copy(vv, wide)
                for r, c in T.Parallel(chunk, dim):
                    vin[r, c] = wide[r, c] * b[r, 0]
                T.copy(kv, wide)
                for r, c in T.Parallel(chunk, dim):
                    kin[r, c] = wide[r, c] * g[r, 0] * b[r, 0] * -1.0
                for r, c in T.Parallel(chunk, dim):
                    kout[r, c] = wide[r, c] * T.exp(down[chunk - 1, 0] - down[r, 0])
                T.gemm(eye, vin, xs, initC=True)
                T.gemm(kin, narrow, xs, initC=False)
                T.gemm(qin, narrow, o, initC=True)
                for j in range(rounds):
                    T.copy(xs, x)
                    T.gemm(n, x, xs, initC=False)
                    if j < rounds - 1:
                        T.gemm(n, n, nn, initC=True)
                        T.copy(nn, n)
                T.copy(xs, x)
                T.gemm(p, x, o, initC=False)
                T.gemm(kout, x, product, initC=True, a_transpose=True)
                for r, c in T.Parallel(dim, dim):
                    state[r, c] = state[r, c] * g[chunk - 1, 0] + product[r, c]
                T.copy(o, O[head, i * chunk : (i + 1) * chunk, :])

    return gated_delta


if __name__ == "__main__":
    check(gated_delta)
