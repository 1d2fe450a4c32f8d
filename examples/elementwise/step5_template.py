"""A template for any elementwise function

The factory takes a Python function: each entry of `FUNCTIONS` becomes a kernel as fast as that of the previous step,
because the function is called while the kernel is traced, with a symbol for an element, and only its operations remain. A
GPU template also packs elements into wider loads; this is not needed here, since tiles move in lines of 512 bytes anyway.

Insight: none about the machine. The time does not change; the gain is that another function needs no new kernel.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T

FUNCTIONS = {
    "mul": lambda x, y: x * y,
    "chain": lambda x, y: T.max(x * y + x, 0),
}


@tilelang.jit(target="npuir")
def elementwise(length, dtype, op, tile=6144, cores=48):
    tile *= 2 if dtype == "float16" else 1
    turns = length // (tile * cores)
    rest = length - turns * tile * cores
    piece = min(tile, T.ceildiv(T.ceildiv(rest, cores), 128) * 128)

    @T.prim_func
    def elementwise(X: T.Tensor((length,), dtype), Y: T.Tensor((length,), dtype), Z: T.Tensor((length,), dtype)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile,), dtype)
            y = T.alloc_shared((tile,), dtype)
            z = T.alloc_shared((tile,), dtype)
            for i in T.Pipelined(turns, num_stages=2):
                start = (i * cores + core) * tile
                T.copy(X[start], x)
                T.copy(Y[start], y)
                for j in T.Parallel(tile):
                    z[j] = FUNCTIONS[op](x[j], y[j])
                T.copy(z, Z[start])
            if rest:
                start = turns * tile * cores + core * piece
                T.copy(X[start], x[:piece])
                T.copy(Y[start], y[:piece])
                for j in T.Parallel(piece):
                    z[j] = FUNCTIONS[op](x[j], y[j])
                T.copy(z[:piece], Z[start])

    return elementwise


if __name__ == "__main__":
    check(elementwise)
