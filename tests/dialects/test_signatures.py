"""The type constraints of a declaration are checked once for ops with equal types, and for each op with other types."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from xdsl.dialects import arith, func, test
from xdsl.dialects.builtin import IndexType, IntegerAttr, UnitAttr, f32, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import AttrConstraint, IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, traits_def
from xdsl.irdl.constraints import VerificationContext as ConstraintContext
from xdsl.traits import HasParent, NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilelang_npu.dialects.ir import signatures
from tilelang_npu.dialects.ir.signatures import cache_verification

asked: list[Attribute] = []


class _I32(AttrConstraint[Attribute]):
    """An i32 constraint that records the types that it checks."""

    def verify(self, attr: Attribute, constraint_context: ConstraintContext) -> None:
        asked.append(attr)
        if attr != i32:
            msg = f"{attr} is no i32"
            raise VerifyException(msg)

    def mapping_type_vars(self, type_var_mapping: object) -> _I32:
        return self


@irdl_op_definition
class CountingOp(IRDLOperation):
    """Takes an i32, and maybe a unit, in a function."""

    name = "test.counting"
    source = operand_def(_I32())
    unit = opt_prop_def(UnitAttr)
    traits = traits_def(HasParent(func.FuncOp), NoMemoryEffect())


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    signatures._Current.verdicts = signatures._Verdicts()
    cache_verification(CountingOp)
    asked.clear()
    yield
    signatures._Current.verdicts = signatures._Verdicts()


def value(kind: Attribute) -> SSAValue:
    return test.TestOp(result_types=[kind]).results[0]


def inside(op: Operation) -> Operation:
    function = func.FuncOp("f", ((), ()))
    function.body.block.add_op(op)
    return op


def test_ops_that_are_alike_are_asked_once() -> None:
    for _ in range(3):
        inside(CountingOp.create(operands=[value(i32)])).verify_()
    assert asked == [i32]


def test_an_op_of_other_types_is_refused_after_a_valid_one() -> None:
    inside(CountingOp.create(operands=[value(i32)])).verify_()
    for operands, properties in (([i64], {}), ([i32, i32], {}), ([], {}), ([i32], {"unit": IntegerAttr(1, IndexType())}),
                                 ([i32], {"other": UnitAttr()})):
        for _ in range(2):  # a refusal is not cached
            with pytest.raises(VerifyException):
                inside(CountingOp.create(operands=[value(kind) for kind in operands], properties=properties)).verify_()
    inside(CountingOp.create(operands=[value(i32)], properties={"unit": UnitAttr()})).verify_()
    with pytest.raises(VerifyException):
        inside(CountingOp.create(operands=[value(i32)], result_types=[i32])).verify_()


def test_the_parent_of_an_op_is_checked_each_time() -> None:
    inside(CountingOp.create(operands=[value(i32)])).verify_()
    op = CountingOp.create(operands=[value(i32)])
    arith_parent = test.TestOp(regions=[[Block([op])]])
    with pytest.raises(VerifyException, match="parent"):
        op.verify_()
    assert arith_parent.regions


def test_what_is_forgotten_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "_CACHE_LIMIT", 1)
    for _ in range(2):
        inside(CountingOp.create(operands=[value(i32)], properties={"unit": UnitAttr()})).verify_()
    assert asked == [i32, i32]


def test_an_attribute_is_not_taken_for_one_that_is_gone() -> None:
    """Python reuses ids of freed objects; objects whose id is stored are kept alive."""
    cache_verification(arith.ConstantOp)
    for number in range(2000):
        kind = (i32, i64)[number % 2]
        wrong = (i64, i32)[number % 2]
        arith.ConstantOp(IntegerAttr(number, kind)).verify_()
        with pytest.raises(VerifyException):
            arith.ConstantOp.create(result_types=[wrong], properties={"value": IntegerAttr(number, kind)}).verify_()
    with pytest.raises(VerifyException):
        arith.ConstantOp.create(result_types=[f32], properties={"value": IntegerAttr(1, i32)}).verify_()
