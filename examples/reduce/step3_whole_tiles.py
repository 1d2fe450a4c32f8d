"""Full tiles, double-buffered, and the remainder after the loop

`T.Pipelined(..., num_stages=2)` gives `x` two slots: the next tile is loaded while V processes the current one. This alone
saves nothing here. A tile that may extend past the end of the vector is first filled with `pad_value`, by V; the load after
the fill waits for V, which still processes the previous tile, so that the two do not overlap. The loop therefore runs over
tiles that are full on every core, which the compiler proves from the constants, and the remainder is then divided among the
cores, in one short tile each.

Removes cause: no overlap
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
            one = T.alloc_shared((1,), wide)
            result = T.alloc_shared((1,), wide)
            T.fill(result, nothing)
            for i in T.Pipelined(turns, num_stages=2):
                T.copy(X[(i * cores + core) * tile], x)
                T.copy(x, values)
                if op == "sum":
                    T.reduce_sum(values, one)
                    T.vadd(result, one, result)
                else:
                    T.reduce_max(values, one)
                    T.vmax(result, one, result)
            if rest:
                last = T.alloc_shared((piece,), dtype)
                T.copy(X[turns * tile * cores + core * piece], last, pad_value=nothing)
                T.copy(last, values[:piece])
                if op == "sum":
                    T.reduce_sum(values[:piece], one)
                    T.vadd(result, one, result)
                else:
                    T.reduce_max(values[:piece], one)
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
