"""Distributes a ``T.Parallel`` over the serial loops in its body, so that the serial loops are outside.

``for p in Parallel: A(p); for k: B(p, k); C(p)`` becomes ``Parallel A; for k: Parallel B; Parallel C``. The results are the
same if no point reads or writes an element that another point writes (``analysis.parallel_dependence.find_dependence``). For
example, ``s[k, p] = s[k - 1, p] + ...`` accesses only the column of its point ``p``. The bounds of the serial loop must be the
same for all points. If these conditions cannot be proved, the loop is not changed.
"""

from __future__ import annotations

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.buffers import root_of
from tilelang_npu.analysis.nesting import is_defined_in
from tilelang_npu.analysis.parallel_dependence import accesses_in, find_dependence
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.transforms.tile.vectorise_parallel.indices import NotVectorisable


def _check_independence(loop: tile.ParallelOp) -> set[SSAValue]:
    """Returns the buffers that the body writes.

    Raises:
        NotVectorisable: a point may access an element that another point writes.
    """
    shared = find_dependence(loop, Ranges())
    if shared is not None:
        one, other = shared
        if one is other:
            msg = "several points of the loop access one element that the body writes"
            edit = "let each point write a separate element, and reduce these after the loop (T.reduce_sum and the like)"
        else:
            msg = "the body accesses a buffer that it writes at different indices"
            edit = "write to a second buffer, and read the first"
        raise NotVectorisable(msg, edit)
    return {root_of(op.memref) for op in accesses_in(loop.body.block) if isinstance(op, memref.StoreOp)}


def _ops_needed_by(values: list[SSAValue], segment: list[Operation], block: Block, written: set[SSAValue]) -> list[Operation]:
    """Returns the operations of the body outside of a segment that the segment needs, in order."""
    inside = {inner for op in segment for inner in op.walk()}
    needed: set[Operation] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        owner = value.owner
        if not isinstance(owner, Operation) or owner in inside or owner in needed or not is_defined_in(value, block):
            continue
        if isinstance(owner, memref.LoadOp) and root_of(owner.memref) in written:
            msg = "a value that is read before an inner loop is used after that loop"
            raise NotVectorisable(msg, "read the value again after the inner loop")
        if owner.regions:
            msg = f"the operation {owner.name} in the body has no vector instruction"
            raise NotVectorisable(msg, "move the operation out of T.Parallel, into a loop of T.serial")
        needed.add(owner)
        pending.extend(owner.operands)
    return [op for op in block.walk() if op in needed]


def _loop_of_segment(loop: tile.ParallelOp, segment: list[Operation], mapping: dict[SSAValue, SSAValue],
                     written: set[SSAValue]) -> tile.ParallelOp:
    """Builds a loop over the same points with only the statements of a segment."""
    outside = [value for op in segment for inner in op.walk() for value in inner.operands]
    body = Block(arg_types=[argument.type for argument in loop.body.block.args])
    local = dict(mapping)
    for before, after in zip(loop.body.block.args, body.args, strict=True):
        local[before] = after
        after.name_hint = before.name_hint
    for op in (*_ops_needed_by(outside, segment, loop.body.block, written), *segment):
        if not isinstance(op, (tile.YieldOp, scf.YieldOp)):
            body.add_op(op.clone(value_mapper=local))
    made = tile.ParallelOp(loop.mixed_extents(), Region(body))
    made.location = loop.location
    return made


def _distribute_block(loop: tile.ParallelOp, block: Block, mapping: dict[SSAValue, SSAValue], point: InsertPoint,
                      written: set[SSAValue], made: list[tile.ParallelOp]) -> None:
    segment: list[Operation] = []

    def close() -> None:
        if any(isinstance(inner, memref.StoreOp) for op in segment for inner in op.walk()):
            found = _loop_of_segment(loop, segment, mapping, written)
            Rewriter().insert_op(found, point)
            made.append(found)
        segment.clear()

    for op in block.ops:
        if not isinstance(op, scf.ForOp):
            segment.append(op)
            continue
        close()
        bounds = (op.lb, op.ub, op.step)
        if op.iter_args or any(_depends_on_point(bound, loop.body.block) for bound in bounds):
            msg = "the bounds of a loop in the body differ from point to point"
            raise NotVectorisable(msg, "give the inner loop bounds that all points share")
        if op.parent_block() is not loop.body.block and any(is_defined_in(bound, loop.body.block) for bound in bounds):
            msg = "the bounds of a loop in the body depend on a loop around it"
            raise NotVectorisable(msg, "give the inner loop bounds that do not depend on the loop around it")
        inner = Block(arg_types=[argument.type for argument in op.body.block.args])
        inner.args[0].name_hint = op.body.block.args[0].name_hint
        local = {**mapping, op.body.block.args[0]: inner.args[0]}
        _distribute_block(loop, op.body.block, local, InsertPoint.at_end(inner), written, made)
        end = scf.YieldOp()
        inner.add_op(end)
        low, high, step = (_hoist_bound(bound, loop, mapping, point) for bound in bounds)
        around = scf.ForOp(low, high, step, [], Region(inner))
        around.location = op.location
        Rewriter().insert_op(around, point)
    close()


def _depends_on_point(value: SSAValue, block: Block) -> bool:
    if isinstance(value, BlockArgument):
        return value.owner is block
    owner = value.owner
    if not isinstance(owner, Operation) or owner.parent_block() is not block:
        return False
    reads = isinstance(owner, memref.LoadOp) or any(isinstance(operand.type, MemRefType) for operand in owner.operands)
    return reads or any(_depends_on_point(operand, block) for operand in owner.operands)


def _hoist_bound(value: SSAValue, loop: tile.ParallelOp, mapping: dict[SSAValue, SSAValue], point: InsertPoint) -> SSAValue:
    """Emits a bound of a serial loop before the loop."""
    owner = value.owner
    if value in mapping or not isinstance(owner, Operation) or not is_defined_in(value, loop.body.block):
        return mapping.get(value, value)
    clone = owner.clone(value_mapper={operand: _hoist_bound(operand, loop, mapping, point) for operand in owner.operands})
    Rewriter().insert_op(clone, point)
    mapping[value] = clone.results[[result is value for result in owner.results].index(True)]
    return mapping[value]


def distribute(loop: tile.ParallelOp) -> list[tile.ParallelOp]:
    """Distributes a ``T.Parallel`` over the serial loops of its body (see the module's docstring).

    Returns:
        The new parallel loops, in order, which are inserted before the loop; the caller must erase the loop. If the body has no
        serial loop, only the loop itself.

    Raises:
        NotVectorisable: it cannot be proved that the results stay the same. Nothing is changed then.
    """
    if not any(isinstance(op, scf.ForOp) for op in loop.body.block.ops):
        return [loop]
    if any(isinstance(op, tile.CopyOp) for op in loop.walk()):
        msg = "each point of T.Parallel copies a tile"
        raise NotVectorisable(msg, "copy all tiles by one T.copy of a region, outside of T.Parallel")
    written = _check_independence(loop)
    made: list[tile.ParallelOp] = []
    holding = Block()
    _distribute_block(loop, loop.body.block, {}, InsertPoint.at_end(holding), written, made)
    for op in list(holding.ops):
        op.detach()
        Rewriter().insert_op(op, InsertPoint.before(loop))
    return made


__all__ = ["distribute"]
