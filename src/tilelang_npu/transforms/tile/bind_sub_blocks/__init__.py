"""Divides the rows of tiles in UB between the Vector cores of a block, where the author did not do so.

A kernel ``T.Kernel(..., threads=2)`` has no index of the Vector core (the sub-block index): its buffers in UB are whole tiles.
Each buffer is replaced by one with half of the rows, if each row of a result depends on the same row of the operands only
(:mod:`.division`). A load or a store then accesses the half of the tile in GM or L1 that belongs to the Vector core, a copy
from L0C sends each Vector core its half, and a loop over the rows runs over half of them. A buffer that cannot be divided (its
rows are reduced, sorted, or accessed at computed indices) stays whole, and both Vector cores compute all of it. If no buffer
can be divided, or if the Vector cores load data from GM that they stored there, one Vector core does all the work.

On a chip with n Vector cores for each Cube core, a tile is divided into n parts, or into fewer if n does not divide its number
of rows. On a chip with one, nothing is divided.

A kernel of both kinds of cores that states neither a sub-block index nor a number of threads is divided too (option ``mixed``),
unless it has flags, scopes or debug output of the author; then one Vector core does all the work.

The pass runs on the tile dialect once memories are known. AscendNPU-IR has a pass of this name that divides tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.analysis.accesses import accesses_within
from tilelang_npu.analysis.buffers import root_of, space_of, walk
from tilelang_npu.analysis.cores import core_of, put_core
from tilelang_npu.analysis.locations import copy_location, line_of, location_of, refuse
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.target import Chip
from tilelang_npu.transforms.infra.optimisations import Refusal
from tilelang_npu.transforms.tile.bind_sub_blocks.division import (
    NAME,
    RowDivision,
    is_arange,
    is_copy_from_cube,
    parts_begin_at_blocks,
)
from tilelang_npu.transforms.tile.bind_sub_blocks.rows import INDEX_OPS, Rows, rows_of

_Kept = tuple[Operation, Refusal] | None
"""An operation that prevents a division, and why; None where no operation does."""
_ROW_OPERANDS = {memref.LoadOp: 1, memref.StoreOp: 2, tile.RegionOp: 1}
"""Which operand of an op is the row."""


class _Binding:
    """Rewrites a launch so that each Vector core computes its part of the divided buffers."""

    def __init__(self, division: RowDivision) -> None:
        self.division = division
        self.parts = division.parts
        self.launch = division.launch
        self.sub_block = self.launch.body.block.insert_arg(IndexType(), len(self.launch.body.block.args))
        self.sub_block.name_hint = "vid"
        self.launch.properties["explicit_sub_block"] = UnitAttr()

    def rewrite(self) -> None:
        division, block = self.division, self.launch.body.block
        ops = list(walk(block))
        places = {(op, use.index): division.rows_of_access(use) for op in ops for use in effects_of(op)
                  if root_of(use.value) in division.divided}
        self.views = {op: rows_of(op.result, division.ranges, self.parts) for op in ops if isinstance(op, tile.ViewOp)
                      and root_of(op.result) in division.divided}
        shared = [op for op in ops if isinstance(op, (tile.CopyOp, tile.CallOp)) and self._stores_whole_buffer(op)]
        around = {op: division.halved_loop_around(op) for op in ops}
        for loop in division.loops:
            self._halve_loop(loop)
        for op in ops:
            halves = [index for found, index in places if found is op]
            if halves and around[op] is None and not isinstance(op, (memref.LoadOp, memref.StoreOp)):
                self._slice_whole_operands(op, places)
                if isinstance(op, tile.CallOp) and is_arange(op):
                    self._shift_arange(op)
        for buffer in division.divided:
            self._halve_buffer(buffer)
        for copy in shared:
            self._divide_store(copy)

    def _stores_whole_buffer(self, op: tile.CopyOp | tile.CallOp) -> bool:
        """Whether a copy stores a whole buffer, so that both cores would store the same."""
        if isinstance(op, tile.CallOp):
            return any(use.writes and space_of(root_of(use.value)) == "gm" for use in effects_of(op))
        source = root_of(op.source)
        return (space_of(source) == "ub" and space_of(root_of(op.target)) != "ub" and source not in self.division.divided
                and self.division.halved_loop_around(op) is None)

    def _first_row_of_half(self, rows: int, before: Operation) -> SSAValue:
        """Emits, before an operation, the first row of this core's half."""
        constant = arith.ConstantOp(IntegerAttr(rows, IndexType()))
        product = arith.MuliOp(self.sub_block, constant.result)
        for made in (constant, product):
            copy_location(before, made)
            Rewriter().insert_op(made, InsertPoint.before(before))
        return product.result

    def _halve_loop(self, loop: scf.ForOp) -> None:
        """Makes a loop run over half of the rows; an index that is not into a half becomes the row of the whole tile."""
        count = self.division.ranges.constant(loop.ub)
        assert count is not None
        end = arith.ConstantOp(IntegerAttr(count // self.parts, IndexType()))
        copy_location(loop, end)
        Rewriter().insert_op(end, InsertPoint.before(loop))
        loop.operands[1] = end.result
        head, variable = loop.body.block.first_op, loop.body.block.args[0]
        assert head is not None
        uses = list(variable.uses)
        first = self._first_row_of_half(count // self.parts, head)
        row = arith.AddiOp(variable, first)
        copy_location(head, row)
        Rewriter().insert_op(row, InsertPoint.before(head))
        for use in uses:
            self._use_tile_row(use.operation, use.index, row.result)

    def _use_tile_row(self, op: Operation, index: int, row: SSAValue) -> None:
        """Makes an operand the row of the whole tile, except where it leads to an index into a half."""
        if self._is_row_of_half(op, index):
            return
        if not isinstance(op, INDEX_OPS) or not any(self._is_row_of_half(use.operation, use.index)
                                                    for use in op.results[0].uses):
            op.operands[index] = row
            return
        other = op.clone()
        other.operands[index] = row
        copy_location(op, other)
        Rewriter().insert_op(other, InsertPoint.after(op))
        for use in list(op.results[0].uses):
            self._use_tile_row(use.operation, use.index, other.results[0])

    def _is_row_of_half(self, op: Operation, index: int) -> bool:
        """Whether an operand is the row index of an access to a divided buffer."""
        first = next((place for kind, place in _ROW_OPERANDS.items() if isinstance(op, kind)), None)
        if index != first:
            return False
        place = op.operands[1] if isinstance(op, memref.StoreOp) else op.operands[0]
        dynamic = not isinstance(op, tile.RegionOp) or not isinstance(op.mixed_offsets()[0], int)
        return dynamic and root_of(place) in self.division.divided

    def _slice_whole_operands(self, op: Operation, places: dict[tuple[Operation, int], Rows | None]) -> None:
        """Makes an operation on halves take this core's rows of its other operands, which have all rows. A copy from the Cube
        core sends each half to its core.
        """
        if isinstance(op, tile.CopyOp) and is_copy_from_cube(op):
            op.properties["halves"] = UnitAttr()
            return
        uses = list(effects_of(op))
        mine = next(place for (found, _), place in places.items() if found is op and place is not None)
        axis = mine.axis
        halved = next(use for use in uses if (op, use.index) in places)
        assert axis is not None
        rows = tile.shape_of(halved.value)[axis]
        for use in uses:
            if (op, use.index) not in places and tile.shape_of(use.value)[axis] == rows:
                op.operands[use.index] = self._half_region(use.value, axis, op)

    def _shift_arange(self, op: tile.CallOp) -> None:
        """Makes an ``arange`` count from the first row of this core's half."""
        (target,) = op.outputs
        rows = self.division.rows_of_access(next(use for use in effects_of(op) if use.value is target))
        assert rows is not None and rows.axis is not None
        first_row = self._first_row_of_half(tile.shape_of(target)[rows.axis] // self.parts, op)
        rows_before = arith.MuliOp(first_row, op.inputs[1 + rows.axis])
        first = arith.AddiOp(op.inputs[0], rows_before.result)
        for made in (rows_before, first):
            copy_location(op, made)
            Rewriter().insert_op(made, InsertPoint.before(op))
        op.operands[0] = first.result

    def _half_region(self, value: SSAValue, axis: int, before: Operation) -> SSAValue:
        """Emits the region of a value that is this core's half along an axis."""
        shape = list(tile.shape_of(value))
        offsets: list[SSAValue | int] = [0] * len(shape)
        offsets[axis] = self._first_row_of_half(shape[axis] // self.parts, before)
        sizes: list[SSAValue | int] = list(shape)
        for position, size in enumerate(shape):
            if size < 0:
                sizes[position] = _emit_dim(value, position, before)
        sizes[axis] = shape[axis] // self.parts
        made = tile.RegionOp(value, offsets, sizes)
        copy_location(before, made)
        Rewriter().insert_op(made, InsertPoint.before(before))
        return made.results[0]

    def _divide_store(self, op: tile.CopyOp | tile.CallOp) -> None:
        """Makes each core store half of a buffer that both have; where it has no aligned half, the first core stores all."""
        shape = tile.shape_of(op.source) if isinstance(op, tile.CopyOp) else ()
        axis = next((axis for axis, size in enumerate(shape)
                     if size > 0 and size % self.parts == 0 and parts_begin_at_blocks(op.operands[0], axis, self.parts)), None)
        if axis is not None and isinstance(op, tile.CopyOp):
            op.operands[0] = self._half_region(op.source, axis, op)
            op.operands[1] = self._half_region(op.target, axis, op)
            return
        zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
        first = arith.CmpiOp(self.sub_block, zero.result, "eq")
        inner = Block()
        branch = scf.IfOp(first.result, [], [inner])
        put_core(branch, core_of(op))
        for made in (zero, first, branch):
            copy_location(op, made)
            Rewriter().insert_op(made, InsertPoint.before(op))
        parent = op.parent_block()
        assert parent is not None
        parent.detach_op(op)
        inner.add_ops([op, scf.YieldOp()])

    def _halve_buffer(self, buffer: SSAValue) -> None:
        """Gives an allocation, and every view of it, half the rows."""
        kind = buffer.type
        assert isinstance(kind, MemRefType)
        shape = list(kind.get_shape())
        shape[0] //= self.parts
        pending = [Rewriter.replace_value_with_new_type(
            buffer, MemRefType(kind.element_type, shape, kind.layout, kind.memory_space))]
        while pending:
            source = pending.pop()
            for use in list(source.uses):
                view = use.operation
                if isinstance(view, tile.RegionOp):
                    sizes = view.mixed_sizes()
                    have = tile.shape_of(source)
                    cut = [min(size, limit) if isinstance(size, int) and limit > 0 else size
                           for size, limit in zip(sizes, have, strict=True)]
                    made: Operation = tile.RegionOp(source, view.mixed_offsets(), cut, view.kept.get_values())
                elif isinstance(view, tile.ViewOp):
                    made = tile.ViewOp(source, _half_view_type(view, self.views[view], self.parts))
                else:
                    continue
                copy_location(view, made)
                Rewriter().replace_op(view, made)
                pending.append(made.results[0])


def _emit_dim(value: SSAValue, axis: int, before: Operation) -> SSAValue:
    position = arith.ConstantOp(IntegerAttr(axis, IndexType()))
    made = memref.DimOp.from_source_and_index(value, position.result)
    for op in (position, made):
        copy_location(before, op)
        Rewriter().insert_op(op, InsertPoint.before(before))
    return made.result


def _half_view_type(view: tile.ViewOp, rows: Rows | None, parts: int) -> MemRefType[Attribute]:
    """Returns the type of a view of a buffer that now has a part of its rows."""
    kind = view.result.type
    assert isinstance(kind, MemRefType)
    shape = list(kind.get_shape())
    if rows is not None and rows.axis is not None and rows.loop is None:
        shape[rows.axis] //= parts
    return MemRefType(kind.element_type, shape, kind.layout, kind.memory_space)


def _run_on_first_core(launch: tile.LaunchOp) -> None:
    """Puts all work into a branch of the first Vector core: a kernel without Cube work is launched on all of a block."""
    block = launch.body.block
    half = block.insert_arg(IndexType(), len(block.args))
    half.name_hint = "vid"
    launch.properties["explicit_sub_block"] = UnitAttr()
    inner = Block()
    for op in list(block.ops):
        block.detach_op(op)
        inner.add_op(op)
    inner.add_op(scf.YieldOp())
    zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
    first = arith.CmpiOp(half, zero.result, "eq")
    branch = scf.IfOp(first.result, [], [inner])
    put_core(branch, "either")
    for made in (zero, first, branch):
        copy_location(launch, made)
        block.add_op(made)


def _has_cube_work(launch: tile.LaunchOp) -> bool:
    return any(core_of(op) == "AIC" for op in walk(launch.body.block))


def _has_vector_work(launch: tile.LaunchOp) -> bool:
    return any(space_of(root_of(use.value)) == "ub" for use in accesses_within(launch))


def _find_author_order(launch: tile.LaunchOp) -> Operation | None:
    """Returns an operation by which the author orders or assigns work; None where there is none."""
    ordered = (tile.OnCoreOp, tile.SignalOp, *tile.DEBUG_OUTPUT_OPS)
    return next((op for op in walk(launch.body.block) if isinstance(op, ordered) or op.name.startswith("hivm.")), None)


def _find_best_division(launch: tile.LaunchOp, chip: Chip, *, asked: bool) -> tuple[RowDivision, _Kept]:
    """Returns the division among the most Vector cores that keeps the fewest buffers whole, and the operation that prevents the
    division, if any.

    A kernel of Vector cores alone is launched with as many blocks for each point of the grid as it asks for. A tile that
    fixpipe stores to UB is divided among no more Vector cores than one op of fixpipe reaches.
    """
    most = launch.sub_blocks.value.data if asked else chip.aiv_per_aic
    sends = any(isinstance(op, tile.CopyOp) and is_copy_from_cube(op) for op in walk(launch.body.block))
    counts = [parts for parts in range(most, 1, -1) if not sends or parts <= max(2, chip.features.fixpipe_splits)]
    if asked and not _has_cube_work(launch):
        counts = [most]
    best: tuple[RowDivision, _Kept] | None = None
    for parts in counts:
        division = RowDivision(launch, Ranges(), parts)
        division.find_divided()
        kept = (division.find_unaligned_half() or division.find_reload_from_gm()) if division.divided else None
        if best is None or (kept is None, len(division.divided)) > (best[1] is None, len(best[0].divided)):
            best = division, kept
    assert best is not None
    return best


def _check_ratio(launch: tile.LaunchOp, chip: Chip) -> None:
    """Refuses a kernel of both cores whose author counts more Vector cores of a block than the chip has.

    Raises:
        TileError: T150, there are more.
    """
    wanted, have = launch.sub_blocks.value.data, chip.aiv_per_aic
    if launch.explicit_sub_block is not None and wanted > have and _has_cube_work(launch) and _has_vector_work(launch):
        index = launch.body.block.args[-1].name_hint or "the index of the Vector core"
        raise refuse(launch, f"{index} counts {wanted} Vector cores of a block, and {chip.name} has {have} Vector"
                     f" core{'s' * (have > 1)} for each Cube core", "T150",
                     help="write whole tiles without the index, T.Kernel(...) as (cid, _), which the compiler divides between"
                     f" the Vector cores that there are; or compile for a chip with {wanted} of them for each Cube core")


@dataclass(frozen=True)
class BindSubBlocks(ModulePass):
    """Divides the rows of tiles in UB between the Vector cores of a block, where the author did not do so.

    Attributes:
        chip: the name of the chip, which determines how many Vector cores a block has.
        mixed: whether to divide also kernels of both kinds of cores that do not ask for it by ``threads``.
        enabled: whether to divide; if false, one of the Vector cores does all the work.
    """

    name = NAME
    chip: str = chips.DEFAULT
    mixed: bool = True
    enabled: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = chips.chip(self.chip)
        for launch in [inner for inner in op.walk() if isinstance(inner, tile.LaunchOp)]:
            _check_ratio(launch, chip)
            asked = launch.properties.pop("spread", None) is not None and launch.sub_blocks.value.data > 1
            may_divide = self.mixed and launch.explicit_sub_block is None and _has_cube_work(launch)
            ordered = None if asked else _find_author_order(launch)
            if chip.aiv_per_aic == 1:
                continue
            if asked or (may_divide and ordered is None):
                self._divide_launch(op, launch, chip, asked=asked)
            elif may_divide and self.enabled and ordered is not None and _has_vector_work(launch):
                cores = "both Vector cores" if chip.aiv_per_aic == 2 else f"all {chip.aiv_per_aic} Vector cores"
                record_refusal(op, self.name, location_of(ordered),
                               f"one Vector core does all work: {line_of(ordered)} prints, synchronises or is in a T.Scope",
                               f"leave order and cores to the compiler, or ask for {cores}: "
                               f"T.Kernel(..., threads={chip.aiv_per_aic})")

    def _divide_launch(self, module: ModuleOp, launch: tile.LaunchOp, chip: Chip, *, asked: bool) -> None:
        """Divides the work of a launch, where possible."""
        division, kept = _find_best_division(launch, chip, asked=asked)
        if self.enabled:
            division.report_whole_buffers(module)
        if self.enabled and division.divided and kept is None:
            launch.sub_blocks = IntegerAttr(division.parts, i64)
            owners = [buffer.owner for buffer in division.divided]
            names = sorted({owner.label.data for owner in owners if isinstance(owner, tile.AllocOp)})
            share = "half" if division.parts == 2 else f"one of {division.parts} parts"
            record_done(module, self.name, None, f"each Vector core has {share} of the rows of {', '.join(names)}")
            _Binding(division).rewrite()
            return
        if self.enabled and kept is not None:
            where, why = kept
            record_refusal(module, self.name, location_of(where), f"one Vector core does all work: {why.why}", why.edit)
        if asked and not _has_cube_work(launch):
            _run_on_first_core(launch)
        elif launch.sub_blocks.value.data > 2:
            launch.sub_blocks = IntegerAttr(1, i64)  # no other core works, so nothing is sent to one
