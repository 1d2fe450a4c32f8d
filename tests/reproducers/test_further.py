"""Further reports: each a small kernel that went wrong in another tool and holds here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu.language as T
from reproducers.kernels import AUTO, BOTH, ORDERS, compiled, holds, refused
from tilelang_npu.simulator import Launch

N = 64
M = 16
RNG = np.random.default_rng(0)


def kernel_of(body: Any, *shapes: tuple[tuple[int, ...], str], switches: dict[str, bool] | None = None) -> Any:
    """A kernel over a first and a second tensor, whose body is a macro."""
    (first, one), (second, two) = shapes

    @T.prim_func
    def main(A: T.Tensor(first, one), B: T.Tensor(second, two)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            body(A, B, vid)

    return compiled(main, AUTO if switches is None else switches)


def integers(*shape: int, dtype: str = "float32") -> Any:
    return RNG.integers(-9, 10, shape).astype(dtype)


@T.macro
def scalar_write_then_vector(A: Any, B: Any, vid: Any) -> None:
    x = T.alloc_ub((N,), "float32")
    T.copy(A, x)
    T.tile.add(x, x, 1.0)
    T.tile.add(x, x, x)
    x[3] = x[5] * 2.0
    T.tile.add(x, x, x)
    T.copy(x, B)


def test_scalar_and_vector_take_turns() -> None:
    a = integers(N)
    kernel = kernel_of(scalar_write_then_vector, ((N,), "float32"), ((N,), "float32"))
    x = 2 * (a + 1)
    x[3] = 2 * x[5]
    holds(kernel, [a, np.zeros_like(a)], [2 * x])
    assert kernel.mlir().count("wait_flag[<PIPE_V>, <PIPE_S>") == 1  # one event covers all earlier ops of a pipe


@T.macro
def while_in_for(A: Any, B: Any, vid: Any) -> None:
    x = T.alloc_ub((N,), "float32")
    k = T.alloc_var("int32", init=0)
    T.copy(A, x)
    for _i in T.serial(3):
        k = 0
        while k < 2:
            T.tile.add(x, x, 1.0)
            k = k + 1
    T.copy(x, B)


def test_a_while_in_a_for() -> None:
    a = integers(N)
    holds(kernel_of(while_in_for, ((N,), "float32"), ((N,), "float32")), [a, np.zeros_like(a)], [a + 6])


@pytest.mark.parametrize("n", [0, 1])
def test_only_the_other_branch_reads_what_was_written(n: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x, y = T.alloc_ub((N,), "float32"), T.alloc_ub((N,), "float32")
            T.copy(A, x)
            T.tile.fill(y, 1.0)
            if n > 0:
                T.tile.add(y, y, y)
            else:
                T.tile.add(y, y, x)
                y[0] = x[N - 1]
            T.copy(y, B)

    a = integers(N)
    expected = a + 1
    expected[0] = a[-1]
    kernel = compiled(main, AUTO)
    for order in (None, *ORDERS):
        b = np.zeros_like(a)
        launch = Launch(kernel.program.run([a, b, n], blocks=1, schedule=order))
        np.testing.assert_array_equal(b, np.full(N, 2) if n else expected)
        assert launch.hazards == []


def test_a_barrier_of_all_cores_with_automatic_splitting() -> None:
    blocks = 24

    @T.prim_func
    def main(A: T.Tensor((blocks * M, M), "float16"), W: T.Tensor((blocks * M, M), "float32"),
             C: T.Tensor((blocks * M, M), "float32")):
        with T.Kernel(blocks, is_npu=True) as (cid, vid):
            a = T.alloc_L1((M, M), "float16")
            c = T.alloc_L0C((M, M), "float32")
            x = T.alloc_ub((M // 2, M), "float32")
            T.copy(A[cid * M, 0], a)
            T.gemm_v0(a, a, c, init=True)
            T.copy(c, W[cid * M, 0])
            T.sync_all()
            T.copy(W[(blocks - 1 - cid) * M + vid * (M // 2), 0], x)
            T.copy(x, C[cid * M + vid * (M // 2), 0])

    a = RNG.integers(-3, 4, (blocks * M, M)).astype(np.float16)
    tiles = [tile.astype(np.float32) @ tile.astype(np.float32) for tile in np.split(a, blocks)]
    kernel = compiled(main, {**AUTO, "tl.ascend_auto_cv_combine": True})
    w, c = np.zeros((2, blocks * M, M), np.float32)
    kernel(a, w, c)
    np.testing.assert_array_equal(c, np.concatenate(tiles[::-1]))
    assert kernel.last_launch.hazards == []


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_a_condition_on_the_first_tile_of_a_product(stages: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((M, 4 * M), "float16"), C: T.Tensor((M, M), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((M, M), "float16")
            c = T.alloc_L0C((M, M), "float32")
            for k in T.Pipelined(4, num_stages=stages):
                T.copy(A[0, k * M], a)
                if k == 0:
                    T.gemm_v0(a, a, c, init=True)
                else:
                    T.gemm_v0(a, a, c, init=False)
            T.copy(c, C)

    a = RNG.integers(-3, 4, (M, 4 * M)).astype(np.float16)
    parts = [part.astype(np.float32) for part in np.split(a, 4, axis=1)]
    holds(compiled(main, AUTO), [a, np.zeros((M, M), np.float32)], [sum(part @ part for part in parts)])


@pytest.mark.parametrize("stages", [1, 2])
def test_a_mixed_kernel_with_atomics(stages: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((4 * M, M), "float16"), S: T.Tensor((M, M), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((M, M), "float16")
            c = T.alloc_L0C((M, M), "float32")
            x = T.alloc_ub((M // 2, M), "float32")
            for i in T.Pipelined(4, num_stages=stages):
                T.copy(A[i * M, 0], a)
                T.gemm_v0(a, a, c, init=True)
                T.copy(c[vid * (M // 2):(vid + 1) * (M // 2), :], x)
                T.tile.add(x, x, 1.0)
                T.tile.atomic_add(S[vid * (M // 2), 0], x)

    a = RNG.integers(-3, 4, (4 * M, M)).astype(np.float16)
    tiles = [tile.astype(np.float32) for tile in np.split(a, 4)]
    holds(compiled(main, BOTH), [a, np.zeros((M, M), np.float32)], [sum(tile @ tile for tile in tiles) + 4])


@T.macro
def element_by_name(A: Any, B: Any, vid: Any) -> None:
    x = T.alloc_ub((N,), "float32")
    T.copy(A, x)
    first = x[7]
    x[0] = first + 1.0
    T.copy(x, B)


@T.macro
def scratch_twice(A: Any, B: Any, vid: Any) -> None:
    x, scratch = T.alloc_ub((N,), "float32"), T.alloc_ub((N,), "float32")
    for i in T.Pipelined(4, num_stages=2):
        T.copy(A[i, :], scratch)
        T.tile.add(x, scratch, 1.0)
        T.copy(A[3 - i, :], scratch)
        T.tile.add(x, x, scratch)
        T.copy(x, B[i, :])


def test_an_element_bound_to_a_name() -> None:
    a = integers(N)
    expected = a.copy()
    expected[0] = a[7] + 1
    holds(kernel_of(element_by_name, ((N,), "float32"), ((N,), "float32")), [a, np.zeros_like(a)], [expected])


def test_scratch_that_is_used_twice_in_an_iteration() -> None:
    a = integers(4, N)
    holds(kernel_of(scratch_twice, ((4, N), "float32"), ((4, N), "float32")), [a, np.zeros_like(a)], [a + 1 + a[::-1]])


def in_place(rows: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((rows, 128), "float32"), B: T.Tensor((rows, 128), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x, y = T.alloc_ub((rows, 128), "float32"), T.alloc_ub((rows, 128), "float32")
            T.copy(A, x)
            T.copy(A, y)
            T.tile.silu(x, x)
            T.tile.add(x, x, y)
            T.copy(x, B)

    return main


def test_the_memory_of_an_operation_in_place_next_to_a_large_tile() -> None:
    a = RNG.standard_normal((120, 128)).astype(np.float32)
    holds(compiled(in_place(120), AUTO), [a, np.zeros_like(a)], [a / (1 + np.exp(-a)) + a], rtol=1e-5)
    error = refused(in_place(128), AUTO)
    assert error.code == "T104" and "silu" in str(error) and str(error).count("65 536 bytes") >= 3


@T.macro
def scalar_in_a_pipeline(A: Any, B: Any, vid: Any) -> None:
    x = T.alloc_ub((N,), "float32")
    for i in T.Pipelined(4, num_stages=2):
        factor = A[i, 5]
        T.copy(A[i, :], x)
        T.tile.mul(x, x, factor)
        T.copy(x, B[i, :])


def test_a_number_read_in_a_pipelined_loop() -> None:
    a = integers(4, N)
    holds(kernel_of(scalar_in_a_pipeline, ((4, N), "float32"), ((4, N), "float32")), [a, np.zeros_like(a)], [a * a[:, 5:6]])


@T.macro
def projections(A: Any, B: Any, vid: Any) -> None:
    x, row, column = T.alloc_ub((M, M), "float32"), T.alloc_ub((M,), "float32"), T.alloc_ub((M,), "float32")
    T.copy(A, x)
    for j in T.Parallel(M):
        row[j] = x[M - 1, j]
    for i in T.Parallel(M):
        column[i] = x[i, 8]
    T.tile.add(row, row, column)
    T.copy(row, B)


@T.macro
def from_the_middle(A: Any, B: Any, vid: Any) -> None:
    x, y = T.alloc_ub((N,), "float32"), T.alloc_ub((N,), "float32")
    T.copy(A, x)
    T.tile.fill(y, 0.0)
    for i in T.vectorized(8, N):
        y[i] = x[i] + 1.0
    T.copy(y, B)


def test_a_row_and_a_column_by_parallel_loops() -> None:
    a = integers(M, M)
    holds(kernel_of(projections, ((M, M), "float32"), ((M,), "float32")), [a, np.zeros(M, np.float32)], [a[-1] + a[:, 8]])


def test_a_vectorised_range_that_begins_after_zero() -> None:
    a = integers(N)
    expected = np.where(np.arange(N) < 8, 0, a + 1)
    holds(kernel_of(from_the_middle, ((N,), "float32"), ((N,), "float32")), [a, np.zeros_like(a)], [expected])


def test_an_atomic_sum_into_a_slice_of_four_axes() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), S: T.Tensor((2, 64, 2, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((32, 64), "float32")
            T.copy(A[vid * 32, 0], x)
            T.tile.atomic_add(S[1, vid * 32:vid * 32 + 32, 1, 0:64], x)

    a, s = integers(64, 64), integers(2, 64, 2, 64)
    expected = s.copy()
    expected[1, :, 1, :] += a
    holds(compiled(main, AUTO), [a, s], [expected])


@T.macro
def loops_of_data(A: Any, B: Any, vid: Any) -> None:
    counts, total = T.alloc_ub((M,), "int32"), T.alloc_ub((M,), "int32")
    T.copy(A, counts)
    T.tile.fill(total, 0)
    for i in T.Parallel(M):
        for j in T.serial(counts[i]):
            total[i] = total[i] + j
    T.copy(total, B)


def test_loops_whose_length_is_data_inside_a_parallel_one() -> None:
    a = np.arange(M, dtype=np.int32) % 5
    holds(kernel_of(loops_of_data, ((M,), "int32"), ((M,), "int32")), [a, np.zeros_like(a)], [a * (a - 1) // 2])


@T.macro
def row_sums(A: Any, B: Any, vid: Any) -> None:
    x, s = T.alloc_ub((M, N), "float32"), T.alloc_ub((M,), "float32")
    T.copy(A, x)
    T.tile.fill(s, 0.0)
    for i, j in T.Parallel(M, N):
        s[i] += x[i, j]
    T.copy(s, B)


def test_a_sum_written_as_a_parallel_loop() -> None:
    """The result is the sum, or an error that several lanes write one element; never the value of a single lane."""
    a = integers(M, N)
    holds(kernel_of(row_sums, ((M, N), "float32"), ((M,), "float32")), [a, np.zeros(M, np.float32)], [a.sum(1)])


@T.macro
def shifted_columns(A: Any, B: Any, vid: Any) -> None:
    x, y = T.alloc_ub((M, N), "float32"), T.alloc_ub((M, N), "float32")
    T.copy(A, x)
    T.copy(A, y)
    T.tile.add(y[:, 8:40], x[:, 16:48], x[:, 8:40])
    T.copy(y, B)


def test_slices_of_columns_in_an_operation() -> None:
    a = integers(M, N)
    expected = a.copy()
    expected[:, 8:40] = a[:, 16:48] + a[:, 8:40]
    holds(kernel_of(shifted_columns, ((M, N), "float32"), ((M, N), "float32")), [a, np.zeros_like(a)], [expected])


@T.macro
def inverted(A: Any, B: Any, vid: Any) -> None:
    x = T.alloc_ub((256, 100), "int16")
    T.copy(A, x)
    T.tile.bitwise_not(x, x)
    T.copy(x, B)


def test_rows_of_100_numbers() -> None:
    a = RNG.integers(-999, 999, (256, 100)).astype(np.int16)
    holds(kernel_of(inverted, ((256, 100), "int16"), ((256, 100), "int16")), [a, np.zeros_like(a)], [~a])


@T.macro
def padded(A: Any, B: Any, vid: Any) -> None:
    x = T.alloc_ub((N, N), "float32")
    T.copy(A[0, 0], x, pad_value=-99.0)
    T.copy(x, B)


def test_the_value_past_the_end_is_the_requested_one() -> None:
    a = integers(60, 60)
    expected = np.full((N, N), -99, np.float32)
    expected[:60, :60] = a
    holds(kernel_of(padded, ((60, 60), "float32"), ((N, N), "float32")), [a, np.zeros((N, N), np.float32)], [expected])


@T.macro
def scattered(A: Any, B: Any, vid: Any) -> None:
    order, inverse = T.alloc_ub((N,), "int32"), T.alloc_ub((N,), "int32")
    T.copy(A, order)
    for i in T.serial(N):
        inverse[order[i]] = i
    T.copy(inverse, B)


def test_places_from_data() -> None:
    a = RNG.permutation(N).astype(np.int32)
    holds(kernel_of(scattered, ((N,), "int32"), ((N,), "int32")), [a, np.zeros_like(a)], [np.argsort(a)])


@T.macro
def literals(A: Any, B: Any, vid: Any) -> None:
    x = T.alloc_ub((N,), "float32")
    T.copy(A, x)
    T.tile.sub(x, x, -1.5)
    x[0] = float("nan")
    x[1] = -x[1] - -2.0
    T.copy(x, B)


def test_literals() -> None:
    a = integers(N)
    expected = a + 1.5
    expected[0] = np.nan
    expected[1] = -expected[1] + 2
    holds(kernel_of(literals, ((N,), "float32"), ((N,), "float32")), [a, np.zeros_like(a)], [expected])


@T.macro
def nibbles(A: Any, B: Any, vid: Any) -> None:
    x, low, high, mask = (T.alloc_ub((N,), "int16"), T.alloc_ub((N,), "int16"), T.alloc_ub((N,), "int16"),
                          T.alloc_ub((N,), "int16"))
    T.copy(A, x)
    T.tile.fill(mask, 15)
    T.tile.bitwise_and(low, x, mask)
    T.tile.bitwise_rshift(high, x, 4)
    T.tile.bitwise_and(high, high, mask)
    T.tile.bitwise_lshift(low, low, 4)
    T.tile.bitwise_or(x, low, high)
    T.copy(x, B)


def test_results_of_parts_of_an_expression_keep_apart() -> None:
    a = RNG.integers(0, 256, N).astype(np.int16)
    holds(kernel_of(nibbles, ((N,), "int16"), ((N,), "int16")), [a, np.zeros_like(a)], [(a & 15) << 4 | a >> 4])


@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_of_float32(transposed: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((M, 32), "float32"), B: T.Tensor((48, 32) if transposed else (32, 48), "float32"),
             C: T.Tensor((M, 48), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((M, 32), "float32")
            b = T.alloc_L1((48, 32) if transposed else (32, 48), "float32")
            c = T.alloc_L0C((M, 48), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm_v0(a, b, c, transpose_B=transposed, init=True)
            T.copy(c, C)

    a, b = integers(M, 32), integers(48, 32) if transposed else integers(32, 48)
    holds(compiled(main, AUTO), [a, b, np.zeros((M, 48), np.float32)], [a @ (b.T if transposed else b)])


def test_parallel_inside_parallel() -> None:
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((M, N), "float32")
            T.copy(A, x)
            for i in T.Parallel(M):
                for j in T.Parallel(N):
                    x[i, j] = x[i, j] * 2.0
            T.copy(x, B)

    error = refused(main, AUTO)
    assert error.code == "T141" and "one T.Parallel" in error.help


def test_l0b_is_64_kilobytes() -> None:
    @T.prim_func
    def main(A: T.Tensor((M, 256), "float16"), B: T.Tensor((256, 192), "float16"), C: T.Tensor((M, 192), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            b1 = T.alloc_L1((256, 192), "float16")
            b = T.alloc_L0B((256, 192), "float16")
            T.copy(B, b1)
            T.copy(b1, b)

    error = refused(main, AUTO)
    assert error.code == "T104" and "L0B" in error.message and "65 536" in error.message
