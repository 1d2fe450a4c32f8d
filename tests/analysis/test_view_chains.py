"""Chains of memref views: the root of a view, all roots that a value may have, and the marks of an allocation."""

from __future__ import annotations

import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tilelang_npu.analysis.view_chains import coupling_of, possible_roots_of, root_of, slots_of, typed_root_of
from tilelang_npu.dialects.text import parse_module

M8, M16, S8 = "memref<8xf32>", "memref<16xf32>", "memref<8xf32, strided<[1], offset: ?>>"


def _read(body: str) -> tuple[ModuleOp, dict[str, SSAValue]]:
    """Parses a function with the given body and returns the values, block arguments included, by name."""
    module = parse_module(f"""func.func @k(%arg: {M8}, %n: index, %p: i1) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %a = memref.alloc() : {M8}
      %b = memref.alloc() : {M8}
      %d = memref.alloc() : {M8}
      {body}
      return
    }}""")
    values = [value for op in module.walk() for value in (
        *op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args))]
    return module, {str(value.name_hint): value for value in values}


@pytest.mark.parametrize(("lines", "root"), [
    (f"%v = memref.cast %a : {M8} to memref<?xf32>", "a"),
    (f"%v = memref.subview %arg[%n] [4] [1] : {M8} to memref<4xf32, strided<[1], offset: ?>>", "arg"),
    (f"%v = memref.expand_shape %b [[0, 1]] output_shape [2, 4] : {M8} into memref<2x4xf32>", "b"),
    (f"%u = memref.expand_shape %b [[0, 1]] output_shape [2, 4] : {M8} into memref<2x4xf32>\n"
     f"%v = memref.collapse_shape %u [[0, 1]] : memref<2x4xf32> into {M8}", "b"),
    (f"%v = memref.reinterpret_cast %a to offset: [%n], sizes: [8], strides: [1] : {M8} to {S8}", "a"),
    (f"%v = hivm.hir.bitcast %a : {M8} -> memref<8xi32>", "a"),
    (f"%v = arith.select %p, %b, %a : {M8}", "b"),  # the first alternative is used for both
    (f"%q = arith.constant 64 : i64\n%v = hivm.hir.pointer_cast(%q) : {M8}", "v"),  # an address is a root itself
])
def test_the_root_of_a_view(lines: str, root: str) -> None:
    _, values = _read(lines)
    assert root_of(values["v"]) is values[root]
    assert typed_root_of(values["v"]) is values[root]


def test_the_typed_root_of_raw_bytes_is_the_view_that_gives_them_a_type() -> None:
    _, values = _read(f"""%raw = memref.alloc() : memref<256xi8>
      %typed = memref.view %raw[%c0][] : memref<256xi8> to {M16}
      %v = memref.subview %typed[8] [8] [1] : {M16} to memref<8xf32, strided<[1], offset: 8>>""")
    assert root_of(values["v"]) is values["raw"]
    assert typed_root_of(values["v"]) is values["typed"]


def _roots(body: str, name: str) -> tuple[set[str | None], int]:
    """Returns the names of all roots that a value may have, and the number of loops that carry it."""
    module, values = _read(body)
    roots, loops = possible_roots_of(values[name])
    assert loops <= {op for op in module.walk() if isinstance(op, (scf.ForOp, scf.WhileOp))}
    return {root.name_hint for root in roots}, len(loops)


def test_both_operands_of_a_select_are_possible_roots() -> None:
    assert _roots(f"""%s = arith.select %p, %a, %arg : {M8}
      %v = memref.cast %s : {M8} to memref<?xf32>""", "v") == ({"a", "arg"}, 0)


def test_the_results_of_both_branches_are_possible_roots() -> None:
    assert _roots(f"""%o, %v = scf.if %p -> ({M8}, {M8}) {{
        scf.yield %d, %a : {M8}, {M8}
      }} else {{
        scf.yield %d, %b : {M8}, {M8}
      }}""", "v") == ({"a", "b"}, 0)


SWAP = f"""%r, %s = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %a, %y = %b) -> ({M8}, {M8}) {{
        %v = memref.cast %x : {M8} to memref<?xf32>
        scf.yield %XNEXT, %YNEXT : {M8}, {M8}
      }}"""


@pytest.mark.parametrize(("name", "following", "roots"), [
    ("v", ("x", "y"), {"a"}), ("s", ("x", "y"), {"b"}),
    ("v", ("y", "x"), {"a", "b"}), ("r", ("y", "x"), {"a", "b"}),  # the loop exchanges the two
    ("v", ("d", "x"), {"a", "d"}), ("s", ("d", "x"), {"a", "b", "d"}),
])
def test_the_values_that_a_for_loop_carries(name: str, following: tuple[str, str], roots: set[str]) -> None:
    body = SWAP.replace("XNEXT", following[0]).replace("YNEXT", following[1])
    assert _roots(body, name) == (roots, 1)


def test_the_induction_variable_is_a_root_itself() -> None:
    assert _roots(SWAP.replace("XNEXT", "x").replace("YNEXT", "y"), "i") == ({"i"}, 0)


@pytest.mark.parametrize(("name", "roots"), [("x", {"a", "d"}), ("y", {"a", "d"}), ("r", {"a", "d"}), ("s", {"b"})])
def test_the_values_that_a_while_loop_carries(name: str, roots: set[str]) -> None:
    assert _roots(f"""%r, %s = scf.while (%x = %a) : ({M8}) -> ({M8}, {M8}) {{
        scf.condition(%p) %x, %b : {M8}, {M8}
      }} do {{
      ^bb0(%y: {M8}, %z: {M8}):
        %t = arith.select %p, %d, %y : {M8}
        scf.yield %t : {M8}
      }}""", name) == (roots, 1)


def test_a_value_of_nested_loops_has_both_loops() -> None:
    assert _roots(f"""%r = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %a) -> ({M8}) {{
        %s = scf.for %j = %c0 to %c4 step %c1 iter_args(%y = %x) -> ({M8}) {{
          scf.yield %b : {M8}
        }}
        scf.yield %s : {M8}
      }}""", "y") == ({"a", "b"}, 2)


def test_the_slots_that_an_allocation_is_marked_with() -> None:
    _, values = _read(f"""annotation.mark %a {{hivm.multi_buffer = 3 : i32}} : {M8}
      annotation.mark %b {{other = 4 : i32}} : {M8}
      %v = memref.cast %a : {M8} to memref<?xf32>""")
    assert [slots_of(values[name]) for name in ("a", "b", "d")] == [3, 1, 1]
    assert slots_of(values["v"]) == 1  # the mark is of the allocation, not of its views


def test_the_number_of_a_buffer_that_both_cores_access() -> None:
    _, values = _read(f"""annotation.mark %a {{hivm.tightly_coupled_buffer = #hivm.tightly_coupled_buffer<5>}} : {M8}
      annotation.mark %b {{hivm.tightly_coupled_buffer = #hivm.tightly_coupled_buffer<0>}} : {M8}
      annotation.mark %d {{hivm.multi_buffer = 2 : i32}} : {M8}""")
    assert [coupling_of(values[name]) for name in ("a", "b", "d")] == [5, 0, None]
