"""Skews a loop: rewrites the loop so that some statements of its body work on an earlier iteration than other statements.

The body is divided into pieces of consecutive statements. Each piece has a lag: in iteration ``t`` of the new loop, a piece
with lag ``n`` executes its statements for iteration ``t - n`` of the old loop. The new loop has as many more iterations as the
largest lag, and a piece is executed only where its iteration of the old loop exists. A value that is passed between pieces of
different lags gets a ring buffer: an allocation with one more axis, the slots. Each piece uses the slot of its own iteration.

The caller must make sure that the skewed loop computes the same results; this module does not check dependences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from tilelang_npu.analysis.buffers import root_of
from tilelang_npu.analysis.cores import put_core
from tilelang_npu.analysis.locations import copy_location
from tilelang_npu.analysis.loop_body import Statement, StoredValue
from tilelang_npu.dialects import tile


class Piece(NamedTuple):
    """Consecutive statements of a loop's body with a common lag.

    Attributes:
        lag: the number of iterations by which the iteration that the piece executes is earlier than that of the new loop.
        statements: the statements of the piece.
    """

    lag: int
    statements: Sequence[Statement]


def rings_of(pieces: Sequence[Piece], own: Mapping[StoredValue, tile.AllocOp]) -> tuple[dict[StoredValue, int],
                                                                                        dict[StoredValue, list[int]]]:
    """Finds the values that need ring buffers.

    Args:
        pieces: all pieces of the body.
        own: the values that do not survive an iteration, with the allocations that hold them.

    Returns:
        For each value that pieces of different lags access, the number of slots of its ring buffer; and for each value of
        ``own``, the lags of the pieces that access the value.
    """
    lags: dict[StoredValue, list[int]] = {}
    for piece in pieces:
        for statement in piece.statements:
            for value in [value for value in statement.accessed if value in own]:
                lags.setdefault(value, []).append(piece.lag)
    return {value: max(seen) - min(seen) + 1 for value, seen in lags.items() if len(set(seen)) > 1}, lags


@dataclass(frozen=True)
class _Iteration:
    """The trip of a new loop into which pieces are emitted.

    Attributes:
        index: the induction variable of the new loop.
        start, end: the bounds of the old loop.
        rings: the ring buffer of each value that has one.
        kept: the operations of the old body.
        private: the buffers of the old body, with the buffers of this loop that replace them.
    """

    index: SSAValue
    start: SSAValue
    end: SSAValue
    rings: Mapping[StoredValue, SSAValue]
    kept: set[Operation]
    private: Mapping[SSAValue, SSAValue]


class SkewedLoop:
    """Rewrites a loop into a skewed loop, by one of its two methods.

    Args:
        loop: the loop.
        own: the values that do not survive an iteration, with the allocations that hold them.
        pieces: all pieces of the body, in their order in the new body.
        rings: the values that get ring buffers, with their numbers of slots (see ``rings_of``).
        lags: for each value, the lags of the pieces that access the value (see ``rings_of``).
    """

    def __init__(self, loop: scf.ForOp, own: Mapping[StoredValue, tile.AllocOp], pieces: Sequence[Piece],
                 rings: Mapping[StoredValue, int], lags: Mapping[StoredValue, Sequence[int]]) -> None:
        self._loop, self._own, self._pieces, self._ring_slots = loop, own, pieces, rings
        self._index = loop.body.block.args[0]
        self._first_lag = {value: min(seen) for value, seen in lags.items()}
        self._last_lag = max(piece.lag for piece in pieces)

    def rewrite_with_conditions(self) -> None:
        """Replaces the body by one in which each piece with a missing iteration at one end is in an ``scf.if``.

        The condition is that the iteration of the old loop exists.
        """
        block, loop = self._loop.body.block, self._loop
        rings, end = self._allocate_rings(), loop.ub
        old = [op for op in block.ops if not isinstance(op, tile.AllocOp)]
        if self._last_lag:
            loop.operands[1] = self._bound_plus_last_lag(end, loop)
        terminator = self._detach_statements(old)
        iteration = _Iteration(self._index, loop.lb, end, rings, set(old), dict[SSAValue, SSAValue]())
        for piece in self._pieces:
            self._emit_piece(piece, iteration, terminator, bool(piece.lag), piece.lag < self._last_lag)
        self._erase_old_ops(old)

    def rewrite_with_prologue(self) -> None:
        """Replaces the loop by three loops: a prologue, a steady state, and an epilogue.

        In the prologue, pieces with a large lag have no iteration to execute yet. In the epilogue, pieces with a small lag have
        none left. In the steady state all pieces have one, so none of them is in a branch.
        """
        block, loop = self._loop.body.block, self._loop
        rings, start, end = self._allocate_rings(), loop.lb, loop.ub
        old = [op for op in block.ops if not isinstance(op, tile.AllocOp)]
        private = [op for op in block.ops if isinstance(op, tile.AllocOp)]
        full, stop = self._bound_plus_last_lag(start, loop), self._bound_plus_last_lag(end, loop)
        left = self._insert_op(arith.MaxSIOp(end, full), loop).results[0]
        terminator = self._detach_statements(old)
        loop.operands[0] = full
        for low, high, side in ((start, full, 0), (left, stop, 1)):
            made = scf.ForOp(low, high, loop.step, [], Block(arg_types=[IndexType()]))
            made.attributes = dict(loop.attributes)
            copy_location(loop, made)
            Rewriter().insert_op(made, InsertPoint.after(loop) if side else InsertPoint.before(loop))
            made.body.block.args[0].name_hint = self._index.name_hint
            ended = scf.YieldOp()
            own = [_clone_allocation(allocation) for allocation in private]
            made.body.block.add_ops([*own, ended])
            put_core(made, "either")
            iteration = _Iteration(made.body.block.args[0], start, end, rings, set(old),
                                   {one.result: other.result for one, other in zip(private, own, strict=True)})
            for piece in self._pieces:
                if piece.lag < self._last_lag if side == 0 else piece.lag:
                    self._emit_piece(piece, iteration, ended, bool(piece.lag), True)
            for each in own:
                if not list(each.result.uses):
                    Rewriter.erase_op(each)
        iteration = _Iteration(self._index, start, end, rings, set(old), dict[SSAValue, SSAValue]())
        for piece in self._pieces:
            self._emit_piece(piece, iteration, terminator, False, False)
        self._erase_old_ops(old)

    def _allocate_rings(self) -> dict[StoredValue, SSAValue]:
        return {value: self._allocate_ring(self._own[value], count) for value, count in self._ring_slots.items()}

    def _bound_plus_last_lag(self, bound: SSAValue, before: Operation) -> SSAValue:
        """Emits a bound plus the largest lag times the step."""
        more = self._insert_op(arith.ConstantOp(IntegerAttr(self._last_lag, IndexType())), before).results[0]
        step = self._insert_op(arith.MuliOp(more, self._loop.step), before).results[0]
        return self._insert_op(arith.AddiOp(bound, step), before).results[0]

    def _detach_statements(self, old: Sequence[Operation]) -> Operation:
        """Takes the statements out of the body; returns its terminator."""
        for op in old:
            if not op.has_trait(IsTerminator):
                self._loop.body.block.detach_op(op)
        terminator = self._loop.body.block.last_op
        assert terminator is not None
        return terminator

    def _erase_old_ops(self, old: Sequence[Operation]) -> None:
        for op in reversed(old):
            if op.parent_block() is None:
                op.erase(safe_erase=False)
        for allocation in dict.fromkeys(self._own[value] for value in self._ring_slots):
            if not list(allocation.result.uses):
                Rewriter.erase_op(allocation)

    def _allocate_ring(self, allocation: tile.AllocOp, count: int) -> SSAValue:
        kind = allocation.result.type
        assert isinstance(kind, MemRefType)
        wide = MemRefType(kind.element_type, [count, *kind.get_shape()], memory_space=kind.memory_space)
        made = tile.AllocOp(allocation.label.data, wide)
        made.result.name_hint = allocation.result.name_hint
        copy_location(allocation, made)
        Rewriter().insert_op(made, InsertPoint.before(self._loop))
        return made.result

    def _emit_piece(self, piece: Piece, iteration: _Iteration, before: Operation, began: bool, ended: bool) -> None:
        """Emits a piece before an operation, with its iteration's index and slots.

        Args:
            piece: the piece.
            iteration: the trip of the new loop.
            before: the operation.
            began: whether the piece needs the condition that its iteration is not before the first.
            ended: whether it needs the condition that its iteration is not after the last.
        """
        lag, first = piece.lag, piece.statements[0].op
        inner = Block()
        mapped = dict(iteration.private)
        index: SSAValue = iteration.index
        if lag:
            back = self._insert_like(arith.ConstantOp(IntegerAttr(lag, IndexType())), first, before).results[0]
            back = self._insert_like(arith.MuliOp(back, self._loop.step), first, before).results[0]
            if began:
                start = self._insert_like(arith.AddiOp(iteration.start, back), first, before).results[0]
            index = _append(inner, arith.SubiOp(iteration.index, back), first)
        if ended:  # range analysis does not read the branch's condition, so clamp the index to the bounds that hold in it
            final = _append(inner, arith.SubiOp(iteration.end, self._loop.step), first)
            index = _append(inner, arith.MinSIOp(index, final), first)
        mapped[self._index] = _append(inner, arith.MaxSIOp(index, iteration.start), first) if began or ended else index
        conditions: list[SSAValue] = []
        if began:
            conditions.append(self._insert_like(arith.CmpiOp(iteration.index, start, "sge"), first, before).results[0])
        if ended:
            bound = self._insert_like(arith.AddiOp(iteration.end, back), first, before).results[0] if lag else iteration.end
            conditions.append(self._insert_like(arith.CmpiOp(iteration.index, bound, "slt"), first, before).results[0])
        slots = {value: self._emit_slot(iteration, iteration.rings[value], count, (lag - self._first_lag[value]) % count,
                                        inner, first)
                 for value, count in self._ring_slots.items()
                 if any(value in statement.accessed for statement in piece.statements)}
        ringed = {value.root for value in slots}
        for statement in piece.statements:
            seen = mapped | {value.root: slots[value] for value in statement.accessed & slots.keys()}
            for op in self._with_needed_ops(statement.op, iteration.kept, seen):
                _clone_into(op, inner, seen)
            # A view shows the slot of this statement's value.
            mapped = {old: new for old, new in seen.items() if root_of(old) not in ringed}
        if not conditions:
            for op in list(inner.ops):
                inner.detach_op(op)
                Rewriter().insert_op(op, InsertPoint.before(before))
            return
        condition = conditions[0]
        if len(conditions) == 2:
            condition = self._insert_like(arith.AndIOp(conditions[0], conditions[1]), first, before).results[0]
        inner.add_op(scf.YieldOp())
        put_core(self._insert_like(scf.IfOp(condition, [], Region(inner)), first, before), "either")

    @staticmethod
    def _emit_slot(iteration: _Iteration, ring: SSAValue, count: int, lag: int, inner: Block, like: Operation) -> SSAValue:
        """Emits the region of a ring buffer that is the slot of the piece's iteration: iteration number modulo the slots."""
        shape = tile.shape_of(ring)
        slots = _append(inner, arith.ConstantOp(IntegerAttr(count, IndexType())), like)
        turn = _append(inner, arith.SubiOp(iteration.index, iteration.start), like)
        if lag:
            shift = _append(inner, arith.ConstantOp(IntegerAttr(count - lag, IndexType())), like)
            turn = _append(inner, arith.AddiOp(turn, shift), like)
        turn = _append(inner, arith.RemUIOp(turn, slots), like)
        sizes = [1, *shape[1:]]
        return _append(inner, tile.RegionOp(ring, [turn] + [0] * (len(shape) - 1), sizes, range(1, len(shape))), like)

    @staticmethod
    def _with_needed_ops(op: Operation, kept: set[Operation], mapped: dict[SSAValue, SSAValue]) -> list[Operation]:
        """Returns the scalars, regions and views of the old body that a statement needs and that are not emitted yet, then the
        statement.
        """
        needed: list[Operation] = []

        def visit(value: SSAValue) -> None:
            owner = value.owner
            if isinstance(owner, Operation) and owner in kept and value not in mapped and owner not in needed:
                for operand in owner.operands:
                    visit(operand)
                needed.append(owner)

        for inner in op.walk():
            for operand in inner.operands:
                if not (isinstance(operand.owner, Operation) and op.is_ancestor(operand.owner)):
                    visit(operand)
        return [*needed, op]

    def _insert_op(self, made: Operation, before: Operation) -> Operation:
        copy_location(self._loop, made)
        Rewriter().insert_op(made, InsertPoint.before(before))
        return made

    @staticmethod
    def _insert_like(made: Operation, like: Operation, before: Operation) -> Operation:
        copy_location(like, made)
        Rewriter().insert_op(made, InsertPoint.before(before))
        return made


