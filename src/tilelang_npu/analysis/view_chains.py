"""Chains of memref views: which allocation, address or argument a memref is a view of, and how many slots this root has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilelang_npu.dialects import annotation, hivm

MULTI_BUFFER = "hivm.multi_buffer"
"""The attribute of an ``annotation.mark`` that states the number of multi-buffer slots of an allocation."""
COUPLED = "hivm.tightly_coupled_buffer"
"""The attribute of an ``annotation.mark`` that numbers an on-chip buffer which both cores access.

The allocations with the same number in the functions of the two cores are the same buffer.
"""
VIEWS = (memref.SubviewOp, memref.ReinterpretCastOp, memref.CastOp, memref.ExpandShapeOp, memref.CollapseShapeOp,
         memref.ViewOp, hivm.BitcastOp)
Loop = scf.ForOp | scf.WhileOp


@cache
def _source_operand(kind: type[Operation | Block]) -> int | None:
    """Returns which operand an op of this class is a view of; None if it is no view.

    The result is cached for each class, because ``isinstance`` tests the classes in ``VIEWS`` one by one.
    """
    return (1 if issubclass(kind, arith.SelectOp) else 0) if issubclass(kind, (*VIEWS, arith.SelectOp)) else None


def root_of(value: SSAValue) -> SSAValue:
    """Returns the allocation, address (``hivm.pointer_cast``) or argument at the start of the chain of views that ends in a
    memref.
    """
    while (place := _source_operand(type(owner := value.owner))) is not None:
        value = cast(Operation, owner).operands[place]
    return value


def typed_root_of(value: SSAValue) -> SSAValue:
    """Returns the root of a memref as ``root_of`` does, but does not look through a ``memref.view`` of raw bytes."""
    while (place := _source_operand(type(owner := value.owner))) is not None and not isinstance(owner, memref.ViewOp):
        value = cast(Operation, owner).operands[place]
    return value


def possible_roots_of(value: SSAValue) -> tuple[set[SSAValue], set[Loop]]:
    """Returns all roots that a value can be a view of, and the loops that carry a view of one of them.

    Both operands of a select, the results of branches and the loop-carried values are followed.

    Returns:
        The allocations, addresses and arguments, and the loops with a loop-carried value among the values that were followed.
    """
    roots, loops, seen, pending = set[SSAValue](), set[Loop](), {value}, [value]
    while pending:
        current = pending.pop()
        sources, loop = _sources_of(current)
        if not sources:
            roots.add(current)
        elif loop is not None:
            loops.add(loop)
        pending += (source for source in sources if source not in seen)
        seen.update(sources)
    return roots, loops


def _sources_of(value: SSAValue) -> tuple[Sequence[SSAValue], Loop | None]:
    """Returns the values that a value may be equal to or a view of, and the loop that carries the value.

    Returns no values for a root, and None in place of the loop for a value that no loop carries.
    """
    owner = value.owner
    if isinstance(owner, arith.SelectOp):
        return owner.operands[1:], None
    if _source_operand(type(owner)) is not None:
        return cast(Operation, owner).operands[:1], None
    if isinstance(value, OpResult) and isinstance(owner, scf.IfOp):
        return [_terminator(region.block).operands[value.index] for region in owner.regions if region.blocks], None
    loop = owner.parent_op() if isinstance(owner, Block) else owner
    index = value.index if isinstance(value, (OpResult, BlockArgument)) else 0
    if isinstance(loop, scf.ForOp):
        index -= isinstance(value, BlockArgument)  # the first block argument is the induction variable
        return [loop.iter_args[index], _terminator(loop.body.block).operands[index]] if index >= 0 else [], loop
    if isinstance(loop, scf.WhileOp):
        if owner is loop.before_region.block:
            return (loop.operands[index], _terminator(loop.after_region.block).operands[index]), loop
        return (_terminator(loop.before_region.block).operands[1 + index],), loop  # operand 0 is the condition
    return (), None


def _terminator(block: Block) -> Operation:
    last = block.last_op
    assert last is not None, "a terminator"
    return last


def slots_of(value: SSAValue) -> int:
    """Returns the number of slots that the ``annotation.mark`` of an allocation states; 1 where there is no such mark."""
    for use in value.uses:
        if isinstance(use.operation, annotation.MarkOp):
            mark = use.operation.attributes.get(MULTI_BUFFER)
            if isinstance(mark, IntegerAttr):
                return int(mark.value.data)
    return 1


def coupling_of(value: SSAValue) -> int | None:
    """Returns the number of an allocation that both cores access, from its attribute ``COUPLED``.

    The functions of the two cores each have an allocation with this number. Returns None for an allocation of one core.
    """
    for use in value.uses:
        mark = use.operation.attributes.get(COUPLED) if isinstance(use.operation, annotation.MarkOp) else None
        if isinstance(mark, hivm.TightlyCoupledBufferAttr):
            return int(mark.data)
    return None


__all__ = ["COUPLED", "MULTI_BUFFER", "VIEWS", "Loop", "coupling_of", "possible_roots_of", "root_of", "slots_of",
           "typed_root_of"]
