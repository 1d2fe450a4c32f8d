"""Rewrites ``scf.forall`` and ``scf.parallel`` into nests of ``scf.for``.

Values that the iterations reduce become values that the loops carry. Shared tensors (``shared_outs``) become carried values
too; each iteration must read no more of a shared tensor than the slice that the iteration inserts. Iterations that are mapped
to blocks (``#hivm.block``) are distributed over the blocks of the launch: block ``b`` of ``n`` executes the iterations ``b``,
``b + n``, and so on. All other mappings are refused. Runs on HIVM modules of other tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.locations import refuse
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.hivm.attributes import BlockAttr
from tilelang_npu.dialects.mlir.scf import ForallOp
from tilelang_npu.dialects.mlir.tensor import ParallelInsertSliceOp

Bounds = tuple[Sequence[SSAValue], Sequence[SSAValue], Sequence[SSAValue]]
"""The lower bounds, the upper bounds and the steps of the loops of a nest, outermost first."""
Finish = Callable[[Operation, Sequence[SSAValue]], Sequence[SSAValue]]
"""A function that returns the values that a loop's body yields, given the body's last operation and the carried values."""


def _insert_before(made: Operation, before: Operation) -> SSAValue:
    made.location = before.location
    Rewriter.insert_op(made, InsertPoint.before(before))
    return made.results[0]


def _as_value(bound: SSAValue | int, before: Operation) -> SSAValue:
    if isinstance(bound, SSAValue):
        return bound
    return _insert_before(arith.ConstantOp(IntegerAttr(bound, IndexType())), before)


def _make_nest(op: Operation, bounds: Bounds, body: Block, carried: Sequence[SSAValue], finish: Finish) -> Sequence[SSAValue]:
    """Emits a nest of loops before an op, with the body in the innermost one; returns the results of the outermost loop.

    Args:
        op: the op.
        bounds: the bounds of the loops.
        body: the block whose ops become the innermost body.
        carried: the initial values of what the loops carry.
        finish: returns the values that the innermost body yields.
    """
    indices: list[SSAValue] = []
    before = op
    results: Sequence[SSAValue] = ()
    for low, high, step in zip(*bounds, strict=True):
        block = Block(arg_types=[IndexType(), *(value.type for value in carried)])
        loop = scf.ForOp(low, high, step, carried, Region(block))
        loop.location = op.location
        Rewriter.insert_op(loop, InsertPoint.before(before))
        indices.append(block.args[0])
        carried = block.args[1:]
        outer, results = before, results or loop.results
        before = scf.YieldOp()
        before.location = op.location
        block.add_op(before)
        if outer is not op:
            _replace_terminator(outer, loop.results)
    _move_body(body, [*indices, *carried][:len(body.args)], before, carried, finish)
    return results


def _replace_terminator(terminator: Operation, values: Sequence[SSAValue]) -> None:
    made = scf.YieldOp(*values)
    made.location = terminator.location
    Rewriter.replace_op(terminator, made)


def _move_body(body: Block, arguments: Sequence[SSAValue], before: Operation, carried: Sequence[SSAValue],
               finish: Finish) -> None:
    """Move the ops of a body to the end of a loop."""
    for old, new in zip(body.args, arguments, strict=True):
        old.replace_all_uses_with(new)
    for inner in list(body.ops):
        inner.detach()
        Rewriter.insert_op(inner, InsertPoint.before(before))
    last = before.prev_op
    assert last is not None
    _replace_terminator(before, finish(last, carried))
    Rewriter.erase_op(last)


def _fold_reductions(last: Operation, carried: Sequence[SSAValue]) -> list[SSAValue]:
    """Emits the bodies of ``scf.reduce`` on the carried values and on those of the iteration; returns the results."""
    assert isinstance(last, scf.ReduceOp)
    folded: list[SSAValue] = []
    for region, before, given in zip(last.reductions, carried, last.args, strict=True):
        block = region.block
        for old, new in zip(block.args, (before, given), strict=True):
            old.replace_all_uses_with(new)
        result = block.last_op
        assert isinstance(result, scf.ReduceReturnOp)
        for inner in list(block.ops):
            if inner is not result:
                inner.detach()
                Rewriter.insert_op(inner, InsertPoint.before(last))
        folded.append(result.result)
    return folded


def _insert_slices(last: Operation, carried: Sequence[SSAValue]) -> list[SSAValue]:
    """Emits an insertion of each of an iteration's slices into the carried tensor; returns the tensors."""
    now = {value: value for value in carried}
    for slice_ in last.regions[0].block.ops:
        assert isinstance(slice_, ParallelInsertSliceOp)
        made = tensor.InsertSliceOp.build(
            operands=[slice_.source, now[slice_.dest], slice_.offsets, slice_.sizes, slice_.strides],
            properties={name: slice_.properties[name] for name in ("static_offsets", "static_sizes", "static_strides")},
            result_types=[slice_.dest.type])
        made.location = slice_.location
        Rewriter.insert_op(made, InsertPoint.before(last))
        now[slice_.dest] = made.results[0]
    return [now[value] for value in carried]


