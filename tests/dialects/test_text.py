"""Parsing and printing: errors and their positions, locations, names, short spellings, the older toolchain."""

from __future__ import annotations

import random
import re
from contextlib import suppress

import pytest
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp

from dialects.helpers import Kernel, type_of
from dialects.test_round_trip import CASES
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.text import location_of, parse_module, print_module, verify_module
from tilelang_npu.errors import TileError

UB = "#hivm.address_space<ub>"
TRANSFER = f"""\
module {{
  func.func @copy(%x: memref<8xf32, #hivm.address_space<gm>>, %y: memref<8xf32, {UB}>) {{
    hivm.hir.load ins(%x : memref<8xf32, #hivm.address_space<gm>>) outs(%y : memref<8xf32, {UB}>)
    return
  }}
}}
"""


def _refused(text: str) -> TileError:
    with pytest.raises(TileError) as caught:
        parse_module(text, "k.mlir")
    assert caught.value.location is not None
    assert caught.value.location.file == "k.mlir"
    return caught.value


# -- errors, and their positions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "code", "line", "column", "message"), [
    ("module {\n  hivm.hir.vfoo\n}", "T601", 2, 3, "hivm.hir.vfoo"),
    ("module {\n  hivm.hir.pipe_barrier[<PIPE_X>]\n}", "T601", 2, 26, "expected #hivm.pipe to be one of: PIPE_S, "),
    ("module {\n  hivm.hir.pipe_barrier <PIPE_V>]\n}", "T601", 2, 25, "Expected '['"),
    ("module {\n  hivm.hir.set_flag[<PIPE_V>, <PIPE_S>, <EVENT_ID0>\n}", "T601", 3, 1, "Expected ']'"),
    ("module {", "T601", 1, 9, ""),
    ("module {\n  func.func @f() {\n    %0 = arith.constant 1 : i99999999999\n    return\n  }\n}", "T601", 3, 29,
     "integer bitwidth is limited to 16777215 bits"),
    ("module {\n  func.func @f() {\n    %0 = arith.constant 9223372036854775808 : index\n    return\n  }\n}", "T601", 3, 25,
     "integer constant out of range for attribute"),
    ("module {\n  func.func @f(%a: memref<9223372036854775808xf32>) {\n    return\n  }\n}", "T601", 2, 27,
     "invalid memref or tensor dimension: it does not fit into 64 bits"),
    ("module {\n  func.func @f(%a: memref<4xf32, strided<[9223372036854775808]>>) {\n    return\n  }\n}", "T601", 2, 43,
     "invalid stride or offset: it does not fit into 64 bits"),
    ('module {\n  "abc\n}', "T601", 2, 3, "End of file reached before closing string literal."),
    ("module {\n  func.func @f() {\n    annotation.mark %q : i32\n    return\n  }\n}", "T601", 3, 21,
     "values used but not defined: [%q]"),
    ("func.func @f(%a: i64) {\n  hivm.hir.set_ffts_base_addr %a : i64\n  return\n}", "T601", 2, 34, ""),
    ("module {\n  func.func @f(%a: i32) {\n      hivm.hir.set_ffts_base_addr %a\n    return\n  }\n}", "T601", 3, 35, ""),
    ('func.func @f() {\n  "hivm.hir.set_flag"() <{set_pipe = #hivm.pipe<PIPE_V>}> : () -> ()\n  return\n}', "T602", 2, 3,
     "wait_pipe"),
    ("func.func @f(%a: tensor<4xf32>) {\n  %0 = hivm.hir.vexp ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>)"
     " -> tensor<4xf16>\n  return\n}", "T602", 2, 3, "expected type of operand #1"),
    ("func.func @f() {\n  tile.parallel [9223372036854775808] {\n  ^bb0(%i: index):\n  }\n  return\n}", "T602", 2, 3,
     "The number of dynamic positions passed as values (0) does not match"),
    ("func.func @f() {\n  %0 = arith.constant 1 : i32\n}", "T602", 2, 3, "block with no terminator"),
    ("func.func @f() {\n  annotation.mark %0 : i1\n  %0 = arith.constant true\n  return\n}", "T602", 2, 3,
     "operand #0 does not dominate this use"),
])
def test_where_the_text_is_wrong(text: str, code: str, line: int, column: int, message: str) -> None:
    error = _refused(text)
    assert error.code == code
    assert message in error.message
    assert error.location is not None
    assert (error.location.line, error.location.column) == (line, column)


