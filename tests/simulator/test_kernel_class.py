"""The class of a launch is derived from the ops of its cores."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import doubled
from simulator.test_products import gemm
from tilelang_npu.simulator import Launch
from tilelang_npu.simulator.result import kernel_class
from tilelang_npu.simulator.result.kernel_class import kind_of

MIXED = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True, tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


def mixed(chip: str, *, before: bool, between: bool, after: bool) -> Launch:
    """Products for which the Vector cores compute an operand, turn the result into an operand, or post-process it."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            p = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            d = T.alloc_fragment((64, 64), "float32")
            x = T.alloc_shared((64, 64), "float16")
            y = T.alloc_shared((64, 64), "float32")
            half = T.alloc_shared((64, 64), "float16")
            T.copy(B, b)
            if before:
                T.copy(A, x)
                T.tile.exp(x, x)
                T.copy(x, a)
            else:
                T.copy(A, a)
            T.gemm_v0(a, b, c, init=True)
            if between:
                T.copy(c, y)
                T.tile.exp(y, y)
                T.copy(y, half)
                T.copy(half, p)
                T.gemm_v0(p, b, d, init=True)
                T.copy(d, C)
            if after:
                T.copy(c, y)
                T.tile.exp(y, y)
                T.copy(y, half)
                T.copy(half, C)
            if not between and not after:
                T.copy(c, C)

    launch: Any = tilelang.compile(main, target="ascendc", pass_configs=MIXED, chip=chip).trace()
    assert isinstance(launch, Launch)
    return launch


@pytest.mark.parametrize("chip", ["910B2", "950"])
@pytest.mark.parametrize(("how", "kind"), [
    ({"before": True, "between": False, "after": False}, "mixed"),
    ({"before": False, "between": False, "after": True}, "mixed"),
    ({"before": True, "between": False, "after": True}, "mixed"),
    ({"before": False, "between": True, "after": False}, "attention"),
], ids=["operands prepared", "products finished", "both", "products made operands"])
def test_mixed_kernels(how: dict[str, bool], kind: str, chip: str) -> None:
    assert mixed(chip, **how).kind == kind


def test_kernels_of_one_kind_of_core(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doubled(32, 64).trace().kind == "element-wise"
    launch = gemm((300, 211, 333), (64, 64, 64))
    assert launch.kind == "small gemm"
    monkeypatch.setattr(kernel_class, "FEW", 320 * 256 * 384)  # the number of multiplications, with padding
    assert kind_of(launch.recorded) == "small gemm"
    monkeypatch.setattr(kernel_class, "FEW", 320 * 256 * 384 - 1)
    assert kind_of(launch.recorded) == "gemm"


@pytest.mark.parametrize(("adds", "reduces", "sorts", "kind"), [
    (False, False, False, "copy"), (True, False, False, "element-wise"), (False, True, False, "reduction"),
    (True, True, False, "reduction"), (False, False, True, "sort"), (True, True, True, "sort")])
def test_kernels_without_products(adds: bool, reduces: bool, sorts: bool, kind: str) -> None:
    """A kernel that orders elements is a sort; otherwise one that combines them is a reduction, one that computes is
    element-wise."""
    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 128), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((1, 64), "float32")
            y = T.alloc_ub((1, 1), "float32")
            z = T.alloc_ub((1, 128), "float32")
            T.copy(X[0, 0], x)
            if adds:
                T.tile.add(x, x, 1.0)
            if reduces:
                T.reduce_sum(x, y, dim=-1)
                T.copy(y, Y[0, 0])
            if sorts:
                T.tile.sort(z, x, 64)
                T.copy(z, Y[0, 0])
            if not reduces and not sorts:
                T.copy(x, Y[0, 0])

    launch: Any = tilelang.compile(main, target="ascendc", pass_configs=MIXED).trace()
    assert launch.kind == kind


def test_elements_one_by_one_are_computed() -> None:
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(X, x)
            x[3] = x[4] * 2.0
            T.copy(x, Y)

    launch: Any = tilelang.compile(main, target="ascendc", pass_configs=MIXED).trace()
    assert launch.kind == "element-wise"


@pytest.mark.parametrize("both", [False, True])
def test_what_puts_elements_elsewhere_rearranges(both: bool) -> None:
    @T.prim_func
    def main(X: T.Tensor((32, 64), "float16"), Y: T.Tensor((64, 32), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_ub((32, 64), "float16")
            y = T.alloc_ub((64, 32), "float16")
            T.copy(X, x)
            if both:
                T.vadd(x, 1.0, x)
            T.transpose(x, y, [1, 0])
            T.copy(y, Y)

    launch: Any = tilelang.compile(main, target="npuir").trace()
    assert launch.kind == "rearrangement"
