"""One launch has the kernel's name, several are numbered."""

from __future__ import annotations

import pytest

from tilelang_npu.transforms.ir.launch_names import names_of


@pytest.mark.parametrize(("count", "names"), [(1, ["k"]), (2, ["k_1", "k_2"]), (3, ["k_1", "k_2", "k_3"])])
def test_names(count: int, names: list[str]) -> None:
    assert names_of("k", count) == names
