"""A template for any function of elements

The kernel is a Python function of a Python function: whatever `FUNCTIONS` has becomes a kernel as fast as the one before,
because the function is called while the kernel is traced, with a symbol for an element, and leaves nothing but
the operations. Where a GPU's template also packs elements into wider loads, nothing is left to do here: tiles move in lines
of 512 bytes as they are.

To know: nothing of the machine. The time stays what it was; what is won is that the next function takes no kernel.
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
