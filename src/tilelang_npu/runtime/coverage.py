"""Results that a call left unwritten.

A grid made with ``//`` where the tile does not divide the size leaves a strip of the result untouched, and nothing else shows
it: the values there are whatever the memory held. So what was written of each result is looked at after a run, or a check.

The rule: each element of an array that the call allocates and returns (``out_idx``) is stored to in the call, or it is an
error, T410. Adding to an element (``T.atomic_add``) is no storing. Where data decide what is stored (the place, a branch or a
loop around it), only the caller can know what was to be: it is a warning. The caller's own array holds something where the
kernel stores nothing. It may be meant, but for a strip at the end that is narrower than the tiles and that no data chose: that
is a warning. So is a kernel that reads arrays, stores to none and prints nothing: a copy is missing, or goes the wrong way.
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
from tilelang_npu.runtime.log import TileWarning
from tilelang_npu.runtime.tensors import Array
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from tilelang_npu.frontend import Parameter
    from tilelang_npu.runtime.binding import BoundCall
    from tilelang_npu.simulator import AnyLaunch, Program

__all__ = ["LeftOut", "ParameterEffect", "described", "effects", "has_nan", "is_complete", "left_out", "tell",
           "tell_without_result", "without_result"]

Shape = tuple[int, ...]
RUNS = 4
"""Runs of indices that a message names."""


@dataclass
class ParameterEffect:
    """What a kernel does to one parameter.

    Attributes:
        reads: whether it reads elements of it.
        writes: whether it writes elements of it.
        tile: largest store, per axis; None where a size is known at run time only, or elements are stored one by one.
    """

    reads: bool = False
    writes: bool = False
    tile: Shape | None = None


def effects(kernel: Operation) -> Mapping[int, ParameterEffect]:
    """What a kernel does to its parameters, by position.

    Args:
        kernel: its function in the tile dialect, or one of the launches in it.
    """
    from xdsl.dialects import func
    from xdsl.ir import BlockArgument

    from tilelang_npu.dialects.ir.effects import effects_of
    from tilelang_npu.transforms.ir.buffers import root_of

    found: dict[int, ParameterEffect] = {}
    stores: dict[int, list[Shape | None]] = {}
    for op in kernel.walk():
        for use in effects_of(op):
            root = root_of(use.value)
            if isinstance(root, BlockArgument) and isinstance(root.block.parent_op(), func.FuncOp):
                effect = found.setdefault(root.index, ParameterEffect())
                effect.reads |= use.reads
                effect.writes |= use.writes
                if use.writes:
                    stores.setdefault(root.index, []).append(None if use.role == "scalar" else _stored(use.value))
    for position, shapes in stores.items():
        known = [shape for shape in shapes if shape is not None]
        if len(known) == len(shapes):
            found[position].tile = tuple(max(axis) for axis in zip(*known, strict=True))
    return found


def without_result(kernel: Callable[[], Operation], effects: Mapping[int, ParameterEffect]) -> bool:
    """Whether a kernel reads arrays, and nothing that it makes of them is seen.

    Args:
        kernel: gives its function in the tile dialect, where that has to be looked at.
        effects: what it does to its parameters.
    """
    if any(effect.writes for effect in effects.values()) or not any(effect.reads for effect in effects.values()):
        return False
    from tilelang_npu.dialects import hivm, tile

    shows = (tile.PrintOp, tile.PrintfOp, tile.DumpOp,
             hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp)  # one that tries out flags between the cores shows what they do
    return not any(isinstance(op, shows) for op in kernel().walk())


def tell_without_result(name: str, parameters: Sequence[Parameter], kernel: Callable[[], Operation],
                        effects: Mapping[int, ParameterEffect]) -> None:
    """Warn of a kernel of which nothing is seen, where it is called.

    Args:
        name, parameters: of the kernel.
        kernel, effects: as above.
    """
    if without_result(kernel, effects):
        place = user_location() or parameters[0].location
        warnings.warn_explicit(f"{name} stores to none of {', '.join(one.name for one in parameters)}: nothing is seen of what "
                               "it computes; T.copy(tile, tensor) stores a tile, its destination stands last", TileWarning,
                               place.file, place.line)


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
        if array.dtype == np.float32 and array.size:
            return bool(np.isnan(array.min()))  # the least of numbers of which one is none, is none; nothing is allocated
        return bool(DType(array.dtype).is_float and np.isnan(array).any())


@dataclass(frozen=True)
class LeftOut:
    """A parameter of which a call left something unwritten.

    Attributes:
        parameter: the parameter.
        tile: largest store of the kernel to it, per axis; None where that is known at run time only.
        missing: true where nothing was written, in the parameter's shape.
        allocated: whether the call allocated the array and returns it: nothing is in it before.
        chosen: whether data decide what is written.
        added: whether the kernel adds to elements of it, which writes none.
    """

    parameter: Parameter
    tile: Shape | None
    missing: Array
    allocated: bool
    chosen: bool = False
    added: bool = False

    def error(self) -> TileError | None:
        """T410 where the array is a result, and what is written of it the same for all data."""
        if not self.missing.any() or not self.allocated or self.chosen:
            return None
        if self._is_strip() and any(self.missing.shape[axis] % tile for axis, tile in zip(*self._short(), strict=True)):
            return _floored(self.parameter, self.missing.shape, _box(self.missing), self._short()[0])
        notes = ["adding to an element (T.atomic_add) is no storing: what it is added to is nothing"] if self.added else []
        return TileError(described(self.parameter.name, self.missing), code="T410", location=self.parameter.location,
                         notes=notes, help=_OWN)

    def warning(self) -> str:
        """What to say where it may be meant: what data leave out of a result, a strip of the caller's array; or nothing."""
        told = self.chosen if self.allocated else not self.chosen and self._is_strip()
        if not self.missing.any() or not told:
            return ""
        reason = "; what is written depends on data" if self.chosen else ""
        return f"{described(self.parameter.name, self.missing)}{reason} ({self.parameter.location})"

    def _short(self) -> tuple[list[int], list[int]]:
        """The axes at whose end something is missing all along, with the tile's sizes there; none without a tile."""
        box = _box(self.missing)
        axes = [axis for axis, end in enumerate(box) if end < self.missing.shape[axis]]
        return (axes, [self.tile[axis] for axis in axes]) if self.tile is not None else ([], [])

    def _is_strip(self) -> bool:
        """Whether what is missing is what a grid leaves that was rounded down: less than a block at the end of axes."""
        box = _box(self.missing)
        axes, tiles = self._short()
        return bool(axes) and not self.missing[tuple(slice(end) for end in box)].any() and all(
            _is_remainder(self.missing.shape[axis], box[axis], tile) for axis, tile in zip(axes, tiles, strict=True))


