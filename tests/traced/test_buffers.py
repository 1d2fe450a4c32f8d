"""Rectangles and elements: offsets, sizes and axes that indices and slices mean."""

from __future__ import annotations

from typing import Any

import pytest

TEXT = """
    import tilelang_npu.language as T

    M = T.symbolic("M")
    block = 16

    @T.prim_func
    def main(A: T.Tensor((64, 32, 128), "float32"), S: T.Tensor((M, 128), "float32"), I: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(64, is_npu=True) as (cid, vid):
            a = T.alloc_ub((8, 128), "float32")
            c = T.alloc_ub((2, 8, 128), "float32")
            x = cid // 3
            for k in T.serial(4):
                T.fill({place}, 1.0)
"""


@pytest.mark.parametrize(("place", "expected"), [
    ("a", None),
    ("a[:, :]", None),
    ("a[0:8, 0:128]", None),
    ("a[2]", "tile.region %a[2, 0] [1, 128] keep [1]"),
    ("a[2, :]", "tile.region %a[2, 0] [1, 128] keep [1]"),
    ("a[2:4]", "tile.region %a[2, 0] [2, 128] keep [0, 1]"),
    ("a[k, 8:]", "tile.region %a[%k, 8] [1, 120] keep [1]"),
    ("a[:, :8]", "tile.region %a[0, 0] [8, 8] keep [0, 1]"),
    ("a[3, 4]", "tile.region %a[3, 4] [1, 1] keep [0, 1]"),
    ("c[k % 2]", "tile.region %c[%0, 0, 0] [1, 8, 128] keep [1, 2]"),
    ("c[1, 2:4, :]", "tile.region %c[1, 2, 0] [1, 2, 128] keep [1, 2]"),
    ("c[1][2:4]", "tile.region %c[1, 2, 0] [1, 2, 128] keep [1, 2]"),
    ("c[1, 2:6][1:3, 8:16]", "tile.region %c[1, 3, 8] [1, 2, 8] keep [1, 2]"),
    ("c[k % 2][k + 1:k + 3]", "tile.region %c[%0, %1, 0] [1, 2, 128] keep [1, 2]"),
    ("c[:, 0:8, :][0:2][0, 0:8]", "tile.region %c[0, 0, 0] [1, 8, 128] keep [1, 2]"),
    # the size is a constant if the ends differ by a constant
    ("A[cid, k * block : k * block + block, :]", "tile.region %A[%cid, %0, 0] [1, 16, 128] keep [1, 2]"),
    ("A[cid, k * block : (k + 1) * block, :]", "tile.region %A[%cid, %0, 0] [1, 16, 128] keep [1, 2]"),
    ("A[x, cid // 3 + 2 : x + 4, :]", "tile.region %A[%x, %1, 0] [1, 2, 128] keep [1, 2]"),
    ("A[0, I[k] * 4 : I[k] * 4 + 4, :]", "tile.region %A[0, %2, 0] [1, 4, 128] keep [1, 2]"),
    ("A[0, n * 4 - 4 : n * 4, :]", "tile.region %A[0, %2, 0] [1, 4, 128] keep [1, 2]"),
    ("S[M - 8 : M, :]", "[8, 128] keep [0, 1]"),
    # and otherwise a run-time value
    ("a[0:n, :]", "tile.region %a[0, 0] [%0, 128] keep [0, 1]"),
    ("a[n:, :]", "tile.region %a[%0, 0] [%1, 128] keep [0, 1]"),
    ("S", None),
    ("S[:, 0:64]", "tile.region %S_1[0, 0] [%M, 64] keep [0, 1]"),
    ("S[k, :]", "tile.region %S_1[%k, 0] [1, 128] keep [1]"),
    ("S[k:, :]", "tile.region %S_1[%k, 0] [%0, 128] keep [0, 1]"),
    # a partial tail of a global tensor is legal
    ("A[60:68, 0, :]", "tile.region %A[60, 0, 0] [8, 1, 128] keep [0, 2]"),
])
def test_places(source: Any, traced: Any, place: str, expected: str | None) -> None:
    kernel = traced(source(TEXT.replace("{place}", place)).main)
    if expected is None:
        assert not kernel.ops("tile.region"), kernel.text
    else:
        kernel.has(expected, "tile.fill")


def test_a_load_between_two_writes_is_not_the_same_size(source: Any, traced: Any) -> None:
    text = TEXT.replace("T.fill({place}, 1.0)", "start = I[0]; I[0] = 5; T.fill(A[0, start:I[0], :], 1.0)")
    traced(source(text).main).has("arith.subi", "tile.region %A[0, %0, 0] [1, %3, 128]")


def test_shapes_and_types_that_a_kernel_asks_for(source: Any, traced: Any) -> None:
    text = TEXT.replace("T.fill({place}, 1.0)", "\n                ".join([
        "T.fill(a, a.shape[1] + len(A) + A.ndim)",
        "T.fill(a[0:n, :], (a[0:n, :].shape[0], 1)[1])",
        "assert a.dtype == 'float32' and a[0, 0].dtype == T.float32 and A[0, 0:4].shape == (4, 128)",
        "T.fill(c, S.shape[0])",
        "T.fill(c[0], k)",
    ]))
    traced(source(text).main).has("%cst = arith.constant 1.950000e+02", "tile.fill %cst into %a", "arith.index_cast %M",
                                  "tile.fill")
