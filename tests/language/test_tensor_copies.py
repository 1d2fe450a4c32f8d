"""``T.copy`` from one global tensor to another: through UB, as compiled and as interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import SYNC
from tilelang_npu.transforms.infra.tensor_strips import STRIP

M, N = T.symbolic("M"), T.symbolic("N")


def of_dialect(dialect: str, *, by_hand: bool = False) -> dict[str, Any]:
    return {"target": dialect, "pass_configs": SYNC if dialect == "ascendc" and not by_hand else None}


def compare(kernel: Any, *arrays: Any) -> Any:
    """Runs a kernel compiled and interpreted; returns the last argument, which must be the same and free of hazards."""
    compiled, interpreted = ([array.copy() if isinstance(array, np.ndarray) else array for array in arrays] for _ in range(2))
    kernel(*compiled)
    assert kernel.last_launch.hazards == []
    kernel.interpret(*interpreted)
    np.testing.assert_array_equal(compiled[-1].view(np.uint8), interpreted[-1].view(np.uint8))
    return compiled[-1]


@pytest.mark.parametrize("target", ["npu", "npuir", "ascendc"])
@pytest.mark.parametrize(("rows", "columns"), [(64, 128), (37, 45), (5, 7), (3, STRIP + 5), (300, 300)])
@pytest.mark.parametrize(("source", "result"), [
    ("float32", "float32"), ("float32", "float16"), ("float16", "float32"), ("bfloat16", "float32"), ("float32", "bfloat16"),
    ("int8", "int8"), ("uint8", "uint8"), ("int32", "int32"), ("int64", "int64"), ("int32", "float32"), ("float32", "int32")])
def test_whole_tensors(rows: int, columns: int, source: str, result: str, target: str) -> None:
    if (rows * columns > 20000 and source != "float32") or (target == "npuir" and source != result):
        return

    @T.prim_func
    def main(A: T.Tensor((rows, columns), source), B: T.Tensor((rows, columns), result)):
        with T.Kernel(1, is_npu=True) as (block, half):
            T.copy(A, B)

    kernel = tilelang.compile(main, **of_dialect(target))
    one, other = (parameter.dtype.numpy for parameter in kernel.params)
    a = (np.arange(rows * columns) % 97 + (0.25 if source.startswith("float") else 0)).reshape(rows, columns).astype(one)
    found = compare(kernel, a, np.zeros((rows, columns), other))
    expected = np.rint(a.astype(np.float64)) if result == "int32" else a
    np.testing.assert_array_equal(found, expected.astype(other))


@pytest.mark.parametrize(("m", "n"), [(64, 64), (65, 33), (7, 5), (130, 1)])
@pytest.mark.parametrize("pad", [None, 3.0])
@pytest.mark.parametrize("target", ["npu", "ascendc"])
def test_tiles_of_a_grid_end_with_both_tensors(m: int, n: int, pad: float | None, target: str) -> None:
    """The source ends inside a tile, whose other elements are padding; the destination ends elsewhere."""
    @T.prim_func
    def main(A: T.Tensor((m, n), "float16"), B: T.Tensor((m + 9, n + 3), "float32")):
        with T.Kernel(T.ceildiv(n + 3, 32) * T.ceildiv(m + 9, 16), is_npu=True) as (block, _):
            row, column = block // T.ceildiv(n + 3, 32) * 16, block % T.ceildiv(n + 3, 32) * 32
            T.copy(A[row:row + 16, column:column + 32], B[row:row + 16, column:column + 32], pad_value=pad)

    kernel = tilelang.compile(main, **of_dialect(target))
    a = (np.arange(m * n) % 50).reshape(m, n).astype(np.float16)
    expected = np.full((m + 9, n + 3), 0 if pad is None else pad, np.float32)
    expected[:m, :n] = a
    np.testing.assert_array_equal(compare(kernel, a, np.full((m + 9, n + 3), -1, np.float32)), expected)


@pytest.mark.parametrize("real", [(65, 37), (3, 9001), (1, 1)])
def test_dynamic_sizes(real: tuple[int, int]) -> None:
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), n: T.int32, B: T.Tensor((M, N), "float16")):
        with T.Kernel(2, threads=128) as bx:
            T.copy(A[0:n, 0:N - bx], B[0:n, 0:N - bx])

    kernel = tilelang.compile(main, target="npu")
    a = (np.arange(real[0] * real[1]) % 100).reshape(real).astype(np.float32)
    n = max(1, real[0] - 1)
    expected = np.full(real, -1, np.float16)
    expected[:n] = a[:n]
    np.testing.assert_array_equal(compare(kernel, a, n, np.full(real, -1, np.float16)), expected)


@pytest.mark.parametrize("target", ["npu", "ascendc"])
def test_rows_and_unequal_ranks(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 3, 40), "float32"), B: T.Tensor((12, 50), "float32")):
        with T.Kernel(4, is_npu=True) as (i, _):
            for j in T.serial(3):
                T.copy(A[i, j, :], B[i * 3 + j, 5:45])

    kernel = tilelang.compile(main, **of_dialect(target))
    a = np.arange(480, dtype=np.float32).reshape(4, 3, 40)
    expected = np.zeros((12, 50), np.float32)
    expected[:, 5:45] = a.reshape(12, 40)
    np.testing.assert_array_equal(compare(kernel, a, np.zeros((12, 50), np.float32)), expected)


def test_together_with_a_product() -> None:
    """In a kernel of both cores, the Vector cores execute the copy, and read data that the Cube core stored."""
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32"), D: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.gemm(a, a, c, clear_accum=True)
            T.copy(c, C)
            T.copy(C, D)

    kernel = tilelang.compile(main, target="npu")
    a = (np.arange(4096) % 5 - 2).reshape(64, 64).astype(np.float16)
    found = compare(kernel, a, np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32))
    np.testing.assert_array_equal(found, a.astype(np.float32) @ a.astype(np.float32))


def test_waits_by_hand() -> None:
    """The author's waits are between statements: the copy has its own inside."""
    @T.prim_func
    def main(A: T.Tensor((64, 300), "float32"), B: T.Tensor((64, 300), "float32"), C: T.Tensor((64, 300), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid), T.Scope("V"):
            T.copy(A[vid * 32:vid * 32 + 32, :], B[vid * 32:vid * 32 + 32, :])
            T.copy(B[vid * 32:vid * 32 + 32, :], C[vid * 32:vid * 32 + 32, :])

    kernel = tilelang.compile(main, **of_dialect("ascendc", by_hand=True))
    a = np.arange(64 * 300, dtype=np.float32).reshape(64, 300)
    np.testing.assert_array_equal(compare(kernel, a, np.zeros_like(a), np.zeros_like(a)), a)


@pytest.mark.parametrize(("statement", "word", "way"), [
    ("T.copy(A, W[0, :, :], enable_relu=True)", "enable_relu", "T.vrelu"),
    ("T.copy(A[0:64, 0:64], A[0:64, 64:128], transpose=True)", "transpose", "T.transpose")])
def test_options_that_ub_has_not(kernel: Any, refused: Any, statement: str, word: str, way: str) -> None:
    with refused("T231", at=statement, message=f"goes through UB, which has no {word}", help=way):
        kernel(statement)
