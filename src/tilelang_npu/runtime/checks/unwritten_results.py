"""Finds the elements of results that a call does not write.

If the tile does not divide a size, a grid that is computed with ``//`` leaves a strip of the result unwritten. Without a check
this stays unnoticed, because the strip contains the values that the memory had before. So the set of written elements of each
result is checked after a run or a static check.

- A call must store to each element of an array that it allocates and returns (``out_idx``); otherwise the call raises T410.
  Adding to an element (``T.atomic_add``) does not count as storing.
- If a store has a size that only the call knows (``C[:, 0:n]``), unwritten elements are possibly intended: they are a warning.
- If every store to the array is to a slice with a constant start and size along an axis (``C[0:16, 0:96]``), the elements that
  the slices leave out along this axis are possibly intended: they are a warning. A grid does not decide about them.
- If the elements of other arrays decide which elements are stored (as an index, or the condition of a branch or a loop),
  unwritten elements are possibly intended: they are a warning.
- An array that the caller passes has values in its unwritten elements, which are possibly intended. There is a warning only for
  a strip at the end that is narrower than the tiles, if the strip does not depend on the elements of arrays.
- A kernel that reads arrays, stores to none and prints nothing gets a warning: a copy is missing, or has the wrong direction.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.errors import TileError
from tilelang_npu.ops import DType
from tilelang_npu.runtime.arguments.tensors import Array
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.log import TileWarning
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from tilelang_npu.frontend import Parameter
    from tilelang_npu.runtime.arguments.binding import BoundCall
    from tilelang_npu.simulator import AnyLaunch, Program

Shape = tuple[int, ...]
_MAX_RANGES = 4
"""Ranges of indices that a message lists."""
_PART = 1 << 18
"""Number of elements that are searched for NaN at a time."""
_LARGE = 1 << 20
"""Bytes from which on :func:`overwritten` considers a result."""
_FLOATS = ("float16", "bfloat16", "float32", "float64")
"""Types of which NaN marks unwritten elements."""
_OUTPUTS_START_EMPTY = (
    "the call allocates the arrays of out_idx, without values: write all of the array, or leave it out of out_idx and pass an"
    " array, which keeps its values where the kernel writes nothing")


@dataclass
class ParameterEffect:
    """The accesses of a kernel to one parameter.

    Attributes:
        reads: whether the kernel reads elements of the parameter.
        writes: whether the kernel writes elements of the parameter.
        tile: the largest size of a store along each axis, in elements; None if a size is known only at run time, or if single
            elements are stored.
        sliced: whether a store has a size that is known only at run time.
        fixed: the axes along which each store is to a slice with a constant start and size; empty if a store is to no slice.
    """

    reads: bool = False
    writes: bool = False
    tile: Shape | None = None
    sliced: bool = False
    fixed: frozenset[int] = frozenset()


def parameter_effects(kernel: Operation) -> Mapping[int, ParameterEffect]:
    """Returns the accesses of a kernel to its parameters, by the position of the parameter.

    Args:
        kernel: the kernel's function in the tile dialect, or a launch operation in this function.
    """
    from xdsl.dialects import func
    from xdsl.ir import BlockArgument

    from tilelang_npu.analysis.buffers import root_of
    from tilelang_npu.dialects import tile
    from tilelang_npu.dialects.ir.effects import effects_of

    found: dict[int, ParameterEffect] = {}
    stores: dict[int, list[Shape | None]] = {}
    fixed: dict[int, list[frozenset[int]]] = {}
    for op in kernel.walk():
        for use in effects_of(op):
            root = root_of(use.value)
            if isinstance(root, BlockArgument) and isinstance(root.block.parent_op(), func.FuncOp):
                effect = found.setdefault(root.index, ParameterEffect())
                effect.reads |= use.reads
                effect.writes |= use.writes
                if use.writes:
                    owner = use.value.owner
                    effect.sliced |= isinstance(owner, tile.RegionOp) and not all(
                        isinstance(size, int) for size in owner.mixed_sizes())
                    stores.setdefault(root.index, []).append(None if use.role == "scalar" else _constant_sizes(use.value))
                    fixed.setdefault(root.index, []).append(frozenset() if use.role == "scalar" else _fixed_axes(use.value))
    for position, shapes in stores.items():
        known = [shape for shape in shapes if shape is not None]
        if len(known) == len(shapes):
            found[position].tile = tuple(max(axis) for axis in zip(*known, strict=True))
    for position, axes in fixed.items():
        found[position].fixed = frozenset.intersection(*axes)
    return found


def warn_without_result(name: str, parameters: Sequence[Parameter], kernel: Callable[[], Operation],
                        effects: Mapping[int, ParameterEffect]) -> None:
    """Issues a warning if a kernel reads arrays but stores to no array, prints nothing, and sets no flags between cores and no
    signals between cards.

    Args:
        name: the kernel's name.
        parameters: the kernel's parameters.
        kernel: returns the kernel's function in the tile dialect.
        effects: the kernel's accesses to the parameters.
    """
    if any(effect.writes for effect in effects.values()) or not any(effect.reads for effect in effects.values()):
        return
    from tilelang_npu.dialects import hivm, tile

    # Flags between the cores, and signals between cards, are observable results: some kernels only try out their order.
    observable = (tile.PrintOp, tile.PrintfOp, tile.DumpOp, tile.SignalOp, hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp)
    if not any(isinstance(op, observable) for op in kernel().walk()):
        place = user_location() or parameters[0].location
        warnings.warn_explicit(
            f"{name} stores to none of {', '.join(parameter.name for parameter in parameters)}, so it has no results: "
            "T.copy(tile, tensor) stores a tile, with the destination last", TileWarning, place.file, place.line)


def _constant_sizes(value: SSAValue) -> Shape | None:
    """Returns the sizes of a region of a parameter, in the parameter's axes; None if one is known at run time only."""
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


