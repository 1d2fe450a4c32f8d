"""func: a parser of functions that keeps the attributes of the arguments and results of a declaration, which xDSL drops.

An example is ``func.func private @f(i32 {tt.divisibility = 16 : i32}) -> (i32 {a})``. The printer of ``dialects/text`` prints
these attributes.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, Region
from xdsl.parser import Parser

from tilelang_npu.dialects.ir.declaration import extend_dialect

_RESERVED = ("sym_name", "function_type", "sym_visibility")


class FuncOp(func.FuncOp):
    """A function definition or declaration; unlike xDSL's, its parser keeps the attributes in a declaration."""

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """Parses the op in its custom assembly form."""
        visibility = parser.parse_optional_visibility_keyword()
        name = parser.parse_symbol_name().data
        place = parser.pos
        named: list[Parser.Argument] = []
        inputs: list[Attribute] = []
        input_attributes: list[dict[str, Attribute]] = []

        def argument() -> None:
            argument = parser.parse_optional_argument()
            if argument is not None:
                named.append(argument)
            inputs.append(parser.parse_type() if argument is None else argument.type)
            input_attributes.append(parser.parse_optional_dictionary_attr_dict())
            location = parser.parse_optional_location()
            if argument is not None:
                argument.location = location

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        if len(named) not in (0, len(inputs)):
            parser.raise_error("Expected all arguments to be named or all arguments to be unnamed.", place)
        outputs, output_attributes = _results(parser)
        extra = parser.parse_optional_attr_dict_with_keyword(_RESERVED)
        body = parser.parse_optional_region(named or None)
        made = func.FuncOp(name, (inputs, outputs), Region() if body is None else body, visibility,
                           arg_attrs=_listed(input_attributes), res_attrs=_listed(output_attributes))
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


Func = extend_dialect(func.Func, FuncOp)
