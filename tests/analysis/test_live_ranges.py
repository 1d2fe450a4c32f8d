"""Statements that use a buffer, and the statement at which a buffer's next value begins."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects import scf
from xdsl.ir import Operation

from tilelang_npu.analysis.live_ranges import live_ranges_of_loops, statements_using, successive_live_ranges
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import parse_module

UB, GM = (f"memref<8x64xf32, #hivm.address_space<{space}>>" for space in ("ub", "gm"))
LOAD = f"tile.copy %X to %x : {GM} to {UB}"
STORE = f"tile.copy %x to %Y : {UB} to {GM}"
CLEAR = f"tile.fill %v into %x : f32 into {UB}"
WORK = f'tile.elementwise "exp" ins(%x : {UB}) outs(%x : {UB})'
OTHER = f"tile.fill %v into %y : f32 into {UB}"


def _loop(*lines: str, end: str = "%c4", index: str = "%k") -> str:
    return "\n".join([f"scf.for {index} = %c0 to {end} step %c1 {{", *lines, "}"])


def _branches(first: Sequence[str], second: Sequence[str]) -> str:
    return "\n".join(["scf.if %p {", *first, "} else {", *second, "}"])


def _allocation(*lines: str) -> tuple[tile.AllocOp, list[Operation]]:
    """Returns the allocation of ``x``, and the statements at its level that follow the two allocations."""
    module = parse_module("\n".join([
        f"func.func @k(%X: {GM}, %Y: {GM}, %v: f32, %count: i32, %p: i1) {{",
        "%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index", "%c4 = arith.constant 4 : index",
        "%n = arith.index_cast %count : i32 to index",
        f'%x = tile.alloc "x" : {UB}', f'%y = tile.alloc "y" : {UB}', *lines, "return", "}"]))
    allocation, other = [op for op in module.walk() if isinstance(op, tile.AllocOp)]
    home = allocation.parent_block()
    assert home is not None
    ops = list(home.ops)
    return allocation, ops[ops.index(other) + 1:-1]


def _numbers(allocation: tile.AllocOp, statements: list[Operation], lives: list[list[Operation]]) -> list[list[int]]:
    """Returns the numbers of the statements of live ranges."""
    return [[statements.index(op) for op in life] for life in lives]


def test_statements_that_use_a_buffer_are_those_of_its_block() -> None:
    part = f"tile.region %x[0, 0] [4, 64] keep [0, 1] : {UB} to memref<4x64xf32, strided<[64, 1]>, #hivm.address_space<ub>>"
    kind = "memref<4x64xf32, strided<[64, 1]>, #hivm.address_space<ub>>"
    allocation, statements = _allocation(
        OTHER, LOAD, f"%half = {part}", _loop(OTHER), _loop(_loop(WORK, index="%j")),
        f"tile.fill %v into %half : f32 into {kind}", f"%idle = {part}", STORE)
    assert _numbers(allocation, statements, [statements_using(allocation)]) == [[1, 4, 5, 7]]


def test_a_buffer_that_nothing_accesses_has_no_statements() -> None:
    allocation, _ = _allocation(OTHER)
    assert statements_using(allocation) == []
    assert successive_live_ranges(allocation, lambda _: True, Ranges()) == []


@pytest.mark.parametrize(("lines", "lives"), [
    ([LOAD, STORE, LOAD, STORE], [[2, 3]]),
    ([LOAD, WORK, STORE, OTHER, CLEAR, WORK, LOAD, STORE], [[4, 5], [6, 7]]),
    ([LOAD, STORE, WORK, STORE], []),  # the computation reads the loaded value
    ([LOAD, STORE, _loop(LOAD, STORE)], [[2]]),
    ([LOAD, STORE, _loop(STORE, LOAD)], []),  # the first iteration stores the value loaded above
    ([LOAD, STORE, _branches([LOAD], [CLEAR]), STORE], [[2, 3]]),
    ([LOAD, STORE, _branches([LOAD], [OTHER]), STORE], []),  # the second branch leaves the earlier value
    ([LOAD, STORE, _loop(LOAD, end="%n"), STORE], []),  # so does a loop that may have no iteration
    ([LOAD, STORE, _loop(LOAD), STORE], [[2, 3]])])
def test_a_live_range_begins_where_the_buffer_is_overwritten_first(lines: list[str], lives: list[list[int]]) -> None:
    allocation, statements = _allocation(*lines)
    assert _numbers(allocation, statements, successive_live_ranges(allocation, lambda _: True, Ranges())) == lives


def test_live_ranges_are_one_unless_both_are_moved() -> None:
    allocation, statements = _allocation(CLEAR, WORK, LOAD, WORK, CLEAR, WORK, LOAD, STORE)

    def is_copied(ops: Sequence[Operation]) -> bool:
        return any(isinstance(op, tile.CopyOp) for op in ops)

    found = successive_live_ranges(allocation, is_copied, Ranges())
    assert _numbers(allocation, statements, found) == [[4, 5, 6, 7]]  # the first one, which is left out, is 0 to 3
    assert successive_live_ranges(allocation, lambda _: False, Ranges()) == []
    allocation, _ = _allocation(LOAD, STORE, CLEAR, WORK)
    assert successive_live_ranges(allocation, is_copied, Ranges()) == []


@pytest.mark.parametrize(("lines", "lives"), [
    ([LOAD, STORE, _loop(LOAD, STORE)], [[2]]),
    ([_loop(LOAD, STORE), _loop(LOAD, STORE)], [[1]]),  # the first one keeps the allocation
    ([_loop(LOAD, STORE), _loop(LOAD, STORE), LOAD, STORE], [[0], [1]]),
    ([_loop(LOAD, STORE)], []),
    ([_loop(LOAD), STORE], []),  # the value after the loop is read below
    ([LOAD, _loop(WORK, STORE)], []),  # the loop reads the value loaded above
    ([LOAD, STORE, _loop(LOAD, STORE), STORE], []),
    ([WORK, STORE, _loop(LOAD, STORE)], []),  # the computation reads the buffer's earlier value
    ([_branches([_loop(LOAD, STORE)], [_loop(LOAD, STORE)])], None),
    ([_branches([_loop(LOAD, STORE)], [OTHER])], [])])
def test_live_ranges_of_loops_are_one_statement_and_leave_nothing(lines: list[str], lives: list[list[int]] | None) -> None:
    allocation, statements = _allocation(*lines)
    found = live_ranges_of_loops(allocation, lambda _: True, Ranges())
    if lives is None:  # of two branches, the second one gets its own buffer
        (branch,) = statements
        assert isinstance(branch, scf.IfOp)
        assert found == [list(branch.false_region.block.ops)]
    else:
        assert _numbers(allocation, statements, found) == lives


def test_only_loops_that_want_a_buffer_and_access_this_one_get_it() -> None:
    allocation, statements = _allocation(LOAD, STORE, _loop(LOAD, STORE), _loop(LOAD, STORE, _loop(OTHER, index="%j")), LOAD,
                                         STORE)
    asked: list[Operation] = []

    def wants_own(loop: scf.ForOp) -> bool:
        asked.append(loop)
        return loop is statements[3]

    assert _numbers(allocation, statements, live_ranges_of_loops(allocation, wants_own, Ranges())) == [[3]]
    assert statements[2] in asked
    assert live_ranges_of_loops(allocation, lambda loop: loop not in statements, Ranges()) == []  # that one accesses %y alone