def tell(left: Iterable[LeftOut]) -> None:
    """Raise what is an error of what a call left out, and warn of the rest where it is called.

    Args:
        left: of each parameter.

    Raises:
        TileError: T410, a part of a result is never written.
    """
    for found in left:
        error = found.error()
        if error is not None:
            raise error
        if found.warning():
            place = user_location() or found.parameter.location
            warnings.warn_explicit(found.warning(), TileWarning, place.file, place.line)


def left_out(parameters: Sequence[Parameter], outputs: Collection[int], module: Mapping[int, ParameterEffect],
             each: Sequence[Mapping[int, ParameterEffect]], launch: AnyLaunch, call: BoundCall) -> Iterator[LeftOut]:
    """What a call left unwritten of its results, and of other arrays that it writes before it reads them.

    Args:
        parameters, outputs: of the kernel, and the positions that it returns.
        module, each: what the kernel and each of its launches do to the parameters.
        launch: what was launched, or traced; nothing is said of a trace that left blocks out.
        call: the arguments.
    """
    from tilelang_npu.simulator.result.call_launches import written

    if any(len(part.recorded.blocks) < part.recorded.count for part in launch.parts):
        return
    for position in sorted({*outputs, *module}):
        allocated = position in outputs and position in call.made
        array, effect = call.values[position], module.get(position, ParameterEffect())
        reader = next((number for number, one in enumerate(each) if position in one and one[position].reads), len(each))
        if not isinstance(array, np.ndarray) or (allocated and is_complete(array)):
            continue
        if not allocated:  # what one launch writes and a later one reads is a result too
            if effect.reads and reader == len(each):
                continue  # above the launches
            if not any(position in one and one[position].writes for one in each[:reader]):
                continue
        parts = launch.parts if allocated else launch.parts[:reader]
        missing = ~written(parts, position)
        if missing.any():
            yield LeftOut(parameters[position], effect.tile, missing, allocated,
                          any(part.chooses(position) for part in parts), any(part.adds(position) for part in parts))


LARGE = 1 << 20
"""Bytes of a result from which on it is worth while to know beforehand that all of it is written."""
_MARKED = ("float16", "bfloat16", "float32", "float64")
"""Types of which a NaN tells an element that nothing has written."""


def overwritten(parameters: Sequence[Parameter], outputs: Iterable[int], effects: Mapping[int, ParameterEffect],
                programs: Iterable[Program], call: BoundCall) -> frozenset[int]:
    """The large results that a call has allocated and written, of which it reads nothing: another call of these sizes writes
    all of them, too, if data decide nothing.

    Args:
        parameters, outputs: of the kernel, and the positions that it returns.
        effects: what the kernel does to the parameters.
        programs: its launches.
        call: a call that left nothing out.
    """
    large = [position for position in outputs if position in call.made and call.values[position].nbytes >= LARGE
             and parameters[position].dtype in _MARKED and not effects[position].reads]
    return frozenset(large) if large and all(program.data_free for program in programs) else frozenset()


_OWN = ("what out_idx names is allocated by the call and holds nothing: write all of it, or leave it out of out_idx and pass"
        " an array, which keeps what it holds where the kernel writes nothing")


def described(name: str, missing: Array) -> str:
    """Which part of a tensor is never written, in words: rows and columns as far as whole ones are missing."""
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
    """Indices in order as runs, the first few of them."""
    runs = np.split(indices, np.flatnonzero(np.diff(indices) != 1) + 1)
    said = [f"{run[0]}..{run[-1]}" if run.size > 1 or len(runs) == 1 else f"{run[0]}" for run in runs[:RUNS]]
    return ", ".join(said) + (f" and {sum(run.size for run in runs[RUNS:])} more" if len(runs) > RUNS else "")


def _box(missing: Array) -> Shape:
    """Sizes of the least box at the origin that holds all that was written."""
    return tuple(_extent(~missing, axis) for axis in range(missing.ndim))


def _extent(written: Array, axis: int) -> int:
    """One more than the last index of an axis at which anything was written."""
    hit = np.flatnonzero(written.any(axis=_others(written, axis)))
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