def _fixed_axes(value: SSAValue) -> frozenset[int]:
    """Returns the axes of a parameter along which a slice starts at a constant and has a constant size."""
    from xdsl.ir import BlockArgument

    from tilelang_npu.dialects import tile

    owner = value.owner
    if (not isinstance(owner, tile.RegionOp) or not isinstance(owner.source, BlockArgument)
            or tile.SLICE not in owner.attributes):
        return frozenset()
    return frozenset(axis for axis, ends in enumerate(zip(owner.mixed_offsets(), owner.mixed_sizes(), strict=True))
                     if all(isinstance(end, int) for end in ends))


def has_nan(array: Array) -> bool:
    """Whether an array has an element that is NaN. Uninitialised on-chip memory is filled with NaN."""
    if not DType(array.dtype).is_float:
        return False
    with np.errstate(invalid="ignore"):
        if array.dtype == np.float32 and array.size:
            return bool(np.isnan(array.min()))  # min() propagates NaN, and allocates nothing
        flat = array.reshape(-1)
        return any(np.isnan(flat[start:start + _PART]).any() for start in range(0, flat.size, _PART))  # a mask takes memory


@dataclass(frozen=True)
class UnwrittenResult:
    """A parameter some of whose elements a call does not write.

    Attributes:
        parameter: the parameter.
        tile: the largest size of the kernel's stores to the parameter along each axis, in elements; None if a size is known
            only at run time.
        missing: a Boolean mask of the unwritten elements, in the shape of the array.
        allocated: whether the call allocates and returns the array, so that unwritten elements have no values.
        data_dependent: whether the elements of arrays decide which elements are written.
        added: whether the kernel adds to elements of the parameter (``T.atomic_add``), which does not count as writing.
        sliced: whether a store has a size that only the call knows.
        fixed: the axes along which all stores are to slices with constant starts and sizes.
    """

    parameter: Parameter
    tile: Shape | None
    missing: Array
    allocated: bool
    data_dependent: bool = False
    added: bool = False
    sliced: bool = False
    fixed: frozenset[int] = frozenset()

    def error(self) -> TileError | None:
        """Returns the error T410 if the call allocates the array, and neither data nor sizes of the call nor constant slices
        decide which elements are written; else None.
        """
        if not self.missing.any() or not self.allocated or self.data_dependent or (self.sliced and not self.missing.all()):
            return None
        if self._is_left_out_by_slices():
            return None
        shape, box = self.missing.shape, _written_box(self.missing)
        axes = self._short_axes(box)
        if self.tile is not None and self._is_strip(box, axes) and any(shape[axis] % self.tile[axis] for axis in axes):
            axis, rank = axes[0], len(shape)
            noun = _noun(axis, rank)
            msg = (f"{noun} {box[axis]}..{shape[axis] - 1} of {self.parameter.name} are never written:"
                   f" the grid's tiles cover {box[axis]} of {shape[axis]} {noun}")
            notes = [f"likewise {_noun(other, rank)} {box[other]}..{shape[other] - 1}" for other in axes[1:]]
            advice = "count the tiles with T.ceildiv instead of //; the last tile can reach beyond the tensor"
        else:
            msg = describe(self.parameter.name, self.missing)
            notes = ["T.atomic_add adds to an element, which does not initialise it"] if self.added else []
            advice = _OUTPUTS_START_EMPTY
        return TileError(msg, code="T410", location=self.parameter.location, notes=notes, help=advice)

    def warning(self) -> str:
        """Returns the text of a warning about unwritten elements that are possibly intended, or an empty string for no warning.

        There is a warning for an allocated array if the set of written elements depends on data, on a size of the call or on
        constant slices, and for an array of the caller if only a strip narrower than the tiles is unwritten.
        """
        box = _written_box(self.missing)
        is_suspicious = self.data_dependent or self.sliced or self._is_left_out_by_slices() if self.allocated else (
            not self.data_dependent and self._is_strip(box, self._short_axes(box)))
        if not self.missing.any() or not is_suspicious:
            return ""
        reason = "; data decide which elements are written" if self.data_dependent else (
            "; sizes of the call decide which elements are written" if self.sliced else (
                "; constant slices leave them out" if self.allocated else ""))
        return f"{describe(self.parameter.name, self.missing)}{reason} ({self.parameter.location})"

    def _is_left_out_by_slices(self) -> bool:
        """Whether all unwritten elements are in rows, columns or planes that constant slices leave out, and some are written.
        """
        if not self.fixed:
            return False
        rest = self.missing.copy()
        for axis in self.fixed:
            rest[(slice(None),) * axis + (np.flatnonzero(self.missing.all(axis=_others(self.missing, axis))),)] = False
        return not rest.any() and not self.missing.all()

    def _short_axes(self, box: Shape) -> list[int]:
        """Returns the axes along which the box of written elements ends before the array does."""
        return [axis for axis, end in enumerate(box) if end < self.missing.shape[axis]]

    def _is_strip(self, box: Shape, axes: Sequence[int]) -> bool:
        """Whether the unwritten elements are those that a grid leaves whose block count is rounded down.

        Such a grid leaves less than one block at the end of an axis. A block has one tile, or two if it has a tile for each
        Vector core.
        """
        if self.tile is None or not axes or self.missing[tuple(slice(end) for end in box)].any():
            return False
        return all(box[axis] > 0 and box[axis] % self.tile[axis] == 0
                   and self.missing.shape[axis] - box[axis] < 2 * self.tile[axis] for axis in axes)


