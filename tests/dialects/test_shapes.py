"""Invalid views, reshapes and paddings, with MLIR's messages; valid ones are in ``modules/shapes.mlir``."""

from __future__ import annotations

import pytest

from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError


def _refused(line: str) -> str:
    text = (
        "func.func @f(%m: memref<16xf16>, %w: memref<16xf16, #hivm.address_space<ub>>, %s: memref<64xi8, strided<[2]>>,\n"
        " %o: memref<64xi8, strided<[1], offset: 4>>, %q: memref<8x8xi8>, %b: memref<64xi8>, %t: tensor<f32>,\n"
        f" %p: tensor<5x6xf32>, %d: tensor<?xf32>, %n: index, %x: f32, %h: f16) {{\n  {line}\n  return\n}}")
    with pytest.raises(TileError) as caught:
        parse_module(text, "shapes.mlir")
    assert caught.value.code == "T602"
    assert caught.value.location is not None
    assert caught.value.location.line == 4
    return caught.value.message.split("' op ", 1)[1]


@pytest.mark.parametrize("cast", [
    "offset: [%n], sizes: [%n, 1], strides: [%n, 1] : memref<f32> to memref<256x1xf32, strided<[8, 1]>>",
    "offset: [0], sizes: [16], strides: [1] : memref<f32> to memref<?xf32>",
])
def test_one_of_type_and_operands_may_leave_a_size_open(cast: str) -> None:
    """LLVM 19 takes it; newer ones want both to say the same."""
    line = f"memref.reinterpret_cast %a to {cast}"
    module = parse_module(f"func.func @f(%a: memref<f32>, %n: index) {{\n  %0 = {line}\n  return\n}}")
    text = print_module(module)
    assert line in text
    assert print_module(parse_module(text)) == text
    assert print_module(parse_module(print_module(module, generic=True))) == text


CAST = "%0 = memref.reinterpret_cast %m to offset: [0], sizes: [8], strides: [1] : memref<16xf16> to "


@pytest.mark.parametrize(("result", "message"), [
    ("memref<7xf16>", "expected result type with size = 8 instead of 7 in dim = 0"),
    ("memref<8xf16, strided<[2]>>", "expected result type with stride = 1 instead of 2 in dim = 0"),
    ("memref<8xf16, strided<[1], offset: 4>>", "expected result type with offset = 0 instead of 4"),
    ("memref<8xf32>", "different element types specified for source type 'memref<16xf16>' and result memref type"),
    ("memref<8xf16, 3>", "different memory spaces specified for source type 'memref<16xf16>' and result memref type"),
    ("memref<2x4xf16>", "expected 2 size values but got 1"),
    ("memref<8xf16, affine_map<(d0) -> (d0 mod 4)>>", "expected result type to have strided layout but found"),
])
def test_reinterpret_cast(result: str, message: str) -> None:
    assert _refused(CAST + result).startswith(message)


def test_reinterpret_cast_counts_its_operands() -> None:
    assert _refused(
        '%0 = "memref.reinterpret_cast"(%m) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0>, '
        "static_sizes = array<i64: -9223372036854775808>, static_strides = array<i64: 1>}> : (memref<16xf16>) -> memref<?xf16>",
    ) == "expected 1 dynamic size values but got 0"


@pytest.mark.parametrize(("view", "message"), [
    ("%s[%n][] : memref<64xi8, strided<[2]>> to memref<4xf32>", "unsupported map for base memref type"),
    ("%o[%n][] : memref<64xi8, strided<[1], offset: 4>> to memref<4xf32>", "unsupported map for base memref type"),
    ("%b[%n][] : memref<64xi8> to memref<4xf32, strided<[2]>>", "unsupported map for result memref type"),
    ("%b[%n][%n] : memref<64xi8> to memref<?xf32, strided<[?]>>", "unsupported map for result memref type"),
    ("%q[%n][] : memref<8x8xi8> to memref<4xf32>", "operand #0 must be 1D memref of 8-bit signless integer values"),
    ("%b[%n][] : memref<64xi8> to memref<4xf32, 2>", "different memory spaces specified for base memref type"),
    ("%b[%n][%n] : memref<64xi8> to memref<4xf32>", "incorrect number of size operands for type 'memref<4xf32>'"),
])
def test_view(view: str, message: str) -> None:
    assert _refused(f"%0 = memref.view {view}").startswith(message)


@pytest.mark.parametrize(("line", "message"), [
    ("expand_shape %t [] output_shape [2] : tensor<f32> into tensor<2xf32>",
     "invalid to reshape tensor/memref with non-unit extent dimensions to zero-rank tensor/memref"),
    ("expand_shape %t [[0]] output_shape [1] : tensor<f32> into tensor<1xf32>",
     "expected collapsed rank (0) to equal the number of reassociation maps (1)."),
    ("expand_shape %t [] output_shape [1] : tensor<f32> into tensor<1x1xf32>",
     "expected number of static shape dims to be equal to the output rank (2) but found 1 inputs instead"),
    ("expand_shape %d [[0, 1]] output_shape [2, 3] : tensor<?xf32> into tensor<2x3xf32>",
     "expected dimension 0 of collapsed type to be static value of 6"),
    ("collapse_shape %p [] : tensor<5x6xf32> into tensor<f32>", "invalid to reshape tensor/memref with non-unit extent"),
    ("collapse_shape %p [[0, 1]] : tensor<5x6xf32> into tensor<31xf32>",
     "expected dimension 0 of collapsed type to be static value of 30"),
])
def test_reshapes(line: str, message: str) -> None:
    assert _refused(f"%0 = tensor.{line}").startswith(message)


def test_expand_shape_counts_its_operands() -> None:
    assert _refused('%0 = "tensor.expand_shape"(%t, %n) <{reassociation = [], static_output_shape = array<i64: 1>}> : '
                    "(tensor<f32>, index) -> tensor<1xf32>").startswith("mismatch in dynamic dims in output_shape")


TWO = "%i: index, %j: index): tensor.yield %x : f32"


@pytest.mark.parametrize(("low", "high", "block", "result", "message"), [
    ("1, 0", "0, 0", TWO, "5x6xf32", "specified type 'tensor<5x6xf32>' does not match the inferred type 'tensor<6x6xf32>'"),
    ("1, 0", "0, 0", TWO, "?x6xf32", "specified type 'tensor<?x6xf32>' does not match the inferred type 'tensor<6x6xf32>'"),
    ("1, 0", "0, 0", TWO, "6xf32", "specified type 'tensor<6xf32>' does not match the inferred type 'tensor<6x6xf32>'"),
    ("1", "0", TWO, "6x6xf32", "expected 2 pad sizes, one for each axis of 'tensor<5x6xf32>', but got 1"),
    ("1, 0", "0, 0", "%i: index): tensor.yield %x : f32", "6x6xf32", "expected the block to have 2 arguments"),
    ("1, 0", "0, 0", TWO.replace("%j: index", "%j: i8"), "6x6xf32", "expected block argument 2 to be an index"),
    ("1, 0", "0, 0", TWO.replace("%x : f32", "%h : f16"), "6x6xf32", "expected yield type to match shape element type"),
])
def test_pad(low: str, high: str, block: str, result: str, message: str) -> None:
    pad = f"tensor.pad %p low[{low}] high[{high}] {{ ^bb0({block} }} : tensor<5x6xf32> to tensor<{result}>"
    assert _refused(f"%0 = {pad}") == message
