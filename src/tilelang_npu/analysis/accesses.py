"""Which operations access a buffer, and how.

An access is an :class:`~tilelang_npu.dialects.ir.effects.Effect`: an operation, an operand, and whether the operation reads or
writes it. An operand may be a view; its buffer is ``root_of(operand)``.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilelang_npu.analysis.buffers import covers_root, root_of
from tilelang_npu.dialects.ir.effects import Effect, effects_of


def accesses_within(op: Operation) -> list[Effect]:
    """Returns the accesses of an operation and of the operations nested in it, in program order."""
    return [use for inner in op.walk() for use in effects_of(inner)]


def has_access_to(op: Operation, buffer: SSAValue) -> bool:
    """Whether an operation, or an operation nested in it, reads or writes a buffer, directly or through a view."""
    return any(root_of(use.value) is buffer for inner in op.walk() if any(root_of(value) is buffer for value in inner.operands)
               for use in effects_of(inner))


def has_reference_to(op: Operation, buffer: SSAValue) -> bool:
    """Whether an operation, or an operation nested in it, has a buffer or a view of that buffer as an operand.

    Unlike for ``has_access_to``, an operation that only makes a view of the buffer counts.
    """
    return any(root_of(value) is buffer for inner in op.walk() for value in inner.operands)


def is_full_overwrite(op: Operation, buffer: SSAValue) -> bool:
    """Whether an operation writes all elements of a buffer and reads none of them; False for operations with regions."""
    uses = [use for use in effects_of(op) if root_of(use.value) is buffer]
    return (bool(uses) and not op.regions and all(use.writes and not use.reads and use.role != "scalar" for use in uses)
            and any(covers_root(use.value) for use in uses))


def conflicting_buffers(a: Operation, b: Operation) -> set[SSAValue]:
    """Returns the buffers that both operations access and at least one of the two operations writes.

    The operations nested in ``a`` and in ``b`` count as parts of ``a`` and ``b``.
    """
    of_a, of_b = accesses_within(a), accesses_within(b)
    writes = {root_of(use.value) for use in (*of_a, *of_b) if use.writes}
    return {root_of(use.value) for use in of_a} & {root_of(use.value) for use in of_b} & writes


__all__ = ["accesses_within", "conflicting_buffers", "has_access_to", "has_reference_to", "is_full_overwrite"]
