"""A fast parser of MLIR text that gives every op a location.

It differs from xDSL's parser in four points. A regular expression finds the tokens, instead of a loop over characters. A type
that was parsed before is looked up by its text, because kernels repeat a few long memref types. An op whose text has no
``loc(...)`` gets the line and column of its text as location. Affine maps may multiply by symbols and divide by them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DictionaryAttr,
    FileLineColLoc,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    StringAttr,
    UnknownLoc,
    bf16,
    f16,
    f32,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineExpr, AffineMap, AffineSet
from xdsl.irdl import IRDLOperation
from xdsl.parser import AffineParser, Parser, ParserState
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import KIND_BY_PUNCTUATION_SPELLING, MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

from tilelang_npu.dialects.ir.declaration import SEGMENTS, DialectOp, counted_segments
from tilelang_npu.dialects.text.formats import format_of
from tilelang_npu.dialects.text.number_parser import NumberParser
from tilelang_npu.dialects.text.refusals import describe_invalid_token
from tilelang_npu.dialects.text.type_rules import type_fault

# The spaces and comments before a token must not backtrack: otherwise the text of a comment at the end would match as tokens.
_TOKEN = re.compile(
    r"""(?:[ \t\r\n\f\v]|//[^\n]*(?:\n|\Z))*(?:
        ([A-Za-z_][A-Za-z0-9_$.]*)                                  # 1 word
      | (%(?:[0-9]+|[A-Za-z$._-][A-Za-z0-9$._-]*))                  # 2 value
      | (->|[:,()\[\]<>=}?*+|]|/(?!/)|-(?!>)|\{(?!-\#))                   # 3 punctuation
      | (\#(?:[0-9]+|[A-Za-z$._-](?<!-)[A-Za-z0-9$._-]*))           # 4 attribute name
      | ([0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?)                        # 5 float
      | (0x[0-9a-fA-F]+|[0-9]+)                                     # 6 integer
      | ("[^"\\\n\v\f]*")                                           # 7 plain string
      | (@[A-Za-z_][A-Za-z0-9_$.]*)                                 # 8 symbol
      | (\^(?:[0-9]+|[A-Za-z$._-][A-Za-z0-9$._-]*))                 # 9 block
      | (!(?:[0-9]+|[A-Za-z$._-][A-Za-z0-9$._-]*))                  # 10 type name
    )""", re.VERBOSE)
_KINDS = (
    None, MLIRTokenKind.BARE_IDENT, MLIRTokenKind.PERCENT_IDENT, None, MLIRTokenKind.HASH_IDENT, MLIRTokenKind.FLOAT_LIT,
    MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.STRING_LIT, MLIRTokenKind.AT_IDENT, MLIRTokenKind.CARET_IDENT,
    MLIRTokenKind.EXCLAMATION_IDENT)
_PUNCTUATION = 3

# The angle brackets of a type with at most three more levels inside; the > of an arrow closes none.
_LEVEL3 = r"<(?:[^<>-]|->|-(?!>))*>"
_LEVEL2 = rf"<(?:[^<>-]|->|-(?!>)|{_LEVEL3})*>"
_SHAPED = re.compile(rf"(?:memref|tensor|vector)<(?:[^<>-]|->|-(?!>)|{_LEVEL2})*>")
_INTEGER = re.compile(r"[su]?i0*([0-9]+)$")
_OP_NAME = re.compile(r'(?:%[^="]*=)?\s*"?([A-Za-z_][A-Za-z0-9_$.]*)')
_MAX_BITS = 16777215
_MAX_INDEX = 2**63 - 1
_DIGITS = 8
_LOCATION_ALIAS = re.compile(r"^(#loc[0-9]*) = (loc\(.*\))[ \t]*$", re.MULTILINE)
_SIMPLE_TYPES: dict[str, TypeAttribute] = {
    "i1": i1, "i8": i8, "i16": i16, "i32": i32, "i64": i64, "f16": f16, "bf16": bf16, "f32": f32, "index": IndexType(),
    "i4": IntegerType(4)}


class _Token:
    """A token that makes its span on demand."""

    __slots__ = ("end", "input", "kind", "start", "text")

    def __init__(self, kind: MLIRTokenKind, text: str, start: int, end: int, input_: Input[str]) -> None:
        self.kind = kind
        self.text = text
        self.start = start
        self.end = end
        self.input = input_

    @property
    def span(self) -> Span[str]:
        return Span(self.start, self.end, self.input)

    @property
    def content(self) -> str:
        return self.text


class _Lexer(MLIRLexer):
    """xDSL's lexer, with a regular expression; the rare tokens that it does not match are left to xDSL."""

    # xDSL's own expression takes exponential time on a string that is not closed.
    _unescaped_characters_regex = re.compile(
        r'"[^"\\\n\v\f]*(?:\\(?:["nt\\]|[0-9A-Fa-f]{2})[^"\\\n\v\f]*)*"')

    def lex(self) -> Any:
        match = _TOKEN.match(self.input.content, self.pos)
        if match is None:
            return self._lex_by_xdsl()
        group = match.lastindex
        assert group is not None
        text = match[group]
        start, end = match.span(group)
        kind = KIND_BY_PUNCTUATION_SPELLING[text] if group == _PUNCTUATION else _KINDS[group]
        self.pos = end
        return _Token(kind, text, start, end, self.input)  # type: ignore[arg-type]  # kinds are strings here

    def _lex_by_xdsl(self) -> _Token:
        try:
            token = super().lex()
        except ParseError as error:
            raise ParseError(error.span, describe_invalid_token(error.msg, error.span.text)) from None
        text = token.kind is MLIRTokenKind.BYTES_LIT and _is_text(StringLiteral.from_span(token.span).bytes_contents)
        kind = MLIRTokenKind.STRING_LIT if text else token.kind
        return _Token(kind, token.text, token.span.start, token.span.end, self.input)


def _is_text(content: bytes) -> bool:
    """Whether bytes are printable UTF-8. MLIR has one kind of string for such bytes and for others."""
    try:
        return content.decode().isprintable()
    except UnicodeDecodeError:
        return False


_SEMI_AFFINE = {"*": AffineBinaryOpKind.Mul, "floordiv": AffineBinaryOpKind.FloorDiv, "ceildiv": AffineBinaryOpKind.CeilDiv,
                "mod": AffineBinaryOpKind.Mod}


class _AffineParser(AffineParser):
    """xDSL's parser of maps and sets, which also accepts products with symbols and divisions by them."""

    def _create_binop_expr(self, lhs: AffineExpr, rhs: AffineExpr, binop: MLIRToken) -> AffineExpr:
        kind = _SEMI_AFFINE.get(binop.text)
        if kind is AffineBinaryOpKind.Mul and rhs.used_dims():
            lhs, rhs = rhs, lhs  # the factor without dimensions is on the right
        if kind is None or AffineConstantExpr in (type(lhs) if kind is AffineBinaryOpKind.Mul else None, type(rhs)):
            return super()._create_binop_expr(lhs, rhs, binop)
        if rhs.used_dims():
            which = ("at least one of the multiply operands" if kind is AffineBinaryOpKind.Mul
                     else f"right operand of {binop.text}")
            self.raise_error(f"non-affine expression: {which} has to be either a constant or symbolic", binop.span)
        return AffineBinaryOpExpr(kind, lhs, rhs)


class BrokenOp(Exception):
    """The text describes an op that breaks a rule which xDSL checks when it constructs the op.

    Attributes:
        name: the op's name.
        position: the offset of the op in the text, in characters.
    """

    def __init__(self, name: str, position: int, why: VerifyException) -> None:
        super().__init__(why)
        self.name = name
        self.position = position


class TextParser(NumberParser):
    """The parser of MLIR text; the module's docstring lists its differences from xDSL's parser."""

    def __init__(self, context: Context, text: str, filename: str) -> None:
        super().__init__(context, "", filename)
        self._parser_state: Any = ParserState(_Lexer(Input(text, filename)))
        self._text = text
        self._file = StringAttr(filename)
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._types: dict[str, TypeAttribute] = {}
        self._op_start = 0
        self._dictionary: dict[str, Attribute] | None = None
        self._dictionaries: dict[str, Attribute] = {}
        if "\n#loc" in text:
            self._read_location_aliases()

    def _read_location_aliases(self) -> None:
        """Parses the ``#loc1 = loc(...)`` lines, which MLIR prints after the ops that use them."""
        pending = {match[1]: match[2] for match in _LOCATION_ALIAS.finditer(self._text)}
        while pending:
            ready = [name for name, text in pending.items()
                     if not any(other in pending for other in re.findall(r"#loc[0-9]*", text))]
            if not ready:
                self.raise_error(f"location aliases refer to each other: {', '.join(pending)}")
            for name in ready:
                inner = Parser(self.ctx, pending.pop(name), self._file.data)
                inner.attribute_aliases = self.attribute_aliases
                location = inner.parse_optional_location()
                self.attribute_aliases[name] = UnknownLoc() if location is None else location

    def _parse_alias_def(self) -> None:
        if self._current_token.text in self.attribute_aliases and self._current_token.text.startswith("#loc"):
            self._consume_token()
            self.parse_punctuation("=")
            self.parse_optional_location()
            return
        super()._parse_alias_def()  # type: ignore[no-untyped-call]  # xDSL leaves it untyped

    @property
    def pos(self) -> int:
        return self._parser_state.current_token.start  # type: ignore[no-any-return]  # the lexer is ours

    def place(self, position: int) -> tuple[int, int]:
        """Returns the line and the column, both counted from 1, of an offset in the text in characters."""
        line = bisect_right(self._lines, position)
        return line, position - self._lines[line - 1] + 1

    def parse_optional_type(self) -> TypeAttribute | None:
        token = self._parser_state.current_token
        if token.kind is not MLIRTokenKind.BARE_IDENT:
            return super().parse_optional_type()
        word = token.text
        simple = _SIMPLE_TYPES.get(word)
        if simple is not None:
            self._consume_token()
            return simple
        if word not in ("memref", "tensor", "vector"):
            if (width := _INTEGER.match(word)) and (len(width[1]) > _DIGITS or int(width[1]) > _MAX_BITS):
                self.raise_error(f"integer bitwidth is limited to {_MAX_BITS} bits", token.span)
            return super().parse_optional_type()
        match = _SHAPED.match(self._text, token.start)
        known = self._types.get(match[0]) if match is not None else None
        if match is not None and known is not None:
            self._resume_from(match.end())
            return known
        made = super().parse_optional_type()
        if made is not None and (fault := type_fault(made)) is not None:
            self.raise_error(fault, token.span)
        if made is not None and match is not None and self.pos >= match.end():
            self._types[match[0]] = made
        return made

    def parse_shape_dimension(self, allow_dynamic: bool = True) -> int:
        token = self._parser_state.current_token
        size = super().parse_shape_dimension(allow_dynamic)
        if size > _MAX_INDEX:
            self.raise_error("invalid memref or tensor dimension: it does not fit into 64 bits", token.span)
        return size

    def _parse_int_or_question(self, context_msg: str = "") -> int | Literal["?"]:
        token = self._parser_state.current_token
        number = super()._parse_int_or_question(context_msg)
        if isinstance(number, int) and not -_MAX_INDEX - 1 <= number <= _MAX_INDEX:
            self.raise_error("invalid stride or offset: it does not fit into 64 bits", token.span)
        return number

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        token = self._parser_state.current_token
        made = super().parse_optional_builtin_int_or_float_attr()
        if isinstance(made, IntegerAttr) and isinstance(made.type, IndexType) and not (
                -_MAX_INDEX - 1 <= made.value.data <= _MAX_INDEX):
            self.raise_error("integer constant out of range for attribute", token.span)
        return made

    def take_dictionary_alias(self) -> None:
        """Parses an alias of a dictionary attribute, if one follows.

        The next call of ``parse_optional_attr_dict`` then returns the entries of this dictionary.
        """
        token = self._parser_state.current_token
        if token.kind is MLIRTokenKind.HASH_IDENT:
            named = self.parse_attribute()
            if not isinstance(named, DictionaryAttr):
                self.raise_error("expected a dictionary of attributes", token.span)
            self._dictionary = dict(named.data)

    def parse_optional_attr_dict(self) -> dict[str, Attribute]:
        named, self._dictionary = self._dictionary, None
        read = super().parse_optional_attr_dict() if named is None else named
        self._dictionaries.update(read)
        return read

    def parse_affine_map(self) -> AffineMap:
        return _AffineParser(self._parser_state).parse_affine_map()

    def parse_affine_set(self) -> AffineSet:
        return _AffineParser(self._parser_state).parse_affine_set()

    def parse_affine_map_of_ssa_ids(self) -> tuple[AffineMap, Sequence[SSAValue[IndexType]]]:
        """Parses affine expressions of values, ``[%i, %j + 1]``; returns their affine map and the values.

        The values are dimensions of the map, as in MLIR; in xDSL they are symbols.
        """
        made, values = super().parse_affine_map_of_ssa_ids()
        count = made.num_symbols
        return made.replace_dims_and_symbols([], [AffineExpr.dimension(place) for place in range(count)], count, 0), values

    def _parse_dialect_type_or_attribute_body(self, attr_name: str, *how: Any) -> Any:
        position = self.pos
        try:
            return super()._parse_dialect_type_or_attribute_body(attr_name, *how)
        except VerifyException as error:  # MLIR rejects such an attribute when it parses it, not with its op
            self.raise_error(str(error), Span(position, position + 1, self._parser_state.lexer.input))

    def parse_operation(self) -> Operation:
        """Parses an op in the syntax of LLVM 19; an op without a location gets the line and column of its text.

        Raises:
            BrokenOp: xDSL rejects the op when it constructs it.
        """
        first = self._parser_state.current_token
        try:
            return self._parse_operation()
        except VerifyException as error:
            name = _OP_NAME.match(self._text, first.start)
            raise BrokenOp(name[1] if name is not None else first.text, first.start, error) from None

    def _parse_operation(self) -> Operation:
        state = self._parser_state
        first = state.current_token
        start = self._op_start = first.start
        bound = self._parse_op_result_list()
        token = state.current_token
        self._op_start = token.start
        outer, self._dictionaries = self._dictionaries, {}
        if token.kind is MLIRTokenKind.BARE_IDENT:
            self._consume_token()
            op_type = self._get_op_by_name(token.text)
            state.dialect_stack.append(op_type.dialect_name())
            upstream = format_of(op_type)
            if upstream is None and op_type.parse.__func__ is Operation.parse.__func__:  # type: ignore[attr-defined]  # a method
                self.raise_error(f'{token.text} has only the generic form: "{token.text}"(...)', token.span)
            # xDSL requires a class with a definition; the class of an unregistered op has none
            op: Operation = op_type.parse(self) if upstream is None else upstream.parse(self, op_type)  # type: ignore[type-var]
            if self._dictionaries:
                _add_missing(op, self._dictionaries)
            state.dialect_stack.pop()
            location = self.parse_optional_location()
            if location is not None:
                op.location = location
        else:
            op_type = self._get_op_by_name(self.expect(self.parse_optional_str_literal, "operation name expected"))
            state.dialect_stack.append(op_type.dialect_name())
            op = self._parse_generic_operation(op_type)
            if (counted := counted_segments(op_type, len(op.operands))) is not None:
                op.properties.setdefault(SEGMENTS, counted)
            if getattr(op_type, "BODY_FOLLOWS", False):
                for region in list(op.regions):
                    op.detach_region(region).drop_all_references()
            state.dialect_stack.pop()
        self._dictionaries = outer
        if isinstance(op.location, UnknownLoc):
            op.location = self._location(start)
        if bound:
            self._bind_results(op, bound, first)
        return op

    def _bind_results(self, op: Operation, bound: list[tuple[Span[str], int]], first: MLIRToken) -> None:
        count = sum(size for _, size in bound)
        if len(op.results) != count:
            self.raise_error(f"operation has {len(op.results)} results, but was given {count} to bind", first.span)
        place = 0
        for span, size in bound:
            self._register_ssa_definition(span.text[1:], op.results[place:place + size], span)
            place += size

    def parse_comma_separated_list(self, delimiter: Any, parse: Any, context_msg: str = "") -> Any:
        # In a list of types after an arrow, MLIR lets a single type be without parentheses.
        types = delimiter is self.Delimiter.PAREN and parse in (self.parse_type, self.parse_attribute)
        token = self._parser_state.current_token
        if types and token.text != "(":
            return [self.parse_type()]
        # Where xDSL expects no parentheses, there may be some.
        if (delimiter is self.Delimiter.NONE and token.text == "(" and parse in (self.parse_type, self.parse_attribute)
                and self._text.endswith("->", 0, token.start - 1 if self._text[token.start - 1] == " " else token.start)):
            listed = super().parse_comma_separated_list(self.Delimiter.PAREN, parse, context_msg)
            if self._parser_state.current_token.text != "->":
                return listed
            self._resume_from(token.start)  # the parentheses begin the type of a function
        return super().parse_comma_separated_list(delimiter, parse, context_msg)

    def _get_op_by_name(self, name: str) -> type[Operation]:
        op_type = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if op_type is None:
            quoted = self._text.startswith('"', self._op_start)
            self.raise_error(f"unknown op {name}", self._op_start, self._op_start + len(name) + 2 * quoted)
        return op_type

    def _location(self, position: int) -> LocationAttr:
        line, column = self.place(position)
        return FileLineColLoc(self._file, IntAttr(line), IntAttr(column))


def _add_missing(op: Operation, read: Mapping[str, Attribute]) -> None:
    """Gives an op the entries of its attribute dictionaries that it lacks: some of xDSL's hand-written parsers drop entries."""
    if isinstance(op, DialectOp) or not isinstance(op, IRDLOperation):
        return  # the parsers of these ops handle all entries
    properties = op.get_irdl_definition().properties
    for name, attribute in read.items():
        if name not in op.attributes and name not in op.properties and name != SEGMENTS:
            (op.properties if name in properties else op.attributes)[name] = attribute
