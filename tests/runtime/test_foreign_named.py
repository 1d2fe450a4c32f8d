"""linalg's ops that are one function, in modules of other tools: they run as the op of HIVM that computes it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tilelang_npu import simulator
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.runtime.kernel.foreign_modules import runnable

KERNEL = """\
func.func @k({arguments}, %o: memref<5x24xf32>) attributes {{hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>}} {{
  {reads}
  %e = tensor.empty() : tensor<5x24xf32>
  %r = linalg.{name} ins({names} : {types}) outs(%e : tensor<5x24xf32>) -> tensor<5x24xf32>
  bufferization.materialize_in_destination %r in writable %o : (tensor<5x24xf32>, memref<5x24xf32>) -> ()
  return
}}
"""


def _run(name: str, *inputs: Any) -> Any:
    text = KERNEL.format(
        name=name, arguments=", ".join(f"%m{i}: memref<5x24xf32>" for i in range(len(inputs))),
        reads="\n  ".join(f"%t{i} = bufferization.to_tensor %m{i} restrict writable : memref<5x24xf32>"
                          for i in range(len(inputs))),
        names=", ".join(f"%t{i}" for i in range(len(inputs))), types=", ".join(["tensor<5x24xf32>"] * len(inputs)))
    out = np.zeros((5, 24), np.float32)
    launch = simulator.simulate(runnable(parse_module(text)), [*inputs, out], blocks=1, hazards=True)
    assert launch.hazards == []
    return out


def _values(seed: int) -> Any:
    return np.random.default_rng(seed).uniform(0.25, 4, (5, 24)).astype(np.float32)


@pytest.mark.parametrize(("name", "meaning"), [
    ("exp", np.exp), ("log", np.log), ("abs", np.abs), ("sqrt", np.sqrt), ("rsqrt", lambda x: 1 / np.sqrt(x)),
    ("reciprocal", lambda x: 1 / x), ("tanh", np.tanh), ("erf", np.vectorize(math.erf)), ("negf", np.negative)])
def test_of_one(name: str, meaning: Any) -> None:
    x = _values(1) * np.float32(1 if name in ("log", "sqrt", "rsqrt") else -1)
    np.testing.assert_allclose(_run(name, x), meaning(x.astype(np.float64)), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "meaning"), [
    ("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide), ("max", np.maximum), ("min", np.minimum)])
def test_of_two(name: str, meaning: Any) -> None:
    x, y = _values(1), _values(2)
    np.testing.assert_array_equal(_run(name, x, y), meaning(x, y))
