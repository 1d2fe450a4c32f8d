"""Im2col and a matrix product

The first launch copies the pixels that each tap reads, nine times the image, to a matrix of pixels x (taps and channels).
The second launch multiplies; a block computes one row of the image for 128 filters. The copies alone take longer than the
whole of an efficient kernel.
"""

from ladder import SIZE, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def conv2d(batch, height, width, channels, filters, tile_N=128, cores=48):
    lines = batch * height
    columns = T.ceildiv(filters, tile_N)

    @T.prim_func
    def conv2d(
        X: T.Tensor((batch, height + SIZE - 1, width + SIZE - 1, channels), "float16"),
        W: T.Tensor((SIZE, SIZE, channels, filters), "float16"),
        Y: T.Tensor((batch, height, width, filters), "float16"),
    ):
        P = T.alloc_global((batch, height, width, SIZE, SIZE, channels), "float16")
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((width, channels), "float16")
            for i in T.serial(T.ceildiv(lines, cores)):
                line = i * cores + core
                if line < lines:
                    image = line // height
                    row = line % height
                    for tap in T.serial(SIZE * SIZE):
                        T.copy(X[image, row + tap // SIZE, tap % SIZE : tap % SIZE + width, :], x)
                        T.copy(x, P[image, row, :, tap // SIZE, tap % SIZE, :])
        with T.Kernel(lines * columns, is_npu=True) as (tile, _):
            a = T.alloc_shared((width, channels), "float16")
            b = T.alloc_shared((channels, tile_N), "float16")
            c = T.alloc_fragment((width, tile_N), "float32")
            image = tile // columns // height
            row = tile // columns % height
            column = tile % columns * tile_N
            for tap in T.serial(SIZE * SIZE):
                T.copy(P[image, row, :, tap // SIZE, tap % SIZE, :], a)
                T.copy(W[tap // SIZE, tap % SIZE, :, column : column + tile_N], b)
                T.gemm(a, b, c, initC=(tap == 0))
            T.copy(c, Y[image, row, :, column : column + tile_N])

    return conv2d


if __name__ == "__main__":
    check(conv2d)
