"""Code that runs many blocks at once: which functions have some, and that a statement for all axes is one for each block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.run import batched_execution

BLOCKS, ROWS, COLUMNS = 6, 4, 32


def kernel(kind: str) -> Any:
    @T.prim_func
    def rows(A: T.Tensor((BLOCKS * ROWS, COLUMNS), "float32"), W: T.Tensor((COLUMNS,), "float32"),
             B: T.Tensor((BLOCKS * ROWS, COLUMNS), "float32")):
        with T.Kernel(BLOCKS, is_npu=True) as (block, _):
            a = T.alloc_ub((ROWS, COLUMNS), "float32")
            w = T.alloc_ub((COLUMNS,), "float32")
            T.copy(A[block * ROWS, 0], a)
            T.copy(W[0], w)
            if kind == "rows":
                m = T.alloc_ub((ROWS, 1), "float32")
                T.reduce_max(a, m, dim=1)
                T.vsub(a, m, a)
            elif kind == "print":
                T.print(a[0, 0])
            elif kind == "while":
                n = T.alloc_var("int32", init=0)
                while n < 3:
                    T.vadd(a, 1.0, a)
                    n = n + 1
            for i, j in T.Parallel(ROWS, COLUMNS):
                a[i, j] = a[i, j] * w[j] + 1.0
            T.copy(a, B[block * ROWS, 0])

    return tilelang.compile(rows, target="npuir")


def arrays(rng: np.random.Generator) -> list[Any]:
    a, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((BLOCKS * ROWS, COLUMNS), (COLUMNS,)))
    return [a, w, np.zeros_like(a)]


@pytest.mark.parametrize("kind", ["plain", "rows"])
def test_blocks_at_once_compute_what_numpy_does(kind: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, least in (("LEAST_BLOCKS", 2), ("LEAST_BYTES", 0), ("AT_ONCE", 0)):
        monkeypatch.setattr(batched_execution, name, least)
    program, (a, w, b) = kernel(kind).program, arrays(rng)
    program.run([a, w, b], blocks=BLOCKS)
    planned = program._planned[1]
    assert planned is not None
    assert [batch.layouts[0].sizes for batch in planned.batches] == [(1, BLOCKS)]
    expected = a - a.max(axis=1, keepdims=True) if kind == "rows" else a
    np.testing.assert_allclose(b, expected * w + 1, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["print", "while"])
def test_what_is_shown_or_ends_by_itself_has_no_such_code(kind: str) -> None:
    assert kernel(kind).program.batched == ()


def test_it_records_nothing_and_tells_where_its_numbers_come_from() -> None:
    made = kernel("plain")
    (function,), (together,) = made.program.functions, made.program.batched
    lines = together.source.splitlines()
    assert not [line for line in lines if "ev +=" in line or "gm +=" in line]  # nothing is recorded
    assert [line for line in function.source.splitlines() if "ev +=" in line]
    sources = [(len(gm), len(parts)) for _, gm, parts in together.flow.writes]
    assert sources[:2] == [(1, 0), (1, 0)]  # two loads, each of one tensor
    assert all(gm == 0 and parts for gm, parts in sources[2:])  # and compute on the loaded data
    assert not together.flow.foreign
