"""Bounds that follow from a condition: expressions that are non-negative if it holds, and negative if it does not."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith

from tilelang_npu.analysis.guards import conjuncts_of, is_surely_nonnegative, nonnegative_under
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.linear import Linear

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
    (known,) = nonnegative_under(op.result, Ranges())
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
    found = list(conjuncts_of(op.result, Ranges()))
    assert len(found) == 2
    assert None in found
    assert len(list(nonnegative_under(op.result, Ranges()))) == 1


@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("short", range(-2, 3))
def test_as_many_tiles_as_are_whole_end_with_what_is_there(short: int, clamped: bool) -> None:
    """For every length and every tile: the elements past the end, minus ``short``."""
    position = ("%last = arith.subi %q, %c1 : index\n%least = arith.minsi %t, %last : index\n"
                "%i = arith.maxsi %least, %c0 : index"
                if clamped else "%i = arith.addi %t, %c0 : index")
    module = parse_module(f"""func.func @f(%n: index) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %q = arith.divui %n, %c4 : index
      %end = arith.addi %q, %{'c4' if clamped else 'c0'} : index
      scf.for %t = %c0 to %end step %c1 {{
        %whole = arith.cmpi slt, %t, %q : index
        {position}
        %row = arith.muli %i, %c4 : index
        %rest = arith.subi %n, %row : index
      }}
      return
    }}""")
    (rest,) = [op for op in module.walk() if isinstance(op, arith.SubiOp) and isinstance(op.rhs.owner, arith.MuliOp)]
    (whole,) = [op for op in module.walk() if isinstance(op, arith.CmpiOp)]
    room = affine(rest.result) - Linear(4 + short)
    so = all(n - 4 * t - 4 - short >= 0 for n in range(30) for t in range(n // 4))
    assert is_surely_nonnegative(room, [whole.result], Ranges()) == so
    assert is_surely_nonnegative(room, [], Ranges()) == (so and not clamped)  # the loop runs on


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("below", [False, True])
def test_a_remainder_is_less_than_its_divisor(size: int, below: bool) -> None:
    """Of ``x - x // 4 * 4``, for any ``x``: that it is natural, and that ``size`` elements from it on end within 6."""
    module = parse_module("""func.func @f(%n: index) {
      %c4 = arith.constant 4 : index
      %c7 = arith.constant 7 : index
      %x = arith.subi %n, %c7 : index
      %q = arith.floordivsi %x, %c4 : index
      %whole = arith.muli %q, %c4 : index
      %left = arith.subi %x, %whole : index
      return
    }""")
    left = next(op for op in module.walk() if op.results and op.results[0].name_hint == "left").results[0]
    ranges = Ranges()
    value = affine(left, ranges.constant)
    asked = value if below else Linear(6 - size) - value
    assert is_surely_nonnegative(asked, (), ranges) == (below or size <= 3)


@pytest.mark.parametrize("kind", ["minsi", "maxsi"])
@pytest.mark.parametrize("bound", [-2, 0, 3, 9, 12])
def test_conditions_on_a_minimum_or_maximum_hold_for_every_value(kind: str, bound: int) -> None:
    """Sums of the minimum or maximum, of the number itself and of a constant, for a counter from 0 to 9: no negative sum is
    called
non-negative."""
    module = parse_module(f"""func.func @f() {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %end = arith.constant 10 : index
      %bound = arith.constant {bound} : index
      scf.for %t = %c0 to %end step %c1 {{
        %m = arith.{kind} %t, %bound : index
        %u = arith.addi %m, %t : index
      }}
      return
    }}""")
    (total,) = [op for op in module.walk() if isinstance(op, arith.AddiOp)]
    limited, counter = total.operands
    chosen = min if kind == "minsi" else max
    known = 0
    for factor in (-1, 1):
        for other in (-1, 0, 1):
            for more in range(-13, 14):
                value = factor * Linear.of(limited) + other * Linear.of(counter) + Linear(more)
                said_so = is_surely_nonnegative(value, [], Ranges())
                known += said_so
                assert not said_so or all(factor * chosen(t, bound) + other * t + more >= 0 for t in range(10))
    assert known > 20
