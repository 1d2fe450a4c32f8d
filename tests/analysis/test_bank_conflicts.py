"""Start addresses of the two sources of an instruction in the banks of UB."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects import func

from tilelang_npu.analysis.allocation_live_ranges import LiveRange, allocation_live_ranges
from tilelang_npu.analysis.bank_conflicts import bank_offsets, bank_period, conflicting_buffers
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.target import chip

A2, A5 = chip("910B2"), chip("910_95")
HALF = bank_period(A2) // 2


def _type(elements: int) -> str:
    return f"memref<{elements}xf32, #hivm.address_space<ub>>"


def _op(name: str, *operands: str, elements: int = 256) -> str:
    """Text of an elementwise op; the last operand is the destination."""
    kind, (*sources, target) = _type(elements), operands
    return (f"hivm.hir.{name} ins({', '.join(f'%{each}' for each in sources)} : {', '.join([kind] * len(sources))}) "
            f"outs(%{target} : {kind})")


def _analyse(buffers: str, *lines: str, elements: int = 256) -> tuple[func.FuncOp, dict[str, LiveRange]]:
    """Returns a function of ops on buffers of one size, and the live ranges of the buffers by name."""
    made = [f"%{name} = memref.alloc() : {_type(elements)}" for name in buffers]
    module = parse_module("func.func @k() {\n" + "\n".join([*made, *lines]) + "\nreturn\n}")
    (function,) = [op for op in module.walk() if isinstance(op, func.FuncOp)]
    return function, {one.label: one for one in allocation_live_ranges(function)[0]}


def _offsets(buffers: str, *lines: str) -> dict[str, int]:
    function, ranges = _analyse(buffers, *lines)
    return {one.label: offset for one, offset in bank_offsets(function, list(ranges.values()), A2).items()}


def test_the_period_is_the_width_of_all_groups() -> None:
    banks = replace(A2.banks, groups=4, width=64)
    assert bank_period(replace(A2, banks=banks)) == 256
    assert HALF % 32 == 0 and A2.banks.width < HALF


@pytest.mark.parametrize(("line", "apart"), [
    (_op("vadd", "a", "b", "c"), True),
    (_op("vmul", "a", "b", "c"), True),
    (_op("vdiv", "a", "b", "c"), False),  # its rate does not depend on banks
    (_op("vadd", "a", "a", "c"), False),  # one buffer has one address
    (_op("vrelu", "a", "c"), False)])
def test_two_sources_of_an_instruction_that_banks_slow_are_half_a_period_apart(line: str, apart: bool) -> None:
    found = _offsets("abc", line)
    assert set(found) == ({"a", "b"} if apart else set())
    assert sorted(found.values()) == ([0, HALF] if apart else [])


def test_a_chip_whose_rates_do_not_depend_on_banks_asks_for_nothing() -> None:
    function, ranges = _analyse("abc", _op("vadd", "a", "b", "c"))
    assert bank_offsets(function, list(ranges.values()), A5) == {}
    assert conflicting_buffers(function, {ranges[name]: [0] for name in "abc"}, A5) == []


def test_a_view_is_read_where_its_buffer_is() -> None:
    part = "memref<64xf32, strided<[1]>, #hivm.address_space<ub>>"
    found = _offsets("abc", f"%v = memref.subview %b[0] [64] [1] : {_type(256)} to {part}",
                     f"%u = memref.subview %a[0] [64] [1] : {_type(256)} to {part}",
                     f"%w = memref.subview %c[0] [64] [1] : {_type(256)} to {part}",
                     f"hivm.hir.vadd ins(%u, %v : {part}, {part}) outs(%w : {part})")
    assert set(found) == {"a", "b"}
    assert found["a"] != found["b"]


def test_of_three_buffers_the_pair_read_together_least_shares_banks() -> None:
    """a and b are read together twice, the other two pairs once: some pair must share, and a and b must not."""
    pairs = [("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")]
    found = _offsets("abcd", *(_op("vadd", *pair, "d") for pair in pairs))
    assert set(found) == {"a", "b", "c"}
    assert found["a"] != found["b"]


def test_a_chain_of_pairs_has_no_conflict() -> None:
    found = _offsets("abcde", _op("vadd", "a", "b", "e"), _op("vsub", "c", "b", "e"), _op("vmax", "c", "d", "e"))
    assert found["a"] == found["c"] != found["b"] == found["d"]


def test_members_of_a_live_range_are_read_where_it_is() -> None:
    function, ranges = _analyse("abcd", _op("vadd", "a", "c", "d"))
    shared = replace(ranges["b"], members=(ranges["a"].value, ranges["b"].value))
    assert set(bank_offsets(function, [shared, ranges["c"], ranges["d"]], A2)) == {shared, ranges["c"]}


@pytest.mark.parametrize(("address", "conflict"), [
    (4 * HALF, True), (2 * HALF, True), (2 * HALF + A2.banks.width - 1, True), (2 * HALF + A2.banks.width, False),
    (4 * HALF - A2.banks.width + 1, True), (4 * HALF - A2.banks.width, False), (3 * HALF, False)])
def test_two_sources_conflict_if_they_start_less_than_a_group_apart_in_a_period(address: int, conflict: bool) -> None:
    function, ranges = _analyse("abc", _op("vadd", "a", "b", "c"))
    found = conflicting_buffers(function, {ranges["a"]: [0], ranges["b"]: [address], ranges["c"]: [0]}, A2)
    assert [one.label for one in found] == (["b"] if conflict else [])


def test_buffers_that_conflict_are_named_once_and_their_offsets_avoid_all_conflicts() -> None:
    """b is read with a and with c; a and c, which others are read with too, stay at multiples of the period."""
    function, ranges = _analyse("abcpqd", *(_op("vadd", *pair, "d") for pair in ("ap", "cq", "ab", "cb")))
    addresses = {ranges[name]: [number * 2 * HALF] for number, name in enumerate("abc")}
    addresses |= {ranges[name]: [number * 2 * HALF + HALF] for number, name in enumerate("pqd", start=3)}
    assert [one.label for one in conflicting_buffers(function, addresses, A2)] == ["b"]
    for one, offset in bank_offsets(function, list(addresses), A2).items():
        addresses[one] = [addresses[one][0] // (2 * HALF) * 2 * HALF + offset]
    assert conflicting_buffers(function, addresses, A2) == []
