"""``breakpoint()`` in generated code: matrices are seen as their author has them, and a stop is nothing to the machine
but the waits for what is seen."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def product(stops: bool) -> Any:
    @T.prim_func
    def product(A: T.Tensor((40, 24), "float16"), B: T.Tensor((24, 56), "float16"), C: T.Tensor((40, 56), "float32")):
        with T.Kernel(2, is_npu=True) as (block, _):
            a = T.alloc_shared((20, 24), "float16")
            b = T.alloc_shared((24, 56), "float16")
            c = T.alloc_fragment((20, 56), "float32")
            T.copy(A[block * 20, 0], a)
            T.copy(B[0, 0], b)
            T.gemm(a, b, c, initC=True)
            if stops:
                breakpoint()
            T.copy(c, C[block * 20, 0])

    return tilelang.compile(product, target="npuir")


def test_matrices_of_fractals_are_seen_in_rows_and_a_stop_is_no_instruction(rng: np.random.Generator,
                                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: seen.append(dict(sys._getframe(1).f_locals)))
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((40, 24), (24, 56)))
    stopped, plain = product(True), product(False)
    results = [np.zeros((40, 56), np.float32) for _ in range(2)]
    monkeypatch.setenv("TILELANG_NPU_BREAK", "1")
    for kernel, result in zip((stopped, plain), results, strict=True):
        kernel(a, b, result)
    (there,) = seen
    assert there["block"] == 1
    assert np.array_equal(there["a"], a[20:])
    assert np.array_equal(there["b"], b)
    np.testing.assert_allclose(there["c"], a[20:].astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
    assert results[0].tobytes() == results[1].tobytes()
    work = [[record.name for function in kernel.program.functions for record in function.records if "flag" not in record.name]
            for kernel in (stopped, plain)]
    assert work[0] == work[1]
    assert not stopped.last_launch.hazards
    assert [stop.function for function in stopped.program.functions for stop in function.stops] == ["product"]
    assert not any(function.stops for function in plain.program.functions)
