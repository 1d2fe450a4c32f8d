"""Generates the inputs with which two versions of a kernel are run to compare their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel

_INTEGERS = 4
"""Generated integers are from 0 to this number, exclusive: they may be indices, which must be small."""


def generated_inputs(kernel: CompiledKernel) -> list[np.ndarray]:
    """Returns an array for each parameter that callers pass: standard normal floats, and integers from 0 to 3.

    The arrays have the declared shapes and element types. They are the same in each call.

    Raises:
        TileError: T810 a parameter is a number, or a size of a tensor is known only from the arguments of a call.
    """
    rng = np.random.default_rng(0)
    made: list[np.ndarray] = []
    for position in kernel.signature.inputs:
        parameter = kernel.params[position]
        shape = tuple(size for size in parameter.shape or () if isinstance(size, int))
        if parameter.shape is None or len(shape) != len(parameter.shape):
            raise TileError(f"{kernel.name} has the parameter {parameter.name} whose value or sizes only a call knows",
                            code="T810", help="call the kernel in the script, so that its arguments are known")
        values = rng.standard_normal(shape) if parameter.dtype.is_float else rng.integers(0, _INTEGERS, size=shape)
        made.append(values.astype(parameter.dtype.numpy))
    return made
