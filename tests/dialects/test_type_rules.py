"""Types that MLIR has, and those that it refuses: elements, layouts and sizes, judged by MLIR through its Python bindings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.reports.mlir_bindings import new_context

ELEMENTS = ("i1", "si8", "ui16", "i64", "index", "f16", "bf16", "f64", "f8E4M3FN", "complex<f32>", "none", "tensor<2xf32>",
            "tensor<*xf32>", "memref<2xf32>", "memref<*xf32>", "vector<2xf32>", "tuple<i32>", "(i32) -> i32", "!llvm.ptr",
            "!llvm.ptr<3>", "!llvm.struct<(i32)>", "!llvm.array<2 x i8>", "!llvm.void", "i0", "tf32")
CONTAINERS = ("memref<2x{}>", "memref<*x{}>", "tensor<2x{}>", "tensor<*x{}>", "vector<2x{}>", "vector<[4]x{}>", "tuple<{}>",
              "memref<{}>", "tensor<{}>", "vector<{}>")
LAYOUTS = ("strided<[]>", "strided<[1]>", "strided<[3, 1]>", "strided<[3, 1, 1]>", "strided<[?, ?], offset: ?>",
           "strided<[0, 0]>", "affine_map<(i) -> (i)>", "affine_map<(i, j) -> (i)>", "affine_map<(i, j) -> (j, i)>",
           "affine_map<(i, j)[s] -> (i * s, j)>", "affine_map<(i, j, k) -> (i, j)>", "affine_map<() -> ()>", "1", '"a"',
           "strided<[3, 1]>, 3", "3, strided<[3, 1]>", "strided<[3, 1]>, strided<[1]>")
SHAPED = ("memref<2x3xf32, {}>", "memref<f32, {}>", "memref<?x3xf32, {}>", "memref<*xf32, {}>", "memref<4x2x3xf16, {}>",
          "tensor<2x3xf32, {}>")
SIZES = ("vector<0xf32>", "vector<[0]xf32>", "vector<2x0xf32>", "vector<?xf32>", "vector<*xf32>", "vector<2x[3]xf32>",
         "tensor<0xf32>", "memref<0x3xf32>", "tensor<[2]xf32>", "memref<[2]xf32>", "memref<2x128x80xf16, strided<[640, 1]>>")
TYPES = (*(container.format(element) for container in CONTAINERS for element in ELEMENTS),
         *(shaped.format(layout) for shaped in SHAPED for layout in LAYOUTS), *SIZES)


@pytest.fixture(scope="module")
def ir() -> Iterator[Any]:
    pytest.importorskip("iree.compiler.ir", reason="iree.compiler is not installed")
    found = import_module("iree.compiler.ir")
    with new_context("iree.compiler"):
        yield found


@pytest.mark.parametrize("type_", TYPES)
def test_there_is_such_a_type_where_mlir_has_it(ir: Any, type_: str) -> None:
    text = f"func.func @f(%a: {type_}) {{ return }}"
    try:
        ir.Module.parse(text)
    except ir.MLIRError:
        with pytest.raises(TileError) as caught:
            parse_module(text)
        assert caught.value.code == "T601"
        assert caught.value.location is not None and caught.value.location.line == 1
    else:
        parse_module(text)


@pytest.mark.parametrize(("text", "message"), [
    ("memref<2x128x80xf16, strided<[640, 1]>>", "expected the number of strides to match the rank: 3 != 2"),
    ("memref<2x3xf16, affine_map<(i) -> (i)>>", "memref layout mismatch between rank and affine map: 2 != 1"),
    ("memref<*xf16, strided<[1]>>", "cannot have affine map for unranked memref type"),
    ("memref<2xtensor<2xf32>>", "invalid memref element type: tensor<2xf32>"),
    ("tensor<2xmemref<2xf32>>", "invalid tensor element type: memref<2xf32>"),
    ("vector<2x0xf16>", "vector types must have positive constant sizes but got 2, 0"),
    ("vector<2xnone>", "vector elements must be int/index/float type but got none"),
])
def test_the_message_names_the_fault(text: str, message: str) -> None:
    for wrapped in (f"func.func @f(%a: {text}) {{ return }}", f"func.func @f(%a: tuple<i32, {text}>) {{ return }}",
                    f"!t = {text}\nfunc.func @f(%a: !t) {{ return }}"):
        with pytest.raises(TileError, match=re.escape(message)) as caught:
            parse_module(wrapped)
        assert caught.value.code == "T601"