def test_the_message_shows_the_line_of_text() -> None:
    with pytest.raises(TileError) as caught:
        parse_module("module {\n  hivm.hir.pipe_barrier[<PIPE_X>]\n}")
    assert "--> <string>:2:26" in str(caught.value)
    assert "2 |   hivm.hir.pipe_barrier[<PIPE_X>]" in str(caught.value)


def test_a_stated_location_is_where_a_broken_rule_is_reported() -> None:
    with pytest.raises(TileError) as caught:
        parse_module('func.func @f() {\n  hivm.hir.sync_block[<ALL_CUBE>] loc("kernel.py":17:5)\n  return\n}')
    assert caught.value.code == "T602"
    assert str(caught.value.location) == "kernel.py:17:5"


def test_modules_can_be_read_without_the_rules() -> None:
    text = "func.func @f() {\n  hivm.hir.sync_block[<ALL_CUBE>]\n  return\n}"
    module = parse_module(text, verify=False)
    with pytest.raises(TileError, match="tcube_pipe should be defined!"):
        verify_module(module)


def test_ops_of_other_dialects_on_demand() -> None:
    text = 'module {\n  "other.op"() {a = #other.attr<x>} : () -> ()\n}\n'
    with pytest.raises(TileError, match=r"other\.op"):
        parse_module(text)
    assert print_module(parse_module(text, allow_unregistered=True)) == text


def test_uses_before_definitions_across_blocks() -> None:
    module = parse_module("""\
func.func @f(%c: i1) {
  cf.br ^bb2
^bb1:
  annotation.mark %v : i32
  return
^bb2:
  %v = arith.constant 1 : i32
  cf.cond_br %c, ^bb1, ^bb2
}
""")
    assert print_module(parse_module(print_module(module))) == print_module(module)


@pytest.mark.parametrize(("read", "written"), [
    ("s0 * d0", "d0 * s0"), ("3 * s0", "s0 * 3"), ("s0 * (d0 + 1)", "(d0 + 1) * s0"), ("5 floordiv s0", "5 floordiv s0"),
    ("d0 - s0 * s0", "d0 + ((s0 * s0) * -1)"), ("d0 ceildiv s0 mod 2", "(d0 ceildiv s0) mod 2")])
def test_maps_with_products_of_symbols(read: str, written: str) -> None:
    text = "func.func @f(%i: index) {{\n  %0 = affine.apply affine_map<(d0)[s0] -> ({})> (%i)[%i]\n  return\n}}"
    assert f"affine_map<(d0)[s0] -> (({written}))>" in print_module(parse_module(text.format(read)))


@pytest.mark.parametrize(("product", "column", "which"), [
    ("d0 * d0", 46, "at least one of the multiply operands"), ("s0 * d0 * d0", 51, "at least one of the multiply operands"),
    ("d0 mod d0", 46, "right operand of mod"), ("s0 floordiv (d0 + 1)", 46, "right operand of floordiv"),
    ("4 ceildiv d0", 45, "right operand of ceildiv")])
def test_maps_with_products_of_dimensions(product: str, column: int, which: str) -> None:
    line = f"%0 = affine.apply affine_map<(d0)[s0] -> ({product})> (%i)[%i]"
    error = _refused(f"func.func @f(%i: index) {{\n{line}\n  return\n}}")
    assert error.message == f"non-affine expression: {which} has to be either a constant or symbolic"
    assert error.location is not None
    assert (error.location.line, error.location.column) == (2, column)


