"""Replaces ``T.Parallel`` loops by vector operations, each of which executes one statement for the whole iteration space.

An iteration of a ``T.Parallel`` is called a point. A loop is replaced by vector operations if all of these hold:

- Every access is a region whose axes are in the order of the loop's axes, or an operation can rearrange its elements into such
  a region (:mod:`.detours`, :mod:`.rearranged_loads`, :mod:`.rearranged_stores`).
- For every operation of the body there are vector operations that compute it at all points (:mod:`.vectoriser`).
- Executing each statement for all points before the next statement gives the same results as executing point by point: no point
  reads an element that another point writes (``analysis.parallel_dependence``).

A sum into an element that several points share, ``s[i] += x[i, j]``, is a reduction of the values of all points
(:mod:`.accumulations`); floats are then not added in the order of the points.

A value that the body uses several times is computed once, if UB has room for its tile until the last use
(:mod:`.shared_values`). Conditions are resolved first (:mod:`.conditions`), so that no element is read whose condition does not
hold. Any other loop, and a loop that takes fewer cycles point by point, is replaced by nested scalar loops, which are always
correct. There are two cases in between. If rows of GM are gathered or stored by computed row numbers, the outer axes become
scalar loops around vector operations over the inner axes. If the tiles of all rows do not fit in UB, a scalar loop executes
vector operations for some rows at a time.

The pass runs early, on the traced tile dialect.
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
from tilelang_npu.analysis.buffers import PARALLEL_LABEL, element_type_of, root_of, space_of, users_of
from tilelang_npu.analysis.index_sums import IndexSum
from tilelang_npu.analysis.parallel_dependence import are_disjoint, overlap_only_at_same_point
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.analysis.scratch_sizes import scratch_of_reduction
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.ir.remarks import Points, record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import BLOCK, Chip
from tilelang_npu.transforms.tile.vectorise_parallel.bounds_guards import drop_bounds_guards
from tilelang_npu.transforms.tile.vectorise_parallel.conditions import (
    UB_SCOPES,
    SubLoop,
    choose_between_stores,
    choose_between_values,
    resolve_conditions,
)
from tilelang_npu.transforms.tile.vectorise_parallel.detours import scalar_loop_cycles
from tilelang_npu.transforms.tile.vectorise_parallel.distribute import distribute
from tilelang_npu.transforms.tile.vectorise_parallel.guarded_accesses import guard_accesses
from tilelang_npu.transforms.tile.vectorise_parallel.indices import Invariants, NotVectorisable, NotVectorisableAtOnce
from tilelang_npu.transforms.tile.vectorise_parallel.promote_locals import promote_locals
from tilelang_npu.transforms.tile.vectorise_parallel.rearranged_stores import INTERLEAVE_SCRATCH, Detours
from tilelang_npu.transforms.tile.vectorise_parallel.reshape_axes import drop_unused_unit_axes, split_divided_axes
from tilelang_npu.transforms.tile.vectorise_parallel.shared_values import merge_equal_values
from tilelang_npu.transforms.tile.vectorise_parallel.vectoriser import Vectoriser


def _static_extents(loop: tile.ParallelOp, ranges: Ranges) -> list[int]:
    """Returns the sizes of a loop's iteration space.

    Raises:
        NotVectorisable: a size is known only at run time.
    """
    extents = [ranges.constant(extent) for extent in loop.mixed_extents()]
    if any(extent is None for extent in extents):
        msg = "the extent of an axis of T.Parallel is known only at run time"
        raise NotVectorisable(msg, "give T.Parallel the constant size of the tile; T.copy clips at the end of the tensor")
    return [extent or 0 for extent in extents]


def _check_statement_order(loop: tile.ParallelOp, extents: list[int], ranges: Ranges) -> None:
    """Checks that the loop computes the same statement by statement as point by point.

    Raises:
        NotVectorisableAtOnce: a point accesses an element that another point writes.
    """
    invariants = Invariants(loop)
    stores = [op for op in loop.body.block.ops if isinstance(op, memref.StoreOp)]
    written: dict[SSAValue, list[tuple[IndexSum | None, ...]]] = {}
    for store in stores:
        where = tuple(invariants.index_sum(value) for value in store.indices)
        written.setdefault(root_of(store.memref), []).append(where)

    def in_order(first: tuple[IndexSum | None, ...], second: tuple[IndexSum | None, ...]) -> bool:
        return ((first == second and None not in first) or overlap_only_at_same_point(first, second, extents)
                or are_disjoint(first, second, extents, ranges))

    for places in written.values():
        if not all(in_order(first, second) for first, second in combinations(places, 2)):
            msg = "two statements write overlapping parts of one buffer"
            raise NotVectorisableAtOnce(msg, "let them write disjoint parts, or put each into a separate T.Parallel")
    for op in loop.body.block.ops:
        if isinstance(op, memref.LoadOp) and root_of(op.memref) in written:
            where = tuple(invariants.index_sum(value) for value in op.indices)
            if not all(in_order(where, place) for place in written[root_of(op.memref)]):
                msg = "a point reads an element that another point writes"
                raise NotVectorisableAtOnce(msg, "T.copy the buffer to a second one before the loop, and read that")


@dataclass(frozen=True)
class _Context:
    """What the decisions about all loops of a module depend on.

    Attributes:
        ranges: bounds of scalars.
        chip: the chip.
        rows, reuse: the options of the pass.
    """

    ranges: Ranges
    chip: Chip
    rows: bool
    reuse: bool


def _vectorise_loop(loop: tile.ParallelOp, context: _Context) -> Detours:
    """Emits the vector work of a loop before it; returns the detours that it takes.

    Raises:
        NotVectorisable: the loop is no vector work, or its points take fewer cycles one by one.
    """
    block, last, reshaped = loop.parent_block(), loop.prev_op, split_divided_axes(loop)
    if reshaped is not None and block is not None:
        try:
            detours_taken = _vectorise_choices(reshaped, context)
            _check_room(reshaped, last, context)  # a row of a few elements takes a whole block
        except NotVectorisable:
            _erase_emitted(block, last, loop)
        else:
            Rewriter.erase_op(reshaped)
            return detours_taken
    return _vectorise_choices(loop, context)


def _vectorise_choices(loop: tile.ParallelOp, context: _Context) -> Detours:
    """Emits the vector operations of a loop whose body may contain ``if``, and returns what ``_vectorise_loop`` returns."""
    if any(isinstance(op, scf.IfOp) for op in loop.body.block.ops):
        before, copy = loop.prev_op, loop.clone()  # the loop itself stays, for execution point by point
        Rewriter().insert_op(copy, InsertPoint.before(loop))
        choose_between_values(copy, clipped=True)
        drop_bounds_guards(copy)
        chosen = choose_between_stores(copy)
        detours_taken = _vectorise_body(copy, context)
        Rewriter.erase_op(copy)
        if chosen:  # the selected values need tiles, which scalar loops do not
            _check_room(loop, before, context)
        return detours_taken
    return _vectorise_body(loop, context)


def _vectorise_body(loop: tile.ParallelOp, context: _Context) -> Detours:
    """Emits the vector work of a loop without conditions; see ``_vectorise_loop``."""
    block = loop.body.block
    for op in block.ops:
        if isinstance(op, tile.CopyOp):
            msg = "each point of T.Parallel copies a tile"
            raise NotVectorisable(msg, "copy all tiles by one T.copy of a region, outside of T.Parallel")
        if isinstance(op, scf.IfOp):
            if op.results and any(isinstance(inner, memref.LoadOp) for inner in op.walk()):
                msg = "a condition that differs from point to point decides whether a point reads an element"
                raise NotVectorisableAtOnce(msg, "load a tile that has an element for every point before the loop, with its "
                                                 "margins (T.copy clips at the end of the tensor), and read that")
            msg = "a condition that differs from point to point decides what a point reads or does"
            raise NotVectorisableAtOnce(msg, "choose between two values that exist at all points: T.if_then_else")
        if op.regions:
            msg = f"the operation {op.name} in the body has no vector instruction"
            raise NotVectorisable(msg, "move the operation out of T.Parallel, into a loop of T.serial")
    extents = _static_extents(loop, context.ranges)
    _check_statement_order(loop, extents, context.ranges)
    before = loop.prev_op
    merge_equal_values(block)
    try:
        work = _emit_statements(loop, extents, context, shares_values=True)
        if work.kept:
            _check_room(loop, before, context)
    except NoRoom:  # a value that is kept needs a tile for longer
        home = loop.parent_block()
        assert home is not None
        _erase_emitted(home, before, loop)
        work = _emit_statements(loop, extents, context, shares_values=False)
    detours = work.detours
    if detours.uses_other_pipes and not context.rows:
        msg = "rearranging the elements needs operations of several pipes, and the author writes the waits between pipes"
        raise NotVectorisable(msg, "T.copy to UB before the loop and from UB after it, or let the compiler synchronise")
    if detours.reduces and not context.rows:
        msg = "values of several points are combined in one element, and the author writes the waits between pipes"
        raise NotVectorisable(msg, "let each point write a separate element, and reduce these after the loop (T.reduce_sum and "
                                   "the like); or let the compiler synchronise")
    if detours.rearranged or detours.reduces:
        _check_room(loop, before, context)
    takes_detours = detours.rearranged or detours.unaligned or detours.reduces
    if takes_detours and detours.cycles >= _serial_cycles(loop, extents, context.chip):
        raise _slower_error(detours)
    return detours


def _emit_statements(loop: tile.ParallelOp, extents: list[int], context: _Context, *, shares_values: bool) -> Vectoriser:
    """Emits the vector operations of all statements of a loop before it."""
    work = Vectoriser(loop, extents, context.chip, context.ranges, shares_values=shares_values)
    statements = list(loop.body.block.ops)
    for position, op in enumerate(statements):
        if isinstance(op, memref.StoreOp):
            work.keep_values_before(op, statements[position + 1:])
            work.store(op)
    return work


class VectorWorkSlower(NotVectorisable):
    """The points of a loop take fewer cycles one by one than by vector operations."""


def _slower_error(detours: Detours) -> VectorWorkSlower:
    """Returns the error that the points one by one take fewer cycles than the detours."""
    if detours.reduces and not detours.rearranged:
        msg = f"a vector reduction of so few values takes longer than combining them one by one: {detours.cycles:.0f} cycles"
        return VectorWorkSlower(msg, "give the loop more points")
    if not detours.rearranged:
        names = ", ".join(dict.fromkeys(one.partition(" (")[0] for one in detours.unaligned))
        msg = (f"an access to {names} does not begin at a multiple of {BLOCK} bytes, and vector work on an aligned copy takes "
               "longer than computing the points one by one")
        return VectorWorkSlower(msg, f"begin at a multiple of {BLOCK} bytes: pad the rows of the buffer to such a multiple, or,"
                                     " for an index that changes from loop to loop, make it the first axis of the buffer")
    msg = (f"vector work takes longer than computing the points one by one: {detours.cycles:.0f} cycles to rearrange "
           f"{', '.join(dict.fromkeys((*detours.rearranged, *detours.unaligned)))}")
    return VectorWorkSlower(msg, "give the loop more points, or read and write tiles in the order of the loop")


_USABLE_SHARE = 0.9
"""The share of UB that the tiles may take; the rest is for what other passes add: slots, scratch of other operations."""


def _check_room(loop: tile.ParallelOp, before: Operation | None, context: _Context) -> None:
    """Checks that the tiles that a loop's vector work allocates fit UB with the author's buffers.

    Args:
        loop: the loop.
        before: the operation before the vector work; None at the start of a block.
        context: the chip and the options.

    Raises:
        NoRoom: they do not.
    """
    made = _peak_bytes(loop, before, without_reuse=not context.reuse)
    around = loop.parent_op()
    while around is not None and not isinstance(around, tile.LaunchOp) and not isinstance(around.parent_op(), ModuleOp | None):
        around = around.parent_op()
    others, new, op = 0, set[Operation](), loop.prev_op
    while op is not None and op is not before:
        new.update(op.walk())
        op = op.prev_op
    for other in around.walk() if around is not None else ():
        ours = isinstance(other, tile.AllocOp) and other.label.data == PARALLEL_LABEL and (context.reuse or other in new)
        if isinstance(other, tile.AllocOp) and not ours and space_of(other.result) in UB_SCOPES:
            others += 0 if any(isinstance(use, tile.GemmOp) for use in users_of(other.result)) else _padded_bytes(other)
    size = int(context.chip.memory["ub"].size * _USABLE_SHARE)
    if made + others > size:
        msg = (f"the vector operations need {made} bytes of temporary tiles in UB besides the {others} bytes of the kernel's "
               f"buffers, and only {size} bytes may be used")
        edit = "use smaller tiles; or put T.Parallel over a few rows into a T.serial loop over the rest"
        raise NoRoom(msg, edit, (size - others) / made, made + others - size)


def _peak_bytes(loop: tile.ParallelOp, before: Operation | None, *, without_reuse: bool) -> int:
    """Returns the bytes of the tiles of a loop's vector work that are live at once; of all of them ``without_reuse``.

    Args:
        loop: the loop, after the vector work.
        before: the operation before the vector work; None at the start of a block.
        without_reuse: whether no two tiles may share bytes.
    """
    block = loop.parent_block()
    assert block is not None
    op = before.next_op if before is not None else block.first_op
    live_ranges: dict[SSAValue, tuple[int, int]] = {}
    scratch: list[int] = []
    while op is not None and op is not loop:
        scratch.append(0)
        for inner in op.walk():
            for operand in inner.operands:
                root = root_of(operand)
                if isinstance(root.owner, tile.AllocOp) and root.owner.label.data == PARALLEL_LABEL and not isinstance(
                        inner, (tile.RegionOp, tile.ViewOp)):
                    live_ranges[root] = (live_ranges.get(root, (len(scratch), 0))[0], len(scratch))
            if isinstance(inner, tile.CallOp) and inner.fn.data == "gather":  # HIVM's gather has scratch of that size
                scratch[-1] += prod(tile.shape_of(inner.inputs[1])) * 4
            elif isinstance(inner, tile.CallOp) and inner.fn.data == "interleave":
                scratch[-1] += INTERLEAVE_SCRATCH
            elif isinstance(inner, tile.ReduceOp):
                shape, element = tile.shape_of(inner.source), element_type_of(inner.source)
                scratch[-1] += dtype_of(element).nbytes * scratch_of_reduction(
                    inner.entry().mode, element, shape, prod(shape), tuple(inner.dims.get_values()))
        op = op.next_op
    if without_reuse:
        return sum(scratch) + sum(_padded_bytes(root.owner) for root in live_ranges if isinstance(root.owner, tile.AllocOp))
    peak = 0
    for at, more in enumerate(scratch, 1):
        peak = max(peak, more + sum(_padded_bytes(root.owner) for root, (first, last) in live_ranges.items()
                                    if first <= at <= last and isinstance(root.owner, tile.AllocOp)))
    return peak


def _padded_bytes(alloc: tile.AllocOp) -> int:
    """Returns the bytes of an allocation with its rows padded to whole blocks."""
    kind = alloc.result.type
    assert isinstance(kind, MemRefType)
    *outer, last = kind.get_shape() or (1,)
    row = max(1, last) * dtype_of(kind.element_type).nbytes
    return prod(max(1, size) for size in outer) * ceil(row / BLOCK) * BLOCK


def _serial_cycles(loop: tile.ParallelOp, extents: list[int], chip: Chip) -> float:
    """Returns the cycles of the points one by one; infinite where they access GM."""
    if any(isinstance(op, memref.LoadOp | memref.StoreOp) and space_of(op.memref) == "gm" for op in loop.body.block.ops):
        return inf
    return prod(extents) * _point_cycles(list(loop.body.block.ops), chip)


def _point_cycles(body: list[Operation], chip: Chip) -> float:
    """Returns the cycles of the scalar unit for one point with the operations of ``body``, without waiting for GM."""
    unit, accesses = chip.scalar, [op for op in body if isinstance(op, memref.LoadOp | memref.StoreOp)]
    point = sum(unit.load if isinstance(op, memref.LoadOp) else unit.store for op in accesses)
    return point + unit.alu * (len(body) - len(accesses)) + scalar_loop_cycles(chip)


def _emit_scalar_loops(loop: tile.ParallelOp) -> None:
    """Emits nested scalar loops over the iteration space before a loop.

    Elements past the end of a tensor in GM read as 0 and are not written, as by the copies of vector work (``guard_accesses``).
    """
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
    guard_accesses(loop)
    mapping: dict[SSAValue, SSAValue] = dict(zip(loop.body.block.args, indices, strict=True))
    for op in loop.body.block.ops:
        if not isinstance(op, tile.YieldOp):
            inner.add_op(op.clone(value_mapper=mapping))
    inner.add_op(scf.YieldOp())
    parent.insert_op_before(outermost, loop)


class NoRoom(NotVectorisableAtOnce):
    """The tiles that the vector operations of a loop need do not fit in UB.

    Attributes:
        share: the fraction of the points for which the tiles would fit, at most 1; negative where the kernel's buffers alone do
            not fit.
        lacking: the bytes that the tiles for all points need beyond those that are free.
    """

    def __init__(self, why: str, edit: str, share: float, lacking: int) -> None:
        super().__init__(why, edit)
        self.share, self.lacking = share, lacking


def _vectorise_in_strips(loop: tile.ParallelOp, context: _Context, share: float,
                         detours_taken: list[Detours]) -> Operation | None:
    """Emits a scalar loop over strips of rows, with vector work in it, and vector work for the remaining rows.

    Returns the first operation, or None where a strip is no vector work.
    """
    outer = loop.mixed_extents()[0]
    if not isinstance(outer, int):
        return None
    rows = _rows_per_strip(outer, share)
    if rows < 2:
        return None
    first: Operation | None = None
    for trips, start, count in ((outer // rows, 0, rows), (1, outer - outer % rows, outer % rows)):
        made = _vectorise_strip(loop, trips, start, count, context, detours_taken) if count else None
        if count and made is None:
            return None
        first = first or made
    return first


def _rows_per_strip(outer: int, share: float) -> int:
    """Returns how many of ``outer`` rows fit, of which a share fits; a multiple of a block's elements, if possible."""
    rows = int(outer * share)
    return rows - rows % (BLOCK if rows >= BLOCK else 8 if rows >= 8 else 1)  # so that strips of a column begin at blocks too


