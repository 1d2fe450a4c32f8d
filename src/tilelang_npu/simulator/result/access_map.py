"""Which bytes of a tensor in GM a launch, and one of its blocks, read or write, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.charts import Picture, picture
from tilelang_npu.display import Report
from tilelang_npu.errors import TileError
from tilelang_npu.simulator.machine.aliasing_arguments import MemoryRange
from tilelang_npu.simulator.machine.op_records import number_of
from tilelang_npu.simulator.run.gm_accesses import NO_BLOCK, GmAccess, GmAccesses

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.simulator.run.recorded_launch import BlockRun

MOST_ROWS, MOST_COLUMNS = 32, 96
"""The maximum number of cells of a picture in each direction; a cell of a larger tensor has several elements."""
MOST_ACCESSES = 100_000
"""The number of executed accesses from which on only some blocks are followed."""
MOST_BYTES = 1 << 30
"""The size of the largest tensor whose accesses are followed, in bytes."""
WIDTH, _ROW, _TITLE = 480, 6, 20
"""The width of a picture, the height of a row of cells, and that of the title, in units of the view box."""
_FRAME = 'fill="none" stroke="#e0663a" stroke-width="2"'


@dataclass(frozen=True, eq=False)
class AccessMap(Report):
    """The accesses of a launch to one tensor in GM, either its reads or its writes. Atomic updates count as both.

    Attributes:
        tensor: the name of the tensor.
        shape: the sizes of the tensor.
        written: whether the writes are counted; otherwise the reads.
        nbytes: the number of bytes of the tensor.
        blocks: the number of blocks whose accesses are counted.
        of: the number of blocks of the launch; greater than ``blocks`` if the launch has too many accesses to follow them all.
        block: the number of the block that is counted by itself.
        accessed: the number of bytes that at least one of the blocks accesses.
        moved: the number of bytes of all accesses of the blocks; bytes that are accessed twice count twice.
        shared: the number of bytes that several of the blocks access.
        most: how often the byte is accessed that is accessed most often.
        own_accessed: the number of bytes that block ``block`` accesses.
        own_moved: the number of bytes of all accesses of this block.
        times: for each cell of the picture, how often its bytes are accessed, on average over its bytes.
        own: for each cell of the picture, the share of its bytes that block ``block`` accesses, from 0 to 1.
    """

    tensor: str
    shape: tuple[int, ...]
    written: bool
    nbytes: int
    blocks: int
    of: int
    block: int
    accessed: int
    moved: int
    shared: int
    most: int
    own_accessed: int
    own_moved: int
    times: NDArray[np.float64]
    own: NDArray[np.float64]

    def __str__(self) -> str:
        verb = "written" if self.written else "read"
        size = " x ".join(map(str, self.shape))
        some = f" of {self.of}, the others are not counted" if self.of > self.blocks else ""
        never = self.nbytes - self.accessed
        parts = [f"{self.moved:,} of {self.nbytes:,} B {verb} by {self.blocks} blocks{some}"]
        if self.accessed:
            mean = self.moved / self.accessed
            most = f", at most {self.most}" if mean != self.most else ""
            parts.append(f"each of {self.accessed:,} B {_times(mean)}{most}")
        if never:
            parts.append(f"{never:,} B never")
        if self.shared:
            parts.append(f"{self.shared:,} B by several blocks")
        again = self.own_moved - self.own_accessed
        parts.append(f"block {self.block}: {self.own_accessed:,} B" + (f", {again:,} B of them again" if again else ""))
        return f"{self.tensor} [{size}]: {'; '.join(parts)}"

    def to_dict(self) -> dict[str, object]:
        """Returns the figures as a dict that JSON can hold, without the cells."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()
                if name not in ("times", "own")}

    def svg(self) -> str:
        """Returns the SVG of the tensor: a cell is darker the more often its bytes are accessed, and the cells of block
        ``block`` have a frame. The last axis of the tensor is horizontal, all others vertical."""
        rows, columns = self.times.shape
        wide, high = WIDTH / columns, rows * _ROW
        top = max(float(self.times.max()), 1e-9)
        alike = np.append(np.flatnonzero((self.times[1:] != self.times[:-1]).any(axis=1)) + 1, rows).tolist()
        shown = [f'<rect x="{start * wide:.1f}" y="{first * _ROW + _TITLE}" width="{(end - start) * wide:.1f}"'
                 f' height="{(last - first) * _ROW}" fill="#3b7dd8" opacity="{0.15 + 0.85 * times / top:.2f}"'
                 f"><title>{_times(times)}</title></rect>"
                 for first, last in zip([0, *alike], alike, strict=False) for start, end, times in _runs(self.times[first])
                 if times]
        shown += [f'<path class="own" {_FRAME} d="{_frame(self.own > 0, row, start, end, wide)}"/>'
                  for row in range(rows) for start, end, part in _runs(self.own[row] > 0) if part]
        frame = f'<path class="rule" fill="none" d="M0 {_TITLE}H{WIDTH}V{high + _TITLE}H0Z"/>'
        title = f"{self.tensor}, {'written' if self.written else 'read'}, at most {_times(self.most)}"
        return (f'<svg class="accesses" viewBox="0 0 {WIDTH} {high + _TITLE + 2}" shape-rendering="crispEdges" role="img"'
                f' aria-label="{escape(title)}"><text x="0" y="13">{escape(title)}</text>{"".join(shown)}{frame}</svg>')

    def picture(self) -> Picture:
        """Returns :meth:`svg` as a picture that a notebook shows, and whose method ``save(FILE)`` writes it to a file."""
        return picture(self.svg(), str(self))

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>{self.picture()}"


