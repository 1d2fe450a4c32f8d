"""``T.Parallel`` to vector operations: each statement of the body over the whole box at once.

A body is vector work if every access is a rectangle (loop variables plus offsets, in the order of the loop), every
operation has a vector form, and doing one statement for all points before the next gives what the points one by one
would: a buffer that is written is read at the element that is written, or not at all. Otherwise, and where the points move
tiles, the loop becomes nested scalar loops, which is always right and slow; where rows are gathered, by numbers that are read,
the inner axes are vector work in a scalar loop over the others. Choices are settled first (``conditions``), so that
nothing is read that is not chosen.

Runs first, on the tile dialect as traced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.remarks import Points, done, refused
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import BLOCK, Chip
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.parallel.box_expressions import Vectoriser
from tilelang_npu.transforms.tile.parallel.conditions import Part, choose_between_values, settle
from tilelang_npu.transforms.tile.parallel.distribute import distribute
from tilelang_npu.transforms.tile.parallel.indices import Index, Invariants, NotVector, NotVectorWhole
from tilelang_npu.transforms.tile.parallel.unaligned import around


def _static_extents(loop: tile.ParallelOp, ranges: Ranges) -> list[int]:
    extents = [ranges.constant(extent) for extent in loop.mixed_extents()]
    if any(extent is None for extent in extents):
        msg = "an extent is known only at run time"
        raise NotVector(msg, "give T.Parallel the constant size of the tile; T.copy clips what goes to and from the tensor")
    return [extent or 0 for extent in extents]


def _check_order(loop: tile.ParallelOp, extents: list[int]) -> None:
    """Whether statement by statement equals point by point."""
    invariants = Invariants(loop)
    stores = [op for op in loop.body.block.ops if isinstance(op, memref.StoreOp)]
    written: dict[SSAValue, list[tuple[Index, ...]]] = {}
    for store in stores:
        where = tuple(invariants.index(value) for value in store.indices)
        written.setdefault(root_of(store.memref), []).append(where)
    for places in written.values():
        for position, first in enumerate(places):
            for second in places[position + 1:]:
                if first != second and not _apart(first, second, extents):
                    msg = "two statements write overlapping parts of one buffer"
                    raise NotVector(msg, "let them write parts that do not overlap, or write in a T.Parallel each")
    for op in loop.body.block.ops:
        if isinstance(op, memref.LoadOp) and root_of(op.memref) in written:
            where = tuple(invariants.index(value) for value in op.indices)
            if any(where != place and not _apart(where, place, extents) for place in written[root_of(op.memref)]):
                msg = "an element is read that another point writes"
                raise NotVector(msg, "T.copy the buffer to a second one in front of the loop, and read that")


def _apart(a: tuple[Index, ...], b: tuple[Index, ...], extents: list[int]) -> bool:
    """Whether two accesses of one buffer surely never meet."""
    for x, y in zip(a, b, strict=True):
        if isinstance(x.offset, int) and isinstance(y.offset, int):
            width_x = 1 if x.axis is None else extents[x.axis]
            width_y = 1 if y.axis is None else extents[y.axis]
            if x.offset + width_x <= y.offset or y.offset + width_y <= x.offset:
                return True
    return False


def _vectorise(loop: tile.ParallelOp, ranges: Ranges, chip: Chip) -> tuple[str, ...]:
    """Make vector work of a loop; what had to be done because of places at which no instruction begins."""
    if any(isinstance(op, scf.IfOp) for op in loop.body.block.ops):
        ahead = loop.clone()  # point by point, the loop itself is right
        Rewriter().insert_op(ahead, InsertPoint.before(loop))
        choose_between_values(ahead, clipped=True)
        told = _vectorise_body(ahead, ranges, chip)
        Rewriter.erase_op(ahead)
        return told
    return _vectorise_body(loop, ranges, chip)


def _vectorise_body(loop: tile.ParallelOp, ranges: Ranges, chip: Chip) -> tuple[str, ...]:
    block = loop.body.block
    for op in block.ops:
        if isinstance(op, tile.CopyOp):
            msg = "the points move tiles"
            raise NotVector(msg, "move all tiles by one T.copy of a region, outside of T.Parallel")
        if isinstance(op, scf.IfOp):
            msg = "what a point reads or does depends on a condition that is known point by point alone"
            raise NotVectorWhole(msg, "choose between two values that are there at all points: T.if_then_else")
        if op.regions:
            msg = f"{op.name} in the body has no vector form"
            raise NotVector(msg, "take it out of T.Parallel, into a loop of T.serial")
    extents = _static_extents(loop, ranges)
    _check_order(loop, extents)
    work = Vectoriser(loop, extents, chip)
    statements = list(block.ops)
    for position, op in enumerate(statements):
        if isinstance(op, memref.LoadOp) and _stored_before_use(op, statements[position + 1:]):
            work.keep(op)
        elif isinstance(op, memref.StoreOp):
            work.store(op)
    told = tuple(dict.fromkeys(work.unaligned.told))
    if told and work.unaligned.cycles >= _serial_cycles(loop, extents, chip):
        names = ", ".join(dict.fromkeys(one.partition(" (")[0] for one in told))
        msg = f"what it takes of {names} begins at no block of UB, and in tiles that do its points take longer"
        raise NotVector(msg, f"begin at a multiple of {BLOCK} bytes, or pad the rows to one")
    return told


def _serial_cycles(loop: tile.ParallelOp, extents: list[int], chip: Chip) -> float:
    """What the points take one by one; for ever where they reach GM."""
    body = list(loop.body.block.ops)
    accesses = [op for op in body if isinstance(op, (memref.LoadOp, memref.StoreOp))]
    if any(space_of(op.memref) == "gm" for op in accesses):
        return inf
    unit = chip.scalar
    point = sum(unit.load if isinstance(op, memref.LoadOp) else unit.store for op in accesses)
    return prod(extents) * (point + unit.alu * (len(body) - len(accesses)) + around(chip))


def _stored_before_use(load: memref.LoadOp, rest: list[Operation]) -> bool:
    """Whether the loaded element is overwritten before the last statement that needs its old value."""
    pending = {load.res}
    overwritten = False
    for op in rest:
        uses = any(operand in pending for operand in op.operands)
        if uses and overwritten and isinstance(op, memref.StoreOp):
            return True
        if uses and not isinstance(op, memref.StoreOp):
            pending.update(op.results)
        if isinstance(op, memref.StoreOp) and root_of(op.memref) is root_of(load.memref):
            overwritten = True
    return False


def _serialise(loop: tile.ParallelOp) -> None:
    """Nested scalar loops over the box."""
    parent = loop.parent_block()
    assert parent is not None

    def constant(value: int) -> SSAValue:
        made = arith.ConstantOp(IntegerAttr(value, IndexType()))
        made.location = loop.location
        parent.insert_op_before(made, loop)
        return made.result

    zero, one = constant(0), constant(1)
    bounds = [extent if isinstance(extent, SSAValue) else constant(extent) for extent in loop.mixed_extents()]
    indices: list[SSAValue] = []
    outermost: scf.ForOp | None = None
    inner: Block | None = None
    for bound, argument in zip(bounds, loop.body.block.args, strict=True):
        body = Block(arg_types=[IndexType()])
        body.args[0].name_hint = argument.name_hint
        made = scf.ForOp(zero, bound, one, [], Region(body))
        made.location = loop.location
        if inner is None:
            outermost = made
        else:
            inner.add_ops([made, scf.YieldOp()])
        inner = body
        indices.append(body.args[0])
    assert inner is not None and outermost is not None
    mapping: dict[SSAValue, SSAValue] = dict(zip(loop.body.block.args, indices, strict=True))
    for op in loop.body.block.ops:
        if not isinstance(op, tile.YieldOp):
            inner.add_op(op.clone(value_mapper=mapping))
    inner.add_op(scf.YieldOp())
    parent.insert_op_before(outermost, loop)


def _by_rows(loop: tile.ParallelOp, ranges: Ranges, chip: Chip) -> Operation | None:
    """A scalar loop over the first axis around vector work over the others, in front of a loop; None where there is no way."""
    outer, *inner = loop.mixed_extents()
    block = loop.parent_block()
    if not inner or block is None:
        return None
    made = [arith.ConstantOp(IntegerAttr(value, IndexType())) for value in (0, 1)]
    if isinstance(outer, int):
        made.append(arith.ConstantOp(IntegerAttr(outer, IndexType())))
        outer = made[-1].result
    body = Block(arg_types=[IndexType()])
    points = Block(arg_types=[IndexType()] * len(inner))
    mapping: dict[SSAValue, SSAValue] = dict(zip(loop.body.block.args, (*body.args, *points.args), strict=True))
    for before, after in zip(loop.body.block.args, (*body.args, *points.args), strict=True):
        after.name_hint = before.name_hint
    for op in loop.body.block.ops:
        points.add_op(op.clone(value_mapper=mapping))
    rows = tile.ParallelOp(inner, Region(points))
    around = scf.ForOp(made[0].result, outer, made[1].result, [], Region(body))
    body.add_ops([rows, scf.YieldOp()])
    for op in (rows, around, *made):
        op.location = loop.location
    block.insert_ops_before([*made, around], loop)
    for part in [part for whole in settle(rows) for part in _parts(whole.loop)]:
        if not _in_front(part, ranges, chip):
            for op in (around, *reversed(made)):
                Rewriter.erase_op(op)
            return None
        Rewriter.erase_op(part)
    return around


def _in_front(loop: tile.ParallelOp, ranges: Ranges, chip: Chip) -> bool:
    """Put vector work in front of a loop, row by row if need be; whether there is a way."""
    home, last = loop.parent_block(), loop.prev_op
    assert home is not None
    try:
        _vectorise(loop, ranges, chip)
    except NotVector as reason:
        _undo(home, last, loop)
        return isinstance(reason, NotVectorWhole) and _by_rows(loop, ranges, chip) is not None
    return True


def _names(first: Operation | None, last: Operation) -> tuple[str, ...]:
    """The vector operations from one operation to another one in its block, and inside of those, in order."""
    names: list[str] = []
    while first is not None and first is not last:
        names += [op.entry().name for op in first.walk() if isinstance(op, (tile.ElementwiseOp, tile.ReduceOp))]
        first = first.next_op
    return tuple(names)


def _add_by_copies(module: ModuleOp) -> None:
    """Single elements that are added to a tensor: from a tile of one element, since no instruction adds from a register."""
    for store in [op for op in module.walk() if isinstance(op, memref.StoreOp) and tile.ATOMIC in op.attributes]:
        kind = store.memref.type
        assert isinstance(kind, MemRefType)
        ones = [1] * kind.get_num_dims()
        cell = tile.AllocOp("added", MemRefType(kind.element_type, ones, memory_space=hivm.address_space("ub")))
        zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
        place = tile.RegionOp(store.memref, list(store.indices), ones, range(len(ones)))
        made = [cell, zero, memref.StoreOp.get(store.value, cell.result, [zero.result] * len(ones)), place,
                tile.CopyOp(cell.result, place.results[0], atomic=True)]
        for op in made:
            op.location = store.location
        Rewriter.replace_op(store, made, [])


@dataclass(frozen=True)
class VectoriseParallel(ModulePass):
    """The pass; see the module's text.

    Attributes:
        chip: the one whose cycles decide.
        vectorise: off, all loops are serial.
        rows: vector work in scalar loops; off where the author sets the waits, who cannot set any in between.
    """

    name = "vectorise-parallel"
    chip: str = chips.DEFAULT
    vectorise: bool = True
    rows: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        found = [inner for inner in op.walk() if isinstance(inner, tile.ParallelOp)]
        parts = [part for whole in found for part in (settle(whole) if self.vectorise else [Part(whole)])]
        for loop, starts in [(loop, part.starts) for part in parts for loop in _parts(part.loop)]:
            self._replace(op, loop, starts, ranges)
        _add_by_copies(op)

    def _replace(self, module: ModuleOp, loop: tile.ParallelOp, starts: tuple[int, ...], ranges: Ranges) -> None:
        """Put what a loop becomes in its place, and say what that is; a loop of several parts is told part by part."""
        block, last, where = loop.parent_block(), loop.prev_op, location_of(loop)
        assert block is not None
        points = Points(tuple(ranges.constant(extent) for extent in loop.mixed_extents()), starts)

        def vector(first: Operation | None, *, unaligned: tuple[str, ...] = (), by_rows: bool = False) -> None:
            names = _names(first, loop)
            done(module, self.name, where, ", ".join(names) or "copies and fills",
                 replace(points, ops=names, unaligned=unaligned, by_rows=by_rows))

        try:
            if not self.vectorise:
                msg = "vectorise-parallel is switched off"
                raise NotVector(msg, "take vectorise-parallel out of tl.disable")
            unaligned = _vectorise(loop, ranges, chips.chip(self.chip))
            vector(last.next_op if last is not None else block.first_op, unaligned=unaligned)
        except NotVector as reason:
            _undo(block, last, loop)
            may = self.rows and isinstance(reason, NotVectorWhole)
            rows = _by_rows(loop, ranges, chips.chip(self.chip)) if may else None
            if rows is not None:
                vector(rows, by_rows=True)
            else:
                refused(module, self.name, where, str(reason), reason.edit, points)
                _serialise(loop)
        Rewriter.erase_op(loop)


def _parts(loop: tile.ParallelOp) -> list[tile.ParallelOp]:
    """The loop, or those that remain when the serial loops of its body are taken outside."""
    try:
        made = distribute(loop)
    except NotVector:
        return [loop]
    if made != [loop]:
        Rewriter.erase_op(loop)
    return made


def _undo(block: Block, last: Operation | None, loop: tile.ParallelOp) -> None:
    """Remove what a vectorisation that failed had already emitted."""
    current = loop.prev_op
    while current is not None and current is not last:
        previous = current.prev_op
        Rewriter.erase_op(current)
        current = previous
