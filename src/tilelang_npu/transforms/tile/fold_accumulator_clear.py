"""Replaces a clear of an accumulator by the ``init`` of the next gemm, because no instruction fills L0C.

A clear can be replaced if the next access to the accumulator is a gemm that writes exactly the cleared part, in the block of
the clear or in a loop there that surely has an iteration. Every other clear whose zeros are read is replaced by a product of
two tiles of zeros: before a gemm that is under a condition or writes another part, before a loop that possibly has no
iteration, or where the cleared accumulator itself is possibly stored.

The pass runs after memories are inferred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import Float16Type, FloatAttr, IntegerAttr, IntegerType, MemRefType, ModuleOp, i1
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tilelang_npu.analysis.accumulators import (
    access_after_parents,
    is_read_by_next_iteration,
    is_zero,
    next_access,
    writes_same_part,
)
from tilelang_npu.analysis.buffer_sizes import sized
from tilelang_npu.analysis.buffers import root_of, space_of
from tilelang_npu.analysis.cores import has_core, put_core
from tilelang_npu.analysis.first_writes import is_dead_after
from tilelang_npu.analysis.locations import copy_location, line_of, refuse
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.remarks import Remark, Waits, record_done, record_refusal, set_remark
from tilelang_npu.dialects.text import location_of
from tilelang_npu.transforms.infra.optimisations import Refusal
from tilelang_npu.transforms.infra.patterns import apply_patterns
from tilelang_npu.transforms.tile.accumulate_in_ub import why_clear_starts_no_gemm

NAME = "fold-accumulator-clear"
FRACTAL_BYTES = 32
"""The bytes of one row of a fractal in L1 (docs/hivm.md#fractals)."""


@dataclass
class EraseDeadClear(RewritePattern):
    """Erases a clear of an accumulator if the zeros are never read.

    ::

        tile.fill %zero into %c; (no operation reads %c)
        -> (no operation)

    Attributes:
        ranges: bounds of scalars.
    """

    ranges: Ranges

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.FillOp, rewriter: PatternRewriter) -> None:
        if not _is_clear_of_accumulator(op):
            return
        buffer = root_of(op.target)
        if next_access(op.next_op, buffer) is None and is_dead_after(op, buffer, self.ranges):
            rewriter.erase(op)


@dataclass
class FoldClearIntoInit(RewritePattern):
    """Replaces a clear of an accumulator by the ``init`` of the next gemm.

    ::

        tile.fill %zero into %c; scf.for %k = %low to %n { tile.gemm %a, %b into %c init %no }
        -> scf.for %k = %low to %n { %first = arith.cmpi eq, %k, %low; tile.gemm %a, %b into %c init %first }

    If there is no loop between the clear and the gemm, the ``init`` of the gemm becomes true. If there are several, the
    ``init`` is true where all of them are in their first iteration.

    Attributes:
        module: the module, to which remarks are added.
        ranges: bounds of scalars.
    """

    module: ModuleOp
    ranges: Ranges

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.FillOp, rewriter: PatternRewriter) -> None:
        if not _is_clear_of_accumulator(op):
            return
        gemm, loops = _next_access(op, self.ranges)
        if not isinstance(gemm, tile.GemmOp) or not writes_same_part(gemm, op):
            return
        first: SSAValue | None = None
        for loop in loops:
            head = loop.body.block.first_op
            assert head is not None
            position = arith.CmpiOp(loop.body.block.args[0], loop.lb, "eq")
            _insert_on_cube_core(op, position, head, rewriter)
            if first is None:
                first = position.result
            else:
                both = arith.AndIOp(first, position.result)
                _insert_on_cube_core(op, both, head, rewriter)
                first = both.result
        if first is None:
            true = arith.ConstantOp(IntegerAttr(1, i1))
            _insert_on_cube_core(op, true, gemm, rewriter)
            first = true.result
        if self.ranges.constant(gemm.init) != 0:
            either = arith.OrIOp(first, gemm.init)
            _insert_on_cube_core(op, either, gemm, rewriter)
            first = either.result
        gemm.operands[3] = first
        rewriter.handle_operation_modification(gemm)
        record_done(self.module, NAME, location_of(op), f"the init of the gemm at {line_of(gemm)} replaces this clear")
        rewriter.erase(op)


