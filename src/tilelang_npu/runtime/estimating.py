"""``kernel.estimate``: what a call would take, from shapes alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.profiling import with_arrays
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel import JITKernel
    from tilelang_npu.simulator import AnyLaunch

__all__ = ["estimate"]

_DECIDED = {"branch": "which way a branch goes", "trips": "how often a loop runs", "place": "what is read or written",
            "flag": "which flag is meant", "extent": "how much an op works on"}


def estimate(kernel: JITKernel, args: Sequence[Any]) -> AnyLaunch:
    """What a call takes, without values.

    Args:
        kernel: the kernel.
        args: as for a call, or shapes in the place of arrays; none, and all arrays are as declared.

    Raises:
        TileError: T421 data decide what the kernel does; T401 to T407 an argument does not fit.
    """
    called = user_location()
    if (not args and any(parameter.shape is None for parameter in kernel.params)) or (not args and kernel.signature.symbols):
        kernel.signature.bind(args)  # says what is missing
    launch = kernel.trace(*with_arrays(kernel, args, lambda parameter, shape: np.empty(shape, parameter.dtype.numpy)))
    if launch is not None:
        return launch
    use = next(use for program in kernel.programs for function in program.traced for use in function.data.uses)
    raise TileError(f"{kernel.name} cannot be estimated without data: they decide {_DECIDED[use.what]}", code="T421",
                    location=use.location, notes=(f"in the call at {called}",) if called else (),
                    help="call the kernel on arrays and read kernel.last_launch")
