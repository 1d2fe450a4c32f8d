"""The operations around an operation: its loop, its launch, its core scope, and the pipelined loop of a copy."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from tilelang_npu.analysis.nesting import (
    enclosing,
    is_defined_in,
    is_in_core_scope,
    launch_of,
    loop_around,
    pipelined_loop_of_copy,
)
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import parse_module

# Each constant marks a position: its value is the name of the position in the tests.
TEXT = """func.func @k(%p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %launch = arith.constant 100 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %outer = arith.constant 101 : index
      tile.on_core "vector" {
        scf.if %p {
          %scope = arith.constant 102 : index
        }
      }
      scf.for %j = %c0 to %c4 step %c1 {
        %inner = arith.constant 103 : index
      }
    }
  }
  return
}
"""
FUNCTION, LAUNCH, OUTER, SCOPE, INNER = "c0", "launch", "outer", "scope", "inner"


def _read() -> tuple[ModuleOp, dict[str, Operation], list[scf.ForOp]]:
    module = parse_module(TEXT)
    places = {str(op.result.name_hint): op for op in module.walk() if isinstance(op, arith.ConstantOp)}
    return module, places, [op for op in module.walk() if isinstance(op, scf.ForOp)]


@pytest.mark.parametrize(("place", "loop", "in_launch", "in_scope"), [
    (FUNCTION, None, False, False), (LAUNCH, None, True, False), (OUTER, 0, True, False), (SCOPE, 0, True, True),
    (INNER, 1, True, False)])
def test_the_operations_around_a_place(place: str, loop: int | None, in_launch: bool, in_scope: bool) -> None:
    module, places, loops = _read()
    op = places[place]
    (launch,) = [each for each in module.walk() if isinstance(each, tile.LaunchOp)]
    assert loop_around(op) is (None if loop is None else loops[loop])
    assert launch_of(op) is (launch if in_launch else None)
    assert is_in_core_scope(op) is in_scope
    assert enclosing(op, ModuleOp) is module


def test_an_operation_does_not_enclose_itself() -> None:
    module, _, (outer, inner) = _read()
    assert loop_around(inner) is outer
    assert loop_around(outer) is None
    assert enclosing(module, ModuleOp) is None
    (scope,) = [each for each in module.walk() if isinstance(each, tile.OnCoreOp)]
    assert not is_in_core_scope(scope)


def test_a_detached_operation_has_no_launch() -> None:
    _, places, _ = _read()
    op = places[INNER]
    op.detach()
    assert launch_of(op) is None
    assert loop_around(op) is None


def test_the_values_that_are_defined_in_a_block() -> None:
    _, places, (outer, inner) = _read()
    defined = {name for name, op in places.items() if is_defined_in(op.results[0], outer.body.block)}
    assert defined == {OUTER, SCOPE, INNER}
    assert is_defined_in(outer.body.block.args[0], outer.body.block)
    assert is_defined_in(inner.body.block.args[0], outer.body.block)
    assert not is_defined_in(outer.body.block.args[0], inner.body.block)
    assert not is_defined_in(places[OUTER].results[0], inner.body.block)


def _copy_in_loop(source: str, target: str, stages: int | None, *, nested: bool = False) -> tuple[tile.CopyOp, list[scf.ForOp]]:
    """Returns a copy in a loop with a number of pipeline stages; with ``nested``, in a plain loop in that loop."""
    kinds = [f"memref<16xf32, #hivm.address_space<{each}>>" for each in (source, target)]
    module = parse_module(f"""func.func @k(%x: {kinds[0]}, %y: {kinds[1]}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      scf.for %i = %c0 to %c4 step %c1 {{
        {'scf.for %j = %c0 to %c4 step %c1 {' if nested else ''}
        tile.copy %x to %y : {kinds[0]} to {kinds[1]}
        {'}' if nested else ''}
      }}
      return
    }}""")
    loops = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    if stages is not None:
        loops[0].attributes[tile.NUM_STAGES] = IntegerAttr(stages, 64)
    (copy,) = [op for op in module.walk() if isinstance(op, tile.CopyOp)]
    return copy, loops


@pytest.mark.parametrize(("source", "target", "buffer", "stages", "found"), [
    ("gm", "ub", "target", 2, True), ("gm", "cbuf", "target", 3, True),
    ("ub", "gm", "source", 2, True),  # the store of a result counts too
    ("gm", "ub", "target", 1, False), ("gm", "ub", "target", None, False),  # the loop is not pipelined
    ("ub", "ub", "target", 2, False),  # the copy stays in one memory
    ("cc", "gm", "source", 2, False),  # nothing moves data from GM into L0C
])
def test_the_pipelined_loop_of_a_copy(source: str, target: str, buffer: str, stages: int | None, found: bool) -> None:
    copy, (loop,) = _copy_in_loop(source, target, stages)
    assert pipelined_loop_of_copy(copy, copy.source if buffer == "source" else copy.target) is (loop if found else None)


def test_only_the_innermost_loop_counts_as_the_loop_of_a_copy() -> None:
    copy, (_, inner) = _copy_in_loop("gm", "ub", 2, nested=True)
    assert pipelined_loop_of_copy(copy, copy.target) is None
    inner.attributes[tile.NUM_STAGES] = IntegerAttr(2, 64)
    assert pipelined_loop_of_copy(copy, copy.target) is inner


def test_an_operation_that_is_no_copy_has_no_pipelined_loop() -> None:
    copy, (loop,) = _copy_in_loop("gm", "ub", 2)
    other = arith.ConstantOp(IntegerAttr.from_index_int_value(1))
    loop.body.block.insert_op_before(other, copy)
    assert pipelined_loop_of_copy(other, copy.target) is None
