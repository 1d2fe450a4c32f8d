"""The branches of cf, whose blocks take what is handed to them; xDSL does not compare the types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import cf
from xdsl.ir import SSAValue

from tilelang_npu.dialects.ir.declaration import extend_dialect, replace_rules
from tilelang_npu.dialects.mlir.rules import require


def _hands(op: Any, *groups: Sequence[SSAValue]) -> None:
    """Each block that is gone to has arguments of the types of what it gets."""
    for number, (block, values) in enumerate(zip(op.successors, groups, strict=True)):
        wanted = len(block.args)
        require(len(values) == wanted,
                f"branch has {len(values)} operands for successor #{number}, but target block has {wanted}")
        for place, (value, argument) in enumerate(zip(values, block.args, strict=True)):
            require(value.type == argument.type, f"type mismatch for bb argument #{place} of successor #{number}:"
                                                 f" '{value.type}' for '{argument.type}'")


def goes(op: Any) -> None:
    """The rule of a branch to a block."""
    _hands(op, op.arguments)


def goes_either_way(op: Any) -> None:
    """The rule of a branch to one of two blocks."""
    _hands(op, op.then_arguments, op.else_arguments)


def _goes_many_ways(op: Any) -> None:
    cf.SwitchOp.verify_(op)
    cases = op.case_operand
    require(len(cases) == len(op.case_blocks), f"expected {len(op.case_blocks)} groups of case operands, got {len(cases)}")
    _hands(op, op.default_operands, *cases)


Cf = extend_dialect(cf.Cf, replace_rules(cf.BranchOp, goes), replace_rules(cf.ConditionalBranchOp, goes_either_way),
               replace_rules(cf.SwitchOp, _goes_many_ways))
