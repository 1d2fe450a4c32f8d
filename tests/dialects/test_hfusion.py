"""Invalid HFusion ops, and the attributes of AscendNPU-IR's generic form that the custom form omits."""

from __future__ import annotations

import pytest

from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError

ARGUMENTS = ("%t: tensor<8xi32>, %mask: tensor<8xi1>, %wide: tensor<8xi32>, %x: tensor<f32>, %y: f32, %z: tensor<4x8xf32>, "
             "%a: memref<4x8xf8E5M2>, %b: memref<8x16xf8E5M2>, %s: memref<1xui8>, %c: memref<4x16xf8E5M2>, "
             "%d: memref<4x17xf8E5M2>, %m: memref<6x7xi32>, %i: memref<6xi32>, %base: memref<?xf32>, %at: tensor<4x8xi32>, "
             "%n: i64, %w: index")
LOAD = "ins(%base : memref<?xf32>, %at : tensor<4x8xi32>, %n : i64) outs(%z : tensor<4x8xf32>)"
INDEXED = "%i, %i : memref<6xi32>, memref<6xi32>"
A, B, SCALES = "memref<4x8xf8E5M2>", "memref<8x16xf8E5M2>", "memref<1xui8>, memref<1xui8>"


def _text(line: str) -> str:
    return f"func.func @f({ARGUMENTS}) {{\n  {line}\n  return\n}}"


@pytest.mark.parametrize(("line", "message"), [
    ("%0 = hfusion.histogram %t, 6, %mask : tensor<8xi32>, tensor<8xi1> -> tensor<4xi32>",
     "output length (4) must equal num_bins (6)"),
    ("%0 = hfusion.histogram %t, 6 : tensor<8xi32> -> tensor<2x3xi32>", "output must be rank-1"),
    ("%0 = hfusion.histogram %t, 4, %wide : tensor<8xi32>, tensor<8xi32> -> tensor<4xi32>",
     "operand #1 must be ranked tensor of 1-bit signless integer or 8-bit signless integer or 16-bit signless integer values,"
     " but got 'tensor<8xi32>'"),
    ("%0 = hfusion.deinterleave %x channel<0> : tensor<f32> -> tensor<f32>", "requires input rank to be at least 1"),
    (f"%0 = hfusion.matmul_mx ins(%b, %b, %s, %s : {B}, {B}, {SCALES}) outs(%c : memref<4x16xf8E5M2>) -> memref<4x16xf8E5M2>",
     "requires inner dimension of matmul matrix to match"),
    (f"%0 = hfusion.matmul_mx ins(%a, %b, %s, %s : {A}, {B}, {SCALES}) outs(%d : memref<4x17xf8E5M2>) -> memref<4x17xf8E5M2>",
     "requires output shape to match with input shapes"),
    (f"hfusion.reduce_with_index <max> ins(%m : memref<6x7xi32>) outs({INDEXED}) dimensions = [2]",
     "dimensions for reduction should be in the range [0, 1]"),
    (f"hfusion.reduce_with_index <max> ins(%m : memref<6x7xi32>) outs({INDEXED}) dimensions = [1, 0]",
     "dense array attribute should be in increasing order"),
    (f"%0 = hfusion.gather_load {LOAD} {{cache = #hivm.cache_modifier<ca>}} -> tensor<4x8xf32>",
     "#hivm.cache_modifier<ca> should be of base attribute hfusion.cache_modifier"),
])
def test_refused(line: str, message: str) -> None:
    with pytest.raises(TileError) as caught:
        parse_module(_text(line))
    assert caught.value.code == "T602"
    assert caught.value.message.split("' op ", 1)[1].startswith(message)


@pytest.mark.parametrize("line", [
    "%0 = hfusion.histogram %t, 4, %mask : tensor<8xi32>, tensor<8xi1> -> tensor<4xi32>",
    "%0 = hfusion.histogram %t, 4 : tensor<8xi32> -> tensor<?xi32>",
    f"%0 = hfusion.matmul_mx ins(%a, %b, %s, %s : {A}, {B}, {SCALES}) outs(%c : memref<4x16xf8E5M2>) -> memref<4x16xf8E5M2>",
    f"%0 = hfusion.gather_load {LOAD} {{cache = #hfusion.cache_modifier<ca>, evict = #hfusion.eviction_policy<EvictFirst>}}"
    " -> tensor<4x8xf32>",
    "%0 = hfusion.conv2d {dilation = [1 : i32, 2 : i32], groups = 1 : i32, padding = 0 : i32} ins(%z, %z : tensor<4x8xf32>, "
    "tensor<4x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>",
])
def test_comes_back(line: str) -> None:
    module = parse_module(_text(line))
    text = print_module(module)
    assert line in text
    assert print_module(parse_module(text)) == text
    assert print_module(parse_module(print_module(module, generic=True))) == text


