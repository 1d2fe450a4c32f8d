"""Executes kernels as Python code: the author's function runs once for each block, with NumPy arrays as buffers.

The interpreter shares no code with the compiler and the simulator, so it is an independent definition of a kernel's results.
Nothing is compiled, so a debugger, ``print`` and other Python code work inside of a kernel.

- :mod:`.rewrite`: the rewrite of the kernel's syntax tree into Python that can be executed;
- :mod:`.typed_scalars`, :mod:`.host_buffers`: numbers with element types; buffers, slices, elements;
- :mod:`.launch`, :mod:`.running_core`: blocks, and cores that run concurrently;
- :mod:`.parallel_points`: ``T.Parallel`` on arrays;
- :mod:`.operation_table` and the modules that it loads: the operations of ``T``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilelang_npu.interpreter.host_buffers import POISON, WATCHED, AbsentTensor, HostBuffer, Write
from tilelang_npu.interpreter.launch import InterpretedLaunch, KernelSource
from tilelang_npu.interpreter.operation_table import operation
from tilelang_npu.interpreter.typed_scalars import RANDOM, IndexInt, TypedScalar, Values
from tilelang_npu.source_dialects import TracedDialect
from tilelang_npu.target.dtypes import DType

__all__ = ["POISON", "RANDOM", "WATCHED", "IndexInt", "KernelSource", "Write", "interpret"]


def interpret(source: KernelSource, arguments: Mapping[str, tuple[Values | None, DType]], dialect: TracedDialect,
              vector_cores: int = 2, *, mask_tails: bool = False) -> None:
    """Executes a kernel. The kernel writes to the arrays of its arguments in place.

    Exceptions that the author's own Python code raises are not caught.

    Args:
        source: the kernel's function and its syntax tree.
        arguments: for each parameter, by name, the NumPy array or number and the element type; None in place of the array of a
            tensor that the kernel must not use.
        dialect: the dialect of the kernel's source, ``npuir`` or ``ascendc``.
        vector_cores: the number of Vector cores for each Cube core of the chip.
        mask_tails: whether reductions leave out the padding of tiles that reach past the end of a tensor.

    Raises:
        TileError: an error in the kernel, with the author's line.
    """
    given: dict[str, HostBuffer | TypedScalar | AbsentTensor] = {}
    packed: list[tuple[np.ndarray, np.ndarray]] = []
    for name, (value, kind) in arguments.items():
        if isinstance(value, np.ndarray):
            if kind.packed:  # two elements in each byte, the one with the even index in the lower half
                halves = np.stack([value & 15, value >> 4 & 15], axis=-1).reshape((*value.shape[:-1], -1))
                packed.append((value, np.where(halves > 7, halves - 16, halves).astype(kind.numpy) if kind == "int4"
                               else halves.view(np.uint8).view(kind.numpy)))
                value = packed[-1][1]
            elif kind.stored != kind:
                value = value.view(kind.numpy)
            given[name] = buffer = HostBuffer(value, kind, "gm", name)
            buffer.named, buffer.own = True, False
        elif value is None:
            given[name] = AbsentTensor(name)
        else:
            given[name] = TypedScalar(kind.numpy.type(value), kind)
    InterpretedLaunch(source, given, dialect, operation, vector_cores, mask_tails=mask_tails).run()
    for pairs, elements in packed:
        whole = elements.astype(np.int64) if str(elements.dtype) == "int4" else elements.view(np.uint8)
        even, odd = (whole[..., place::2] & 15 for place in (0, 1))
        pairs[...] = (even | odd << 4).astype(np.uint8).view(np.int8)
