"""Emits operations that compute the number of the current iteration of a loop, and this number modulo a number of slots."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from tilelang_npu.transforms.infra.op_builder import OpBuilder, Value


def emit_iteration(emit: OpBuilder, loop: scf.ForOp) -> Value:
    """Emits operations that compute the number of a loop's current iteration, counted from 0.

    Args:
        emit: the builder, whose insertion point must be inside of the loop.
        loop: the loop.

    Returns:
        The number as a value of type index, or as an integer if it is constant.
    """
    low, step = emit.ranges.constant(loop.lb), emit.ranges.constant(loop.step)
    number: Value = _as_index(emit, loop.body.block.args[0])
    if low != 0:
        number = emit.sub(number, _as_index(emit, loop.lb) if low is None else low)
    if step is None:
        return emit.insert(arith.DivUIOp(emit.value(number), _as_index(emit, loop.step))).result
    return emit.floordiv(number, step)


def _as_index(emit: OpBuilder, value: SSAValue) -> SSAValue:
    return value if isinstance(value.type, IndexType) else emit.insert(arith.IndexCastOp(value, IndexType())).result


def emit_iteration_modulo(emit: OpBuilder, loop: scf.ForOp, slots: int) -> Operation:
    """Emits, at the start of a loop's body, the number of the iteration modulo ``slots``, as an i64.

    If the body already has such a value, nothing is emitted.

    Returns:
        The operation whose result is the value.
    """
    head = loop.body.block.first_op
    assert head is not None
    name = f"turn{slots}"
    for op in loop.body.block.ops:
        if isinstance(op, arith.IndexCastOp) and op.result.name_hint == name:
            return op
    with emit.before(head):
        emit.location = loop.location
        turn = emit.as_i64(emit.modulo(emit_iteration(emit, loop), slots))
    turn.name_hint = name
    assert isinstance(turn.owner, Operation)
    return turn.owner


__all__ = ["emit_iteration", "emit_iteration_modulo"]
