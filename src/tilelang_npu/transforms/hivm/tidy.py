"""Remove what nothing reads and compute equal things once, so that a dump says each thing once.

Pure operations with equal operands and attributes in one block (or one around it) become one; pure operations without
a use, empty branches, loops without an effect and those that never run go. Nothing that touches memory or synchronises is
moved, or removed from where it runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, math, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu.dialects import hivm, memref_ext
from tilelang_npu.transforms.ir.ranges import Ranges

_VIEWS = (memref.SubviewOp, memref.ReinterpretCastOp, memref.ViewOp, memref.CastOp, memref.DimOp, memref.ExpandShapeOp,
          memref.CollapseShapeOp)
_QUERIES = (hivm.GetBlockIdxOp, hivm.GetSubBlockIdxOp, hivm.GetBlockNumOp, hivm.PointerCastOp, hivm.BitcastOp)
_UNUSED = (memref.AllocOp, memref.AllocaOp, memref.LoadOp, memref_ext.AllocWorkspaceOp)


def _pure(op: Operation) -> bool:
    return isinstance(op, (*_VIEWS, *_QUERIES)) or op.dialect_name() in (arith.Arith.name, math.Math.name)


def _key(op: Operation) -> tuple[object, ...]:
    """Equal for operations that have equal results. Two buffers of one address stay two: reports tell them by their names."""
    name = op.results[0].name_hint if isinstance(op, hivm.PointerCastOp) else None
    return (op.name, name, tuple(id(operand) for operand in op.operands), tuple(sorted(op.properties.items())),
            tuple(sorted(op.attributes.items())), tuple(result.type for result in op.results))


def _merge(block: Block, known: dict[tuple[object, ...], Operation]) -> None:
    """Give equal pure operations one definition, where the earlier one dominates."""
    here = dict(known)
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                _merge(inner, here)
        if not _pure(op):
            continue
        key = _key(op)
        first = here.get(key)
        if first is None:
            here[key] = op
            continue
        for old, new in zip(op.results, first.results, strict=True):
            old.replace_all_uses_with(new)
        Rewriter.erase_op(op)


def _removable(op: Operation) -> bool:
    if any(result.has_one_use() or len(list(result.uses)) for result in op.results):
        return False
    if isinstance(op, scf.IfOp):
        return all(_empty(region.block) for region in op.regions if region.blocks)
    if isinstance(op, scf.ForOp):
        return _empty(op.body.block)
    return _pure(op) or isinstance(op, _UNUSED)


def _empty(block: Block) -> bool:
    return all(isinstance(op, scf.YieldOp) for op in block.ops)


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
        if _removable(op):
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
