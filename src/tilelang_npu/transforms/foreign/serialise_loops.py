"""Give the iterations of ``scf.forall`` and ``scf.parallel`` an order: loops, one inside the other.

Any order is one that they allow. What iterations fold is carried from one to the next. Tensors that the iterations share are
carried too, where each iteration reads no more of them than the slice that it puts there itself. Iterations mapped to blocks
(``#hivm.block``) are dealt out to the blocks of the launch in turn; any other mapping is refused. Runs on HIVM of other tools.
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

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.hivm.attributes import BlockAttr
from tilelang_npu.dialects.mlir.scf import ForallOp
from tilelang_npu.dialects.mlir.tensor import ParallelInsertSliceOp
from tilelang_npu.transforms.ir.locations import refuse

Bounds = tuple[Sequence[SSAValue], Sequence[SSAValue], Sequence[SSAValue]]
"""Lower bounds, upper bounds and steps."""
Finish = Callable[[Operation, Sequence[SSAValue]], Sequence[SSAValue]]
"""Turns the last op of a body, and what is carried, into what is carried on."""


def _insert(made: Operation, before: Operation) -> SSAValue:
    made.location = before.location
    Rewriter.insert_op(made, InsertPoint.before(before))
    return made.results[0]


def _value(bound: SSAValue | int, before: Operation) -> SSAValue:
    if isinstance(bound, SSAValue):
        return bound
    return _insert(arith.ConstantOp(IntegerAttr(bound, IndexType())), before)


def _nest(op: Operation, bounds: Bounds, body: Block, carried: Sequence[SSAValue], finish: Finish) -> Sequence[SSAValue]:
    """Loops in front of an op, the body in the innermost; returns what they carry out."""
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
            _hand_on(outer, loop.results)
    _place(body, [*indices, *carried][:len(body.args)], before, carried, finish)
    return results


def _hand_on(terminator: Operation, values: Sequence[SSAValue]) -> None:
    made = scf.YieldOp(*values)
    made.location = terminator.location
    Rewriter.replace_op(terminator, made)


def _place(body: Block, arguments: Sequence[SSAValue], before: Operation, carried: Sequence[SSAValue], finish: Finish) -> None:
    """Move the ops of a body to where a loop ends."""
    for old, new in zip(body.args, arguments, strict=True):
        old.replace_all_uses_with(new)
    for inner in list(body.ops):
        inner.detach()
        Rewriter.insert_op(inner, InsertPoint.before(before))
    last = before.prev_op
    assert last is not None
    _hand_on(before, finish(last, carried))
    Rewriter.erase_op(last)


def _fold(last: Operation, carried: Sequence[SSAValue]) -> list[SSAValue]:
    """The bodies of ``scf.reduce`` on what is carried and what the iteration gives."""
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


def _put_together(last: Operation, carried: Sequence[SSAValue]) -> list[SSAValue]:
    """The slices of an iteration, each put into the tensor that is carried."""
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


_PLACE = ("static_offsets", "static_sizes", "static_strides")


def _require_own_slices(op: ForallOp) -> None:
    """Whether what an iteration reads of a shared tensor is what it puts there, so that no other one has written it."""
    inside = op.terminator.region.block
    for shared in op.region.block.args[op.rank:]:
        puts = [use.operation for use in shared.uses if use.operation.parent is inside]
        for use in list(shared.uses):
            reader = use.operation
            if reader in puts:
                continue
            own = isinstance(reader, tensor.ExtractSliceOp) and any(
                isinstance(put, ParallelInsertSliceOp) and put.dest is shared
                and all(reader.properties[name] == put.properties[name] for name in _PLACE)
                and list(reader.operands[1:]) == list(put.operands[2:]) for put in puts)
            if not own:
                msg = "an iteration of scf.forall reads more of a shared tensor than the slice that it puts there"
                raise refuse(reader, msg, "T501", help="read the tensor itself instead of the shared one")


def _dealt_out(op: ForallOp, bounds: Bounds) -> None:
    """One loop over all iterations, of which a block takes each that is its turn."""
    zero, one = _value(0, op), _value(1, op)
    counts: list[SSAValue] = []
    for low, high, step in zip(*bounds, strict=True):
        trips = _insert(arith.CeilDivSIOp(_insert(arith.SubiOp(high, low), op), step), op)
        counts.append(_insert(arith.MaxSIOp(trips, zero), op))
    total = one
    for count in counts:
        total = _insert(arith.MuliOp(total, count), op)
    block, blocks = (_insert(arith.IndexCastOp(_insert(query, op), IndexType()), op)
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
        turn = _insert(arith.RemUIOp(rest, count), end)
        rest = _insert(arith.DivUIOp(rest, count), end)
        indices.insert(0, _insert(arith.AddiOp(low, _insert(arith.MuliOp(turn, step), end)), end))
    _place(op.region.block, indices, end, (), lambda last, carried: ())


def _forall(op: ForallOp) -> None:
    lows, highs, steps = ([_value(bound, op) for bound in bounds] for bounds in op.bounds())
    mapping = list(op.mapping or ())
    if mapping and (op.outputs or not all(isinstance(entry, BlockAttr) for entry in mapping)):
        msg = "the iterations of scf.forall are mapped to something that is not known here, or share tensors"
        raise refuse(op, msg, "T501", help="map them to #hivm.block, and let them work on buffers")
    if mapping:
        _dealt_out(op, (lows, highs, steps))
        Rewriter.erase_op(op)
        return
    _require_own_slices(op)
    if op.rank == 0:
        lows, highs, steps = [_value(0, op)], [_value(1, op)], [_value(1, op)]
    body = op.region.block
    if op.rank == 0:
        body.insert_arg(IndexType(), 0)
    results = _nest(op, (lows, highs, steps), body, op.outputs, _put_together)
    Rewriter.replace_op(op, [], list(results))


def _parallel(op: scf.ParallelOp) -> None:
    results = _nest(op, (op.lowerBound, op.upperBound, op.step), op.body.block, op.initVals, _fold)
    Rewriter.replace_op(op, [], list(results))


@dataclass(frozen=True)
class SerialiseLoops(ModulePass):
    """The pass; see the module's text."""

    name = "serialise-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [one for one in op.walk() if isinstance(one, (ForallOp, scf.ParallelOp))]:
            if isinstance(inner, ForallOp):
                _forall(inner)
            else:
                _parallel(inner)
