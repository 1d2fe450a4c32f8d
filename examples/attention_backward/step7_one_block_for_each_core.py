"""One block for each core

Each core processes four tiles of keys, one after the other. There is one set of workspaces for each core in place of one
for each tile, so the workspaces are a quarter as large and stay in L2.

Insight: data that passes between cores stays in L2 only if all workspaces fit there together with the other data that the
kernel accesses.
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
def attention_backward(heads, length, dim, chunk=256, base=128, rows=16, cores=24):
    scale = dim**-0.5
    tiles = -(-length // (2 * base))  # of keys in each head
    chunks = -(-length // chunk)  # of queries in each head

    @T.prim_func
    def attention_backward(
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

            for turn in T.serial(T.ceildiv(heads * tiles - core, cores)):
                own = turn * cores + core
                head = own // tiles
                first = own % tiles * 2 * base
                T.copy(K[head, first : first + 2 * base, :], k)
                T.copy(V[head, first : first + 2 * base, :], v)
                for part in T.Pipelined(chunks, num_stages=2):
                    row = part * chunk
                    T.copy(Q[head, row : row + chunk, :], q)
                    T.copy(DO[head, row : row + chunk, :], do)
                    for h in T.serial(2):
                        for j in T.Pipelined(chunk // base, num_stages=2):
                            T.gemm_v0(k[h * base : (h + 1) * base, :], q[j * base : (j + 1) * base, :], score,
                                      transpose_B=True, init=True)
                            T.copy(score, scores[core, h * base : (h + 1) * base, j * base : (j + 1) * base])
                    for h in T.serial(2):
                        for j in T.Pipelined(chunk // base, num_stages=2):
                            T.gemm_v0(v[h * base : (h + 1) * base, :], do[j * base : (j + 1) * base, :], score,
                                      transpose_B=True, init=True)
                            T.copy(score, changes[core, h * base : (h + 1) * base, j * base : (j + 1) * base])

                    T.copy(L[head, row : row + chunk], lse[0, :])
                    T.copy(D[head, row : row + chunk], delta[0, :])
                    for r in T.Pipelined(base // rows, num_stages=2):
                        at = vid * base + r * rows
                        T.copy(scores[core, at : at + rows, :], s_half)
                        T.copy(s_half, s)
                        for y, x in T.Parallel(rows, chunk):
                            s[y, x] = T.exp(s[y, x] * scale - lse[0, x])
                        T.copy(s, s_half)
                        T.copy(s_half, weights[core, at : at + rows, :])
                        T.copy(changes[core, at : at + rows, :], c_half)
                        T.copy(c_half, c)
                        for y, x in T.Parallel(rows, chunk):
                            c[y, x] = (c[y, x] - delta[0, x]) * s[y, x] * scale
                        T.copy(c, c_half)
                        T.copy(c_half, slopes[core, at : at + rows, :])

                    T.copy(DO[head, row : row + chunk, :], do)
                    for h in T.serial(2):
                        for j in T.Pipelined(chunk // base, num_stages=2):
                            T.copy(weights[core, h * base : (h + 1) * base, j * base : (j + 1) * base], p)
                            T.gemm_v0(p, do[j * base : (j + 1) * base, :], score[:, :dim], init=(j == 0))
                        T.atomic_add(DV[head, first + h * base, 0], score[:, :dim])
                    T.copy(Q[head, row : row + chunk, :], q)
                    for h in T.serial(2):
                        for j in T.Pipelined(chunk // base, num_stages=2):
                            T.copy(slopes[core, h * base : (h + 1) * base, j * base : (j + 1) * base], p)
                            T.gemm_v0(p, q[j * base : (j + 1) * base, :], score[:, :dim], init=(j == 0))
                        T.atomic_add(DK[head, first + h * base, 0], score[:, :dim])
                    for j in T.serial(chunk // base):
                        for h in T.Pipelined(2, num_stages=2):
                            T.copy(slopes[core, h * base : (h + 1) * base, j * base : (j + 1) * base], p)
                            T.gemm_v0(p, k[h * base : (h + 1) * base, :], score[:, :dim], transpose_A=True, init=(h == 0))
                        T.atomic_add(DQ[head, row + j * base, 0], score[:, :dim])

    return attention_backward


if __name__ == "__main__":
    check(attention_backward)
