"""How much scratch an operation gets, in elements: figures worked out from the rules of AscendNPU-IR (docs/hivm.md#scratch)."""

from __future__ import annotations

import re

import pytest

from tilelang_npu.analysis.scratch_sizes import scratch_elements, scratch_type
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import parse_module

UB = "#hivm.address_space<ub>"


def scratch(op: str, **buffers: str) -> tuple[int, str]:
    """Elements and their type for one op; buffers are named like ``a`` and typed like ``8x16xf32``, scalars like ``f32``."""
    types = {name: f"memref<{kind}, {UB}>" if "x" in kind or kind[0].isdigit() else kind
             for name, kind in buffers.items()}
    arguments = ", ".join(f"%{name}: {kind}" for name, kind in types.items())
    text = re.sub(r"\$(\w+)", lambda found: types[found.group(1)], op)
    module = parse_module(f"func.func @k({arguments}) {{\n  {text}\n  return\n}}")
    made = next(inner for inner in module.walk() if isinstance(inner, hivm.StructuredOp))
    return scratch_elements(made), str(scratch_type(made))


def of(op: str, **buffers: str) -> int:
    return scratch(op, **buffers)[0]


ADD = "hivm.hir.vadd ins(%a, %b : $a, $b) outs(%d : $d)"


@pytest.mark.parametrize(("a", "b", "d", "axes", "elements"), [
    ("8x16xf32", "8x16xf32", "8x16xf32", "", 0),
    ("8x1xf32", "8x16xf32", "8x16xf32", "[1]", 8 * 8),  # a block of 8 for each of 8 rows
    ("5x1xf32", "5x16xf32", "5x16xf32", "[1]", 8 * 8),  # rows are counted in eights
    ("9x1xf16", "9x16xf16", "9x16xf16", "[1]", 16 * 16),
    ("1x16xf32", "8x16xf32", "8x16xf32", "[0]", 0),  # only the last axis needs it
    ("1xf32", "16xf32", "16xf32", "[0]", 8),
    ("1x1xf32", "1x16xf32", "1x16xf32", "[1]", 8),
    ("8x1xf32", "8x1xf32", "8x16xf32", "[1]", 2 * 8 * 8),  # for each source
])
def test_repeated_last_axis(a: str, b: str, d: str, axes: str, elements: int) -> None:
    assert of(ADD + (f" broadcast = {axes}" if axes else ""), a=a, b=b, d=d) == elements


@pytest.mark.parametrize(("op", "elements"), [("vsub", 8), ("vdiv", 8), ("vadd", 0), ("vmul", 0)])
def test_scalar_operands(op: str, elements: int) -> None:
    """Only differences and quotients expand their scalar."""
    assert of(f"hivm.hir.{op} ins(%a, %b : $a, $b) outs(%d : $d)", a="8x16xf32", b="f32", d="8x16xf32") == elements


@pytest.mark.parametrize(("a", "b", "kind", "elements"), [
    ("16xf16", "16xf16", "16xf16", 16), ("16xf32", "16xf32", "16xf32", 8), ("f32", "16xf32", "16xf32", 16),
    ("f32", "f32", "16xf32", 24)])
def test_select(a: str, b: str, kind: str, elements: int) -> None:
    """256 bits over the element's, and the same again for each scalar."""
    assert of("hivm.hir.vsel ins(%c, %a, %b : $c, $a, $b) outs(%d : $d)", c="16xi1", a=a, b=b, d=kind) == elements


def test_exclusive_or_needs_its_source() -> None:
    assert of("hivm.hir.vxor ins(%a, %b : $a, $b) outs(%d : $d)", a="4x32xi16", b="4x32xi16", d="4x32xi16") == 128