def access_map(launch: Launch, tensor: str, *, written: bool = False, block: int = 0, line: int | None = None) -> AccessMap:
    """Returns which bytes of a tensor a launch reads or writes.

    Args:
        launch: the launch.
        tensor: the name of the tensor in the kernel.
        written: whether the writes are counted; otherwise the reads.
        block: the number of the block that is counted by itself.
        line: the source line whose accesses are counted; None for all lines.

    Raises:
        TileError: T412, the launch does not access a tensor of this name in this way, has no such block, or the tensor is too
            large.
    """
    from tilelang_npu.simulator.result.profile.moved_bytes import argument_names

    recorded = launch.recorded
    accessed = {buffer for buffer, _ in launch.moved}
    names = {name: buffer for buffer, name in argument_names(launch).items() if buffer in accessed}
    array = recorded.bound.arrays[names[tensor]] if tensor in names else None
    if array is None:
        raise TileError(f"{launch.name} accesses no tensor {tensor!r}", code="T412", help=f"give one of {', '.join(names)}")
    buffer = names[tensor]
    if array.nbytes > MOST_BYTES:
        raise TileError(f"{tensor} has {array.nbytes:,} bytes: too many to follow their accesses", code="T412",
                        help=f"run the kernel on a tensor of at most {MOST_BYTES:,} bytes")
    if not any(run.block == block for run in recorded.blocks):
        raise TileError(f"the record of the launch has no block {block}", code="T412",
                        help=f"give one of the {len(recorded.blocks)} recorded blocks, such as {recorded.blocks[0].block}")
    records = [recorded.program.functions[index].records for index, _ in recorded.program.lanes]
    uses = GmAccesses(records, recorded.blocks, MemoryRange(0, array.nbytes, {buffer: 0}))
    uses.may_overlap()  # computes the grain
    found = _Count(uses, written, line).count(_followed(recorded.blocks, uses, block), block)
    if not found.moved:
        where = f" in line {line}" if line is not None else ""
        raise TileError(f"{launch.name} {'writes' if written else 'reads'} no byte of {tensor}{where}", code="T412",
                        help=f"ask for its {'reads' if written else 'writes'}: written={not written}")
    shape, itemsize = _shape_of(launch, buffer, array.nbytes)
    grain = uses.grain
    return AccessMap(
        tensor, shape, written, array.nbytes, found.blocks, launch.blocks, block,
        accessed=int(np.count_nonzero(found.times)) * grain, moved=int(found.times.sum()) * grain,
        shared=int(np.count_nonzero(found.several)) * grain, most=int(found.times.max()),
        own_accessed=int(np.count_nonzero(found.own)) * grain, own_moved=int(found.own.sum()) * grain,
        times=_cells(found.times, shape, itemsize, grain), own=_cells(found.own > 0, shape, itemsize, grain))


