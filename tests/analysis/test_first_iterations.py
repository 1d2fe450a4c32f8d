"""Conditions that hold in the first iteration of loops."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from tilelang_npu.analysis.first_iterations import holds_in_first_iteration
from tilelang_npu.analysis.ranges import Ranges


def number(value: int) -> arith.ConstantOp:
    return arith.ConstantOp(IntegerAttr(value, IndexType()))


def loop_from(start: Operation) -> scf.ForOp:
    return scf.ForOp(start.results[0], number(9), number(1), [], Region(Block([scf.YieldOp()], arg_types=[IndexType()])))


@pytest.mark.parametrize(("predicate", "side", "holds"), [
    ("eq", 2, True), ("eq", 3, False), ("ne", 3, True), ("slt", 3, True), ("slt", 2, False), ("sle", 2, True), ("sgt", 1, True),
    ("sge", 3, False)])
def test_a_comparison_with_the_counter(predicate: str, side: int, holds: bool) -> None:
    loop = loop_from(number(2))
    compared = arith.CmpiOp(loop.body.block.args[0], number(side).result, predicate)
    assert holds_in_first_iteration(compared.result, [loop], Ranges()) is holds


def test_the_start_of_a_loop_need_not_be_known() -> None:
    start = Block(arg_types=[IndexType()]).args[0]
    loop = scf.ForOp(start, number(9), number(1), [], Region(Block([scf.YieldOp()], arg_types=[IndexType()])))
    assert holds_in_first_iteration(arith.CmpiOp(loop.body.block.args[0], start, "eq").result, [loop], Ranges())
    assert not holds_in_first_iteration(arith.CmpiOp(loop.body.block.args[0], start, "sgt").result, [loop], Ranges())


@pytest.mark.parametrize(("combine", "known", "holds"), [
    (arith.AndIOp, True, True), (arith.AndIOp, False, False), (arith.OrIOp, True, True), (arith.OrIOp, False, True)])
def test_conditions_that_are_combined(combine: type[arith.AndIOp] | type[arith.OrIOp], known: bool, holds: bool) -> None:
    loop = loop_from(number(0))
    first: SSAValue = arith.CmpiOp(loop.body.block.args[0], number(0).result, "eq").result
    other = arith.ConstantOp(IntegerAttr(int(known), i1)).result
    assert holds_in_first_iteration(combine(first, other).result, [loop], Ranges()) is holds