def test_broken_text_is_always_a_tile_error() -> None:
    """Random changes to the text of every op: it parses to a module whose text is a fixed point, or is an error at the
    position."""
    source = random.Random(20240611)
    pieces = ["(", ")", "[", "]", "<", ">", "{", "}", ",", ":", "=", "%a", "@f", "#hivm.pipe<PIPE_V>", "->", "-1", "1.5", '"',
              "loc(", "^bb0", "f32", "memref<", "tensor<*xf32>", "true", "ins", "\n", "//", "99999999999999999999", "1e999"]
    for _, make, _ in CASES:
        k = Kernel()
        module = k.module(make(k))
        for text in (print_module(module), print_module(module, generic=True)):
            parts = re.findall(r"\w+|\s+|[^\w\s]", text)
            for _ in range(4):
                damaged, place = list(parts), source.randrange(len(parts))
                damaged[place:place + source.randrange(2)] = source.choice(([], [source.choice(pieces)]))
                with suppress(TileError):
                    again = print_module(parse_module("".join(damaged)))
                    assert print_module(parse_module(again)) == again


@pytest.mark.parametrize("kind", ["memref<*xf32>", "memref<f32>", "f32", "none", "vector<4xf32>", "2x2x2x2x2xi64 ub",
                                  "?x?xf16 gm", "0xf32 ub", "tensor<*xf32>", "memref<8xf32, 2>"])
def test_operands_of_any_type_are_taken_or_refused(kind: str) -> None:
    for _, make, _ in CASES:
        k = Kernel()
        op = make(k)
        for place in range(len(op.operands)):
            k = Kernel()
            op = make(k)
            op.operands[place] = k.block.insert_arg(type_of(kind), len(k.block.args))
            module = k.module(op)
            with suppress(TileError):
                verify_module(module)
                text = print_module(module)
                assert print_module(parse_module(text)) == text


# -- locations -------------------------------------------------------------------------------------------------------


def test_locations_are_read_and_written_on_demand() -> None:
    text = (
        'module {\n  func.func @f() {\n    hivm.hir.pipe_barrier[<PIPE_V>] loc("f.py":3:4)\n    return loc("f.py":5:1)\n'
        '  } loc("f.py":1:1)\n} loc("f.py":1:1)\n')
    module = parse_module(text)
    barrier = next(op for op in module.walk() if isinstance(op, hivm.PipeBarrierOp))
    place = location_of(barrier)
    assert place is not None
    assert (place.file, place.line, place.column) == ("f.py", 3, 4)
    assert print_module(module, locations=True) == text
    assert "loc" not in print_module(module)


def test_ops_know_the_line_they_were_read_from() -> None:
    module = parse_module(TRANSFER, "copy.mlir")
    load = next(op for op in module.walk() if isinstance(op, hivm.LoadOp))
    assert str(location_of(load)) == "copy.mlir:3:5"
    assert isinstance(load.location, FileLineColLoc)


def test_locations_given_by_an_alias() -> None:
    """Also compound locations; an unknown location becomes the position in the text."""
    module = parse_module("""\
#loc1 = loc("f.py":3:4)
module {
  func.func @f() {
    hivm.hir.pipe_barrier[<PIPE_V>] loc(#loc1)
    hivm.hir.pipe_barrier[<PIPE_M>] loc(#loc2)
    hivm.hir.pipe_barrier[<PIPE_S>] loc(fused["a.py":1:2, "b.py":3:4])
    hivm.hir.pipe_barrier[<PIPE_FIX>] loc("name"("c.py":7:8))
    hivm.hir.pipe_barrier[<PIPE_ALL>] loc(callsite("d.py":1:1 at "e.py":2:2))
    hivm.hir.pipe_barrier[<PIPE_MTE1>] loc(unknown)
    return
  }
}
#loc2 = loc("g.py":5:6)
""")
    places = [location_of(op) for op in module.walk() if isinstance(op, hivm.PipeBarrierOp)]
    assert [str(place) if place else None for place in places] == [
        "f.py:3:4", "g.py:5:6", "a.py:1:2", "c.py:7:8", "d.py:1:1", "<string>:9:5"]


