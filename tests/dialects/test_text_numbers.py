"""Numbers in MLIR text, to the bit: in hexadecimal, in strings, sparse, and those that no type holds."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from math import inf
from types import FrameType

import pytest
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, FloatAttr

from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError

TRUE = 0xFF
"""How xDSL holds a true element of i1: as -1."""


def _module(text: str) -> str:
    return f"module attributes {{a = {text}}} {{\n}}\n"


def _bytes(text: str) -> bytes:
    """Returns the bytes of an attribute, little-endian, and checks that they survive printing and parsing, and that the text is
    a fixed
point."""
    module = parse_module(_module(text))
    value = module.attributes["a"]
    printed = print_module(module)
    assert parse_module(printed).attributes["a"] == value
    assert print_module(parse_module(printed)) == printed
    assert isinstance(value, (DenseIntOrFPElementsAttr, DenseArrayBase))
    return value.data.data


def _halves(bits: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(bits)}H", *bits)


@pytest.mark.parametrize(("text", "raw"), [
    ("dense<0xFF800000> : tensor<2xf32>", struct.pack("<2f", -inf, -inf)),
    ("dense<0x7F800000> : vector<2xf32>", struct.pack("<2f", inf, inf)),
    ("dense<[0x7E00, 0x7C00]> : tensor<2xf16>", _halves([0x7E00, 0x7C00])),
    ("dense<[[0x3C00], [2.0]]> : tensor<2x1xf16>", _halves([0x3C00, 0x4000])),
    ("dense<[0xFF80, 1.0]> : tensor<2xbf16>", _halves([0xFF80, 0x3F80])),
    ("dense<0x7FF0000000000000> : tensor<1xf64>", struct.pack("<d", inf)),
    ("dense<0x7F> : tensor<2xf8E4M3FN>", b"\x7f\x7f"),
    ("dense<0x7C> : tensor<2xf8E5M2>", b"\x7c\x7c"),
    ("dense<(0x7F800000, 2.0)> : tensor<1xcomplex<f32>>", struct.pack("<2f", inf, 2.0)),
    ("dense<(3, -4)> : tensor<1xcomplex<i32>>", struct.pack("<2i", 3, -4)),
    ('dense<"0x0000803F000080FF"> : tensor<2xf32>', struct.pack("<2f", 1.0, -inf)),
    ('dense<"0x0000803F"> : tensor<3xf32>', struct.pack("<3f", 1.0, 1.0, 1.0)),
    ('dense<"0x01000200"> : tensor<2xi16>', struct.pack("<2h", 1, 2)),
    ('dense<"0x05"> : tensor<4xi1>', bytes([TRUE, 0, TRUE, 0])),
    ('dense<"0x0102"> : tensor<10xi1>', bytes([TRUE, 0, 0, 0, 0, 0, 0, 0, 0, TRUE])),
    ('dense<"0xFF"> : tensor<16xi1>', bytes([TRUE] * 16)),
    ("dense<0xFF> : tensor<1xi8>", b"\xff"),
    ("dense<-0x10> : tensor<1xi32>", struct.pack("<i", -16)),
    ("sparse<[[0, 1]], [0xFF800000]> : tensor<2x2xf32>", struct.pack("<4f", 0.0, -inf, 0.0, 0.0)),
    ("sparse<[[0, 0], [1, 2]], [1, 5]> : tensor<2x3xi32>", struct.pack("<6i", 1, 0, 0, 0, 0, 5)),
    ("sparse<[[0], [2]], 7> : tensor<3xi16>", struct.pack("<3h", 7, 0, 7)),
    ("sparse<[1, 2], [3.0, 4.0]> : tensor<3xf32>", struct.pack("<3f", 0.0, 3.0, 4.0)),
    ("sparse<> : tensor<2xf16>", bytes(4)),
    ("array<f32: 0x7F800000, 1.5>", struct.pack("<2f", inf, 1.5)),
])
def test_tensors_hold_the_bits_that_are_written(text: str, raw: bytes) -> None:
    assert _bytes(text) == raw


@pytest.mark.parametrize(("text", "value"), [("0xFF800000 : f32", -inf), ("0x3C00 : f16", 1.0), ("0x7C : f8E5M2", inf)])
def test_a_float_in_hexadecimal(text: str, value: float) -> None:
    held = parse_module(_module(text)).attributes["a"]
    assert isinstance(held, FloatAttr)
    assert held.value.data == value


@pytest.mark.parametrize(("text", "at", "message"), [
    ("dense<-0x7F800000> : tensor<2xf32>", "-0x7F800000",
     "a hexadecimal float gives the bits of the float and takes no minus sign"),
    ("-0x7C00 : f16", "-0x7C00", "a hexadecimal float gives the bits of the float and takes no minus sign"),
    ("dense<[1.0, 0x1FF800000]> : tensor<2xf32>", "0x1FF800000", "0x1FF800000 has more than the 32 bits of f32"),
    ("0x1FFFF : f16", "0x1FFFF", "0x1FFFF has more than the 16 bits of f16"),
    ("dense<5> : tensor<2xf32>", "5", "5 is not a float, as f32 requires: write 5.0"),
    ("dense<1.0e6> : tensor<2xf16>", "1.0e6", "1.0e6 is too large for f16: infinity is 0x7C00"),
    ("dense<1.0e60> : tensor<2xbf16>", "1.0e60", "1.0e60 is too large for bf16: infinity is 0x7F80"),
    ("1.0e60 : f32", "1.0e60", "1.0e60 is too large for f32: infinity is 0x7F800000"),
    ("dense<500.0> : tensor<2xf8E4M3FN>", "500.0", "500.0 is too large for f8E4M3FN"),
    ("dense<300> : tensor<2xi8>", "300", "Integer value 300 is out of range for type i8"),
    ("dense<1.0> : tensor<2xi32>", "1.0", "Expected integer value: 1.0 in a tensor of i32"),
    ("dense<(1.0, 2.0)> : tensor<2xf32>", "(1.0, 2.0)", "(1.0, 2.0) is a complex number, in a tensor of f32"),
    ("dense<1.0> : tensor<2xcomplex<f32>>", "1.0", "1.0 is not a complex number"),
    ('dense<"FF"> : tensor<1xi8>', '"FF"', "Hex string in denseAttr is invalid"),
    ('dense<"0x0102"> : tensor<3xi8>', '"0x0102"', "the string has 2 bytes, which are neither 1 element nor 3 elements of i8"),
    ("sparse<[[0, 2]], [1.0]> : tensor<2x2xf32>", "sparse", "sparse has a value at [0, 2], outside of [2, 2]"),
    ("sparse<[[0, 1]], [1.0, 2.0]> : tensor<2x2xf32>", "sparse", "sparse has 1 indices, but values of shape [2]"),
    ("sparse<[[0]], [1.0]> : tensor<2x2xf32>", "sparse", "sparse has indices of shape [1, 1], for a tensor of 2 axes"),
    ("sparse<> : tensor<9999x9999xf32>", "sparse", "the sparse tensor has 99980001 elements"),
    ("dense_resource<blob> : tensor<2xf32>", "dense_resource",
     "dense_resource is not supported, because its values are in a section"),
])
def test_a_number_out_of_range_is_refused_at_its_position(text: str, at: str, message: str) -> None:
    with pytest.raises(TileError) as caught:
        parse_module(_module(text))
    assert caught.value.code == "T601"
    assert caught.value.message.startswith(message)
    place = caught.value.location
    assert place is not None
    assert place.line == 1
    assert _module(text)[place.column - 1:].startswith(at)


@pytest.mark.parametrize(("number", "kind", "raw"), [
    ("0.5", "f32", struct.pack("<f", 0.5)), ("3", "i32", struct.pack("<i", 3))])
def test_the_one_number_of_a_large_tensor_is_looked_at_once(number: str, kind: str, raw: bytes) -> None:
    count = 1 << 20
    distinct = parse_module(_module(f"dense<{number}> : tensor<{count}x{kind}>")).attributes["a"]
    assert isinstance(distinct, DenseIntOrFPElementsAttr)
    assert distinct.data.data == raw * count
    tracing: list[str] = []

    def count_calls(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            tracing.append(frame.f_code.co_name)

    sys.setprofile(count_calls)
    try:
        parse_module(_module(f"dense<{number}> : tensor<{count}x{kind}>"))
    finally:
        sys.setprofile(None)
    assert len(tracing) < count // 10
