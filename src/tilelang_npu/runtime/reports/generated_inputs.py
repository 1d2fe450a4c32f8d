"""The inputs with which two versions of a kernel are run to compare their results: those of a call, or generated ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from tilelang_npu.runtime.arguments.tensors import Argument
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.simulator import AnyLaunch

_INTEGERS = 4
"""Generated integers are from 0 to this number, exclusive: they may be indices, which must be small."""
_EXPONENTS = (125, 130)
"""The biased exponents of generated scales: from the first one to below the second one; 127 is a scale of 1."""


def generated_inputs(kernel: CompiledKernel, like: Sequence[Argument] | None = None) -> list[Argument]:
    """Returns an argument for each parameter that callers pass: arrays of standard normal floats, and of integers from 0 to 3.

    The arrays have the declared element types. They are the same in each call.

    Args:
        kernel: the kernel.
        like: the arguments of a call, whose shapes and numbers are taken; None for the declared shapes.

    Raises:
        TileError: T810 without ``like``, a parameter is a number, or a size of a tensor is known only from the arguments of a
            call.
    """
    rng = np.random.default_rng(0)
    made: list[Argument] = []
    for place, position in enumerate(kernel.signature.inputs):
        parameter = kernel.params[position]
        given = like[place] if like is not None else None
        if given is not None and not isinstance(given, np.ndarray):
            made.append(given)
            continue
        shape = given.shape if given is not None else tuple(size for size in parameter.shape or () if isinstance(size, int))
        if given is None and (parameter.shape is None or len(shape) != len(parameter.shape)):
            raise TileError(f"{kernel.name} has the parameter {parameter.name} whose value or sizes only a call knows",
                            code="T810", help="call the kernel in the script, so that its arguments are known")
        if given is None:
            shape = parameter.array_shape(shape)
        values: np.ndarray
        if parameter.dtype.stored != parameter.dtype:
            low, high = (-128, 128) if parameter.dtype.packed else _EXPONENTS
            values = rng.integers(low, high, size=shape)
        else:
            values = rng.standard_normal(shape) if parameter.dtype.is_float else rng.integers(0, _INTEGERS, size=shape)
        made.append(values.astype(parameter.array_dtype))
    return made


def arguments_of(kernel: CompiledKernel, launch: AnyLaunch) -> list[Argument]:
    """Returns the arguments of the call of a launch, in the order in which a caller passes the inputs.

    Args:
        kernel: the kernel.
        launch: the launch.
    """
    given = launch.parts[0].recorded.bound.given
    return [cast("Argument", given[position]) for position in kernel.signature.inputs]
