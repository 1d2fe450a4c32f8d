"""The meanings of the elementwise ops that are in the table because HIVM has them, on numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tilelang_npu.dialects import hivm
from tilelang_npu.ops import elementwise

ENTRIES = {entry.hivm: entry for entry in elementwise()}
INF = math.inf


def _f(*values: float) -> Any:
    return np.array(values, np.float32)


def _i(*values: int) -> Any:
    return np.array(values, np.int32)


@pytest.mark.parametrize(("mnemonic", "inputs", "expected"), [
    ("vtanh", [_f(0.0, INF, -INF)], [0.0, 1.0, -1.0]),
    ("vsin", [_f(0.0, math.pi / 2)], [0.0, 1.0]),
    ("vcos", [_f(0.0, math.pi)], [1.0, -1.0]),
    ("vtan", [_f(0.0, math.pi / 4)], [0.0, 1.0]),
    ("vatan", [_f(0.0, 1.0, INF)], [0.0, math.pi / 4, math.pi / 2]),
    ("verf", [_f(0.0, 0.5, -6.0)], [0.0, 0.5204999, -1.0]),
    ("vexp2", [_f(0.0, 10.0, -1.0)], [1.0, 1024.0, 0.5]),
    ("vlog2", [_f(8.0, 0.25)], [3.0, -2.0]),
    ("vlog10", [_f(1000.0, 0.1)], [3.0, -1.0]),
    ("vlog1p", [_f(0.0, math.e - 1)], [0.0, 1.0]),
    ("vexpm1", [_f(0.0, 1.0)], [0.0, math.e - 1]),
    ("vilogb", [_f(1.0, 9.0, 0.375, -5.0, 0.0, INF)], [0.0, 3.0, -2.0, 2.0, -INF, INF]),
    ("visinf", [_f(1.0, INF, -INF, math.nan)], [False, True, True, False]),
    ("visnan", [_f(1.0, INF, math.nan)], [False, False, True]),
    ("vmod", [_i(7, -7, 7, -7), _i(3, 3, -3, -3)], [1, -1, 1, -1]),
    ("vmod", [_f(7.5, -7.5), _f(2.0, 2.0)], [1.5, -1.5]),
    ("vmodui", [_i(7, -1), _i(4, 10)], [3, 4294967295 % 10]),
    ("vpow", [_f(2.0, 9.0), _f(10.0, 0.5)], [1024.0, 3.0]),
    ("vpow", [_i(2, -3, 2, -1, 1), _i(5, 3, -1, -3, -9)], [32, -27, 0, -1, 1]),
    ("vldexp", [_f(3.0, -1.5), _f(4.0, -1.0)], [48.0, -0.75]),
])
def test_meaning(mnemonic: str, inputs: list[Any], expected: list[Any]) -> None:
    np.testing.assert_allclose(ENTRIES[mnemonic].meaning(*inputs), expected, rtol=1e-6, atol=1e-7)


def test_both_halves_of_a_product() -> None:
    a, b = _i(-2, 2**31 - 1, -(2**31)), _i(3, 4, -(2**31))
    low, high = ENTRIES["vmulext"].meaning(a, b)
    products = [int(x) * int(y) for x, y in zip(a, b, strict=True)]
    assert [int(h) * 2**32 + int(l) % 2**32 for l, h in zip(low, high, strict=True)] == products
    low, high = ENTRIES["vmulextui"].meaning(a, b)
    products = [(int(x) % 2**32) * (int(y) % 2**32) for x, y in zip(a, b, strict=True)]
    assert [(int(h) % 2**32) * 2**32 + int(l) % 2**32 for l, h in zip(low, high, strict=True)] == products


def test_two_destinations(k: Any) -> None:
    inputs, outputs = [k("8xi32"), k("8xi32")], [k("8xi32"), k("8xi32")]
    assert len(hivm.elementwise_op("vmulext")(inputs, outputs).results) == 2


def test_the_class_of_an_entry_by_either_name() -> None:
    assert hivm.elementwise_op("vmulext") is hivm.VMulExtOp
    assert hivm.elementwise_op("vshl") is hivm.VShLOp
    assert set(ENTRIES) == {kind.name.removeprefix("hivm.hir.") for kind in hivm.Hivm.operations
                            if issubclass(kind, hivm.ElementwiseOp)}
    with pytest.raises(KeyError):
        hivm.elementwise_op("vnothing")
    with pytest.raises(AttributeError):
        _ = hivm.VNothingOp