_SLICE_PROPERTIES = ("static_offsets", "static_sizes", "static_strides")


def _require_own_slices(op: ForallOp) -> None:
    """Refuse an iteration that reads more of a shared tensor than the slice that it inserts: another one may have written it.
    """
    inside = op.terminator.region.block
    for shared in op.region.block.args[op.rank:]:
        puts = [use.operation for use in shared.uses if use.operation.parent is inside]
        for use in list(shared.uses):
            reader = use.operation
            if reader in puts:
                continue
            own = isinstance(reader, tensor.ExtractSliceOp) and any(
                isinstance(put, ParallelInsertSliceOp) and put.dest is shared
                and all(reader.properties[name] == put.properties[name] for name in _SLICE_PROPERTIES)
                and list(reader.operands[1:]) == list(put.operands[2:]) for put in puts)
            if not own:
                msg = "an iteration of scf.forall reads more of a shared tensor than the slice that the iteration inserts"
                raise refuse(reader, msg, "T501", help="read the tensor from before the loop instead of the shared tensor")


def _distribute_over_blocks(op: ForallOp, bounds: Bounds) -> None:
    """Emits one loop over all iterations, of which each block takes every ``blocks``-th one."""
    zero, one = _as_value(0, op), _as_value(1, op)
    counts: list[SSAValue] = []
    for low, high, step in zip(*bounds, strict=True):
        trips = _insert_before(arith.CeilDivSIOp(_insert_before(arith.SubiOp(high, low), op), step), op)
        counts.append(_insert_before(arith.MaxSIOp(trips, zero), op))
    total = one
    for count in counts:
        total = _insert_before(arith.MuliOp(total, count), op)
    block, blocks = (_insert_before(arith.IndexCastOp(_insert_before(query, op), IndexType()), op)
                     for query in (hivm.GetBlockIdxOp(), hivm.GetBlockNumOp()))
    body = Block(arg_types=[IndexType()])
    loop = scf.ForOp(block, total, blocks, (), Region(body))
    loop.location = op.location
    Rewriter.insert_op(loop, InsertPoint.before(op))
    end = scf.YieldOp()
    end.location = op.location
    body.add_op(end)
    rest: SSAValue = body.args[0]
    indices: list[SSAValue] = []
    for low, step, count in reversed(list(zip(bounds[0], bounds[2], counts, strict=True))):
        turn = _insert_before(arith.RemUIOp(rest, count), end)
        rest = _insert_before(arith.DivUIOp(rest, count), end)
        indices.insert(0, _insert_before(arith.AddiOp(low, _insert_before(arith.MuliOp(turn, step), end)), end))
    _move_body(op.region.block, indices, end, (), lambda last, carried: ())


def _lower_forall(op: ForallOp) -> None:
    lows, highs, steps = ([_as_value(bound, op) for bound in bounds] for bounds in op.bounds())
    mapping = list(op.mapping or ())
    if mapping and (op.outputs or not all(isinstance(entry, BlockAttr) for entry in mapping)):
        msg = "an scf.forall with a mapping must be mapped to #hivm.block only, and must have no shared_outs"
        raise refuse(op, msg, "T501", help="use the mapping #hivm.block, and write to memrefs instead of shared tensors")
    if mapping:
        _distribute_over_blocks(op, (lows, highs, steps))
        Rewriter.erase_op(op)
        return
    _require_own_slices(op)
    if op.rank == 0:
        lows, highs, steps = [_as_value(0, op)], [_as_value(1, op)], [_as_value(1, op)]
    body = op.region.block
    if op.rank == 0:
        body.insert_arg(IndexType(), 0)
    results = _make_nest(op, (lows, highs, steps), body, op.outputs, _insert_slices)
    Rewriter.replace_op(op, [], list(results))


def _lower_parallel(op: scf.ParallelOp) -> None:
    results = _make_nest(op, (op.lowerBound, op.upperBound, op.step), op.body.block, op.initVals, _fold_reductions)
    Rewriter.replace_op(op, [], list(results))


@dataclass(frozen=True)
class SerialiseLoops(ModulePass):
    """Rewrites ``scf.forall`` and ``scf.parallel`` into nests of ``scf.for``."""

    name = "serialise-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [one for one in op.walk() if isinstance(one, (ForallOp, scf.ParallelOp))]:
            if isinstance(inner, ForallOp):
                _lower_forall(inner)
            else:
                _lower_parallel(inner)
