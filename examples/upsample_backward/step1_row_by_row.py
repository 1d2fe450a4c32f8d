"""Row by row

The `scale` rows of the gradient that belong to one row are contiguous; they are loaded together and added. Then each
element and its neighbours in the row are added: the compiler deinterleaves or gathers every second or third element into a
separate vector.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def rows_of(n, columns, scale, row, G, DX, g, sums, x):
    T.copy(G[row, 0, 0], g)
    for r, c in T.Parallel(n, scale * columns):
        sums[r, c] = g[r, 0, c] + g[r, 1, c]
    if scale == 3:
        for r, c in T.Parallel(n, scale * columns):
            sums[r, c] = sums[r, c] + g[r, 2, c]
    for r, c in T.Parallel(n, columns):
        if scale == 2:
            x[r, c] = sums[r, 2 * c] + sums[r, 2 * c + 1]
        else:
            x[r, c] = sums[r, 3 * c] + sums[r, 3 * c + 1] + sums[r, 3 * c + 2]
    T.copy(x, DX[row, 0])


@tilelang.jit(target="npuir")
def upsample_backward(rows, columns, scale, dtype, cores=48):
    tile = 1

    @T.prim_func
    def upsample_backward(G: T.Tensor((rows, scale, scale * columns), dtype), DX: T.Tensor((rows, columns), dtype)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            g = T.alloc_shared((tile, scale, scale * columns), dtype)
            sums = T.alloc_shared((tile, scale * columns), dtype)
            x = T.alloc_shared((tile, columns), dtype)
            for i in T.serial(T.ceildiv(rows, tile * cores)):
                row = (i * cores + core) * tile
                rows_of(tile, columns, scale, row, G, DX, g, sums, x)

    return upsample_backward


if __name__ == "__main__":
    check(upsample_backward)