def test_signbit_is_printed_in_the_form_that_mlir_reads() -> None:
    """AscendNPU-IR gives it no custom form."""
    line = '%0 = "hfusion.signbit"(%z) : (tensor<4x8xf32>) -> tensor<4x8xi1>'
    text = print_module(parse_module(_text(line)))
    assert line in text
    assert print_module(parse_module(text)) == text
    with pytest.raises(TileError) as caught:
        parse_module(_text("%0 = hfusion.signbit %z : tensor<4x8xf32> -> tensor<4x8xi1>"))
    assert caught.value.code == "T601"


@pytest.mark.parametrize(("line", "generic"), [
    ("%0 = hfusion.gather ins(%z, %at : tensor<4x8xf32>, tensor<4x8xi32>) outs(%z : tensor<4x8xf32>) axis = 1"
     " -> tensor<4x8xf32>",
     '%0 = "hfusion.gather"(%z, %at, %z) <{axis = 1 : i64}> : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xf32>)'
     " -> tensor<4x8xf32>"),
    ("%0 = hfusion.deinterleave %z channel<1> : tensor<4x8xf32> -> tensor<4x4xf32>",
     '%0 = "hfusion.deinterleave"(%z) <{channelIndex = 1 : i64}> : (tensor<4x8xf32>) -> tensor<4x4xf32>'),
    ("%0 = hfusion.cummax %z {propagate_nan = false} : tensor<4x8xf32> cum_dims = [0] reverse = false -> tensor<4x8xf32>",
     '%0 = "hfusion.cummax"(%z) <{cum_dims = array<i64: 0>, propagate_nan = false, reverse = false}> :'
     " (tensor<4x8xf32>) -> tensor<4x8xf32>"),
    ("%0 = hfusion.sort {note} ins(%z : tensor<4x8xf32>) descending = true sort_axis = 1 -> tensor<4x8xf32>",
     '%0 = "hfusion.sort"(%z) <{descending = true, sort_axis = 1 : i64}> {note} : (tensor<4x8xf32>) -> tensor<4x8xf32>'),
    ("%0 = hfusion.arange strides[%w, %w] {note} outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>",
     '%0 = "hfusion.arange"(%w, %w, %z) <{operandSegmentSizes = array<i32: 0, 2, 1>}> {note} : (index, index,'
     " tensor<4x8xf32>) -> tensor<4x8xf32>"),
])
def test_both_forms_are_those_of_the_toolchain(line: str, generic: str) -> None:
    for text in (line, generic):
        module = parse_module(_text(text))
        assert line in print_module(module)
        assert generic in print_module(module, generic=True)


def test_groups_that_the_toolchain_counts_are_not_stated_otherwise() -> None:
    line = "ins(%z, %at : tensor<4x8xf32>, tensor<4x8xi32>) outs(%z : tensor<4x8xf32>) axis = 1 -> tensor<4x8xf32>"
    stated = parse_module(_text(f"%0 = hfusion.gather {{operandSegmentSizes = array<i32: 2, 1>}} {line}"))
    assert f"hfusion.gather {line}" in print_module(stated)
    with pytest.raises(TileError, match="the operands as written make operandSegmentSizes array<i32: 2, 1>"):
        parse_module(_text(f"%0 = hfusion.gather {{operandSegmentSizes = array<i32: 1, 2>}} {line}"))


def test_the_body_that_follows_from_the_name() -> None:
    """MLIR's generic form has it; neither of ours does."""
    module = parse_module(_text(
        '%0 = "hfusion.elemwise_binary"(%z, %y, %z) <{fun = #hfusion.binary_fn<powf>, '
        "operandSegmentSizes = array<i32: 2, 1>}> ({\n"
        "  ^bb0(%p: f32, %q: f32, %r: f32):\n    %1 = math.powf %p, %q : f32\n    linalg.yield %1 : f32\n"
        "  }) : (tensor<4x8xf32>, f32, tensor<4x8xf32>) -> tensor<4x8xf32>"))
    line = ("%0 = hfusion.elemwise_binary {fun = #hfusion.binary_fn<powf>} ins(%z, %y : tensor<4x8xf32>, f32) "
            "outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>")
    assert line in print_module(module)
    assert "math.powf" not in print_module(module, generic=True)
    assert print_module(parse_module(print_module(module))) == print_module(module)
