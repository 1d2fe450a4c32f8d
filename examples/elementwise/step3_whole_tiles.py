"""Full tiles, double-buffered

As in the reduction, the loop runs over tiles that are full on every core, so that the next loads overlap with the current
product and the previous store; the remainder is one short tile on each core. The work of V is now hidden, so that the chain
takes as long as the product.

The compiler already pipelines the serial loop of the previous step (`pipeline-loops`), so the time hardly changes.
`T.Pipelined` states the pipelining in the source and sets the number of slots.

Insight: none. The step gains no time, because the compiler already pipelines the loop.
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
