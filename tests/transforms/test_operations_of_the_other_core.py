"""T247: an operation of one core in the ``T.Scope`` of the other one is an error, compiled and interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import TileError

KERNEL = """
    import tilelang_npu.language as T

    @T.prim_func
    def main(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            u, l1 = T.alloc_ub((16, 16), "float16"), T.alloc_L1((16, 16), "float16")
            a, b, c = T.alloc_L0A((16, 16), "float16"), T.alloc_L0B((16, 16), "float16"), T.alloc_L0C((16, 16), "float32")
            with T.Scope("{scope}"):
                {first}
                for i in range(2):
                    {statement}
"""
A = np.zeros((16, 16), np.float16)


@pytest.mark.parametrize(("scope", "first", "statement"), [
    ("C", "T.barrier_all()", "T.tile.fill(u, 2.0)"), ("C", "T.barrier_all()", "T.copy(A, u)"),
    ("C", "T.copy(A, l1)", "T.copy(u, B)"), ("C", "T.barrier_all()", "T.tile.add(u, u, u)"),
    ("V", "T.tile.fill(u, 2.0)", "T.copy(A, l1)"), ("V", "T.copy(A, u)", "T.copy(l1, a)"),
    ("V", "T.barrier_all()", "T.mma(a, b, c, init=True)"), ("V", "T.copy(A, u)", "T.copy(c, B)")])
def test_it_is_refused(source: Any, scope: str, first: str, statement: str) -> None:
    core = {"C": "Vector", "V": "Cube"}[scope]
    main = source(KERNEL.replace("{scope}", scope).replace("{first}", first).replace("{statement}", statement)).main
    for interpret in (False, True):
        with pytest.raises(TileError, match=f"belongs to the {core} core, but is in a T.Scope of the other core") as caught:
            tilelang.jit(target="ascendc", interpret=interpret)(lambda: main)()(A, A.copy())
        assert caught.value.code == "T247"
        assert caught.value.location is not None
        assert caught.value.location.line == 12


@pytest.mark.parametrize(("scope", "statement"), [
    ("C", "T.copy(A, l1)"), ("C", "T.barrier_all()"), ("C", 'T.set_flag("mte2", "mte1", 0)'), ("V", "T.copy(A, u)"),
    ("V", "T.tile.add(u, u, u)"), ("V", "B[0, 0] = 1.0")])
def test_the_scopes_own_operations_are_not(source: Any, scope: str, statement: str) -> None:
    text = KERNEL.replace("{scope}", scope).replace("{first}", "T.barrier_all()").replace("{statement}", statement)
    tilelang.compile(source(text).main, target="ascendc")