class _Count:
    """Counts how often each grain of a tensor is accessed.

    Args:
        uses: the accesses to the tensor.
        written: whether writes are counted; otherwise reads.
        line: the source line whose accesses are counted; None for all.

    Attributes:
        times: for each grain, how often the blocks access it.
        own: for each grain, how often the chosen block accesses it.
        several: for each grain, whether several blocks access it.
        blocks: the number of counted blocks.
    """

    def __init__(self, uses: GmAccesses, written: bool, line: int | None) -> None:
        self._uses, self._written, self._line = uses, written, line
        grains = len(uses.marks())
        self.times, self.own = np.zeros(grains, np.uint32), np.zeros(grains, np.uint32)
        self.several = np.zeros(grains, np.bool_)
        self.blocks = 0

    @property
    def moved(self) -> bool:
        """Whether anything was counted."""
        return bool(self.times.any())

    def count(self, runs: Sequence[BlockRun], block: int) -> _Count:
        """Counts the accesses of blocks, and those of block ``block`` by themselves; returns this object."""
        user = self._uses.marks()
        for run in runs:
            for use in self._uses.of(run):
                if not self._wanted(run, use):
                    continue
                self._uses.view(self.times, use)[...] += 1
                seen = self._uses.view(user, use)
                self._uses.view(self.several, use)[...] |= (seen != NO_BLOCK) & (seen != run.block)
                seen[...] = run.block
                if run.block == block:
                    self._uses.view(self.own, use)[...] += 1
        self.blocks = len(runs)
        return self

    def _wanted(self, run: BlockRun, use: GmAccess) -> bool:
        if not (use.access.writes if self._written else use.access.reads):
            return False
        if self._line is None:
            return True
        place = self._uses.records[use.lane][number_of(run.streams[use.lane][use.event])].location
        return place is not None and place.line == self._line


def _followed(blocks: Sequence[BlockRun], uses: GmAccesses, block: int) -> list[BlockRun]:
    """Returns the blocks to count: all, or every n-th and block ``block`` if there are too many accesses."""
    chosen = next(run for run in blocks if run.block == block)
    each = max(1, sum(1 for _ in uses.of(chosen)))
    step = -(-len(blocks) * each // MOST_ACCESSES)
    return [run for place, run in enumerate(blocks) if place % step == 0 or run is chosen]


def _shape_of(launch: Launch, buffer: int, nbytes: int) -> tuple[tuple[int, ...], int]:
    """Returns the sizes of a tensor and the bytes of an element; a workspace of unknown shape is a row of bytes."""
    bound = launch.recorded.bound
    for position, number in enumerate(bound.users):
        given = bound.given[position]
        if number == buffer and isinstance(given, np.ndarray):
            return given.shape or (1,), given.itemsize
    shape, element = bound.dims[buffer], bound.parameters[buffer].element
    if shape and prod(shape) * element.nbytes == nbytes:
        return tuple(shape), element.nbytes
    return (nbytes,), 1


def _cells(grains: NDArray[np.uint32] | NDArray[np.bool_], shape: tuple[int, ...], itemsize: int,
           grain: int) -> NDArray[np.float64]:
    """Returns the means of the grains' numbers over the cells of a picture.

    Args:
        grains: a number for each grain of the tensor.
        shape: the sizes of the tensor.
        itemsize: the bytes of an element.
        grain: the bytes of a grain.
    """
    row = shape[-1] * itemsize
    columns = row // grain if row % grain == 0 else 1 if grain % row == 0 else len(grains)
    table = grains[:len(grains) // columns * columns].reshape(-1, columns).astype(np.float64)
    for axis, most in ((0, MOST_ROWS), (1, MOST_COLUMNS)):
        size = table.shape[axis]
        parts = min(size, most)
        starts = np.arange(parts) * size // parts
        counts = np.diff(np.append(starts, size))
        table = np.add.reduceat(table, starts, axis=axis) / (counts[:, None] if axis == 0 else counts)
    return table


def _runs(values: NDArray[np.float64] | NDArray[np.bool_]) -> list[tuple[int, int, float]]:
    """Returns the runs of equal neighbours in a row: start, end and value."""
    ends = [*(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    return [(start, end, float(values[start])) for start, end in zip([0, *ends], ends, strict=False)]


def _frame(own: NDArray[np.bool_], row: int, start: int, end: int, wide: float) -> str:
    """Returns the path of the frame around a run of a block's cells in a row, without the sides to other cells of the block.

    Args:
        own: for each cell, whether it belongs to the block.
        row: the row.
        start, end: the first column of the run, and the one after its last.
        wide: the width of a cell.
    """
    top = row * _ROW + _TITLE
    parts = [f"M{start * wide:.1f} {top}v{_ROW}M{end * wide:.1f} {top}v{_ROW}"]
    for neighbour, y in ((row - 1, top), (row + 1, top + _ROW)):
        same = own[neighbour, start:end] if 0 <= neighbour < len(own) else np.zeros(end - start, np.bool_)
        parts += [f"M{(start + first) * wide:.1f} {y}h{(last - first) * wide:.1f}" for first, last, own_too in _runs(same)
                  if not own_too]
    return "".join(parts)


def _times(mean: float) -> str:
    return "once" if mean == 1 else f"{mean:.3g} times"
