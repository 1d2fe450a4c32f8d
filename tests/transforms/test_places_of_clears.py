"""The position of the clear of an accumulator that vector work reads too: it must be visible to every later reader."""

from __future__ import annotations

import importlib.util
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import tilelang_npu as tilelang

READ_AFTER = {
    "a loop that may start it over": "for i in T.serial(3):\n    if n > i:\n        gemm(i == 0)",
    "a gemm under a condition": "if n > 1:\n    gemm(False)",
    "a loop that may not run": "for i in T.Pipelined(n, num_stages=2):\n    gemm(False)",
    "nothing": "",
    "a loop that starts it over, and one that may":
        "for i in T.Pipelined(n, num_stages=3):\n    gemm(True)\n"
        "for i in T.Pipelined(3, num_stages=2):\n    if n > i:\n        gemm(i == 0)",
    "the same in series":
        "for i in T.serial(n):\n    gemm(True)\nfor i in T.serial(3):\n    if n > i:\n        gemm(i == 0)",
    "the same, and a gemm":
        "for i in T.serial(n):\n    gemm(True)\nfor i in T.serial(3):\n    if n > i:\n        gemm(i == 0)\ngemm(False)",
}
"""Statements after a clear of an accumulator that vector work reads: only some paths add to the accumulator."""

CLEARED = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@T.prim_func
def main(A: T.Tensor((32, 32), "{dtype}"), C: T.Tensor((32, 32), "{total}"), D: T.Tensor((32, 32), "{total}"), n: T.int32):
    with T.Kernel(1, is_npu=True) as (_, __):
        a = T.alloc_shared((32, 32), "{dtype}")
        c = T.alloc_fragment((32, 32), "{total}")
        d = T.alloc_shared((32, 32), "{total}")
        T.copy(A, a)
        T.gemm(a, a, c, initC=True)
{body}
        T.copy(d, D)
        T.copy(c, C)
"""


@pytest.mark.parametrize("chip", ["Ascend910B2", "Ascend910_95"])
@pytest.mark.parametrize("where", ["", "if n > 0:"])
@pytest.mark.parametrize(("dtype", "total"), [("float16", "float32"), ("int8", "int32")])
@pytest.mark.parametrize("form", READ_AFTER)
def test_a_cleared_accumulator_that_vector_work_reads_first(form: str, dtype: str, total: str, where: str, chip: str,
                                                            tmp_path: Path, rng: np.random.Generator) -> None:
    """The clear was put in UB for the vector work, and there was no way back to L0C (T202)."""
    clear = "T.clear(c)\nT.copy(c, d)\nT.vadd(d, 1, d)"
    before = f"T.fill(d, 5)\n{where}\n{textwrap.indent(clear, '    ')}" if where else clear
    after = re.sub(r"gemm\((.*)\)", r"T.gemm(a, a, c, initC=\1)", READ_AFTER[form])
    path = tmp_path / "cleared.py"
    path.write_text(CLEARED.format(dtype=dtype, total=total, body=textwrap.indent(f"{before}\n{after}", " " * 8)))
    spec = importlib.util.spec_from_file_location("cleared", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = tilelang.compile(module.main, target="npuir", chip=chip, sanitize=True)
    a = rng.integers(-2, 3, (32, 32)).astype(dtype)
    product = a.astype(total) @ a.astype(total)
    for n in range(4):
        c, d = np.zeros((2, 32, 32), total)
        kernel(a, c, d, n)
        cleared = not where or n > 0
        products = 0 if cleared else 1
        if "start" in form or "the same" in form:
            products = (n or products) + (form == "the same, and a gemm")
        elif form == "a gemm under a condition":
            products += n > 1
        elif form == "a loop that may not run":
            products += n
        np.testing.assert_array_equal(d, np.full((32, 32), 1 if cleared else 5, total), f"n = {n}")
        np.testing.assert_array_equal(c, products * product, f"n = {n}")
