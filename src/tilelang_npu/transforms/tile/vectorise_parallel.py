"""``T.Parallel`` to vector operations: each statement of the body over the whole box at once.

A body is vector work if every access is a rectangle (loop variables plus offsets, in the order of the loop), or can be brought
into that order (``parallel.rearranged``), every operation has a vector form, and doing one statement for all points before the
next gives what the points one by one would: no point reads what another one writes (``parallel.dependence``).
Otherwise, and where the points move tiles or take fewer cycles, the loop becomes nested scalar loops, which is always right;
where rows are gathered from GM, or written, by numbers that are read, the inner axes are vector work in a scalar loop over the
others; where the tiles of all rows have no room, some rows at a time are. Choices are settled first (``conditions``), so that
nothing is read that is not chosen.

Runs first, on the tile dialect as traced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, inf, prod

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.ir.remarks import Points, record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import BLOCK, Chip
from tilelang_npu.transforms.ir.buffers import root_of, space_of, users_of
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.parallel.between import SCRATCH, Between
from tilelang_npu.transforms.tile.parallel.box_expressions import Vectoriser
from tilelang_npu.transforms.tile.parallel.conditions import HERE, Part, choose_between_stores, choose_between_values, settle
from tilelang_npu.transforms.tile.parallel.dependence import meet_at_own_point, never_meet
from tilelang_npu.transforms.tile.parallel.distribute import distribute
from tilelang_npu.transforms.tile.parallel.flattened import unflattened, without_idle_axes
from tilelang_npu.transforms.tile.parallel.indices import MADE, Invariants, Multiples, NotVector, NotVectorWhole
from tilelang_npu.transforms.tile.parallel.nests import around
from tilelang_npu.transforms.tile.parallel.tensor_ends import drop_guards


def _static_extents(loop: tile.ParallelOp, ranges: Ranges) -> list[int]:
    extents = [ranges.constant(extent) for extent in loop.mixed_extents()]
    if any(extent is None for extent in extents):
        msg = "an extent is known only at run time"
        raise NotVector(msg, "give T.Parallel the constant size of the tile; T.copy clips what goes to and from the tensor")
    return [extent or 0 for extent in extents]


def _check_order(loop: tile.ParallelOp, extents: list[int], ranges: Ranges) -> None:
    """Whether statement by statement equals point by point."""
    invariants = Invariants(loop)
    stores = [op for op in loop.body.block.ops if isinstance(op, memref.StoreOp)]
    written: dict[SSAValue, list[tuple[Multiples | None, ...]]] = {}
    for store in stores:
        where = tuple(invariants.sum(value) for value in store.indices)
        written.setdefault(root_of(store.memref), []).append(where)

    def in_order(first: tuple[Multiples | None, ...], second: tuple[Multiples | None, ...]) -> bool:
        return ((first == second and None not in first) or meet_at_own_point(first, second, extents)
                or never_meet(first, second, extents, ranges))

    for places in written.values():
        if not all(in_order(first, second) for first, second in combinations(places, 2)):
            msg = "two statements write overlapping parts of one buffer"
            raise NotVectorWhole(msg, "let them write parts that do not overlap, or write in a T.Parallel each")
    for op in loop.body.block.ops:
        if isinstance(op, memref.LoadOp) and root_of(op.memref) in written:
            where = tuple(invariants.sum(value) for value in op.indices)
            if not all(in_order(where, place) for place in written[root_of(op.memref)]):
                msg = "an element is read that another point writes"
                raise NotVectorWhole(msg, "T.copy the buffer to a second one in front of the loop, and read that")


@dataclass(frozen=True)
class _Terms:
    """What decides about the loops of a module: what is known of integers, the chip, and the options of the pass."""

    ranges: Ranges
    chip: Chip
    rows: bool
    reuse: bool


def _vectorise(loop: tile.ParallelOp, terms: _Terms) -> Between:
    """Make vector work of a loop; the detours that it took."""
    block, last, apart = loop.parent_block(), loop.prev_op, unflattened(loop)
    if apart is not None and block is not None:
        try:
            told = _vectorise_choices(apart, terms)
            _check_room(apart, last, terms)  # rows of a few elements take a block each
        except NotVector:
            _undo(block, last, loop)
        else:
            Rewriter.erase_op(apart)
            return told
    return _vectorise_choices(loop, terms)


def _vectorise_choices(loop: tile.ParallelOp, terms: _Terms) -> Between:
    """Make vector work of a loop that may choose from point to point; the detours that it took."""
    if any(isinstance(op, scf.IfOp) for op in loop.body.block.ops):
        before, ahead = loop.prev_op, loop.clone()  # point by point, the loop itself is right
        Rewriter().insert_op(ahead, InsertPoint.before(loop))
        choose_between_values(ahead, clipped=True)
        drop_guards(ahead)
        chosen = choose_between_stores(ahead)
        told = _vectorise_body(ahead, terms)
        Rewriter.erase_op(ahead)
        if chosen:  # from values in tiles of their own; the points one by one take none
            _check_room(loop, before, terms)
        return told
    return _vectorise_body(loop, terms)


def _vectorise_body(loop: tile.ParallelOp, terms: _Terms) -> Between:
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
    extents = _static_extents(loop, terms.ranges)
    _check_order(loop, extents, terms.ranges)
    before = loop.prev_op
    work = Vectoriser(loop, extents, terms.chip, terms.ranges)
    statements = list(block.ops)
    for position, op in enumerate(statements):
        if isinstance(op, memref.LoadOp) and _stored_before_use(op, statements[position + 1:]):
            work.keep(op)
        elif isinstance(op, memref.StoreOp):
            work.store(op)
    detours = work.detours
    if detours.crosses and not terms.rows:
        msg = "its elements come in order by work of several pipes, between which the kernel's author sets the waits"
        raise NotVector(msg, "T.copy to tiles in UB in front of the loop, and from them behind it, or let it synchronise")
    if detours.moved:
        _check_room(loop, before, terms)
    if (detours.moved or detours.told) and detours.cycles >= _serial_cycles(loop, extents, terms.chip):
        raise _longer(detours)
    return detours


def _longer(detours: Between) -> NotVector:
    """That the points one by one take fewer cycles than what brings their operands together."""
    if not detours.moved:
        names = ", ".join(dict.fromkeys(one.partition(" (")[0] for one in detours.told))
        msg = f"what it takes of {names} begins at no block of UB, and in tiles that do its points take longer"
        return NotVector(msg, f"begin at a multiple of {BLOCK} bytes, or pad the rows to one")
    msg = (f"in vectors its points take longer, {detours.cycles:.0f} cycles for "
           f"{', '.join(dict.fromkeys((*detours.moved, *detours.told)))}")
    return NotVector(msg, "give the loop more points, or read and write tiles in the order of the loop")


_FULL = 0.9
"""How much of UB the tiles may take, for the sake of what other passes add: slots, scratch of other operations."""


def _check_room(loop: tile.ParallelOp, before: Operation | None, terms: _Terms) -> None:
    """Whether the tiles that were made to rearrange elements fit beside the author's."""
    made = _most(loop, before, together=not terms.reuse)
    around = loop.parent_op()
    while around is not None and not isinstance(around, tile.LaunchOp) and not isinstance(around.parent_op(), ModuleOp | None):
        around = around.parent_op()
    others, new, op = 0, set[Operation](), loop.prev_op
    while op is not None and op is not before:
        new.update(op.walk())
        op = op.prev_op
    for other in around.walk() if around is not None else ():
        ours = isinstance(other, tile.AllocOp) and other.label.data == MADE and (terms.reuse or other in new)
        if isinstance(other, tile.AllocOp) and not ours and space_of(other.result) in HERE:
            others += 0 if any(isinstance(use, tile.GemmOp) for use in users_of(other.result)) else _bytes(other)
    size = int(terms.chip.memory["ub"].size * _FULL)
    if made + others > size:
        msg = f"its elements come in order in tiles of {made} bytes, beside the {others} of the kernel's; UB has {size}"
        edit = "take smaller tiles, or the points of some rows at a time in a loop of T.serial"
        raise NoRoom(msg, edit, (size - others) / made)