def _clone_allocation(allocation: tile.AllocOp) -> tile.AllocOp:
    made = allocation.clone()
    copy_location(allocation, made)
    made.result.name_hint = allocation.result.name_hint
    return made


def _append(block: Block, made: Operation, like: Operation) -> SSAValue:
    """Appends an operation to a block with the location of another one; returns its result."""
    copy_location(like, made)
    block.add_op(made)
    return made.results[0]


def _clone_into(op: Operation, block: Block, mapped: dict[SSAValue, SSAValue]) -> None:
    """Appends a copy of an operation to a block; the types of regions in it follow the types of their new sources."""
    made: Operation
    if isinstance(op, tile.RegionOp):
        made = _region_of(op, mapped)
        mapped[op.result] = made.results[0]
    else:
        made = op.clone(value_mapper=mapped)
        for inner in [inner for inner in made.walk() if isinstance(inner, tile.RegionOp)]:
            follows = _region_of(inner, {})
            if follows.result.type != inner.result.type:
                follows.location = inner.location
                Rewriter.replace_op(inner, follows)
    made.location = op.location
    block.add_op(made)


def _region_of(op: tile.RegionOp, mapped: dict[SSAValue, SSAValue]) -> tile.RegionOp:
    """Builds the same region of the value that its source is mapped to."""
    offsets = [mapped.get(each, each) if isinstance(each, SSAValue) else each for each in op.mixed_offsets()]
    sizes = [mapped.get(each, each) if isinstance(each, SSAValue) else each for each in op.mixed_sizes()]
    made = tile.RegionOp(mapped.get(op.source, op.source), offsets, sizes, op.kept.get_values())
    made.result.name_hint = op.result.name_hint
    return made


__all__ = ["Piece", "SkewedLoop", "rings_of"]
