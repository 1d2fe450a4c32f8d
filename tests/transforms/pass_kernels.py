"""Small kernels with their arguments; each pass changes at least one of them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T

DEVELOPER = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True, "tl.ascend_auto_cv_combine": True,
             "tl.ascend_auto_cross_core_sync": True}


@tilelang.jit(out_idx=[-1], target="npuir")
def rows(M: int, N: int) -> Any:
    """Rows less their maximum, and times it one by one, in a pipelined loop."""

    @T.prim_func
    def rows(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(2, is_npu=True) as (block, _):
            x = T.alloc_shared((8, N), "float32")
            largest = T.alloc_shared((8, 1), "float32")
            for i in T.Pipelined(T.ceildiv(M, 16), num_stages=2):
                row = (i * 2 + block) * 8
                T.copy(X[row, 0], x)
                T.reduce_max(x, largest, dim=-1)
                T.vsub(x, largest, x)
                for r in T.serial(8):
                    T.vmul(x[r, 0:N], largest[r, 0], x[r, 0:N])
                T.copy(x, Y[row, 0])

    return rows


@tilelang.jit(out_idx=[-1], target="npuir")
def converted(M: int, N: int) -> Any:
    """Rows of bfloat16 that are squared in float32, in a pipelined loop with a tail; two slots of both tiles do not fit."""
    @T.prim_func
    def converted(X: T.Tensor((M, N), "bfloat16"), Y: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(2, is_npu=True) as (block, _):
            x = T.alloc_shared((8, N), "float32")
            y = T.alloc_shared((8, N), "float32")
            for i in T.Pipelined(T.ceildiv(M, 16), num_stages=2):
                row = (i * 2 + block) * 8
                T.copy(X[row, 0], x)
                T.vmul(x, x, y)
                T.copy(y, Y[row, 0])

    return converted


@tilelang.jit(out_idx=[-1], target="npuir")
def product(M: int, N: int, K: int) -> Any:
    """A @ B in tiles that do not divide it, after a clear, in a pipelined loop."""
    across = T.ceildiv(N, 32)

    @T.prim_func
    def product(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, 32) * across, is_npu=True) as (block, _):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[block // across * 32, k * 32], a)
                T.copy(B[k * 32, block % across * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[block // across * 32, block % across * 32])

    return product


@tilelang.jit(out_idx=[-1], target="npuir")
def both_cores(M: int, N: int, K: int) -> Any:
    """relu(A @ B + D) in a pipelined loop: products go from the Cube core to both Vector cores."""

    @T.prim_func
    def both_cores(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), D: T.Tensor((1, N), "float32"),
                   C: T.Tensor((M, N), "float16")):
        with T.Kernel(2, is_npu=True) as (block, _):
            a = T.alloc_shared((32, K), "float16")
            b = T.alloc_shared((K, N), "float16")
            c = T.alloc_fragment((32, N), "float32")
            d = T.alloc_shared((1, N), "float32")
            out = T.alloc_shared((32, N), "float16")
            T.copy(B, b)
            T.copy(D, d)
            for i in T.Pipelined(T.ceildiv(M, 64), num_stages=2):
                row = (i * 2 + block) * 32
                T.copy(A[row, 0], a)
                T.gemm(a, b, c, initC=True)
                T.vadd(c, d, c)
                T.vrelu(c, c)
                T.copy(c, out)
                T.copy(out, C[row, 0])

    return both_cores


@tilelang.jit(out_idx=[-1], target="npuir")
def damped(M: int, N: int, K: int) -> Any:
    """A sum of products that vector work halves in between: it is summed in UB."""

    @T.prim_func
    def damped(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            a = T.alloc_shared((M, 32), "float16")
            b = T.alloc_shared((32, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            T.clear(c)
            for k in T.serial(T.ceildiv(K, 32)):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.vmul(c, 0.5, c)
                T.gemm(a, b, c, initC=False)
            T.copy(c, C)

    return damped


@tilelang.jit(out_idx=[-1], target="npuir")
def points(M: int, N: int) -> Any:
    """Point by point, over unrolled halves, with a sigmoid and a sum of bfloat16."""

    @T.prim_func
    def points(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "bfloat16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 8), is_npu=True) as (block, _):
            x = T.alloc_shared((8, N), "float32")
            y = T.alloc_shared((8, N), "bfloat16")
            z = T.alloc_shared((8, N), "float32")
            T.copy(A[block * 8, 0], x)
            T.copy(B[block * 8, 0], y)
            T.vadd(y, y, y)
            T.vcast(y, z)
            for part in T.unroll(2):
                for i, j in T.Parallel(4, N):
                    z[part * 4 + i, j] = x[part * 4 + i, j] * 2.0 + z[part * 4 + i, j]
            T.vsigmoid(z, z)
            T.copy(z, C[block * 8, 0])

    return points


@tilelang.jit(out_idx=[-1], target="ascendc", pass_configs=DEVELOPER)
def gathered(M: int, N: int) -> Any:
    """A @ B^T of rows that vector work copies; the product is written before the copies."""

    @T.prim_func
    def gathered(A: T.Tensor((M, N), "float16"), B: T.Tensor((64, N), "float16"), I: T.Tensor((64,), "int32"),
                 C: T.Tensor((M, 64), "float32")):
        with T.Kernel(1, is_npu=True) as block:
            a = T.alloc_shared((M, N), "float16")
            b = T.alloc_shared((16, N), "float16")
            c = T.alloc_fragment((M, 16), "float32")
            places = T.alloc_shared((16,), "int32")
            row = T.alloc_shared((N,), "float16")
            T.copy(A, a)
            for i in T.serial(4):
                T.gemm_v0(a, b, c, transpose_B=True, init=True)
                T.copy(c, C[0, i * 16])
                T.copy(I[i * 16:i * 16 + 16], places)
                for j in range(16):
                    T.copy(B[places[j], :], row)
                    T.copy(row, b[j, :])

    return gathered


@tilelang.jit(out_idx=[-1], target="npuir")
def roundabout(M: int, N: int, K: int) -> Any:
    """relu(A @ B) with more copies, clears and loads than it takes."""

    @T.prim_func
    def roundabout(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(1, is_npu=True) as (block, _):
            staged = T.alloc_shared((32, K), "float16")
            a = T.alloc_shared((32, K), "float16")
            b = T.alloc_shared((K, N), "float16")
            c = T.alloc_fragment((32, N), "float32")
            out = T.alloc_shared((32, N), "float16")
            for i in T.Pipelined(T.ceildiv(M, 32), num_stages=2):
                T.clear(staged)
                T.copy(A[i * 32, 0], staged)
                T.copy(staged, a)
                T.copy(B, b)
                T.gemm(a, b, c, initC=True)
                for j, k in T.Parallel(32, N):
                    out[j, k] = T.max(c[j, k], 0.0)
                T.copy(out, C[i * 32, 0])

    return roundabout


@tilelang.jit(out_idx=[-1], workspace_idx=[2, 3], target="ascendc", pass_configs=DEVELOPER)
def back_and_forth(M: int, N: int) -> Any:
    """Separate loops for each core, which exchange data in both directions through scratch tensors."""

    @T.prim_func
    def back_and_forth(A: T.Tensor((M, N), "float16"), B: T.Tensor((N, N), "float16"), S: T.Tensor((M, N), "float32"),
                       P: T.Tensor((M, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as block:
            a = T.alloc_L1((M, N), "float16")
            b = T.alloc_L1((N, N), "float16")
            p = T.alloc_L1((M, N), "float16")
            c = T.alloc_L0C((M, N), "float32")
            s = T.alloc_ub((M, N), "float32")
            h = T.alloc_ub((M, N), "float16")
            T.copy(A, a)
            T.copy(B, b)
            for _ in T.serial(3):
                T.gemm_v0(a, b, c, init=True)
                T.copy(c, S)
                T.copy(P, p)
                T.gemm_v0(p, b, c, init=True)
                T.copy(c, C)
            for _ in T.serial(3):
                T.copy(S, s)
                T.tile.relu(s, s)
                T.copy(s, h)
                T.copy(h, P)

    return back_and_forth


@tilelang.jit(out_idx=[-1], target="npuir")
def chosen(M: int, N: int) -> Any:
    """The sum of A_i @ B over the blocks that a table chooses, which is in UB."""

    @T.prim_func
    def chosen(A: T.Tensor((M, 32), "float16"), B: T.Tensor((32, N), "float16"), I: T.Tensor((64,), "int32"),
               C: T.Tensor((16, N), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            a = T.alloc_shared((16, 32), "float16")
            b = T.alloc_shared((32, N), "float16")
            c = T.alloc_fragment((16, N), "float32")
            total = T.alloc_shared((16, N), "float32")
            table = T.alloc_shared((64,), "int32")
            T.copy(B, b)
            T.copy(I, table)
            T.clear(total)
            for i in T.Pipelined(M // 16, num_stages=2):
                if table[i] > 0:
                    T.copy(A[i * 16, 0], a)
                    T.gemm(a, b, c, initC=True)
                    for p, q in T.Parallel(16, N):
                        total[p, q] += c[p, q]
            T.copy(total, C)

    return chosen


@tilelang.jit(out_idx=[-1], target="ascendc")
def by_hand(M: int, N: int) -> Any:
    """Its author sets the flags, of numbers that the chip does not have."""

    @T.prim_func
    def by_hand(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (block, half):
            x = T.alloc_ub((M // 2, N), "float32")
            T.copy(A[half * (M // 2), 0], x)
            T.set_flag("mte2", "v", 10)
            T.wait_flag("mte2", "v", 10)
            T.tile.relu(x, x)
            T.set_flag("v", "mte3", 9)
            T.wait_flag("v", "mte3", 9)
            T.copy(x, B[half * (M // 2), 0])

    return by_hand


@tilelang.jit(out_idx=[-1], target="npuir")
def in_two(M: int, N: int) -> Any:
    """Products of rows in one launch, and their sums in another."""

    @T.prim_func
    def in_two(A: T.Tensor((M, 32), "float16"), B: T.Tensor((32, N), "float16"), C: T.Tensor((1, N), "float32")):
        P = T.alloc_global((M, N), "float32")
        with T.Kernel(T.ceildiv(M, 16), is_npu=True) as (block, _):
            a = T.alloc_shared((16, 32), "float16")
            b = T.alloc_shared((32, N), "float16")
            c = T.alloc_fragment((16, N), "float32")
            T.copy(A[block * 16, 0], a)
            T.copy(B, b)
            T.gemm(a, b, c, initC=True)
            T.copy(c, P[block * 16:(block + 1) * 16, 0:N])
        with T.Kernel(1, is_npu=True) as (block, _):
            row = T.alloc_shared((1, N), "float32")
            total = T.alloc_shared((1, N), "float32")
            T.clear(total)
            for i in T.serial(M):
                T.copy(P[i, 0], row)
                T.vadd(total, row, total)
            T.copy(total, C)

    return in_two


@tilelang.jit(out_idx=[2], workspace_idx=[3], target="npuir")
def through_a_workspace(M: int, N: int, K: int) -> Any:
    """Products that go to the Vector cores through a tensor that the call allocates, tile after tile."""
    @T.prim_func
    def through_a_workspace(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32"),
                            P: T.Tensor((1, 16, N), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            a = T.alloc_shared((16, K), "float16")
            b = T.alloc_shared((K, N), "float16")
            product = T.alloc_fragment((16, N), "float32")
            y = T.alloc_shared((16, N), "float32")
            T.copy(B[0, 0], b)
            for i in T.Pipelined(M // 16, num_stages=2):
                T.copy(A[i * 16, 0], a)
                T.gemm(a, b, product, initC=True)
                T.copy(product, P[block, 0, 0])
                T.copy(P[block, 0, 0], y)
                T.vadd(y, y, y)
                T.copy(y, C[i * 16, 0])

    return through_a_workspace


@tilelang.jit(out_idx=[-1], target="npuir")
def placed(M: int, N: int) -> Any:
    """Rows minus their maximum; the computation is one iteration later than the loads, and before them in the body."""

    @T.prim_func
    def placed(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((8, N), "float32")
            largest = T.alloc_shared((8, 1), "float32")
            for i in T.Pipelined(T.ceildiv(M, 8), stage=[0, 1, 1, 1], order=[3, 0, 1, 2]):
                T.copy(X[i * 8, 0], x)
                T.reduce_max(x, largest, dim=-1)
                T.vsub(x, largest, x)
                T.copy(x, Y[i * 8, 0])

    return placed


@tilelang.jit(out_idx=[-1], target="ascendc", pass_configs=DEVELOPER)
def scratched(M: int, N: int) -> Any:
    """Sums of rows and their sigmoids; of the two scratch buffers, the kernel also stores one."""

    @T.prim_func
    def scratched(X: T.Tensor((M, N), "float32"), Y: T.Tensor((2, M), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((M, N), "float32")
            y = T.alloc_ub((M,), "float32")
            unread = T.alloc_ub((M * N * 4,), "uint8")
            stored = T.alloc_ub((M,), "float32")
            T.copy(X, x)
            T.reduce_sum(x, y, dim=-1, tmp=unread)
            T.copy(y, Y[0, :])
            T.tile.sigmoid(y, y, tmp=stored)
            T.tile.add(stored, y, y)
            T.copy(stored, Y[1, :])

    return scratched


@tilelang.jit(out_idx=[-1], target="npuir")
def neighbours(M: int, N: int) -> Any:
    """Every second element for the next one, in tiles that leave UB no room for the temporaries of vector operations."""

    @T.prim_func
    def neighbours(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((M, N), "float32")
            y = T.alloc_shared((M, N), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(M, N // 2):
                y[i, 2 * j] = x[i, 2 * j + 1]
                y[i, 2 * j + 1] = -x[i, 2 * j]
            T.copy(y, Y)

    return neighbours


def _small(*shape: int, dtype: Any = np.float16) -> Any:
    return np.random.default_rng([*shape]).integers(-3, 4, shape).astype(dtype)


@tilelang.jit(out_idx=[-1], target="npuir")
def too_large(M: int, N: int) -> Any:
    """Rows plus one; the tile of all rows does not fit in UB."""

    @T.prim_func
    def too_large(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            x = T.alloc_shared((M, N), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(M, N):
                x[i, j] = x[i, j] + 1.0
            T.copy(x, Y)

    return too_large


@tilelang.jit(out_idx=[-1], target="npuir")
def many_blocks(M: int, N: int) -> Any:
    """Twice the rows, with a block for each."""

    @T.prim_func
    def many_blocks(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M, is_npu=True) as (row, _):
            x = T.alloc_shared((1, N), "float32")
            T.copy(X[row, 0], x)
            T.vadd(x, x, x)
            T.copy(x, Y[row, 0])

    return many_blocks


@tilelang.jit(out_idx=[-1], target="npuir")
def converted_twice(M: int, N: int) -> Any:
    """A tile that two loops convert to float32."""
    @T.prim_func
    def converted_twice(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared((M, N), "float16")
            y = T.alloc_shared((M, N), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(M, N):
                y[i, j] = T.cast(x[i, j], "float32") * 0.5
            T.vexp(y, y)
            for i, j in T.Parallel(M, N):
                y[i, j] = T.cast(x[i, j], "float32") + y[i, j]
            T.copy(y, Y)

    return converted_twice


CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "rows": (lambda: rows(40, 48), (_small(40, 48, dtype=np.float32),)),
    "placed": (lambda: placed(40, 48), (_small(40, 48, dtype=np.float32),)),
    "scratched": (lambda: scratched(16, 40), (_small(16, 40, dtype=np.float32),)),
    "product": (lambda: product(70, 40, 90), (_small(70, 90), _small(90, 40))),
    "both_cores": (lambda: both_cores(150, 48, 32), (_small(150, 32), _small(32, 48), _small(1, 48, dtype=np.float32))),
    "damped": (lambda: damped(32, 48, 96), (_small(32, 96), _small(96, 48))),
    "points": (lambda: points(40, 64), (_small(40, 64, dtype=np.float32), _small(40, 64, dtype=ml_dtypes.bfloat16))),
    "gathered": (lambda: gathered(16, 32), (_small(16, 32), _small(64, 32), np.arange(64, dtype=np.int32)[::-1].copy())),
    "roundabout": (lambda: roundabout(70, 48, 32), (_small(70, 32), _small(32, 48))),
    "back_and_forth": (lambda: back_and_forth(16, 32), (_small(16, 32), _small(32, 32))),
    "chosen": (lambda: chosen(96, 48), (_small(96, 32), _small(32, 48), np.arange(64, dtype=np.int32) % 3)),
    "by_hand": (lambda: by_hand(16, 64), (_small(16, 64, dtype=np.float32),)),
    "through_a_workspace": (lambda: through_a_workspace(64, 32, 32), (_small(64, 32), _small(32, 32))),
    "converted": (lambda: converted(40, 1304), (_small(40, 1304, dtype=ml_dtypes.bfloat16),)),
    "neighbours": (lambda: neighbours(192, 128), (_small(192, 128, dtype=np.float32),)),
    "in_two": (lambda: in_two(40, 24), (_small(40, 32), _small(32, 24))),
    "many_blocks": (lambda: many_blocks(50, 40), (_small(50, 40, dtype=np.float32),)),
    "converted_twice": (lambda: converted_twice(20, 40), (_small(20, 40),)),
    "too_large": (lambda: too_large(75, 1000), (_small(75, 1000, dtype=np.float32),)),
}
