"""Double buffering

`num_stages=2`: the pixels and weights of the next tap are loaded while the current tap is multiplied.

Removes cause: no overlap
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
            for tap in T.Pipelined(SIZE * SIZE, num_stages=2):
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
