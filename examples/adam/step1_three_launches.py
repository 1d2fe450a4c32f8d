"""Three launches

One launch computes `m`, one `v`, and one `p`, each with its line of the formula. The gradients are read twice, and `m` and
`v` are written to global memory and read again.
"""

from ladder import B1, B2, C1, C2, EPS, RATE, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def adam(length, dtype, tile=2048, cores=48):
    turns = T.ceildiv(length, tile * cores)

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
            m = T.alloc_shared((tile,), "float32")
            for i in T.serial(turns):
                start = (i * cores + core) * tile
                T.copy(G[start], g)
                T.copy(M[start], m)
                T.copy(g, wide)
                for j in T.Parallel(tile):
                    m[j] = B1 * m[j] + (1 - B1) * wide[j]
                T.copy(m, M[start])
        with T.Kernel(cores, is_npu=True) as (core, _):
            g = T.alloc_shared((tile,), dtype)
            wide = T.alloc_shared((tile,), "float32")
            v = T.alloc_shared((tile,), "float32")
            for i in T.serial(turns):
                start = (i * cores + core) * tile
                T.copy(G[start], g)
                T.copy(V[start], v)
                T.copy(g, wide)
                for j in T.Parallel(tile):
                    v[j] = B2 * v[j] + (1 - B2) * (wide[j] * wide[j])
                T.copy(v, V[start])
        with T.Kernel(cores, is_npu=True) as (core, _):
            p = T.alloc_shared((tile,), "float32")
            m = T.alloc_shared((tile,), "float32")
            v = T.alloc_shared((tile,), "float32")
            for i in T.serial(turns):
                start = (i * cores + core) * tile
                T.copy(P[start], p)
                T.copy(M[start], m)
                T.copy(V[start], v)
                for j in T.Parallel(tile):
                    p[j] = p[j] - RATE * (m[j] / C1) / (T.sqrt(v[j] / C2) + EPS)
                T.copy(p, P[start])

    return adam


if __name__ == "__main__":
    check(adam)
