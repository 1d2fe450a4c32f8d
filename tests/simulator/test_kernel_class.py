"""The class of a launch is told from what its cores do."""

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


def mixed(chip: str, *, before: bool, between: bool, behind: bool) -> Launch:
    """Products of which the Vector cores prepare an operand, make an operand of another product, or finish the result."""

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
            if behind:
                T.copy(c, y)
                T.tile.exp(y, y)
                T.copy(y, half)
                T.copy(half, C)
            if not between and not behind:
                T.copy(c, C)

    launch: Any = tilelang.compile(main, target="ascendc", pass_configs=MIXED, chip=chip).trace()
    assert isinstance(launch, Launch)
    return launch


@pytest.mark.parametrize("chip", ["910B2", "950"])
@pytest.mark.parametrize(("how", "kind"), [
    ({"before": True, "between": False, "behind": False}, "fused"),
    ({"before": False, "between": False, "behind": True}, "fused"),
    ({"before": True, "between": False, "behind": True}, "fused"),
    ({"before": False, "between": True, "behind": False}, "attention"),
], ids=["operands prepared", "products finished", "both", "products made operands"])
def test_mixed_kernels(how: dict[str, bool], kind: str, chip: str) -> None:
    assert mixed(chip, **how).kind == kind


def test_kernels_of_one_kind_of_core(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doubled(32, 64).trace().kind == "vector"
    launch = gemm((300, 211, 333), (64, 64, 64))
    assert launch.kind == "small gemm"
    monkeypatch.setattr(kernel_class, "FEW", 320 * 256 * 384)  # what is multiplied, with padding
    assert kind_of(launch.recorded) == "small gemm"
    monkeypatch.setattr(kernel_class, "FEW", 320 * 256 * 384 - 1)
    assert kind_of(launch.recorded) == "gemm"
