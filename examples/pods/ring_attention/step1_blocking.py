"""Blocking

At each step a kernel attends to the part of the keys that the card has, and then another kernel puts this part to the next card
of the ring. The sums and the maxima of the softmax stay in global memory between the steps.
"""

from problem import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def attend(last, heads, length, dim, tile_M=128, tile_N=256, cores=24):
    scale = dim**-0.5
    tiles = length // tile_M
    items = heads * tiles

    @T.prim_func
    def attend(
        Q: T.Tensor((heads, length, dim), "float16"),
        K: T.Tensor((heads, length, dim), "float16"),
        V: T.Tensor((heads, length, dim), "float16"),
        R: T.Tensor((heads, length, dim), "float32"),
        M: T.Tensor((heads, length, 1), "float32"),
        L: T.Tensor((heads, length, 1), "float32"),
        next_R: T.Tensor((heads, length, dim), "float32"),
        next_M: T.Tensor((heads, length, 1), "float32"),
        next_L: T.Tensor((heads, length, 1), "float32"),
        O: T.Tensor((heads, length, dim), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            q = T.alloc_shared((tile_M, dim), "float16")
            k = T.alloc_shared((tile_N, dim), "float16")
            v = T.alloc_shared((tile_N, dim), "float16")
            p = T.alloc_shared((tile_M, tile_N), "float16")
            scores = T.alloc_fragment((tile_M, tile_N), "float32")
            product = T.alloc_fragment((tile_M, dim), "float32")
            result = T.alloc_fragment((tile_M, dim), "float32")
            largest = T.alloc_fragment((tile_M, 1), "float32")
            before = T.alloc_fragment((tile_M, 1), "float32")
            total = T.alloc_fragment((tile_M, 1), "float32")
            share = T.alloc_fragment((tile_M, 1), "float32")

            for turn in T.serial(T.ceildiv(items, cores)):
                item = turn * cores + core
                if item < items:
                    head = item // tiles
                    row = item % tiles * tile_M
                    T.copy(Q[head, row, 0], q)
                    T.copy(R[head, row, 0], result)
                    T.copy(M[head, row, 0], largest)
                    T.copy(L[head, row, 0], total)
                    for i in T.Pipelined(length // tile_N, num_stages=2):
                        T.copy(K[head, i * tile_N, 0], k)
                        T.copy(V[head, i * tile_N, 0], v)
                        T.gemm(q, k, scores, initC=True, b_transpose=True)
                        T.vmul(scores, scale, scores)
                        T.copy(largest, before)
                        T.reduce_max(scores, share, dim=-1)
                        T.vmax(share, before, largest)
                        T.vsub(before, largest, before)
                        T.vexp(before, before)
                        T.vsub(scores, largest, scores)
                        T.vexp(scores, scores)
                        T.copy(scores, p)
                        T.reduce_sum(scores, share, dim=-1)
                        T.vmul(total, before, total)
                        T.vadd(total, share, total)
                        T.gemm(p, v, product, initC=True)
                        T.vmul(result, before, result)
                        T.vadd(result, product, result)
                    if last:
                        T.vdiv(result, total, result)
                        T.copy(result, O[head, row, 0])
                    else:
                        T.copy(result, next_R[head, row, 0])
                        T.copy(largest, next_M[head, row, 0])
                        T.copy(total, next_L[head, row, 0])

    return attend


@tilelang.jit(target="npuir")
def pass_on(rank, ranks, heads, length, dim, rows=128, cores=48):
    parts = heads * length // rows

    @T.prim_func
    def pass_on(
        K: T.Tensor((heads, length, dim), "float16"),
        V: T.Tensor((heads, length, dim), "float16"),
        next_K: T.Tensor((heads, length, dim), "float16"),
        next_V: T.Tensor((heads, length, dim), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            k = T.alloc_shared((rows, dim), "float16")
            v = T.alloc_shared((rows, dim), "float16")
            for turn in T.Pipelined(T.ceildiv(parts, cores), num_stages=2):
                part = turn * cores + core
                if part < parts:
                    head = part * rows // length
                    row = part * rows % length
                    T.copy(K[head, row, 0], k)
                    T.shmem_ub_put_nbi(k, next_K[head, row, 0], rows * dim, (rank + 1) % ranks)
                    T.copy(V[head, row, 0], v)
                    T.shmem_ub_put_nbi(v, next_V[head, row, 0], rows * dim, (rank + 1) % ranks)

    return pass_on


def ring_attention(rank, ranks, heads, length, dim):
    launches = []
    for step in range(ranks):
        now, after = ([f"{name}{slot}" for name in "KVRML"] for slot in (step % 2, 1 - step % 2))
        launches.append((attend(step == ranks - 1, heads, length, dim), ("Q", *now, *after[2:], "O")))
        if step < ranks - 1:
            launches.append((pass_on(rank, ranks, heads, length, dim), (*now[:2], *after[:2])))
    return launches


if __name__ == "__main__":
    check(ring_attention)
