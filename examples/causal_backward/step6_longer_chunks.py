"""Chunks of 512 queries

As in the last step of the attention backward ladder: half as many additions to `dK` and `dV`, output gradients and queries
loaded to L1 alternately, and overlapping loops over the two halves. In a chunk on the diagonal, scores of queries before
the keys are computed and discarded; this costs half a chunk for every second tile, which is less than the savings.

Insight: a sum in L0C can run over a longer chunk without more room, so fewer results are added in GM.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T

AUTO = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
}


@tilelang.jit(workspace_idx=[9, 10, 11, 12], target="ascendc", pass_configs=AUTO)
def causal_backward(heads, length, dim, chunk=512, base=128, rows=16, cores=24):
    scale = dim**-0.5
    tiles = 2 * -(-length // (4 * base))  # of keys in each head, an even number
    chunks = -(-length // chunk)  # of queries in each head
    pairs = heads * tiles // 2

    @T.prim_func
    def causal_backward(
        Q: T.Tensor((heads, length, dim), "float16"),
        K: T.Tensor((heads, length, dim), "float16"),
        V: T.Tensor((heads, length, dim), "float16"),
        DO: T.Tensor((heads, length, dim), "float16"),
        L: T.Tensor((heads, length), "float32"),
        D: T.Tensor((heads, length), "float32"),
        DQ: T.Tensor((heads, length, dim), "float32"),
        DK: T.Tensor((heads, length, dim), "float32"),
        DV: T.Tensor((heads, length, dim), "float32"),
        scores: T.Tensor((cores, 2 * base, chunk), "float16"),
        changes: T.Tensor((cores, 2 * base, chunk), "float16"),
        weights: T.Tensor((cores, 2 * base, chunk), "float16"),
        slopes: T.Tensor((cores, 2 * base, chunk), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, vid):
            k = T.alloc_L1((2 * base, dim), "float16")
            v = T.alloc_L1((2 * base, dim), "float16")
            q = T.alloc_L1((chunk, dim), "float16")
            do = T.alloc_L1((chunk, dim), "float16")
            p = T.alloc_L1((base, base), "float16")
            score = T.alloc_L0C((base, base), "float32")

            lse = T.alloc_ub((1, chunk), "float32")
            delta = T.alloc_ub((1, chunk), "float32")
            s_half = T.alloc_ub((rows, chunk), "float16")
            c_half = T.alloc_ub((rows, chunk), "float16")
            s = T.alloc_ub((rows, chunk), "float32")
            c = T.alloc_ub((rows, chunk), "float32")

            for turn in T.serial(2 * T.ceildiv(pairs - core, cores)):
                pair = turn // 2 * cores + core
                head = pair // (tiles // 2)
                short = pair % (tiles // 2)
                first = (short + turn % 2 * (tiles - 1 - 2 * short)) * 2 * base
                before = first // chunk  # chunks of queries that precede all of these keys
                T.copy(K[head, first : first + 2 * base, :], k)
                T.copy(V[head, first : first + 2 * base, :], v)
                for part in T.Pipelined(chunks - before, num_stages=2):
                    row = (before + part) * chunk
                    T.copy(DO[head, row : row + chunk, :], do)
                    for h in T.serial(2):
                        for j in T.Pipelined(chunk // base, num_stages=2):
                            T.gemm_v0(v[h * base : (h + 1) * base, :], do[j * base : (j + 1) * base, :], score,
                                      transpose_B=True, init=True)
                            T.copy(score, changes[core, h * base : (h + 1) * base, j * base : (j + 1) * base])
                    T.copy(Q[head, row : row + chunk, :], q)
                    for h in T.serial(2):
                        for j in T.Pipelined(chunk // base, num_stages=2):
                            T.gemm_v0(k[h * base : (h + 1) * base, :], q[j * base : (j + 1) * base, :], score,
                                      transpose_B=True, init=True)
                            T.copy(score, scores[core, h * base : (h + 1) * base, j * base : (j + 1) * base])

                    T.copy(L[head, row : row + chunk], lse[0, :])
                    T.copy(D[head, row : row + chunk], delta[0, :])
                    for r in T.Pipelined(base // rows, num_stages=2):
                        at = vid * base + r * rows
                        T.copy(scores[core, at : at + rows, :], s_half)
                        T.copy(s_half, s)
                        for y, x in T.Parallel(rows, chunk):
                            s[y, x] = T.exp(s[y, x] * scale - lse[0, x])
                        if part == 0:
                            for y, x in T.Parallel(rows, chunk):
                                s[y, x] = T.if_then_else(first + at + y <= row + x, s[y, x], 0.0)
                        T.copy(s, s_half)
                        T.copy(s_half, weights[core, at : at + rows, :])
                        T.copy(changes[core, at : at + rows, :], c_half)
                        T.copy(c_half, c)
                        for y, x in T.Parallel(rows, chunk):
                            c[y, x] = (c[y, x] - delta[0, x]) * s[y, x] * scale
                        T.copy(c, c_half)
                        T.copy(c_half, slopes[core, at : at + rows, :])

                    T.copy(DO[head, row : row + chunk, :], do)
                    for h in T.Pipelined(2, num_stages=2):
                        for j in T.Pipelined(chunk // base, num_stages=2):
                            T.copy(weights[core, h * base : (h + 1) * base, j * base : (j + 1) * base], p)
                            T.gemm_v0(p, do[j * base : (j + 1) * base, :], score[:, :dim], init=(j == 0))
                        T.atomic_add(DV[head, first + h * base, 0], score[:, :dim])
                    T.copy(Q[head, row : row + chunk, :], q)
                    for h in T.Pipelined(2, num_stages=2):
                        for j in T.Pipelined(chunk // base, num_stages=2):
                            T.copy(slopes[core, h * base : (h + 1) * base, j * base : (j + 1) * base], p)
                            T.gemm_v0(p, q[j * base : (j + 1) * base, :], score[:, :dim], init=(j == 0))
                        T.atomic_add(DK[head, first + h * base, 0], score[:, :dim])
                    for j in T.Pipelined(chunk // base, num_stages=2):
                        for h in T.Pipelined(2, num_stages=2):
                            T.copy(slopes[core, h * base : (h + 1) * base, j * base : (j + 1) * base], p)
                            T.gemm_v0(p, k[h * base : (h + 1) * base, :], score[:, :dim], transpose_A=True, init=(h == 0))
                        T.atomic_add(DQ[head, row + j * base, 0], score[:, :dim])

    return causal_backward


if __name__ == "__main__":
    check(causal_backward)
