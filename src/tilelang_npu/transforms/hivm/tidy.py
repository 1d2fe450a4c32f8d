"""Remove what nothing reads and compute equal things once, so that a dump says each thing once.

Pure operations with equal operands and attributes in one block (or one around it) become one; pure operations without
a use, empty branches, loops without an effect and those that never run go. Nothing that touches memory or synchronises is
moved, or removed from where it runs. What an operation does, its traits say (``dialects/ir/effects.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import MemoryEffectKind, is_side_effect_free, only_has_effect
from xdsl.transforms.common_subexpression_elimination import OperationInfo
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.effects import EffectsOp
from tilelang_npu.transforms.ir.ranges import Ranges

Known = dict[tuple[OperationInfo, str | None], Operation]


def _merge(block: Block, known: Known) -> None:
    """Give equal pure operations one definition, where the earlier one dominates.

    xDSL's own driver would merge reads, too, and would drop a value that nothing uses yet although one in a loop behind it is
    equal. Two buffers of one address stay two where their names differ: reports tell them by these.
    """
    here = dict(known)
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                _merge(inner, here)
        if op.regions or not op.results or not is_side_effect_free(op):
            continue
        name = op.results[0].name_hint if isinstance(op, hivm.PointerCastOp) else None
        first = here.setdefault((OperationInfo(op), name), op)
        if first is not op:
            for old, new in zip(op.results, first.results, strict=True):
                old.replace_all_uses_with(new)
            Rewriter.erase_op(op)


def _unused(op: Operation) -> bool:
    """Whether an operation only makes results, and nobody uses them; a loop of open length may be a wait."""
    if any(result.first_use is not None for result in op.results) or isinstance(op, scf.WhileOp):
        return False
    if isinstance(op, EffectsOp) and (op.has_side_effects() or any(effect.writes for effect in op.effects())):
        return False  # the answer of nearly all, for which xDSL makes sets
    return would_be_trivially_dead(op) or (bool(op.results) and only_has_effect(op, MemoryEffectKind.ALLOC))


def _never_runs(op: Operation) -> bool:
    """Whether a loop's bounds are constants with nothing between them."""
    if not isinstance(op, scf.ForOp):
        return False
    first, last = Ranges().constant(op.lb), Ranges().constant(op.ub)
    return first is not None and last is not None and first >= last


def _sweep(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if _never_runs(op):
            assert isinstance(op, scf.ForOp)
            for result, start in zip(op.results, op.iter_args, strict=True):
                result.replace_all_uses_with(start)
            Rewriter.erase_op(op)
            continue
        for region in op.regions:
            for inner in region.blocks:
                _sweep(inner)
        if _unused(op):
            Rewriter.erase_op(op)


@dataclass(frozen=True)
class Tidy(ModulePass):
    """The pass; see the module's text."""

    name = "tidy"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, func.FuncOp) and function.body.blocks:
                tidy_function(function)


def tidy_function(function: func.FuncOp) -> None:
    """Tidy one function in place."""
    _merge(function.body.block, {})
    _sweep(function.body.block)
