"""Products from L0A and L0B: loads by hand, slots, transposition, parts of the operands, unit flags."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError


def numpy_type(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def by_hand(transposed: bool, slots: int, k: int = 64, depth: int = 32) -> Any:
    shape = (64, k) if transposed else (k, 64)

    @T.prim_func
    def main(A: T.Tensor((32, k), "float16"), B: T.Tensor(shape, "float16"), C: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1((32, k), "float16")
            b = T.alloc_L1(shape, "float16")
            left = T.alloc_L0A((slots, 32, depth), "float16")
            right = T.alloc_L0B((slots, depth, 64), "float16")
            acc = T.alloc_L0C((32, 64), "float32")
            with T.Scope("C"):
                T.copy(A, a)
                T.copy(B, b)
                for i in T.serial(k // depth):
                    T.copy(a[0, i * depth], left[i % slots, :, :])
                    if transposed:
                        T.copy(b[:, i * depth:(i + 1) * depth], right[i % slots, :, :], transpose=True)
                    else:
                        T.copy(b[i * depth, 0], right[i % slots, :, :])
                    T.mma(left[i % slots, :, :], right[i % slots, :, :], acc, init=(i == 0))
                T.copy(acc, C)

    return main


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("transposed", [False, True])
def test_values(transposed: bool, slots: int, rng: np.random.Generator) -> None:
    a = rng.standard_normal((32, 64)).astype(np.float16)
    b = rng.standard_normal((64, 64)).astype(np.float16)
    kernel = tilelang.compile(by_hand(transposed, slots), out_idx=[2], target="ascendc",
                              pass_configs={"tl.ascend_auto_sync": True})
    expected = a.astype(np.float32) @ (b.T if transposed else b).astype(np.float32)
    np.testing.assert_allclose(kernel(a, b), expected, rtol=1e-5, atol=1e-4)
    text = kernel.mlir()
    assert text.count('symbol = "mma"') == 1
    assert ('symbol = "load_l0b_transposed"' in text) == transposed


def test_operands_in_l1_are_refused(kernel: Any) -> None:
    with pytest.raises(TileError, match=r"A l1a .* is not in L0A") as caught:
        kernel("T.mma(l1a, l1b, l0c)")
    assert caught.value.code == "T122"


# -- parts of the operands, and unit flags ---------------------------------------------------------------------------------

AUTOMATIC = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}
ACCUMULATOR = {"int8": "int32"}


def parts(m: int, n: int, k: int, dtype: str, transposed: bool) -> Any:
    """C[:, :n'] = A[:, :k'] @ B[:k', :n'], where only run time knows k' and n'."""
    shape, out = (n, k) if transposed else (k, n), ACCUMULATOR.get(dtype, "float32")

    @T.prim_func
    def main(A: T.Tensor((m, k), dtype), B: T.Tensor(shape, dtype), sizes: T.Tensor((2,), "int32"), C: T.Tensor((m, n), out)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1((m, k), dtype)
            b = T.alloc_L1(shape, dtype)
            left = T.alloc_L0A((m, k), dtype)
            right = T.alloc_L0B((k, n), dtype)
            acc = T.alloc_L0C((m, n), out)
            with T.Scope("C"):
                depth = sizes[0]
                columns = sizes[1]
                T.copy(A, a)
                T.copy(B, b)
                T.copy(a, left, real_k=depth)
                T.copy(b, right, transpose=transposed, real_k=depth, real_n=columns)
                T.mma(left, right, acc, init=True, k_actual=depth, n_actual=columns, unit_flag=0b11)
                T.copy(acc, C[:, 0:columns], unit_flag=0b11)

    return main


@pytest.mark.parametrize(("dtype", "transposed"), [
    ("float16", False), ("float16", True), ("bfloat16", False), ("bfloat16", True), ("float32", False), ("int8", False)])
def test_parts_that_only_run_time_knows(dtype: str, transposed: bool, rng: np.random.Generator) -> None:
    m, n, k = 48, 96, 128
    element, out = numpy_type(dtype), numpy_type(ACCUMULATOR.get(dtype, "float32"))
    kernel = tilelang.compile(parts(m, n, k, dtype, transposed), target="ascendc", pass_configs=AUTOMATIC)
    a = rng.integers(-4, 5, (m, k)).astype(element)
    b = rng.integers(-4, 5, (n, k) if transposed else (k, n)).astype(element)
    right = (b.T if transposed else b).astype(np.float32)
    for depth, columns in ((128, 96), (64, 80), (100, 40), (128, 16), (17, 1)):
        expected = np.full((m, n), 7, out)
        expected[:, :columns] = a.astype(np.float32)[:, :depth] @ right[:depth, :columns]
        for run in (kernel, kernel.interpret):
            found = np.full((m, n), 7, out)
            run(a, b, np.array([depth, columns], np.int32), found)
            np.testing.assert_array_equal(found, expected, err_msg=f"k = {depth}, n = {columns}")


def test_a_part_larger_than_the_buffer_ends_the_run() -> None:
    kernel = tilelang.compile(parts(32, 64, 64, "float16", False), target="ascendc", pass_configs=AUTOMATIC)
    ones = np.ones((64, 64), np.float16)
    for sizes in ([64, 65], [80, 64]):
        with pytest.raises(TileError) as caught:
            kernel(ones[:32], ones, np.array(sizes, np.int32), np.zeros((32, 64), np.float32))
        assert caught.value.code == "T502"


def walked(flags: tuple[int | None, int | None, int | None], *, real_n: bool = True, columns: str = "0:n", n: int = 128,
           ) -> Any:
    """A @ B^T over k = 256 as two products of 128 into one accumulator, of which the second one passes the blocks on."""
    source = f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((64, 256), "float16"), B: T.Tensor(({n}, 256), "float16"), sizes: T.Tensor((1,), "int32"),
                 C: T.Tensor((64, {n}), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, _):
                a = T.alloc_L1((64, 256), "float16")
                b = T.alloc_L1(({n}, 256), "float16")
                left = T.alloc_L0A((2, 64, 128), "float16")
                right = T.alloc_L0B((2, 128, {n}), "float16")
                acc = T.alloc_L0C((1, 64, {n}), "float32")
                with T.Scope("C"):
                    n = sizes[0]
                    T.barrier_all()
                    T.copy(A, a)
                    T.copy(B, b)
                    T.barrier_all()
                    FIRST
                    SECOND
                    T.barrier_all()
                    T.copy(acc[0, :, :], C[:, {columns}], unit_flag={flags[2]})
                    T.barrier_all()
    """
    lines = []
    for slot in (0, 1):
        part = f"{128 * slot}:{128 * slot + 128}"
        lines.append("; ".join((
            f"T.copy(a[:, {part}], left[{slot}, :, :])",
            f"T.copy(b[:, {part}], right[{slot}, :, :], transpose=True, real_k=128{', real_n=n' if real_n else ''})",
            "T.barrier_all()",
            f"T.mma(left[{slot}, :, :], right[{slot}, :, :], acc[0, :, :], init={slot == 0}, k_actual=128, n_actual=n, "
            f"unit_flag={flags[slot]})", "T.barrier_all()")))
    return source.replace("FIRST", lines[0]).replace("SECOND", lines[1])


