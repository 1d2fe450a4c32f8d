"""``separate-statements`` on kernels: the positions at which it inserts barriers, and those at which it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

BARRIER = "pipe_barrier[<PIPE_ALL>]"


def kernel(loop: Any, *, synchronise: bool = True) -> Any:
    @T.prim_func
    def main(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_cid, _vid):
            x = T.alloc_ub((8, 64), "float32")
            for i in loop(8):
                T.copy(X[i * 8, 0], x)
                T.tile.exp(x, x)
                T.copy(x, Y[i * 8, 0])

    return tilelang.compile(main, out_idx=[1], target="ascendc", pass_configs={"tl.ascend_auto_sync": synchronise})


def separated(made: Any) -> int:
    """The number of barriers that the pass inserted."""
    return int(made.mlir("separate-statements").count(BARRIER) - made.mlir("guard-l0").count(BARRIER))


def test_it_does_nothing_for_this_compiler() -> None:
    assert separated(kernel(T.serial)) == 0


@pytest.mark.parametrize(("loop", "count"), [
    (T.serial, 3),  # before each of the three statements: the first also follows the last one of the iteration before
    (lambda n: T.Pipelined(n, num_stages=2), 0)])  # the loop has slots
def test_statements_of_serial_loops_wait_for_each_other(loop: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_AS", "upstream")
    made = kernel(loop)
    assert separated(made) == count
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    np.testing.assert_allclose(made(x), np.exp(x), rtol=1e-6)
