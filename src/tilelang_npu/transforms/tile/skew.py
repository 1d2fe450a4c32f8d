"""Rewrite a loop so that some of its statements work on earlier iterations than others.

A piece of the body is so many iterations behind the first one: its lag. The loop runs as many times more as the last piece is
behind, and each piece only where its iteration exists. What one iteration hands to a piece of another lag gets a ring of as
many slots as iterations lie between, with the slot that belongs to the iteration in each piece. Who asks for it knows that
this computes the same: which statements may have which lag is no question here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.ir.buffers import root_of
from tilelang_npu.transforms.ir.cores import put_core
from tilelang_npu.transforms.ir.locations import stand_in
from tilelang_npu.transforms.tile.staged_body import Statement, StoredValue


class Piece(NamedTuple):
    """Statements that follow each other, and how many iterations they are behind the first piece."""

    lag: int
    statements: Sequence[Statement]


def rings_of(pieces: Sequence[Piece], own: Mapping[StoredValue, tile.AllocOp]) -> tuple[dict[StoredValue, int],
                                                                                     dict[StoredValue, list[int]]]:
    """How many slots what goes from lag to lag needs; and for each value of an iteration the lags of who touches it."""
    lags: dict[StoredValue, list[int]] = {}
    for piece in pieces:
        for statement in piece.statements:
            for value in [value for value in statement.touches if value in own]:
                lags.setdefault(value, []).append(piece.lag)
    return {value: max(seen) - min(seen) + 1 for value, seen in lags.items() if len(set(seen)) > 1}, lags


@dataclass(frozen=True)
class _Emission:
    """What the pieces in one loop need to know.

    Attributes:
        index: of the loop.
        start, end: of the iterations that there are.
        rings: the rings.
        kept: the operations of the body as written.
        private: what stands for buffers that this loop has for itself.
    """

    index: SSAValue
    start: SSAValue
    end: SSAValue
    rings: Mapping[StoredValue, SSAValue]
    kept: set[Operation]
    private: Mapping[SSAValue, SSAValue]


class Skew:
    """Rewrites a loop.

    Args:
        loop: the loop.
        own: the values that are of one iteration, with the allocations that hold them.
        pieces: the body, in the order in which it is to stand.
        rings: the values that get rings, of how many slots.
        lags: for each value the lags of who touches it.
    """

    def __init__(self, loop: scf.ForOp, own: Mapping[StoredValue, tile.AllocOp], pieces: Sequence[Piece],
                 rings: Mapping[StoredValue, int], lags: Mapping[StoredValue, Sequence[int]]) -> None:
        self._loop, self._own, self._pieces, self._counts = loop, own, pieces, rings
        self._index = loop.body.block.args[0]
        self._first = {value: min(seen) for value, seen in lags.items()}
        self._last = max(piece.lag for piece in pieces)

    def run(self) -> None:
        """Replace the body, each piece under the condition that its iteration exists."""
        block, loop = self._loop.body.block, self._loop
        rings, end = self._rings(), loop.ub
        old = [op for op in block.ops if not isinstance(op, tile.AllocOp)]
        if self._last:
            loop.operands[1] = self._behind(end, loop)
        terminator = self._emptied(old)
        way = _Emission(self._index, loop.lb, end, rings, set(old), dict[SSAValue, SSAValue]())
        for piece in self._pieces:
            self._put_piece(piece, way, terminator, bool(piece.lag), piece.lag < self._last)
        self._finish(old)

    def run_in_three(self) -> None:
        """Replace the loop by one in which every piece has its iteration, behind the iterations in which the later pieces have
        none yet and in front of those in which the earlier ones have none any more: waits need not stand in branches."""
        block, loop = self._loop.body.block, self._loop
        rings, start, end = self._rings(), loop.lb, loop.ub
        old = [op for op in block.ops if not isinstance(op, tile.AllocOp)]
        private = [op for op in block.ops if isinstance(op, tile.AllocOp)]
        full, stop = self._behind(start, loop), self._behind(end, loop)
        left = self._insert(arith.MaxSIOp(end, full), loop).results[0]
        terminator = self._emptied(old)
        loop.operands[0] = full
        for low, high, side in ((start, full, 0), (left, stop, 1)):
            made = scf.ForOp(low, high, loop.step, [], Block(arg_types=[IndexType()]))
            made.attributes = dict(loop.attributes)
            stand_in(loop, made)
            Rewriter().insert_op(made, InsertPoint.after(loop) if side else InsertPoint.before(loop))
            made.body.block.args[0].name_hint = self._index.name_hint
            ended = scf.YieldOp()
            own = [_like(allocation) for allocation in private]
            made.body.block.add_ops([*own, ended])
            put_core(made, "either")
            way = _Emission(made.body.block.args[0], start, end, rings, set(old),
                       {one.result: other.result for one, other in zip(private, own, strict=True)})
            for piece in self._pieces:
                if piece.lag < self._last if side == 0 else piece.lag:
                    self._put_piece(piece, way, ended, bool(piece.lag), True)
            for each in own:
                if not list(each.result.uses):
                    Rewriter.erase_op(each)
        way = _Emission(self._index, start, end, rings, set(old), dict[SSAValue, SSAValue]())
        for piece in self._pieces:
            self._put_piece(piece, way, terminator, False, False)
        self._finish(old)

    def _rings(self) -> dict[StoredValue, SSAValue]:
        return {value: self._ring(self._own[value], count) for value, count in self._counts.items()}

    def _behind(self, bound: SSAValue, before: Operation) -> SSAValue:
        """As many iterations behind a bound as the last piece is."""
        more = self._insert(arith.ConstantOp(IntegerAttr(self._last, IndexType())), before).results[0]
        step = self._insert(arith.MuliOp(more, self._loop.step), before).results[0]
        return self._insert(arith.AddiOp(bound, step), before).results[0]

    def _emptied(self, old: Sequence[Operation]) -> Operation:
        """Take the statements out of the body; its end."""
        for op in old:
            if not op.has_trait(IsTerminator):
                self._loop.body.block.detach_op(op)
        terminator = self._loop.body.block.last_op
        assert terminator is not None
        return terminator

    def _finish(self, old: Sequence[Operation]) -> None:
        for op in reversed(old):
            if op.parent_block() is None:
                op.erase(safe_erase=False)
        for allocation in dict.fromkeys(self._own[value] for value in self._counts):
            if not list(allocation.result.uses):
                Rewriter.erase_op(allocation)

    def _ring(self, allocation: tile.AllocOp, count: int) -> SSAValue:
        kind = allocation.result.type
        assert isinstance(kind, MemRefType)
        wide = MemRefType(kind.element_type, [count, *kind.get_shape()], memory_space=kind.memory_space)
        made = tile.AllocOp(allocation.label.data, wide)
        made.result.name_hint = allocation.result.name_hint
        stand_in(allocation, made)
        Rewriter().insert_op(made, InsertPoint.before(self._loop))
        return made.result

    def _put_piece(self, piece: Piece, way: _Emission, before: Operation, began: bool, ended: bool) -> None:
        """A piece in front of an operation; if need be, under the conditions that its iteration began and is none behind the
        end."""
        lag, first = piece.lag, piece.statements[0].op
        inner = Block()
        mapped = dict(way.private)
        index: SSAValue = way.index
        if lag:
            back = self._put(arith.ConstantOp(IntegerAttr(lag, IndexType())), first, before).results[0]
            back = self._put(arith.MuliOp(back, self._loop.step), first, before).results[0]
            if began:
                start = self._put(arith.AddiOp(way.start, back), first, before).results[0]
            index = arith_of(inner, arith.SubiOp(way.index, back), first)
        if ended:  # what the condition says, for those who ask which numbers an index can be
            final = arith_of(inner, arith.SubiOp(way.end, self._loop.step), first)
            index = arith_of(inner, arith.MinSIOp(index, final), first)
        mapped[self._index] = arith_of(inner, arith.MaxSIOp(index, way.start), first) if began or ended else index
        conditions: list[SSAValue] = []
        if began:
            conditions.append(self._put(arith.CmpiOp(way.index, start, "sge"), first, before).results[0])
        if ended:
            bound = self._put(arith.AddiOp(way.end, back), first, before).results[0] if lag else way.end
            conditions.append(self._put(arith.CmpiOp(way.index, bound, "slt"), first, before).results[0])
        slots = {value: self._slot(way, way.rings[value], count, (lag - self._first[value]) % count, inner, first)
                 for value, count in self._counts.items()
                 if any(value in statement.touches for statement in piece.statements)}
        ringed = {value.root for value in slots}
        for statement in piece.statements:
            seen = mapped | {value.root: slots[value] for value in statement.touches & slots.keys()}
            for op in self._with_scalars(statement.op, way.kept, seen):
                _clone_into(op, inner, seen)
            mapped = {old: new for old, new in seen.items() if root_of(old) not in ringed}  # views are of the statement's value
        if not conditions:  # all are of one iteration
            for op in list(inner.ops):
                inner.detach_op(op)
                Rewriter().insert_op(op, InsertPoint.before(before))
            return
        condition = conditions[0]
        if len(conditions) == 2:
            condition = self._put(arith.AndIOp(conditions[0], conditions[1]), first, before).results[0]
        inner.add_op(scf.YieldOp())
        put_core(self._put(scf.IfOp(condition, [], Region(inner)), first, before), "either")

    @staticmethod
    def _slot(way: _Emission, ring: SSAValue, count: int, lag: int, inner: Block, like: Operation) -> SSAValue:
        """The slot of the stage's iteration: those of the ring are taken in turn."""
        shape = tile.shape_of(ring)
        slots = arith_of(inner, arith.ConstantOp(IntegerAttr(count, IndexType())), like)
        turn = arith_of(inner, arith.SubiOp(way.index, way.start), like)
        if lag:
            shift = arith_of(inner, arith.ConstantOp(IntegerAttr(count - lag, IndexType())), like)
            turn = arith_of(inner, arith.AddiOp(turn, shift), like)
        turn = arith_of(inner, arith.RemUIOp(turn, slots), like)
        sizes = [1, *shape[1:]]
        return arith_of(inner, tile.RegionOp(ring, [turn] + [0] * (len(shape) - 1), sizes, range(1, len(shape))), like)

    @staticmethod
    def _with_scalars(op: Operation, kept: set[Operation], mapped: dict[SSAValue, SSAValue]) -> list[Operation]:
        """A statement behind the scalars, regions and views of the body that it needs and that are not there yet."""
        needed: list[Operation] = []

        def visit(value: SSAValue) -> None:
            owner = value.owner
            if isinstance(owner, Operation) and owner in kept and value not in mapped and owner not in needed:
                for operand in owner.operands:
                    visit(operand)
                needed.append(owner)

        for inner in op.walk():
            for operand in inner.operands:
                if isinstance(operand, BlockArgument) or not _is_inside(operand.owner, op):
                    visit(operand)
        return [*needed, op]

    def _insert(self, made: Operation, before: Operation) -> Operation:
        stand_in(self._loop, made)
        Rewriter().insert_op(made, InsertPoint.before(before))
        return made

    @staticmethod
    def _put(made: Operation, like: Operation, before: Operation) -> Operation:
        stand_in(like, made)
        Rewriter().insert_op(made, InsertPoint.before(before))
        return made


def _like(allocation: tile.AllocOp) -> tile.AllocOp:
    made = allocation.clone()
    stand_in(allocation, made)
    made.result.name_hint = allocation.result.name_hint
    return made


def arith_of(block: Block, made: Operation, like: Operation) -> SSAValue:
    """Add an operation at the end of a block, in the place of another one; its result."""
    stand_in(like, made)
    block.add_op(made)
    return made.results[0]


def _is_inside(owner: Operation | Block, op: Operation) -> bool:
    return isinstance(owner, Operation) and op.is_ancestor(owner)


def _clone_into(op: Operation, block: Block, mapped: dict[SSAValue, SSAValue]) -> None:
    """A copy at the end of a block; the types of regions follow their sources, inside of it too."""
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
    """The same region of what its source is now."""
    offsets = [mapped.get(each, each) if isinstance(each, SSAValue) else each for each in op.mixed_offsets()]
    sizes = [mapped.get(each, each) if isinstance(each, SSAValue) else each for each in op.mixed_sizes()]
    made = tile.RegionOp(mapped.get(op.source, op.source), offsets, sizes, op.kept.get_values())
    made.result.name_hint = op.result.name_hint
    return made


__all__ = ["Piece", "Skew", "rings_of"]
