"""Finds the operations that contain an operation: its loop, its launch, its core scope."""

from __future__ import annotations

from typing import TypeVar

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.analysis.buffers import space_of
from tilelang_npu.dialects import tile
from tilelang_npu.target import GM, filled_from

OpT = TypeVar("OpT", bound=Operation)


def enclosing(op: Operation, kind: type[OpT]) -> OpT | None:
    """Returns the innermost operation of a class that contains ``op``, ``op`` itself excluded; None if there is no such
    operation.
    """
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, kind):
        parent = parent.parent_op()
    return parent


def loop_around(op: Operation) -> scf.ForOp | None:
    """Returns the innermost ``scf.for`` that contains an operation; None if no ``scf.for`` does."""
    return enclosing(op, scf.ForOp)


def pipelined_loop_of_copy(op: Operation, buffer: SSAValue) -> scf.ForOp | None:
    """Returns the pipelined loop around a copy between a buffer and another memory; None for any other operation."""
    loop = loop_around(op)
    moves = isinstance(op, tile.CopyOp) and {space_of(op.source), space_of(op.target)} != {space_of(buffer)}
    return loop if moves and loop is not None and tile.stages_of(loop) > 1 and space_of(buffer) in filled_from(GM) else None


def launch_of(op: Operation) -> tile.LaunchOp | None:
    """Returns the launch that contains an operation; None if no launch does, as for an operation that was detached."""
    return enclosing(op, tile.LaunchOp)


def is_in_core_scope(op: Operation) -> bool:
    """Whether an operation is inside of a ``T.Scope``, by which the author chose its core."""
    return enclosing(op, tile.OnCoreOp) is not None


def is_defined_in(value: SSAValue, block: Block) -> bool:
    """Whether a value is defined in a block or in a block that is nested in it."""
    owner = value.owner
    inner = owner if isinstance(owner, Block) else owner.parent_block()
    while inner is not None:
        if inner is block:
            return True
        above = inner.parent_op()
        inner = above.parent_block() if above is not None else None
    return False


__all__ = ["enclosing", "is_defined_in", "is_in_core_scope", "launch_of", "loop_around"]
