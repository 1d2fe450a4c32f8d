"""Results that a run left unwritten.

A grid made with ``//`` where the tile does not divide the size leaves a strip of the result untouched, and nothing else shows
it: the values there are whatever the memory held. So the part of a result that was never written is looked at after each run.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.ops import DType
from tilelang_npu.runtime.log import TileWarning
from tilelang_npu.runtime.tensors import Array

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from tilelang_npu.frontend import Parameter

__all__ = ["Effect", "check_written", "effects", "has_nan", "is_complete"]

Shape = tuple[int, ...]


@dataclass
class Effect:
    """What a kernel does to one parameter.

    Attributes:
        reads: whether it reads elements of it.
        writes: whether it writes elements of it.
        tile: largest store, per axis; None where a size is known at run time only, or elements are stored one by one.
    """

    reads: bool = False
    writes: bool = False
    tile: Shape | None = None


def effects(kernel: Operation) -> Mapping[int, Effect]:
    """What a kernel does to its parameters, by position.

    Args:
        kernel: its function in the tile dialect, or one of the launches in it.
    """
    from xdsl.dialects import func
    from xdsl.ir import BlockArgument

    from tilelang_npu.transforms.buffers import root_of, uses_of

    found: dict[int, Effect] = {}
    stores: dict[int, list[Shape | None]] = {}
    for op in kernel.walk():
        for use in uses_of(op):
            root = root_of(use.value)
            if isinstance(root, BlockArgument) and isinstance(root.block.parent_op(), func.FuncOp):
                effect = found.setdefault(root.index, Effect())
                effect.reads |= use.reads
                effect.writes |= use.writes
                if use.writes:
                    stores.setdefault(root.index, []).append(None if use.role == "scalar" else _stored(use.value))
    for position, shapes in stores.items():
        known = [shape for shape in shapes if shape is not None]
        if len(known) == len(shapes):
            found[position].tile = tuple(max(axis) for axis in zip(*known, strict=True))
    return found


def _stored(value: SSAValue) -> Shape | None:
    """Sizes of a rectangle of a parameter, in the parameter's axes; None where one is known at run time only."""
    from xdsl.ir import BlockArgument

    from tilelang_npu.dialects import tile

    owner = value.owner
    if isinstance(value, BlockArgument):
        sizes: Sequence[object] = tile.shape_of(value)
    elif isinstance(owner, tile.RegionOp) and isinstance(owner.source, BlockArgument):
        sizes = owner.mixed_sizes()
    else:
        return None
    known = tuple(size for size in sizes if isinstance(size, int) and size >= 0)
    return known if len(known) == len(sizes) else None


def is_complete(array: Array) -> bool:
    """Whether an array that was allocated as all NaN surely has no element of that left; cheaper than asking the machine."""
    return bool(DType(array.dtype).is_float and not np.isnan(array).any())


def has_nan(array: Array) -> bool:
    """Whether an element of an array is not a number, as the elements of on-chip memory are that nothing has written."""
    with np.errstate(invalid="ignore"):
        return bool(DType(array.dtype).is_float and np.isnan(array).any())


def check_written(parameter: Parameter, effect: Effect, missing: Array, returned: bool, depth: int) -> None:
    """Judge what a run left unwritten of a parameter that the kernel writes and never reads.

    Args:
        parameter: the parameter.
        effect: what the kernel does to it.
        missing: true where nothing was written, in the parameter's shape.
        returned: whether the array is a result that the call allocated.
        depth: how many frames up the user's is, for the warning.

    Raises:
        TileError: T410 a strip at the end of an axis of a result, narrower than the tiles, is missing all along. In the
            caller's own array, which holds something there, it may be meant.
    """
    if not missing.any():
        return
    box = tuple(_extent(~missing, axis) for axis in range(missing.ndim))
    whole = not missing[tuple(slice(end) for end in box)].any()
    short = [axis for axis, end in enumerate(box) if end < missing.shape[axis]]
    tile = effect.tile
    strip = whole and tile is not None and all(_is_remainder(missing.shape[a], box[a], tile[a]) for a in short)
    if returned and strip and tile is not None and any(missing.shape[a] % tile[a] for a in short):
        raise _floored(parameter, missing.shape, box, short)
    if returned or strip:  # what is missing may be meant to be
        text = (f"{missing.sum()} of {missing.size} elements of {parameter.name} were never written, the first at"
                f" {[int(index[0]) for index in np.nonzero(missing)]} ({parameter.location})")
        warnings.warn(text, TileWarning, stacklevel=depth + 1)


def _extent(written: Array, axis: int) -> int:
    """One more than the last index of an axis at which anything was written."""
    others = tuple(other for other in range(written.ndim) if other != axis)
    hit = np.flatnonzero(written.any(axis=others))
    return int(hit[-1]) + 1 if hit.size else 0


def _is_remainder(size: int, end: int, tile: int) -> bool:
    """Whether whole tiles reach to ``end`` and less than a block is left: two tiles, one for each Vector core, or one."""
    return end > 0 and end % tile == 0 and size - end < 2 * tile


def _floored(parameter: Parameter, shape: Shape, box: Shape, short: Sequence[int]) -> TileError:
    axis = short[0]
    noun = _noun(axis, len(shape))
    msg = (f"{noun} {box[axis]}..{shape[axis] - 1} of {parameter.name} are never written:"
           f" the grid's tiles cover {box[axis]} of {shape[axis]} {noun}")
    notes = [f"likewise {_noun(other, len(shape))} {box[other]}..{shape[other] - 1}" for other in short[1:]]
    return TileError(msg, code="T410", location=parameter.location, notes=notes,
                     help="count the tiles with T.ceildiv instead of //; a tile may reach beyond the tensor")


def _noun(axis: int, rank: int) -> str:
    if rank == 1:
        return "elements"
    if rank == 2:
        return ("rows", "columns")[axis]
    return f"indices of axis {axis}"
