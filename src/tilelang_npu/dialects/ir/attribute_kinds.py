"""The base classes of the attributes of the AscendNPU-IR dialects: a word, a string, an integer, a symbol, or no contents.

In the custom form of an op, MLIR prints the value of such an attribute without the attribute's name (``<PIPE_V>``, the stripped
form). MLIR parses the stripped form, the full form (``#hivm.pipe<PIPE_V>``) and an alias. The classes here do the same.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, cast

from typing_extensions import Self, TypeVar
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

AttributeT = TypeVar("AttributeT", bound=Attribute)
AttributeKindT = TypeVar("AttributeKindT", "MarkerAttr", "TextAttr", "SymbolAttr")
WordT = TypeVar("WordT", bound=str, default=str)


def parse_reference(parser: AttrParser, kind: type[AttributeT]) -> AttributeT | None:
    """Parses an attribute of class ``kind`` in its full form or by alias.

    If a ``<`` follows instead, which begins the stripped form, consumes the ``<`` and returns None.
    """
    if parser.parse_optional_punctuation("<") is not None:
        return None
    position = parser.pos
    attribute = parser.parse_optional_attribute()
    if not isinstance(attribute, kind):
        parser.raise_error(f"expected '<' or #{kind.name}<...>", position)
    return attribute


class EnumAttr(Data[str], ABC, Generic[WordT]):
    """An attribute that holds one of a fixed set of words: ``#hivm.pipe<PIPE_V>``.

    A subclass states its name and its words: ``class AxisKindAttr(EnumAttr, attr_name="hivm.axis_kind", cases="first last")``.
    The type argument, if there is one, is a ``Literal`` of the words without the common prefix. The keyword is not ``name``,
    because ``ABCMeta.__new__`` of Python 3.10 has a parameter of this name.

    Attributes:
        data: the word, as the text spells it.
        CASES: maps each word to the integer by which the toolchain encodes the word.
        PREFIX: the common prefix of the words, which Python callers may omit: ``PipeAttr("MTE2")``.
    """

    CASES: ClassVar[Mapping[str, int]]
    PREFIX: ClassVar[str] = ""

    def __init_subclass__(cls, *, attr_name: str = "", cases: str | Mapping[str, int] = "", start: int = 0,
                          prefix: str = "") -> None:
        """Defines the attribute of a subclass.

        Args:
            attr_name: the attribute's name, with the dialect.
            cases: the words, separated by spaces; their integers count from ``start``. Or a mapping from words to integers.
            start: the integer of the first word.
            prefix: the common prefix of the words.
        """
        super().__init_subclass__()
        cls.name = attr_name
        cls.CASES = cases if isinstance(cases, Mapping) else {
            word: number for number, word in enumerate(cases.split(), start)}
        cls.PREFIX = prefix
        irdl_attr_definition(cls)

    def __init__(self, case: WordT) -> None:
        word: str = case
        if case not in self.CASES and f"{self.PREFIX}{case}" in self.CASES:
            word = f"{self.PREFIX}{case}"
        super().__init__(word)

    @classmethod
    def of(cls, case: WordT | Self) -> Self:
        """Returns the attribute that holds a word; returns an argument that is such an attribute unchanged."""
        return case if isinstance(case, cls) else cls(cast(WordT, case))  # mypy keeps Self in the second branch

    @property
    def value(self) -> int:
        """The integer by which the toolchain encodes the attribute's word."""
        return self.CASES[self.data]

    @property
    def short(self) -> WordT:
        """The attribute's word without the common prefix: ``MTE2`` for ``PIPE_MTE2``."""
        return cast(WordT, self.data.removeprefix(self.PREFIX))  # parser and verifier accept no other word

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
    """An attribute that holds a string: ``#hacc.target<"Ascend910B3">``."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_str_literal()

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data)


class NumberAttr(Data[int], ABC):
    """An attribute that holds a non-negative integer: ``#hacc.input_idx<0>``."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        with parser.in_angle_brackets():
            return parser.parse_integer(allow_boolean=False, allow_negative=False)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


class SymbolAttr(Data[str], ABC):
    """An attribute that holds the symbol name of a function: ``#hacc.tiling_function<@f>``."""

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
    """Returns one attribute class for each mnemonic; the classes differ only in the name of the attribute.

    Args:
        kind: the base class of all of them.
        dialect: the name of the dialect.
        mnemonics: the names of the attributes without the dialect.
        doc: the docstring of the classes, in which ``{}`` is replaced by the attribute's full name.
    """
    return tuple(type("".join(mnemonic.title().split("_")).replace("-", "") + "Attr", (kind,), {
        "name": f"{dialect}.{mnemonic}", "__doc__": doc.format(f"{dialect}.{mnemonic}")}) for mnemonic in mnemonics)
