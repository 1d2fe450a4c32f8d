"""Double buffering

The part of the channel in the next image is loaded while V processes the current one.

Removes cause: no overlap
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def add_part(lanes, pixels, x, e, p, b, one, mean, square):
    T.copy(x, e)
    T.reduce_sum(e, one, dim=-1)
    for r in T.Parallel(lanes):
        one[r, 0] = one[r, 0] * (1.0 / pixels)
    for r, c in T.Parallel(lanes, pixels):
        p[r, c] = e[r, c] - one[r, 0]
    for r in T.Parallel(lanes):
        one[r, 0] = one[r, 0] - mean[r, 0]
    for r in T.Parallel(lanes):
        mean[r, 0] = mean[r, 0] + one[r, 0] / (b + 1)
    for r in T.Parallel(lanes):
        square[r, 0] = square[r, 0] + one[r, 0] * one[r, 0] * (pixels * b / (b + 1))
    for r, c in T.Parallel(lanes, pixels):
        p[r, c] = p[r, c] * p[r, c]
    T.reduce_sum(p, one, dim=-1)
    T.vadd(square, one, square)


@tilelang.jit(target="npuir")
def batch_norm(batch, channels, pixels, dtype, lanes=1, cores=48):
    @T.prim_func
    def batch_norm(
        X: T.Tensor((batch, channels, pixels), dtype),
        MEAN: T.Tensor((channels, 1), "float32"),
        VAR: T.Tensor((channels, 1), "float32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((lanes, pixels), dtype)
            e = T.alloc_shared((lanes, pixels), "float32")
            p = T.alloc_shared((lanes, pixels), "float32")
            one = T.alloc_shared((lanes, 1), "float32")
            mean = T.alloc_shared((lanes, 1), "float32")
            square = T.alloc_shared((lanes, 1), "float32")
            for i in T.serial(T.ceildiv(channels, lanes * cores)):
                channel = (i * cores + core) * lanes
                if channel < channels:
                    T.clear(mean)
                    T.clear(square)
                    for b in T.Pipelined(batch, num_stages=2):
                        T.copy(X[b, channel : channel + lanes, :], x)
                        add_part(lanes, pixels, x, e, p, b, one, mean, square)
                    T.vmul(square, 1.0 / (batch * pixels), square)
                    T.copy(mean, MEAN[channel, 0])
                    T.copy(square, VAR[channel, 0])

    return batch_norm


if __name__ == "__main__":
    check(batch_norm)