def report(unwritten: Iterable[UnwrittenResult]) -> None:
    """Issues a warning, or raises the error, for each unwritten result that has one.

    In a script for CUDA a result of which no element is written gets a warning: on a GPU it is uninitialised memory, which such
    scripts do not use.

    Raises:
        TileError: T410, a part of a result is never written.
    """
    for result in unwritten:
        error = result.error()
        unused = error is not None and bool(result.missing.all()) and environment.GPU.is_on()
        if error is not None and not unused:
            raise error
        if warning := describe(result.parameter.name, result.missing) if unused else result.warning():
            place = user_location() or result.parameter.location
            warnings.warn_explicit(warning, TileWarning, place.file, place.line)


def find(parameters: Sequence[Parameter], outputs: Collection[int], effects: Mapping[int, ParameterEffect],
         effects_of_launches: Sequence[Mapping[int, ParameterEffect]], launch: AnyLaunch, call: BoundCall
         ) -> Iterator[UnwrittenResult]:
    """Yields the results of a call that have unwritten elements.

    These are arrays that the call allocates and returns, and arrays of the caller that the kernel writes before it reads them.

    Args:
        parameters: the kernel's parameters.
        outputs: the positions of the parameters that a call returns.
        effects: the accesses of the kernel to the parameters.
        effects_of_launches: the accesses of each launch (``T.Kernel``) of the kernel to the parameters.
        launch: a run or a trace of the call. Nothing is yielded for a trace of only some of the blocks.
        call: the bound arguments.
    """
    from tilelang_npu.simulator.result.call_launches import written

    if any(len(part.recorded.blocks) < part.recorded.count for part in launch.parts):
        return
    count = len(effects_of_launches)
    for position in sorted({*outputs, *effects}):
        allocated = position in outputs and position in call.made
        array, effect = call.values[position], effects.get(position, ParameterEffect())
        if not isinstance(array, np.ndarray):
            continue
        if allocated and DType(array.dtype).is_float and not has_nan(array):
            continue  # it was allocated with NaN in all elements, so all are written; this is faster than asking the machine
        # The first launch that reads the array: only the launches before it are expected to write all of it.
        reader = next((number for number, one in enumerate(effects_of_launches)
                       if position in one and one[position].reads), count)
        if not allocated:
            if effect.reads and reader == count:
                continue  # it is read outside of the launches
            if not any(position in one and one[position].writes for one in effects_of_launches[:reader]):
                continue
        parts = launch.parts if allocated else launch.parts[:reader]
        missing = ~written(parts, position)
        if missing.any():
            yield UnwrittenResult(parameters[position], effect.tile, missing, allocated,
                                  any(part.chooses(position) for part in parts), any(part.adds(position) for part in parts),
                                  effect.sliced, effect.fixed)


