"""The statements of a loop's body, and the stored values that each statement reads and writes.

A statement is an operation of the body that is neither a scalar computation, which is repeated wherever its result is needed,
nor an allocation. A buffer may hold several values one after another in an iteration: a statement that overwrites the buffer
before the buffer is read begins a new value. Two statements depend on each other only through a value that both access and at
least one of them writes.
"""

from __future__ import annotations

from collections.abc import KeysView
from dataclasses import dataclass

from xdsl.dialects import memref, scf
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from tilelang_npu.analysis.accesses import accesses_within
from tilelang_npu.analysis.buffers import root_of
from tilelang_npu.analysis.cores import core_of, has_core
from tilelang_npu.analysis.first_writes import is_dead_after, may_read_earlier_value
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of, is_pure
from tilelang_npu.target.chip_data import OpCore

ORDERED_BY_AUTHOR = (tile.OnCoreOp, tile.SignalOp, *tile.DEBUG_OUTPUT_OPS, scf.WhileOp)
"""Operations that no pass moves relative to other statements: ``T.Scope`` of a core, signals between
cards, debug output, ``while`` loops."""


@dataclass(frozen=True)
class StoredValue:
    """One of the values that a buffer holds one after the other in an iteration.

    Attributes:
        root: the buffer, or the tensor in GM, that holds the value.
        number: 0 for the first value of an iteration, 1 for the second, and so on.
    """

    root: SSAValue
    number: int = 0


@dataclass
class Statement:
    """A statement of a loop's body.

    Attributes:
        op: the operation.
        core: the core that executes the operation: ``AIC``, ``AIV``, or ``either``.
        reads: the values that the operation reads, and those from which the scalars that it needs are loaded. The keys are the
            values, in the order of the accesses; a dict is used because this order must be the same in each run.
        writes: the values that the operation writes, as keys in the order of the accesses.
        stage: the number of the pipeline stage of the loop's body that the statement belongs to.
    """

    op: Operation
    core: OpCore
    reads: dict[StoredValue, None]
    writes: dict[StoredValue, None]
    stage: int = 0

    @property
    def accessed(self) -> KeysView[StoredValue]:
        """The values that the statement reads or writes, the reads first."""
        return (self.reads | self.writes).keys()

    def conflicts_with(self, other: Statement) -> set[StoredValue]:
        """Returns the values that this statement and another one both access and at least one of the two writes."""
        return (self.writes.keys() & other.accessed) | (self.accessed & other.writes.keys())


@dataclass
class LoopBody:
    """The statements of a loop's body.

    Attributes:
        loop: the loop.
        statements: the statements of the body, in program order.
        own: the values that do not survive an iteration, each with the allocation that holds it.
    """

    loop: scf.ForOp
    statements: list[Statement]
    own: dict[StoredValue, tile.AllocOp]


def loop_body_of(loop: scf.ForOp, statements: list[Statement], ranges: Ranges) -> LoopBody:
    """Returns the body of a loop, and numbers the successive values of each buffer.

    Args:
        loop: the loop.
        statements: the statements of the body, as ``statement_of`` makes them. Their ``reads`` and ``writes`` are changed to
            the numbered values.
        ranges: bounds of scalars.
    """
    body = LoopBody(loop, statements, {})
    for value in dict.fromkeys(value for each in statements for value in each.accessed):
        _number_values(body, value, ranges)
    return body


def _number_values(body: LoopBody, whole: StoredValue, ranges: Ranges) -> None:
    """Numbers the successive values of a buffer and records them in ``body.own``, if none of the values survives an iteration.
    """
    allocation = whole.root.owner
    if not isinstance(allocation, tile.AllocOp):
        return
    users = [each for each in body.statements if whole in each.accessed]
    ops = [each.op for each in users]
    is_read_as_scalar = any(
        isinstance(op, memref.LoadOp) and root_of(op.memref) is whole.root for op in body.loop.body.block.ops)
    fresh = not is_read_as_scalar and not may_read_earlier_value(ops, whole.root, ranges)
    if allocation.parent_block() is not body.loop.body.block and not (
            fresh and allocation.address is None and is_dead_after(body.loop, whole.root, ranges)):
        return
    value = whole
    for at, each in enumerate(users):
        if at and fresh and not may_read_earlier_value(ops[at:], whole.root, ranges):
            value = StoredValue(whole.root, value.number + 1)
        body.own[value] = allocation
        for side in (each.reads, each.writes):
            if whole in side:
                del side[whole]
                side[value] = None


def is_statement(op: Operation) -> bool:
    """Whether an operation of a loop's body is a statement, that is, no scalar computation, scalar load, allocation or
    terminator.
    """
    return not (is_pure(op) or isinstance(op, (tile.AllocOp, memref.LoadOp)) or op.has_trait(IsTerminator))


def statement_of(op: Operation, core: OpCore) -> Statement:
    """Returns the statement for an operation; buffers from which the operation's scalar operands are loaded count as read.

    Args:
        op: an operation of a loop's body.
        core: the core that executes the operation.
    """
    uses = [*(use for load in scalar_loads_for(op) for use in effects_of(load)), *accesses_within(op)]
    return Statement(op, core, dict.fromkeys(StoredValue(root_of(use.value)) for use in uses if use.reads),
                     dict.fromkeys(StoredValue(root_of(use.value)) for use in uses if use.writes))


def scalar_loads_for(op: Operation) -> list[memref.LoadOp]:
    """Returns the loads of single elements, in the block of an operation, on whose results the operation depends."""
    block, found = op.parent_block(), list[memref.LoadOp]()
    seen, pending = set[Operation](), [operand.owner for inner in op.walk() for operand in inner.operands]
    while pending:
        owner = pending.pop()
        if isinstance(owner, Operation) and owner.parent_block() is block and owner not in seen and owner is not op:
            seen.add(owner)
            if isinstance(owner, memref.LoadOp):
                found.append(owner)
            pending += [operand.owner for operand in owner.operands]
    return found


def find_stale_scalar(op: Operation) -> memref.LoadOp | None:
    """Finds a scalar that an operation needs and whose memory is written after the scalar is loaded and before the operation.

    If such a load were executed again right before the operation, it could give another value.

    Returns:
        The load; None if there is none.
    """
    for load in scalar_loads_for(op):
        between = load.next_op
        while between is not None and between is not op:
            if any(use.writes and root_of(use.value) is root_of(load.memref) for use in accesses_within(between)):
                return load
            between = between.next_op
    return None


def core_within(op: Operation) -> OpCore | None:
    """Returns the one core that executes an operation and all operations nested in it.

    None if several cores execute these operations, if the operations imply no core, or if one of them is an operation of HIVM
    or one whose order the author chose (``ORDERED_BY_AUTHOR``).

    Raises:
        TileError: T294, an operation has no core yet.
    """
    found = set[OpCore]()
    for inner in op.walk():
        if isinstance(inner, ORDERED_BY_AUTHOR) or inner.name.startswith("hivm."):
            return None
        if not inner.regions and has_core(inner):
            found.add(core_of(inner))
    return found.pop() if len(found) == 1 and "either" not in found else None


__all__ = ["ORDERED_BY_AUTHOR", "LoopBody", "Statement", "StoredValue", "core_within", "find_stale_scalar", "is_statement",
           "loop_body_of", "scalar_loads_for", "statement_of"]
