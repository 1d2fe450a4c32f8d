"""Replaces an allocation, in some of the statements that use it, by a new allocation of the same type."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.buffers import root_of
from tilelang_npu.analysis.locations import copy_location
from tilelang_npu.dialects import tile

_VIEWS = (tile.RegionOp, tile.ViewOp)


def split_allocation(allocation: tile.AllocOp, statements: Sequence[Operation]) -> tile.AllocOp:
    """Clones an allocation, and makes the given statements use the clone instead of the original.

    Args:
        allocation: the allocation. The clone is inserted after it.
        statements: the statements; operations nested in them are changed too.

    Returns:
        The clone.
    """
    made = allocation.clone()
    copy_location(allocation, made)
    made.result.name_hint = allocation.result.name_hint
    Rewriter().insert_op(made, InsertPoint.after(allocation))
    for statement in statements:
        for op in list(statement.walk()):
            for index, operand in enumerate(op.operands if not isinstance(op, _VIEWS) else ()):
                if root_of(operand) is allocation.result:
                    op.operands[index] = _same_view(operand, allocation.result, made.result)
                    _erase_unused_views(operand)
    return made


def _same_view(value: SSAValue, old: SSAValue, new: SSAValue) -> SSAValue:
    """Builds the view ``value`` of the buffer ``old`` as a view of the buffer ``new``."""
    if value is old:
        return new
    view = value.owner
    assert isinstance(view, _VIEWS)
    source = _same_view(view.source, old, new)
    made = view.clone({view.source: source})
    copy_location(view, made)
    made.results[0].name_hint = value.name_hint
    Rewriter().insert_op(made, InsertPoint.before(view))
    return made.results[0]


def _erase_unused_views(value: SSAValue) -> None:
    while isinstance(view := value.owner, _VIEWS) and not list(view.results[0].uses):
        value = view.source
        Rewriter.erase_op(view)


__all__ = ["split_allocation"]
