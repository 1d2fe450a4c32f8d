"""``tilelang.testing``: what scripts and tests take from there."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tilelang_npu.runtime.profiler import _compare, _wide

__all__ = ["main", "requires_cuda", "requires_llvm", "requires_rocm", "set_random_seed", "torch_assert_close"]


def main() -> None:
    """Run the tests of the calling file, and end with pytest's exit code."""
    import pytest

    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    sys.exit(pytest.main([str(Path(frame.f_back.f_code.co_filename)), *sys.argv[1:]]))


def set_random_seed(seed: int = 42) -> None:
    """Seed Python's, NumPy's and, if it is loaded, torch's random numbers."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (it is the global generator that scripts use)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def torch_assert_close(
    tensor_a: Any, tensor_b: Any, rtol: float = 1e-2, atol: float = 1e-3, max_mismatched_ratio: float = 0.001, **_: object
) -> bool:
    """Compare two tensors, a share of whose elements may differ.

    Raises:
        AssertionError: more elements differ, or the shapes do.
    """
    _compare(0, _wide(tensor_a), _wide(tensor_b), atol, rtol, max_mismatched_ratio)
    return True


def _skipped(what: str) -> Callable[[Callable[..., Any]], Any]:
    def mark(function: Callable[..., Any]) -> Any:
        import pytest

        return pytest.mark.skip(reason=f"needs {what}, and there is an NPU only")(function)

    return mark


requires_cuda = _skipped("CUDA")
requires_rocm = _skipped("ROCm")
requires_llvm = _skipped("LLVM")
