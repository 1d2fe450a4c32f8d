"""``tilelang.testing``: the functions that scripts and tests import from it."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tilelang_npu.errors import caller, doors, meant
from tilelang_npu.runtime.reports.perf_report import Benchmark, perf_report
from tilelang_npu.runtime.reports.profiler import compare

__all__ = [
    "Benchmark", "main", "perf_report", "process_func", "regression", "requires_cuda", "requires_cuda_compute_version",
    "requires_cuda_compute_version_eq", "requires_cuda_compute_version_ge", "requires_cuda_compute_version_gt",
    "requires_cuda_compute_version_le", "requires_cuda_compute_version_lt", "requires_llvm", "requires_metal", "requires_rocm",
    "set_random_seed", "torch_assert_close",
]


def main() -> None:
    """Run the tests of the calling file, and exit with pytest's exit code."""
    import pytest

    frame = caller()
    assert frame is not None
    sys.exit(pytest.main([str(Path(frame.f_code.co_filename)), *sys.argv[1:]]))


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
    """Compare two tensors, of whose elements a share may differ.

    Raises:
        AssertionError: more elements differ, or the shapes do.
    """
    compare("result 0", tensor_a, tensor_b, atol, rtol, max_mismatched_ratio)
    return True


def process_func(func: Callable[..., float], name: str | None = None, /, **arguments: Any) -> None:
    """Call a function that returns a time, and print the time after the function's name, or the name of its module.

    Raises:
        ValueError: the time is not positive.
    """
    shown = (func.__module__ if name is None else name).removeprefix("regression_")
    latency = float(func(**arguments))
    if not latency > 0:
        msg = f"{shown} returns {latency}, which is not a time"
        raise meant(ValueError(msg))
    print(f"{shown}: {latency}")  # noqa: T201  (what it is called for)


def regression(prefixes: Sequence[str] = ("regression_",), verbose: bool = True) -> None:
    """Call the functions of the calling file with these prefixes, in the order of their names.

    Args:
        prefixes: the beginnings of the names.
        verbose: whether to print each name first.
    """
    frame = caller()
    assert frame is not None
    for name, function in sorted(frame.f_globals.items(), key=lambda item: item[0]):
        if callable(function) and name.startswith(tuple(prefixes)):
            if verbose:
                print(name)  # noqa: T201  (what it is called for)
            function()


def _skipped(what: str) -> Callable[[Callable[..., Any]], Any]:
    def mark(function: Callable[..., Any]) -> Any:
        import pytest

        return pytest.mark.skip(reason=f"needs {what}; only an NPU is simulated")(function)

    return mark


requires_cuda = _skipped("CUDA")
requires_rocm = _skipped("ROCm")
requires_metal = _skipped("Metal")
requires_llvm = _skipped("LLVM")


def requires_cuda_compute_version(
    major_version: int, minor_version: int = 0, mode: str = "ge"
) -> Callable[[Callable[..., Any]], Any]:
    """Skip a test for some of NVIDIA's chips."""
    return _skipped(f"CUDA compute capability {mode} {major_version}.{minor_version}")


requires_cuda_compute_version_ge = partial(requires_cuda_compute_version, mode="ge")
requires_cuda_compute_version_gt = partial(requires_cuda_compute_version, mode="gt")
requires_cuda_compute_version_le = partial(requires_cuda_compute_version, mode="le")
requires_cuda_compute_version_lt = partial(requires_cuda_compute_version, mode="lt")
requires_cuda_compute_version_eq = partial(requires_cuda_compute_version, mode="eq")


doors(globals())
