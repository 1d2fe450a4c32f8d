"""The values of a device function that depend on the contents of tensors, also through loops and branches."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from tilelang_npu import simulator  # noqa: F401  (it registers which ops have effects)
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator.codegen.data_dependence import DataDependence, data_dependent_loops

HEAD = """
func.func @k(%m: memref<8xi32, #hivm.address_space<gm>>, %out: memref<8xi32, #hivm.address_space<gm>>, %n: i32)
    attributes {hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i32
  %read = memref.load %m[%c0] : memref<8xi32, #hivm.address_space<gm>>
"""
STORE = "  memref.store %zero, %out[{}] : memref<8xi32, #hivm.address_space<gm>>\n"
INDEX = "  %place = arith.index_cast {} : i32 to index\n"


def function(body: str) -> FuncOp:
    module = parse_module(HEAD + body + "  return\n}\n")
    return next(op for op in module.walk() if isinstance(op, FuncOp))


def uses(body: str) -> list[str]:
    return [use.what for use in DataDependence(function(body)).uses]


@pytest.mark.parametrize(("start", "after", "found"), [
    ("%zero, %read", "1", ["place"]), ("%zero, %read", "0", []), ("%read, %zero", "0", ["place"]), ("%read, %zero", "1", [])])
def test_what_a_counted_loop_carries(start: str, after: str, found: list[str]) -> None:
    body = f"""
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = {start.split(", ")[0]}, %b = {start.split(", ")[1]}) -> (i32, i32) {{
    scf.yield %a, %b : i32, i32
  }}
""" + INDEX.format(f"%r#{after}") + STORE.format("%place")
    assert uses(body) == found


@pytest.mark.parametrize(("start", "after", "found"), [
    ("%zero, %read", "1", ["place"]), ("%zero, %read", "0", []), ("%read, %zero", "0", ["place"]), ("%read, %zero", "1", [])])
def test_what_a_while_loop_carries(start: str, after: str, found: list[str]) -> None:
    """Through the condition to the body and to the results, each operand at its own position."""
    body = f"""
  %r:2 = scf.while (%a = {start.split(", ")[0]}, %b = {start.split(", ")[1]}) : (i32, i32) -> (i32, i32) {{
    %go = arith.cmpi slt, %n, %zero : i32
    scf.condition(%go) %a, %b : i32, i32
  }} do {{
  ^bb0(%c: i32, %d: i32):
    scf.yield %c, %d : i32, i32
  }}
""" + INDEX.format(f"%r#{after}") + STORE.format("%place")
    assert uses(body) == found


def test_the_body_of_a_while_loop_has_what_its_condition_passes_on() -> None:
    body = """
  %r:2 = scf.while (%a = %zero, %b = %read) : (i32, i32) -> (i32, i32) {
    %go = arith.cmpi slt, %n, %zero : i32
    scf.condition(%go) %a, %b : i32, i32
  } do {
  ^bb0(%c: i32, %d: i32):
    %place = arith.index_cast %WHICH : i32 to index
    memref.store %zero, %out[%place] : memref<8xi32, #hivm.address_space<gm>>
    scf.yield %c, %d : i32, i32
  }
"""
    assert uses(body.replace("%WHICH", "%d")) == ["place"]
    assert uses(body.replace("%WHICH", "%c")) == []


def test_a_while_loop_on_data_is_a_trip_count() -> None:
    body = """
  %r = scf.while (%a = %zero) : (i32) -> (i32) {
    %go = arith.cmpi slt, %a, %read : i32
    scf.condition(%go) %a : i32
  } do {
  ^bb0(%c: i32):
    scf.yield %c : i32
  }
""" + INDEX.format("%r") + STORE.format("%place")
    assert uses(body) == ["trips", "place"]  # the trip count, and so the final value


def test_a_branch_on_data_chooses_its_results() -> None:
    body = """
  %yes = arith.cmpi slt, %COND, %zero : i32
  %r = scf.if %yes -> (i32) {
    scf.yield %zero : i32
  } else {
    scf.yield %n : i32
  }
""" + INDEX.format("%r") + STORE.format("%place")
    assert uses(body.replace("%COND", "%read")) == ["branch", "place"]
    assert uses(body.replace("%COND", "%n")) == []


def test_a_loop_up_to_data_is_found() -> None:
    body = """
  %end = arith.index_cast %COND : i32 to index
  scf.for %i = %c0 to %end step %c1 {
    memref.store %zero, %out[%i] : memref<8xi32, #hivm.address_space<gm>>
  }
"""
    assert uses(body.replace("%COND", "%read")) == ["trips", "place"]
    assert len(data_dependent_loops(function(body.replace("%COND", "%read")))) == 1
    assert uses(body.replace("%COND", "%n")) == []
    assert not data_dependent_loops(function(body.replace("%COND", "%n")))
    assert DataDependence(function(body.replace("%COND", "%read"))).places == {1}
    assert DataDependence(function(body.replace("%COND", "%n"))).places == frozenset()
