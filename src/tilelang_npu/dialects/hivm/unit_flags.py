"""The unit-flag clauses of fixpipe and mmadL1: M hands blocks of L0C over to FIX one by one, without an event.

Text of master: ``unit_flag_mode([#hivm.unit_flag<..>, ..]) unit_flag_cond(%p, ..)``; of v1.0.0: ``unit_flag[<..>, %p]``.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilelang_npu.dialects.hivm.enums import UnitFlagAttr
from tilelang_npu.dialects.ir.declaration import writes_older_text
from tilelang_npu.dialects.ir.destination_style import fail

UNIT_FLAGS = ArrayAttr.constr(UnitFlagAttr)


@irdl_custom_directive
class UnitFlag(CustomDirective):
    """The clauses of the modes and the conditions, in the spelling of master or of v1.0.0."""

    mode: AttributeVariable
    condition: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.condition.set(state, ())
        if parser.parse_optional_keyword("unit_flag") is not None:
            with parser.in_square_brackets():
                self.mode.set(state, ArrayAttr([UnitFlagAttr(UnitFlagAttr.parse_parameter(parser))]))
                if parser.parse_optional_punctuation(",") is not None:
                    self.condition.set(state, (parser.parse_unresolved_operand(),))
            return
        if parser.parse_optional_keyword("unit_flag_mode") is not None:
            with parser.in_parens():
                self.mode.set(state, parser.parse_attribute())
        if parser.parse_optional_keyword("unit_flag_cond") is not None:
            with parser.in_parens():
                self.condition.parse(parser, state)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        modes = self.mode.get(op)
        conditions = self.condition.get(op)
        if writes_older_text(printer):
            if isinstance(modes, ArrayAttr) and len(modes) == 1 and isinstance(flag := modes.data[0], UnitFlagAttr):
                printer.print_string(f" unit_flag[<{flag.data}>")
                for condition in conditions:
                    printer.print_string(", ")
                    printer.print_ssa_value(condition)
                printer.print_string("]")
            return
        if modes is not None:
            printer.print_string(" unit_flag_mode(")
            printer.print_attribute(modes)
            printer.print_string(")")
        if conditions:
            printer.print_string(" unit_flag_cond(")
            printer.print_list(conditions, printer.print_ssa_value)
            printer.print_string(")")


def unit_flags(op: Any) -> None:
    """Rule: there are as many conditions as modes, or one mode without a condition, or neither."""
    modes = len(op.unit_flag_mode) if op.unit_flag_mode is not None else 0
    conditions = len(op.unit_flag_cond)
    if op.unit_flag_mode is None:
        if conditions:
            fail("Cannot have unit-flag conditions without unit-flag modes.")
    elif conditions:
        if modes != conditions:
            fail("Number of unit-flag conditions should be equal to the number of unit-flag modes.")
    elif modes > 1:
        fail("Cannot have multiple unit-flag modes without having equal number of unit-flag conditions.")
    group = op.unit_flag_group_id
    if isinstance(group, IntegerAttr) and group.value.data < 0:
        fail(f"Invalid value for unit-flag group-id: {group.value.data}")