def _vectorise_strip(loop: tile.ParallelOp, trips: int, start: int, count: int, context: _Context,
                     detours_taken: list[Detours]) -> Operation | None:
    """Emits ``trips`` times vector work for ``count`` rows before a loop; returns its first operation, or None where it is
    none.

    Args:
        loop: the loop.
        trips: the number of strips.
        start: the first row.
        count: the rows of a strip.
        context: the chip and the options.
        detours_taken: gets the detours of the vector work.
    """
    block = loop.parent_block()
    assert block is not None
    points = Block(arg_types=[IndexType()] * len(loop.mixed_extents()))
    numbers = [arith.ConstantOp(IntegerAttr(value, IndexType())) for value in (0, trips, 1)]
    body = Block(arg_types=[IndexType()])
    by, begin = (arith.ConstantOp(IntegerAttr(value, IndexType())) for value in (count, start))
    offset = arith.MuliOp(body.args[0], by.result)
    row = arith.AddiOp(points.args[0], offset.result if trips > 1 else begin.result)
    mapping: dict[SSAValue, SSAValue] = dict(zip(loop.body.block.args, (row.result, *points.args[1:]), strict=True))
    for before, after in zip(loop.body.block.args, points.args, strict=True):
        after.name_hint = before.name_hint
    points.add_op(row)
    for op in loop.body.block.ops:
        points.add_op(op.clone(value_mapper=mapping))
    strip = tile.ParallelOp([count, *loop.mixed_extents()[1:]], Region(points))
    around = scf.ForOp(numbers[0].result, numbers[1].result, numbers[2].result, [], Region(body))
    made: list[Operation] = [*numbers, by, around] if trips > 1 else [begin, strip]
    if trips > 1:
        body.add_ops([offset, strip, scf.YieldOp()])
    for op in (*made, strip, row, offset):
        op.location = loop.location
    block.insert_ops_before(made, loop)
    if not _vectorise_before(strip, context, detours_taken):
        return None
    Rewriter.erase_op(strip)
    return made[0]


