"""Tests that use an operation fail when the operation computes something else: its own tests, and the examples."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ops import surface, test_casts, test_structured_values, test_values
from ops.conftest import Batch
from perturbation import perturbed
from tilelang_npu import compat, ops


def run_own_tests(batch: Callable[[str], Batch], rng: np.random.Generator, entry: ops.Operation, name: str) -> None:
    """The value test of one operation on one element type."""
    element = surface.first_type(entry, name)
    if entry.name == "cast":
        test_casts.test_values(batch, rng, element)
    elif isinstance(entry, ops.Elementwise):
        test_values.test_elementwise(batch, rng, entry, name, element)
    elif isinstance(entry, ops.Reduce):
        test_values.test_reductions(batch, rng, entry, element, "npuir")
    else:
        assert isinstance(entry, ops.Structured)
        test_structured_values.test_values(batch, rng, entry, element)


@pytest.mark.parametrize(("entry", "name"), [
    pytest.param(entry, names[0], id=entry.name)
    for entry in ops.operations().values() if (names := surface.main_names(entry))])
def test_own_tests_notice(batch: Callable[[str], Batch], rng: np.random.Generator, entry: ops.Operation, name: str) -> None:
    """Every operation's value test fails when that operation is perturbed, and runs it at all."""
    with perturbed(entry.name) as used, pytest.raises(AssertionError):
        run_own_tests(batch, rng, entry, name)
    assert entry.name in used


# A softmax does not depend on the value that is subtracted from a row, so it does not test the maximum.
KERNELS = {"examples/softmax.py": ["exp", "sub", "div", "reduce_sum"],
           "examples/flash_attention.py": ["exp", "sub", "mul", "div", "add", "reduce_sum", "cast"],
           "examples/minicv.py": ["exp"],
           "tests/frontend/kernels/w4a8_gemm_workspace_vid.py": ["bitwise_and", "bitwise_rshift", "sub"],
           "tests/frontend/kernels/attention_gather_vid_free.py": ["reduce_sum", "exp", "div"],
           "tests/frontend/kernels/softmax_mixed.py": ["exp", "sub", "div", "reduce_sum"]}


@pytest.mark.parametrize(("path", "operation"), [(path, operation) for path, used in KERNELS.items() for operation in used])
def test_kernels_notice(root: Path, path: str, operation: str) -> None:
    """A kernel's script checks itself: it does not pass when an operation that it uses is perturbed."""
    compat.install()
    with perturbed(operation) as used, pytest.raises(AssertionError):
        runpy.run_path(str(root / path), run_name="__main__")
    assert operation in used


def test_nothing_is_perturbed_without_a_name(batch: Callable[[str], Batch], rng: np.random.Generator) -> None:
    """The means itself changes no value."""
    for name in ("add", "cast", "sigmoid", "reduce_sum", "cumsum"):
        entry = ops.operation(name)
        with perturbed(None) as used:
            run_own_tests(batch, rng, entry, surface.main_names(entry)[0])
        assert name in used
