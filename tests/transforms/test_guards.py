"""What a condition says of numbers: natural where it holds, and of each kind of comparison negative where it does not."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith

from tilelang_npu.dialects.text import parse_module
from tilelang_npu.transforms.ir.guards import leaves, said
from tilelang_npu.transforms.ir.ranges import Ranges

MEANING = {"slt": int.__lt__, "sle": int.__le__, "sgt": int.__gt__, "sge": int.__ge__}


def _condition(text: str) -> arith.AndIOp | arith.CmpiOp:
    found = [op for op in parse_module(text).walk() if isinstance(op, (arith.AndIOp, arith.CmpiOp))]
    return found[-1]


@pytest.mark.parametrize("kind", MEANING)
def test_a_comparison_is_a_sum_that_is_natural_where_it_holds(kind: str) -> None:
    op = _condition(f"""func.func @f(%a: index, %b: index) {{
      %c = arith.cmpi {kind}, %a, %b : index
      return
    }}""")
    (known,) = said(op.result, Ranges())
    left, right = op.operands
    for a in range(-3, 4):
        for b in range(-3, 4):
            value = known.substitute(left, a).substitute(right, b)
            assert value.known
            assert (value.constant >= 0) == MEANING[kind](a, b)


def test_of_what_is_no_such_comparison_a_leaf_says_so() -> None:
    op = _condition("""func.func @f(%a: index, %b: index, %x: i1) {
      %c = arith.cmpi slt, %a, %b : index
      %d = arith.andi %c, %x : i1
      return
    }""")
    found = list(leaves(op.result, Ranges()))
    assert len(found) == 2
    assert None in found
    assert len(list(said(op.result, Ranges()))) == 1
