"""The fixtures of the front end's tests: a kernel from statements, its ops, and the exact caret of an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from frontend.conftest import Kernel, body, refused, source, traced  # noqa: F401  (fixtures)

BUFFERS = """
    import tilelang_npu.language as T

    M = T.symbolic("M")

    @T.prim_func
    def main(A: T.Tensor((64, 128), "float32"), H: T.Tensor((64, 128), "float16"), V: T.Tensor((256,), "float32"),
             S: T.Tensor((M, 128), "float32"), W: T.Tensor((4, 64, 128), "float32"),
             L: T.Tensor((64, 128), "int64"), n: T.int32, x: T.float32):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((8, 128), "float32")
            b = T.alloc_ub((8, 128), "float32")
            c = T.alloc_ub((8, 128), "float32")
            h = T.alloc_ub((8, 128), "float16")
            col = T.alloc_ub((8, 1), "float32")
            row = T.alloc_ub((1, 128), "float32")
            flat = T.alloc_ub((1024,), "float32")
            line = T.alloc_ub((128,), "float32")
            eight = T.alloc_ub((8,), "float32")
            one = T.alloc_ub((1,), "float32")
            stack = T.alloc_ub((2, 8, 128), "float32")
            i = T.alloc_ub((8, 128), "int32")
            u = T.alloc_ub((8, 128), "uint8")
            mask = T.alloc_ub((8, 128), "bool")
            shared = T.alloc_shared((8, 128), "float32")
            l1a = T.alloc_L1((64, 32), "float16")
            l1b = T.alloc_L1((32, 128), "float16")
            l1bt = T.alloc_L1((128, 32), "float16")
            l0c = T.alloc_L0C((64, 128), "float32")
            acc = T.alloc_fragment((64, 128), "float32")
            a8 = T.alloc_shared((16, 32), "int8")
            b8 = T.alloc_shared((32, 16), "int8")
            c32 = T.alloc_fragment((16, 16), "int32")
            {statements}
"""


@pytest.fixture
def kernel(source: Any, traced: Any) -> Callable[..., Kernel]:  # noqa: F811
    """``kernel("T.copy(A[0, 0], a)", "npuir")``: the statements below a set of buffers, traced."""

    def make(statements: str, dialect: str = "ascendc") -> Kernel:
        lines = "\n            ".join(statements.splitlines())
        return traced(source(BUFFERS.replace("{statements}", lines)).main, dialect)

    return make


@pytest.fixture
def lines(kernel: Any) -> Callable[..., list[str]]:
    """Returns the ops that the statements create, as text without types; constants and allocations are left out."""

    def make(statements: str, dialect: str = "ascendc") -> list[str]:
        found = []
        for line in kernel(statements, dialect).text.splitlines():
            text = line.strip().split(" : ")[0]
            if text.split(" = ")[-1].split(" ")[0] in ("tile.alloc", "arith.constant", "tile.tensor"):
                continue
            if "func" in text or text in ("return", "}", "module {") or text.startswith(("^", "tile.launch", "%S_1")):
                continue
            found.append(text)
        return found

    return make