def _vectorise_inner_axes(loop: tile.ParallelOp, context: _Context, detours_taken: list[Detours]) -> Operation | None:
    """Emits a scalar loop over the first axis, with vector work over the others, before a loop.

    Returns the first emitted operation; None if no vector operations can compute the inner axes either.
    """
    outer, *inner = loop.mixed_extents()
    block = loop.parent_block()
    if not inner or block is None:
        return None
    extents = [context.ranges.constant(extent) for extent in loop.mixed_extents()]
    known = [extent for extent in extents if extent is not None]
    stores = sum(isinstance(op, memref.StoreOp) for op in loop.body.block.walk())
    latency = stores * context.chip.vector["copy"].fixed
    if len(known) == len(extents) and _serial_cycles(loop, known[1:], context.chip) < latency:
        return None  # short rows: point by point is faster than one vector latency
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
    for part in [part for whole in resolve_conditions(rows) for part in _distributed(whole.loop)]:
        if not _vectorise_before(part, context, detours_taken):
            for op in (around, *reversed(made)):
                Rewriter.erase_op(op)
            return None
        Rewriter.erase_op(part)
    return around


def _vectorise_before(loop: tile.ParallelOp, context: _Context, detours_taken: list[Detours]) -> bool:
    """Emits vector work, if need be over the inner axes, before a loop; returns whether there is any."""
    home, last = loop.parent_block(), loop.prev_op
    assert home is not None
    try:
        detours_taken.append(_vectorise_loop(loop, context))
    except NotVectorisable as reason:
        _erase_emitted(home, last, loop)
        return isinstance(reason, NotVectorisableAtOnce) and _vectorise_inner_axes(loop, context, detours_taken) is not None
    return True