@pytest.mark.parametrize(("source", "target", "mode", "expected"), [
    ("64xi1", "64xf16", "rint", (48, "f16")),  # 96 bytes
    ("64xi1", "64xf32", "rint", (24, "f32")),
    ("64xi32", "64xi8", "truncwithoverflow", (128, "i32")),
    ("64xi16", "64xi8", "truncwithoverflow", (128, "i16")),
    ("64xf32", "64xf16", "rint", (0, "f32")),
])
def test_casts(source: str, target: str, mode: str, expected: tuple[int, str]) -> None:
    assert scratch(f"hivm.hir.vcast ins(%a : $a) outs(%d : $d) round_mode = <{mode}>", a=source, d=target) == expected


@pytest.mark.parametrize(("source", "target", "axes", "elements"), [
    ("f32", "8x16xf32", "[]", 0),
    ("1xf32", "64xf32", "[0]", 0),
    ("8x1xf32", "8x8xf32", "[1]", 0),  # whole blocks, one a row
    ("8x1xf32", "8x16xf32", "[1]", 64),  # ceil8(rows) blocks
    ("5x1xf32", "5x16xf32", "[1]", 64),
    ("5x1xf32", "5x13xf32", "[1]", 8 * 16),  # rows that are no whole blocks
    ("1x16xf32", "8x16xf32", "[0]", 0),
    ("1x13xf32", "8x13xf32", "[0]", 8 * 16),
    ("1x3x5xf16", "4x3x5xf16", "[0]", 4 * 16),
    ("2x1x5xf16", "2x3x5xf16", "[1]", 0),
])
def test_broadcasts(source: str, target: str, axes: str, elements: int) -> None:
    clause = "" if axes == "[]" else f" broadcast_dims = {axes}"
    assert of(f"hivm.hir.vbrc ins(%a : $a) outs(%d : $d){clause}", a=source, d=target) == elements


