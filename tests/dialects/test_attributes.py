"""Attributes: every spelling that is parsed, the one that is printed, the integer values of keywords, and invalid
attributes."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from dialects.helpers import type_of
from tilelang_npu.dialects import annotation, hacc, hivm
from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr, MarkerAttr, SymbolAttr, TextAttr
from tilelang_npu.dialects.mlir import dlti
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError
from tilelang_npu.target import features_of

ENUMS = [kind for kind in (*hivm.Hivm.attributes, *hacc.Hacc.attributes, *annotation.Annotation.attributes)
         if issubclass(kind, EnumAttr)]


def _read(text: str) -> Attribute:
    return parse_module(f"module attributes {{x = {text}}} {{}}").attributes["x"]


def _written(attribute: Attribute) -> str:
    line = print_module(ModuleOp([], attributes={"x": attribute})).splitlines()[0]
    return line.removeprefix("module attributes {x = ").removesuffix("} {")


@pytest.mark.parametrize("kind", ENUMS, ids=lambda kind: kind.name)
def test_every_word_of_every_enum(kind: type[EnumAttr]) -> None:
    for word, number in kind.CASES.items():
        attribute = kind(word)
        assert _written(attribute) == f"#{kind.name}<{word}>"
        assert _read(f"#{kind.name}<{word}>") == attribute
        assert attribute.value == number
        assert kind(attribute.short) == attribute
        assert kind.of(attribute) is attribute
    with pytest.raises(VerifyException, match=f"expected #{kind.name} to be one of: "):
        kind("nonsense")
    with pytest.raises(TileError, match=f"expected #{kind.name} to be one of: ") as caught:
        _read(f"#{kind.name}<nonsense>")
    assert caught.value.code == "T601"


@pytest.mark.parametrize(("attribute", "number"), [
    (hivm.pipe("S"), 0), (hivm.pipe("V"), 1), (hivm.pipe("M"), 2), (hivm.pipe("MTE1"), 3), (hivm.pipe("MTE2"), 4),
    (hivm.pipe("MTE3"), 5), (hivm.pipe("ALL"), 6), (hivm.pipe("FIX"), 10),
    (hivm.address_space("gm"), 1), (hivm.address_space("cbuf"), 2), (hivm.address_space("ca"), 3),
    (hivm.address_space("cb"), 4), (hivm.address_space("cc"), 5), (hivm.address_space("ub"), 6),
    (hivm.event(7), 7), (hivm.CoreTypeAttr("CUBE"), 1), (hivm.CoreTypeAttr("VECTOR"), 2),
    (hivm.RoundModeAttr("rint"), 0), (hivm.RoundModeAttr("trunc"), 4), (hivm.PadModeAttr("PadValue"), 2),
], ids=str)
def test_numbers_that_library_calls_carry(attribute: EnumAttr, number: int) -> None:
    assert attribute.value == number


@pytest.mark.parametrize("text", [
    *(f"#{kind.name}" for kind in (*hivm.Hivm.attributes, *hacc.Hacc.attributes) if issubclass(kind, MarkerAttr)),
    *(f'#{kind.name}<"a/b.bc">' for kind in (*hivm.Hivm.attributes, *hacc.Hacc.attributes) if issubclass(kind, TextAttr)),
    *(f"#{kind.name}<@f>" for kind in hacc.Hacc.attributes if issubclass(kind, SymbolAttr)),
    "#hivm.data_layout<ND>", "#hivm.data_layout<zN>", "#hivm.data_layout<Fractal, fractalSizes = [16, 16]>",
    "#hivm.data_layout<dotA_ND, transpose = false>", "#hivm.data_layout<dotB_ND, transpose = true, fractalSizes = [32, 16]>",
    "#hivm.sync_event_slot<internal>", "#hivm.sync_event_slot<internal, <EVENT_ID3>>",
    "#hivm.sync_event_slot<#hivm.pipe<PIPE_V>, #hivm.pipe<PIPE_MTE3>>",
    "#hivm.sync_event_slot<#hivm.pipe<PIPE_V>, #hivm.pipe<PIPE_MTE3>, set, <EVENT_ID1>>",
    "#hivm.block", "#hivm.block<linear_dim = 2>", "#hivm.tightly_coupled_buffer<>", "#hivm.tightly_coupled_buffer<4>",
    "#hivm.remain_in_l0c<1>", "#hacc.input_idx<3>", "#hacc.output_idx<0>",
    '#annotation.filter_passes<"cse">',
    '#dlti.dl_entry<"k", 1 : i32>', "#dlti.dl_spec<#dlti.dl_entry<index, 64 : i32>>",
    '#hacc.target_device_spec<#dlti.dl_entry<"UB_SIZE", 1572864 : i32>, #dlti.dl_entry<"ARCH", "dav-c220">>',
    '#dlti.target_system_spec<"NPU" : #hacc.target_device_spec<#dlti.dl_entry<"AI_CORE_COUNT", 24 : i32>>>',
])
def test_written_as_read(text: str) -> None:
    assert _written(_read(text)) == text


def test_other_spellings_that_are_read() -> None:
    assert _written(_read("#hivm.data_layout<ND, fractalSizes = [4], transpose = true>")) == (
        "#hivm.data_layout<ND, transpose = true, fractalSizes = [4]>")
    assert _written(_read('#dlti.target_system_spec<"NPU" = #hacc.target_device_spec<>>')) == (
        '#dlti.target_system_spec<"NPU" : #hacc.target_device_spec<>>')
    assert _read("#hivm.sync_event_slot<#hivm.pipe<PIPE_V>, #hivm.pipe<PIPE_MTE3>, <EVENT_ID1>>") == hivm.SyncEventSlotAttr(
        "V", "MTE3", "internal", 1)


def test_aliases_and_stripped_and_full_spellings_in_ops() -> None:
    module = parse_module(
        "#v = #hivm.pipe<PIPE_V>\n#space = #hivm.address_space<ub>\n"
        "func.func @f(%a: memref<4xf32, #space>) {\n"
        "  hivm.hir.pipe_barrier[#v]\n"
        "  hivm.hir.pipe_barrier[#hivm.pipe<PIPE_V>]\n"
        "  hivm.hir.pipe_barrier[<PIPE_V>]\n"
        "  return\n}\n")
    assert print_module(module).count("hivm.hir.pipe_barrier[<PIPE_V>]") == 3
    assert "memref<4xf32, #hivm.address_space<ub>>" in print_module(module)


@pytest.mark.parametrize(("text", "message"), [
    ("#hivm.data_layout<dotA_ND>", "'transpose' must be set if data layout is DOTA_ND or DOTB_ND"),
    ("#hivm.data_layout<nZ, transpose = true>", "'transpose' is only valid if data layout is DOTA_ND or DOTB_ND or ND like"),
    ("#hivm.data_layout<XY>", "expected #hivm.data_layout to be one of: dotA_ND, "),
    ("#hivm.data_layout<ND, size = 1>", "unexpected or repeated parameter 'size' of #hivm.data_layout"),
    ("#hivm.sync_event_slot<wait, <EVENT_ID1>>", "macro_sync without pipes is only supported for `internal`"),
    ("#hivm.sync_event_slot<1, 2>", "expected #hivm.pipe<...>"),
    ('#hacc.target_device_spec<#dlti.dl_entry<"SIZE", 1 : i32>>', 'invalid target device spec: "SIZE"'),
    ('#hacc.target_device_spec<#dlti.dl_entry<"UB_SIZE", 1 : i32>, #dlti.dl_entry<"UB_SIZE", 1 : i32>>',
     "repeated layout entry key: UB_SIZE"),
    ("#hacc.target_device_spec<#dlti.dl_entry<i32, 1 : i32>>", "dlti.target_device_spec does not allow type as a key: i32"),
    ("#hacc.target_device_spec<1 : i32>", "expected #dlti.dl_entry<...>, found 1 : i32"),
    ("#dlti.dl_entry<1 : i32, 1 : i32>", "expected a type or a quoted string as the key of a data layout entry"),
    ('#dlti.target_system_spec<"A" : 1 : i32, "A" : 2 : i32>', "repeated device in #dlti.target_system_spec"),
    ("#hivm.nonsense", "hivm.nonsense"),
])
def test_no_attribute(text: str, message: str) -> None:
    with pytest.raises(TileError) as caught:
        _read(text)
    assert caught.value.code == "T601"
    assert message in caught.value.message


def test_the_module_says_which_chip() -> None:
    module = parse_module('module attributes {hacc.target = #hacc.target<"Ascend950DT_9595">} {\n  func.func @f() {\n'
                          "    return\n  }\n}")
    (function,) = module.ops
    assert hacc.target_of(function) == "Ascend950DT_9595"
    assert hacc.target_of(module) == "Ascend950DT_9595"
    assert hacc.target_of(ModuleOp([])) == ""


@pytest.mark.parametrize(("target", "is_950", "register_based"), [
    ("Ascend910B1", False, False), ("Ascend910_9362", False, False), ("Ascend310B4", False, True),
    ("Ascend910_9589", True, True), ("Ascend950PR_9599", True, True), ("Ascend950DT_95A2", True, True), ("", False, False),
    ("Ascend910X", False, False)])
def test_series(target: str, is_950: bool, register_based: bool) -> None:
    features = features_of(target)
    assert features.vector_modes is features.fixpipe_columns is features.fixpipe_to_ub is is_950
    assert features.vector_registers is ("f8E5M2" in features.element_types) is register_based


def test_memory_space_in_types() -> None:
    assert str(type_of("8xf32 cc")) == "memref<8xf32, #hivm.address_space<cc>>"
    assert str(type_of("memref<2x?xf16, strided<[?, 1], offset: ?>, #hivm.address_space<gm>>")) == (
        "memref<2x?xf16, strided<[?, 1], offset: ?>, #hivm.address_space<gm>>")


def test_device_specification_from_python() -> None:
    entry = dlti.DataLayoutEntryAttr(StringAttr("UB_SIZE"), IntegerAttr(8, i32))
    spec = _read('#hacc.target_device_spec<#dlti.dl_entry<"UB_SIZE", 8 : i32>>')
    assert isinstance(spec, hacc.TargetDeviceSpecAttr)
    assert spec.entries.data == (entry,)
