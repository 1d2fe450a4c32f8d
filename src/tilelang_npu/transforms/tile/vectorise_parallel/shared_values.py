"""Finds the values of a ``T.Parallel`` that are used several times, so that vector operations compute each of them once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from xdsl.dialects import memref
from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tilelang_npu.analysis.buffers import root_of

_PURE = ("arith", "math")
"""The dialects whose operations have no effects. Their results depend on the operands alone."""


def merge_equal_values(block: Block) -> None:
    """Replaces a value by an earlier one that the same operation computes from the same operands.

    Two loads of an element are the same if no statement between them stores to the buffer.
    """
    known: dict[Hashable, SSAValue] = {}
    stores: defaultdict[SSAValue, int] = defaultdict(int)
    for op in list(block.ops):
        if isinstance(op, memref.StoreOp):
            stores[root_of(op.memref)] += 1
        is_pure = op.name.partition(".")[0] in _PURE or isinstance(op, UnrealizedConversionCastOp)
        if len(op.results) != 1 or op.regions or not (is_pure or isinstance(op, memref.LoadOp)):
            continue
        version = stores[root_of(op.memref)] if isinstance(op, memref.LoadOp) else 0
        key = (op.name, tuple(op.operands), frozenset(op.properties.items()), frozenset(op.attributes.items()),
               op.results[0].type, version)
        earlier = known.setdefault(key, op.results[0])
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