def overwritten(parameters: Sequence[Parameter], outputs: Iterable[int], effects: Mapping[int, ParameterEffect],
                programs: Iterable[Program], call: BoundCall) -> frozenset[int]:
    """Returns the positions of the results that later calls with the same sizes need not initialise.

    These are results of at least 1 MiB that the call allocated and the kernel never reads. A later call with the same sizes
    also writes all of their elements, unless the elements of arrays decide which elements are written: then nothing is
    returned.

    Args:
        parameters: the kernel's parameters.
        outputs: the positions of the parameters that a call returns.
        effects: the accesses of the kernel to the parameters.
        programs: the programs of the kernel's launches.
        call: a call that wrote all elements of its results.
    """
    large = [position for position in outputs if position in call.made and call.values[position].nbytes >= _LARGE
             and parameters[position].dtype in _FLOATS and not effects[position].reads]
    return frozenset(large) if large and all(program.data_free for program in programs) else frozenset()


def describe(name: str, missing: Array) -> str:
    """Returns a sentence that says which elements of a tensor are unwritten.

    The sentence lists whole rows and columns if only whole ones are unwritten.

    Args:
        name: the tensor's name.
        missing: a Boolean mask of the unwritten elements.
    """
    if missing.all():
        return f"{name} is never written: nothing is stored to any of its {missing.size} elements"
    whole = [np.flatnonzero(missing.all(axis=_others(missing, axis))) for axis in range(missing.ndim)]
    rest = missing.copy()
    for axis, indices in enumerate(whole):
        rest[(slice(None),) * axis + (indices,)] = False
    count = f"{missing.sum()} of {missing.size} elements"
    if not rest.any():
        parts = [f"{_noun(axis, missing.ndim)} {_ranges(indices)}" for axis, indices in enumerate(whole) if indices.size]
        return f"{' and '.join(parts)} of {name} are never written" + (f": {count}" if missing.ndim > 1 else "")
    within = [f"{_noun(axis, missing.ndim)} {_ranges(np.flatnonzero(missing.any(axis=_others(missing, axis))))}"
              for axis in range(missing.ndim)]
    first = [int(index[0]) for index in np.nonzero(missing)]
    return f"{count} of {name} are never written, in {' and '.join(within)}; the first at {first}"


def _others(array: Array, axis: int) -> tuple[int, ...]:
    return tuple(other for other in range(array.ndim) if other != axis)


def _ranges(indices: NDArray[np.intp]) -> str:
    """Returns a text of sorted indices as ranges, of which the first are listed."""
    runs = np.split(indices, np.flatnonzero(np.diff(indices) != 1) + 1)
    listed = [f"{run[0]}..{run[-1]}" if run.size > 1 or len(runs) == 1 else f"{run[0]}" for run in runs[:_MAX_RANGES]]
    more = sum(run.size for run in runs[_MAX_RANGES:])
    return ", ".join(listed) + (f" and {more} more" if more else "")


def _written_box(missing: Array) -> Shape:
    """Returns the sizes of the smallest box at the origin that contains all written elements."""
    box = []
    for axis in range(missing.ndim):
        indices = np.flatnonzero((~missing).any(axis=_others(missing, axis)))
        box.append(int(indices[-1]) + 1 if indices.size else 0)
    return tuple(box)


def _noun(axis: int, rank: int) -> str:
    if rank == 1:
        return "elements"
    if rank == 2:
        return ("rows", "columns")[axis]
    return f"indices of axis {axis}"
