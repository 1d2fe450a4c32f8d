"""One core, one tile after the other

The simplest kernel: a single core loads a tile to UB, reduces it to one number, and combines that with its previous result.
`T.reduce_sum` works on whole vectors, so this is much faster than a loop over elements (which the scalar unit would process
in about 7 ns each, 0.2 s in all). But 47 cores are idle, one core has at most 8 KB of requests to HBM in flight, and V and
MTE2 do not overlap.

Elements past the end of the vector are filled with `pad_value`, the neutral element.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def reduce(length, dtype, op, tile=4096):
    wide = "float32" if op == "sum" else dtype
    nothing = 0 if op == "sum" else -T.infinity(dtype)

    @T.prim_func
    def reduce(X: T.Tensor((length,), dtype), Y: T.Tensor((1,), wide)):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((tile,), dtype)
            values = T.alloc_shared((tile,), wide)
            one = T.alloc_shared((1,), wide)
            result = T.alloc_shared((1,), wide)
            T.fill(result, nothing)
            for i in T.serial(T.ceildiv(length, tile)):
                T.copy(X[i * tile], x, pad_value=nothing)
                T.copy(x, values)
                if op == "sum":
                    T.reduce_sum(values, one)
                    T.vadd(result, one, result)
                else:
                    T.reduce_max(values, one)
                    T.vmax(result, one, result)
            T.copy(result, Y)

    return reduce


if __name__ == "__main__":
    check(reduce)
