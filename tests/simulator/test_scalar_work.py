"""The cost of scalar instructions of a loop: hoisted values cost once before the loop, a constant step is one addition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator import simulate
from tilelang_npu.target import chip

LENGTH, FEW, MORE = 64, 10, 30
VIEW = f"memref<{LENGTH}xf32, strided<[1], offset: ?>, {texts.GM}>"
WHOLE, INSIDE = f"memref<65536xf32, {texts.GM}>", f"memref<{LENGTH}xf32, {texts.UB}>"


def indented(lines: Sequence[str]) -> str:
    return "\n".join(f"      {line}" for line in lines)


def load_at(place: str = "") -> list[str]:
    """A load that begins so far into the tensor, or at its start."""
    kind = VIEW if place else VIEW.replace(", offset: ?", "")
    return [f"%v = memref.subview %X[{place or 0}] [{LENGTH}] [1] : {WHOLE} to {kind}",
            f"hivm.hir.load ins(%v : {kind}) outs(%t : {INSIDE})"]


def scalar_cycles(lines: Sequence[str], trips: int, around: int | None = None) -> float:
    """Cycles of the scalar unit for a loop of these lines over ``%i``, or over ``%j`` in a loop over ``%i``."""
    body = [texts.tile("t", 0, str(LENGTH), "f32"),
            *(f"    %c{number} = arith.constant {number} : index" for number in (0, 1, 5, 32, LENGTH, trips)),
            *([f"    %around = arith.constant {around} : index",
               "    scf.for %i = %c0 to %around step %c1 {"] if around else []),
            f"    scf.for %{'j' if around else 'i'} = %c0 to %c{trips} step %c1 {{", indented(lines), "    }",
            *(["    }"] if around else [])]
    module = parse_module(texts.module(texts.kernel("AIV", [f"%X: {WHOLE}"], "\n".join(body))))
    return simulate(module, [np.zeros(65536, np.float32)], blocks=1).busy_cycles["AIV"]["S"]


def instructions(lines: Sequence[str], around: int | None = None) -> float:
    """Scalar instructions of an iteration of the innermost loop, besides handing over its load."""
    scalar = chip("910B2").scalar
    cycles = (scalar_cycles(lines, MORE, around) - scalar_cycles(lines, FEW, around)) / (MORE - FEW) / (around or 1)
    return (cycles - scalar.issue) / scalar.alu


LOOP = 2
"""Instructions of a loop: its counter, and the jump."""
ROW = ["%a = arith.muli %i, %c64 : index"]


@pytest.mark.parametrize(("lines", "more"), [
    (load_at(), 0),
    ([*ROW, *load_at("%a")], 1),
    ([*ROW, "%b = arith.addi %a, %c32 : index", "%c = arith.muli %b, %c5 : index", "%d = arith.subi %c, %i : index",
      *load_at("%d")], 1),
    (["%n = arith.index_cast %i : index to i32", "%m = arith.index_cast %n : i32 to index", *load_at("%m")], 1),
    (["%a = arith.muli %i, %i : index", *load_at("%a")], 2),
    (["%a = arith.remui %i, %c5 : index", *load_at("%a")], 2),
    ([*ROW, "%b = arith.minui %a, %c32 : index", *load_at("%b")], 3),
], ids=["constant", "row", "chain", "casts", "square", "remainder", "least"])
def test_an_even_step_is_one_addition_however_it_is_written(lines: list[str], more: int) -> None:
    assert instructions(lines) == LOOP + more


def test_what_does_not_change_in_a_loop_is_computed_ahead_of_it() -> None:
    """The address of a row of the outer loop, and a remainder of it, do not cost anything in the inner loop."""
    lines = [*ROW, "%r = arith.remui %i, %c5 : index", "%b = arith.addi %a, %r : index", *load_at("%b")]
    assert instructions(lines, around=4) == LOOP
    in_outer = (scalar_cycles(lines, FEW, 40) - scalar_cycles(lines, FEW, 20)) / 20 - FEW * (2 + 2 * LOOP)
    without = (scalar_cycles(load_at(), FEW, 40) - scalar_cycles(load_at(), FEW, 20)) / 20 - FEW * (2 + 2 * LOOP)
    assert in_outer - without == 2 * 4  # the row, the remainder, their sum and the address


def test_code_before_an_inner_loop_costs_once_for_each_outer_iteration() -> None:
    """Not once in each of its iterations: the more of these there are, the more that would be."""
    wide, narrow = (scalar_cycles(load_at("%j"), trips, 20) for trips in (MORE, FEW))
    assert wide - narrow == 20 * (MORE - FEW) * (2 + 2 * (LOOP + 1))