def _vector_ops_between(first: Operation | None, last: Operation) -> tuple[str, ...]:
    """Returns the names of the vector operations from one operation to another of its block, in order."""
    names: list[str] = []
    while first is not None and first is not last:
        names += [op.entry().name for op in first.walk() if isinstance(op, (tile.ElementwiseOp, tile.ReduceOp))]
        first = first.next_op
    return tuple(names)


def _add_by_copies(module: ModuleOp) -> None:
    """Replaces atomic updates of single elements by copies from a tile of one element: no instruction combines a register with
    an element.
    """
    for store in [op for op in module.walk() if isinstance(op, memref.StoreOp) and tile.ATOMIC in op.attributes]:
        kind = store.memref.type
        assert isinstance(kind, MemRefType)
        ones = [1] * kind.get_num_dims()
        cell = tile.AllocOp("added", MemRefType(kind.element_type, ones, memory_space=hivm.address_space("ub")))
        zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
        place = tile.RegionOp(store.memref, list(store.indices), ones, range(len(ones)))
        made = [cell, zero, memref.StoreOp.get(store.value, cell.result, [zero.result] * len(ones)), place,
                tile.CopyOp(cell.result, place.results[0], atomic=tile.atomic_kind_of(store))]
        for op in made:
            op.location = store.location
        Rewriter.replace_op(store, made, [])


