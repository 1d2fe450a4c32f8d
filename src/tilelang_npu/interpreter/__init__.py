"""Executes kernels as Python: the author's function runs once for each block, with NumPy arrays for buffers.

The interpreter shares no code with the compiler and the simulator: it is an independent definition of what a kernel computes.
Nothing is compiled, so a debugger, ``print`` and other Python code work inside of a kernel.

- :mod:`.rewrite`: the rewrite of the kernel's syntax tree into Python that can be executed;
- :mod:`.typed_scalars`, :mod:`.host_buffers`: numbers with element types; buffers, slices, elements;
- :mod:`.launch`, :mod:`.running_core`, :mod:`.core_schedule`: blocks, and cores that run concurrently;
- :mod:`.parallel_points`: ``T.Parallel`` on arrays;
- :mod:`.operation_table` and the modules that it loads: the operations of ``T``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilelang_npu.interpreter.host_buffers import POISON, HostBuffer
from tilelang_npu.interpreter.launch import WATCHED, InterpretedLaunch, KernelSource, Write
from tilelang_npu.interpreter.operation_table import operation
from tilelang_npu.interpreter.typed_scalars import RANDOM, IndexInt, TypedScalar
from tilelang_npu.target.dtypes import DType

__all__ = ["POISON", "RANDOM", "WATCHED", "IndexInt", "KernelSource", "Write", "interpret"]


def interpret(source: KernelSource, arguments: Mapping[str, tuple[Any, DType]], dialect: str) -> None:
    """Executes a kernel, which writes the arrays in place.

    Args:
        source: the kernel's function.
        arguments: for each parameter a NumPy array or a number, and its element type.
        dialect: ``npuir`` or ``ascendc``.

    Raises:
        TileError: an error of the kernel, at the author's line; exceptions of the author's own Python code are passed on.
    """
    given: dict[str, Any] = {}
    for name, (value, kind) in arguments.items():
        if isinstance(value, np.ndarray):
            given[name] = HostBuffer(value, kind, "gm", name)
            given[name].named, given[name].own = True, False
        else:
            given[name] = TypedScalar(kind.numpy.type(value), kind)
    InterpretedLaunch(source, given, dialect, operation).run()
