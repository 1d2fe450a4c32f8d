"""``TL_ASCEND_TAIL_MASK``: reductions leave out the padding of tiles that reach past the end of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError
from tilelang_npu.target.dtypes import DType

AUTO = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True, "tl.ascend_auto_cv_combine": True}
MASKED = {**AUTO, "tl.ascend_tail_mask": True}
ROWS, COLUMNS = 8, 32


def reduction(shape: tuple[int, int], dtype: str, kind: str, dim: int, steps: str, configs: dict[str, bool]) -> Any:
    """Reduces each tile of ROWS x COLUMNS elements along an axis, after operations on the tile."""
    m, n = -(-shape[0] // ROWS), -(-shape[1] // COLUMNS)
    function = _function(shape, (m, shape[1]) if dim == 0 else (shape[0], n), dtype, dim, steps,
                         {"max": T.reduce_max, "min": T.reduce_min, "sum": T.reduce_sum}[kind], m, n)
    return tilelang.compile(function, out_idx=[1], pass_configs=configs, target="ascendc")


def _function(shape: tuple[int, int], result: tuple[int, int], dtype: str, dim: int, steps: str, reduce: Any, m: int, n: int,
              ) -> Any:
    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(result, dtype)) -> None:
        with T.Kernel(m * n, is_npu=True) as (block, _):
            x, y = block // n, block % n
            a, b = T.alloc_ub((ROWS, COLUMNS), dtype), T.alloc_ub((ROWS, COLUMNS), dtype)
            wide = T.alloc_ub((ROWS, COLUMNS), "float32")
            made = T.alloc_ub((1, COLUMNS) if dim == 0 else (ROWS, 1), dtype)
            wide_made = T.alloc_ub((1, COLUMNS) if dim == 0 else (ROWS, 1), "float32")
            T.copy(A[x * ROWS, y * COLUMNS], a)
            if steps == "load":
                reduce(a, made, dim=dim)
            elif steps == "elementwise":
                T.tile.add(b, a, -100.0)
                T.tile.add(b, b, a)
                reduce(b, made, dim=dim)
            elif steps == "in place":
                T.tile.add(a, a, -1.0)
                reduce(a, made, dim=dim)
            elif steps == "accumulated":
                T.tile.fill(b, 1.0)
                T.tile.axpy(a, b, 2.0)
                reduce(a, made, dim=dim)
            elif steps == "copied":
                T.copy(a, b)
                reduce(b, made, dim=dim)
            elif steps == "cast":
                T.copy(a, wide)
                reduce(wide, wide_made, dim=dim)
                T.copy(wide_made, made)
            elif steps == "in a loop":
                for _ in T.serial(2):
                    T.tile.add(b, a, 0.0)
                    reduce(b, made, dim=dim)
            elif steps == "overwritten":
                T.tile.fill(b, 3.0)
                reduce(b, made, dim=dim)
            if dim == 0:
                T.copy(made, B[x, y * COLUMNS])
            else:
                T.copy(made, B[x * ROWS, y])

    return main


def _expected(a: NDArray[Any], kind: str, dim: int, steps: str) -> NDArray[Any]:
    wide = a.astype(np.float32)
    if steps == "elementwise":
        wide = (wide + np.float32(-100)).astype(a.dtype).astype(np.float32) + wide
    if steps in ("in place", "accumulated"):
        wide = wide + np.float32(-1 if steps == "in place" else 2)
    if steps == "overwritten":
        wide = np.full(a.shape, 3, np.float32)
    unit = ROWS if dim == 0 else COLUMNS
    parts = [wide[start:start + unit] if dim == 0 else wide[:, start:start + unit] for start in range(0, a.shape[dim], unit)]
    if steps == "overwritten" and kind == "sum":
        return np.concatenate([np.full_like(part.sum(axis=dim, keepdims=True), 3 * unit) for part in parts], axis=dim)
    found = np.concatenate([getattr(part, kind)(axis=dim, keepdims=True) for part in parts], axis=dim)
    return found.astype(a.dtype)


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("steps", ["load", "elementwise", "in place", "accumulated", "copied", "cast", "in a loop",
                                   "overwritten"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("kind", ["max", "min", "sum"])
@pytest.mark.parametrize(("shape", "dtype"), [((10, 40), "float32"), ((7, 13), "float32"), ((16, 64), "float32"),
                                              ((17, 33), "float16")])
def test_padding_is_left_out(shape: tuple[int, int], dtype: str, kind: str, dim: int, steps: str, interpret: bool,
                             monkeypatch: pytest.MonkeyPatch) -> None:
    if interpret:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    a = np.random.default_rng(1).integers(1, 30, shape).astype(DType(dtype).numpy) * (1 if kind == "min" else -1)
    found = reduction(shape, dtype, kind, dim, steps, MASKED)(a)
    np.testing.assert_array_equal(found, _expected(a, kind, dim, steps))


@pytest.mark.parametrize("interpret", [False, True])
def test_without_the_switch_padding_is_reduced(interpret: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if interpret:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    a = -np.ones((9, COLUMNS), np.float32)
    np.testing.assert_array_equal(reduction((9, COLUMNS), "float32", "max", 0, "load", AUTO)(a)[1], np.zeros(COLUMNS))
    np.testing.assert_array_equal(reduction((9, COLUMNS), "float32", "max", 0, "load", MASKED)(a)[1], -np.ones(COLUMNS))


@tilelang.jit(out_idx=[1], pass_configs=MASKED, target="ascendc")
def divided(M: int, N: int, dim: int) -> Any:
    """Two Vector cores divide the rows of each tile between them."""
    m, n = -(-M // ROWS), -(-N // COLUMNS)

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((m if dim == 0 else M, N if dim == 0 else n), "float32")) -> None:
        with T.Kernel(m * n, threads=2, is_npu=True) as block:
            x, y = block // n, block % n
            a = T.alloc_ub((ROWS, COLUMNS), "float32")
            made = T.alloc_ub((1, COLUMNS) if dim == 0 else (ROWS, 1), "float32")
            T.copy(A[x * ROWS, y * COLUMNS], a)
            T.reduce_max(a, made, dim=dim)
            if dim == 0:
                T.copy(made, B[x, y * COLUMNS])
            else:
                T.copy(made, B[x * ROWS, y])

    return main


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(10, 40), (13, 33), (17, 64)])
def test_rows_may_be_divided_between_vector_cores(shape: tuple[int, int], dim: int, interpret: bool,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    if interpret:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    a = -np.random.default_rng(2).integers(1, 30, shape).astype(np.float32)
    np.testing.assert_array_equal(divided(*shape, dim)(a), _expected(a, "max", dim, "load"))


def test_a_buffer_with_an_address_is_not_followed() -> None:
    @T.prim_func
    def main(A: T.Tensor((9, COLUMNS), "float32"), B: T.Tensor((2, COLUMNS), "float32")) -> None:
        with T.Kernel(2, is_npu=True) as (block, vid):
            a, other = T.alloc_ub((ROWS, COLUMNS), "float32"), T.alloc_ub((ROWS, COLUMNS), "float32")
            made = T.alloc_ub((1, COLUMNS), "float32")
            T.annotate_address({a: 0, other: 0, made: 4096})
            with T.Scope("V"):
                T.copy(A[block * ROWS, 0], a)
                T.barrier_all()
                T.tile.fill(other, 5.0)
                T.barrier_all()
                T.tile.fill(other[0:1, :], 2.0)
                T.barrier_all()
                T.reduce_max(a, made, dim=0)
                T.barrier_all()
                T.copy(made, B[block, 0])

    kernel = tilelang.compile(main, out_idx=[1], target="ascendc", pass_configs={"tl.ascend_tail_mask": True})
    np.testing.assert_array_equal(kernel(-np.ones((9, COLUMNS), np.float32)), 5)


def test_the_remark_names_the_line() -> None:
    found = [remark for remark in reduction((9, 40), "float32", "max", 0, "load", MASKED).explain().remarks
             if remark.maker == "mask-tails"]
    assert ["reduce_max leaves out the padding" in remark.text for remark in found] == [True]
    assert found[0].place is not None and "reduce(a, made" in found[0].place.source()


def test_the_switch_is_one_of_the_ascendc_dialect() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "float32")) -> None:
        with T.Kernel(1) as _:
            a = T.alloc_shared((8,), "float32")
            T.copy(A, a)
            T.copy(a, A)

    with pytest.raises(TileError) as caught:
        tilelang.compile(main, pass_configs={"tl.ascend_tail_mask": True}, target="npuir")
    assert caught.value.code == "T720"