@dataclass(frozen=True)
class VectoriseParallel(ModulePass):
    """Replaces ``T.Parallel`` loops by vector operations, each of which executes one statement for the whole iteration space.

    Attributes:
        chip: the name of the chip whose cycle counts decide between vector operations and scalar loops.
        enabled: whether to use vector operations; if false, all loops become scalar loops.
        synchronise: whether the compiler inserts the waits between operations of one core. If false, no loop becomes a scalar
            loop with vector operations in it, because the author could not write waits inside of it.
        reuse: whether memory planning lets buffers with disjoint live ranges share bytes.
    """

    name = "vectorise-parallel"
    chip: str = chips.DEFAULT
    enabled: bool = True
    synchronise: bool = True
    reuse: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        context = _Context(Ranges(), chips.chip(self.chip), self.synchronise, self.reuse)
        found = [drop_unused_unit_axes(inner) for inner in list(op.walk()) if isinstance(inner, tile.ParallelOp)]
        found = [promote_locals(loop, context.ranges) for loop in found] if self.enabled else found
        parts = [part for whole in found for part in (resolve_conditions(whole) if self.enabled else [SubLoop(whole)])]
        for loop, starts in [(loop, part.starts) for part in parts for loop in _distributed(part.loop)]:
            self._replace_loop(op, loop, starts, context)
        _add_by_copies(op)

    def _replace_loop(self, module: ModuleOp, loop: tile.ParallelOp, starts: tuple[int, ...], context: _Context) -> None:
        """Replaces a loop by vector work or scalar loops, and records which."""
        block, last, where = loop.parent_block(), loop.prev_op, location_of(loop)
        assert block is not None
        points = Points(tuple(context.ranges.constant(extent) for extent in loop.mixed_extents()), starts)

        def record_vector_work(first: Operation | None, detours: list[Detours], rows: int = 0, lacking: int = 0) -> None:
            names = _vector_ops_between(first, loop)
            text = f"the loop is computed by the vector operations {', '.join(names)}" if names else (
                "the loop is computed by vector copies and fills")
            record_done(module, self.name, where, text,
                        replace(points, ops=names, rows=rows, lacking=lacking,
                                unaligned=tuple(dict.fromkeys(one for each in detours for one in each.unaligned)),
                                rearranged=tuple(dict.fromkeys(one for each in detours for one in each.rearranged))))

        try:
            if not self.enabled:
                msg = "vectorise-parallel is switched off"
                raise NotVectorisable(msg, "take vectorise-parallel out of tl.disable")
            detours = _vectorise_loop(loop, context)
            record_vector_work(last.next_op if last is not None else block.first_op, [detours])
        except NotVectorisable as reason:
            _erase_emitted(block, last, loop)
            may = self.synchronise and isinstance(reason, NotVectorisableAtOnce)
            rows, detours_taken, at_once = None, list[Detours](), 1
            lacking = reason.lacking if isinstance(reason, NoRoom) else 0
            if may and isinstance(reason, NoRoom):
                outer = context.ranges.constant(loop.mixed_extents()[0])
                at_once = _rows_per_strip(outer, reason.share) if outer is not None else 1
                rows = _vectorise_in_strips(loop, context, reason.share, detours_taken)
                if rows is None:
                    at_once = 1
                    detours_taken.clear()
                    _erase_emitted(block, last, loop)
            if may and rows is None:
                rows = _vectorise_inner_axes(loop, context, detours_taken)
            if rows is not None:
                record_vector_work(rows, detours_taken, at_once, lacking)
            else:
                demanded = not self.enabled or isinstance(reason, VectorWorkSlower) or None in points.extents
                count = 0 if demanded else prod(extent or 0 for extent in points.extents)
                cycles = round(count * _point_cycles(list(loop.body.block.walk()), context.chip))
                record_refusal(module, self.name, where, str(reason), reason.edit,
                               replace(points, lacking=lacking, cycles=cycles))
                _emit_scalar_loops(loop)
        Rewriter.erase_op(loop)


def _distributed(loop: tile.ParallelOp) -> list[tile.ParallelOp]:
    """Returns the loop, or the parallel loops that replace it when the serial loops of its body are moved outside."""
    try:
        made = distribute(loop)
    except NotVectorisable:
        return [loop]
    if made != [loop]:
        Rewriter.erase_op(loop)
    return made


def _erase_emitted(block: Block, last: Operation | None, loop: tile.ParallelOp) -> None:
    """Erases the operations between ``last`` and a loop, which a failed vectorisation emitted."""
    current = loop.prev_op
    while current is not None and current is not last:
        previous = current.prev_op
        Rewriter.erase_op(current)
        current = previous
