"""Records the calls of a script's kernels: the arguments and the launches."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.rewriter import Rewriter

from tilelang_npu import compat
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.runtime.jit.jit_kernel import JITKernel
from tilelang_npu.simulator.run.entry_functions import kernels_of
from tilelang_npu.simulator.run.program import Program

KERNELS = sorted((Path(__file__).resolve().parent / "frontend" / "kernels").glob("*.py"))


class Run(NamedTuple):
    """One launch of a kernel: itself, the launch's text, the launch, its arguments before and after."""

    kernel: JITKernel
    text: str
    names: list[str]
    launch: Any
    before: list[Any]
    after: list[Any]


def copies(values: Any) -> list[Any]:
    """The arguments with copies of the arrays."""
    return [value.copy() if isinstance(value, np.ndarray) else value for value in values]


def _alone(text: str, entry: str) -> str:
    """The text of a module of several launches with the functions of one."""
    module = parse_module(text)
    kept = {function for _, function in kernels_of(module)[entry]}
    for function in [op for op in module.walk() if isinstance(op, func.FuncOp) and "hacc.entry" in op.attributes]:
        if function not in kept:
            Rewriter.erase_op(function)
    return print_module(module)


def captured(script: Path, work: Callable[[dict[str, Any]], object] | None = None) -> list[Run]:
    """Runs a script, or ``work`` on its names, and returns the launches of its kernels."""
    found: list[Run] = []
    arguments: list[tuple[list[Any], list[Any], str]] = []
    call, run = JITKernel.__call__, Program.run

    def observed_run(self: Program, args: Any, **options: Any) -> Any:
        before = copies(args)
        recorded = run(self, args, **options)
        arguments.append((before, copies(args), self.name))
        return recorded

    def observed_call(self: JITKernel, *args: Any, **options: Any) -> Any:
        result = call(self, *args, **options)
        names = [parameter.name for parameter in self.params]
        parts = getattr(self.last_launch, "parts", (self.last_launch,))
        for launch, (before, after, entry) in zip(parts, arguments[-len(parts):], strict=True):
            text = self.mlir() if len(parts) == 1 else _alone(self.mlir(), entry)
            found.append(Run(self, text, names, launch, before, after))
        arguments.clear()
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "run", observed_run)
        patch.setattr(JITKernel, "__call__", observed_call)
        patch.syspath_prepend(script.parent)  # like a running script, it may import modules from its folder
        compat.install()
        names = runpy.run_path(str(script), run_name="__main__" if work is None else script.stem)
        if work is not None:
            work(names)
    assert found
    return found
