"""Turn ``T.clear`` of an accumulator into the ``init`` of the gemm that comes next: L0C has no fill of its own.

Runs after scope inference. Where the next use of the accumulator is a gemm in the same block, or the first use inside a loop
that surely runs, and it writes all that is cleared and no more, its ``init`` becomes true in the first iteration. Anywhere else
(a gemm under a condition, a gemm of another part, a loop that may not run, a result that may be stored as it was cleared) the
clear is a product of zeros: two tiles of one fractal's depth in L1, between full barriers, because the waits around them may be
the author's.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import Float16Type, FloatAttr, IntegerAttr, IntegerType, MemRefType, ModuleOp, i1
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.remarks import Remark, Waits, record_done, record_refusal, set_remark
from tilelang_npu.dialects.text import location_of
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.cores import has_core, put_core
from tilelang_npu.transforms.ir.locations import line_of, refuse, stand_in
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.sizes import sized
from tilelang_npu.transforms.tile.accumulators import (
    comes_round,
    is_zero,
    later_reader,
    next_touching,
    not_started,
    starts_over,
)
from tilelang_npu.transforms.tile.first_writes import is_dead_after

NAME = "fold-accumulator-clear"
FRACTAL_BYTES = 32  # a row of a fractal of L1 (docs/hivm.md#fractals)


def _insert(op: Operation, before: Operation, source: Operation) -> None:
    """Insert an operation of the Cube core that ``source`` becomes."""
    stand_in(source, op)
    if has_core(op):
        put_core(op, "AIC")
    Rewriter().insert_op(op, InsertPoint.before(before))


def _fold(module: ModuleOp, fill: tile.FillOp, ranges: Ranges, *, fold: bool) -> None:
    """Remove a clear, and say which gemm's ``init`` it became, or why it is a product of zeros."""
    buffer, where = root_of(fill.target), location_of(fill)
    label = buffer.owner.label.data if isinstance(buffer.owner, tile.AllocOp) else "the accumulator"
    if not is_zero(fill.value):
        raise refuse(fill, f"{label} is in L0C, which can only be cleared to zero", "T210",
                     help="add the value in vector work, or start from T.clear")

    def multiply(kept: Refusal) -> None:
        if fold:
            text = f"{sized(buffer)} is cleared by a product of zeros, between full barriers: {kept.why}"
            record_refusal(module, NAME, where, text, kept.edit)
        _multiply_zeros(fill, label)
        _drop(fill)

    follower = next_touching(fill.next_op, buffer)
    if follower is None:
        if is_dead_after(fill, buffer, ranges):
            _drop(fill)
        else:
            multiply(_read_elsewhere(fill))
        return
    loops: list[scf.ForOp] = []
    while isinstance(follower, scf.ForOp) and ranges.trip_count(follower).low >= 1:
        loops.append(follower)
        follower = next_touching(follower.body.block.first_op, buffer)
    if not fold or not isinstance(follower, tile.GemmOp):
        multiply(not_started(follower))
        return
    if not starts_over(follower, fill):
        multiply(Refusal(f"the gemm at {line_of(follower)} writes another part of it", "clear the part that the gemm writes"))
        return
    first: SSAValue | None = None
    for loop in loops:
        position = arith.CmpiOp(loop.body.block.args[0], loop.lb, "eq")
        head = loop.body.block.first_op
        assert head is not None
        _insert(position, head, fill)
        first = position.result if first is None else _both(first, position.result, head, fill)
    if first is None:
        true = arith.ConstantOp(IntegerAttr(1, i1))
        _insert(true, follower, fill)
        first = true.result
    either = arith.OrIOp(first, follower.init)
    if ranges.constant(follower.init) == 0:
        follower.operands[3] = first
    else:
        _insert(either, follower, fill)
        follower.operands[3] = either.result
    record_done(module, NAME, where, f"the clear is the start of the gemm at {line_of(follower)}")
    _drop(fill)


def _read_elsewhere(fill: tile.FillOp) -> Refusal:
    """Why a clear is no gemm's ``init`` where nothing after it in its own block touches the accumulator."""
    if comes_round(fill):
        return Refusal("what reads it stands further up in its loop", "clear it at the head of the loop")
    reader = later_reader(fill)
    place = f" {line_of(reader)}" if reader is not None else ""
    return Refusal(f"it is read at{place}, after the loop or the condition around the clear",
                   "clear it right before the gemm that adds to it, or pass init=True to that gemm")


def _multiply_zeros(fill: tile.FillOp, label: str) -> None:
    """Write zeros as the product of two tiles of zeros."""
    shape = tile.shape_of(fill.target)
    if len(shape) != 2 or min(shape) < 0:
        raise refuse(fill, f"{label} is in L0C, and this part of it cannot be cleared by itself", "T210",
                     help="clear a matrix of constant size, or pass init=True to the gemm")
    whole = isinstance(fill.value.type, IntegerType)
    element = IntegerType(8) if whole else Float16Type()
    zero = arith.ConstantOp(IntegerAttr(0, IntegerType(8)) if whole else FloatAttr(0.0, Float16Type()))
    true = arith.ConstantOp(IntegerAttr(1, i1))
    depth = FRACTAL_BYTES // (1 if whole else 2)
    left, right = (
        tile.AllocOp(f"zeros_{side}", MemRefType(element, sizes, memory_space=hivm.address_space("cbuf")))
        for side, sizes in (("left", (shape[0], depth)), ("right", (depth, shape[1]))))
    ahead, behind = hivm.PipeBarrierOp("PIPE_ALL"), hivm.PipeBarrierOp("PIPE_ALL")
    for op in (zero, true, left, right, tile.FillOp(zero.result, left.result), tile.FillOp(zero.result, right.result),
               ahead, tile.GemmOp(left.result, right.result, fill.target, true.result), behind):
        _insert(op, fill, fill)
    for barrier in (ahead, behind):
        set_remark(barrier, Remark(NAME, text=f"{label} is cleared by a product of zeros, apart from all else",
                               facts=Waits(source="ALL", target="ALL")))


def _both(a: SSAValue, b: SSAValue, before: Operation, source: Operation) -> SSAValue:
    both = arith.AndIOp(a, b)
    _insert(both, before, source)
    return both.result


def _drop(fill: tile.FillOp) -> None:
    Rewriter.erase_op(fill)


@dataclass(frozen=True)
class FoldAccumulatorClear(ModulePass):
    """The pass; see the module's text. Without ``fold`` a clear is a product of zeros wherever something reads it."""

    name = NAME
    fold: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for inner in list(op.walk()):
            if isinstance(inner, tile.FillOp) and space_of(inner.target) == "cc":
                _fold(op, inner, ranges, fold=self.fold)
