"""Twice as many rows in a tile

There are half as many instructions, each twice as long.

Removes cause: small tiles
"""

from ladder import EPS, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def rows_of(n, columns, x, g, e, ge, p, scale, along, dw, db, w):
    T.copy(x, e)
    T.copy(g, ge)
    T.reduce_sum(e, along, dim=-1)
    for r in T.Parallel(n):
        along[r, 0] = along[r, 0] * (1.0 / columns)
    for r, c in T.Parallel(n, columns):
        e[r, c] = e[r, c] - along[r, 0]
    for r, c in T.Parallel(n, columns):
        p[r, c] = e[r, c] * e[r, c]
    T.reduce_sum(p, scale, dim=-1)
    for r in T.Parallel(n):
        scale[r, 0] = T.rsqrt(scale[r, 0] * (1.0 / columns) + EPS)
    for r, c in T.Parallel(n, columns):
        e[r, c] = e[r, c] * scale[r, 0]
    for r, c in T.Parallel(n, columns):
        p[r, c] = ge[r, c] * e[r, c]
    for r, c in T.Parallel(n, columns):
        dw[r, c] = dw[r, c] + p[r, c]
    for r, c in T.Parallel(n, columns):
        db[r, c] = db[r, c] + ge[r, c]
    for r, c in T.Parallel(n, columns):
        ge[r, c] = ge[r, c] * w[0, c]
    for r, c in T.Parallel(n, columns):
        p[r, c] = p[r, c] * w[0, c]
    T.reduce_sum(p, along, dim=-1)
    for r in T.Parallel(n):
        along[r, 0] = along[r, 0] * (1.0 / columns)
    for r, c in T.Parallel(n, columns):
        e[r, c] = e[r, c] * along[r, 0]
    T.reduce_sum(ge, along, dim=-1)
    for r in T.Parallel(n):
        along[r, 0] = along[r, 0] * (1.0 / columns)
    for r, c in T.Parallel(n, columns):
        x[r, c] = (ge[r, c] - along[r, 0] - e[r, c]) * scale[r, 0]


@tilelang.jit(target="npuir")
def layer_norm_backward(rows, columns, dtype, cores=48):
    tile = 4
    turns = rows // (tile * cores)
    rest = rows - turns * tile * cores
    piece = T.ceildiv(rest, cores)

    @T.prim_func
    def layer_norm_backward(
        X: T.Tensor((rows, columns), dtype),
        W: T.Tensor((1, columns), dtype),
        G: T.Tensor((rows, columns), dtype),
        DX: T.Tensor((rows, columns), dtype),
        DW: T.Tensor((1, columns), "float32"),
        DB: T.Tensor((1, columns), "float32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            narrow = T.alloc_shared((1, columns), dtype)
            w = T.alloc_shared((1, columns), "float32")
            x = T.alloc_shared((tile, columns), dtype)
            g = T.alloc_shared((tile, columns), dtype)
            e = T.alloc_shared((tile, columns), "float32")
            ge = T.alloc_shared((tile, columns), "float32")
            p = T.alloc_shared((tile, columns), "float32")
            scale = T.alloc_shared((tile, 1), "float32")
            along = T.alloc_shared((tile, 1), "float32")
            dw = T.alloc_shared((tile, columns), "float32")
            db = T.alloc_shared((tile, columns), "float32")
            total = T.alloc_shared((1, columns), "float32")
            T.copy(W, narrow)
            T.copy(narrow, w)
            T.clear(dw)
            T.clear(db)
            for i in T.Pipelined(turns, num_stages=2):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], x)
                T.copy(G[row, 0], g)
                rows_of(tile, columns, x, g, e, ge, p, scale, along, dw, db, w)
                T.copy(x, DX[row, 0])
            if rest:
                row = turns * tile * cores + core * piece
                T.copy(X[row, 0], x[:piece, :])
                T.copy(G[row, 0], g[:piece, :])
                rows_of(piece, columns, x[:piece, :], g[:piece, :], e[:piece, :], ge[:piece, :], p[:piece, :],
                        scale[:piece, :], along[:piece, :], dw[:piece, :], db[:piece, :], w)
                T.copy(x[:piece, :], DX[row, 0])
            T.reduce_sum(dw, total, dim=0)
            T.atomic_add(DW, total)
            T.reduce_sum(db, total, dim=0)
            T.atomic_add(DB, total)

    return layer_norm_backward


if __name__ == "__main__":
    check(layer_norm_backward)
