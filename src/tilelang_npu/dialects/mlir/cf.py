"""cf: verifies that branches pass values of the types of the target blocks' arguments, which xDSL does not."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import cf
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects.ir.declaration import extend_dialect, require


def _verify_successors(op: Operation, *groups: Sequence[SSAValue]) -> None:
    """Verifies that each successor block has arguments of the types of the values passed to it."""
    for number, (block, values) in enumerate(zip(op.successors, groups, strict=True)):
        wanted = len(block.args)
        require(len(values) == wanted,
                f"branch has {len(values)} operands for successor #{number}, but target block has {wanted}")
        for place, (value, argument) in enumerate(zip(values, block.args, strict=True)):
            require(value.type == argument.type, f"type mismatch for bb argument #{place} of successor #{number}:"
                                                 f" '{value.type}' for '{argument.type}'")


def verify_branch(op: cf.BranchOp) -> None:
    """Verifies that an unconditional branch passes values of the types of the target block's arguments."""
    _verify_successors(op, op.arguments)


def verify_conditional_branch(op: cf.ConditionalBranchOp) -> None:
    """Verifies that a conditional branch passes values of the types of the arguments of both target blocks."""
    _verify_successors(op, op.then_arguments, op.else_arguments)


def _verify_switch(op: cf.SwitchOp) -> None:
    cf.SwitchOp.verify_(op)
    cases = op.case_operand
    require(len(cases) == len(op.case_blocks), f"expected {len(op.case_blocks)} groups of case operands, got {len(cases)}")
    _verify_successors(op, op.default_operands, *cases)


Cf = extend_dialect(
    cf.Cf,
    rules={cf.BranchOp: verify_branch, cf.ConditionalBranchOp: verify_conditional_branch, cf.SwitchOp: _verify_switch})
