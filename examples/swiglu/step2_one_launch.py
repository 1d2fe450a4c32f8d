"""One launch

Both halves of a row are loaded to UB, and the intermediate values stay there. The intermediate tensor was written once and
read once in float32: two of five parts of all traffic in float32, four of seven in float16. A macro (`T.macro`) contains
the computation on a tile; it is inlined where it is called.

Removes cause: separate launches
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def gate(n, columns, a, b, wa, wb):
    T.copy(a, wa)
    T.copy(b, wb)
    for r, c in T.Parallel(n, columns):
        a[r, c] = wa[r, c] / (1 + T.exp(-wa[r, c])) * wb[r, c]


@tilelang.jit(target="npuir")
def swiglu(rows, columns, dtype, tile=2, cores=48):
    @T.prim_func
    def swiglu(
        X: T.Tensor((rows, 2 * columns), dtype), Y: T.Tensor((rows, columns), dtype)
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile, columns), dtype)
            b = T.alloc_shared((tile, columns), dtype)
            wa = T.alloc_shared((tile, columns), "float32")
            wb = T.alloc_shared((tile, columns), "float32")
            for i in T.serial(T.ceildiv(rows, tile * cores)):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], a)
                T.copy(X[row, columns], b)
                gate(tile, columns, a, b, wa, wb)
                T.copy(a, Y[row, 0])

    return swiglu


if __name__ == "__main__":
    check(swiglu)
