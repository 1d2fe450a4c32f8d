"""Divide the rows of Vector work between the two Vector cores of a block, where the author left that to the compiler.

``T.Kernel(..., threads=2)`` has no sub-block index: its buffers in UB are whole tiles. Each becomes half a tile, its first axis
divided, wherever that is the same program: what an operation does to a row depends on that row alone. A load or a store then
takes the half of the tile in GM or L1 that belongs to the sub-block, a copy from L0C gives each core its half, and a loop over
the rows runs over half of them. A buffer for which this does not hold (rows are reduced, accessed one by one at computed
places, sorted) stays whole, and both cores compute it alike. Where nothing can be divided, or the Vector cores read back from
GM what they wrote there, one of them does all work.

A kernel of both cores that names neither an index nor a number of threads is divided too (``mixed``), if it leaves all else to
the compiler as well: with flags, scopes or debug output of the author's, one Vector core does all work.

Runs on the tile dialect once memories are known, as AscendNPU-IR's pass of this name does on its tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import Unpinned
from tilelang_npu.dialects.ir.effects import Effect, effects_of
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.ir.remarks import Held, record_done, record_refusal
from tilelang_npu.target import BLOCK
from tilelang_npu.transforms.ir.buffers import root_of, space_of, users_of, walk
from tilelang_npu.transforms.ir.cores import core_of, put_core
from tilelang_npu.transforms.ir.locations import line_of, location_of, stand_in
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.sizes import sized
from tilelang_npu.transforms.tile.parallel.indices import MADE
from tilelang_npu.transforms.tile.rows import CHAIN, Rows, loop_over, rows_of

BY_HAND = "divide the work by hand: T.Kernel(...) as (cid, vid)"
_ROW = {memref.LoadOp: 1, memref.StoreOp: 2, tile.RegionOp: 1}
"""Which operand of an op is the row."""


@dataclass
class _Division:
    """Which buffers of a launch are divided; everything starts divided, and what does not hold is taken back.

    Attributes:
        divided: allocations in UB of which each core has half.
        loops: loops over rows that run over half of them.
        kept: why buffers stay whole.
    """

    launch: tile.LaunchOp
    ranges: Ranges
    divided: set[SSAValue] = field(default_factory=set)
    loops: set[scf.ForOp] = field(default_factory=set)
    kept: dict[SSAValue, Refusal] = field(default_factory=dict)

    def find(self) -> None:
        """Take back until everything left holds."""
        for op in walk(self.launch.body.block):
            if isinstance(op, tile.AllocOp) and space_of(op.result) == "ub":
                rows = [*tile.shape_of(op.result), 1][0]
                if rows == 1:  # both cores have it
                    continue
                self.divided.add(op.result)
                if op.address is not None:
                    self._whole(Refusal("its address is its author's", "leave the address to the compiler",
                                        Unpinned(location_of(op))), op.result)
                elif rows % 2:
                    self._whole(Refusal(f"its first axis has {rows} rows", "give it an even number of rows"), op.result)
        before = -1
        while before != len(self.divided):
            before = len(self.divided)
            self.loops = {rows.loop for op in walk(self.launch.body.block) for _, rows in self.halves(op)
                          if rows is not None and rows.loop is not None}
            for op in walk(self.launch.body.block):
                self._check(op)
            for loop in self.loops:
                if not self._is_by_rows(loop):
                    why = Refusal(f"the iterations of {line_of(loop)}, which take its rows in turn, touch more than these",
                                  "let an iteration touch its own row alone")
                    self._whole(why, *(root for op in loop.walk() for root, rows in self.halves(op)
                                  if rows is None or rows.loop is loop))

    def halves(self, op: Operation) -> Iterator[tuple[SSAValue, Rows | None]]:
        """The divided buffers that an operation uses, with their rows."""
        for use in effects_of(op):
            root = root_of(use.value)
            if root in self.divided:
                yield root, self.rows(use)

    def rows(self, use: Effect) -> Rows | None:
        """The rows of an operand; those of an element access by its first index."""
        if not isinstance(use.op, (memref.LoadOp, memref.StoreOp)):
            return rows_of(use.value, self.ranges)
        if isinstance(use.value.owner, (tile.RegionOp, tile.ViewOp)):
            return None
        loop = loop_over(use.op.indices[0], 1, tile.shape_of(use.value)[0], self.ranges)
        return None if loop is None else Rows(None, loop)

    def _whole(self, why: Refusal, *buffers: SSAValue) -> None:
        for buffer in buffers:
            if buffer in self.divided:
                self.kept[buffer] = why
        self.divided.difference_update(buffers)

    def tell(self, module: ModuleOp) -> None:
        """Say which of the author's buffers stay whole, and why."""
        for buffer, kept in self.kept.items():
            assert isinstance(buffer.owner, tile.AllocOp)
            if buffer.owner.label.data != MADE:
                record_refusal(module, BindSubBlocks.name, location_of(buffer.owner),
                               f"{sized(buffer)} is not divided between the Vector cores: {kept.why}", kept.edit,
                               Held((buffer.owner.label.data,), space_of(buffer)), change=kept.change)

    def _check(self, op: Operation) -> None:
        """Take back the operands of an operation that it cannot compute by halves."""
        uses = [use for use in effects_of(op) if space_of(root_of(use.value)) == "ub"]
        halves = {root_of(use.value): self.rows(use) for use in uses if root_of(use.value) in self.divided}
        if not halves:
            return
        for root, rows in halves.items():
            if rows is None or len([use for use in uses if root_of(use.value) is root and self.rows(use) != rows]):
                self._whole(Refusal(f"{line_of(op)} takes rows of it that no half has for sure",
                                    "take all rows at once, or one by one in a loop over all of them"), root)
        inside = self.loop_around(op)
        strangers = [root for root, rows in halves.items() if rows is not None and rows.loop is not inside]
        self._whole(Refusal(f"{line_of(op)} takes other rows of it than the loop around it counts",
                            "take the row of the iteration alone"), *strangers)
        if inside is not None or strangers:
            return
        axes = {rows.axis for rows in halves.values() if rows is not None}
        target = next((use for use in uses if use.writes), None)
        by_rows = (isinstance(op, tile.CallOp) and op.entry().by_rows and len(tile.shape_of(op.outputs[0])) - 1 not in axes
                   and all(root_of(use.value) in halves for use in uses))
        if by_rows or _counts(op) or isinstance(
                op, (tile.CopyOp, tile.ElementwiseOp, tile.FillOp, tile.BroadcastOp, tile.ReduceOp)):
            self._check_rows(op, uses, target, halves, axes)
        else:
            self._whole(Refusal(f"{line_of(op)} needs all of its rows", BY_HAND), *halves)

    def _check_rows(self, op: Operation, uses: list[Effect], target: Effect | None, halves: dict[SSAValue, Rows | None],
                    axes: set[int | None]) -> None:
        """An operation over all rows: what it writes must be divided, and along the same axis as what it reads."""
        if isinstance(op, tile.CopyOp) and (op.transpose is not None or tile.shape_of(op.source) != tile.shape_of(op.target)):
            self._whole(Refusal(f"{line_of(op)} copies it to another shape", BY_HAND), *halves)
        elif isinstance(op, tile.CopyOp) and _from_cube(op) and axes != {len(tile.shape_of(op.target)) - 2}:
            self._whole(Refusal(f"{line_of(op)} copies it out of L0C, whose matrices are divided by rows", BY_HAND), *halves)
        elif target is None:  # a store to GM takes any half
            pass
        elif root_of(target.value) not in halves:
            self._whole(Refusal(f"{line_of(op)} computes from it what is not divided itself", BY_HAND), *halves)
        else:
            place = halves[root_of(target.value)]
            along = place.axis if place is not None else None
            if isinstance(op, tile.ReduceOp) and along in op.dims.get_values():
                self._whole(Refusal(f"{line_of(op)} reduces over its rows", "reduce over another axis"), *halves)
            for root, rows in halves.items():
                if rows is not None and rows.axis != along:
                    self._whole(Refusal(f"{line_of(op)} takes its rows along another axis", BY_HAND), root)

    def loop_around(self, op: Operation) -> scf.ForOp | None:
        """The innermost halved loop that an operation is in."""
        found = op.parent_op()
        while found is not None and found not in self.loops:
            found = found.parent_op()
        return found if isinstance(found, scf.ForOp) else None

    def _is_by_rows(self, loop: scf.ForOp) -> bool:
        """Whether iterations of a loop over rows touch nothing beyond their row that another iteration could miss."""
        if self.loop_around(loop) is not None:
            return False
        variable = loop.body.block.args[0]
        for op in walk(loop.body.block):
            if op.name.startswith("hivm.") or core_of(op) == "AIC":
                return False
            for use in effects_of(op):
                root = root_of(use.value)
                space = space_of(root)
                if not use.writes or root in self.divided:
                    continue
                if space == "gm":
                    if not _depends(use.value, variable):
                        return False
                elif not _within(root, loop):
                    return False
        return True

    def unaligned(self) -> tuple[Operation, Refusal] | None:
        """Where a whole buffer stands beside halves whose second half begins at no block of UB."""
        for op in walk(self.launch.body.block):
            halved = [(use, rows.axis) for use in effects_of(op) if root_of(use.value) in self.divided
                      and (rows := self.rows(use)) is not None and rows.axis is not None]
            if not halved or self.loop_around(op) is not None:
                continue
            (first, axis), divided = halved[0], {root_of(use.value) for use, _ in halved}
            rows_there = tile.shape_of(first.value)[axis]
            for use in effects_of(op):
                shape = tile.shape_of(use.value)
                beside = space_of(root_of(use.value)) == "ub" and root_of(use.value) not in divided
                if beside and axis < len(shape) and shape[axis] == rows_there and not _whole_blocks(use.value, axis):
                    whole = sized(root_of(use.value))
                    why = f"the second half of {whole}, of which {line_of(op)} takes a half, begins at no block of UB"
                    return op, Refusal(why, f"give it rows that are a multiple of {BLOCK} bytes together with half of the tile")
        return None

    def reads_back(self) -> tuple[Operation, Refusal] | None:
        """Where the Vector cores load from GM what they store there."""
        stored: dict[SSAValue, Operation] = {}
        loaded: dict[SSAValue, Operation] = {}
        for op in walk(self.launch.body.block):
            uses = list(effects_of(op))
            for use in uses if core_of(op) != "AIC" else ():
                root = root_of(use.value)
                if space_of(root) == "gm":
                    (stored if use.writes else loaded).setdefault(root, op)
        for root in stored.keys() & loaded.keys():
            why = f"{line_of(loaded[root])} loads from {root.name_hint or 'a tensor'} what {line_of(stored[root])} stores there"
            return loaded[root], Refusal(why, "keep it in UB, or store to a tensor of its own")
        return None