@pytest.mark.parametrize(("mode", "source", "target", "axis", "elements"), [
    ("sum", "8x4xf32", "8x1xf32", 1, 16),  # less than a block, an even number: half of all
    ("sum", "8x3xf32", "8x1xf32", 1, 0),
    ("sum", "8x8xf32", "8x1xf32", 1, 0),
    ("sum", "8x64xf32", "8x1xf32", 1, 0),  # one repeat
    ("sum", "8x65xf32", "8x1xf32", 1, 8 * 64),  # a repeat for each row
    ("max", "8x128xf32", "8x1xf32", 1, 8 * 64),
    ("min", "8x129xf32", "8x1xf32", 1, 8 * 129 // 2),
    ("max", "64xf32", "1xf32", 0, 0),
    ("max", "65xf32", "1xf32", 0, 64),
    ("sum", "8x64xi32", "8x1xi32", 1, 2 * 8 * 64),
    ("sum", "8x65xi32", "8x1xi32", 1, 8 * 64 + 8 * 8),
    ("sum", "8x64xf32", "1x64xf32", 0, 8 * 64),  # another axis than the last
    ("prod", "8x64xf32", "8x1xf32", 1, 2 * 8 * 64),  # as integers
    ("prod", "8x65xf32", "8x1xf32", 1, 8 * 64 + 8 * 8),
    ("xori", "8x65xi32", "8x1xi32", 1, 2 * 8 * 64 + 8 * 8),
    ("xori", "8x16xi16", "8x1xi16", 1, 3 * 8 * 16),
    ("sum", "4x5x16xf32", "4x1x16xf32", 1, 4 * 5 * 16),  # three steps fit the four planes: half of four rows in each
    ("sum", "2x9x6xf32", "2x1x6xf32", 1, 2 * 9 * 6),
    ("sum", "3x4x3xf16", "3x1x3xf16", 1, 2 * 3 * 16),  # rows in whole blocks are more than the source
])
def test_reductions(mode: str, source: str, target: str, axis: int, elements: int) -> None:
    op = f"hivm.hir.vreduce <{mode}> ins(%a : $a) outs(%d : $d) reduce_dims = [{axis}]"
    assert of(op, a=source, d=target) == elements


@pytest.mark.parametrize(("source", "target", "axis", "elements"), [
    ("8x64xf32", "8x1xf32", 1, 8), ("8x64xf16", "8x1xf16", 1, 16), ("8x64xf32", "1x64xf32", 0, 8 * 64 * 3 // 2),
    ("5x3xf32", "1x3xf32", 0, 24)])
def test_extremes_with_their_places(source: str, target: str, axis: int, elements: int) -> None:
    """One block along the last axis; otherwise indices, masks and a block, which is one and a half times the source."""
    places = target.rsplit("x", 1)[0] + "xi32"
    op = f"hivm.hir.vreduce <max_with_index_left> ins(%a : $a) outs(%d, %i : $d, $i) reduce_dims = [{axis}]"
    assert of(op, a=source, d=target, i=places) == elements


@pytest.mark.parametrize(("op", "buffers", "expected"), [
    ("hivm.hir.vgather ins(%a : $a) indices(%i : $i) outs(%d : $d)",
     {"a": "4x64xf16", "i": "4x16xi32", "d": "4x16xf16"}, (64, "i32")),
    ("hivm.hir.vcumsum ins(%a : $a) outs(%d : $d) cum_dims = [0] reverse = false",
     {"a": "6x20xf32", "d": "6x20xf32"}, (120, "f32")),
    ("hivm.hir.vinterleave ins(%a, %b : $a, $b) outs(%d : $d) interleave_channel_nums = 2",
     {"a": "20xf32", "b": "20xf32", "d": "40xf32"}, (24 * 8 + 40, "f32")),
    ("hivm.hir.vinterleave ins(%a, %b : $a, $b) outs(%d : $d) interleave_channel_nums = 2",
     {"a": "2x5xf16", "b": "2x5xf16", "d": "2x10xf16"}, (16 * 16 + 32, "f16")),
    ("hivm.hir.vtranspose ins(%a : $a) outs(%d : $d) permutation = [1, 0]", {"a": "8x4xi64", "d": "4x8xi64"}, (512, "i64")),
    ("hivm.hir.vtranspose ins(%a : $a) outs(%d : $d) permutation = [1, 0]", {"a": "8x4xf32", "d": "4x8xf32"}, (0, "f32")),
    ("hivm.hir.vtranspose ins(%a : $a) outs(%d : $d) permutation = [1, 0, 2]",
     {"a": "8x4x2xi64", "d": "4x8x2xi64"}, (0, "i64")),
])
def test_moves(op: str, buffers: dict[str, str], expected: tuple[int, str]) -> None:
    assert scratch(op, **buffers) == expected


def test_the_type_of_scratch() -> None:
    """A reduction's is that of its source, a gather's that of its indices; another operation's that of its destination."""
    reduce = "hivm.hir.vreduce <sum> ins(%a : $a) outs(%d : $d) reduce_dims = [1]"
    assert scratch(reduce, a="8x4xf16", d="8x1xf16")[1] == "f16"
    assert scratch("hivm.hir.vxor ins(%a, %b : $a, $b) outs(%d : $d)", a="32xi16", b="32xi16", d="32xi16")[1] == "i16"


def test_run_time_sizes_count_the_whole_buffer() -> None:
    """A view with a run-time size needs as much scratch as its whole buffer."""
    view, out = f"memref<8x?xf32, strided<[256, 1]>, {UB}>", f"memref<8x1xf32, {UB}>"
    module = parse_module(f"""func.func @k(%n: index, %d: {out}) {{
  %x = memref.alloc() : memref<8x256xf32, {UB}>
  %v = memref.subview %x[0, 0] [8, %n] [1, 1] : memref<8x256xf32, {UB}> to {view}
  hivm.hir.vreduce <sum> ins(%v : {view}) outs(%d : {out}) reduce_dims = [1]
  return
}}""")
    made = next(inner for inner in module.walk() if isinstance(inner, hivm.VReduceOp))
    assert scratch_elements(made) == 8 * 256 // 2
    assert scratch_elements(next(iter(module.walk()))) == 0