# -- writing ---------------------------------------------------------------------------------------------------------


def test_names_are_hints_made_unique(k: Kernel) -> None:
    a, b = k("8xf32 ub", "x"), k("8xf32 ub", "x")
    first, second = hivm.GetBlockIdxOp(), hivm.GetBlockIdxOp()
    first.results[0].name_hint = second.results[0].name_hint = "block"
    module = k.module(first, second, hivm.GetBlockNumOp(), hivm.VAddOp([a, b], [a]))
    text = print_module(module)
    assert text == (
        "module {\n"
        f"  func.func @f(%x: memref<8xf32, {UB}>, %x_1: memref<8xf32, {UB}>) {{\n"
        "    %block = hivm.hir.get_block_idx -> i64\n"
        "    %block_1 = hivm.hir.get_block_idx -> i64\n"
        "    %0 = hivm.hir.get_block_num -> i64\n"
        f"    hivm.hir.vadd ins(%x, %x_1 : memref<8xf32, {UB}>, memref<8xf32, {UB}>) outs(%x : memref<8xf32, {UB}>)\n"
        "    return\n  }\n}\n")
    assert [print_module(module) for _ in range(3)] == [text] * 3
    assert print_module(module.clone()) == text


def test_the_short_spellings_of_mlir() -> None:
    assert print_module(parse_module("builtin.module { func.func @f() { func.return } }")) == (
        "module {\n  func.func @f() {\n    return\n  }\n}\n")
    assert print_module(ModuleOp([]), generic=True) == '"builtin.module"() ({\n^bb0:\n}) : () -> ()\n'


def test_dictionaries_are_sorted_as_mlir_sorts_them() -> None:
    assert print_module(parse_module('module attributes {b = 1 : i32, a.z, "odd key" = unit, a = {y = 1, x = 2}} {}')) == (
        'module attributes {a = {x = 2 : i64, y = 1 : i64}, a.z, b = 1 : i32, "odd key"} {\n}\n')


def test_numbers_that_mlir_writes_in_its_own_way() -> None:
    text = ("module attributes {a = 0x7F800000 : f32, b = 0x7E00 : f16, c = 0.333333343 : f32, d = -1.000000e+00 : bf16,"
            " e = memref<4xf32, 1>, f = 2 : i64} {\n}\n")
    assert print_module(parse_module(text)) == text


def test_comments_and_empty_lines() -> None:
    text = "// before\n\n" + TRANSFER.replace("\n    return", " // the load\n\n    return") + "// the end"
    assert print_module(parse_module(text)) == TRANSFER


def test_ops_without_a_module_get_one() -> None:
    body = TRANSFER.split("\n", 1)[1].rsplit("}\n", 1)[0]
    assert print_module(parse_module(body)) == TRANSFER


# -- AscendNPU-IR v1.0.0 ---------------------------------------------------------------------------------------------

OLDER = [
    (lambda k: hivm.SyncBlockSetOp("CUBE", "FIX", "S", 1, mode="INTER_BLOCK_SYNCHRONIZATION"),
     ("hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 1 syn_instr_mode = <INTER_BLOCK_SYNCHRONIZATION>")),
    (lambda k: hivm.FixpipeOp(k("1x1x16x16xf32 cc"), k("16x16xf32 gm"), dma_mode="nz2nd", pre_quant="F322F16"),
     ("hivm.hir.fixpipe {enable_nz2nd, pre_quant = #hivm.fixpipe_pre_quant_mode<F322F16>}"
      " ins(%a : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%b : memref<16x16xf32, #hivm.address_space<gm>>)")),
    (lambda k: hivm.FixpipeOp(k("1x1x16x16xf32 cc"), k("16x16xf32 gm"), unit_flags=["ENABLED_WITH_UPDATE"],
                              unit_flag_conditions=[k("i1")]),
     ("hivm.hir.fixpipe ins(%a : memref<1x1x16x16xf32, #hivm.address_space<cc>>)"
      " outs(%b : memref<16x16xf32, #hivm.address_space<gm>>) unit_flag[<ENABLED_WITH_UPDATE>, %c]")),
    (lambda k: hivm.ConvertLayoutOp(
        k("128x128xf16"), results=[type_of("8x8x16x16xf16")], srcLayout=hivm.DataLayoutAttr("ND"),
        dstLayout=hivm.DataLayoutAttr("zN"), static_output_shape=[8, 8, 16, 16]),
     ("%0 = hivm.hir.convert_layout %a {dstLayout = #hivm.data_layout<zN>, srcLayout = #hivm.data_layout<ND>} :"
      " (tensor<128x128xf16>) -> tensor<8x8x16x16xf16>")),
]


