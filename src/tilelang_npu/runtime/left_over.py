"""Results made of what memory held by chance, told in the default run too.

On-chip memory is filled with NaN when a block starts, so a NaN in a result is a reason to look for a read of bytes that nothing
wrote. A tile that lies where another one was holds ordinary numbers, and one of integers never is NaN; so a kernel in which the
first op that touches a tile reads it is looked at once for each set of sizes. Whether anything comes of it is for the
sanitizer's rule to say: what nothing depends on is no fault.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.runtime import coverage, listeners
from tilelang_npu.runtime.log import TileWarning, is_unheard

if TYPE_CHECKING:
    from tilelang_npu.runtime.binding import BoundCall
    from tilelang_npu.runtime.here import Here
    from tilelang_npu.simulator import AnyLaunch


def tell_left_over(name: str, launch: AnyLaunch, call: BoundCall, effects: Mapping[int, coverage.ParameterEffect],
                   here: Here) -> None:
    """Warn of the first result of bytes that nothing in its block wrote, or another tile left; once for a kernel.

    Args:
        name, effects: of the kernel, and what it does to its parameters.
        launch, call: what ran, and its arguments.
        here: what is known of the kernel's calls.
    """
    if here.stale_told or listeners.are_sanitized():
        return
    written = (call.values[position] for position, effect in effects.items() if effect.writes)
    suspected = any(part.recorded.program.reads_first for part in launch.parts) and not is_unheard()
    first = suspected and here.first_of_sizes(call.sizes)
    nans = (coverage.has_nan(value) for value in written if isinstance(value, np.ndarray))
    if not first and not (launch.may_be_stale and any(nans)):
        return
    hazard = launch.stale()
    if hazard is not None and here.first_stale():
        where = hazard.first.location
        warnings.warn_explicit(str(hazard), TileWarning, where.file if where else name, where.line if where else 1)
