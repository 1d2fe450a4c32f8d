"""Serial loops inside ``T.Parallel``: turned inside out, so that each statement is vector work inside the serial loop.

``for p in Parallel: A(p); for k: B(p, k); C(p)`` becomes ``Parallel A; for k: Parallel B; Parallel C``. That is the same
program where no point reads or writes what another point writes: every access to a buffer that the body writes must be at
an element which the point alone owns (each parallel variable alone on an axis, no inner loop variable in the index). The
bounds of the serial loop must be the same for all points. Where this cannot be shown the loop stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.affine_sums import affine
from tilelang_npu.linear import Linear
from tilelang_npu.transforms.ir.buffers import root_of
from tilelang_npu.transforms.tile.parallel.indices import NotVector


def _accesses(block: Block) -> Iterator[memref.LoadOp | memref.StoreOp]:
    for op in block.walk():
        if isinstance(op, (memref.LoadOp, memref.StoreOp)):
            yield op


def _check_ownership(loop: tile.ParallelOp) -> set[SSAValue]:
    """The buffers that the body writes.

    Raises:
        NotVector: a point touches what another point may write.
    """
    block = loop.body.block
    written = {root_of(op.memref) for op in _accesses(block) if isinstance(op, memref.StoreOp)}
    places: dict[SSAValue, tuple[Linear[SSAValue], ...]] = {}
    for op in _accesses(block):
        root = root_of(op.memref)
        if root not in written:
            continue
        forms = tuple(affine(index) for index in op.indices)
        if places.setdefault(root, forms) != forms:
            msg = "a buffer that the body writes is accessed at more than one place"
            raise NotVector(msg, "write to a second buffer, and read the first")
        own = {form.single[0] for form in forms if form.single is not None and form.single[1] == 1}
        used = {value for form in forms for value in form.terms}
        if not set(block.args) <= own or any(_varies(value, block) for value in used - set(block.args)):
            msg = "points of the loop share an element that the body writes"
            edit = "let each point write an element of its own, and reduce them behind the loop (T.reduce_sum and the like)"
            raise NotVector(msg, edit)
    return written


def _varies(value: SSAValue, block: Block) -> bool:
    """Whether a value is made inside the body."""
    owner = value.owner
    inner = owner if isinstance(owner, Block) else owner.parent_block()
    while inner is not None:
        if inner is block:
            return True
        above = inner.parent_op()
        inner = above.parent_block() if above is not None else None
    return False


def _slice(values: list[SSAValue], segment: list[Operation], block: Block, written: set[SSAValue]) -> list[Operation]:
    """The operations of the body that a segment needs from outside itself, in order."""
    inside = {inner for op in segment for inner in op.walk()}
    needed: set[Operation] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        owner = value.owner
        if not isinstance(owner, Operation) or owner in inside or owner in needed or not _varies(value, block):
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
        if op.parent_block() is not loop.body.block and any(_varies(bound, loop.body.block) for bound in bounds):
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
    if value in mapping or not isinstance(owner, Operation) or not _varies(value, loop.body.block):
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