@pytest.mark.parametrize(("make", "line"), OLDER, ids=["mode", "rows", "unit flag", "layout"])
def test_the_spelling_of_the_release(k: Kernel, make: object, line: str) -> None:
    assert callable(make)
    module = k.module(make(k))
    text = print_module(module, toolchain="1.0.0")
    assert text.splitlines()[2].strip() == line
    again = parse_module(text)
    assert print_module(again, toolchain="1.0.0") == text
    assert print_module(again) == print_module(module)


@pytest.mark.parametrize(("make", "message"), [
    (lambda k: hivm.AnchorOp(id=1), "AscendNPU-IR v1.0.0 has no op hivm.hir.anchor"),
    (lambda k: hivm.CustomOp("f", core="CUBE", pipe="M", symbol="f"), "AscendNPU-IR v1.0.0 has no op hivm.hir.custom"),
    (lambda k: hivm.LoadOp(k("8xf32 gm"), k("8xf32 ub"), eviction_policy="EvictFirst"),
     "AscendNPU-IR v1.0.0 has no 'eviction_policy' on hivm.hir.load"),
    (lambda k: hivm.FixpipeOp(k("16x16xf32 cc"), k("16x16xf32 gm"), dma_mode="nz2dn"),
     "AscendNPU-IR v1.0.0 has no dma_mode nz2dn on hivm.hir.fixpipe"),
    (lambda k: hivm.FixpipeOp(k("16x16xf32 cc"), k("16x16xf32 gm"), quant_scale=k("f32")),
     "AscendNPU-IR v1.0.0 has no quant_scale on hivm.hir.fixpipe"),
    (lambda k: hivm.FixpipeOp(k("16x16xf32 cc"), k("16x16xf32 gm"), unit_flags=["DISABLED"] * 2,
                              unit_flag_conditions=[k("i1")] * 2),
     "AscendNPU-IR v1.0.0 supports only one unit flag on hivm.hir.fixpipe"),
])
def test_what_the_text_of_the_release_cannot_express(k: Kernel, make: object, message: str) -> None:
    assert callable(make)
    module = k.module(make(k))
    with pytest.raises(TileError) as caught:
        print_module(module, toolchain="1.0.0")
    assert (caught.value.code, caught.value.message) == ("T603", message)


def test_the_release_has_another_generic_form() -> None:
    with pytest.raises(TileError, match="the generic form can be printed only for toolchain='master'"):
        print_module(ModuleOp([]), generic=True, toolchain="1.0.0")
    with pytest.raises(TileError, match="unknown toolchain '2'"):
        print_module(ModuleOp([]), toolchain="2")


# -- the context -----------------------------------------------------------------------------------------------------


def test_dialects_come_on_demand() -> None:
    context = make_context()
    names = {"builtin", "func", "arith", "scf", "memref", "cf", "math", "affine", "tensor", "linalg", "llvm", "hivm",
             "hacc", "annotation", "memref_ext", "scope", "dlti", "tile", "bufferization"}
    assert names <= {*context.registered_dialect_names}
    assert [dialect.name for dialect in context.loaded_dialects] == ["builtin"]
    assert context.get_optional_op("hivm.hir.load") is hivm.LoadOp
    assert context.get_optional_op("scope.nonsense") is None
