"""Plug-ins that a test registers are taken back at its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tilelang_npu.plugins.registry import temporary

HERE = Path(__file__).resolve().parent
GOOD = '''
import numpy as np
from tilelang_npu.plugins import register_op

@register_op(dtypes=("float32",), cost="exp")
def softsign(x):
    """Softsign."""
    return x / (1 + np.abs(x))
'''
"""The text of a plug-in file that registers one operation."""


@pytest.fixture(autouse=True)
def _taken_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(HERE)  # plug-in files append their folders
    with temporary():
        yield


@pytest.fixture
def sample() -> Path:
    """The package of a plug-in: operations, a pass and a chip."""
    return HERE / "package" / "sample_plugin"


@pytest.fixture
def kernel() -> Path:
    """A script with a kernel, and a test, of the package's operations."""
    return HERE / "kernels" / "softsign_kernel.py"
