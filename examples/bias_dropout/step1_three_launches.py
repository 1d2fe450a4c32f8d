"""Three launches

One launch for bias and dropout, one for the residual, one for LayerNorm, two rows at a time, with intermediate tensors in
the type of the inputs. More than half of all traffic is that of the intermediate tensors.

`num_stages=1` keeps each loop serial; otherwise the compiler would pipeline it (`pipeline-loops`).
"""

from ladder import EPS, KEEP, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def bias_dropout(rows, columns, dtype, norm, tile=2, cores=48):
    turns = T.ceildiv(rows, tile * cores)

    @T.prim_func
    def bias_dropout(
        X: T.Tensor((rows, columns), dtype),
        B: T.Tensor((1, columns), dtype),
        K: T.Tensor((rows, columns), "int8"),
        R: T.Tensor((rows, columns), dtype),
        W: T.Tensor((1, columns), dtype),
        S: T.Tensor((1, columns), dtype),
        Y: T.Tensor((rows, columns), dtype),
    ):
        D = T.alloc_global((rows, columns), dtype)
        Z = T.alloc_global((rows, columns), dtype)
        with T.Kernel(cores, is_npu=True) as (core, _):
            narrow = T.alloc_shared((1, columns), dtype)
            b = T.alloc_shared((1, columns), "float32")
            x = T.alloc_shared((tile, columns), dtype)
            keep = T.alloc_shared((tile, columns), "int8")
            z = T.alloc_shared((tile, columns), "float32")
            k = T.alloc_shared((tile, columns), "float32")
            T.copy(B, narrow)
            T.copy(narrow, b)
            for i in T.Pipelined(turns, num_stages=1):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], x)
                T.copy(K[row, 0], keep)
                T.copy(x, z)
                T.copy(keep, k)
                for r, c in T.Parallel(tile, columns):
                    x[r, c] = (z[r, c] + b[0, c]) * k[r, c] * (1 / KEEP)
                T.copy(x, D[row, 0])
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), dtype)
            y = T.alloc_shared((tile, columns), dtype)
            z = T.alloc_shared((tile, columns), "float32")
            k = T.alloc_shared((tile, columns), "float32")
            for i in T.Pipelined(turns, num_stages=1):
                row = (i * cores + core) * tile
                T.copy(D[row, 0], x)
                T.copy(R[row, 0], y)
                T.copy(x, z)
                T.copy(y, k)
                for r, c in T.Parallel(tile, columns):
                    y[r, c] = z[r, c] + k[r, c]
                if norm:
                    T.copy(y, Z[row, 0])
                else:
                    T.copy(y, Y[row, 0])
        if norm:
            with T.Kernel(cores, is_npu=True) as (core, _):
                narrow = T.alloc_shared((1, columns), dtype)
                w = T.alloc_shared((1, columns), "float32")
                s = T.alloc_shared((1, columns), "float32")
                x = T.alloc_shared((tile, columns), dtype)
                z = T.alloc_shared((tile, columns), "float32")
                k = T.alloc_shared((tile, columns), "float32")
                mean = T.alloc_shared((tile, 1), "float32")
                scale = T.alloc_shared((tile, 1), "float32")
                T.copy(W, narrow)
                T.copy(narrow, w)
                T.copy(S, narrow)
                T.copy(narrow, s)
                for i in T.Pipelined(turns, num_stages=1):
                    row = (i * cores + core) * tile
                    T.copy(Z[row, 0], x)
                    T.copy(x, z)
                    T.reduce_sum(z, mean, dim=-1)
                    for r in T.Parallel(tile):
                        mean[r, 0] = mean[r, 0] * (1.0 / columns)
                    for r, c in T.Parallel(tile, columns):
                        z[r, c] = z[r, c] - mean[r, 0]
                    for r, c in T.Parallel(tile, columns):
                        k[r, c] = z[r, c] * z[r, c]
                    T.reduce_sum(k, scale, dim=-1)
                    for r in T.Parallel(tile):
                        scale[r, 0] = T.rsqrt(scale[r, 0] * (1.0 / columns) + EPS)
                    for r, c in T.Parallel(tile, columns):
                        x[r, c] = z[r, c] * scale[r, 0] * w[0, c] + s[0, c]
                    T.copy(x, Y[row, 0])

    return bias_dropout


if __name__ == "__main__":
    check(bias_dropout)
