"""Eliminates common subexpressions and dead operations, so that a dump is short.

Only pure operations are merged: with an equal earlier operation of the same block or of an enclosing block. No operation that
accesses memory or synchronises is moved, and none that can run is erased. The effects of an operation are those that its class
declares (``dialects/ir/effects.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import MemoryEffectKind, is_side_effect_free, only_has_effect
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.effects import EffectsOp
from tilelang_npu.dialects.ir.equal_operations import operation_key
from tilelang_npu.transforms.infra.patterns import apply_patterns


@dataclass
class MergeEqualOperations(RewritePattern):
    """Replaces a pure operation by an earlier one with equal operands and attributes.

    ::

        %a = arith.addi %x, %y; %b = arith.addi %x, %y; use(%a, %b)
        -> %a = arith.addi %x, %y; use(%a, %a)

    The operations of one function have to be visited forward. xDSL's ``CSEDriver`` does not fit: it also merges reads, and it
    erases an operation that has no use yet, although a loop after it contains an equal one. Two buffers with the same address
    are not merged if their names differ, because reports distinguish them by name.

    Attributes:
        visited: the operations that were visited and not replaced, by the tuple of name, operands, types and attributes that
            equal operations have in common.
    """

    visited: dict[tuple[object, ...], list[Operation]] = field(default_factory=dict)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if op.regions or not op.results or not is_side_effect_free(op):
            return
        buffer_name = op.results[0].name_hint if isinstance(op, hivm.PointerCastOp) else None
        equal = self.visited.setdefault((*operation_key(op), buffer_name), [])
        for earlier in equal:
            if earlier.parent is not None and _is_inside(op, earlier.parent):
                rewriter.replace(op, (), earlier.results)
                return
        equal.append(op)


def _is_inside(op: Operation, block: Block) -> bool:
    """Whether an operation is in a block, or in a region of an operation of the block."""
    around = op.parent
    while around is not None and around is not block:
        parent = around.parent_op()
        around = parent.parent if parent is not None else None
    return around is not None


class EraseLoopThatNeverRuns(RewritePattern):
    """Erases a loop that has constant bounds and no iteration.

    ::

        %r = scf.for %i = 4 to 4 step 1 iter_args(%x = %start) { ... }; use(%r)
        -> use(%start)
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.ForOp, rewriter: PatternRewriter) -> None:
        ranges = Ranges()
        first, last = ranges.constant(op.lb), ranges.constant(op.ub)
        if first is not None and last is not None and first >= last:
            rewriter.replace(op, (), op.iter_args)


class EraseUnusedOperation(RewritePattern):
    """Erases an operation whose results have no uses, if it has no other effect than to allocate a buffer.

    ::

        %a = arith.addi %x, %y; (no use of %a)
        -> (nothing)

    An operation with regions, such as an empty branch, has the effects of the operations in its regions. A ``while`` loop is
    never erased, even if it only reads: it may wait for another core.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if any(result.first_use is not None for result in op.results) or isinstance(op, scf.WhileOp):
            return
        # The answer for most operations and loops, without the sets of effects that xDSL builds below.
        if any(_has_visible_effect(inner) for inner in (op.walk() if op.regions else (op,))):
            return
        if would_be_trivially_dead(op) or (op.results and only_has_effect(op, MemoryEffectKind.ALLOC)):
            rewriter.erase(op)


def _has_visible_effect(op: Operation) -> bool:
    return isinstance(op, EffectsOp) and (op.has_side_effects() or any(effect.writes for effect in op.effects()))


@dataclass(frozen=True)
class Tidy(ModulePass):
    """Eliminates common subexpressions, loops without iterations and dead operations in all functions of a module."""

    name = "tidy"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.ops:
            if isinstance(inner, func.FuncOp):
                tidy_function(inner)
            elif isinstance(inner, ModuleOp):
                self.apply(ctx, inner)


def tidy_function(function: func.FuncOp) -> None:
    """Eliminates common subexpressions, loops without iterations and dead operations in one function, in place."""
    apply_patterns(function, MergeEqualOperations())
    # Backward, so that the operands of an erased operation are visited after it.
    apply_patterns(function, EraseLoopThatNeverRuns(), EraseUnusedOperation(), backward=True)


__all__ = ["EraseLoopThatNeverRuns", "EraseUnusedOperation", "MergeEqualOperations", "Tidy", "tidy_function"]
