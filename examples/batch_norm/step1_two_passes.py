"""Two passes

Each core processes every 48th channel: it reads all images for the mean, and reads them again for the variance. A channel
of an image is contiguous, 12 KB in float32, which is long enough for full bandwidth; but all data is loaded twice.

`num_stages=1` keeps each loop over images serial; otherwise the compiler would pipeline it (`pipeline-loops`).
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def batch_norm(batch, channels, pixels, dtype, cores=48):
    count = batch * pixels

    @T.prim_func
    def batch_norm(
        X: T.Tensor((batch, channels, pixels), dtype),
        MEAN: T.Tensor((channels, 1), "float32"),
        VAR: T.Tensor((channels, 1), "float32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((1, pixels), dtype)
            e = T.alloc_shared((1, pixels), "float32")
            one = T.alloc_shared((1, 1), "float32")
            mean = T.alloc_shared((1, 1), "float32")
            var = T.alloc_shared((1, 1), "float32")
            for i in T.serial(T.ceildiv(channels, cores)):
                channel = i * cores + core
                if channel < channels:
                    T.clear(mean)
                    T.clear(var)
                    for b in T.Pipelined(batch, num_stages=1):
                        T.copy(X[b, channel : channel + 1, :], x)
                        T.copy(x, e)
                        T.reduce_sum(e, one, dim=-1)
                        T.vadd(mean, one, mean)
                    T.vmul(mean, 1.0 / count, mean)
                    for b in T.Pipelined(batch, num_stages=1):
                        T.copy(X[b, channel : channel + 1, :], x)
                        T.copy(x, e)
                        for r, c in T.Parallel(1, pixels):
                            e[r, c] = e[r, c] - mean[r, 0]
                        for r, c in T.Parallel(1, pixels):
                            e[r, c] = e[r, c] * e[r, c]
                        T.reduce_sum(e, one, dim=-1)
                        T.vadd(var, one, var)
                    T.vmul(var, 1.0 / count, var)
                    T.copy(mean, MEAN[channel, 0])
                    T.copy(var, VAR[channel, 0])

    return batch_norm


if __name__ == "__main__":
    check(batch_norm)
