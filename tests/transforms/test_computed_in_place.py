"""Random expressions of a ``T.Parallel`` that are stored to one of their operands: the values are NumPy's, for all
temporaries."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TEXT = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(target="npuir", sanitize=True)
def make():
    @T.prim_func
    def main(X: T.Tensor((6, 24), "float32"), Y: T.Tensor((6, 24), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((6, 24), "float32")
            y = T.alloc_shared((6, 24), "float32")
            T.copy(X, x)
            T.copy(Y, y)
            for i, j in T.Parallel(6, 24):
                {target}[i, j] = {value}
            T.copy(x, X)
            T.copy(y, Y)
    return main
"""

LEAVES = st.sampled_from(["x[i, j]", "y[i, j]", "1.5", "-0.25"])


def _joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(parts, parts)
    return st.one_of(
        pairs.flatmap(lambda two: st.sampled_from([f"({two[0]} {sign} {two[1]})" for sign in "+-*"])),
        pairs.flatmap(lambda two: st.sampled_from([f"T.{name}({two[0]}, {two[1]})" for name in ("max", "min")])),
        st.tuples(parts, parts, parts, parts).map(lambda four: f"T.if_then_else({four[0]} < {four[1]}, {four[2]}, {four[3]})"),
        parts.map(lambda one: f"(-{one})"))


class _Numpy:
    """The language's functions in NumPy."""

    max, min, if_then_else = np.maximum, np.minimum, np.where


class _Whole:
    """An array whose index ``[i, j]`` returns the whole array."""

    def __init__(self, values: np.ndarray[Any, Any]):
        self.values = values

    def __getitem__(self, _places: Any) -> np.ndarray[Any, Any]:
        return self.values


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from("xy"), st.recursive(LEAVES, _joined, max_leaves=7).filter(lambda text: "[" in text))
def test_any_expression(tmp_path: Path, target: str, value: str) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(TEXT.format(target=target, value=value))
    spec = importlib.util.spec_from_file_location("kernel", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-8, 8, (6, 24)).astype(np.float32) / 4 for _ in range(2))
    names = {"x": _Whole(x.copy()), "y": _Whole(y.copy()), "T": _Numpy, "i": 0, "j": 0}
    expected = np.broadcast_to(np.asarray(eval(value, names), np.float32), x.shape)
    wanted = (expected, y.copy()) if target == "x" else (x.copy(), expected)
    module.make()(x, y)
    np.testing.assert_array_equal(x, wanted[0])
    np.testing.assert_array_equal(y, wanted[1])
