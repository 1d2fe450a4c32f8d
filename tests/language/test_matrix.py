"""Matrix products: spellings of three dialects, shapes, types and memories."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError


@pytest.mark.parametrize(("statement", "expected"), [
    ("T.gemm(l1a, l1b, l0c)", ["tile.gemm %l1a, %l1b into %l0c init %false"]),
    ("T.gemm(l1a, l1b, acc, initC=True)", ["tile.gemm %l1a, %l1b into %acc init %true"]),
    ("T.gemm(l1a, l1b, acc, [64, 32, 128], initC=True)", ["tile.gemm %l1a, %l1b into %acc init %true"]),
    ("T.gemm(l1a, l1b, acc, [64, 32, 128], True)", ["tile.gemm %l1a, %l1b into %acc init %true"]),
    ("T.gemm(l1a, l1bt, acc, b_transpose=True)", ["tile.gemm %l1a, %l1bt into %acc init %false transpose_b"]),
    ("T.gemm(l1a, l1bt, acc, False, True)", ["tile.gemm %l1a, %l1bt into %acc init %false transpose_b"]),
    ("T.gemm(l1a, l1bt, acc, False, True, T.GemmWarpPolicy.FullRow, True)",
     ["tile.gemm %l1a, %l1bt into %acc init %true transpose_b"]),
    ("T.gemm(l1a, l1bt, acc, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.Square)",
     ["tile.gemm %l1a, %l1bt into %acc init %true transpose_b"]),
    ("T.gemm_v0(l1a, l1b, l0c, init=(cid == 0))", ["%0 = arith.cmpi eq, %cid, %c0", "tile.gemm %l1a, %l1b into %l0c init %0"]),
    ("T.gemm_v0(l1b, l1b, T.alloc_L0C((128, 128), 'float32'), transpose_A=True)",
     ["tile.gemm %l1b, %l1b into %buffer init %false transpose_a"]),
    ("T.npuir_dot(l1a, l1b, l0c, [64, 32, 128], n)", ["%0 = arith.cmpi ne, %n, %c0_i32",
                                                      "tile.gemm %l1a, %l1b into %l0c init %0"]),
    ("T.gemm(a8, b8, c32)", ["tile.gemm %a8, %b8 into %c32"]),
    # real sizes cut each side
    ("T.gemm(l1a, l1b, l0c, [16, 32, 64])", ["%0 = tile.region %l1a[0, 0] [16, 32]", "%1 = tile.region %l1b[0, 0] [32, 64]",
                                             "%2 = tile.region %l0c[0, 0] [16, 64]", "tile.gemm %0, %1 into %2"]),
    ("T.gemm(l1a, l1bt, l0c, [64, 16, 128], b_transpose=True)", [
        "%0 = tile.region %l1a[0, 0] [64, 16]", "%1 = tile.region %l1bt[0, 0] [128, 16]", "tile.gemm %0, %1 into %l0c"]),
    ("T.gemm(l1a, l1b, l0c, [n, 32, 128])", ["%0 = arith.index_cast %n", "%1 = tile.region %l1a[0, 0] [%0, 32]",
                                             "%2 = tile.region %l0c[0, 0] [%0, 128]", "tile.gemm %1, %l1b into %2"]),
    # leading unit axes do not count
    ("three = T.alloc_L1((2, 64, 32), 'float16')\nT.gemm_v0(three[cid % 2, :, :], l1b, l0c)",
     ["%0 = arith.remui %cid, %c2", "%1 = tile.region %three[%0, 0, 0] [1, 64, 32] keep [1, 2]",
      "tile.gemm %1, %l1b into %l0c"]),
    ("three = T.alloc_L1((1, 64, 32), 'float16')\nT.gemm_v0(three, l1b, l0c)",
     ["%0 = tile.region %three[0, 0, 0] [1, 64, 32] keep [1, 2]", "tile.gemm %0, %l1b into %l0c"]),
])
def test_forms(lines: Any, statement: str, expected: list[str]) -> None:
    found = lines(statement)
    assert len(found) == len(expected), found
    for have, want in zip(found, expected, strict=True):
        assert have.startswith(want), found


@pytest.mark.parametrize(("statement", "code", "message", "notes"), [
    ("T.gemm_v0(l1a, l1bt, l0c)", "T120", "K of A and B differ, 32 and 128",
     ("A is l1a [64, 32] float16", "B is l1bt [128, 32] float16", "C is l0c [64, 128] float32")),
    ("T.gemm_v0(l1a, l1b, l0c, transpose_A=True)", "T120", "K of A and B differ, 64 and 32",
     ("A is l1a [64, 32] float16, transposed", "B is l1b [32, 128] float16", "C is l0c [64, 128] float32")),
    ("T.gemm_v0(l1a[0:32, :], l1b, l0c)", "T120", "M of A and C differ, 32 and 64", None),
    ("T.gemm_v0(l1a, l1b[:, 0:64], l0c)", "T120", "N of B and C differ, 64 and 128", None),
    ("T.gemm_v0(line, l1b, l0c)", "T120", r"A line \[128\] float32 is not a matrix", None),
    ("T.gemm(l1a, l1b, l0c, [64, 32])", "T120", r"size must be \[m, k, n\], not 2 extents", None),
    ("T.gemm(l1a, l1b, l0c, [64, 64, 128])", "T120", r"size asks for \[64, 64\] of A l1a", None),
    ("T.gemm_v0(l1a, b8, l0c)", "T120", "N of B and C differ", None),
    ("T.gemm_v0(a8, b8, l0c[0:16, 0:16])", "T121", "no product of int8 and int8 into float32",
     ("A is a8 [16, 32] int8", "B is b8 [32, 16] int8", "C is l0c [16, 16] float32")),
    ("T.gemm_v0(a8, l1b[:, 0:16], c32)", "T121", "no product of int8 and float16 into int32", None),
    ("T.gemm_v0(H, l1b, l0c)", "T122", r"A H \[64, 128\] float16 is in global memory", None),
    ("T.gemm_v0(h, l1b, l0c)", "T122", r"A h \[8, 128\] float16 is in UB", None),
    ("T.gemm_v0(l1a, l1b, a)", "T122", r"C a \[8, 128\] float32 is in UB", None),
    ("T.gemm_v0(l1a, l1b, shared[:, :])", "T120", "M of A and C differ", None),
    ("T.gemm_v0(3, l1b, l0c)", "T110", "A must be a buffer, not 3", None),
    ("T.gemm(l1a, l1b, l0c, None, True, False, False, 3)", "T145", "at most 7 positional arguments", None),
    ("sq = T.alloc_shared((16, 16), 'float32')\nT.gemm_v0(sq, T.alloc_shared((16, 16), 'float32'), sq)", "T112",
     "shares elements with A", None),
])
def test_contracts(kernel: Any, refused: Any, statement: str, code: str, message: str, notes: tuple[str, ...] | None) -> None:
    with refused(code, at=statement.splitlines()[-1], message=message):
        kernel(statement)
    if notes is not None:
        with pytest.raises(TileError) as caught:
            kernel(statement)
        assert caught.value.notes == notes


# -- gemm_v0 of some columns, and products that are stored part by part -------------------------------------------------

AUTOMATIC = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}


def some_columns(n_actual: int | None, transposed: bool) -> Any:
    shape = (128, 64) if transposed else (64, 128)

    @T.prim_func
    def main(A: T.Tensor((32, 64), "float16"), B: T.Tensor(shape, "float16"), sizes: T.Tensor((1,), "int32"),
             C: T.Tensor((32, 128), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1((32, 64), "float16")
            b = T.alloc_L1(shape, "float16")
            acc = T.alloc_L0C((32, 128), "float32")
            with T.Scope("C"):
                n = sizes[0]
                T.copy(A, a)
                T.copy(B, b)
                T.gemm_v0(a, b, acc, transpose_B=transposed, init=True, kL0Size=64, n_actual=n_actual or n)
                T.copy(acc, C)

    return tilelang.compile(main, out_idx=[3], target="ascendc", pass_configs=AUTOMATIC)


@pytest.mark.filterwarnings("ignore:stale.S221")  # the kernel stores the columns that are not computed, too
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("n_actual", [None, 64, 112])
def test_gemm_v0_of_some_columns(n_actual: int | None, transposed: bool, rng: np.random.Generator) -> None:
    """As upstream: ``n_actual`` columns of a product with a transposed B; all columns of any other product."""
    kernel = some_columns(n_actual, transposed)
    a = rng.integers(-4, 5, (32, 64)).astype(np.float16)
    b = rng.integers(-4, 5, (128, 64) if transposed else (64, 128)).astype(np.float16)
    product = a.astype(np.float32) @ (b.T if transposed else b).astype(np.float32)
    columns = (n_actual or 48) if transposed else 128
    for run in (kernel, kernel.interpret):
        np.testing.assert_array_equal(run(a, b, np.array([48], np.int32))[:, :columns], product[:, :columns])


def part_by_part(m: int, n: int, k: int, part: int, dtype: str, transposed: tuple[bool, bool], *, runtime: bool) -> Any:
    left, right = (k, m) if transposed[0] else (m, k), (n, k) if transposed[1] else (k, n)

    @T.prim_func
    def main(A: T.Tensor(left, dtype), B: T.Tensor(right, dtype), sizes: T.Tensor((1,), "int32"),
             C: T.Tensor((2, m, n), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1(left, dtype)
            b = T.alloc_L1(right, dtype)
            acc = T.alloc_L0C((m, part), "float32")
            with T.Scope("C"):
                depth = sizes[0]
                T.copy(A, a)
                T.copy(B, b)
                T.gemm_v0_fixp(a, b, acc, C[1, :, :], k_actual=depth if runtime else None, transpose_A=transposed[0],
                               transpose_B=transposed[1], init=True)

    return tilelang.compile(main, target="ascendc", pass_configs=AUTOMATIC)


@pytest.mark.parametrize("runtime", [False, True])
@pytest.mark.parametrize(("m", "n", "k", "part", "dtype", "transposed"), [
    (64, 512, 128, 128, "float16", (False, False)), (40, 200, 72, 64, "bfloat16", (False, False)),
    (64, 96, 128, 128, "float16", (False, True)), (32, 160, 64, 64, "float16", (True, True))])
def test_products_that_are_stored_part_by_part(m: int, n: int, k: int, part: int, dtype: str, transposed: tuple[bool, bool],
                                               runtime: bool, rng: np.random.Generator) -> None:
    """``T.gemm_v0_fixp``: the parts take turns in L0C; unit flags, not events, order products and stores."""
    kernel = part_by_part(m, n, k, part, dtype, transposed, runtime=runtime)
    element = np.dtype(getattr(ml_dtypes, dtype, dtype))
    a = rng.integers(-4, 5, (k, m) if transposed[0] else (m, k)).astype(element)
    b = rng.integers(-4, 5, (n, k) if transposed[1] else (k, n)).astype(element)
    depth = 50 if runtime else k
    left, right = (a.T if transposed[0] else a).astype(np.float32), (b.T if transposed[1] else b).astype(np.float32)
    for run in (kernel, kernel.interpret):
        found = np.full((2, m, n), 7, np.float32)
        run(a, b, np.array([depth], np.int32), found)
        np.testing.assert_array_equal(found[1], left[:, :depth] @ right[:depth])
        assert (found[0] == 7).all()
    text = kernel.mlir()
    assert text.count("hivm.hir.fixpipe") == text.count("hivm.hir.mmadL1") == -(-n // part)
    assert "PIPE_FIX>, <EVENT" not in text
    assert not kernel.last_launch.hazards


@pytest.mark.parametrize(("statement", "code", "message"), [
    ("T.gemm_v0(l1a, l1bt, l0c, transpose_B=True, n_actual=40)", "T145", "n_actual is 40"),
    ("T.gemm_v0(l1a, l1bt, l0c, transpose_B=True, n_actual=144)", "T120", "size asks for"),
    ("T.gemm_v0(l1a, l1b, l0c, kL0Size=40)", "T145", "kL0Size is 40"),
    ("T.gemm_v0(l1a, l1b, l0c, kL0Size=4096)", "T145", "kL0Size is 4096"),
    ("T.gemm_v0_fixp(l1a, l1b, l0c, acc, init=True)", "T122", "the destination acc .* is not in a global tensor"),
    ("T.gemm_v0_fixp(l1a, l1b, l0c[:, 0:64], A, init=False)", "T190", "init is not True, and dst A .* has 2 parts of 64"),
    ("T.gemm_v0_fixp(l1a, l1bt, l0c[:, 0:64], A, transpose_B=True, init=True, n_actual=64)", "T190", "n_actual is given"),
    ("T.gemm_v0_fixp(l1a, l1b, l0c, A, k_actual=0, init=True)", "T145", "k_actual is 0"),
    ("T.gemm_v0_fixp(l1a, l1b, l0c[0:32, :], A, init=True)", "T120", "M of A and C differ"),
])
def test_wrong_columns_and_parts(kernel: Any, refused: Any, statement: str, code: str, message: str) -> None:
    with refused(code, at=statement, message=message):
        kernel(statement)