@dataclass
class ReplaceClearByZeroProduct(RewritePattern):
    """Replaces a clear of an accumulator by a product of two tiles of zeros.

    ::

        tile.fill %zero into %c
        -> tile.fill %z into %l; tile.fill %z into %r; pipe_barrier; tile.gemm %l, %r into %c init %true; pipe_barrier

    The two tiles are in L1; their common axis has the size of one fractal. Full barriers order the product against all other
    work, because the author, not the compiler, possibly writes the waits around it.

    Attributes:
        module: the module, to which remarks are added.
        ranges: bounds of scalars.
        explain: whether to record why the clear is not the ``init`` of a gemm.
    """

    module: ModuleOp
    ranges: Ranges
    explain: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.FillOp, rewriter: PatternRewriter) -> None:
        """
        Raises:
            TileError: T210, the accumulator is filled with another number than zero, or the part has no constant sizes.
        """
        if space_of(op.target) != "cc":
            return
        buffer = root_of(op.target)
        label = buffer.owner.label.data if isinstance(buffer.owner, tile.AllocOp) else "the accumulator"
        if not is_zero(op.value):
            raise refuse(op, f"{label} is in L0C, which can only be cleared to zero", "T210",
                         help="clear it with T.clear, and add the value to the result in vector work")
        if self.explain:
            refusal = _reason_not_to_fold(op, self.ranges)
            record_refusal(self.module, NAME, location_of(op),
                           f"{sized(buffer)} is cleared by a gemm of zeros between full barriers, because no other gemm's "
                           f"init can replace this clear: {refusal.why}",
                           refusal.edit)
        shape = tile.shape_of(op.target)
        if len(shape) != 2 or min(shape) < 0:
            raise refuse(op, f"{label} is in L0C, and the part to clear is no matrix of constant size", "T210",
                         help="clear a matrix of constant size, or pass init=True to the gemm")
        is_integer = isinstance(op.value.type, IntegerType)
        element = IntegerType(8) if is_integer else Float16Type()
        zero = arith.ConstantOp(IntegerAttr(0, IntegerType(8)) if is_integer else FloatAttr(0.0, Float16Type()))
        true = arith.ConstantOp(IntegerAttr(1, i1))
        depth = FRACTAL_BYTES // (1 if is_integer else 2)
        left, right = (
            tile.AllocOp(f"zeros_{side}", MemRefType(element, sizes, memory_space=hivm.address_space("cbuf")))
            for side, sizes in (("left", (shape[0], depth)), ("right", (depth, shape[1]))))
        barriers = hivm.PipeBarrierOp("ALL"), hivm.PipeBarrierOp("ALL")
        for made in (zero, true, left, right, tile.FillOp(zero.result, left.result), tile.FillOp(zero.result, right.result),
                     barriers[0], tile.GemmOp(left.result, right.result, op.target, true.result), barriers[1]):
            _insert_on_cube_core(op, made, op, rewriter)
        for barrier in barriers:
            set_remark(barrier, Remark(NAME, facts=Waits(source="ALL", target="ALL"),
                                       text=f"this full barrier separates the gemm of zeros that clears {label} from all "
                                            "other work"))
        rewriter.erase(op)


def _is_clear_of_accumulator(fill: tile.FillOp) -> bool:
    """Whether a fill writes zeros to L0C."""
    return space_of(fill.target) == "cc" and is_zero(fill.value)


class _NextAccess(NamedTuple):
    """The next access of an accumulator.

    Attributes:
        op: the operation; None if there is none in the block of the clear.
        loops: the loops that surely run between the clear and the operation, from the outermost.
    """

    op: Operation | None
    loops: list[scf.ForOp]


def _next_access(fill: tile.FillOp, ranges: Ranges) -> _NextAccess:
    """Returns the next access of a cleared accumulator in the block of the clear, or in a loop of it that surely runs."""
    buffer = root_of(fill.target)
    loops: list[scf.ForOp] = []
    op = next_access(fill.next_op, buffer)
    while isinstance(op, scf.ForOp) and ranges.trip_count(op).low >= 1:
        loops.append(op)
        op = next_access(op.body.block.first_op, buffer)
    return _NextAccess(op, loops)


def _reason_not_to_fold(fill: tile.FillOp, ranges: Ranges) -> Refusal:
    """Returns why a clear is not the ``init`` of a gemm."""
    access = _next_access(fill, ranges).op
    if isinstance(access, tile.GemmOp):
        return Refusal(f"the gemm at {line_of(access)} writes another part of the accumulator than the clear",
                       "clear the part that the gemm writes")
    if access is not None:
        return why_clear_starts_no_gemm(access)
    if is_read_by_next_iteration(fill):
        return Refusal("the operation that reads the accumulator is before the clear in the loop's body",
                       "clear the accumulator at the start of the loop's body")
    reader = access_after_parents(fill)
    place = f" at {line_of(reader)}" if reader is not None else ""
    return Refusal(f"the accumulator is read{place}, after the loop or the condition around the clear",
                   "clear the accumulator right before the gemm that adds to it, or pass init=True to that gemm")


def _insert_on_cube_core(source: Operation, op: Operation, before: Operation, rewriter: PatternRewriter) -> None:
    """Inserts an operation of the Cube core before another one, with the source location of ``source``."""
    copy_location(source, op)
    if has_core(op):
        put_core(op, "AIC")
    rewriter.insert(op, InsertPoint.before(before))


@dataclass(frozen=True)
class FoldAccumulatorClear(ModulePass):
    """Replaces a clear of an accumulator by the ``init`` of the next gemm, because no instruction fills L0C.

    Attributes:
        enabled: whether clears are replaced by the ``init`` of a gemm; if false, each clear whose zeros are read is replaced by
            a product of zeros.
    """

    name = NAME
    enabled: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        fold = [FoldClearIntoInit(op, ranges)] if self.enabled else []
        apply_patterns(op, EraseDeadClear(ranges), *fold, ReplaceClearByZeroProduct(op, ranges, explain=self.enabled),
                       classes=tile.FillOp)


__all__ = ["EraseDeadClear", "FoldAccumulatorClear", "FoldClearIntoInit", "ReplaceClearByZeroProduct"]
