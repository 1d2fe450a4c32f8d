"""The waits inside a core that flags between the cores rely on, from the operations that declare them."""

from __future__ import annotations

import pytest
from xdsl.dialects import func

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import InternalError
from tilelang_npu.transforms.hivm.sync.items import BlockItems, build_items
from tilelang_npu.transforms.hivm.sync.waits_relied_on import FIRST, SECOND, constraints_relied_on, remove_marks

TEXT = """
func.func @k(%p: memref<64xf32, #hivm.address_space<gm>>, %q: memref<64xf32, #hivm.address_space<gm>>, %a: i1) {
  %c0 = arith.constant 0 : i64
  %u = hivm.hir.pointer_cast(%c0) : memref<64xf32, #hivm.address_space<ub>>
  scf.if %a {
    hivm.hir.store ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%p : memref<64xf32, #hivm.address_space<gm>>)
  } FIRST
  hivm.hir.load ins(%q : memref<64xf32, #hivm.address_space<gm>>) outs(%u : memref<64xf32, #hivm.address_space<ub>>) SECOND
  return
}
"""
SAID = '{tile.counted_on = ["0"]}', '{tile.counts_on = [["0", "AIV", "MTE3", "MTE2", 0]]}'


def _body(first: str, second: str) -> BlockItems:
    module = parse_module(TEXT.replace("FIRST", first).replace("SECOND", second))
    function = next(op for op in module.walk() if isinstance(op, func.FuncOp))
    return build_items(function.body.block)


def test_an_order_is_a_demand_of_its_core() -> None:
    body = _body(*SAID)
    (constraint,) = constraints_relied_on(body, "AIV")
    assert (constraint.source, constraint.target, constraint.first, constraint.then) == ("MTE3", "MTE2", 0, 1)
    assert constraint.reason.kind == "WAR"
    assert constraint.reason.unconditional
    assert list(constraints_relied_on(body, "AIC")) == []


def test_the_reason_of_an_order_is_two_accesses_that_overlap() -> None:
    """The first load of the branch writes other bytes than the store reads; the second load writes the same bytes."""
    load = "hivm.hir.load ins(%q : memref<64xf32, #hivm.address_space<gm>>) outs(%{} : memref<64xf32, #hivm.address_space<ub>>)"
    buffer = """%c256 = arith.constant 256 : i64
  %v = hivm.hir.pointer_cast(%c256) : memref<64xf32, #hivm.address_space<ub>>
  scf.if"""
    text = TEXT.replace(f"{load.format('u')} SECOND", f"scf.if %a {{\n{load.format('v')}\n{load.format('u')}\n}} {SAID[1]}")
    module = parse_module(text.replace("scf.if", buffer, 1).replace("FIRST", SAID[0]))
    (function,) = [op for op in module.walk() if isinstance(op, func.FuncOp)]
    (constraint,) = constraints_relied_on(build_items(function.body.block), "AIV")
    store, _, load_u = [op for op in module.walk() if isinstance(op, hivm.LoadOp | hivm.StoreOp)]
    assert (constraint.reason.kind, constraint.reason.first.op, constraint.reason.second.op) == ("WAR", store, load_u)


@pytest.mark.parametrize(("first", "second"), [("", SAID[1]), (SAID[0], SAID[1].replace("MTE3", "V"))])
def test_an_order_without_a_beginning_is_no_quiet_race(first: str, second: str) -> None:
    with pytest.raises(InternalError, match="relies on MTE2 waiting for"):
        list(constraints_relied_on(_body(first, second), "AIV"))


def test_nothing_is_left_of_it() -> None:
    module = parse_module(TEXT.replace("FIRST", SAID[0]).replace("SECOND", SAID[1]))
    function = next(op for op in module.walk() if isinstance(op, func.FuncOp))
    assert FIRST in print_module(module) and SECOND in print_module(module)
    remove_marks(function)
    assert "tile.count" not in print_module(module)
