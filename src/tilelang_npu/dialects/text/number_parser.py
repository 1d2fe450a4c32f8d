"""A bit-exact parser of numbers and of tensors of numbers in MLIR text.

In MLIR a hexadecimal literal of float type gives the bits of the float: ``dense<0xFF800000> : tensor<2xf32>`` holds minus
infinity twice. xDSL reads such a literal as an integer value. xDSL also does not read packed bits of ``i1``, does not support
``sparse``, and keeps only the name of a ``dense_resource``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import inf, isfinite, prod
from typing import Any, NoReturn

from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

_BITS = 8
_ALL_BITS = 0xFF
_PAIR = 2
_MAX_SPARSE_ELEMENTS = 1 << 24
"""The largest accepted number of elements of a ``sparse`` attribute, which the parser expands to a ``dense`` attribute."""

_ZERO = Span(0, 3, Input("0x0", "<zero>"))
_Number = int | float


@dataclass(frozen=True)
class _Literal:
    """An element of a tensor in the text: a number, or the two parts of a complex number."""

    parts: tuple[tuple[_Number, Span[str]], ...]
    span: Span[str]


class NumberParser(Parser):
    """Base class of the text parser that parses numbers and tensors of numbers; see the module's docstring."""

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        truth = self.try_parse_builtin_boolean_attr()
        if truth is not None:
            return truth
        literal = self._parse_optional_bool_int_or_float()
        if literal is None:
            return None
        value, span = literal
        if self._current_token.kind != MLIRTokenKind.COLON:
            return FloatAttr(value, f64) if isinstance(value, float) else IntegerAttr(value, i64)
        type_ = self._parse_attribute_type()
        if isinstance(type_, AnyFloat):
            return FloatAttr(next(iter(type_.iter_unpack(self._float_bits(value, span, type_)))), type_)
        if not isinstance(type_, (IntegerType, IndexType)):
            self._refuse(f"{span.text} is a number, but {type_} is neither an integer type nor a float type", span)
        if isinstance(value, float):
            self._refuse(f"{span.text} is not an integer, as {type_} requires", span)
        return IntegerAttr(value, type_)

    def _parse_optional_builtin_parametrized_attr(self) -> Attribute | None:
        token = self._current_token
        if token.kind == MLIRTokenKind.BARE_IDENT and token.text == "sparse":
            self._consume_token()
            return self._parse_sparse(token.span)
        if token.kind == MLIRTokenKind.BARE_IDENT and token.text == "dense_resource":
            self._refuse("dense_resource is not supported, because its values are in a section after the module: write the "
                         "values as dense<...>", token.span)
        return super()._parse_optional_builtin_parametrized_attr()

    def _parse_tensor_literal_element(self) -> Any:
        scalar = self._parse_optional_bool_int_or_float()
        if scalar is not None:
            return _Literal((scalar,), scalar[1])
        first = self._current_token.span
        self.parse_punctuation("(", " or a number in a tensor")
        real = self._parse_bool_int_or_float()
        self.parse_punctuation(",", " between the parts of a complex number")
        imaginary = self._parse_bool_int_or_float()
        last = self._current_token.span
        self.parse_punctuation(")", " after a complex number")
        return _Literal((real, imaginary), Span(first.start, last.end, first.input))

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:  # noqa: A002  (xDSL's name)
        self.parse_punctuation("<", " in dense attribute")
        place = self._current_token.span
        words: str | None = None
        elements: list[_Literal] = []
        shape: list[int] = [0]
        if self._current_token.text != ">":
            words = self.parse_optional_str_literal()
            if words is None:
                elements, shape = self._parse_literals()
        self.parse_punctuation(">", " in dense attribute")
        if type is None:
            self.parse_punctuation(":", " in dense attribute")
            type = self._parse_dense_literal_type()  # noqa: A001  (a parameter of the xDSL method that this one overrides)
        sizes = list(type.get_shape())
        count = prod(sizes)
        if words is not None:
            return DenseIntOrFPElementsAttr(type, BytesAttr(self._raw(words, type.element_type, count, place)))
        if shape and shape != sizes and not (count == 0 and not elements):
            self._refuse(f"Shape mismatch in dense literal. Expected {sizes} shape from the type, but got {shape} shape.",
                         place)
        return self._tensor(type, elements, times=1 if shape else count)

    def _parse_builtin_densearray_attr(self) -> DenseArrayBase | None:
        place = self.pos
        self.parse_characters("<", " in dense array")
        type_ = self.parse_optional_type()
        if not isinstance(type_, AnyFloat):
            self._resume_from(place)
            return super()._parse_builtin_densearray_attr()
        raw: list[bytes] = []
        if self.parse_optional_punctuation(">") is None:
            self.parse_punctuation(":", " in dense array")
            literals = self.parse_comma_separated_list(self.Delimiter.NONE, self._parse_bool_int_or_float)
            raw = [self._float_bits(value, span, type_) for value, span in literals]
            self.parse_punctuation(">", " in dense array")
        return DenseArrayBase(type_, BytesAttr(b"".join(raw)))

    def _parse_literals(self) -> tuple[list[Any], list[int]]:
        """Parses a tensor literal; returns its ``_Literal`` elements, of which xDSL's types know nothing, and its shape."""
        return self._parse_tensor_literal()

    def _tensor(self, type_: Any, elements: list[_Literal], times: int = 1) -> DenseIntOrFPElementsAttr:
        """The tensor of a list of elements, repeated so many times."""
        element = type_.element_type
        known: dict[tuple[str, ...], Any] = {}  # large tensors repeat a few numbers
        values = []
        for literal in elements:
            key = tuple(span.text for _, span in literal.parts)
            if key not in known:
                known[key] = self._element(literal, element)
            values.append(known[key])
        if isinstance(element, AnyFloat) or (isinstance(element, ComplexType) and isinstance(element.element_type, AnyFloat)):
            return DenseIntOrFPElementsAttr(type_, BytesAttr(b"".join(values) * times))
        return DenseIntOrFPElementsAttr.from_list(type_, values)  # which repeats a single value

    def _element(self, literal: _Literal, element: Attribute) -> Any:
        """The bytes of a float; the number, or the pair of a complex number, of an integer type."""
        parts = 1 if not isinstance(element, ComplexType) else _PAIR
        if len(literal.parts) != parts:
            self._refuse(f"{literal.span.text} is {'not ' if parts == _PAIR else ''}a complex number, in a tensor of {element}",
                         literal.span)
        inner = element.element_type if isinstance(element, ComplexType) else element
        if isinstance(inner, AnyFloat):
            return b"".join(self._float_bits(value, span, inner) for value, span in literal.parts)
        numbers = tuple(self._integer(value, span, inner) for value, span in literal.parts)
        return numbers if parts == _PAIR else numbers[0]

    def _integer(self, value: _Number, span: Span[str], type_: Attribute) -> int:
        if isinstance(value, float):
            self._refuse(f"Expected integer value: {span.text} in a tensor of {type_}", span)
        if isinstance(value, bool) and type_ != i1:
            self._refuse(f"Boolean values are only allowed for i1 types, not {type_}", span)
        if isinstance(type_, IntegerType):
            low, high = type_.value_range()
            if not low <= value < high:
                self._refuse(f"Integer value {value} is out of range for type {type_} which supports values in the range "
                             f"[{low}, {high})", span)
        return int(value)

    def _float_bits(self, value: _Number, span: Span[str], type_: AnyFloat) -> bytes:
        """The bytes of a float, lowest first, from its text: a decimal with a point, or its bits in hexadecimal."""
        text, size = span.text, type_.compile_time_size
        if "0x" in text:
            if text.startswith("-"):
                self._refuse("a hexadecimal float gives the bits of the float and takes no minus sign: set the highest bit "
                             "instead", span)
            if int(value) >> (_BITS * size):
                self._refuse(f"{text} has more than the {_BITS * size} bits of {type_}", span)
            return int(value).to_bytes(size, "little")
        if not isinstance(value, float):
            hint = f": write {text}.0" if not isinstance(value, bool) else ""
            self._refuse(f"{text} is not a float, as {type_} requires{hint}", span)
        try:
            raw: bytes = type_.pack((value,))
            fits = isfinite(next(iter(type_.iter_unpack(raw))))
        except (OverflowError, struct.error):
            fits = False
        if not fits:
            self._refuse(f"{text} is too large for {type_}{_infinity(type_)}", span)
        return raw

    def _raw(self, text: str, element: FixedBitwidthType, count: int, place: Span[str]) -> bytes:
        """The bytes of all elements from a hexadecimal string that holds each element, or one element that is repeated."""
        try:
            raw = bytes.fromhex(text.removeprefix("0x"))
        except ValueError:
            raw = b""
        if not text.startswith("0x") or (not raw and count):
            self._refuse('Hex string in denseAttr is invalid: expected "0x" and two digits for each byte', place)
        if element == i1:
            if raw in (b"\x00", b"\xff"):
                return raw * count
            if len(raw) == -(-count // _BITS):  # xDSL has a byte for each element, whose bits are all equal
                return bytes(_ALL_BITS * (raw[number // _BITS] >> number % _BITS & 1) for number in range(count))
        else:
            size = element.compile_time_size
            if len(raw) == size:
                return raw * count
            if len(raw) == size * count:
                return raw
        return self._refuse(f"the string has {len(raw)} bytes, which are neither 1 element nor {count} elements of {element}",
                            place)

    def _parse_sparse(self, place: Span[str]) -> DenseIntOrFPElementsAttr:
        """Parses ``sparse<[[0, 1]], [5.0]> : tensor<2x2xf32>``; returns the dense tensor."""
        self.parse_punctuation("<", " in sparse attribute")
        indices: tuple[list[_Literal], list[int]] = [], [0]
        values: tuple[list[_Literal], list[int]] = [], [0]
        if self._current_token.text != ">":
            indices = self._parse_literals()
            self.parse_punctuation(",", " in sparse attribute")
            values = self._parse_literals()
        self.parse_punctuation(">", " in sparse attribute")
        self.parse_punctuation(":", " in sparse attribute")
        type_: Any = self._parse_dense_literal_type()
        sizes = list(type_.get_shape())
        count = prod(sizes)
        if count > _MAX_SPARSE_ELEMENTS:
            self._refuse(f"the sparse tensor has {count} elements; at most {_MAX_SPARSE_ELEMENTS} are supported, because it is "
                         "expanded to a dense tensor", place)
        places = self._places(indices, sizes, place)
        given, shape = values
        if shape and shape != [len(places)]:
            self._refuse(f"sparse has {len(places)} indices, but values of shape {shape}", place)
        zero = _Literal(((0, _ZERO),) * (_PAIR if isinstance(type_.element_type, ComplexType) else 1), place)
        elements = [zero] * count
        for number, at in enumerate(places):
            elements[at] = given[number] if shape else given[0]
        return self._tensor(type_, elements)

    def _places(self, indices: tuple[list[_Literal], list[int]], sizes: list[int], place: Span[str]) -> list[int]:
        """The positions of the values of a sparse tensor, counted from its first element in row-major order."""
        elements, shape = indices
        if not elements:
            return []
        numbers = [self._integer(literal.parts[0][0], literal.span, i64) for literal in elements]
        rank = len(sizes)
        if not shape:
            numbers = numbers * rank
        elif shape[1:] != [rank] and not (len(shape) == 1 == rank):
            self._refuse(f"sparse has indices of shape {shape}, for a tensor of {rank} axes", place)
        places = []
        for row in range(0, len(numbers), rank):
            at = 0
            for number, size in zip(numbers[row:row + rank], sizes, strict=True):
                if not 0 <= number < size:
                    self._refuse(f"sparse has a value at {numbers[row:row + rank]}, outside of {sizes}", place)
                at = at * size + number
            places.append(at)
        return places

    def _refuse(self, message: str, place: Span[str]) -> NoReturn:
        self.raise_error(message, place.start, place.end)


def _infinity(type_: AnyFloat) -> str:
    """The end of a message that says how to write infinity in a type; empty if the type has no infinity."""
    try:
        raw: bytes = type_.pack((inf,))
    except (OverflowError, struct.error):
        return ""
    if next(iter(type_.iter_unpack(raw))) != inf:
        return ""
    return f": infinity is 0x{raw[::-1].hex().upper()}"
