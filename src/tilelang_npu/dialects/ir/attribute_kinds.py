"""The five shapes of attributes in the AscendNPU-IR dialects; an attribute class adds its name and its cases.

Where an op's assembly names such an attribute, MLIR prints it stripped (``<PIPE_V>``) and parses it stripped, in full
(``#hivm.pipe<PIPE_V>``) or by alias; the parsers here do the same.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeVar

from typing_extensions import Self
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

AttributeT = TypeVar("AttributeT", bound=Attribute)
AttributeKindT = TypeVar("AttributeKindT", "MarkerAttr", "TextAttr", "SymbolAttr")


def parse_reference(parser: AttrParser, kind: type[AttributeT]) -> AttributeT | None:
    """Parses an attribute in full or by alias; returns None after the ``<`` of the stripped form."""
    if parser.parse_optional_punctuation("<") is not None:
        return None
    position = parser.pos
    attribute = parser.parse_optional_attribute()
    if not isinstance(attribute, kind):
        parser.raise_error(f"expected '<' or #{kind.name}<...>", position)
    return attribute


class EnumAttr(Data[str], ABC):
    """One of a fixed set of words: ``#hivm.pipe<PIPE_V>``. ``data`` is the word as the text has it.

    A subclass states its name and its cases: ``class AxisKindAttr(EnumAttr, name="hivm.axis_kind", cases="first last")``.

    ``CASES`` maps each word to its integer in the toolchain (which library calls and properties carry). ``PREFIX`` is the
    common beginning of the words, which Python callers may omit: ``PipeAttr("MTE2")``.
    """

    CASES: ClassVar[Mapping[str, int]]
    PREFIX: ClassVar[str] = ""

    def __init_subclass__(cls, *, name: str = "", cases: str | Mapping[str, int] = "", start: int = 0,
                          prefix: str = "") -> None:
        """Defines the attribute.

        Args:
            name: the attribute's name with its dialect.
            cases: the words, whose integers count from ``start``; or a mapping to the integers.
            start: the integer of the first word.
            prefix: the common beginning of the words.
        """
        super().__init_subclass__()
        cls.name = name
        cls.CASES = cases if isinstance(cases, Mapping) else {
            word: number for number, word in enumerate(cases.split(), start)}
        cls.PREFIX = prefix
        irdl_attr_definition(cls)

    def __init__(self, case: str) -> None:
        if case not in self.CASES and f"{self.PREFIX}{case}" in self.CASES:
            case = f"{self.PREFIX}{case}"
        super().__init__(case)

    @classmethod
    def of(cls, case: str | Self) -> Self:
        """The attribute of a word; an attribute is returned as it is."""
        return case if isinstance(case, cls) else cls(str(case))

    @property
    def value(self) -> int:
        """The integer of the case in the toolchain."""
        return self.CASES[self.data]

    @property
    def short(self) -> str:
        """The word without the common prefix: ``MTE2``."""
        return self.data.removeprefix(self.PREFIX)

    def verify(self) -> None:
        if self.data not in self.CASES:
            msg = f"expected #{self.name} to be one of: {', '.join(self.CASES)}; found '{self.data}'"
            raise VerifyException(msg)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        reference = parse_reference(parser, cls)
        if reference is not None:
            return reference.data
        position = parser.pos
        word = parser.parse_identifier()
        if word not in cls.CASES:
            parser.raise_error(f"expected #{cls.name} to be one of: {', '.join(cls.CASES)}", position, parser.pos)
        parser.parse_punctuation(">")
        return word

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


class TextAttr(Data[str], ABC):
    """A string: ``#hacc.target<"Ascend910B3">``."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_str_literal()

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data)


class NumberAttr(Data[int], ABC):
    """An integer: ``#hacc.input_idx<0>``."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        with parser.in_angle_brackets():
            return parser.parse_integer(allow_boolean=False, allow_negative=False)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


class SymbolAttr(Data[str], ABC):
    """The name of a function: ``#hacc.tiling_function<@f>``."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_symbol_name().data

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_symbol_name(self.data)


class MarkerAttr(Data[str], ABC):
    """An attribute without contents, of which only the presence counts: ``#hivm.part_of_mix``."""

    def __init__(self, data: str = "") -> None:
        super().__init__(data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return ""

    def print_parameter(self, printer: Printer) -> None:
        pass


def define_attributes(kind: type[AttributeKindT], dialect: str, mnemonics: Sequence[str],
                      doc: str) -> tuple[type[AttributeKindT], ...]:
    """Returns the classes of the attributes of a dialect that differ in nothing but the name.

    Args:
        kind: the base class.
        dialect: the dialect's name.
        mnemonics: the attributes' names without the dialect.
        doc: the docstring, with ``{}`` for the attribute's full name.
    """
    return tuple(type("".join(mnemonic.title().split("_")).replace("-", "") + "Attr", (kind,), {
        "name": f"{dialect}.{mnemonic}", "__doc__": doc.format(f"{dialect}.{mnemonic}")}) for mnemonic in mnemonics)
