"""All cores, and a second launch

Core `c` of 48 processes every 48th tile from the `c`-th on, and stores one number in a temporary tensor for the second
launch (`T.alloc_global`). The second `with T.Kernel` starts when all blocks of the first have ended: one core reduces the
48 numbers. 48 cores have 48 times as many requests in flight, and begin to wait for HBM; V and MTE2 still do not overlap.

Removes cause: few blocks
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def reduce(length, dtype, op, tile=4096, cores=48):
    wide = "float32" if op == "sum" else dtype
    nothing = 0 if op == "sum" else -T.infinity(dtype)

    @T.prim_func
    def reduce(X: T.Tensor((length,), dtype), Y: T.Tensor((1,), wide)):
        parts = T.alloc_global((cores, 1), wide)
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile,), dtype)
            values = T.alloc_shared((tile,), wide)
            one = T.alloc_shared((1,), wide)
            result = T.alloc_shared((1,), wide)
            T.fill(result, nothing)
            for i in T.serial(T.ceildiv(length, tile * cores)):
                T.copy(X[(i * cores + core) * tile], x, pad_value=nothing)
                T.copy(x, values)
                if op == "sum":
                    T.reduce_sum(values, one)
                    T.vadd(result, one, result)
                else:
                    T.reduce_max(values, one)
                    T.vmax(result, one, result)
            T.copy(result, parts[core, 0])
        with T.Kernel(1, is_npu=True) as (_, _):
            part = T.alloc_shared((cores, 1), wide)
            whole = T.alloc_shared((1, 1), wide)
            T.copy(parts, part)
            if op == "sum":
                T.reduce_sum(part, whole, dim=0)
            else:
                T.reduce_max(part, whole, dim=0)
            T.copy(whole[0, 0:1], Y)

    return reduce


if __name__ == "__main__":
    check(reduce)
