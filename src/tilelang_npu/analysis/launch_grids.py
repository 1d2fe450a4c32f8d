"""Facts about a launch (``tile.launch``) as a whole: the size of its grid, and what its author leaves to the compiler."""

from __future__ import annotations

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile

__all__ = ["constant_grid", "is_left_to_compiler"]


def constant_grid(launch: tile.LaunchOp) -> list[int] | None:
    """Returns the number of blocks of a launch along each axis; None if a number depends on the arguments of a call."""
    ranges = Ranges()
    sizes = [ranges.constant(size) for size in launch.grid]
    known = [size for size in sizes if size is not None]
    return known if len(known) == len(sizes) else None


def is_left_to_compiler(launch: tile.LaunchOp) -> bool:
    """Whether the author leaves cores and synchronisation to the compiler: a launch has no ``T.Scope``, flag or barrier."""
    return not any(isinstance(op, tile.OnCoreOp) or op.name.startswith("hivm.") for op in launch.walk())
