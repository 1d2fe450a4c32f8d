"""The module ``tilelang.testing``, with the functions that scripts and tests import from it."""

from __future__ import annotations

import operator
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import numpy as np

from tilelang_npu.errors import caller, doors, meant
from tilelang_npu.runtime.reports.perf_report import Benchmark, perf_report
from tilelang_npu.runtime.reports.profiler import compare
from tilelang_npu.runtime.settings import environment

__all__ = [
    "Benchmark", "main", "perf_report", "process_func", "regression", "requires_cdna", "requires_cuda",
    "requires_cuda_compute_version",
    "requires_cuda_compute_version_eq", "requires_cuda_compute_version_ge", "requires_cuda_compute_version_gt",
    "requires_cuda_compute_version_le", "requires_cuda_compute_version_lt", "requires_cuda_or_cdna", "requires_gfx950",
    "requires_llvm", "requires_metal", "requires_package", "requires_rocm",
    "set_random_seed", "torch_assert_close",
]


F = TypeVar("F", bound=Callable[..., object])


def main() -> None:
    """Runs the tests of the calling file with pytest, and exits with pytest's exit code."""
    import pytest

    frame = caller()
    assert frame is not None
    sys.exit(pytest.main([str(Path(frame.f_code.co_filename)), *sys.argv[1:]]))


def set_random_seed(seed: int = 42) -> None:
    """Seeds the global random number generators of Python and NumPy, and of torch if torch is loaded."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (the caller's np.random functions use the global generator)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def torch_assert_close(
    tensor_a: object, tensor_b: object, rtol: float = 1e-2, atol: float = 1e-3, max_mismatched_ratio: float = 0.001, **_: object
) -> bool:
    """Compares two tensors element by element, and returns True if they agree.

    Args:
        tensor_a: the first tensor.
        tensor_b: the second tensor.
        rtol: the relative tolerance.
        atol: the absolute tolerance.
        max_mismatched_ratio: the fraction of the elements that are allowed to differ by more than the tolerances.

    Raises:
        AssertionError: a larger fraction of the elements differs, or the shapes differ.
    """
    compare("result 0", tensor_a, tensor_b, atol, rtol, max_mismatched_ratio)
    return True


def process_func(func: Callable[..., float], name: str | None = None, /, **arguments: object) -> None:
    """Calls a function that returns a time, and prints ``name: time``.

    Args:
        func: the function.
        name: the printed name; None for the name of the function's module. The prefix ``regression_`` is removed.
        arguments: the keyword arguments of the function.

    Raises:
        ValueError: the returned time is not positive.
    """
    shown = (func.__module__ if name is None else name).removeprefix("regression_")
    latency = float(func(**arguments))
    if not latency > 0:
        msg = f"{shown} returns {latency}, which is not a time"
        raise meant(ValueError(msg))
    print(f"{shown}: {latency}")  # noqa: T201  (the function is called to print)


def regression(prefixes: Sequence[str] = ("regression_",), verbose: bool = True) -> None:
    """Calls all functions of the calling file whose names begin with one of the prefixes, in alphabetical order.

    Args:
        prefixes: the prefixes.
        verbose: whether to print the name of each function before the call.
    """
    frame = caller()
    assert frame is not None
    for name, function in sorted(frame.f_globals.items(), key=lambda item: item[0]):
        if callable(function) and name.startswith(tuple(prefixes)):
            if verbose:
                print(name)  # noqa: T201  (the function is called to print)
            function()


def _skipped(what: str, runs: Callable[[], bool] = lambda: False) -> Callable[[F], F]:
    """Returns a decorator that skips a test which needs a machine, unless ``runs`` holds when the test is collected."""

    def mark(function: F) -> F:
        import pytest

        return function if runs() else pytest.mark.skip(reason=f"needs {what}; only an NPU is simulated")(function)

    return mark


requires_cuda = _skipped("CUDA", environment.GPU.is_on)
requires_cuda_or_cdna = _skipped("CUDA, or an AMD GPU", environment.GPU.is_on)
requires_rocm = _skipped("ROCm")
requires_cdna = _skipped("an AMD GPU")
requires_gfx950 = _skipped("an AMD GPU of type gfx950")
requires_metal = _skipped("Metal")
requires_llvm = _skipped("LLVM")


def requires_package(*packages: str) -> Callable[[F], F]:
    """Returns a decorator that skips a test unless all packages of these names are installed."""
    missing = [name for name in packages if find_spec(name.partition(".")[0]) is None]

    def mark(function: F) -> F:
        import pytest

        return pytest.mark.skip(reason=f"needs {', '.join(missing)}")(function) if missing else function

    return mark


_COMPARISONS: dict[str, Callable[..., bool]] = {
    "ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt, "eq": operator.eq}


def requires_cuda_compute_version(
    major_version: int, minor_version: int = 0, mode: str = "ge"
) -> Callable[[F], F]:
    """Returns a decorator that skips a test which needs an NVIDIA GPU of some compute capability.

    While ``TILELANG_NPU_GPU`` is set, the test runs if the capability that scripts are told satisfies the comparison.
    """

    def runs() -> bool:
        return environment.GPU.is_on() and _COMPARISONS[mode](environment.gpu_capability(), (major_version, minor_version))

    return _skipped(f"CUDA compute capability {mode} {major_version}.{minor_version}", runs)


requires_cuda_compute_version_ge = partial(requires_cuda_compute_version, mode="ge")
requires_cuda_compute_version_gt = partial(requires_cuda_compute_version, mode="gt")
requires_cuda_compute_version_le = partial(requires_cuda_compute_version, mode="le")
requires_cuda_compute_version_lt = partial(requires_cuda_compute_version, mode="lt")
requires_cuda_compute_version_eq = partial(requires_cuda_compute_version, mode="eq")


doors(globals())
