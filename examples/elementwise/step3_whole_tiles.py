"""Whole tiles, two of them under way

As in the reduction: a loop over tiles that are whole on every core, in which the next loads overlap with the current product
and the previous store, and then one short tile for the remainder on each core. The work of V is now hidden, so that the chain
takes as long as the product.

The compiler pipelines the serial loop of the step before by itself (`pipeline-loops`), so that the time is about the same.
Here the source says so, and chooses the number of slots.

To know: nothing that wins time; the compiler does it without being told.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def elementwise(length, dtype, op, tile=2048, cores=48):
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
                    z[j] = x[j] * y[j] if op == "mul" else T.max(x[j] * y[j] + x[j], 0)
                T.copy(z, Z[start])
            if rest:
                start = turns * tile * cores + core * piece
                T.copy(X[start], x[:piece])
                T.copy(Y[start], y[:piece])
                for j in T.Parallel(piece):
                    z[j] = x[j] * y[j] if op == "mul" else T.max(x[j] * y[j] + x[j], 0)
                T.copy(z[:piece], Z[start])

    return elementwise


if __name__ == "__main__":
    check(elementwise)
