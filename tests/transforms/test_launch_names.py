"""One launch has the kernel's name, several are numbered."""

from __future__ import annotations

import pytest

from tilelang_npu.transforms.infra.launch_names import launch_function_names


@pytest.mark.parametrize(("count", "names"), [(1, ["k"]), (2, ["k_1", "k_2"]), (3, ["k_1", "k_2", "k_3"])])
def test_names(count: int, names: list[str]) -> None:
    assert launch_function_names("k", count) == names
