"""Emits the loop over strips of a division."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.buffers import root_of, space_of, users_of
from tilelang_npu.analysis.live_ranges import successive_live_ranges
from tilelang_npu.analysis.locations import copy_location
from tilelang_npu.dialects import tile
from tilelang_npu.transforms.infra.split_allocation import split_allocation
from tilelang_npu.transforms.tile.split_tiles.strip_division import VIEWS, Division

_Insert = Callable[[Operation], None]


def emit_strips(division: Division, rows: int, stages: int) -> None:
    """Replaces the statements of a division by a loop over strips, and by one shorter strip for the rest.

    Args:
        division: the division.
        rows: the rows of a strip.
        stages: the ``num_stages`` of the loop.
    """
    last = division.statements[-1]

    def insert(op: Operation) -> None:
        Rewriter().insert_op(op, InsertPoint.before(last))

    full, rest = divmod(division.extent, rows)
    numbers = [_constant(value, division.statements[0], insert) for value in (0, full, 1, rows)]
    body = Block(arg_types=[IndexType()])
    body.args[0].name_hint = "strip"
    offset = arith.MuliOp(body.args[0], numbers[3])
    copy_location(division.statements[0], offset)
    body.add_op(offset)
    _Strip(division, rows, offset.result).emit(body.add_op)
    end = scf.YieldOp()
    body.add_op(end)
    around = scf.ForOp(numbers[0], numbers[1], numbers[2], [], Region(body))
    if stages > 1:
        around.attributes[tile.NUM_STAGES] = IntegerAttr(stages, i64)
    copy_location(division.statements[0], around, end)
    insert(around)
    if rest:
        _Strip(division, rest, _constant(full * rows, division.statements[0], insert)).emit(insert)
    for op in reversed(division.statements):
        Rewriter.erase_op(op)
    for buffer in division.shrunk:
        if not any(not isinstance(user, VIEWS) for user in users_of(buffer)) and buffer.owner.parent is not None:
            for view in reversed(list(users_of(buffer))):
                Rewriter.erase_op(view)
            assert isinstance(buffer.owner, Operation)
            Rewriter.erase_op(buffer.owner)


def _constant(value: int, source: Operation, insert: _Insert) -> SSAValue:
    made = arith.ConstantOp(IntegerAttr(value, IndexType()))
    copy_location(source, made)
    insert(made)
    return made.result


class _Strip:
    """Emits the statements of a division for one strip.

    Args:
        division: the division.
        rows: the rows of the strip.
        first: the first row.
    """

    def __init__(self, division: Division, rows: int, first: SSAValue) -> None:
        self.division, self.rows, self.first = division, rows, first
        self._values: dict[SSAValue, SSAValue] = {}
        self._allocations: list[tile.AllocOp] = []

    def emit(self, insert: _Insert) -> None:
        """Emits the buffers of the strip, and the statements."""
        for buffer in self.division.axes:
            owner = buffer.owner
            assert isinstance(owner, tile.AllocOp)
            if buffer in self.division.shrunk and not any(op.is_ancestor(owner) for op in self.division.statements):
                self._emit_alloc(owner, insert)
        for op in self.division.statements:
            self._emit(op, insert)
        # The values that a buffer holds one after the other in a strip can have their own bytes.
        for allocation in self._allocations:
            for life in successive_live_ranges(allocation, lambda statements: True, self.division.ranges):
                split_allocation(allocation, life)

    def _emit(self, op: Operation, insert: _Insert) -> None:
        if isinstance(op, tile.AllocOp) and op.result in self.division.shrunk:
            self._emit_alloc(op, insert)
        elif isinstance(op, VIEWS) and root_of(op.results[0]) in self.division.shrunk:
            return  # made where it is used
        elif op in self.division.points:
            assert isinstance(op, tile.ParallelOp)
            self._emit_parallel(op, insert)
        elif isinstance(op, scf.ForOp | scf.IfOp):
            around = op.clone_without_regions(self._values)
            for old, new in zip(op.regions, around.regions, strict=True):
                for block in old.blocks:
                    copied = Block(arg_types=block.arg_types)
                    for before, after in zip(block.args, copied.args, strict=True):
                        after.name_hint = before.name_hint
                        self._values[before] = after
                    for inner in block.ops:
                        self._emit(inner, copied.add_op)
                    new.add_block(copied)
            insert(around)
        else:
            operands = {index: self._strip_of(op, index, insert) for index in range(len(op.operands))
                        if (op, index) in self.division.operand_axes}
            made = op.clone(self._values)
            for index, operand in operands.items():
                made.operands[index] = operand
            insert(made)

    def _emit_alloc(self, op: tile.AllocOp, insert: _Insert) -> None:
        kind, axis = op.result.type, self.division.axes[op.result]
        assert isinstance(kind, MemRefType)
        made = tile.AllocOp(op.label.data, _with_size(kind, axis, self.rows))
        made.attributes.update(op.attributes)
        made.location = op.location
        insert(made)
        self._allocations.append(made)
        self._values[op.result] = made.result

    def _strip_of(self, op: Operation, index: int, insert: _Insert) -> SSAValue:
        """Emits the part of an operand that the strip has."""
        value, axis = op.operands[index], self.division.operand_axes[op, index]
        if root_of(value) in self.division.shrunk:
            return self._shrunk_view(value, insert)
        present = self._values.get(value, value)
        region = present.owner
        if space_of(value) == "gm" and isinstance(region, tile.RegionOp):
            inner = list(region.kept.get_values())[axis]
            offsets, sizes = region.mixed_offsets(), region.mixed_sizes()
            at = offsets[inner]
            if at == 0:
                offsets[inner] = self.first
            else:
                start = at if isinstance(at, SSAValue) else _constant(at, op, insert)
                added = arith.AddiOp(start, self.first)
                copy_location(op, added)
                insert(added)
                offsets[inner] = added.result
            sizes[inner] = self.rows
            made = tile.RegionOp(region.source, offsets, sizes, region.kept.get_values())
        else:
            shape: list[SSAValue | int] = list(tile.shape_of(value))
            for position, size in enumerate(tile.shape_of(value)):
                if size < 0:
                    number = _constant(position, op, insert)
                    extent = memref.DimOp.from_source_and_index(present, number)
                    copy_location(op, extent)
                    insert(extent)
                    shape[position] = extent.result
            starts: list[SSAValue | int] = [0] * len(shape)
            starts[axis], shape[axis] = self.first, self.rows
            made = tile.RegionOp(present, starts, shape)
        copy_location(op, made)
        insert(made)
        return made.result

    def _shrunk_view(self, value: SSAValue, insert: _Insert) -> SSAValue:
        """Emits a view of a buffer as the same view of the buffer that has one strip."""
        view = value.owner
        if isinstance(view, tile.AllocOp):
            return self._values[value]
        assert isinstance(view, VIEWS)
        source = self._shrunk_view(view.source, insert)
        root = root_of(value)
        if isinstance(view, tile.RegionOp):
            axis = self.division.operand_axis(view.source, self.division.axes[root])
            assert axis is not None
            sizes = [self._values.get(size, size) if isinstance(size, SSAValue) else size for size in view.mixed_sizes()]
            offsets = [self._values.get(at, at) if isinstance(at, SSAValue) else at for at in view.mixed_offsets()]
            sizes[axis] = self.rows
            made: Operation = tile.RegionOp(source, offsets, sizes, view.kept.get_values())
        else:
            axis = self.division.operand_axis(value, self.division.axes[root])
            kind = view.result.type
            assert axis is not None and isinstance(kind, MemRefType)
            made = tile.ViewOp(source, _with_size(kind, axis, self.rows))
        copy_location(view, made)
        made.results[0].name_hint = value.name_hint
        insert(made)
        return made.results[0]

    def _emit_parallel(self, op: tile.ParallelOp, insert: _Insert) -> None:
        axis, division = self.division.points[op], self.division
        extents = [self._values.get(size, size) if isinstance(size, SSAValue) else size for size in op.mixed_extents()]
        extents[axis] = self.rows
        body = Block(arg_types=[IndexType()] * len(extents))
        for before, after in zip(op.body.block.args, body.args, strict=True):
            after.name_hint = before.name_hint
            self._values[before] = after
        row = arith.AddiOp(body.args[axis], self.first)
        copy_location(op, row)
        body.add_op(row)
        self._values[op.body.block.args[axis]] = row.result
        pairs: list[tuple[Operation, Operation]] = []
        for inner in op.body.block.ops:
            made = inner.clone(self._values)
            body.add_op(made)
            pairs += zip(inner.walk(), made.walk(), strict=True)
        for old, new in pairs:
            if isinstance(old, memref.LoadOp | memref.StoreOp) and root_of(old.memref) in division.shrunk:
                position = division.operand_axis(old.memref, division.axes[root_of(old.memref)])
                assert position is not None
                place = 1 if isinstance(old, memref.StoreOp) else 0
                new.operands[place] = self._shrunk_view(old.memref, insert)
                new.operands[place + 1 + position] = body.args[axis]
            elif isinstance(old, tile.RegionOp) and root_of(old.source) in division.shrunk:
                position = division.operand_axis(old.source, division.axes[root_of(old.source)])
                assert position is not None and isinstance(new, tile.RegionOp)
                source = self._shrunk_view(old.source, insert)
                offsets = new.mixed_offsets()
                offsets[position] = body.args[axis]
                region = tile.RegionOp(source, offsets, new.mixed_sizes(), new.kept.get_values())
                copy_location(old, region)
                Rewriter().replace_op(new, region)
        made_loop = tile.ParallelOp(extents, Region(body))
        made_loop.attributes.update(op.attributes)
        made_loop.location = op.location
        insert(made_loop)


def _with_size(kind: MemRefType[Attribute], axis: int, size: int) -> MemRefType[Attribute]:
    shape = list(kind.get_shape())
    shape[axis] = size
    return MemRefType(kind.element_type, shape, kind.layout, kind.memory_space)


__all__ = ["emit_strips"]