def _most(loop: tile.ParallelOp, before: Operation | None, *, together: bool) -> int:
    """Bytes of the tiles made for a loop that are needed at once; of all of them ``together`` where none is reused."""
    block = loop.parent_block()
    assert block is not None
    op = before.next_op if before is not None else block.first_op
    lives: dict[SSAValue, tuple[int, int]] = {}
    beside: list[int] = []
    while op is not None and op is not loop:
        beside.append(0)
        for inner in op.walk():
            for operand in inner.operands:
                root = root_of(operand)
                if isinstance(root.owner, tile.AllocOp) and root.owner.label.data == MADE and not isinstance(
                        inner, (tile.RegionOp, tile.ViewOp)):
                    lives[root] = (lives.get(root, (len(beside), 0))[0], len(beside))
            if isinstance(inner, tile.CallOp) and inner.fn.data == "gather":  # HIVM's has a scratch of that size
                beside[-1] += prod(tile.shape_of(inner.inputs[1])) * 4
            elif isinstance(inner, tile.CallOp) and inner.fn.data == "interleave":
                beside[-1] += SCRATCH
        op = op.next_op
    if together:
        return sum(beside) + sum(_bytes(root.owner) for root in lives if isinstance(root.owner, tile.AllocOp))
    most = 0
    for at, more in enumerate(beside, 1):
        most = max(most, more + sum(_bytes(root.owner) for root, (first, last) in lives.items()
                                    if first <= at <= last and isinstance(root.owner, tile.AllocOp)))
    return most


