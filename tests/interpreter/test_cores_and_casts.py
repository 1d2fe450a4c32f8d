"""Atomic additions of both Vector cores of a block, and conversions of floats to the same type: interpreted and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def both(kernel: Any, *inputs: np.ndarray, like: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    compiled, interpreted = like.copy(), like.copy()
    kernel(*inputs, compiled)
    kernel.interpret(*inputs, interpreted)
    return compiled, interpreted


def adding(name: str) -> Any:
    """Each block adds 1 to a tensor; ``name`` is that of the number of the Vector core."""
    named, unnamed = name == "vid", name == "_"

    if named:
        @T.prim_func
        def main(C: T.Tensor((32,), "float32")):
            with T.Kernel(4, is_npu=True) as (cid, vid):
                one = T.alloc_ub((32,), "float32")
                T.tile.fill(one, 1.0)
                T.tile.atomic_add(C[0], one)
    elif unnamed:
        @T.prim_func
        def main(C: T.Tensor((32,), "float32")):
            with T.Kernel(4, is_npu=True) as (cid, _):
                one = T.alloc_ub((32,), "float32")
                T.tile.fill(one, 1.0)
                T.tile.atomic_add(C[0], one)
    else:
        @T.prim_func
        def main(C: T.Tensor((32,), "float32")):
            with T.Kernel(4, is_npu=True) as cid:
                one = T.alloc_ub((32,), "float32")
                T.tile.fill(one, 1.0)
                T.tile.atomic_add(C[0], one)
    return tilelang.compile(main, target="ascendc")


@pytest.mark.parametrize(("name", "expected"), [("vid", 8.0), ("_", 4.0), ("", 4.0)])
def test_both_vector_cores_add_where_their_number_has_a_name(name: str, expected: float) -> None:
    for result in both(adding(name), like=np.zeros(32, np.float32)):
        assert (result == expected).all()


VALUES = np.linspace(-2.7, 2.7, 32)
ROUNDED = {"rint": np.rint, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
           "round": lambda values: np.sign(values) * np.floor(np.abs(values) + 0.5)}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("mode", ROUNDED)
@pytest.mark.parametrize("target", ["npuir", "ascendc"])
def test_a_conversion_of_floats_to_their_own_type_rounds_to_integers(target: str, mode: str, dtype: str) -> None:
    name = f"CAST_{mode.upper()}" if target == "ascendc" else mode

    @T.prim_func
    def main(A: T.Tensor((32,), dtype), C: T.Tensor((32,), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_ub((32,), dtype)
            b = T.alloc_ub((32,), dtype)
            T.copy(A, a)
            if target == "ascendc":
                T.tile.cast(b, a, name, 32)
            else:
                T.vcast(a, b, round_mode=name)
            T.copy(b, C)

    given = VALUES.astype(dtype)
    for result in both(tilelang.compile(main, target=target), given, like=np.zeros(32, dtype)):
        assert (result == ROUNDED[mode](given.astype(np.float64))).all()


@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_reductions_go_through_the_function_that_upstream_replaces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilelang_npu.language import reduction

    seen = []
    monkeypatch.setattr(reduction, "_reduce_with_clear", lambda *args: seen.append(args[2:]))

    @T.prim_func
    def main(A: T.Tensor((8, 32), "float32"), C: T.Tensor((8, 1), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_ub((8, 32), "float32")
            c = T.alloc_ub((8, 1), "float32")
            T.copy(A, a)
            T.tile.fill(c, 0.0)
            getattr(T, f"reduce_{name}")(a, c, dim=1, clear=False)
            T.copy(c, C)

    tilelang.compile(main, target="npuir")
    assert seen == [(f"reduce_{name}", -1, False, None)]
