"""The logical shapes of scales that a tensor has in one of the layouts."""

from __future__ import annotations

import pytest

from tilelang_npu.ops.scale_layouts import SCALE_LAYOUTS


@pytest.mark.parametrize(("layout", "shape", "logical"), [
    ("MX_A_ND", (64, 3, 2), (64, 6)), ("MX_A_DN", (3, 64, 2), (64, 6)), ("MX_B_ND", (3, 64, 2), (6, 64)),
    ("MX_B_DN", (64, 3, 2), (6, 64)), ("MX_A_ND", (64, 6), (64, 6)), ("MX_B_DN", (64, 6), (6, 64)),
    ("MX_B_ND", (-1, 64, 2), (-1, 64)), ("MX_A_ND", (64,), (64,)),
])
def test_logical_shape(layout: str, shape: tuple[int, ...], logical: tuple[int, ...]) -> None:
    assert SCALE_LAYOUTS[layout].logical_shape(shape) == logical
