"""``func``, whose declarations keep the attributes of their arguments and results.

xDSL reads them and drops them, and writes none: ``func.func private @f(i32 {tt.divisibility = 16 : i32}) -> (i32 {a})``.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, Region
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilelang_npu.dialects.ir.declaration import replacing

_RESERVED = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")


class FuncOp(func.FuncOp):
    """A function, or the declaration of one."""

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """Read the custom form."""
        visibility = parser.parse_optional_visibility_keyword()
        name = parser.parse_symbol_name().data
        place = parser.pos
        named: list[Parser.Argument] = []
        inputs: list[Attribute] = []
        of_inputs: list[dict[str, Attribute]] = []

        def argument() -> None:
            argument = parser.parse_optional_argument()
            if argument is not None:
                named.append(argument)
            inputs.append(parser.parse_type() if argument is None else argument.type)
            of_inputs.append(parser.parse_optional_dictionary_attr_dict())
            location = parser.parse_optional_location()
            if argument is not None:
                argument.location = location

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        if len(named) not in (0, len(inputs)):
            parser.raise_error("Expected all arguments to be named or all arguments to be unnamed.", place)
        outputs, of_outputs = _results(parser)
        extra = parser.parse_optional_attr_dict_with_keyword(_RESERVED[:3])
        body = parser.parse_optional_region(named or None)
        made = func.FuncOp(name, (inputs, outputs), Region() if body is None else body, visibility,
                           arg_attrs=_listed(of_inputs), res_attrs=_listed(of_outputs))
        if extra is not None:
            made.attributes |= extra.data
        return made


def _results(parser: Parser) -> tuple[list[Attribute], list[dict[str, Attribute]]]:
    if parser.parse_optional_punctuation("->") is None:
        return [], []
    listed = parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, lambda: (parser.parse_type(), parser.parse_optional_dictionary_attr_dict()))
    if listed is None:
        return [parser.parse_type()], [{}]
    return [type_ for type_, _ in listed], [attributes for _, attributes in listed]


def _listed(attributes: list[dict[str, Attribute]]) -> ArrayAttr[DictionaryAttr] | None:
    return ArrayAttr(DictionaryAttr(of_one) for of_one in attributes) if any(attributes) else None


def says_more(op: Any) -> bool:
    """Whether an op is a declaration of which xDSL would leave something out."""
    return isinstance(op, func.FuncOp) and not op.body.blocks and (op.arg_attrs is not None or op.res_attrs is not None)


def print_declaration(printer: Printer, op: func.FuncOp) -> None:
    """Write a declaration with the attributes of its arguments and results."""
    def values(types: Any, listed: ArrayAttr[DictionaryAttr] | None) -> None:
        given = [attributes.data for attributes in listed] if listed is not None else []

        def value(number: int) -> None:
            printer.print_attribute(types[number])
            if given[number:] and given[number]:
                printer.print_string(" ")
                printer.print_attr_dict(given[number])

        with printer.in_parens():
            printer.print_list(range(len(types)), value)

    if op.sym_visibility is not None:
        printer.print_string(f" {op.sym_visibility.data}")
    printer.print_string(" ")
    printer.print_symbol_name(op.sym_name.data)
    values(op.function_type.inputs.data, op.arg_attrs)
    if op.function_type.outputs.data:
        printer.print_string(" -> ")
        values(op.function_type.outputs.data, op.res_attrs)
    printer.print_op_attributes(op.attributes, reserved_attr_names=_RESERVED, print_keyword=True)


Func = replacing(func.Func, FuncOp)