def test_products_that_the_kernel_divides_itself(source: Any, rng: np.random.Generator) -> None:
    """The test of TileLang-Ascend's pull request 1422: two parts of k, and a number of columns that only run time knows."""
    kernel = tilelang.compile(source(walked((0b10, 0b11, 0b11))).main, target="ascendc", pass_configs=AUTOMATIC)
    a, b = (rng.standard_normal((rows, 256)).astype(np.float16) for rows in (64, 128))
    for columns in (128, 96, 32):
        found = np.zeros((64, 128), np.float32)
        kernel(a, b, np.array([columns], np.int32), found)
        expected = a.astype(np.float32) @ b.astype(np.float32).T
        np.testing.assert_allclose(found[:, :columns], expected[:, :columns], rtol=1e-5, atol=1e-3)
        assert not found[:, columns:].any()
    assert not kernel.last_launch.hazards


@pytest.mark.parametrize(("flags", "columns", "message"), [
    ((0b10, 0b10, 0b11), "0:n", "the copy out of L0C waits for ever for 48 of its 48 blocks of L0C"),
    ((0b11, 0b11, 0b11), "0:n", "the product waits for ever for 48 of its 48 blocks"),
    ((0b10, 0b11, 0b11), ":", "the copy out of L0C waits for ever for 16 of its 64 blocks of L0C, the first at byte 24576"),
    ((None, None, 0b11), "0:n", "no product with a unit flag has passed them on"),
])
def test_unit_flags_that_hang(source: Any, flags: Any, columns: str, message: str) -> None:
    kernel = tilelang.compile(source(walked(flags, columns=columns)).main, target="ascendc", pass_configs=AUTOMATIC)
    ones = np.ones((128, 256), np.float16)
    with pytest.raises(TileError, match=message) as caught:
        kernel(ones[:64], ones, np.array([96], np.int32), np.zeros((64, 128), np.float32))
    assert caught.value.code == "S307"


