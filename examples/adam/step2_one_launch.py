"""One launch

All results for a parameter depend only on its four inputs. One kernel loads each input once and stores each result once.

Removes cause: separate launches
"""

from ladder import B1, B2, C1, C2, EPS, RATE, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def adam_of(n, g, p, m, v, wide):
    T.copy(g, wide)
    for j in T.Parallel(n):
        m[j] = B1 * m[j] + (1 - B1) * wide[j]
    for j in T.Parallel(n):
        v[j] = B2 * v[j] + (1 - B2) * (wide[j] * wide[j])
    for j in T.Parallel(n):
        p[j] = p[j] - RATE * (m[j] / C1) / (T.sqrt(v[j] / C2) + EPS)


@tilelang.jit(target="npuir")
def adam(length, dtype, tile=2048, cores=48):
    @T.prim_func
    def adam(
        G: T.Tensor((length,), dtype),
        P: T.Tensor((length,), "float32"),
        M: T.Tensor((length,), "float32"),
        V: T.Tensor((length,), "float32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            g = T.alloc_shared((tile,), dtype)
            wide = T.alloc_shared((tile,), "float32")
            p = T.alloc_shared((tile,), "float32")
            m = T.alloc_shared((tile,), "float32")
            v = T.alloc_shared((tile,), "float32")
            for i in T.serial(T.ceildiv(length, tile * cores)):
                start = (i * cores + core) * tile
                T.copy(G[start], g)
                T.copy(P[start], p)
                T.copy(M[start], m)
                T.copy(V[start], v)
                adam_of(tile, g, p, m, v, wide)
                T.copy(p, P[start])
                T.copy(m, M[start])
                T.copy(v, V[start])

    return adam


if __name__ == "__main__":
    check(adam)
