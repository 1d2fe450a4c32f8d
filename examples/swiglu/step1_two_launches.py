"""Two launches

One kernel computes `silu(a)`, another the product, with an intermediate tensor (`T.alloc_global`), as a library would do
it.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def swiglu(rows, columns, dtype, tile=2, cores=48):
    @T.prim_func
    def swiglu(X: T.Tensor((rows, 2 * columns), dtype), Y: T.Tensor((rows, columns), dtype)):
        S = T.alloc_global((rows, columns), "float32")
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile, columns), dtype)
            wa = T.alloc_shared((tile, columns), "float32")
            for i in T.serial(T.ceildiv(rows, tile * cores)):
                row = (i * cores + core) * tile
                T.copy(X[row : row + tile, :columns], a)
                T.copy(a, wa)
                for r, c in T.Parallel(tile, columns):
                    wa[r, c] = wa[r, c] / (1 + T.exp(-wa[r, c]))
                T.copy(wa, S[row, 0])
        with T.Kernel(cores, is_npu=True) as (core, _):
            s = T.alloc_shared((tile, columns), "float32")
            b = T.alloc_shared((tile, columns), dtype)
            wb = T.alloc_shared((tile, columns), "float32")
            for i in T.serial(T.ceildiv(rows, tile * cores)):
                row = (i * cores + core) * tile
                T.copy(S[row, 0], s)
                T.copy(X[row : row + tile, columns:], b)
                T.copy(b, wb)
                for r, c in T.Parallel(tile, columns):
                    b[r, c] = s[r, c] * wb[r, c]
                T.copy(b, Y[row, 0])

    return swiglu


if __name__ == "__main__":
    check(swiglu)
