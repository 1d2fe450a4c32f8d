"""Serial loops inside ``T.Parallel``: turned inside out, so that each statement is vector work inside the serial loop.

``for p in Parallel: A(p); for k: B(p, k); C(p)`` becomes ``Parallel A; for k: Parallel B; Parallel C``. That is the same
program where no point reads or writes what another point writes (``dependence.first_shared``): ``s[k, p] = s[k - 1, p] + ...``
stays in the column of its point, whatever the rows are. The bounds of the serial loop must be the same for all points. Where
this cannot be shown the loop stays as it is.
"""

from __future__ import annotations

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.ir.buffers import root_of
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.parallel.dependence import accesses_in, first_shared, is_inside
from tilelang_npu.transforms.tile.parallel.indices import NotVector


def _check_ownership(loop: tile.ParallelOp) -> set[SSAValue]:
    """The buffers that the body writes.

    Raises:
        NotVector: a point touches what another point may write.
    """
    shared = first_shared(loop, Ranges())
    if shared is not None:
        one, other = shared
        if one is other:
            msg = "points of the loop share an element that the body writes"
            edit = "let each point write an element of its own, and reduce them behind the loop (T.reduce_sum and the like)"
        else:
            msg = "a buffer that the body writes is accessed at more than one place"
            edit = "write to a second buffer, and read the first"
        raise NotVector(msg, edit)
    return {root_of(op.memref) for op in accesses_in(loop.body.block) if isinstance(op, memref.StoreOp)}


def _slice(values: list[SSAValue], segment: list[Operation], block: Block, written: set[SSAValue]) -> list[Operation]:
    """The operations of the body that a segment needs from outside itself, in order."""
    inside = {inner for op in segment for inner in op.walk()}
    needed: set[Operation] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        owner = value.owner
        if not isinstance(owner, Operation) or owner in inside or owner in needed or not is_inside(value, block):
            continue
        if isinstance(owner, memref.LoadOp) and root_of(owner.memref) in written:
            msg = "a value read before a loop is used behind it"
            raise NotVector(msg, "read the value again behind the inner loop")
        if owner.regions:
            msg = f"{owner.name} in the body has no vector form"
            raise NotVector(msg, "take it out of T.Parallel, into a loop of T.serial")
        needed.add(owner)
        pending.extend(owner.operands)
    return [op for op in block.walk() if op in needed]


def _parallel(loop: tile.ParallelOp, segment: list[Operation], mapping: dict[SSAValue, SSAValue],
              written: set[SSAValue]) -> tile.ParallelOp:
    """A loop over the same points with only some of the statements."""
    outside = [value for op in segment for inner in op.walk() for value in inner.operands]
    body = Block(arg_types=[argument.type for argument in loop.body.block.args])
    local = dict(mapping)
    for before, after in zip(loop.body.block.args, body.args, strict=True):
        local[before] = after
        after.name_hint = before.name_hint
    for op in (*_slice(outside, segment, loop.body.block, written), *segment):
        if not isinstance(op, (tile.YieldOp, scf.YieldOp)):
            body.add_op(op.clone(value_mapper=local))
    made = tile.ParallelOp(loop.mixed_extents(), Region(body))
    made.location = loop.location
    return made


def _place(loop: tile.ParallelOp, block: Block, mapping: dict[SSAValue, SSAValue], point: InsertPoint,
           written: set[SSAValue], made: list[tile.ParallelOp]) -> None:
    segment: list[Operation] = []

    def close() -> None:
        if any(isinstance(inner, memref.StoreOp) for op in segment for inner in op.walk()):
            found = _parallel(loop, segment, mapping, written)
            Rewriter().insert_op(found, point)
            made.append(found)
        segment.clear()

    for op in block.ops:
        if not isinstance(op, scf.ForOp):
            segment.append(op)
            continue
        close()
        bounds = (op.lb, op.ub, op.step)
        if op.iter_args or any(_depends(bound, loop.body.block) for bound in bounds):
            msg = "the bounds of a loop in the body differ from point to point"
            raise NotVector(msg, "give the inner loop bounds that all points share")
        if op.parent_block() is not loop.body.block and any(is_inside(bound, loop.body.block) for bound in bounds):
            msg = "the bounds of a loop in the body depend on another one"
            raise NotVector(msg, "give the inner loop bounds that do not depend on the loop around it")
        inner = Block(arg_types=[argument.type for argument in op.body.block.args])
        inner.args[0].name_hint = op.body.block.args[0].name_hint
        local = {**mapping, op.body.block.args[0]: inner.args[0]}
        _place(loop, op.body.block, local, InsertPoint.at_end(inner), written, made)
        end = scf.YieldOp()
        inner.add_op(end)
        low, high, step = (_hoisted(bound, loop, mapping, point) for bound in bounds)
        around = scf.ForOp(low, high, step, [], Region(inner))
        around.location = op.location
        Rewriter().insert_op(around, point)
    close()


def _depends(value: SSAValue, block: Block) -> bool:
    if isinstance(value, BlockArgument):
        return value.owner is block
    owner = value.owner
    if not isinstance(owner, Operation) or owner.parent_block() is not block:
        return False
    reads = isinstance(owner, memref.LoadOp) or any(isinstance(operand.type, MemRefType) for operand in owner.operands)
    return reads or any(_depends(operand, block) for operand in owner.operands)


def _hoisted(value: SSAValue, loop: tile.ParallelOp, mapping: dict[SSAValue, SSAValue], point: InsertPoint) -> SSAValue:
    """A bound in front of the loop."""
    owner = value.owner
    if value in mapping or not isinstance(owner, Operation) or not is_inside(value, loop.body.block):
        return mapping.get(value, value)
    clone = owner.clone(value_mapper={operand: _hoisted(operand, loop, mapping, point) for operand in owner.operands})
    Rewriter().insert_op(clone, point)
    mapping[value] = clone.results[[result is value for result in owner.results].index(True)]
    return mapping[value]


def distribute(loop: tile.ParallelOp) -> list[tile.ParallelOp]:
    """Take the serial loops of the body outside; the parallel loops that there are then, in order.

    The loop itself is left in place for the caller to erase where others are returned.

    Raises:
        NotVector: it cannot be shown that the result is the same; nothing was changed.
    """
    if not any(isinstance(op, scf.ForOp) for op in loop.body.block.ops):
        return [loop]
    if any(isinstance(op, tile.CopyOp) for op in loop.walk()):
        msg = "the points move tiles"
        raise NotVector(msg, "move all tiles by one T.copy of a region, outside of T.Parallel")
    written = _check_ownership(loop)
    made: list[tile.ParallelOp] = []
    holding = Block()
    _place(loop, loop.body.block, {}, InsertPoint.at_end(holding), written, made)
    for op in list(holding.ops):
        op.detach()
        Rewriter().insert_op(op, InsertPoint.before(loop))
    return made


__all__ = ["distribute"]
