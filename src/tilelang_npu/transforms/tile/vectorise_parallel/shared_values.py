"""Finds the values of a ``T.Parallel`` that are used several times, so that vector operations compute each of them once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tilelang_npu.analysis.buffers import root_of
from tilelang_npu.dialects.ir.effects import is_pure
from tilelang_npu.dialects.ir.equal_operations import operation_key


def merge_equal_values(block: Block) -> None:
    """Replaces a value by an earlier one that the same operation computes from the same operands.

    Two loads of an element are the same if no statement between them stores to the buffer.
    """
    known: dict[Hashable, SSAValue] = {}
    stores: defaultdict[SSAValue, int] = defaultdict(int)
    for op in list(block.ops):
        if isinstance(op, memref.StoreOp):
            stores[root_of(op.memref)] += 1
        if not (is_pure(op) or isinstance(op, memref.LoadOp)) or len(op.results) != 1:
            continue
        version = stores[root_of(op.memref)] if isinstance(op, memref.LoadOp) else 0
        earlier = known.setdefault((*operation_key(op), version), op.results[0])
        if earlier is not op.results[0]:
            op.results[0].replace_all_uses_with(earlier)
            Rewriter.erase_op(op)


def is_shared(value: SSAValue) -> bool:
    """Whether more than one operand of operations is a value."""
    uses = iter(value.uses)
    return next(uses, None) is not None and next(uses, None) is not None


def operations_of(value: SSAValue, block: Block) -> set[Operation]:
    """Returns the operations of a block that compute a value, without the loads."""
    found: set[Operation] = set()
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner.parent_block() is block and owner not in found and not isinstance(
                owner, memref.LoadOp):
            found.add(owner)
            pending.extend(owner.operands)
    return found


__all__ = ["is_shared", "merge_equal_values", "operations_of"]
