"""One reduction at the end

V was busy for seven tenths of the time: the reduction of a vector to one number is its most expensive operation, because it
halves the vector again and again, and each halving waits for the previous one. Therefore a tile is now combined with an
accumulator element by element, with one instruction at full width, and is reduced to one number only once, after the loop.
That is no faster here, where MTE2 has no gaps already; but V now has time for other operations, and with a chain of
operations in place of one it would have been the bound. For a sum of float16 each tile is first converted to float32: half
as many bytes to load, and twice the work for V.

Insight: the reduction of a vector to one number is the most expensive operation of V, and a sum may be kept element by
element until the end. The profile correctly predicts no gain, because MTE2 hides V.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def reduce(length, dtype, op, tile=4096, cores=48):
    wide = "float32" if op == "sum" else dtype
    turns = length // (tile * cores)
    rest = length - turns * tile * cores
    piece = min(tile, T.ceildiv(T.ceildiv(rest, cores), 128) * 128)
    nothing = 0 if op == "sum" else -T.infinity(dtype)

    @T.prim_func
    def reduce(X: T.Tensor((length,), dtype), Y: T.Tensor((1,), wide)):
        parts = T.alloc_global((cores, 1), wide)
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile,), dtype)
            values = T.alloc_shared((tile,), wide)
            many = T.alloc_shared((tile,), wide)
            result = T.alloc_shared((1,), wide)
            T.fill(many, nothing)
            for i in T.Pipelined(turns, num_stages=2):
                T.copy(X[(i * cores + core) * tile], x)
                T.copy(x, values)
                if op == "sum":
                    T.vadd(many, values, many)
                else:
                    T.vmax(many, values, many)
            if rest:
                last = T.alloc_shared((piece,), dtype)
                T.copy(X[turns * tile * cores + core * piece], last, pad_value=nothing)
                T.copy(last, values[:piece])
                if op == "sum":
                    T.vadd(many[:piece], values[:piece], many[:piece])
                else:
                    T.vmax(many[:piece], values[:piece], many[:piece])
            if op == "sum":
                T.reduce_sum(many, result)
            else:
                T.reduce_max(many, result)
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
