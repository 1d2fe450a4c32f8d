"""Implicit GEMM

The left matrix of a tap is a row of the image, starting at the column of the tap: `X[image, row + i, j : j + width, :]` is
loaded to L1 as it is, and the load converts it to the layout that M needs. The first launch is gone, and most loads hit L2.

Insight: the left matrix need not be stored, because its rows are already contiguous in the image.
"""

from ladder import SIZE, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def conv2d(batch, height, width, channels, filters, tile_N=128):
    lines = batch * height
    columns = T.ceildiv(filters, tile_N)

    @T.prim_func
    def conv2d(
        X: T.Tensor((batch, height + SIZE - 1, width + SIZE - 1, channels), "float16"),
        W: T.Tensor((SIZE, SIZE, channels, filters), "float16"),
        Y: T.Tensor((batch, height, width, filters), "float16"),
    ):
        with T.Kernel(lines * columns, is_npu=True) as (tile, _):
            a = T.alloc_shared((width, channels), "float16")
            b = T.alloc_shared((channels, tile_N), "float16")
            c = T.alloc_fragment((width, tile_N), "float32")
            image = tile // columns // height
            row = tile // columns % height
            column = tile % columns * tile_N
            for tap in T.serial(SIZE * SIZE):
                T.copy(X[image, row + tap // SIZE, tap % SIZE : tap % SIZE + width, :], a)
                T.copy(W[tap // SIZE, tap % SIZE, :, column : column + tile_N], b)
                T.gemm(a, b, c, initC=(tap == 0))
            T.copy(c, Y[image, row, :, column : column + tile_N])

    return conv2d


if __name__ == "__main__":
    check(conv2d)