def _bytes(alloc: tile.AllocOp) -> int:
    kind = alloc.result.type
    assert isinstance(kind, MemRefType)
    *outer, last = kind.get_shape() or (1,)
    row = max(1, last) * dtype_of(kind.element_type).nbytes
    return prod(max(1, size) for size in outer) * ceil(row / BLOCK) * BLOCK


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


class NoRoom(NotVectorWhole):
    """The loop has no room for its tiles; ``part`` of the points at once have."""

    def __init__(self, why: str, edit: str, part: float) -> None:
        super().__init__(why, edit)
        self.part = part


def _in_strips(loop: tile.ParallelOp, terms: _Terms, part: float, told: list[Between]) -> Operation | None:
    """Some rows at a time, where all have no room: a scalar loop around vector work, and the rows that remain behind it."""
    outer = loop.mixed_extents()[0]
    if not isinstance(outer, int):
        return None
    rows = _rows_at_once(outer, part)
    if rows < 2:
        return None
    first: Operation | None = None
    for turns, start, count in ((outer // rows, 0, rows), (1, outer - outer % rows, outer % rows)):
        made = _strip(loop, turns, start, count, terms, told) if count else None
        if count and made is None:
            return None
        first = first or made
    return first


def _rows_at_once(outer: int, part: float) -> int:
    """How many rows have room, of which a part has."""
    rows = int(outer * part)
    return rows - rows % (BLOCK if rows >= BLOCK else 8 if rows >= 8 else 1)  # strips of a column begin at blocks too


def _strip(loop: tile.ParallelOp, turns: int, start: int, count: int, terms: _Terms,
           told: list[Between]) -> Operation | None:
    """``turns`` times ``count`` rows from one on, in front of a loop; None where there is no way."""
    block = loop.parent_block()
    assert block is not None
    points = Block(arg_types=[IndexType()] * len(loop.mixed_extents()))
    numbers = [arith.ConstantOp(IntegerAttr(value, IndexType())) for value in (0, turns, 1)]
    body = Block(arg_types=[IndexType()])
    by, begin = (arith.ConstantOp(IntegerAttr(value, IndexType())) for value in (count, start))
    turn = arith.MuliOp(body.args[0], by.result)
    row = arith.AddiOp(points.args[0], turn.result if turns > 1 else begin.result)
    mapping: dict[SSAValue, SSAValue] = dict(zip(loop.body.block.args, (row.result, *points.args[1:]), strict=True))
    for before, after in zip(loop.body.block.args, points.args, strict=True):
        after.name_hint = before.name_hint
    points.add_op(row)
    for op in loop.body.block.ops:
        points.add_op(op.clone(value_mapper=mapping))
    strip = tile.ParallelOp([count, *loop.mixed_extents()[1:]], Region(points))
    around = scf.ForOp(numbers[0].result, numbers[1].result, numbers[2].result, [], Region(body))
    made: list[Operation] = [*numbers, by, around] if turns > 1 else [begin, strip]
    if turns > 1:
        body.add_ops([turn, strip, scf.YieldOp()])
    for op in (*made, strip, row, turn):
        op.location = loop.location
    block.insert_ops_before(made, loop)
    if not _in_front(strip, terms, told):
        return None
    Rewriter.erase_op(strip)
    return made[0]


def _by_rows(loop: tile.ParallelOp, terms: _Terms, told: list[Between]) -> Operation | None:
    """A scalar loop over the first axis around vector work over the others, in front of a loop; None where there is no way."""
    outer, *inner = loop.mixed_extents()
    block = loop.parent_block()
    if not inner or block is None:
        return None
    extents = [terms.ranges.constant(extent) for extent in loop.mixed_extents()]
    known = [extent for extent in extents if extent is not None]
    stores = sum(isinstance(op, memref.StoreOp) for op in loop.body.block.walk())
    if len(known) == len(extents) and _serial_cycles(loop, known[1:], terms.chip) < stores * terms.chip.vector["copy"].fixed:
        return None  # short rows: their points take less than to wait for a vector instruction
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
        if not _in_front(part, terms, told):
            for op in (around, *reversed(made)):
                Rewriter.erase_op(op)
            return None
        Rewriter.erase_op(part)
    return around


def _in_front(loop: tile.ParallelOp, terms: _Terms, told: list[Between]) -> bool:
    """Put vector work in front of a loop, row by row if need be; whether there is a way."""
    home, last = loop.parent_block(), loop.prev_op
    assert home is not None
    try:
        told.append(_vectorise(loop, terms))
    except NotVector as reason:
        _undo(home, last, loop)
        return isinstance(reason, NotVectorWhole) and _by_rows(loop, terms, told) is not None
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
        reuse: buffers whose lives do not meet will share bytes.
    """

    name = "vectorise-parallel"
    chip: str = chips.DEFAULT
    vectorise: bool = True
    rows: bool = True
    reuse: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        terms = _Terms(Ranges(), chips.chip(self.chip), self.rows, self.reuse)
        found = [without_idle_axes(inner) for inner in list(op.walk()) if isinstance(inner, tile.ParallelOp)]
        parts = [part for whole in found for part in (settle(whole) if self.vectorise else [Part(whole)])]
        for loop, starts in [(loop, part.starts) for part in parts for loop in _parts(part.loop)]:
            self._replace(op, loop, starts, terms)
        _add_by_copies(op)

    def _replace(self, module: ModuleOp, loop: tile.ParallelOp, starts: tuple[int, ...], terms: _Terms) -> None:
        """Put what a loop becomes in its place, and say what that is; a loop of several parts is told part by part."""
        block, last, where = loop.parent_block(), loop.prev_op, location_of(loop)
        assert block is not None
        points = Points(tuple(terms.ranges.constant(extent) for extent in loop.mixed_extents()), starts)

        def vector(first: Operation | None, detours: list[Between], rows: int = 0) -> None:
            names = _names(first, loop)
            record_done(module, self.name, where, ", ".join(names) or "copies and fills",
                        replace(points, ops=names, rows=rows,
                                unaligned=tuple(dict.fromkeys(one for each in detours for one in each.told)),
                                rearranged=tuple(dict.fromkeys(one for each in detours for one in each.moved))))

        try:
            if not self.vectorise:
                msg = "vectorise-parallel is switched off"
                raise NotVector(msg, "take vectorise-parallel out of tl.disable")
            detours = _vectorise(loop, terms)
            vector(last.next_op if last is not None else block.first_op, [detours])
        except NotVector as reason:
            _undo(block, last, loop)
            may = self.rows and isinstance(reason, NotVectorWhole)
            rows, told, at_once = None, list[Between](), 1
            if may and isinstance(reason, NoRoom):
                outer = terms.ranges.constant(loop.mixed_extents()[0])
                at_once = _rows_at_once(outer, reason.part) if outer is not None else 1
                rows = _in_strips(loop, terms, reason.part, told)
                if rows is None:
                    at_once = 1
                    told.clear()
                    _undo(block, last, loop)
            if may and rows is None:
                rows = _by_rows(loop, terms, told)
            if rows is not None:
                vector(rows, told, at_once)
            else:
                record_refusal(module, self.name, where, str(reason), reason.edit, points)
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