def _counts(op: Operation) -> bool:
    """Whether an operation numbers the places of a tile."""
    return isinstance(op, tile.CallOp) and op.entry().name == "arange"


def _from_cube(op: tile.CopyOp) -> bool:
    """Whether a copy brings what the Cube core has to a Vector core."""
    return core_of(op) == "AIC" and space_of(op.target) == "ub"


def _within(buffer: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a buffer is used in one loop alone, each iteration of which writes it before it reads it."""
    first = True
    for op in walk(loop.body.block):
        uses = [use for use in effects_of(op) if root_of(use.value) is buffer]
        if uses and first:
            if not all(use.writes and not use.reads for use in uses) or op.parent_block() is not loop.body.block:
                return False
            first = False
    return all(loop.is_ancestor(user) for user in users_of(buffer) if not isinstance(user, (tile.RegionOp, tile.ViewOp)))


def _depends(value: SSAValue, variable: SSAValue) -> bool:
    if value is variable:
        return True
    owner = value.owner
    return isinstance(owner, Operation) and not isinstance(owner, memref.LoadOp) and any(
        _depends(operand, variable) for operand in owner.operands)


class _Binding:
    """Rewrites a launch by its division."""

    def __init__(self, division: _Division) -> None:
        self.division = division
        self.launch = division.launch
        self.half = self.launch.body.block.insert_arg(IndexType(), len(self.launch.body.block.args))
        self.half.name_hint = "vid"
        self.launch.properties["explicit_sub_block"] = UnitAttr()

    def run(self) -> None:
        division, block = self.division, self.launch.body.block
        ops = list(walk(block))
        places = {(op, use.index): division.rows(use) for op in ops for use in effects_of(op)
                  if root_of(use.value) in division.divided}
        self.views = {op: rows_of(op.result, division.ranges) for op in ops if isinstance(op, tile.ViewOp)
                      and root_of(op.result) in division.divided}
        shared = [op for op in ops if isinstance(op, tile.CopyOp) and self._stores_alike(op)]
        around = {op: division.loop_around(op) for op in ops}
        for loop in division.loops:
            self._halve_loop(loop)
        for op in ops:
            halves = [index for found, index in places if found is op]
            if halves and around[op] is None and not isinstance(op, (memref.LoadOp, memref.StoreOp)):
                self._slice_others(op, places)
                if isinstance(op, tile.CallOp) and _counts(op):
                    self._count_on(op)
        for buffer in division.divided:
            self._halve(buffer)
        for copy in shared:
            self._share_store(copy)

    def _stores_alike(self, op: tile.CopyOp) -> bool:
        """Whether both cores would store the same from a buffer that is whole."""
        source = root_of(op.source)
        return (space_of(source) == "ub" and space_of(root_of(op.target)) != "ub" and source not in self.division.divided
                and self.division.loop_around(op) is None)

    def _offset(self, rows: int, before: Operation) -> SSAValue:
        """The first row of this core's half, in front of an operation."""
        constant = arith.ConstantOp(IntegerAttr(rows, IndexType()))
        product = arith.MuliOp(self.half, constant.result)
        for made in (constant, product):
            stand_in(before, made)
            Rewriter().insert_op(made, InsertPoint.before(before))
        return product.result

    def _halve_loop(self, loop: scf.ForOp) -> None:
        """Run over half of the rows; what is not an index into a half sees the row of the tile."""
        count = self.division.ranges.constant(loop.ub)
        assert count is not None
        end = arith.ConstantOp(IntegerAttr(count // 2, IndexType()))
        stand_in(loop, end)
        Rewriter().insert_op(end, InsertPoint.before(loop))
        loop.operands[1] = end.result
        head, variable = loop.body.block.first_op, loop.body.block.args[0]
        assert head is not None
        uses = list(variable.uses)
        first = self._offset(count // 2, head)
        row = arith.AddiOp(variable, first)
        stand_in(head, row)
        Rewriter().insert_op(row, InsertPoint.before(head))
        for use in uses:
            self._rebase(use.operation, use.index, row.result)

    def _rebase(self, op: Operation, index: int, row: SSAValue) -> None:
        """Let an operand be the row of the tile, except where it leads to a place in a half."""
        if self._is_local(op, index):
            return
        if not isinstance(op, CHAIN) or not any(self._is_local(use.operation, use.index) for use in op.results[0].uses):
            op.operands[index] = row
            return
        other = op.clone()
        other.operands[index] = row
        stand_in(op, other)
        Rewriter().insert_op(other, InsertPoint.after(op))
        for use in list(op.results[0].uses):
            self._rebase(use.operation, use.index, other.results[0])

    def _is_local(self, op: Operation, index: int) -> bool:
        """Whether an operand is the place of a row in a buffer of which this core has half."""
        first = next((place for kind, place in _ROW.items() if isinstance(op, kind)), None)
        if index != first:
            return False
        place = op.operands[1] if isinstance(op, memref.StoreOp) else op.operands[0]
        dynamic = not isinstance(op, tile.RegionOp) or not isinstance(op.mixed_offsets()[0], int)
        return dynamic and root_of(place) in self.division.divided

    def _slice_others(self, op: Operation, places: dict[tuple[Operation, int], Rows | None]) -> None:
        """Beside halves, take this core's rows of whatever has all of them: a tensor in GM, a buffer that is whole. What the
        Cube core sends goes to both at once."""
        if isinstance(op, tile.CopyOp) and _from_cube(op):
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
                op.operands[use.index] = self._half_of(use.value, axis, op)

    def _count_on(self, op: tile.CallOp) -> None:
        """Let places be counted from the first row of this core's half."""
        (target,) = op.outputs
        rows = self.division.rows(next(use for use in effects_of(op) if use.value is target))
        assert rows is not None and rows.axis is not None
        rows_before = arith.MuliOp(self._offset(tile.shape_of(target)[rows.axis] // 2, op), op.inputs[1 + rows.axis])
        first = arith.AddiOp(op.inputs[0], rows_before.result)
        for made in (rows_before, first):
            stand_in(op, made)
            Rewriter().insert_op(made, InsertPoint.before(op))
        op.operands[0] = first.result

    def _half_of(self, value: SSAValue, axis: int, before: Operation) -> SSAValue:
        shape = list(tile.shape_of(value))
        offsets: list[SSAValue | int] = [0] * len(shape)
        offsets[axis] = self._offset(shape[axis] // 2, before)
        sizes: list[SSAValue | int] = list(shape)
        for position, size in enumerate(shape):
            if size < 0:
                sizes[position] = _dimension(value, position, before)
        sizes[axis] = shape[axis] // 2
        made = tile.RegionOp(value, offsets, sizes)
        stand_in(before, made)
        Rewriter().insert_op(made, InsertPoint.before(before))
        return made.results[0]

    def _share_store(self, op: tile.CopyOp) -> None:
        """Each core stores half of what both have; what cannot be halved the first core stores."""
        shape = tile.shape_of(op.source)
        axis = next((axis for axis, size in enumerate(shape)
                     if size > 0 and size % 2 == 0 and _whole_blocks(op.source, axis)), None)
        if axis is not None:
            op.operands[0] = self._half_of(op.source, axis, op)
            op.operands[1] = self._half_of(op.target, axis, op)
            return
        zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
        first = arith.CmpiOp(self.half, zero.result, "eq")
        inner = Block()
        branch = scf.IfOp(first.result, [], [inner])
        put_core(branch, core_of(op))
        for made in (zero, first, branch):
            stand_in(op, made)
            Rewriter().insert_op(made, InsertPoint.before(op))
        parent = op.parent_block()
        assert parent is not None
        parent.detach_op(op)
        inner.add_ops([op, scf.YieldOp()])

    def _halve(self, buffer: SSAValue) -> None:
        """Give an allocation, and every view of it, half the rows."""
        kind = buffer.type
        assert isinstance(kind, MemRefType)
        shape = list(kind.get_shape())
        shape[0] //= 2
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
                    made = tile.ViewOp(source, _halved_view(view, self.views[view]))
                else:
                    continue
                stand_in(view, made)
                Rewriter().replace_op(view, made)
                pending.append(made.results[0])


def _whole_blocks(value: SSAValue, axis: int) -> bool:
    """Whether the second half of a buffer along an axis begins at a block of UB (docs/hardware.md#alignment)."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    strides = kind.get_strides() or []
    stride = strides[axis] if axis < len(strides) else None
    return stride is not None and kind.get_shape()[axis] // 2 * stride * dtype_of(kind.element_type).nbytes % BLOCK == 0


def _dimension(value: SSAValue, axis: int, before: Operation) -> SSAValue:
    position = arith.ConstantOp(IntegerAttr(axis, IndexType()))
    made = memref.DimOp.from_source_and_index(value, position.result)
    for op in (position, made):
        stand_in(before, op)
        Rewriter().insert_op(op, InsertPoint.before(before))
    return made.result


def _halved_view(view: tile.ViewOp, rows: Rows | None) -> MemRefType[Attribute]:
    """The type of a view of a buffer that now has half of its rows."""
    kind = view.result.type
    assert isinstance(kind, MemRefType)
    shape = list(kind.get_shape())
    if rows is not None and rows.axis is not None and rows.loop is None:
        shape[rows.axis] //= 2
    return MemRefType(kind.element_type, shape, kind.layout, kind.memory_space)


def _first_core_alone(launch: tile.LaunchOp) -> None:
    """Let the first of the two Vector cores do everything: a kernel of these alone is launched on both."""
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
        stand_in(launch, made)
        block.add_op(made)


def _has_cube_work(launch: tile.LaunchOp) -> bool:
    return any(core_of(op) == "AIC" for op in walk(launch.body.block))


def _has_vector_work(launch: tile.LaunchOp) -> bool:
    return any(space_of(root_of(use.value)) == "ub" for op in launch.walk() for use in effects_of(op))


def _is_open(launch: tile.LaunchOp) -> bool:
    """Whether a kernel works on the Cube, and does not say which Vector core does what."""
    return launch.explicit_sub_block is None and _has_cube_work(launch)


def _told(launch: tile.LaunchOp) -> Operation | None:
    """Where an author says what a core does or when."""
    told = (tile.OnCoreOp, *tile.DEBUG_OUTPUT_OPS)
    return next((op for op in walk(launch.body.block) if isinstance(op, told) or op.name.startswith("hivm.")), None)


@dataclass(frozen=True)
class BindSubBlocks(ModulePass):
    """The pass; see the module's text.

    Attributes:
        mixed: divide kernels of both cores that do not ask for it, too.
        divide: do it at all; off, one of the Vector cores does all work.
    """

    name = "bind-sub-blocks"
    mixed: bool = False
    divide: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for launch in [inner for inner in op.walk() if isinstance(inner, tile.LaunchOp)]:
            asked = launch.properties.pop("spread", None) is not None and launch.sub_blocks.value.data == 2
            told = None if asked else _told(launch)
            if asked or (self.mixed and _is_open(launch) and told is None):
                self._bind(op, launch, asked=asked)
            elif self.mixed and self.divide and _is_open(launch) and told is not None and _has_vector_work(launch):
                record_refusal(op, self.name, location_of(told),
                        f"one Vector core does all work: {line_of(told)} prints, or its author orders it or puts it on a core",
                        "leave order and cores to the compiler, or ask for both Vector cores: T.Kernel(..., threads=2)")

    def _bind(self, module: ModuleOp, launch: tile.LaunchOp, *, asked: bool) -> None:
        """Divide the work of a launch, where that can be."""
        division = _Division(launch, Ranges())
        division.find()
        kept = (division.unaligned() or division.reads_back()) if division.divided else None
        if self.divide:
            division.tell(module)
        if self.divide and division.divided and kept is None:
            launch.sub_blocks = IntegerAttr(2, i64)
            owners = [buffer.owner for buffer in division.divided]
            names = sorted({owner.label.data for owner in owners if isinstance(owner, tile.AllocOp)})
            record_done(module, self.name, None, f"each Vector core has half of the rows of {', '.join(names)}")
            _Binding(division).run()
            return
        if self.divide and kept is not None:
            where, why = kept
            record_refusal(module, self.name, location_of(where), f"one Vector core does all work: {why.why}", why.edit)
        if asked and not _has_cube_work(launch):
            _first_core_alone(launch)
