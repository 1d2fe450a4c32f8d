"""One launch

A launch takes 0.5 us, 0.13 us for each core that it starts, and the latency of its single core: of 50 us in all this is
noticeable. For a sum, every core adds its part to the result (`T.atomic_add`), which MTE3 does in L2. There is no such
store for a maximum: there all cores synchronise (`T.sync_all`), and the first core reads the results of the others.

Removes cause: separate launches
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
            if op == "sum":
                T.atomic_add(Y, result)
            else:
                T.copy(result, parts[core, 0])
                T.sync_all()
                if core == 0:
                    part = T.alloc_shared((cores, 1), wide)
                    whole = T.alloc_shared((1, 1), wide)
                    T.copy(parts, part)
                    T.reduce_max(part, whole, dim=0)
                    T.copy(whole[0, 0:1], Y)

    return reduce


if __name__ == "__main__":
    check(reduce)