def test_a_load_with_another_layout_than_the_product_is_refused(source: Any) -> None:
    with pytest.raises(TileError, match="B right was loaded with n = 128, and the product reads it with n = a") as caught:
        tilelang.compile(source(walked((0b10, 0b11, 0b11), real_n=False)).main, target="ascendc", pass_configs=AUTOMATIC).mlir()
    assert caught.value.code == "T123"


def layouts(loaded: int, multiplied: int, m: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((m, 64), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((m, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1((m, 64), "float16")
            b = T.alloc_L1((64, 32), "float16")
            left = T.alloc_L0A((m, 64), "float16")
            right = T.alloc_L0B((64, 32), "float16")
            acc = T.alloc_L0C((m, 32), "float32")
            with T.Scope("C"):
                T.copy(A, a)
                T.copy(B, b)
                T.copy(a, left, real_k=loaded)
                T.copy(b, right)
                T.mma(left, right, acc, init=True, k_actual=multiplied)
                T.copy(acc, C)

    return tilelang.compile(main, out_idx=[2], target="ascendc", pass_configs=AUTOMATIC)


@pytest.mark.parametrize(("loaded", "multiplied", "m", "refused"), [
    (64, 48, 32, True), (48, 64, 32, True), (48, 48, 32, False), (48, 40, 32, False), (64, 48, 16, False)])
def test_layouts_of_l0a(loaded: int, multiplied: int, m: int, refused: bool, rng: np.random.Generator) -> None:
    """The numbers of fractals along k must be equal, unless L0A has a single row of fractals."""
    a, b = rng.integers(-4, 5, (m, 64)).astype(np.float16), rng.integers(-4, 5, (64, 32)).astype(np.float16)
    if refused:
        with pytest.raises(TileError, match="A left was loaded with k") as caught:
            layouts(loaded, multiplied, m)(a, b)
        assert caught.value.code == "T123"
        return
    expected = a[:, :multiplied].astype(np.float32) @ b[:multiplied].astype(np.float32)
    np.testing.assert_array_equal(layouts(loaded, multiplied, m)(a, b), expected)


@pytest.mark.parametrize(("statement", "code", "message"), [
    ("T.mma(p, q, c, unit_flag=1)", "T145", "unit_flag is 1"),
    ("T.mma(p, q, c, unit_flag=True)", "T145", "unit_flag is True"),
    ("T.mma(p, q, c, unit_flag=n)", "T145", "unit_flag is n .*, which may be another number than 0b10 and 0b11"),
    ("T.mma(p, q, c, k_actual=0)", "T145", "k_actual is 0"),
    ("T.mma(p, q, c, n_actual=129)", "T120", r"size asks for \[32, 129\] of B q"),
    ("T.mma(p, q, c, k_actual=33)", "T120", r"size asks for \[64, 33\] of A p"),
    ("T.copy(l1a, p, real_n=16)", "T231", "real_n is given, and the destination p .* is in L0A"),
    ("T.copy(l1b, q, real_n=129)", "T131", "real_n is 129, and q .* has only 128"),
    ("T.copy(l1b, q, real_k=0)", "T145", "real_k is 0"),
    ("T.copy(A[0, 0], a, real_k=8)", "T231", "real_k is given, and the destination a .* is not a matrix in L0A or L0B"),
    ("T.copy(A[0, 0], a, unit_flag=3)", "T231", "unit_flag is given, and the source A .* is not in L0C"),
    ("T.copy(c, A[:, :], unit_flag=5)", "T145", "unit_flag is 5"),
])
def test_wrong_parts_and_flags(kernel: Any, refused: Any, statement: str, code: str, message: str) -> None:
    lines = ('p = T.alloc_L0A((64, 32), "float16")', 'q = T.alloc_L0B((32, 128), "float16")',
             'c = T.alloc_L0C((64, 128), "float32")', statement)
    with refused(code, at=statement, message=message):
        kernel("\n".join(lines))
