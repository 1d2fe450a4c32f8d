"""Matrix products: spellings of three dialects, shapes, types and memories."""

from __future__ import annotations

from typing import Any

import pytest

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
