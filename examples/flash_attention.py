"""Attention with an online softmax: two matrix products on the Cube core, and the softmax between them on the Vector cores.

The compiler assigns the operations to cores, and inserts the transfers between the cores and all synchronisation.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def attention(length, keys, dim, tile=128, stages=3):
    scale = dim**-0.5

    @T.prim_func
    def attention(
        Q: T.Tensor((length, dim), "float16"),
        K: T.Tensor((keys, dim), "float16"),
        V: T.Tensor((keys, dim), "float16"),
        O: T.Tensor((length, dim), "float16"),
    ):
        with T.Kernel(T.ceildiv(length, tile), is_npu=True) as (block, _):
            q = T.alloc_shared((tile, dim), "float16")
            k = T.alloc_shared((tile, dim), "float16")
            v = T.alloc_shared((tile, dim), "float16")
            p = T.alloc_shared((tile, tile), "float16")
            scores = T.alloc_fragment((tile, tile), "float32")
            product = T.alloc_fragment((tile, dim), "float32")
            result = T.alloc_fragment((tile, dim), "float32")
            largest = T.alloc_fragment((tile, 1), "float32")
            before = T.alloc_fragment((tile, 1), "float32")
            total = T.alloc_fragment((tile, 1), "float32")
            share = T.alloc_fragment((tile, 1), "float32")

            T.copy(Q[block * tile, 0], q)
            T.clear(result)
            T.clear(total)
            T.fill(largest, -(2.0**30))
            for i in T.Pipelined(keys // tile, num_stages=stages):
                T.copy(K[i * tile, 0], k)
                T.copy(V[i * tile, 0], v)
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
            T.vdiv(result, total, result)
            T.copy(result, O[block * tile, 0])

    return attention


SHAPES = [(384, 512, 128), (250, 256, 64)]


def inputs(length: int, keys: int, dim: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal((rows, dim)).astype(np.float16) for rows in (length, keys, keys))


def expected(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any]) -> Any:
    s = q.astype(np.float32) @ k.astype(np.float32).T * q.shape[1] ** -0.5
    s = np.exp(s - s.max(axis=1, keepdims=True))
    return s / s.sum(axis=1, keepdims=True) @ v.astype(np.float32)


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = attention(*shape)(*arrays)
        np.testing.assert_allclose(out, expected(*arrays), rtol=1e-2, atol=5e-3)
    print("PASS")
