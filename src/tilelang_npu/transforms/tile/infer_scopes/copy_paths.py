"""Tells which copies between two memories a chip can execute as one operation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from tilelang_npu.analysis.buffers import covers_root
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.target import GM, Chip, Path
from tilelang_npu.target.chip_data import Space


@dataclass(frozen=True)
class CopyPaths:
    """The paths between the memories of a chip.

    Attributes:
        chip: the chip.
        between_cores: whether paths between memories of different cores may be used. They must not be used if the author uses
            the index of the Vector core: the tiles of the Vector cores then differ, and only a tile in GM can be sliced by the
            core that reads it.
    """

    chip: Chip
    between_cores: bool

    def has_path(self, source: Space, target: Space, value: SSAValue) -> bool:
        """Whether the chip has a path between two memories that can copy a value.

        A path limits the element type and, if it leads from one core to the other, the shape of the value.

        Args:
            source: the memory that is read.
            target: the memory that is written.
            value: a buffer or view with the element type and the shape of the copy.
        """
        kind = value.type
        assert isinstance(kind, MemRefType)
        path = self.chip.ways.get((source, target))
        if path is None or dtype_of(kind.element_type).bits > path.widest:
            return False
        if (source, target) == ("cc", "ub") and path.splits < min(2, self.chip.aiv_per_aic):
            return False  # through GM each Vector core takes its part of the tile
        return not self.chip.crosses(path) or (self.between_cores and _is_whole_blocks(value, path))

    def can_copy(self, op: tile.CopyOp, source: Space, target: Space) -> bool:
        """Whether one operation can execute a copy between two memories, including the copy's conversion of the element type.

        Args:
            op: the copy.
            source: the memory that is read.
            target: the memory that is written.
        """
        if not self.has_path(source, target, op.target):
            return False
        path = self.chip.ways[source, target]
        fits = not self.chip.crosses(path) or (covers_root(op.source) if source == "cc" else _is_whole_blocks(op.source, path))
        converts = _path_converts(op, path) if source == "cc" else self.chip.converts(path)
        return fits and (not converts_elements(op) or converts)

    def must_convert_in_ub(self, op: tile.CopyOp, targets: Iterable[Space]) -> bool:
        """Whether the conversion of a copy from L0C must take place in UB, because no path from L0C can do it.

        Args:
            op: the copy.
            targets: the memories of the copy's target; empty for a tensor. The workspace of a target on chip is ignored.
        """
        ends: list[Space] = [target for target in targets if target != GM] or [GM]
        paths = [path for target in ends if (path := self.chip.ways.get(("cc", target))) is not None]
        return bool(paths) and not any(_path_converts(op, path) for path in paths)


def _is_whole_blocks(value: SSAValue, path: Path) -> bool:
    """Whether a view is a matrix of whole blocks, or fractals, that begins at a block."""
    kind, shape = value.type, tile.shape_of(value)
    assert isinstance(kind, MemRefType)
    run = path.run // dtype_of(kind.element_type).nbytes
    steps = (path.rows, run) if path.rows > 1 else (1, run)
    if len(shape) != 2 or any(size < 0 or size % step for size, step in zip(shape, steps, strict=True)):
        return False
    view = value.owner
    if isinstance(view, tile.ViewOp):
        return False
    return not isinstance(view, tile.RegionOp) or (
        all(isinstance(offset, int) and offset % step == 0 for offset, step in zip(view.mixed_offsets(), steps, strict=False))
        and len(view.mixed_offsets()) == 2 and _is_whole_blocks(view.source, path))


def _path_converts(op: tile.CopyOp, path: Path) -> bool:
    """Whether a path itself has the conversion of a copy."""
    source, target = op.source.type, op.target.type
    assert isinstance(source, MemRefType) and isinstance(target, MemRefType)
    return (dtype_of(source.element_type).mlir, dtype_of(target.element_type).mlir) in path.converts


def converts_elements(op: tile.CopyOp) -> bool:
    """Whether the source and the target of a copy have different element types."""
    source, target = op.source.type, op.target.type
    assert isinstance(source, MemRefType) and isinstance(target, MemRefType)
    return bool(source.element_type != target.element_type)
