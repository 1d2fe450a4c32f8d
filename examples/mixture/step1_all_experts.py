"""All experts for all tokens

The first launch computes the weights of the experts, which are 0 for all but two experts of each token. In the second
launch every expert multiplies all tokens, and each product, times its weight, is added to Y: no routing is needed, but
three quarters of the products are multiplied by 0.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def route(tokens, experts, K, X, R, gates):
    """Computes the weight of each expert for each token, 0 for all but two experts."""
    with T.Kernel(T.ceildiv(tokens, 64), is_npu=True) as (block, _):
        r = T.alloc_shared((experts, 256), "float16")
        x = T.alloc_shared((64, 256), "float16")
        logits = T.alloc_fragment((experts, 64), "float32")
        given = T.alloc_shared((experts, 64), "float32")
        rest = T.alloc_shared((experts, 64), "float32")
        first = T.alloc_shared((1, 64), "float32")
        second = T.alloc_shared((1, 64), "float32")
        total = T.alloc_shared((1, 64), "float32")
        for k in T.Pipelined(T.ceildiv(K, 256), num_stages=2):
            T.copy(R[0, k * 256], r)
            T.copy(X[block * 64, k * 256], x)
            T.gemm(r, x, logits, initC=(k == 0), b_transpose=True)
        T.copy(logits, given)
        T.reduce_max(given, first, dim=0)
        for e, t in T.Parallel(experts, 64):
            rest[e, t] = T.if_then_else(given[e, t] < first[0, t], given[e, t], -1e30)
        T.reduce_max(rest, second, dim=0)
        for e, t in T.Parallel(experts, 64):
            given[e, t] = T.if_then_else(given[e, t] < second[0, t], 0.0, T.exp(given[e, t] - first[0, t]))
        T.reduce_sum(given, total, dim=0)
        for e, t in T.Parallel(experts, 64):
            given[e, t] = given[e, t] / total[0, t]
        T.copy(given, gates[0, block * 64])


@tilelang.jit(target="npuir")
def mixture(tokens, experts, N, K, tile_M=128, tile_N=128, tile_K=128):
    rows, columns = T.ceildiv(tokens, tile_M), T.ceildiv(N, tile_N)

    @T.prim_func
    def mixture(
        X: T.Tensor((tokens, K), "float16"),
        R: T.Tensor((experts, K), "float16"),
        W: T.Tensor((experts, K, N), "float16"),
        Y: T.Tensor((tokens, N), "float32"),
    ):
        gates = T.alloc_global((experts, tokens), "float32")
        route(tokens, experts, K, X, R, gates)
        with T.Kernel(experts * rows * columns, is_npu=True) as (block, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            share = T.alloc_shared((1, tile_M), "float32")
            column_of = T.alloc_shared((tile_M, 1), "float32")
            expert = block // (rows * columns)
            row = block // columns % rows * tile_M
            column = block % columns * tile_N
            for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
                T.copy(X[row, k * tile_K], a)
                T.copy(W[expert, k * tile_K, column], b)
                T.gemm(a, b, c, initC=(k == 0))
            T.copy(gates[expert, row], share)
            for m in T.Parallel(tile_M):
                column_of[m, 0] = share[0, m]
            for m, n in T.Parallel(tile_M, tile_N):
                c[m, n] = c[m, n] * column_of[m, 0]
            T.atomic_add(Y[row, column], c)

    return mixture


if __name__ == "__main__":
    check(mixture)
