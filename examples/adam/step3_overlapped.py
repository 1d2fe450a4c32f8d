"""Full tiles, double-buffered

The loop runs over tiles that are full on every core, so that its iterations can overlap. The remaining elements are divided
among the cores after the loop. V, which does two divisions and a square root, is busy for less than a third of the time:
loads take longer, so fewer vector operations would not make the kernel faster.

The compiler already pipelines the serial loop of the previous step (`pipeline-loops`), so the time hardly changes.
`T.Pipelined` states the pipelining in the source and sets the number of slots.

Insight: none. The step gains no time, because the compiler already pipelines the loop.
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
    turns = length // (tile * cores)
    rest = length - turns * tile * cores
    piece = min(tile, T.ceildiv(T.ceildiv(rest, cores), 128) * 128)

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
            for i in T.Pipelined(turns, num_stages=2):
                start = (i * cores + core) * tile
                T.copy(G[start], g)
                T.copy(P[start], p)
                T.copy(M[start], m)
                T.copy(V[start], v)
                adam_of(tile, g, p, m, v, wide)
                T.copy(p, P[start])
                T.copy(m, M[start])
                T.copy(v, V[start])
            if rest:
                start = turns * tile * cores + core * piece
                T.copy(G[start], g[:piece])
                T.copy(P[start], p[:piece])
                T.copy(M[start], m[:piece])
                T.copy(V[start], v[:piece])
                adam_of(piece, g[:piece], p[:piece], m[:piece], v[:piece], wide[:piece])
                T.copy(p[:piece], P[start])
                T.copy(m[:piece], M[start])
                T.copy(v[:piece], V[start])

    return adam


if __name__ == "__main__":
    check(adam)
