"""Tiles that fill L0C

Two rows of the image, 128 pixels, by all 256 filters are 128 KB in float32, all of L0C: each weight and each pixel that is
loaded is used twice as often. In L1 a row starts at a multiple of 16 pixels, the size of a fractal. If the length of a row
is not such a multiple, the padding after it is multiplied, but not stored.

Removes cause: narrow tile
"""

from ladder import SIZE, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def conv2d(batch, height, width, channels, filters, tile_N=256, tall=2):
    groups = T.ceildiv(height, tall)
    columns = T.ceildiv(filters, tile_N)
    step = T.ceildiv(width, 16) * 16

    @T.prim_func
    def conv2d(
        X: T.Tensor((batch, height + SIZE - 1, width + SIZE - 1, channels), "float16"),
        W: T.Tensor((SIZE, SIZE, channels, filters), "float16"),
        Y: T.Tensor((batch, height, width, filters), "float16"),
    ):
        with T.Kernel(batch * groups * columns, is_npu=True) as (tile, _):
            a = T.alloc_shared((tall * step, channels), "float16")
            b = T.alloc_shared((channels, tile_N), "float16")
            c = T.alloc_fragment((tall * step, tile_N), "float32")
            image = tile // columns // groups
            row = tile // columns % groups * tall
            column = tile % columns * tile_N
            for tap in T.serial(SIZE * SIZE):
                for t in range(tall):
                    line = row + t + tap // SIZE
                    T.copy(X[image, line, tap % SIZE : tap % SIZE + width, :], a[t * step : t * step + width, :])
                T.copy(W[tap // SIZE, tap % SIZE, :, column : column + tile_N], b)
                T.gemm(a, b, c, initC=(tap == 0))
            for t in range(tall):
                T.copy(c[t * step : (t + 1) * step, :], Y[image, row + t, 0, column])

    return conv2d


if __name__ == "__main__":
    check(conv2d)
