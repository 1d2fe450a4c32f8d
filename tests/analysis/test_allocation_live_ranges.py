"""Live ranges of on-chip allocations: their positions, pipes and slots, and which results may overwrite which inputs."""

from __future__ import annotations

import pytest
from xdsl.dialects import func
from xdsl.ir import Operation

from tilelang_npu.analysis.allocation_live_ranges import LiveRange, allocation_live_ranges, needing_bytes_at
from tilelang_npu.dialects.text import parse_module

UB = "memref<64xf32, #hivm.address_space<ub>>"
GM = "memref<64xf32, #hivm.address_space<gm>>"
CONSTANTS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
"""


def _alloc(*names: str, kind: str = UB) -> str:
    return "\n".join(f"%{name} = memref.alloc() : {kind}" for name in names)


def _relu(source: str, target: str, kind: str = UB) -> str:
    return f"hivm.hir.vrelu ins(%{source} : {kind}) outs(%{target} : {kind})"


def _load(target: str) -> str:
    return f"hivm.hir.load ins(%x : {GM}) outs(%{target} : {UB})"


def _analyse(*lines: str) -> tuple[dict[str, LiveRange], list[Operation]]:
    """Returns the live ranges of a function's allocations by name, and the function's ops."""
    module = parse_module(f"func.func @k(%x: {GM}) {{\n{CONSTANTS}" + "\n".join(lines) + "\nreturn\n}")
    (function,) = [op for op in module.walk() if isinstance(op, func.FuncOp)]
    ranges, order = allocation_live_ranges(function)
    assert order == list(function.walk())
    return {one.label: one for one in ranges}, order


def _at(order: list[Operation], name: str) -> list[int]:
    """Returns the positions of the ops of a name."""
    return [position for position, op in enumerate(order) if op.name == name]


def test_a_live_range_goes_from_the_first_access_to_the_last() -> None:
    found, order = _analyse(_alloc("a", "b", "unused"), _load("a"), _relu("a", "b"), _relu("b", "b"))
    (load,), (first, second) = _at(order, "hivm.hir.load"), _at(order, "hivm.hir.vrelu")
    a, b, unused = (found[name] for name in ("a", "b", "unused"))
    assert (a.start, a.end, a.used) == (load, first, (load, first))
    assert (b.start, b.end) == (first, second)
    assert (a.pipes, b.pipes, unused.pipes) == ({"MTE2", "V"}, {"V"}, set())
    assert unused.start == unused.end == _at(order, "memref.alloc")[2]
    assert a.overlaps(b) and b.overlaps(a)
    assert not a.overlaps(unused)


def test_memories_and_bytes_are_those_of_the_types_and_gm_is_left_out() -> None:
    found, _ = _analyse(_alloc("a", kind="memref<3x5xf16, #hivm.address_space<ub>>"),
                        _alloc("b", kind="memref<2x1x16x16xf16, #hivm.address_space<cbuf>>"), _alloc("c", kind=GM))
    assert {name: (one.space, one.nbytes, one.slots) for name, one in found.items()} == {
        "a": ("ub", 30, 1), "b": ("cbuf", 1024, 1)}


def test_an_access_in_a_loop_that_does_not_contain_the_allocation_extends_to_the_whole_loop() -> None:
    found, order = _analyse(
        _alloc("a"), _load("a"),
        "scf.for %i = %c0 to %c4 step %c1 {", "scf.for %j = %c0 to %c4 step %c1 {",
        _alloc("b"), _relu("a", "b"), _alloc("c"), _relu("b", "c"), "}", "}")
    (outer, inner), (_, end) = _at(order, "scf.for"), _at(order, "scf.yield")
    first, second = _at(order, "hivm.hir.vrelu")
    assert (found["a"].start, found["a"].end) == (_at(order, "hivm.hir.load")[0], end)
    assert (found["b"].start, found["b"].end) == (first, second)
    assert outer < inner < first
    assert found["a"].overlaps(found["c"])


@pytest.mark.parametrize(("slots", "in_loop"), [(1, True), (2, True), (2, False)])
def test_an_allocation_with_slots_is_live_in_the_whole_loop_that_contains_it(slots: int, in_loop: bool) -> None:
    allocation = [_alloc("a"), f"annotation.mark %a {{hivm.multi_buffer = {slots} : i32}} : {UB}"]
    found, order = _analyse(*([] if in_loop else allocation), "scf.for %i = %c0 to %c4 step %c1 {",
                            *(allocation if in_loop else []), _load("a"), _relu("a", "a"), "}")
    a, (load,), (relu,) = found["a"], _at(order, "hivm.hir.load"), _at(order, "hivm.hir.vrelu")
    whole = (_at(order, "scf.for")[0], _at(order, "scf.yield")[0])
    assert a.slots == slots
    assert (a.start, a.end) == ((load, relu) if slots == 1 else whole)
    assert a.used == ((load, relu) if in_loop else whole)


def test_an_access_through_a_value_that_is_one_of_two_buffers_is_an_access_to_both() -> None:
    found, order = _analyse(
        _alloc("a", "b", "c"), _load("a"), _load("b"), "%which = arith.cmpi slt, %c0, %c1 : index",
        f"%one = arith.select %which, %a, %b : {UB}", _relu("c", "c"), _relu("one", "c"))
    last = _at(order, "hivm.hir.vrelu")[1]
    assert found["a"].end == found["b"].end == last
    assert found["a"].overlaps(found["c"])


def test_a_buffer_of_both_cores_is_live_everywhere_and_overwrites_no_input() -> None:
    found, order = _analyse(
        _alloc("a", "b"), f"annotation.mark %b {{hivm.tightly_coupled_buffer = #hivm.tightly_coupled_buffer<7>}} : {UB}",
        _load("a"), _relu("a", "b"))
    a, b = found["a"], found["b"]
    assert (a.coupled, b.coupled) == (None, 7)
    assert (b.start, b.end) == (0, len(order) - 1)
    assert not a.heirs and not a.takers


def test_as_remote_covers_the_other_function_and_keeps_what_is_stored() -> None:
    found, _ = _analyse(_alloc("a", "b"), _load("a"), _relu("a", "b"))
    a = found["a"]
    there = a.as_remote(99)
    assert a.heirs and a.takers and not a.remote
    assert (there.start, there.end, there.used, there.remote) == (0, 99, (0, 99), True)
    assert not there.heirs and not there.takers
    assert (there.value, there.space, there.nbytes) == (a.value, "ub", 256)


F16, F32, I32 = (f"memref<64x{name}, #hivm.address_space<ub>>" for name in ("f16", "f32", "i32"))
F16_2D, F32_2D = (f"memref<8x8x{name}, #hivm.address_space<ub>>" for name in ("f16", "f32"))
BYTES = "memref<{}xi8, #hivm.address_space<ub>>".format
LONG = "memref<128xf32, #hivm.address_space<ub>>"
HALF = "memref<32xf32, strided<[1]>, #hivm.address_space<ub>>"
SHIFTED = "memref<32xf32, strided<[1], offset: 16>, #hivm.address_space<ub>>"
PAIRS = {
    "an elementwise op in place": (True, F32, F32, [f"hivm.hir.vrelu ins(%a : {F32}) outs(%b : {F32})"]),
    "the input is read later": (False, F32, F32, [f"hivm.hir.vrelu ins(%a : {F32}) outs(%b : {F32})",
                                                  f"hivm.hir.vrelu ins(%a : {F32}) outs(%a : {F32})"]),
    "the result is written earlier": (False, F32, F32, [f"hivm.hir.vrelu ins(%b : {F32}) outs(%b : {F32})",
                                                        f"hivm.hir.vrelu ins(%a : {F32}) outs(%b : {F32})"]),
    "both operands show the first half": (True, F32, F32, [
        f"%u = memref.subview %a[0] [32] [1] : {F32} to {HALF}", f"%v = memref.subview %b[0] [32] [1] : {F32} to {HALF}",
        f"hivm.hir.vrelu ins(%u : {HALF}) outs(%v : {HALF})"]),
    "the operands show different parts": (False, F32, F32, [
        f"%u = memref.subview %a[16] [32] [1] : {F32} to {SHIFTED}", f"%v = memref.subview %b[0] [32] [1] : {F32} to {HALF}",
        f"hivm.hir.vrelu ins(%u : {SHIFTED}) outs(%v : {HALF})"]),
    "the first part of a larger input": (False, LONG, F32, [
        f"%u = memref.subview %a[0] [64] [1] : {LONG} to memref<64xf32, strided<[1]>, #hivm.address_space<ub>>",
        f"hivm.hir.vrelu ins(%u : memref<64xf32, strided<[1]>, #hivm.address_space<ub>>) outs(%b : {F32})"]),
    "the first bytes of a larger input": (True, BYTES(512), F32, [
        f"%u = memref.view %a[%c0][] : {BYTES(512)} to {F32}", f"hivm.hir.vrelu ins(%u : {F32}) outs(%b : {F32})"]),
    "other bytes of a larger input": (False, BYTES(512), F32, [
        f"%u = memref.view %a[%c4][] : {BYTES(512)} to {F32}", f"hivm.hir.vrelu ins(%u : {F32}) outs(%b : {F32})"]),
    "an input smaller than the result": (False, F32, BYTES(512), [
        f"%v = memref.view %b[%c0][] : {BYTES(512)} to {F32}", f"hivm.hir.vrelu ins(%a : {F32}) outs(%v : {F32})"]),
    "a conversion to elements of the same size": (True, F32, I32, [
        f"hivm.hir.vcast ins(%a : {F32}) outs(%b : {I32}) round_mode = <rint>"]),
    "a conversion of a row to a narrower type": (True, F32, F16, [
        f"hivm.hir.vcast ins(%a : {F32}) outs(%b : {F16}) round_mode = <rint>"]),
    "a conversion of rows to a narrower type": (False, F32_2D, F16_2D, [
        f"hivm.hir.vcast ins(%a : {F32_2D}) outs(%b : {F16_2D}) round_mode = <rint>"]),
    "a conversion to a wider type": (False, F16, F32, [
        f"hivm.hir.vcast ins(%a : {F16}) outs(%b : {F32}) round_mode = <rint>"]),
}


@pytest.mark.parametrize("case", PAIRS)
def test_which_results_may_overwrite_an_input(case: str) -> None:
    may, source, target, lines = PAIRS[case]
    found, _ = _analyse(_alloc("a", kind=source), _alloc("b", kind=target), *lines)
    a, b = found["a"], found["b"]
    assert a.takers == a.heirs == ({b.value} if may else set())
    assert not b.takers


def test_takers_are_also_those_whose_live_ranges_a_loop_extends() -> None:
    found, _ = _analyse(_alloc("a", "b"), "scf.for %i = %c0 to %c4 step %c1 {", _alloc("c"),
                        f"annotation.mark %c {{hivm.multi_buffer = 2 : i32}} : {UB}", _alloc("d"),
                        _load("c"), _relu("c", "d"), "}")
    assert found["c"].takers == {found["d"].value}
    assert not found["c"].heirs


def test_an_heir_of_the_same_size_and_its_giver_need_bytes_once() -> None:
    narrow = "memref<64xf16, #hivm.address_space<ub>>"
    found, _ = _analyse(_alloc("a", "b"), _alloc("c", kind=narrow), _load("a"), _relu("a", "b"),
                        f"hivm.hir.vcast ins(%b : {UB}) outs(%c : {narrow}) round_mode = <rint>")
    a, b, c = (found[name] for name in "abc")
    ranges = list(found.values())
    assert needing_bytes_at(ranges, a.start) == [a]
    assert needing_bytes_at(ranges, b.start) == [b]  # b overwrites a
    assert c.value in b.heirs
    assert needing_bytes_at(ranges, c.start) == [b, c]  # c is smaller: b's bytes do not all become free
    assert needing_bytes_at(ranges, c.end + 1) == []
