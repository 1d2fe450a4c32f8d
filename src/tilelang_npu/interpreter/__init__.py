"""Executes kernels as Python: the author's function runs block by block, with NumPy arrays for buffers.

It shares no code with the compiler and with the simulator, and says independently of them what a kernel means. Nothing is
compiled, so a debugger, ``print`` and any other Python work inside of a kernel.

- :mod:`.rewrite`: the small rewrite of the syntax tree that Python needs;
- :mod:`.typed_scalars`, :mod:`.host_buffers`: numbers with element types; buffers, slices, elements;
- :mod:`.launch`, :mod:`.running_core`, :mod:`.core_schedule`: blocks, and cores side by side;
- :mod:`.parallel_points`: ``T.Parallel`` on arrays;
- :mod:`.operation_table` and what it loads: the operations.
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
    """Execute a kernel; it writes the arrays.

    Args:
        source: its function.
        arguments: by parameter, a NumPy array or a number, and its element type.
        dialect: ``npuir`` or ``ascendc``.

    Raises:
        TileError: what the kernel does wrong, at the author's line; what Python raises in the author's own code.
    """
    given: dict[str, Any] = {}
    for name, (value, kind) in arguments.items():
        if isinstance(value, np.ndarray):
            given[name] = HostBuffer(value, kind, "gm", name)
            given[name].named, given[name].own = True, False
        else:
            given[name] = TypedScalar(kind.numpy.type(value), kind)
    InterpretedLaunch(source, given, dialect, operation).run()
