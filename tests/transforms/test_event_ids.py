"""Loops with more slots than there are events: slots share events, or their number is reduced; there are no races, and no
barrier of all pipes."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TEXT = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(target="npuir")
def make():
    @T.prim_func
    def main({parameters}, Y: T.Tensor((48, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
{tiles}
            y = T.alloc_shared((8, 16), "float32")
            for i in T.Pipelined(6, num_stages=3):
                T.vbrc(0.0, y)
{body}
                T.copy(y, Y[i * 8, 0])
    return main
"""


OF_TWO = 1066
"""Cycles of two tiles, for which there are events enough."""


def _made(folder: Path, text: str) -> Any:
    file = folder / "many.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("many", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9, 12])
def test_values_and_order(count: int, tmp_path: Path) -> None:
    names = [f"X{number}" for number in range(count)]
    text = TEXT.format(
        parameters=", ".join(f'{name}: T.Tensor((48, 16), "float32")' for name in names),
        tiles="\n".join(f'            t{name} = T.alloc_shared((8, 16), "float32")' for name in names),
        body="\n".join(" " * 16 + line for name in names
                       for line in (f"T.copy({name}[i * 8, 0], t{name})", f"T.vadd(y, t{name}, y)")))
    kernel = _made(tmp_path, text)
    arrays = [np.arange(768, dtype=np.float32).reshape(48, 16) + number for number in range(count)]
    out = np.zeros((48, 16), np.float32)
    kernel(*arrays, out)
    np.testing.assert_array_equal(out, sum(arrays))
    assert kernel.last_launch.hazards == []
    assert kernel.mlir().count("PIPE_ALL") == 1, "the one that ends the kernel"
    assert kernel.last_launch.cycles <= max(count, 2) * OF_TWO / 2, "a tile takes no longer than where there are events enough"


BRANCHES = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(target="npuir")
def make():
    @T.prim_func
    def main(X: T.Tensor((96, 16), "float32"), G: T.Tensor((2, 12), "int32"), n: T.int32, Y: T.Tensor((96, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 16), "float32")
            y = T.alloc_shared((8, 16), "float32")
            for t in T.serial(2):
                if t < n:
                    for i in T.Pipelined(12, num_stages=4):
                        if G[0, i] > 0:
                            T.copy(X[i * 8, 0], x)
                            T.vmul(x, 2.0, y)
                            T.copy(y, Y[i * 8, 0])
                    for i in T.Pipelined(12, num_stages=4):
                        if G[1, i] > 0:
                            T.copy(X[i * 8, 0], x)
                            T.vmul(x, 3.0, y)
                            T.copy(y, Y[i * 8, 0])
    return main
"""


def test_iterations_that_leave_a_branch_out_set_nothing_that_others_count_on(tmp_path: Path) -> None:
    """Two loops of four slots, and seven events: an iteration waits for the last one that had its slot, whichever were left out
    between."""
    kernel, x = _made(tmp_path, BRANCHES), np.arange(1536, dtype=np.float32).reshape(96, 16)
    for seed in range(8):
        taken = np.random.default_rng(seed).integers(0, 2, (2, 12), np.int32)
        out = np.zeros((96, 16), np.float32)
        kernel(x, taken, 2, out)
        np.testing.assert_array_equal(out, x * np.repeat(np.where(taken[1], 3, 2 * taken[0]), 8)[:, None])
        assert kernel.last_launch.hazards == []


ARMS = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(target="npuir", sanitize=True)
def make():
    @T.prim_func
    def main(X: T.Tensor((96, 32), "{dtype}"), n: T.int32, O: T.Tensor((32, 32), "{dtype}"), P: T.Tensor((32, 32), "{dtype}")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 32), "{dtype}")
            b = T.alloc_shared((32, 32), "{dtype}")
            r = T.alloc_shared((32, 1), "{dtype}")
            T.copy(X[0, 0], b)
            T.copy(X[0, 0], a)
            T.reduce_max(b, r, dim=1)
{body}
            T.copy(X[16, 0], b)
            T.vadd(b, r, b)
            T.copy(b, O)
            T.copy(a, P)
    return main
"""
LOAD = "T.copy(X[32, 0], b)"
COMPUTE = "T.vmin(b, 1.0, a)\nT.vmax(a, -2.0, a)\nT.vmin(a, 0.5, a)"


def arms(test: str, then: str, otherwise: str) -> str:
    """A branch."""
    return f"if {test}:\n{textwrap.indent(then, '    ')}\nelse:\n{textwrap.indent(otherwise, '    ')}"


BETWEEN = {
    "the first arm loads": arms("n % 2 == 0", LOAD, COMPUTE),
    "the second arm loads": arms("n % 2 == 1", COMPUTE, LOAD),
    "a branch in the first arm loads": arms("n % 2 == 0", f"if n < 2:\n    {LOAD}", COMPUTE),
    "a loop in the first arm loads": arms("n % 2 == 0", f"for i in T.serial(n):\n    {LOAD}", COMPUTE),
    "two branches": arms("n % 2 == 0", LOAD, COMPUTE) + "\n" + arms("n < 2", LOAD, COMPUTE),
    "in a loop": "for i in T.serial(2):\n" + textwrap.indent(arms("n % 2 == i", LOAD, COMPUTE), "    "),
}
"""Statements between a read of a buffer and the next load of it: in one arm of a branch vector work reads
the buffer, and further vector work follows; the other arm loads the buffer."""


def steps(form: str, n: int) -> str:
    """Returns the statements for a string: ``l`` loads, ``c`` computes."""
    even = n % 2 == 0
    return {"a branch in the first arm loads": "c" if not even else "l" * (n < 2),
            "a loop in the first arm loads": "c" if not even else "l" * n,
            "two branches": ("l" if even else "c") + ("l" if n < 2 else "c"),
            "in a loop": "lc" if even else "cl"}.get(form, "l" if even else "c")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("form", BETWEEN)
def test_an_event_that_both_arms_set_has_a_number_of_its_own_in_both(form: str, dtype: str, tmp_path: Path) -> None:
    """A regression: the number of an event that is set early in the second arm was in use in the first arm."""
    kernel = _made(tmp_path, ARMS.format(dtype=dtype, body=textwrap.indent(BETWEEN[form], " " * 12)))
    x = np.random.default_rng(0).integers(-4, 5, (96, 32)).astype(dtype)
    for n in range(4):
        o, p = np.zeros((2, 32, 32), dtype)
        kernel(x, n, o, p)
        a, b = x[:32], x[:32]
        for step in steps(form, n):
            a, b = (a, x[32:64]) if step == "l" else (np.clip(b, -2, 0.5), b)
        np.testing.assert_array_equal(o, x[16:48] + x[:32].max(axis=1, keepdims=True))
        np.testing.assert_array_equal(p, a)
